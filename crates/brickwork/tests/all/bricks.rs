//! Bricks that go, come back, rot and are replaced; a directory that loses its disk: on clusters of real processes, by the
//! verbs of an operator.

use crate::common::{BINARY, Site, content, text};
use serde_json::{Value, json};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;

/// A cluster with a volume of which all is written.
fn site(bricks: u32, layout: &str) -> (Site, Vec<u8>) {
    let site = Site::start(bricks);
    site.text(&format!("volume create first --size 8MiB --layout {layout} --groups 2"));
    let written = content(8 * MIB, 1);
    assert_eq!(site.open("first").write(0, &written), 0);
    (site, written)
}

/// Far above what anything here takes; only a failure waits for so long.
const LIMIT: Duration = Duration::from_secs(60);

/// Waits until the directory says so of a brick.
fn wait_for_state(site: &Site, brick: u64, state: &str) {
    let limit = Instant::now() + LIMIT;
    while site.brick(brick)["state"] != state {
        assert!(Instant::now() < limit, "brick-{brick} is not {state}: {}", site.brick(brick));
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Waits until every brick has told the directory that it knows of all that is done now.
fn wait_until_known(site: &Site, bricks: u64) {
    let version = |of: &Value| of["version"].as_u64().expect("a version");
    let (status, _) = site.json("status");
    let start = Instant::now();
    for brick in 1..=bricks {
        while version(&site.brick(brick)) < version(&status) {
            assert!(start.elapsed() < LIMIT, "{} does not know of {status}", site.brick(brick));
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_brick_that_comes_back_catches_up_with_what_it_missed() {
    let (mut site, mut written) = site(3, "raid1x3");
    site.cluster.kill("brick-2").expect("it is killed");
    wait_for_state(&site, 2, "silent");
    let missed = content(MIB, 2);
    assert_eq!(site.open("first").write(0, &missed), 0);
    written[..MIB].copy_from_slice(&missed);
    let status = text(&site.run("status --check").stdout);
    assert!(status.contains("brick-2") && status.contains("degraded"), "{status}");
    let (state, code) = site.json("rebuild");
    assert_eq!((&state["redundant"], code), (&json!(false), 1), "{state}");

    site.cluster.start_again("brick-2").expect("it is started");
    let (state, code) = site.json("rebuild --wait --timeout 60s");
    assert_eq!((&state["redundant"], &state["done"], code), (&json!(true), &json!(true), 0), "{state}");
    wait_for_state(&site, 2, "serving");
    // Without the others, all that is read comes from it.
    for other in ["brick-1", "brick-3"] {
        site.cluster.kill(other).expect("it is killed");
    }
    assert!(site.open("first").read(0, 8 * MIB) == Ok(written), "it has all that was written");
}

/// Whoever was not there learns what happened; who follows sees it once, also where the directory was away meanwhile.
#[test]
fn what_happened_to_a_brick_is_told_afterwards_and_to_who_follows() {
    let (mut site, _) = site(3, "raid1x3");
    let newest = |site: &Site| site.json("events").0["newest"].as_u64().expect("a number");
    let before = newest(&site);
    let mut follower = Follower::start(&site, "events --follow --json --last 0");
    site.cluster.kill("brick-2").expect("it is killed");
    follower.wait_for(|events| events.iter().any(|event| event["kind"] == "left-out"));
    for daemon in ["directory", "brick-2"] {
        site.cluster.kill("directory").expect("it is killed");
        site.cluster.start_again("directory").expect("it is started");
        if daemon == "brick-2" {
            site.cluster.start_again(daemon).expect("it is started");
        }
    }
    site.text("rebuild --wait --timeout 60s");
    let last = newest(&site);
    let number = |event: &Value| event["number"].as_u64().expect("a number");
    let followed = follower.wait_for(|events| events.last().is_some_and(|event| number(event) >= last));
    let numbers: Vec<u64> = followed.iter().map(number).filter(|number| *number <= last).collect();
    assert_eq!(numbers, (before + 1..=last).collect::<Vec<_>>(), "{followed:?}");

    let lines = site.text("events --brick 2 --since 1h");
    let why = "is left out of 2 groups: the connection to it has ended, and nothing was heard of it for";
    let left = lines.lines().find(|line| line.contains(why));
    let left = left.unwrap_or_else(|| panic!("{lines}"));
    assert!(left[20..].starts_with(" ! brick-2  is left out"), "{left}");
    let order = ["is admitted", "is left out", "returns to", "has caught up"].map(|what| lines.find(what));
    assert!(order.is_sorted() && order[0].is_some(), "{lines}");
    assert!(!lines.contains("brick-1"), "{lines}");
    let (shown, _) = site.json("events --brick 2 --last 1");
    assert_eq!(shown["events"].as_array().map(Vec::len), Some(1), "{shown}");
    let nothing = site.text("events --brick 77");
    assert!(nothing.starts_with("No event matches. The directory remembers "), "{nothing}");
}

/// A verb that goes on, and what it has printed.
struct Follower {
    verb: std::process::Child,
    output: std::path::PathBuf,
}

impl Follower {
    fn start(site: &Site, arguments: &str) -> Follower {
        let output = site.dir.path().join("followed");
        let mut command = std::process::Command::new(BINARY);
        command.args(arguments.split_whitespace());
        command.env("BRICKWORK_CONFIG", site.dir.path().join("admin/client.toml"));
        command.stdout(std::fs::File::create(&output).expect("a file"));
        let verb = command.spawn().expect("the binary runs");
        Follower { verb, output }
    }

    /// Waits until what it has printed is so.
    fn wait_for(&mut self, is_so: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let limit = Instant::now() + LIMIT;
        loop {
            let printed = std::fs::read_to_string(&self.output).expect("its output");
            let values = printed.lines().map(serde_json::from_str).filter_map(Result::ok).collect::<Vec<_>>();
            if is_so(&values) {
                return values;
            }
            assert!(Instant::now() < limit, "it has printed {printed}");
            assert_eq!(self.verb.try_wait().expect("its end").map(|end| end.code()), None, "it goes on");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.verb.kill();
        let _ = self.verb.wait();
    }
}

#[test]
fn an_evicted_brick_is_rebuilt_onto_others_and_may_come_back_empty() {
    let (site, written) = site(4, "raid1x3");
    let member = (1..=4).find(|id| site.brick(*id)["groups"] != 0).expect("a brick has groups");
    assert!(site.refusal(&format!("brick evict {member}")).contains("--yes"));
    site.text(&format!("brick evict brick-{member} --yes"));
    assert_eq!(site.brick(member)["state"], "evicted");
    site.text("rebuild --wait --timeout 60s");
    assert_eq!(site.brick(member)["groups"], 0);
    let list = site.text("brick list");
    assert!(list.contains("evicted") && list.lines().all(|line| line.len() <= 80), "{list}");
    site.text(&format!("brick readmit {member}"));
    wait_for_state(&site, member, "serving");
    assert!(site.open("first").read(0, 8 * MIB) == Ok(written), "nothing was lost on the way");
}

#[test]
fn a_brick_is_not_evicted_when_nobody_else_has_its_blocks() {
    let (site, _) = site(3, "raid0x3");
    let refusal = site.refusal("brick evict 1 --yes");
    assert!(refusal.contains("cannot evict brick-1") && refusal.contains("no other brick"), "{refusal}");
    assert_eq!(site.brick(1)["state"], "serving");
}

#[test]
fn an_exchanged_disk_is_formatted_and_filled_again() {
    let (mut site, written) = site(3, "raid1x3");
    site.cluster.kill("brick-3").expect("it is killed");
    wait_for_state(&site, 3, "silent");
    let config = site.dir.path().join("brick-3/brick.toml");
    let refusal = site.refusal(&format!("brick format --config {}", config.display()));
    assert!(refusal.contains("none of the disks") && refusal.contains("is blank"), "{refusal}");
    std::fs::remove_file(site.disk(3)).expect("the disk breaks");
    let formatted = site.text(&format!("brick format --config {}", config.display()));
    assert!(formatted.contains("for brick-3"), "{formatted}");
    site.cluster.start_again("brick-3").expect("it is started");
    site.text("rebuild --wait --timeout 60s");
    for other in ["brick-1", "brick-2"] {
        site.cluster.kill(other).expect("it is killed");
    }
    assert!(site.open("first").read(0, 8 * MIB) == Ok(written), "the new disk has it all");
}

#[test]
fn a_scrub_finds_rot_and_repairs_it() {
    let (site, written) = site(3, "raid1x3");
    rot(&site, 1, &written[5 * MIB..5 * MIB + 4096]);
    let (found, code) = site.json("scrub --wait --timeout 60s");
    assert_eq!((code, &found["clean"]), (0, &json!(true)), "{found}");
    assert!(found["repaired_blocks"].as_u64() >= Some(1), "{found}");
    let (again, _) = site.json("scrub --wait --timeout 60s");
    assert_eq!((&again["found_blocks"], &again["clean"]), (&json!(0), &json!(true)), "{again}");
    let status = site.text("status --check");
    assert!(status.contains("All is well"), "{status}");
    assert!(site.open("first").read(0, 8 * MIB) == Ok(written), "every byte is right");
}

#[test]
fn what_no_brick_can_make_out_is_lost_and_named() {
    let (site, written) = site(3, "raid1x3");
    let block = 6 * MIB..6 * MIB + 4096;
    (1..=3).for_each(|brick| rot(&site, brick, &written[block.clone()]));
    let eio = 5;
    let mut client = site.open("first");
    assert_eq!(client.read(block.start as u64, 4096).map(drop), Err(eio), "before anybody has looked");
    let (found, code) = site.json("scrub --wait --timeout 60s");
    let expected = json!([{ "volume": "first", "offset": block.start, "length": 4096 }]);
    assert_eq!((&found["lost"], code), (&expected, 1), "{found}");
    let status = site.text("status");
    assert!(status.contains("volume 'first', bytes 6291456"), "{status}");
    assert_eq!(client.read(block.start as u64, 4096).map(drop), Err(eio), "and when it is known");
    assert!(client.read(0, block.start) == Ok(written[..block.start].to_vec()), "all before it is there");

    // Whoever writes it mends it.
    assert_eq!(client.write(block.start as u64, &written[block]), 0);
    let (found, code) = site.json("scrub --wait --timeout 60s");
    assert_eq!((&found["lost_blocks"], code), (&json!(0), 0), "{found}");
    assert!(site.open("first").read(0, 8 * MIB) == Ok(written), "all of it is there again");
}

/// Flips a bit wherever a brick's disk holds this block.
fn rot(site: &Site, brick: u64, block: &[u8]) {
    let disk = std::fs::File::options().read(true).write(true).open(site.disk(brick)).expect("the disk");
    let all = std::fs::read(site.disk(brick)).expect("its content");
    let places = (0..all.len() - block.len()).step_by(512).filter(|&at| &all[at..at + block.len()] == block);
    let places: Vec<usize> = places.collect();
    assert!(!places.is_empty(), "brick-{brick} holds the block");
    for at in places {
        disk.write_all_at(&[all[at + 100] ^ 1], at as u64 + 100).expect("it is overwritten");
    }
}

#[test]
fn a_lost_directory_is_made_anew_from_what_the_bricks_know() {
    let (mut site, written) = site(3, "raid1x3");
    site.text("volume snapshot first monday");
    site.text("volume create second --size 1MiB --layout raid1x3 --groups 1");
    wait_until_known(&site, 3);
    let dir = site.dir.path().display().to_string();
    let refusal = site.refusal(&format!("directory rebuild --dir {dir}"));
    assert!(refusal.contains("directory.db") && refusal.contains("is there"), "{refusal}");
    site.cluster.kill("directory").expect("it is killed");
    std::fs::remove_file(site.dir.path().join("directory.db")).expect("the disk breaks");

    // Two of three copies cannot know what the third did without them.
    site.cluster.kill("brick-3").expect("it is killed");
    let (refused, code) = site.json(&format!("directory rebuild --dir {dir} --bricks 2"));
    assert_eq!((code, &refused["written"], &refused["missing"]), (1, &json!(null), &json!([3])), "{refused}");
    assert!(refused["objections"].to_string().contains("brick-3 may have continued"), "{refused}");
    assert!(!site.dir.path().join("directory.db").exists(), "nothing is written");

    site.cluster.start_again("brick-3").expect("it is started");
    let (rebuilt, code) = site.json(&format!("directory rebuild --dir {dir} --bricks 3"));
    assert_eq!((code, &rebuilt["answered"]), (0, &json!([1, 2, 3])), "{rebuilt}");
    site.cluster.start_again("directory").expect("it is started");
    site.cluster.wait_ready().expect("it serves");
    site.text("rebuild --wait --timeout 60s");
    let list = site.text("volume list");
    assert!(list.contains("second") && list.contains("@monday"), "{list}");
    for export in ["first", "first@monday"] {
        assert!(site.open(export).read(0, 8 * MIB) == Ok(written.clone()), "{export} is what it was");
    }
}

#[test]
fn a_volume_that_was_deleted_while_a_brick_was_away_is_left_out_when_asked_for() {
    let (mut site, _) = site(3, "raid1x3");
    site.text("volume snapshot first monday");
    wait_until_known(&site, 3);
    site.cluster.kill("directory").expect("it is killed");
    let store = site.dir.path().join("directory.db");
    std::fs::remove_file(&store).expect("the disk breaks");
    site.cluster.kill("brick-3").expect("it is killed");
    let rebuild = format!("directory rebuild --dir {} --bricks 2", site.dir.path().display());
    let (refused, code) = site.json(&rebuild);
    assert!(code == 1 && refused["objections"].to_string().contains("--forget VOLUME"), "{refused}");

    let refusal = site.refusal(&format!("{rebuild} --forget first --forget frist"));
    assert!(refusal.contains("'frist'") && refusal.contains("first, first@monday"), "{refusal}");
    assert!(!store.exists(), "nothing is written");

    let (rebuilt, code) = site.json(&format!("{rebuild} --forget first"));
    assert_eq!((code, &rebuilt["volumes"]), (0, &json!([])), "{rebuilt}");
    assert_eq!(rebuilt["forgotten"], json!(["first", "first@monday"]), "{rebuilt}");
    assert!(store.exists(), "it is written");
}

/// What an operator meets when a brick goes for good: the log of the directory, what the commands promise, and the record's end.
#[test]
fn a_brick_that_is_gone_is_in_the_log_and_is_forgotten_when_nothing_needs_it() {
    let mut site = Site::start(3);
    site.text("volume create first --size 8MiB --layout raid1x2 --groups 2");
    site.cluster.kill("brick-3").expect("it is killed");
    wait_for_state(&site, 3, "silent");
    let member = site.refusal("brick forget brick-3 --yes");
    assert!(member.contains("brick-3 is a member of") || member.contains("may hold fragments"), "{member}");
    let warned = site.text("brick evict brick-3 --yes");
    assert!(warned.contains("brick-3 is evicted"), "{warned}");
    site.text("rebuild --wait --timeout 60s");
    let limit = Instant::now() + LIMIT;
    while site.brick(3)["groups"] != 0 {
        assert!(Instant::now() < limit, "it has groups: {}", site.brick(3));
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(site.text("brick forget brick-3 --yes").contains("brick-3 is forgotten"));
    assert!(!site.text("brick list").contains("brick-3"));
    let log = std::fs::read_to_string(site.dir.path().join("logs/directory.log")).expect("a log");
    for line in [
        "brick-3 is heard for the first time",
        "brick-3 is evicted: client-",
        "brick-3 is forgotten: client-",
    ] {
        assert!(log.contains(line), "no '{line}' in the directory's log: {log}");
    }
    // No third brick can take what one of the two others has.
    let promised = site.text("brick evict brick-1 --yes");
    assert!(
        promised.contains("Not all of it would be rebuilt: no other brick can take the place of brick-1"),
        "{promised}"
    );
    assert!(!promised.contains("Its blocks are rebuilt on other bricks"), "{promised}");
}

#[test]
fn who_has_a_volume_open_is_shown_and_asked_about_before_a_rollback() {
    let site = Site::start(3);
    site.text("volume create first --size 1MiB");
    site.text("volume snapshot first monday");
    assert!(site.text("volume show first").contains("No client has it open."));
    let client = site.open("first");
    let limit = Instant::now() + LIMIT;
    while !site.text("volume show first").contains("Open at gateway-1 (127.0.0.1:") {
        assert!(Instant::now() < limit, "{}", site.text("volume show first"));
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(site.json("volume show first").0["open"][0]["clients"], 1);
    let asked = site.refusal("volume rollback first@monday");
    assert!(asked.contains("it is open at gateway-1") && asked.contains("say --yes"), "{asked}");
    assert!(site.text("status").contains("gateway-1"));
    drop(client);
    while !site.text("volume show first").contains("No client has it open.") {
        assert!(Instant::now() < limit, "{}", site.text("volume show first"));
        std::thread::sleep(Duration::from_millis(100));
    }
}
