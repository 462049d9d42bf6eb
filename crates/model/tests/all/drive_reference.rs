//! Models of drives against DiskSim 4.0 as it was instrumented: address maps, seek times, and the service time of each
//! access.

use base::Time;
use model::drive::{Access, Drive, DriveModel, DriveOptions, find};
use std::sync::Arc;

fn model(id: &str) -> Arc<DriveModel> {
    let entry = find(id).expect("it is in the library");
    Arc::new(DriveModel::parse(id, entry.text).expect("the library's files are right"))
}

/// The lines of a file of reference data without its headings, cut at commas; `None`, said aloud, where it is absent.
fn rows(path: &str) -> Option<Vec<Vec<String>>> {
    let text = crate::shared::text(path)?;
    Some(text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect())
}

fn number<T: std::str::FromStr>(cell: &str) -> T {
    cell.parse().ok().expect("reference data hold numbers")
}

#[test]
fn address_maps_agree_exactly() {
    for (id, file) in
        [("quantum-atlas-10k", "quantum_atlas_10k"), ("seagate-cheetah-9lp", "seagate_cheetah_9lp")]
    {
        let Some(rows) = rows(&format!("data/disks/{file}_lbn_map.csv")) else { return };
        let model = model(id);
        for row in &rows {
            let place = model.place(number(&row[0])).expect("a disk");
            let found = [place.cylinder, place.surface, place.sector, place.sectors_per_track];
            assert_eq!(
                found,
                [1, 2, 3, 7].map(|column| number::<u32>(&row[column])),
                "{id}: sector {}",
                row[0]
            );
            let track = model.track(number(&row[0]));
            assert_eq!(
                track,
                Some((number(&row[5]), number(&row[6]))),
                "{id}: the track of sector {}",
                row[0]
            );
            let apart = (place.turn as f64 / 2f64.powi(64) - number::<f64>(&row[4])).abs();
            // The reference counts angles in whole numbers and is right to 10^-7 of a turn.
            assert!(apart.min(1.0 - apart) < 2e-7, "{id}: sector {} is {apart} turns apart", row[0]);
        }
        assert!(rows.len() > 4_000);
    }
}

#[test]
fn seek_times_agree_at_every_distance() {
    let drives = [
        ("quantum-atlas-10k", "quantum_atlas_10k"),
        ("seagate-cheetah-9lp", "seagate_cheetah_9lp"),
        ("seagate-cheetah-4lp", "seagate_cheetah_4lp"),
        ("hp-c3323a", "hp_c3323a"),
    ];
    for (id, file) in drives {
        let Some(rows) = rows(&format!("data/disks/{file}_seek_full.csv")) else { return };
        let model = model(id);
        for row in &rows {
            let (read_ns, write_ns) = model.seek_ns(number(&row[0])).expect("a cylinder");
            assert!(read_ns.abs_diff(number::<u64>(&row[1]) / 1_000) <= 1, "{id}: {row:?}, {read_ns}");
            assert!(write_ns.abs_diff(number::<u64>(&row[2]) / 1_000) <= 1, "{id}: {row:?}, {write_ns}");
        }
    }
}

#[test]
fn service_times_agree_access_by_access() {
    let logs = [
        ("mech_r100", DriveOptions::MECHANICS),
        ("mech_r67", DriveOptions::MECHANICS),
        ("nocache_r100", DriveOptions::UNCACHED),
        ("nocache_r67", DriveOptions::UNCACHED),
    ];
    for (log, options) in logs {
        let Some(rows) = rows(&format!("data/disks/atlas10k_q1_requests_{log}.csv")) else { return };
        let mut drive = Drive::with_options(model("quantum-atlas-10k"), options);
        let (mut agreeing, mut turned, mut worst_ns) = (0, 0, 0);
        for row in &rows {
            let access = Access { sector: number(&row[1]), count: number(&row[2]), is_write: row[3] == "0" };
            let start = Time((number::<f64>(&row[0]) * 1e6).round() as u64);
            let service_ns = drive.serve(start, access).done.0 - start.0;
            let turn_ns = drive.model().revolution_ns().expect("a disk");
            let apart_ns = service_ns.abs_diff((number::<f64>(&row[4]) * 1e6).round() as u64);
            turned += u64::from(apart_ns > turn_ns / 2);
            let apart_ns = (apart_ns % turn_ns).min(turn_ns - apart_ns % turn_ns);
            agreeing += usize::from(apart_ns <= 12_000);
            worst_ns = worst_ns.max(apart_ns);
        }
        eprintln!("{log}: {agreeing} of {} within 12 us, the worst {worst_ns} ns apart", rows.len());
        assert_eq!(agreeing, rows.len(), "{log}: the worst is {worst_ns} ns apart");
        // A head that comes nanoseconds too late for a sector waits a turn; whoever mistakes an overhead does so often.
        assert!(turned <= 3, "{log}: {turned} are a turn apart");
    }
}
