//! What an operator should know, and what to do about it.

use super::{LostRange, ago, lost_ranges};
use crate::config::Period;
use crate::output;
use base::BrickId;
use std::collections::BTreeMap;
use wire::directory::{BrickEntry, VolumeStatus};
use wire::{ClusterStatus, DataPath, SlowEntry, StoreFailure};

/// The most ranges of lost bytes that are told one by one.
const LOST_MAX: usize = 8;

/// What an operator should know and do, a sentence or two each, the worst first; nothing when all is well. What the
/// directory warns of by itself (bricks that fill up, groups that find no brick) stands behind it.
pub fn problems(status: &ClusterStatus) -> Vec<String> {
    let mut problems = lost_problems(status);
    problems.extend(status.store.as_ref().map(store_problem));
    if status.bricks.is_empty() {
        problems.push(
            "The cluster has no brick: run `brickwork brick init` on a storage server to make one."
                .to_owned(),
        );
    }
    let families = families(status);
    problems.extend(families.iter().filter_map(|(names, volume)| lost_groups(names, volume)));
    problems.extend(families.iter().filter_map(|(names, volume)| unavailable(status, names, volume)));
    problems.extend(status.bricks.iter().filter_map(|brick| brick_problem(status, brick)));
    problems.extend(families.iter().filter_map(|(names, volume)| degraded(names, volume)));
    // Those without an address serve only the client in their own process.
    let is_served = status.gateways.iter().any(|gateway| !gateway.address.is_empty());
    let wants = |volume: &VolumeStatus| volume.volume.protocol.path != DataPath::Direct;
    if !is_served && status.volumes.iter().any(wants) {
        problems.push(
            "The directory has not heard of a gateway lately, so only `attach --direct` serves volumes: start `brickwork gateway`."
                .to_owned(),
        );
    }
    problems.extend(no_gateway_beside(status));
    problems.extend(status.warnings.iter().cloned());
    problems
}

/// A volume's data path wants gateways beside its bricks, and there is none.
fn no_gateway_beside(status: &ClusterStatus) -> Option<String> {
    let is_routed = |volume: &&VolumeStatus| volume.volume.protocol.path.is_of_bricks();
    let volume = status.volumes.iter().find(is_routed)?;
    let none = status.gateways.iter().all(|gateway| gateway.beside.is_none());
    none.then(|| {
        format!(
            "No gateway stands beside a brick, as the protocol {} of volume '{}' wants, so any gateway coordinates its requests: \
             start `brickwork gateway --beside brick-N` on the bricks' machines.",
            volume.volume.protocol, volume.volume.name
        )
    })
}

fn lost_problems(status: &ClusterStatus) -> Vec<String> {
    let lost = lost_ranges(status);
    let told = lost.iter().take(LOST_MAX).map(|range: &LostRange| {
        format!(
            "Lost beyond repair: {range}. Reads of it fail with EIO until it is written again: restore it from a backup, or \
             bring back a brick that has it."
        )
    });
    let mut told: Vec<String> = told.collect();
    if lost.len() > LOST_MAX {
        told.push(format!(
            "{} more are lost: `brickwork status --json | jq .lost` lists all.",
            output::count((lost.len() - LOST_MAX) as u64, "range")
        ));
    }
    told
}

fn store_problem(failure: &StoreFailure) -> String {
    format!(
        "The directory has not been able to store changes for {}: {}. Volumes are still served, but no volume or snapshot can \
         be made or changed, and if a brick dies, writes to its groups wait. Free space in the file system of its store, or \
         repair that file system or disk. The directory tries again every second.",
        ago(failure.since_ms),
        failure.why
    )
}

/// Volumes share the groups of their family, so that what is wrong with them is told once: with all their names.
fn families(status: &ClusterStatus) -> Vec<(String, &VolumeStatus)> {
    let mut families: BTreeMap<base::VolumeId, Vec<&VolumeStatus>> = BTreeMap::new();
    for volume in &status.volumes {
        families.entry(volume.volume.family).or_default().push(volume);
    }
    families.into_values().filter_map(named).collect()
}

