//! The directory's answers, for programs (JSON) and for people (words).

use crate::config::Bytes;
use crate::output;
use base::BLOCK_U64;
use serde_json::{Value, json};
use wire::directory::{BrickEntry, VolumeStatus};
use wire::{ClusterStatus, GroupView, VolumeInfo, VolumeMap};

/// A volume for programs.
pub fn volume_json(volume: &VolumeInfo) -> Value {
    json!({
        "id": volume.id.0, "name": volume.name, "size_bytes": volume.size_bytes, "layout": volume.layout,
        "stripe_unit_bytes": u64::from(volume.stripe_unit_blocks) * BLOCK_U64,
        "column_bytes": u64::from(volume.column_blocks) * BLOCK_U64, "read_only": volume.read_only,
    })
}

/// A volume and its groups for programs.
pub fn map_json(map: &VolumeMap) -> Value {
    let mut value = volume_json(&map.volume);
    value["groups"] = map.groups.iter().map(group_json).collect();
    value
}

/// The cluster for programs.
pub fn status_json(status: &ClusterStatus) -> Value {
    let bricks: Vec<Value> = status.bricks.iter().map(brick_json).collect();
    let gateways: Vec<Value> = status
        .gateways
        .iter()
        .map(|gateway| json!({ "id": gateway.id.0, "address": gateway.address, "silent_ms": gateway.silent_ms }))
        .collect();
    let volumes: Vec<Value> = status.volumes.iter().map(volume_status_json).collect();
    json!({
        "healthy": problems(status).is_empty(), "problems": problems(status), "version": status.version,
        "bricks": bricks, "gateways": gateways, "volumes": volumes,
    })
}

/// What an operator should know and do, a sentence each; nothing when all is well.
pub fn problems(status: &ClusterStatus) -> Vec<String> {
    let mut problems = Vec::new();
    if status.bricks.is_empty() {
        problems
            .push("There is no brick yet: `brickwork brick init` on a storage server makes one.".to_owned());
    }
    problems.extend(status.bricks.iter().filter_map(brick_problem));
    problems.extend(status.volumes.iter().filter_map(volume_problem));
    if status.gateways.is_empty() && !status.volumes.is_empty() {
        problems.push(
            "No gateway was heard of lately, so nobody serves the volumes: start `brickwork gateway`."
                .to_owned(),
        );
    }
    problems
}

/// How a brick is, in a word or two.
pub fn brick_state(brick: &BrickEntry) -> String {
    match (brick.status.failed.is_some(), brick.alive, brick.stale_groups) {
        (true, ..) => "disk failed".to_owned(),
        (_, false, _) => "away".to_owned(),
        (_, true, 0) => "up".to_owned(),
        (_, true, stale) => format!("up, behind in {stale}"),
    }
}

/// How a volume is, in a word or two.
pub fn volume_state(volume: &VolumeStatus) -> String {
    match (volume.unavailable, volume.degraded, volume.can_lose) {
        (0, 0, _) => "healthy".to_owned(),
        (0, degraded, can_lose) => format!("degraded {degraded}/{}, can lose {can_lose}", volume.groups),
        (unavailable, ..) => format!("unavailable {unavailable}/{}", volume.groups),
    }
}

