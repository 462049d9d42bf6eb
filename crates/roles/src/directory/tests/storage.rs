//! The directory's store fails for a while: nothing is answered as done that is not stored, nothing is forgotten that was
//! begun, reads go on, and all heals by itself.

use super::*;

const FULL: &str = "No space left on device";

impl Stage {
    /// A command; its answer, if one comes within `milliseconds`.
    fn try_for(
        &mut self,
        milliseconds: u64,
        operation: u64,
        request: AdminRequest,
    ) -> Option<Result<AdminReply, AdminError>> {
        self.send(operation, request);
        self.run(milliseconds);
        self.answers.pop_front()
    }

    fn fail_storage(&mut self) {
        self.storage_fails = Some(FULL.to_owned());
    }
}

fn admission(nonce: u64) -> AdminRequest {
    AdminRequest::AdmitBrick { nonce }
}

#[test]
fn a_failing_store_is_tried_again_after_a_pause_and_what_waited_is_done() {
    let mut stage = Stage::new(3);
    stage.volume("raid1x3", 1);
    stage.fail_storage();
    assert_eq!(stage.try_for(500, 7, admission(9)), None, "it is not stored, so it is not done");
    for _ in 0..50 {
        stage.run(100);
        let (deadline, _) = stage.directory.deadline().expect("it ticks");
        assert!(deadline > stage.now, "the loop of the directory would spin");
    }
    stage.answers.clear();
    stage.storage_fails = None;
    stage.run(2000);
    stage.restart();
    assert_eq!(stage.ask(admission(9)), Ok(AdminReply::Brick(BrickId(4))), "what was begun is stored");
}

#[test]
fn a_brick_that_dies_meanwhile_is_left_out_once_the_store_works() {
    let mut stage = Stage::new(3);
    stage.volume("raid1x3", 1);
    let lost = brick_at(&stage.view(), 1);
    stage.fail_storage();
    stage.bricks.remove(&lost);
    stage.run(20_000);
    assert_eq!(stage.view().current, Slots(0b111), "a view that is not stored is not made");
    stage.storage_fails = None;
    stage.run(3000);
    assert_eq!(stage.view().current, Slots(0b101));
}

#[test]
fn a_copy_of_a_command_is_not_answered_before_the_command_is_stored() {
    let mut stage = Stage::new(3);
    stage.fail_storage();
    assert_eq!(stage.try_for(300, 7, admission(9)), None);
    let copy = stage.try_for(300, 7, admission(9));
    assert!(!matches!(copy, Some(Ok(_))), "{copy:?}");
    let from_elsewhere = stage.try_for(300, 8, admission(9));
    assert!(!matches!(from_elsewhere, Some(Ok(_))), "{from_elsewhere:?}");
}

#[test]
fn volumes_are_read_while_nothing_can_be_stored() {
    let mut stage = Stage::new(3);
    let info = stage.volume("raid1x3", 1);
    stage.fail_storage();
    let set = AdminRequest::SetReadOnly { name: "v".to_owned(), read_only: true };
    assert_eq!(stage.try_for(500, 7, set), None);
    let Ok(AdminReply::Map(map)) = stage.ask(AdminRequest::VolumeMap { name: "v".to_owned() }) else {
        panic!("no map");
    };
    assert_eq!(map.volume, info, "what is not stored is not told: a restart would take it back");
    stage.storage_fails = None;
    stage.run(2000);
    assert!(matches!(stage.answers.pop_front(), Some(Ok(AdminReply::Volume(info))) if info.read_only));
    let Ok(AdminReply::Map(map)) = stage.ask(AdminRequest::VolumeMap { name: "v".to_owned() }) else {
        panic!("no map");
    };
    assert!(map.volume.read_only, "what was begun is done");
}