/// The volumes of a family by their names, and one of them.
fn named(volumes: Vec<&VolumeStatus>) -> Option<(String, &VolumeStatus)> {
    let heads = || volumes.iter().filter(|volume| !volume.volume.is_snapshot);
    let first = *heads().next().or(volumes.first())?;
    let names: Vec<String> = heads().map(|volume| format!("'{}'", volume.volume.name)).collect();
    let name = match &names[..] {
        [] => format!("Volume '{}'", first.volume.name),
        [name] => format!("Volume {name}"),
        [names @ .., last] => format!("Volumes {} and {last}", names.join(", ")),
    };
    Some((name, first))
}

fn brick_problem(status: &ClusterStatus, brick: &BrickEntry) -> Option<String> {
    let (id, at) = (brick.id, &brick.status.address);
    if brick.status.failed.as_ref().is_some_and(|why| why.contains(wire::DISK_FULL)) {
        return Some(format!(
            "The file system under a disk of {id} ({at}) is full, and the volumes continue without this brick. Free some space \
             there; the brick then restarts by itself and fetches what it lacks."
        ));
    }
    if brick.status.failed.is_some() {
        return Some(format!(
            "A disk of {id} ({at}) failed, and the volumes continue without this brick. Replace the disk, run `brickwork brick \
             format` and start the brick; or run `brickwork brick replace {id}`."
        ));
    }
    if brick.evicted {
        let groups = output::count(u64::from(brick.groups), "group");
        return (brick.groups > 0).then(|| {
            format!(
                "{id} ({at}) is evicted and still a member of {groups}, whose blocks are being moved to other bricks."
            )
        });
    }
    if !brick.alive {
        return Some(silent(status, brick));
    }
    if let Some(slow) = &brick.slow {
        return Some(slow_problem(brick, slow));
    }
    // A block may be found more than once before it is repaired, so that the counts do not balance.
    let status = &brick.status;
    let is_open = status.unreadable_blocks > status.scrub.settled_blocks;
    if is_open && status.rot.repaired_blocks == 0 && status.rot.lost_blocks == 0 {
        return Some(format!(
            "{id} ({at}) found blocks that do not match their checksums, and has repaired none yet. Reads are served from \
             other bricks. `brickwork scrub --wait` repairs the blocks; if this happens again, replace the disk."
        ));
    }
    let groups = output::count(u64::from(brick.stale_groups.saturating_sub(brick.joining_groups)), "group");
    (brick.stale_groups > brick.joining_groups).then(|| {
        format!(
            "{id} ({at}) is up but has not yet rejoined {groups}, which are served without it. It catches up by itself."
        )
    })
}

fn slow_problem(brick: &BrickEntry, slow: &SlowEntry) -> String {
    let (id, at, why) = (brick.id, &brick.status.address, &slow.why);
    if !slow.is_out {
        let group = slow.needed_by.map_or("a group".to_owned(), |group| group.to_string());
        return format!(
            "{id} ({at}) is slow and is kept, and writes wait for it: without it {group} would lose data with one failure \
             more, or could not serve. What is known: {why}. Check its disk, its load and its network, or run `brickwork \
             brick replace {id}`."
        );
    }
    let before = match slow.relapses {
        0 => String::new(),
        1 => ", for the second time".to_owned(),
        2 => ", for the third time".to_owned(),
        times => format!(", for the {}th time", times + 1),
    };
    let well = slow.well_ms.map_or_else(String::new, |ms| format!("; it has been for {}", ago(ms)));
    format!(
        "{id} ({at}) was too slow and is left out{before}: {why}. It returns by itself once it has been well for {} s{well}. Check \
         its disk, its load and its network.",
        slow.hold_s
    )
}

