//! Every drive of the library is read, and its addresses are laid out soundly.

use base::{Mechanics, Time};
use model::drive::{Access, Drive, DriveModel, DriveOptions, Entry, library};
use proptest::prelude::*;
use std::sync::{Arc, OnceLock};

fn drives() -> &'static [Arc<DriveModel>] {
    static DRIVES: OnceLock<Vec<Arc<DriveModel>>> = OnceLock::new();
    let parse = |entry: &Entry| Arc::new(DriveModel::parse(entry.id, entry.text).expect(entry.id));
    DRIVES.get_or_init(|| library().iter().map(parse).collect())
}

#[test]
fn no_two_addresses_share_a_place() {
    for model in drives().iter().filter(|model| model.revolution_ns().is_some()) {
        let step = (model.capacity_sectors() / 300).max(1);
        for start in (0..model.capacity_sectors() - 600).step_by(step as usize) {
            let mut places: Vec<_> = (start..start + 600)
                .map(|sector| model.place(sector).expect("a disk"))
                .map(|place| (place.cylinder, place.surface, place.sector))
                .collect();
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len(), 600, "{} at {start}", model.name());
        }
    }
}

/// Switches of the head are left out of the mean, and random places are more often on long tracks.
#[test]
fn the_mean_access_is_what_reads_at_random_places_take() {
    const SECTORS: u32 = 64;
    for model in drives() {
        let (mut rng, mut drive) =
            (base::Rng::with_seed(7), Drive::with_options(model.clone(), DriveOptions::MECHANICS));
        let (mut now, mut positioning_ns, mut transfer_ns) = (Time::ZERO, 0, 0);
        for _ in 0..2000 {
            now.0 += rng.u64(0..20_000_000);
            let sector = rng.u64(0..model.capacity_sectors() - u64::from(SECTORS));
            let service = drive.serve(now, Access { sector, count: SECTORS, is_write: false });
            positioning_ns += service.seek_ns + service.rotation_ns;
            transfer_ns += service.transfer_ns;
            now = service.done;
        }
        let mean = model.mean_access();
        let expected_ns = mean.bytes_per_second.map_or(0.0, |rate| f64::from(SECTORS) * 512.0 / rate * 1e9);
        let near =
            |seen: u64, expected: f64, part: f64| (seen as f64 / 2000.0 - expected).abs() <= expected * part;
        assert!(
            near(positioning_ns, mean.read_ns as f64, 0.15),
            "{}: {positioning_ns} {mean:?}",
            model.name()
        );
        assert!(near(transfer_ns, expected_ns, 0.1), "{}: {transfer_ns} {mean:?}", model.name());
    }
}

proptest! {
    /// The parts add up, nothing ends before it begins, and a predicted wait is what is then seen.
    #[test]
    fn predictions_come_true(
        seed in any::<u64>(),
        accesses in prop::collection::vec((0.0f64..1.0, 1u32..300, any::<bool>(), 0u64..20_000_000), 1..30),
    ) {
        let drives = drives();
        let model = &drives[(seed % drives.len() as u64) as usize];
        for options in [DriveOptions::MECHANICS, DriveOptions::UNCACHED] {
            let options = DriveOptions { zero_latency: false, ..options };
            let mut drive = Drive::with_options(model.clone(), options);
            let mut now = Time::ZERO;
            for &(part, count, is_write, pause_ns) in &accesses {
                now.0 += pause_ns;
                let sector = ((model.capacity_sectors() - u64::from(count)) as f64 * part) as u64;
                let to = drive.position_of(sector, is_write);
                let (predicted_ns, rotation_ns) = (drive.positioning_ns(now, &to), drive.rotation_ns(now, &to));
                let floor_ns = drive.seek_floor_ns(drive.cylinder().abs_diff(to.cylinder));
                prop_assert!(floor_ns + rotation_ns <= predicted_ns);
                let service = drive.serve(now, Access { sector, count, is_write });
                let parts_ns = service.overhead_ns + service.seek_ns + service.rotation_ns + service.transfer_ns;
                prop_assert_eq!(now.0 + parts_ns + service.bus_ns, service.done.0);
                prop_assert!(predicted_ns + service.transfer_ns <= service.done.0 - now.0);
                now = service.done;
            }
        }
    }

    /// A head that comes down among the sectors of an access has them all a turn later, and is never later than one that
    /// waits for the first.
    #[test]
    fn zero_latency_is_never_slower(
        at_ns in 0u64..10_000_000_000,
        sector in 0u64..17_000_000,
        count in 1u32..334,
        is_write: bool,
    ) {
        static MODEL: OnceLock<Arc<DriveModel>> = OnceLock::new();
        let model = MODEL.get_or_init(|| {
            let text = model::drive::find("quantum-atlas-10k").expect("it is in the library").text;
            let text = text.replacen(
                "[controller]",
                "[controller]\nread_watermark = 1.0\nzero_latency_read = true\nzero_latency_write = true",
                1,
            );
            Arc::new(DriveModel::parse("zero-latency", &text).expect("nothing is wrong with it"))
        });
        let access = Access { sector, count, is_write };
        let serve = |options| Drive::with_options(model.clone(), options).serve(Time(at_ns), access);
        let first_first = serve(DriveOptions::MECHANICS);
        let any_first = serve(DriveOptions { zero_latency: true, ..DriveOptions::MECHANICS });
        prop_assert!(any_first.done <= first_first.done);
        // Also over a bus that waits until all of it has passed the head.
        let options = DriveOptions { zero_latency: true, ..DriveOptions::UNCACHED };
        prop_assert!(serve(options).done <= serve(DriveOptions::UNCACHED).done);
        let track = |sector| model.place(sector).map(|place| (place.cylinder, place.surface));
        if track(sector) == track(sector + u64::from(count) - 1) {
            let turn_ns = model.revolution_ns().expect("a disk");
            let sector_ns = turn_ns / u64::from(model.place(sector).expect("a disk").sectors_per_track) + 1;
            prop_assert!(any_first.rotation_ns + any_first.transfer_ns <= turn_ns + sector_ns);
        }
    }
}