#[test]
fn commands_get_a_clear_error_while_nothing_can_be_stored() {
    let mut stage = Stage::new(3);
    stage.fail_storage();
    stage.try_for(300, 7, admission(9));
    stage.run(5000);
    let told = stage.answers.pop_front().expect("whoever asked is told in the end");
    assert!(matches!(&told, Err(AdminError::Storage(why)) if why.contains(FULL)), "{told:?}");
    for operation in 8..20 {
        let told = stage.try_for(100, operation, admission(operation)).expect("at once");
        assert!(matches!(&told, Err(AdminError::Storage(why)) if why.contains(FULL)), "{told:?}");
    }
    stage.storage_fails = None;
    stage.run(2000);
    assert_eq!(
        stage.ask(admission(30)),
        Ok(AdminReply::Brick(BrickId(5))),
        "the refused ones were not begun"
    );
}

#[test]
fn a_copy_of_a_command_is_answered_behind_what_the_command_stores() {
    let mut stage = Stage::new(3);
    let mut fx = Vec::new();
    for operation in [7, 8] {
        let packet = Message::Admin { operation, request: admission(9) }.into();
        stage.directory.step(stage.now, DirectoryEvent::Packet { from: ADMIN, packet }, &mut fx);
    }
    let asks = |effect: &DirectoryEffect| matches!(effect, DirectoryEffect::Store { .. });
    assert!(fx.iter().all(asks), "nothing is stored yet: {fx:?}");
    stage.follow(fx);
    assert_eq!(stage.answers.len(), 2);
}

#[test]
fn a_gateway_gets_no_numbers_that_are_not_stored() {
    let mut stage = Stage::new(3);
    stage.fail_storage();
    let from = NodeId::Gateway(GatewayId(5));
    let mut told = 0;
    for round in 0..20 {
        let register = Message::Register {
            speaks: wire::Version::CURRENT,
            gateway: GatewayId(5),
            address: "a:1".to_owned(),
            writers: 4,
            held: None,
            beside: None,
            time: base::ClusterTime::FIRST,
            sent: Time::ZERO,
            name: String::new(),
            opened: Vec::new(),
        };
        let mut fx = Vec::new();
        let event = DirectoryEvent::Packet { from, packet: register.into() };
        stage.directory.step(stage.now, event, &mut fx);
        told += fx.iter().filter(|e| matches!(e, DirectoryEffect::Send { to, .. } if *to == from)).count();
        assert_eq!(told, 0, "in round {round}");
        stage.follow(fx);
        stage.run(500);
    }
    stage.storage_fails = None;
    stage.run(2000);
    let packet = Message::Register {
        speaks: wire::Version::CURRENT,
        gateway: GatewayId(5),
        address: "a:1".to_owned(),
        writers: 4,
        held: None,
        beside: None,
        time: base::ClusterTime::FIRST,
        sent: Time::ZERO,
        name: String::new(),
        opened: Vec::new(),
    };
    let mut fx = Vec::new();
    stage.directory.step(stage.now, DirectoryEvent::Packet { from, packet: packet.into() }, &mut fx);
    assert_eq!(fx.len(), 1, "{fx:?}");
}

#[test]
fn what_waits_for_a_failing_store_is_bounded_and_shown() {
    let mut stage = Stage::new(3);
    stage.volume("raid1x3", 4);
    stage.fail_storage();
    for round in 0..200 {
        // Each brick says that it has moved, over and over.
        let address = format!("10.0.0.1:{round}");
        stage.bricks.values_mut().for_each(|status| status.address.clone_from(&address));
        stage.run(100);
    }
    let Ok(AdminReply::Status(status)) = stage.ask(AdminRequest::STATUS) else { panic!("no status") };
    let failure = status.store.expect("shown");
    // Three bricks, and the version of the map.
    assert_eq!((failure.why.as_str(), failure.waiting), (FULL, 4), "{failure:?}");
    assert!((15..=25).contains(&failure.tries) && failure.since_ms > 15_000, "{failure:?}");
    stage.storage_fails = None;
    stage.run(2000);
    let Ok(AdminReply::Status(status)) = stage.ask(AdminRequest::STATUS) else { panic!("no status") };
    assert_eq!(status.store, None);
    let stored = Records::load(&stage.stored.clone().into_iter().collect::<Vec<_>>()).expect("its own store");
    assert!(stored.bricks.values().all(|record| record.address == "10.0.0.1:199"));
}