fn silent(status: &ClusterStatus, brick: &BrickEntry) -> String {
    let (id, at) = (brick.id, &brick.status.address);
    let since =
        brick.silent_ms.map_or("since the directory started".to_owned(), |ms| format!("for {}", ago(ms)));
    let after = Period { seconds: status.care.rebuild_after_s };
    let then = match brick.groups {
        0 => String::new(),
        _ => format!(" Its blocks are rebuilt on other bricks when it has been away for {after}."),
    };
    format!(
        "{id} ({at}) has been silent {since}. Check that its machine and its `brickwork brick` process run, and that it \
         reaches the directory.{then}"
    )
}

fn unavailable(status: &ClusterStatus, names: &str, volume: &VolumeStatus) -> Option<String> {
    let is_up = |brick: &BrickId| status.bricks.iter().any(|entry| entry.id == *brick && entry.alive);
    let (mute, away): (Vec<BrickId>, Vec<BrickId>) = volume.waits_for.iter().copied().partition(is_up);
    let mut why = String::new();
    if !away.is_empty() {
        why +=
            &format!(" They wait for {}: bring it back, and no acknowledged write is lost.", listed(&away));
    }
    if !mute.is_empty() {
        let brick = mute[0];
        why += &format!(
            " They wait for {}, which is up and does not answer. If that lasts, its disk has lost what it had acknowledged: where \
             other bricks have the blocks, `brickwork brick replace {brick}` lets them go on.",
            listed(&mute)
        );
    }
    if why.is_empty() {
        why += " Their membership is being changed, which takes a moment.";
    }
    let (unavailable, groups) = (volume.unavailable, volume.groups);
    (unavailable > 0).then(|| format!("{names} cannot serve {unavailable} of {groups} groups now.{why}"))
}

