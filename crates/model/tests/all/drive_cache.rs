//! What an on-board cache changes, and what it must not.

use base::{Mechanics, Time};
use model::drive::{Access, Drive, DriveModel, DriveOptions, Service, find, library};
use proptest::prelude::*;
use std::sync::{Arc, OnceLock};

fn atlas_10k() -> Arc<DriveModel> {
    static MODEL: OnceLock<Arc<DriveModel>> = OnceLock::new();
    let parse = || {
        let entry = find("quantum-atlas-10k").expect("it is in the library");
        Arc::new(DriveModel::parse(entry.id, entry.text).expect("the library's files are right"))
    };
    MODEL.get_or_init(parse).clone()
}

fn read(sector: u64, count: u32) -> Access {
    Access { sector, count, is_write: false }
}

fn write(sector: u64, count: u32) -> Access {
    Access { sector, count, is_write: true }
}

fn took_ns(start: Time, service: &Service) -> u64 {
    service.done.0 - start.0
}

/// What a command for `count` sectors takes when the cache has them: 0.184 ms, and 0.099 ms a sector.
fn hit_ns(count: u64) -> u64 {
    184_000 + count * 99_000
}

#[test]
fn what_was_read_ahead_is_there_when_there_was_time_for_it() {
    for (pause_ns, is_there) in [(20_000_000, true), (0, false)] {
        let mut drive = Drive::with_options(atlas_10k(), DriveOptions::FULL);
        let first = drive.serve(Time::ZERO, read(1_000_000, 8));
        let start = Time(first.done.0 + pause_ns);
        let next = drive.serve(start, read(1_000_100, 8));
        assert_eq!(took_ns(start, &next) == hit_ns(8), is_there, "{next:?}");
        let far = Time(next.done.0 + 1_000_000);
        assert!(took_ns(far, &drive.serve(far, read(9_000_000, 8))) > hit_ns(8));
    }
}

#[test]
fn reading_on_where_the_drive_reads_on_needs_no_turn() {
    let mut drive = Drive::with_options(atlas_10k(), DriveOptions::FULL);
    let mut now = drive.serve(Time::ZERO, read(1_000_000, 64)).done;
    for run in 1..20 {
        let service = drive.serve(now, read(1_000_000 + run * 64, 64));
        // The bus is slower than the platter, so that all but the first come as fast as the bus takes them.
        assert!(took_ns(now, &service) <= hit_ns(64) + 100_000, "{run}: {service:?}");
        now = service.done;
    }
}

#[test]
fn a_write_is_acknowledged_early_and_the_arm_pays_later() {
    let mut drive = Drive::with_options(atlas_10k(), DriveOptions::FULL);
    let written = drive.serve(Time::ZERO, write(17_000_000, 8));
    assert_eq!(written.done, Time(186_000 + 8 * 99_000));
    let to = drive.position_of(1_000_000, false);
    assert!(drive.cylinder() > 9_000, "the arm goes where the write goes");
    let at_once = drive.positioning_ns(written.done, &to);
    let later = drive.positioning_ns(Time(written.done.0 + 100_000_000), &to);
    assert!(at_once > later, "a read waits for the write that is under way: {at_once} {later}");
    let service = drive.serve(written.done, read(1_000_000, 8));
    assert_eq!(took_ns(written.done, &service), at_once + service.transfer_ns + service.bus_ns);
    assert_eq!(
        took_ns(service.done, &drive.serve(service.done, read(17_000_000, 8))),
        hit_ns(8),
        "it is kept"
    );
}

#[test]
fn what_is_written_over_is_not_read_from_before() {
    let mut drive = Drive::with_options(atlas_10k(), DriveOptions::FULL);
    let mut now = drive.serve(Time::ZERO, read(1_000_000, 32)).done;
    assert_eq!(drive.clone().serve(now, read(1_000_000, 32)).transfer_ns, 0, "the cache has it");
    now = drive.serve(now, write(1_000_010, 4)).done;
    now.0 += 50_000_000;
    let service = drive.serve(now, read(1_000_000, 32));
    assert!(service.transfer_ns > 0, "it comes from the platter: {service:?}");
}

