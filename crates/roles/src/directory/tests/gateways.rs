//! What is known of gateways: their names, what is open there, and that they are gone.

use super::*;
use wire::{GatewayStatus, OpenCount};

impl Stage {
    fn register(&mut self, gateway: u64, name: &str, opened: Vec<OpenCount>) {
        self.register_wanting(1, gateway, name, opened);
    }

    fn register_wanting(&mut self, writers: u16, gateway: u64, name: &str, opened: Vec<OpenCount>) {
        let register = Message::Register {
            gateway: GatewayId(gateway),
            address: format!("10.0.0.{gateway}:7004"),
            writers,
            held: None,
            beside: None,
            speaks: wire::Version::CURRENT,
            time: base::ClusterTime::FIRST,
            sent: Time::ZERO,
            name: name.to_owned(),
            opened,
        };
        let from = NodeId::Gateway(GatewayId(gateway));
        self.event(DirectoryEvent::Packet { from, packet: register.into() });
    }

    fn gateways(&mut self) -> Vec<GatewayStatus> {
        let Ok(AdminReply::Status(status)) = self.ask(AdminRequest::STATUS) else { panic!("no status") };
        status.gateways
    }

    fn names(&mut self) -> Vec<String> {
        self.gateways().into_iter().map(|gateway| gateway.name).collect()
    }
}

#[test]
fn gateways_have_the_name_that_they_say_or_are_counted() {
    let mut stage = Stage::new(1);
    stage.register(7, "", Vec::new());
    stage.register(8, "rack-2", Vec::new());
    // What could deceive whoever reads it is no name.
    stage.register(9, "all is well\u{1b}[2J", Vec::new());
    assert_eq!(stage.names(), ["gateway-1", "rack-2", "gateway-3"]);
    stage.register(7, "edge", Vec::new());
    assert_eq!(stage.names(), ["edge", "rack-2", "gateway-3"], "its configuration was changed");
}

#[test]
fn what_is_open_at_a_gateway_is_told_and_its_end_as_soon_as_its_connection_closes() {
    let mut stage = Stage::new(3);
    let volume = stage.volume("raid1x3", 1).id;
    let opened = vec![OpenCount { volume, users: 2 }];
    stage.register(7, "", opened.clone());
    assert_eq!(stage.gateways()[0].opened, opened);
    stage.event(DirectoryEvent::Down(NodeId::Gateway(GatewayId(7))));
    assert!(stage.gateways().is_empty(), "a killed gateway stood here for ten seconds");
    // It has another connection a moment later, and its numbers are still its own.
    stage.register(7, "", Vec::new());
    stage.register(8, "", Vec::new());
    assert_eq!(stage.names(), ["gateway-1", "gateway-2"]);
    stage.run(12_000);
    assert!(stage.gateways().is_empty(), "silent for long");
}

/// Six minutes of short commands took all numbers there are, and two gateways that lived had one.
#[test]
fn commands_on_objects_take_no_numbers_and_are_no_gateways_to_operators() {
    let mut stage = Stage::new(1);
    stage.register(7, "", Vec::new());
    for command in 100..20_000 {
        stage.register_wanting(0, command, "", Vec::new());
    }
    stage.register(8, "", Vec::new());
    assert_eq!(stage.names(), ["gateway-1", "gateway-2"]);
}

/// A put of hours would wait for ever for a brick that has another address since.
#[test]
fn commands_on_objects_hear_where_a_brick_is_from_now_on() {
    let mut stage = Stage::new(1);
    stage.register_wanting(0, 100, "", Vec::new());
    let mut status = stage.bricks[&BrickId(1)].clone();
    status.address = "10.9.9.9:7".to_owned();
    let heartbeat = Message::Heartbeat {
        brick: BrickId(1),
        sent: stage.now,
        known: 0,
        status: Box::new(status),
        streams: wire::StreamReport::default(),
        speaks: wire::Version::CURRENT,
        time: base::ClusterTime::FIRST,
    };
    let (mut fx, from) = (Vec::new(), NodeId::Brick(BrickId(1)));
    stage.directory.step(stage.now, DirectoryEvent::Packet { from, packet: heartbeat.into() }, &mut fx);
    let told = fx.iter().find_map(|effect| match effect {
        DirectoryEffect::Send { to: NodeId::Gateway(GatewayId(100)), packet } => match &packet.message {
            Message::Published { bricks, .. } => Some(bricks.clone()),
            _ => None,
        },
        _ => None,
    });
    assert_eq!(told, Some(vec![(BrickId(1), "10.9.9.9:7".to_owned())]));
}
