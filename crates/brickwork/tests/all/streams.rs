//! Streams as operators meet them, on a cluster of real processes.

use crate::common::{Site, content};
use std::time::{Duration, Instant};

fn stream(site: &Site, name: &str) -> serde_json::Value {
    let (all, _) = site.json("stream list");
    let found = all["streams"].as_array().expect("streams").iter().find(|stream| stream["name"] == name);
    found.unwrap_or_else(|| panic!("no stream {name}: {all}")).clone()
}

#[test]
fn streams_are_made_used_seen_and_deleted() {
    let site = Site::start(3);
    let list = site.text("stream list");
    assert!(list.contains("default") && list.contains("served as they come"), "{list}");
    let made =
        site.text("stream create gold --weight 400 --reservation 500iops --limit 9000units --latency 5ms");
    assert_eq!(
        made.trim(),
        "Stream 'gold' is made: weight 400, minimum 40, reservation 500iops, limit 1000iops, latency 5ms."
    );
    site.text("volume create db --size 16MiB --groups 1 --stream gold");
    site.text("volume create other --size 16MiB --groups 1");
    assert_eq!(stream(&site, "gold")["volumes"], serde_json::json!(["db"]));
    // Nobody knows yet what bricks can serve: the reservation is checked against none.
    let gold = stream(&site, "gold");
    assert_eq!(gold["reserved_on"], serde_json::json!({ "bricks": 3, "measured": 0 }));
    assert_eq!(gold["latency_us"], 5000);
    let list = site.text("stream list");
    assert!(list.contains("0 of 3") && list.contains("5ms"), "{list}");
    assert!(list.lines().all(|line| line.chars().count() <= 80), "{list}");
    let capacities = site.json("stream list").0["capacities"].clone();
    assert_eq!(capacities[2]["brick"], 3);
    assert!(capacities[2]["capacity_units_per_second"].is_null(), "{capacities}");
    site.text("stream set gold --latency none");
    assert!(stream(&site, "gold")["latency_us"].is_null());
    site.text("stream set gold --latency 20ms");
    site.text("stream set gold --weight 50 --limit none --reservation none");
    assert_eq!(
        (&stream(&site, "gold")["weight"], &stream(&site, "gold")["limit_units_per_second"]),
        (&50.into(), &0.into())
    );
    site.text("stream set maintenance --weight 20");
    site.text("stream places 8");

    // Bricks hear of it, and say what they serve.
    let mut volume = site.open("db");
    let end = Instant::now() + Duration::from_secs(20);
    let seen = loop {
        assert_eq!(volume.write(0, &content(1 << 20, 1)), 0);
        let (top, _) = site.json("stream top --once");
        let gold =
            top["streams"].as_array().expect("streams").iter().find(|stream| stream["stream"] == "gold");
        let gold = gold.expect("it is there").clone();
        if gold["units_per_second"].as_u64() > Some(0) && top["bricks_informed"] == 3 {
            break gold;
        }
        assert!(Instant::now() < end, "{top}");
    };
    assert!(seen["share"].as_f64() > Some(0.0), "{seen}");
    let top = site.text("stream top --once");
    assert!(top.trim_start().starts_with("STREAM") && top.contains("gold"), "{top}");
    assert!(top.lines().all(|line| line.chars().count() <= 80), "{top}");

    let refusal = site.refusal("stream delete gold");
    assert!(refusal.contains("db") && refusal.contains("--stream default"), "{refusal}");
    site.text("volume set db --stream default");
    site.text("stream delete gold");
    assert_eq!(site.json("stream list").0["streams"].as_array().map(Vec::len), Some(4));
    assert!(volume.read(0, 1 << 20) == Ok(content(1 << 20, 1)), "nothing is lost on the way");
}

#[test]
fn mistakes_about_streams_are_answered_with_what_would_be_right() {
    let site = Site::start(1);
    site.text("stream create gold --weight 300");
    for (arguments, hint) in [
        ("stream create gold", "exists already"),
        ("stream create Not/Allowed", "a-z 0-9"),
        ("stream create zero --weight 0", "1 to 1000000"),
        ("stream set gold --minimum 400", "the minimum of stream 'gold' is 400 and its weight 300"),
        ("stream set gold --reservation 10 --limit 9", "less than the 90"),
        ("stream set repair --limit 9", "only its weight"),
        ("stream set repair --latency 9ms", "only its weight"),
        ("stream set none --weight 9", "brickwork stream list"),
        ("stream delete default", "not deleted"),
        ("stream places 0", "1 to 4096"),
        ("volume create v --size 1MiB --layout raid0x1 --stream none", "no stream named 'none'"),
        ("volume create v --size 1MiB --layout raid0x1 --stream repair", "background work"),
        ("volume set none --stream gold", "no volume named 'none'"),
    ] {
        let refusal = site.refusal(arguments);
        assert!(refusal.contains(hint), "brickwork {arguments}: {refusal}");
    }
}
