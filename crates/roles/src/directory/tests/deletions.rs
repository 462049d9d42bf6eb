//! What is forgotten of deletions, and how a brick that missed them hears what is gone.

use super::*;

impl Stage {
    /// Volumes that were made and deleted again.
    fn made_and_deleted(&mut self, count: u64) -> Vec<VolumeId> {
        let make = |nonce: u64| self.volume_named(&format!("v{nonce}"), "raid1x3", 2, nonce).family;
        let families: Vec<VolumeId> = (1..=count).map(make).collect();
        (1..=count)
            .for_each(|nonce| drop(self.ask(delete(&format!("v{nonce}"), 100 + nonce)).expect("idle")));
        families
    }

    /// Which of these families a brick is told are gone.
    fn gone(&mut self, families: Vec<VolumeId>) -> Option<Vec<VolumeId>> {
        let (brick, operation) = (BrickId(1), 7);
        let held = Message::Held { brick, operation, families };
        let (mut fx, from) = (Vec::new(), NodeId::Brick(brick));
        self.directory.step(self.now, DirectoryEvent::Packet { from, packet: held.into() }, &mut fx);
        fx.iter().find_map(|effect| match effect {
            DirectoryEffect::Send { packet, .. } => match &packet.message {
                Message::HeldDone { operation: 7, gone, .. } => Some(gone.clone()),
                _ => None,
            },
            _ => None,
        })
    }
}

#[test]
fn a_deletion_is_forgotten_once_every_brick_that_is_there_has_confirmed_it() {
    let mut stage = Stage::new(4);
    stage.lagging.insert(BrickId(4));
    stage.run(1000);
    let quiet = stage.bricks.remove(&BrickId(4)).expect("there");
    stage.run(10_000);
    stage.made_and_deleted(4);
    assert!(stage.directory.deletions() > 0);
    let version = stage.directory.version();
    stage.run(1000);
    assert_eq!(stage.directory.deletions(), 0, "brick 4 is away");
    // It comes back, and is asked what it knows, until it knows of a later map.
    stage.bricks.insert(BrickId(4), quiet);
    assert!(
        stage.brief(BrickId(4), 1).orders.asks_held && !stage.brief(BrickId(4), version).orders.asks_held
    );
    stage.restart();
    stage.run(1000);
    assert!(stage.directory.deletions() == 0 && stage.brief(BrickId(4), 1).orders.asks_held, "it is stored");
}

#[test]
fn a_brick_that_is_there_and_confirms_nothing_keeps_deletions() {
    let mut stage = Stage::new(3);
    stage.lagging.insert(BrickId(2));
    stage.made_and_deleted(1);
    stage.run(1000);
    assert!(stage.directory.deletions() > 0);
    stage.lagging.clear();
    stage.run(1000);
    assert_eq!(stage.directory.deletions(), 0);
}

#[test]
fn a_family_of_which_nothing_is_left_is_known_by_its_number() {
    let mut stage = Stage::new(3);
    let deleted = stage.made_and_deleted(2);
    let there = stage.volume_named("there", "raid1x3", 1, 50).family;
    let never_given = VolumeId(stage.directory.desk.cluster.records.counts.next_volume);
    let asked: Vec<VolumeId> = deleted.iter().copied().chain([there, never_given]).collect();
    assert_eq!(stage.gone(asked.clone()), Some(deleted.clone()));
    // A directory that was made anew from what bricks knew does not know of all that there was.
    stage.directory.desk.cluster.records.forgotten.counts_from = VolumeId(deleted[1].0);
    assert_eq!(stage.gone(asked.clone()), Some(vec![deleted[1]]));
    stage.directory.desk.cluster.age.hear(BrickId(2), Some(1 << 40));
    assert_eq!(stage.gone(asked), None, "an old store knows nothing");
}

/// What says so is under way to the store, and a restart would take it back.
#[test]
fn nothing_is_said_of_a_family_whose_deletion_is_not_stored() {
    let mut stage = Stage::new(3);
    let family = stage.volume("raid1x3", 1).family;
    let request = Message::Admin { operation: 1, request: delete("v", 100) };
    let (mut fx, from) = (Vec::new(), NodeId::Client(base::ClientId::operator(1)));
    stage.directory.step(stage.now, DirectoryEvent::Packet { from, packet: request.into() }, &mut fx);
    assert_eq!(stage.gone(vec![family]), Some(Vec::new()));
    stage.follow(fx);
    assert_eq!(stage.gone(vec![family]), Some(vec![family]));
}

/// Whether that store was made anew is not known.
#[test]
fn deletions_of_an_earlier_release_stay() {
    let past = Past { version: 1000, next_volume: 500, deletions: 20, ..Past::NONE };
    let directory =
        |past: Past| Directory::new(DirectoryConfig::default(), past.contents(), Time(1)).expect("sound");
    assert_eq!(directory(past).deletions(), 0, "none of them will be forgotten");
    assert_eq!(directory(Past { is_numbered: true, ..past }).deletions(), 20);
}
