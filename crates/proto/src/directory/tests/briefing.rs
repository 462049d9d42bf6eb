//! A brick that missed much is told of it a page at a time.

use super::*;

impl Stage {
    /// The answer to a heartbeat of a brick that knows the map as it was at a version.
    fn brief(&mut self, brick: BrickId, known: u64) -> (u64, u64, Vec<wire::Family>, Vec<VolumeId>) {
        let heartbeat = Message::Heartbeat {
            brick,
            sent: self.now,
            known,
            status: Box::new(self.bricks[&brick].clone()),
            streams: wire::StreamReport::default(),
            speaks: wire::Version::CURRENT,
            time: base::ClusterTime::FIRST,
        };
        let (mut fx, from) = (Vec::new(), NodeId::Brick(brick));
        self.directory.step(self.now, DirectoryEvent::Packet { from, packet: heartbeat.into() }, &mut fx);
        let answer = fx.iter().find_map(|effect| match effect {
            DirectoryEffect::Send { to, packet } if *to == from => match &packet.message {
                Message::HeartbeatDone { version, lease_ns, orders, deleted, .. } => {
                    // Also while it hears of changes long ago: a store from before then would not be known as old.
                    assert_eq!(orders.newest, self.directory.desk.cluster.records.counts.version);
                    Some((*version, *lease_ns, orders.families.clone(), deleted.clone()))
                }
                _ => None,
            },
            _ => None,
        });
        self.follow(fx);
        answer.expect("an answer")
    }
}

#[test]
fn a_brick_that_missed_much_hears_of_it_in_pages_and_has_no_lease_before_the_last() {
    let mut stage = Stage::new(3);
    for nonce in 1..=20 {
        stage.volume_named(&format!("v{nonce}"), "raid1x3", 4, nonce);
    }
    for nonce in 1..=5 {
        stage.ask(delete(&format!("v{nonce}"), 100 + nonce)).expect("nobody needs it");
    }
    stage.directory.desk.cluster.config.page_bytes = 200;
    let (mut known, mut pages, mut families, mut gone) = (0, 0, BTreeSet::new(), Vec::new());
    loop {
        let (version, lease_ns, told, deleted) = stage.brief(BrickId(2), known);
        pages += 1;
        assert!(version > known, "each page says more");
        assert!(told.len() < 8, "a page of {} families", told.len());
        families.extend(told.iter().map(|family| family.volumes[0].id));
        gone.extend(deleted);
        known = version;
        if lease_ns > 0 {
            break;
        }
    }
    assert!(pages > 4, "{pages} pages");
    assert_eq!(families.len(), 15);
    assert_eq!(gone.len(), 5 * 2, "a volume and its head each");
    let (version, lease_ns, told, deleted) = stage.brief(BrickId(2), known);
    assert_eq!((version, told.len(), deleted.len()), (known, 0, 0), "nothing is news");
    assert!(lease_ns > 0);
}

/// Of the group it hears when the view is made; nobody else would ever name its family to it.
#[test]
fn a_brick_that_is_new_in_a_group_hears_of_its_family_however_old_that_is() {
    let mut stage = Stage::new(4);
    stage.volume("raid1x3", 1);
    let before = stage.directory.desk.cluster.records.counts.version;
    let lost = brick_at(&stage.view(), 0);
    stage.bricks.remove(&lost);
    stage.run(75_000);
    let substitute = brick_at(&stage.view(), 0);
    assert!(substitute != lost && stage.view().is_joining(substitute));
    let (_, _, families, _) = stage.brief(substitute, before);
    assert_eq!(families.len(), 1);
}
