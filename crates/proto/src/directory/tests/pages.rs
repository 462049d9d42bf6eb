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

#[test]
fn a_page_has_one_volume_at_least() {
    let mut stage = stage();
    stage.directory.desk.cluster.config.page_bytes = 1;
    let page = status(&mut stage, StatusPart::From(VolumeId(0)));
    assert_eq!(page.volumes.len(), 1);
    assert!(page.next.is_some());
}
