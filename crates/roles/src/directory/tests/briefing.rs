//! A brick that missed much is told of it a page at a time.

use super::*;
use base::GroupId;

/// What a brick is told.
pub(super) struct Told {
    version: u64,
    lease_ns: u64,
    deleted: Vec<VolumeId>,
    pub(super) orders: wire::Orders,
}

impl Stage {
    /// The answer to a heartbeat of a brick that knows the map as it was at a version.
    pub(super) fn brief(&mut self, brick: BrickId, known: u64) -> Told {
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
                    let (version, lease_ns, orders) = (*version, *lease_ns, wire::Orders::clone(orders));
                    Some(Told { version, lease_ns, deleted: deleted.clone(), orders })
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
    let (mut known, mut pages, mut families) = (0, 0, BTreeSet::new());
    let (mut deleted, mut gone) = (Vec::new(), Vec::new());
    loop {
        let told = stage.brief(BrickId(2), known);
        pages += 1;
        assert!(told.version > known, "each page says more");
        // Also while it hears of changes long ago: a store from before then would not be known as old.
        assert_eq!(told.orders.newest, stage.directory.desk.cluster.records.counts.version);
        assert!(told.orders.families.len() < 8, "a page of {} families", told.orders.families.len());
        families.extend(told.orders.families.iter().map(|family| family.volumes[0].id));
        deleted.extend(told.deleted);
        gone.extend(told.orders.gone);
        known = told.version;
        if told.lease_ns > 0 {
            break;
        }
    }
    assert!(pages > 4, "{pages} pages");
    assert_eq!(families.len(), 15);
    assert_eq!((deleted.len(), gone.len()), (5 * 2, 5 * 2), "a volume and its head each");
    let told = stage.brief(BrickId(2), known);
    let news = (told.version, told.orders.families.len(), told.deleted.len());
    assert_eq!(news, (known, 0, 0), "nothing is news");
    assert!(told.lease_ns > 0);
}

/// A brick that is told that a family is gone forgets its blocks: a restart of the directory may not bring the family back.
#[test]
fn a_family_is_gone_once_it_is_stored_that_it_is() {
    let mut stage = Stage::new(3);
    let volume = stage.volume("raid1x3", 1);
    let cluster = &stage.directory.desk.cluster;
    assert!(!cluster.is_gone(volume.family));
    // The family's first branch is deleted as a branch, and the family is there.
    let cluster = &mut stage.directory.desk.cluster;
    let version = cluster.records.bump();
    cluster.records.deleted.insert(version, volume.family);
    let puts = vec![cluster.records.put_deleted(version), cluster.records.put_counts()];
    let mut fx = Vec::new();
    cluster.put(puts, Vec::new(), &mut fx);
    stage.follow(fx);
    let told = stage.brief(BrickId(2), 0);
    assert_eq!((told.deleted, told.orders.gone), (vec![volume.family], Vec::new()));
    // And then the family is deleted; what says so is under way to the store.
    let request = Message::Admin { operation: 1, request: delete("v", 100) };
    let (mut fx, from) = (Vec::new(), NodeId::Client(base::ClientId::operator(1)));
    stage.directory.step(stage.now, DirectoryEvent::Packet { from, packet: request.into() }, &mut fx);
    assert!(!stage.directory.desk.cluster.records.families.contains_key(&volume.family));
    let told = stage.brief(BrickId(2), 0);
    assert_eq!((told.deleted, told.orders.gone), (vec![volume.family], Vec::new()));
    stage.follow(fx);
    let told = stage.brief(BrickId(2), 0);
    assert!(told.orders.gone.contains(&volume.family), "{:?}", told.orders.gone);
}

/// It would serve reads of the others under views that ended long ago.
#[test]
fn a_brick_that_has_much_to_give_back_has_no_lease_before_it_heard_of_all() {
    let mut stage = Stage::new(4);
    stage.volume("raid1x3", 8);
    let outside =
        (1..=4).map(BrickId).find(|brick| stage.directory.desk.cluster.groups_of(*brick).count() < 8);
    let outside = outside.expect("a group has three of the four");
    let groups: Vec<GroupId> = stage.directory.desk.cluster.records.groups.keys().copied().collect();
    let records = &mut stage.directory.desk.cluster.records;
    let mut left: BTreeSet<GroupId> = BTreeSet::new();
    for group in groups {
        records.groups.change(&group, |record| {
            let view = record.active.as_ref().expect("it began");
            if view.slot_of(outside).is_none() {
                left.insert(group);
                record.former.push((outside, view.number));
            }
        });
    }
    assert!(left.len() > 1, "{left:?}");
    stage.directory.desk.cluster.config.page_bytes = 1;
    let mut known = 0;
    let mut told = stage.brief(outside, known);
    while told.version > known {
        assert_eq!((told.lease_ns, told.orders.left.len()), (0, 1), "a page is short");
        known = told.version;
        told = stage.brief(outside, known);
    }
    assert_eq!((told.lease_ns, told.orders.left.len()), (0, 1), "and has no room for the others");
    // What it says that it gave back makes room.
    while left.len() > 1 {
        let view = told.orders.left.pop().expect("one");
        assert!(left.remove(&view.group));
        stage.bricks.get_mut(&outside).expect("there").groups.left = vec![(view.group, view.number)];
        stage.brief(outside, known);
        told = stage.brief(outside, known);
    }
    assert!(told.lease_ns > 0 && told.orders.left.len() == 1);
    // It is left out of one more, and that is not stored yet.
    let cluster = &mut stage.directory.desk.cluster;
    let version = cluster.records.bump();
    let group = *left.first().expect("one");
    cluster.records.groups.change(&group, |record| record.changed = version);
    let told = stage.brief(outside, known);
    assert_eq!((told.lease_ns, told.orders.left.len()), (0, 0));
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
    assert_eq!(stage.brief(substitute, before).orders.families.len(), 1);
}

/// A brick of many groups is lost: their views change at once, and no page can end among changes that are not stored.
#[test]
fn what_is_not_stored_yet_makes_no_answer_longer() {
    let mut stage = Stage::new(3);
    for nonce in 1..=20 {
        stage.volume_named(&format!("v{nonce}"), "raid1x3", 4, nonce);
    }
    let cluster = &mut stage.directory.desk.cluster;
    cluster.config.page_bytes = 200;
    let known = cluster.records.counts.version;
    let groups: Vec<GroupId> = cluster.records.groups.keys().copied().collect();
    for group in &groups {
        let version = cluster.records.bump();
        cluster.records.groups.change(group, |record| record.changed = version);
    }
    let puts = groups.iter().map(|group| cluster.records.put_group(*group));
    let puts = puts.chain([cluster.records.put_counts()]).collect();
    let told = stage.brief(BrickId(2), known);
    assert_eq!((told.version, told.orders.families.len()), (known, 0));
    let mut fx = Vec::new();
    stage.directory.desk.cluster.put(puts, Vec::new(), &mut fx);
    stage.follow(fx);
    let (mut known, mut families) = (known, BTreeSet::new());
    loop {
        let told = stage.brief(BrickId(2), known);
        assert!(told.orders.families.len() < 8, "a page of {} families", told.orders.families.len());
        families.extend(told.orders.families.iter().map(|family| family.volumes[0].id));
        if told.lease_ns > 0 {
            break;
        }
        known = told.version;
    }
    assert_eq!(families.len(), 20);
}
