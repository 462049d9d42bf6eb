//! Which gateway a client asks.

use super::{Client, ClientConfig, ClientEffect, ClientEvent};
use base::{BrickId, ClientId, GatewayId, GroupId, Machine, NodeId, Payload, Time, ViewNumber, VolumeId};
use core::time::Duration;
use wire::{
    AdminReply, AdminRequest, ClusterStatus, GatewayStatus, GroupView, Io, IoError, IoReply, Message, Slots,
    StatusPart, VolumeInfo, VolumeMap, directory::VolumeStatus,
};

const OWN: GatewayId = GatewayId(1);
const BESIDE: GatewayId = GatewayId(2);

/// Its own gateway, and one beside a brick.
fn listed() -> Vec<GatewayStatus> {
    let gateway = |id: GatewayId, beside| GatewayStatus {
        id,
        address: id.to_string(),
        silent_ms: 0,
        beside,
        name: String::new(),
        opened: Vec::new(),
    };
    vec![gateway(OWN, None), gateway(BESIDE, Some(BrickId(5)))]
}

struct Play {
    client: Client,
    now: Time,
    tag: u64,
}

impl Play {
    /// A client of a volume that the first brick coordinates, attached through its own gateway; another one stands beside the brick.
    fn new() -> Play {
        let config = ClientConfig { id: ClientId(9), volume: "v".to_owned(), window: 8 };
        let now = Time(1_000_000_000_000);
        let mut play = Play { client: Client::new(config, now), now, tag: 0 };
        let status = ClusterStatus { gateways: listed(), version: 1, ..ClusterStatus::default() };
        play.step(ClientEvent::Up(NodeId::Gateway(OWN)));
        let result = Ok(AdminReply::Status(Box::new(status)));
        let sent = play.hear(NodeId::Directory, Message::AdminDone { operation: 1, result });
        let operation = attached(&sent, OWN).expect("it attaches to its own");
        let protocol = "coord,seq,none".parse().expect("a protocol");
        let volume = VolumeInfo { protocol, ..VolumeInfo::new(VolumeId(7), "v", 1 << 30, "raid1x2") };
        play.hear(NodeId::Gateway(OWN), Message::Attached { operation, volume: Ok(volume.clone()) });
        let view = GroupView {
            group: GroupId(1),
            volume: VolumeId(7),
            number: ViewNumber(1),
            members: vec![BrickId(5), BrickId(6)],
            current: Slots(0b11),
            joining: Slots::default(),
            lineage: Box::default(),
            sealed: Vec::new(),
        };
        let map = VolumeMap { volume, groups: vec![view], bricks: Vec::new(), stream_bricks: Vec::new() };
        play.hear(NodeId::Directory, Message::VolumeOpened { operation: 2, map: Ok(Box::new(map)) });
        play.step(ClientEvent::Up(NodeId::Gateway(BESIDE)));
        play
    }

    fn step(&mut self, event: ClientEvent) -> Vec<ClientEffect> {
        let mut fx = Vec::new();
        self.client.step(self.now, event, &mut fx);
        fx
    }

    fn hear(&mut self, from: NodeId, message: Message) -> Vec<ClientEffect> {
        self.step(ClientEvent::Packet { from, packet: message.into() })
    }

    fn write(&mut self) -> Vec<ClientEffect> {
        self.tag += 1;
        let payload = Payload::zeros(4096);
        self.step(ClientEvent::Io { tag: self.tag, io: Io::Write { offset: 0 }, payload })
    }

    /// Both gateways have the volume open.
    fn opened(mut self) -> Play {
        let sent = self.write();
        assert_eq!(asked(&sent), [OWN], "the other one has not opened it yet");
        let operation = attached(&sent, BESIDE).expect("it attaches to that one, too");
        let volume = Ok(VolumeInfo::new(VolumeId(7), "v", 1 << 30, "raid1x2"));
        self.hear(NodeId::Gateway(BESIDE), Message::Attached { operation, volume });
        self
    }
}

/// Of whom requests were asked.
fn asked(fx: &[ClientEffect]) -> Vec<GatewayId> {
    let asked = |effect: &ClientEffect| match effect {
        ClientEffect::Send { to: NodeId::Gateway(to), packet } => {
            matches!(packet.message, Message::Request { .. }).then_some(*to)
        }
        _ => None,
    };
    fx.iter().filter_map(asked).collect()
}

fn attached(fx: &[ClientEffect], gateway: GatewayId) -> Option<u64> {
    fx.iter().find_map(|effect| match effect {
        ClientEffect::Send { to: NodeId::Gateway(to), packet } if *to == gateway => match packet.message {
            Message::Attach { operation, .. } => Some(operation),
            _ => None,
        },
        _ => None,
    })
}