/// Bricks by name.
fn listed(bricks: &[BrickId]) -> String {
    bricks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn lost_groups(names: &str, volume: &VolumeStatus) -> Option<String> {
    (volume.lost > 0).then(|| {
        let name = &volume.volume.name;
        format!(
            "{names} lost blocks of {} of {} groups: a disk that is gone held the only copy. Reads of these blocks fail with EIO until they \
             are written again. `brickwork volume lost {name}` lists them: restore them from a backup, then run \
             `brickwork volume lost {name} --forget`; or delete the volume.",
            volume.lost, volume.groups
        )
    })
}

fn degraded(names: &str, volume: &VolumeStatus) -> Option<String> {
    let more = match volume.can_lose {
        0 => "no further failure is survived".to_owned(),
        can_lose => format!("{} is survived", output::count(u64::from(can_lose), "more failure")),
    };
    let rebuilding = match volume.rebuilding {
        0 => String::new(),
        count => format!(" {} rebuilding: `brickwork rebuild` shows how far.", being(count)),
    };
    let covered = match volume.covered {
        0 => String::new(),
        count if count == volume.degraded => {
            " New writes go to as many bricks as the layout says.".to_owned()
        }
        count => format!(" In {count} of them new writes go to as many bricks as the layout says."),
    };
    (volume.unavailable == 0 && volume.degraded > 0).then(|| {
        format!(
            "{names}: {} of {} groups are degraded and are served; {more}.{covered}{rebuilding}",
            volume.degraded, volume.groups
        )
    })
}

fn being(count: u32) -> String {
    if count == 1 { "1 is".to_owned() } else { format!("{count} are") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{brick_state, has_lost, is_redundant, status_json, volume_state};
    use base::{GroupId, ViewNumber, VolumeId};
    use proptest::prelude::*;
    use wire::{BrickStatus, CatchUp, LostBlocks, Space, VolumeInfo};

    fn brick(id: u32) -> BrickEntry {
        let status = BrickStatus {
            address: "10.0.0.3:7003".into(),
            space: Space { capacity_bytes: 100 << 30, used_bytes: 10 << 30, fullest_percent: 10 },
            ..BrickStatus::default()
        };
        BrickEntry {
            id: BrickId(id),
            alive: true,
            silent_ms: Some(4),
            groups: 2,
            stale_groups: 0,
            joining_groups: 0,
            evicted: false,
            slow: None,
            status,
            version: 1,
            stand_in_groups: 0,
            caught_up_percent: None,
        }
    }

    fn volume(id: u64, name: &str) -> VolumeStatus {
        let volume = VolumeInfo {
            family: VolumeId(1),
            is_snapshot: name.contains('@'),
            ..VolumeInfo::new(VolumeId(id), name, 1 << 30, "raid1x3")
        };
        VolumeStatus {
            volume,
            groups: 4,
            degraded: 0,
            unavailable: 0,
            can_lose: 2,
            rebuilding: 0,
            covered: 0,
            unplaced: 0,
            waits_for: Vec::new(),
            lost: 0,
        }
    }

    fn cluster() -> ClusterStatus {
        let gateway = wire::GatewayStatus {
            id: base::GatewayId(7),
            address: "g".into(),
            silent_ms: 3,
            beside: None,
            name: "gateway-1".into(),
            opened: Vec::new(),
        };
        ClusterStatus {
            bricks: vec![brick(3), brick(4)],
            gateways: vec![gateway],
            volumes: vec![volume(1, "first"), volume(2, "first@monday"), volume(3, "copy")],
            version: 1,
            care: wire::Care::default(),
            warnings: Vec::new(),
            store: None,
            next: None,
            counts: None,
        }
    }

    fn told(status: &ClusterStatus) -> String {
        problems(status).join("\n")
    }

    #[test]
    fn each_trouble_is_told_with_its_place_and_its_remedy() {
        let mut status = cluster();
        assert_eq!(told(&status), "");
        status.gateways.clear();
        assert!(told(&status).contains("start `brickwork gateway`"));
        (status.bricks[0].alive, status.bricks[0].silent_ms) = (false, Some(12_000));
        let silent = told(&status);
        assert!(silent.contains("brick-3 (10.0.0.3:7003) has been silent for 12 s"), "{silent}");
        assert!(silent.contains("rebuilt on other bricks when it has been away for 10m"), "{silent}");
        status.warnings.push("As the directory says.".into());
        assert!(told(&status).ends_with("As the directory says."));
        assert_eq!(status_json(&status)["healthy"], serde_json::json!(false));
    }

    #[test]
    fn what_is_wrong_with_a_family_is_told_once() {
        let mut status = cluster();
        for volume in &mut status.volumes {
            (volume.degraded, volume.can_lose, volume.rebuilding, volume.unplaced) = (2, 0, 1, 1);
        }
        let told = told(&status);
        assert_eq!(told.matches("degraded").count(), 1, "{told}");
        assert!(told.contains("Volumes 'first' and 'copy': 2 of 4 groups are degraded"), "{told}");
        assert!(told.contains("no further failure is survived. 1 is rebuilding"), "{told}");
        assert_eq!(volume_state(&status.volumes[0]), "degraded 2/4, rebuilding 1");
        for (covered, expected) in [
            (2, "survived. New writes go to as many bricks as the layout says."),
            (1, "In 1 of them new writes go to as many bricks as the layout says."),
        ] {
            status.volumes.iter_mut().for_each(|volume| volume.covered = covered);
            assert!(super::problems(&status).join("\n").contains(expected), "{:?}", super::problems(&status));
        }
        assert!(!is_redundant(&status));
    }

    /// `status` said "bring the bricks back" while all were up: a disk that lied about its syncs had lost the record of a group.
    #[test]
    fn who_a_volume_waits_for_is_named_with_whether_it_is_up() {
        let mut status = cluster();
        status.volumes.truncate(1);
        status.volumes[0].unavailable = 2;
        assert!(
            told(&status)
                .contains("2 of 4 groups now. Their membership is being changed, which takes a moment.")
        );
        status.volumes[0].waits_for = vec![BrickId(3), BrickId(4)];
        status.bricks[1].alive = false;
        let told = told(&status);
        assert!(told.contains("They wait for brick-4: bring it back"), "{told}");
        assert!(told.contains("They wait for brick-3, which is up and does not answer."), "{told}");
        assert!(told.contains("`brickwork brick replace brick-3`"), "{told}");
    }

    #[test]
    fn rot_is_told_until_it_is_repaired() {
        let mut status = cluster();
        status.bricks[0].status.unreadable_blocks = 2;
        assert!(told(&status).contains("`brickwork scrub --wait` repairs the blocks"));
        status.bricks[0].status.rot.repaired_blocks = 1;
        assert_eq!(told(&status), "");
        // A block that was overwritten needs no repair: a scrub that finds nothing shows that there is none left.
        status.bricks[0].status.rot.repaired_blocks = 0;
        status.bricks[0].status.scrub.settled_blocks = 2;
        assert_eq!(told(&status), "");
        status.bricks[0].status.unreadable_blocks = 3;
        assert!(told(&status).contains("has repaired none yet"), "found after that scrub");
    }

    #[test]
    fn a_volume_that_lost_a_disk_is_not_healthy() {
        let mut status = cluster();
        for volume in &mut status.volumes {
            volume.lost = 2;
        }
        let told = told(&status);
        assert_eq!(told.matches("lost blocks of 2 of 4 groups:").count(), 1, "{told}");
        assert!(told.contains("`brickwork volume lost first` lists them"), "{told}");
        // Nothing is to be waited for, and that does not mean that all is there.
        assert!(is_redundant(&status) && has_lost(&status));
        assert_eq!(volume_state(&status.volumes[0]), "lost blocks 2/4");
        assert_eq!(status_json(&status)["healthy"], serde_json::json!(false));
    }

    #[test]
    fn bricks_say_what_they_are_at() {
        let mut status = cluster();
        let brick = &mut status.bricks[0];
        assert_eq!(brick_state(brick), "serving");
        brick.joining_groups = 1;
        assert_eq!(brick_state(brick), "catching up");
        let (group, number) = (GroupId(1), ViewNumber(4));
        let catch_up =
            CatchUp { group, number, compared_blocks: 30, total_blocks: 40, fetched_bytes: 0, done: false };
        brick.status.groups.catching_up.push(catch_up);
        assert_eq!(brick_state(brick), "catching up 75%");
        (brick.alive, brick.evicted) = (false, true);
        assert_eq!(brick_state(brick), "evicted, silent");
    }

    #[test]
    fn a_slow_brick_says_why_and_when_it_returns() {
        let mut status = cluster();
        let slow = SlowEntry {
            is_out: true,
            since_ms: 90_000,
            why: "its writes take 44.1 ms".into(),
            relapses: 0,
            hold_s: 10,
            well_ms: None,
            needed_by: None,
        };
        status.bricks[1].slow = Some(slow.clone());
        status.bricks[1].stale_groups = 2;
        assert_eq!(crate::view::brick_state_since(&status.bricks[1]), "slow, left out 90 s");
        let told_first = told(&status);
        assert!(told_first.contains("left out: its writes take 44.1 ms. It returns"), "{told_first}");
        assert!(told_first.contains("well for 10 s. Check"), "{told_first}");
        let again = SlowEntry { relapses: 2, hold_s: 40, well_ms: Some(12_000), ..slow.clone() };
        status.bricks[1].slow = Some(again);
        assert!(told(&status).contains("left out, for the third time"), "{}", told(&status));
        assert!(told(&status).contains("well for 40 s; it has been for 12 s."));
        status.bricks[1].slow = Some(SlowEntry { is_out: false, ..slow });
        status.bricks[1].stale_groups = 0;
        assert_eq!(brick_state(&status.bricks[1]), "serving, slow");
        assert!(
            told(&status).contains("is slow and is kept, and writes wait for it: without it a group would")
        );
        let needed_by = Some(GroupId(5));
        status.bricks[1].slow.iter_mut().for_each(|slow| slow.needed_by = needed_by);
        assert!(told(&status).contains("without it group-5 would lose data with one failure more"));
    }

    #[test]
    fn gateways_are_named_with_what_is_open_there_and_whether_they_are_silent() {
        let mut status = cluster();
        let opened = wire::OpenCount { volume: VolumeId(1), users: 2 };
        status.gateways[0].opened.push(opened);
        let users = crate::view::users_of(&status, VolumeId(1));
        assert_eq!((users.len(), users[0].1, users[0].0.name.as_str()), (1, 2, "gateway-1"));
        let places = crate::view::open_at(&users).expect("it is open");
        assert_eq!(places, "gateway-1 (g) by 2 clients");
        let none = crate::view::users_of(&status, VolumeId(3));
        assert_eq!((none.len(), crate::view::open_at(&none)), (0, None));
        let gateway = &mut status.gateways[0];
        assert_eq!(crate::view::gateway_heard(gateway), "heard 3 ms ago");
        gateway.silent_ms = 7_400;
        assert_eq!(crate::view::gateway_heard(gateway), "silent for 7 s");
        assert_eq!(crate::view::gateway_place(gateway), "gateway-1 (g)");
        assert_eq!(status_json(&status)["gateways"][0]["open"][0]["clients"], 2);
    }

    #[test]
    fn a_store_that_fails_is_told_with_its_reason() {
        let mut status = cluster();
        let why = "No space left on device (os error 28)".to_owned();
        status.store = Some(StoreFailure { why, since_ms: 90_000, tries: 80, waiting: 3 });
        let told = told(&status);
        assert!(told.contains("store changes for 90 s: No space left on device (os error 28). V"), "{told}");
        let json = status_json(&status);
        assert_eq!((&json["healthy"], &json["store"]["failing"]), (&false.into(), &true.into()));
        assert_eq!(json["store"]["tries"], 80);
    }

    #[test]
    fn lost_bytes_are_named_by_volume_and_place_once() {
        let mut status = cluster();
        let lost = |volume, offset, length| LostBlocks { volume: VolumeId(volume), offset, length };
        status.bricks[0].status.rot.lost = vec![lost(1, 8192, 4096), lost(9, 0, 4096)];
        status.bricks[1].status.rot.lost = vec![lost(1, 4096, 4096), lost(1, 8192, 4096)];
        let told = told(&status);
        assert!(told.contains("volume 'first', bytes 4096 to 12287 (8 KiB)"), "{told}");
        assert!(told.contains("volume 'volume-9', bytes 0 to 4095"), "a branch that has no name: {told}");
        assert_eq!(told.matches("Lost beyond repair").count(), 2, "{told}");
    }

    proptest! {
        /// Whatever bricks report, every byte of it is told, and no byte twice.
        #[test]
        fn lost_bytes_are_all_told(blocks in proptest::collection::vec((1u64..3, 0u64..20, 1u64..4, 0usize..2), 0..20)) {
            let mut status = cluster();
            let mut expected = std::collections::BTreeSet::new();
            for (volume, block, count, brick) in blocks {
                let (offset, length) = (block * 4096, count * 4096);
                status.bricks[brick].status.rot.lost.push(LostBlocks { volume: VolumeId(volume), offset, length });
                expected.extend((block..block + count).map(|block| (volume, block)));
            }
            let mut found = Vec::new();
            for range in crate::view::lost_ranges(&status) {
                let volume = if range.volume == "first" { 1 } else { 2 };
                found.extend((range.offset / 4096..(range.offset + range.length) / 4096).map(|b| (volume, b)));
            }
            prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        }
    }
}