#[test]
fn half_as_fast_takes_twice_as_long() {
    let (own, slow) = (atlas_10k(), Arc::new(atlas_10k().slowed(200)));
    assert_eq!(slow.revolution_ns(), own.revolution_ns().map(|ns| ns * 2));
    for options in [DriveOptions::MECHANICS, DriveOptions::UNCACHED, DriveOptions::FULL] {
        let (mut own, mut slow) =
            (Drive::with_options(own.clone(), options), Drive::with_options(slow.clone(), options));
        let (mut now, mut slow_now) = (Time::ZERO, Time::ZERO);
        for step in 0..200u64 {
            let access = Access { sector: step * 7_919_317 % 17_000_000, count: 8, is_write: step % 3 == 0 };
            now = own.serve(now, access).done;
            slow_now = slow.serve(slow_now, access).done;
            assert!(slow_now.0.abs_diff(now.0 * 2) < 10 * (step + 1), "{options:?} {step}: {now} {slow_now}");
        }
    }
}

proptest! {
    /// With every drive and everything in force: the parts add up, and no access ends before its command and its data
    /// could be through.
    #[test]
    fn a_cached_access_is_never_impossibly_fast(
        drive in 0usize..100,
        accesses in prop::collection::vec((0u64..4, 0u64..900, 1u32..200, any::<bool>(), 0u64..30_000_000), 1..60),
    ) {
        static DRIVES: OnceLock<Vec<Arc<DriveModel>>> = OnceLock::new();
        let drives = DRIVES.get_or_init(|| {
            library().iter().map(|e| Arc::new(DriveModel::parse(e.id, e.text).expect(e.id))).collect()
        });
        let model = drives[drive % drives.len()].clone();
        let mut drive = Drive::with_options(model.clone(), DriveOptions::FULL);
        let mut now = Time::ZERO;
        // Close together at a few places, so that accesses meet what was cached, read ahead and written.
        for (place, offset, count, is_write, pause_ns) in accesses {
            now.0 += pause_ns;
            let sector = model.capacity_sectors() / 5 * place + offset;
            let to = drive.position_of(sector, is_write);
            prop_assert!(drive.positioning_ns(now, &to) >= drive.rotation_ns(now, &to));
            let service = drive.serve(now, Access { sector, count, is_write });
            let parts_ns = service.overhead_ns + service.seek_ns + service.rotation_ns + service.transfer_ns;
            prop_assert_eq!(now.0 + parts_ns + service.bus_ns, service.done.0);
            now = service.done;
        }
    }
}

/// A drive of the library, some of whose lines are others.
fn changed(id: &str, lines: &[(&str, &str)]) -> Arc<DriveModel> {
    let entry = find(id).expect("it is in the library");
    let text = lines.iter().fold(entry.text.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{id} says {from}");
        text.replace(from, to)
    });
    Arc::new(DriveModel::parse(entry.id, &text).expect("a drive"))
}

#[test]
fn a_read_crosses_the_bus_when_as_much_of_it_has_come_as_the_watermark_says() {
    let served = |watermark: &str| {
        let model = changed("hp-c3323a", &[("read_watermark = 1.0", watermark)]);
        Drive::with_options(model, DriveOptions::UNCACHED).serve(Time::ZERO, read(1_000_000, 16))
    };
    let [none, half, all] =
        ["read_watermark = 0.0", "read_watermark = 0.5", "read_watermark = 1.0"].map(served);
    let sector_ns = none.transfer_ns / 16;
    assert!((half.done.0 - none.done.0).abs_diff(7 * sector_ns) < 1000, "{none:?} {half:?}");
    assert!((all.done.0 - none.done.0).abs_diff(15 * sector_ns) < 1000, "{none:?} {all:?}");
}