#[test]
fn requests_go_to_the_gateway_beside_the_brick_that_coordinates_once_it_has_the_volume() {
    let mut play = Play::new().opened();
    let sent = play.write();
    assert_eq!(asked(&sent), [BESIDE]);
    let reply = Message::Reply { sequence: 2, result: Ok(IoReply::Done) };
    let told = play.hear(NodeId::Gateway(BESIDE), reply);
    assert!(matches!(told[..], [ClientEffect::Reply { tag: 2, result: Ok(_), .. }]), "{told:?}");
}

#[test]
fn what_it_was_asked_goes_through_the_own_gateway_when_it_is_gone_or_has_forgotten_the_volume() {
    let mut gone = Play::new().opened();
    gone.write();
    let sent = gone.step(ClientEvent::Down(NodeId::Gateway(BESIDE)));
    assert_eq!(asked(&sent), [OWN]);
    assert_eq!(asked(&gone.write()), [OWN]);

    let mut forgotten = Play::new().opened();
    forgotten.write();
    let reply = Message::Reply { sequence: 2, result: Err(IoError::NoVolume) };
    let sent = forgotten.hear(NodeId::Gateway(BESIDE), reply);
    assert_eq!(asked(&sent), [OWN]);
    assert!(attached(&sent, BESIDE).is_none(), "it is left alone for a while");
    forgotten.now += Duration::from_secs(11);
    assert!(attached(&forgotten.write(), BESIDE).is_some(), "and asked to open it then");
}

#[test]
fn one_that_does_not_answer_is_asked_nothing_more() {
    let mut play = Play::new().opened();
    play.hear(NodeId::Gateway(OWN), Message::Reply { sequence: 1, result: Ok(IoReply::Done) });
    play.write();
    let mut sent = Vec::new();
    for _ in 0..10 {
        play.now += Duration::from_millis(250);
        play.hear(NodeId::Gateway(OWN), Message::Pong { nonce: 0 });
        play.client.wake(play.now, &mut sent);
    }
    assert_eq!(asked(&sent), [OWN]);
    assert_eq!(asked(&play.write()), [OWN]);
    let late =
        play.hear(NodeId::Gateway(BESIDE), Message::Reply { sequence: 2, result: Err(IoError::Failed) });
    assert!(late.is_empty(), "an error of whom it is not asked any more says nothing: {late:?}");
}

#[test]
fn errors_of_another_gateway_are_asked_about_again() {
    let mut play = Play::new().opened();
    play.write();
    let reply = Message::Reply { sequence: 2, result: Err(IoError::OutOfRange) };
    let sent = play.hear(NodeId::Gateway(BESIDE), reply);
    assert_eq!(asked(&sent), [OWN], "it may not have heard that the volume grew");
    assert!(!sent.iter().any(|effect| matches!(effect, ClientEffect::Reply { .. })));
}

/// Found by the test of real daemons: it asked for the gateways alone: new connections saw the old size for ever.
#[test]
fn a_resize_of_its_volume_is_asked_for_and_has_it_attach_again() {
    let mut play = Play::new();
    let mut sent = play.step(ClientEvent::Up(NodeId::Directory));
    play.client.wake(play.now, &mut sent);
    let asks = |effect: &ClientEffect| {
        let ClientEffect::Send { to: NodeId::Directory, packet } = effect else { return None };
        match packet.message {
            Message::Admin { operation, request: AdminRequest::Status { part } } => Some((operation, part)),
            _ => None,
        }
    };
    let (operation, part) = sent.iter().find_map(asks).expect("it asks now and then");
    assert_eq!(part, StatusPart::Gateways(Some(VolumeId(7))));
    let mut volume = play.client.volume.clone().expect("it is attached");
    let told = |volume: &VolumeInfo| {
        let of = VolumeStatus {
            volume: volume.clone(),
            groups: 1,
            degraded: 0,
            unavailable: 0,
            can_lose: 1,
            rebuilding: 0,
            covered: 0,
            unplaced: 0,
            waits_for: Vec::new(),
            lost: 0,
        };
        let status = ClusterStatus { gateways: listed(), volumes: vec![of], ..ClusterStatus::default() };
        Message::AdminDone { operation, result: Ok(AdminReply::Status(Box::new(status))) }
    };
    let sent = play.hear(NodeId::Directory, told(&volume));
    assert_eq!(attached(&sent, OWN), None, "it is as it was");
    volume.size_bytes *= 2;
    let sent = play.hear(NodeId::Directory, told(&volume));
    assert!(attached(&sent, OWN).is_some());
}
