//! What grows with the cluster is asked for a page at a time.

use super::*;
use wire::{ClusterStatus, StatusPart, Wire};

const PAGE_BYTES: usize = 600;

/// Twenty volumes.
fn stage() -> Stage {
    let mut stage = Stage::new(3);
    for number in 0..20 {
        stage.volume_named(&format!("volume-{number}"), "raid1x3", 1, 100 + number);
    }
    stage.directory.desk.cluster.config.page_bytes = PAGE_BYTES;
    stage
}

fn status(stage: &mut Stage, part: StatusPart) -> ClusterStatus {
    let Ok(AdminReply::Status(status)) = stage.ask(AdminRequest::Status { part }) else {
        panic!("no status")
    };
    *status
}

#[test]
fn the_pages_of_the_status_are_the_whole_status() {
    let mut stage = stage();
    let all = status(&mut stage, StatusPart::All);
    assert_eq!((all.volumes.len(), all.next), (20, None));
    let (mut whole, mut next, mut pages) = (ClusterStatus::default(), Some(VolumeId(0)), 0);
    while let Some(first) = next {
        let page = status(&mut stage, StatusPart::From(first));
        assert!(page.volumes.to_bytes().len() <= PAGE_BYTES + 8, "and its length");
        assert_eq!(page.bricks.len(), if first == VolumeId(0) { 3 } else { 0 });
        next = whole.take_page(page);
        pages += 1;
    }
    assert!(pages > 3, "{pages}");
    assert_eq!(whole, all);
}

#[test]
fn the_pages_of_the_list_are_the_whole_list() {
    let mut stage = stage();
    let list = |stage: &mut Stage, from| match stage.ask(AdminRequest::ListVolumes { from }) {
        Ok(AdminReply::Volumes(volumes)) => volumes,
        other => panic!("{other:?}"),
    };
    let mut volumes = Vec::new();
    loop {
        let from = volumes.last().map_or(VolumeId(0), |last: &VolumeInfo| VolumeId(last.id.0 + 1));
        let page = list(&mut stage, Some(from));
        if page.is_empty() {
            break;
        }
        assert!(page.len() < 20);
        volumes.extend(page);
    }
    assert_eq!(volumes, list(&mut stage, None));
    assert_eq!(volumes.len(), 20);
}

/// Every `attach` asked for the whole status each five seconds.
#[test]
fn who_is_attached_is_told_of_the_gateways_and_of_its_volume() {
    let mut stage = stage();
    let all = status(&mut stage, StatusPart::All);
    let only =
        |volumes| ClusterStatus { gateways: all.gateways.clone(), volumes, ..ClusterStatus::default() };
    assert_eq!(status(&mut stage, StatusPart::Gateways(None)), only(Vec::new()));
    let volume = all.volumes[7].clone();
    assert_eq!(status(&mut stage, StatusPart::Gateways(Some(volume.volume.id))), only(vec![volume]));
    let gone = StatusPart::Gateways(Some(VolumeId(1 << 40)));
    assert_eq!(status(&mut stage, gone), only(Vec::new()));
}

/// What is not well comes first; the counts are of all.
#[test]
fn the_summary_counts_all_and_shows_first_what_is_not_well() {
    let mut stage = stage();
    // Of these no view can be made without a brick.
    for number in 0..6 {
        stage.volume_named(&format!("bare-{number}"), "raid0x2", 1, 200 + number);
    }
    let summary = |stage: &mut Stage, most| status(stage, StatusPart::Summary { most });
    let all = status(&mut stage, StatusPart::All);
    let counts = |all: &ClusterStatus| {
        let is_unwell = |volume: &&wire::directory::VolumeStatus| {
            volume.degraded > 0 || volume.unavailable > 0 || volume.lost > 0
        };
        wire::directory::Counts {
            bricks: all.bricks.len() as u32,
            unwell_bricks: all.bricks.iter().filter(|brick| !brick.alive || brick.stale_groups > 0).count()
                as u32,
            gateways: all.gateways.len() as u32,
            volumes: all.volumes.len() as u32,
            unwell_volumes: all.volumes.iter().filter(is_unwell).count() as u32,
            snapshots: 0,
            groups: all.volumes.iter().map(|volume| volume.groups).sum(),
        }
    };
    let large = summary(&mut stage, 100);
    assert_eq!(ClusterStatus { counts: None, ..large.clone() }, all);
    assert_eq!(large.counts, Some(counts(&all)));
    assert_eq!(large.counts.map(|counts| (counts.unwell_bricks, counts.unwell_volumes)), Some((0, 0)));
    let small = summary(&mut stage, 2);
    assert_eq!((small.bricks.len(), small.volumes.len(), small.counts), (2, 2, large.counts));

    // Of a volume with more snapshots than there is room for another volume is seen as well.
    for number in 0..4 {
        let (volume, snapshot) = ("volume-0".to_owned(), format!("s{number}"));
        stage.ask(AdminRequest::Snapshot { volume, snapshot, nonce: 500 + number }).expect("a snapshot");
    }
    let counts = |all: &ClusterStatus| {
        let volumes = all.volumes.iter().filter(|volume| !volume.volume.is_snapshot).cloned().collect();
        let snapshots = all.volumes.iter().filter(|volume| volume.volume.is_snapshot).count() as u32;
        let all = ClusterStatus { volumes, ..all.clone() };
        wire::directory::Counts { snapshots, ..counts(&all) }
    };

    // A brick is away: as long as no view is made without it, when all are, and while it catches up.
    let away = BrickId(3);
    let report = stage.bricks.remove(&away).expect("a brick");
    let mut looks = 0;
    for step in 0..12 {
        stage.run(700);
        let (all, small) = (status(&mut stage, StatusPart::All), summary(&mut stage, 2));
        assert_eq!(small.counts, Some(counts(&all)), "after {step} steps");
        let unwell = counts(&all).unwell_volumes;
        assert!(small.volumes.iter().all(|volume| !volume.volume.is_snapshot));
        let worst = all.volumes.iter().filter(|volume| volume.unavailable > 0).count().min(2);
        let shown = small.volumes.iter().filter(|volume| volume.unavailable > 0).count();
        assert_eq!(shown, worst, "after {step} steps");
        let are_unwell = small.volumes.iter().all(|volume| volume.degraded + volume.unavailable > 0);
        assert!(unwell == 0 || are_unwell, "after {step} steps");
        if !all.bricks[2].alive {
            assert_eq!(small.bricks[0].id, away);
            looks += 1;
        }
        if step == 8 {
            stage.bricks.insert(away, report.clone());
        }
    }
    assert!(looks > 2, "{looks}");
}

#[test]
fn a_page_has_one_volume_at_least() {
    let mut stage = stage();
    stage.directory.desk.cluster.config.page_bytes = 1;
    let page = status(&mut stage, StatusPart::From(VolumeId(0)));
    assert_eq!(page.volumes.len(), 1);
    assert!(page.next.is_some());
}