/// Milliseconds as a person says them.
pub fn ago(silent_ms: u64) -> String {
    match silent_ms / 1000 {
        0 => format!("{silent_ms} ms"),
        seconds @ 1..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

/// Bytes used of a capacity.
pub fn usage(used: u64, capacity: u64) -> String {
    let percent = (u128::from(used) * 100).checked_div(u128::from(capacity)).unwrap_or(0);
    format!("{} of {} ({percent}%)", Bytes(used), Bytes(capacity))
}

fn brick_problem(brick: &BrickEntry) -> Option<String> {
    let (id, at) = (brick.id, &brick.status.address);
    if let Some(why) = &brick.status.failed {
        return Some(format!(
            "A disk of {id} ({at}) failed: {why}. Replace the disk; the volumes live on without it."
        ));
    }
    if !brick.alive {
        let since =
            brick.silent_ms.map_or("since the directory started".to_owned(), |ms| format!("for {}", ago(ms)));
        return Some(format!(
            "{id} ({at}) has been silent {since}. Look whether its machine and its `brickwork brick` process run, and whether \
             it reaches the directory."
        ));
    }
    if brick.status.unreadable_blocks > 0 {
        let blocks = output::count(brick.status.unreadable_blocks, "unreadable block");
        return Some(format!(
            "{id} ({at}) found {blocks}; reads are served from other bricks. Check its disks."
        ));
    }
    let groups = output::count(u64::from(brick.stale_groups), "group");
    (brick.stale_groups > 0)
        .then(|| format!("{id} ({at}) is up and was left out of {groups}, which go on without it."))
}

fn volume_problem(volume: &VolumeStatus) -> Option<String> {
    let (name, groups) = (&volume.volume.name, volume.groups);
    if volume.unavailable > 0 {
        return Some(format!(
            "Volume '{name}' cannot serve {} of its {groups} groups: too many bricks are away. No acknowledged write is given up: \
             bring the bricks back.",
            volume.unavailable
        ));
    }
    let more = match volume.can_lose {
        0 => "it survives no further failure: bring the missing brick back before anything else".to_owned(),
        can_lose => format!("it survives {}", output::count(u64::from(can_lose), "more failure")),
    };
    (volume.degraded > 0).then(|| {
        format!(
            "Volume '{name}' is degraded in {} of {groups} groups and serves on; {more}.",
            volume.degraded
        )
    })
}

fn brick_json(brick: &BrickEntry) -> Value {
    let labels: serde_json::Map<String, Value> =
        brick.status.labels.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    json!({
        "id": brick.id.0, "state": brick_state(brick), "alive": brick.alive, "silent_ms": brick.silent_ms,
        "groups": brick.groups, "stale_groups": brick.stale_groups, "address": brick.status.address,
        "capacity_bytes": brick.status.capacity_bytes, "used_bytes": brick.status.used_bytes,
        "in_doubt": brick.status.in_doubt, "unreadable_blocks": brick.status.unreadable_blocks,
        "labels": labels, "failed": brick.status.failed,
    })
}

fn volume_status_json(status: &VolumeStatus) -> Value {
    let mut value = volume_json(&status.volume);
    for (key, count) in [
        ("groups", status.groups),
        ("degraded", status.degraded),
        ("unavailable", status.unavailable),
        ("can_lose", u32::from(status.can_lose)),
    ] {
        value[key] = json!(count);
    }
    value["state"] = json!(volume_state(status));
    value
}

fn group_json(group: &GroupView) -> Value {
    json!({
        "group": group.group.0, "view": group.number.0,
        "members": group.members.iter().map(|brick| brick.0).collect::<Vec<_>>(),
        "current": group.current_bricks().map(|(_, brick)| brick.0).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{BrickId, VolumeId};
    use wire::directory::BrickStatus;

    fn cluster() -> ClusterStatus {
        let status = BrickStatus { address: "10.0.0.3:7003".into(), ..BrickStatus::default() };
        let brick = BrickEntry {
            id: BrickId(3),
            alive: true,
            silent_ms: Some(4),
            groups: 2,
            stale_groups: 0,
            joining_groups: 0,
            evicted: false,
            status,
        };
        let volume = VolumeInfo {
            id: VolumeId(1),
            name: "first".into(),
            size_bytes: 1 << 30,
            layout: "raid1x3".into(),
            stripe_unit_blocks: 16,
            column_blocks: 1024,
            read_only: false,
            family: VolumeId(1),
            origin: None,
            is_snapshot: false,
        };
        let volume = VolumeStatus {
            volume,
            groups: 4,
            degraded: 0,
            unavailable: 0,
            can_lose: 2,
            rebuilding: 0,
            unplaced: 0,
        };
        let (care, warnings) = (wire::Care::default(), Vec::new());
        ClusterStatus {
            bricks: vec![brick],
            gateways: Vec::new(),
            volumes: vec![volume],
            version: 1,
            care,
            warnings,
        }
    }

    #[test]
    fn each_trouble_is_told_with_its_place_and_its_remedy() {
        let mut status = cluster();
        assert!(problems(&status)[0].contains("start `brickwork gateway`"));
        status.volumes[0].degraded = 2;
        status.volumes[0].can_lose = 0;
        (status.bricks[0].alive, status.bricks[0].silent_ms) = (false, Some(12_000));
        let told = problems(&status).join("\n");
        assert!(told.contains("brick-3 (10.0.0.3:7003) has been silent for 12 s"), "{told}");
        assert!(
            told.contains("'first' is degraded in 2 of 4 groups") && told.contains("no further failure"),
            "{told}"
        );
        assert_eq!(status_json(&status)["healthy"], json!(false));
    }
}