#[test]
fn a_write_begins_when_its_data_keep_ahead_of_the_head() {
    let served = |setting: &str, sector| {
        let model = changed("hp-c3323a", &[("write_keeps_ahead = true", setting)]);
        let mut drive = Drive::with_options(model, DriveOptions::UNCACHED);
        let settled = drive.serve(Time::ZERO, write(0, 16)).done;
        drive.serve(settled, write(sector, 16))
    };
    let [at_once, ahead, late] = [
        "write_keeps_ahead = false",
        "write_keeps_ahead = true",
        "write_keeps_ahead = true\nwrite_disconnect_ms = 0.5",
    ];
    let of = |sector| [at_once, ahead, late].map(|setting| served(setting, sector));
    let [none, all, disconnected] = of(2_000_000);
    assert!(none.done == all.done && none.done == disconnected.done, "the arm is on its way for longer");
    let turn_ns = changed("hp-c3323a", &[]).revolution_ns().expect("it turns");
    let is_a_turn_later =
        |one: &Service, other: &Service| (other.done.0 - one.done.0).abs_diff(turn_ns) < 1000;
    // The head is there half a millisecond after the command. 16 sectors take 2.33 ms over the bus, and 15 of them 1.39 under the head.
    let [none, all, _] = of(53);
    assert!(is_a_turn_later(&none, &all), "{none:?} {all:?}");
    assert!(all.bus_ns > 0 && none.bus_ns == 0, "{none:?} {all:?}");
    // And here 1.16 ms after it.
    let [none, all, disconnected] = of(60);
    assert_eq!(none.done, all.done, "all of it comes in time");
    assert!(is_a_turn_later(&none, &disconnected), "{none:?} {disconnected:?}");
    let text = model::drive::find("hp-c2490a").expect("it is in the library").text;
    let text = text.replacen("[controller]", "[controller]\nwrite_disconnect_ms = 0.5", 1);
    let error = DriveModel::parse("mine", &text).expect_err("nothing waits for the data").to_string();
    assert!(error.contains("write_disconnect_ms") && error.contains("write_keeps_ahead"), "{error}");
}

#[test]
fn some_drives_read_on_once_a_read_follows_on_another() {
    let mut drive = Drive::with_options(changed("quantum-atlas-iii", &[]), DriveOptions::FULL);
    let mut now = Time::ZERO;
    let mut took = |sector| {
        let done = drive.serve(now, read(sector, 8)).done;
        let took_ns = done.0 - now.0;
        now = Time(done.0 + 40_000_000);
        took_ns
    };
    took(9_000_000);
    let hit_ns = 374_000 + 8 * 106_000;
    assert!(took(9_000_008) > hit_ns, "nothing was read on yet");
    assert_eq!(took(9_000_016), hit_ns);
    took(1_000_000);
    assert!(took(1_000_050) > hit_ns, "that one began somewhere else");
}

#[test]
fn reading_on_by_tracks_ends_with_the_track_until_a_run_has_crossed_one() {
    let model = changed("seagate-cheetah-9lp", &[]);
    let (first, last) = model.track(1_000_000).expect("it has tracks");
    let after = |reads: &[u64], then: u64| {
        let mut drive = Drive::with_options(model.clone(), DriveOptions::FULL);
        let mut now = Time::ZERO;
        for sector in reads {
            now = Time(drive.serve(now, read(*sector, 8)).done.0 + 40_000_000);
        }
        drive.serve(now, read(then, 8)).done.0 - now.0
    };
    let hit_ns = 66_000 + 8 * 105_000;
    assert_eq!(after(&[first], last - 7), hit_ns, "to the end of the track");
    assert!(after(&[first], last + 9) > hit_ns, "and no farther");
    assert_eq!(
        after(&[last - 15, last - 7, last + 1], last + 100),
        hit_ns,
        "the run has come from one to the next"
    );
}
