//! A gateway between a directory and bricks that are played by hand.

use super::{Awaited, Gateway, GatewayConfig, GatewayEffect, GatewayEvent, PAUSED, Serves};
use base::{
    BLOCK, BrickId, ClientId, Depth, GatewayId, GroupId, Machine, NodeId, Payload, RequestId, Stamp,
    StreamId, Time, ViewNumber, VolumeId,
};
use core::time::Duration;
use wire::{
    AdminReply, AdminRequest, GroupView, Io, IoError, IoReply, Lineage, Message, PrepareOutcome, ReadOutcome,
    Service, Slots, Span, VolumeInfo, VolumeMap, Wait,
};

const VOLUME: VolumeId = VolumeId(1);
const HEAD: VolumeId = VolumeId(10);
const NEW_HEAD: VolumeId = VolumeId(11);
const CLONE: VolumeId = VolumeId(2);
const CLONED: VolumeId = VolumeId(12);
const GROUPS: u64 = 5;
const SESSION: u64 = 1;

struct Play {
    gateway: Gateway,
    now: Time,
    fx: Vec<GatewayEffect>,
    tag: u64,
    /// What the certificate of its session names.
    stream: Option<StreamId>,
}

fn info(id: VolumeId, name: &str) -> VolumeInfo {
    VolumeInfo { family: VOLUME, ..VolumeInfo::new(id, name, 1 << 30, "raid1x1") }
}

/// The family's groups under view `number`, each with a brick of its own.
fn groups(number: u64) -> Vec<GroupView> {
    let heads = vec![(VOLUME, if number > 1 { NEW_HEAD } else { HEAD }), (CLONE, CLONED)];
    let parents = vec![(NEW_HEAD, HEAD), (CLONED, HEAD)];
    let view = |group| GroupView {
        group: GroupId(group),
        volume: VOLUME,
        number: ViewNumber(number),
        members: vec![BrickId(group as u32)],
        current: Slots(1),
        joining: Slots::default(),
        lineage: Lineage { heads: heads.clone(), parents: parents.clone(), ..Lineage::default() }.into(),
        sealed: Vec::new(),
    };
    (1..=GROUPS).map(view).collect()
}

impl Play {
    fn new(volumes: &[VolumeInfo]) -> Play {
        let config = GatewayConfig {
            id: GatewayId(1),
            name: String::new(),
            address: "gateway:1".to_owned(),
            serves: Serves::Anyone,
            beside: None,
        };
        let now = Time(1_000_000_000_000);
        let mut play = Play { gateway: Gateway::new(config, now), now, fx: Vec::new(), tag: 0, stream: None };
        (1..=GROUPS).for_each(|brick| play.step(GatewayEvent::Up(NodeId::Brick(BrickId(brick as u32)))));
        play.hear(
            NodeId::Directory,
            Message::Registered { first_writer: 4, time: base::ClusterTime::FIRST, loan: None },
        );
        volumes.iter().for_each(|volume| play.open(volume));
        play
    }

    fn step(&mut self, event: GatewayEvent) {
        self.gateway.step(self.now, event, &mut self.fx);
        self.gateway.settle(self.now, &mut self.fx);
    }

    fn hear(&mut self, from: NodeId, message: Message) {
        self.hear_with(from, message, Payload::new());
    }

    fn hear_with(&mut self, from: NodeId, message: Message, payload: Payload) {
        self.step(GatewayEvent::Packet { from, packet: wire::Packet { message, payload } });
    }

    fn publish(&mut self, views: Vec<GroupView>, deleted: Vec<VolumeId>) {
        let (volumes, bricks) = (Vec::new(), Vec::new());
        self.hear(NodeId::Directory, Message::Published { views, volumes, deleted, bricks });
    }

    fn open(&mut self, volume: &VolumeInfo) {
        self.step(GatewayEvent::Open { session: SESSION, name: volume.name.clone() });
        let operation = self.sent().into_iter().find_map(|(_, message)| match message {
            Message::OpenVolume { operation, name } if name == volume.name => Some(operation),
            _ => None,
        });
        let operation = operation.expect("the directory is asked");
        let map = VolumeMap {
            volume: volume.clone(),
            groups: groups(1),
            bricks: Vec::new(),
            stream_bricks: Vec::new(),
        };
        self.hear(NodeId::Directory, Message::VolumeOpened { operation, map: Ok(Box::new(map)) });
        let opened = |effect: &GatewayEffect| matches!(effect, GatewayEffect::Opened { volume: Ok(_), .. });
        assert!(core::mem::take(&mut self.fx).iter().any(opened));
    }

    fn sent(&mut self) -> Vec<(NodeId, Message)> {
        let (sent, rest) = core::mem::take(&mut self.fx)
            .into_iter()
            .partition(|effect| matches!(effect, GatewayEffect::Send { .. }));
        self.fx = rest;
        let message = |effect| match effect {
            GatewayEffect::Send { to, packet } => (to, packet.message),
            _ => panic!("partitioned"),
        };
        Vec::into_iter(sent).map(message).collect()
    }

    /// Begins I/O and says which brick is asked for which blocks.
    fn io(&mut self, volume: VolumeId, io: Io, payload: Payload) -> Vec<(NodeId, u64, Span)> {
        self.tag += 1;
        self.step(GatewayEvent::Io {
            session: SESSION,
            tag: self.tag,
            volume,
            stream: self.stream,
            io,
            payload,
        });
        self.questions()
    }

    fn questions(&mut self) -> Vec<(NodeId, u64, Span)> {
        let question = |(to, message)| match message {
            Message::Read { operation, span, .. } => Some((to, operation, span)),
            Message::Prepare { operation, write, .. } => Some((to, operation, write.span)),
            _ => None,
        };
        self.sent().into_iter().filter_map(question).collect()
    }

    fn read(&mut self, volume: VolumeId, offset: u64) -> Vec<(NodeId, u64, Span)> {
        self.io(volume, Io::Read { offset, length: 4096 }, Payload::new())
    }

    fn shows(&mut self, (brick, operation, _): (NodeId, u64, Span), stamp: Stamp) {
        let outcome = ReadOutcome::Done { leased: true, stamps: vec![stamp], unreadable: Vec::new() };
        let content = Payload::from(vec![7; BLOCK]);
        self.hear_with(brick, Message::ReadDone { operation, outcome, wait: Wait::default() }, content);
    }

    fn reply(&mut self) -> Option<Result<IoReply, IoError>> {
        core::mem::take(&mut self.fx).into_iter().find_map(|effect| match effect {
            GatewayEffect::Reply { result, .. } => Some(result),
            _ => None,
        })
    }
}

#[test]
fn a_clone_finds_its_blocks_where_its_parent_has_them() {
    let mut play = Play::new(&[info(VOLUME, "v"), info(CLONE, "c")]);
    let extent = 1024 * 4096;
    let mut bricks = std::collections::BTreeSet::new();
    for offset in (0..20).map(|n| n * extent) {
        let (parent, clone) = (play.read(VOLUME, offset), play.read(CLONE, offset));
        let ((brick, _, of), (clone_s, _, cloned)) = (parent[0], clone[0]);
        assert_eq!((brick, of.lba), (clone_s, cloned.lba));
        assert_eq!((of.volume, cloned.volume), (HEAD, CLONED));
        bricks.insert(brick);
    }
    assert!(bricks.len() > 1, "extents are spread");
}

#[test]
fn a_clone_is_served_where_nothing_else_of_its_family_is_open() {
    let mut play = Play::new(&[info(CLONE, "c")]);
    assert_eq!(play.read(CLONE, 0).len(), 1);
    play.publish(groups(2), Vec::new());
    assert_eq!(play.questions().len(), 1, "asked again under the new view");
}

#[test]
fn a_snapshot_and_a_read_only_volume_take_no_writes() {
    let snapshot = VolumeInfo { is_snapshot: true, ..info(HEAD, "v@s") };
    let read_only = VolumeInfo { read_only: true, ..info(VOLUME, "v") };
    let mut play = Play::new(&[snapshot, read_only]);
    for volume in [HEAD, VOLUME] {
        for io in [Io::Write { offset: 0 }, Io::Zero { offset: 0, length: 512 }] {
            let payload = Payload::from(vec![1; if io == (Io::Write { offset: 0 }) { 4096 } else { 0 }]);
            assert!(play.io(volume, io, payload).is_empty());
            assert_eq!(play.reply(), Some(Err(IoError::ReadOnly)));
        }
        let asked = play.read(volume, 0);
        assert_eq!(asked[0].2.volume, HEAD);
        play.shows(asked[0], Stamp::ZERO);
        assert_eq!(play.reply(), Some(Ok(IoReply::Done)));
    }
}

#[test]
fn a_deleted_volume_leaves_its_family_s_views_to_the_others() {
    let mut play = Play::new(&[info(VOLUME, "v"), info(CLONE, "c")]);
    play.read(VOLUME, 0);
    play.publish(Vec::new(), vec![VOLUME]);
    assert_eq!(play.reply(), Some(Err(IoError::NoVolume)), "what was under way for it");
    assert!(play.read(VOLUME, 0).is_empty());
    assert_eq!(play.reply(), Some(Err(IoError::NoVolume)));
    let asked = play.read(CLONE, 0);
    assert_eq!(asked[0].2.volume, CLONED);
    play.publish(groups(2), Vec::new());
    assert_eq!(play.questions().len(), 1, "a view of the family is taken while any volume of it is open");
    play.publish(Vec::new(), vec![CLONE]);
    assert_eq!(play.reply(), Some(Err(IoError::NoVolume)));
    play.publish(groups(3), Vec::new());
    assert!(play.gateway.coordinator.views().is_empty(), "none is open");
}

fn write_request(id: RequestId, offset: u64) -> Message {
    Message::Request { id, floor: 1, volume: VOLUME, io: Io::Write { offset }, service: Service::default() }
}

#[test]
fn a_gateway_that_was_paused_lets_go_of_what_clients_asked_before() {
    let mut play = Play::new(&[info(VOLUME, "v")]);
    let client = ClientId(77);
    for (sequence, offset) in [(1, 0), (2, 512), (3, 1024)] {
        let id = RequestId { client, sequence };
        let message = write_request(id, offset);
        let length = if sequence == 1 { 4096 } else { 512 };
        play.hear_with(NodeId::Client(client), message, Payload::from(vec![1; length]));
    }
    assert_eq!(play.questions().len(), 2, "two patches of one block take turns");
    play.io(VOLUME, Io::Write { offset: 1 << 20 }, Payload::from(vec![1; 4096]));
    play.now += PAUSED;
    let now = play.now;
    play.gateway.wake(now, &mut play.fx);
    let sent = play.sent();
    let told = |sequence| {
        sent.iter().any(|(to, message)| {
            let refused = Message::Reply { sequence, result: Err(IoError::NoVolume) };
            *to == NodeId::Client(client) && *message == refused
        })
    };
    assert!(told(1) && told(2) && told(3), "{sent:?}");
    let prepares: Vec<u64> = sent
        .iter()
        .filter_map(|(_, message)| match message {
            Message::Prepare { write, .. } => Some(write.span.lba),
            _ => None,
        })
        .collect();
    assert_eq!(prepares, [256], "its own user's write goes on");
    assert_eq!(play.gateway.requests_under_way(), 1);
}

#[test]
fn a_patch_read_under_one_head_is_written_to_the_next_on_condition_of_what_was_read() {
    let mut play = Play::new(&[info(VOLUME, "v")]);
    let asked = play.io(VOLUME, Io::Write { offset: 512 }, Payload::from(vec![1; 512]));
    let stamp = Stamp(99 << 32);
    assert_eq!(asked[0].2.volume, HEAD);
    play.shows(asked[0], stamp);
    let asked = play.questions();
    assert_eq!(asked[0].2.volume, HEAD);
    play.publish(groups(2), Vec::new());
    let sent = play.sent();
    let [(brick, Message::Prepare { operation, view, write, base, .. })] = &sent[..] else {
        panic!("{sent:?}")
    };
    assert_eq!((view.0, write.span.volume, *base), (2, NEW_HEAD, Some(stamp)));
    let outcome = PrepareOutcome::Changed;
    play.hear(*brick, Message::Prepared { operation: *operation, outcome, wait: Wait::default() });
    let asked = play.questions();
    assert_eq!(asked[0].2.volume, NEW_HEAD, "it was rolled back: read again");
    play.shows(asked[0], stamp);
    let asked = play.questions();
    let outcome = PrepareOutcome::Prepared { previous: Vec::new() };
    play.hear(asked[0].0, Message::Prepared { operation: asked[0].1, outcome, wait: Wait::default() });
    assert_eq!(play.reply(), Some(Ok(IoReply::Done)));
}

/// A client that was told of an error may write something else. A copy of its earlier request that comes late must not be
/// done over that.
#[test]
fn a_copy_of_a_request_that_was_given_up_is_not_begun_again() {
    let time = core::time::Duration::from_secs(2);
    let volume = VolumeInfo { io_timeout: wire::IoTimeout::After(time), ..info(VOLUME, "v") };
    let mut play = Play::new(&[volume]);
    let client = ClientId(77);
    let ask = |play: &mut Play| {
        let id = RequestId { client, sequence: 1 };
        let message = write_request(id, 0);
        play.hear_with(NodeId::Client(client), message, Payload::from(vec![1; 4096]));
        play.sent()
    };
    let is_prepare = |(_, message): &(NodeId, Message)| matches!(message, Message::Prepare { .. });
    let is_refusal = |(to, message): &(NodeId, Message)| {
        let refusal = Message::Reply { sequence: 1, result: Err(IoError::TimedOut) };
        *to == NodeId::Client(client) && *message == refusal
    };
    assert!(ask(&mut play).iter().any(is_prepare));
    play.now += time;
    let now = play.now;
    play.gateway.wake(now, &mut play.fx);
    play.gateway.settle(now, &mut play.fx);
    assert!(play.sent().iter().any(is_refusal));
    let again = ask(&mut play);
    assert!(again.iter().any(is_refusal) && !again.iter().any(is_prepare), "{again:?}");
}

/// An operator sets a time because requests hang: it holds for those that hang, and for what waits behind them.
#[test]
fn a_time_that_is_set_later_holds_for_what_was_begun_before() {
    let (seconds, never) = (core::time::Duration::from_secs, wire::IoTimeout::Never);
    let volume = VolumeInfo { io_timeout: never, ..info(VOLUME, "v") };
    let mut play = Play::new(core::slice::from_ref(&volume));
    let client = ClientId(77);
    for (sequence, offset) in [(1, 0), (2, 512)] {
        let id = RequestId { client, sequence };
        let message = write_request(id, offset);
        play.hear_with(NodeId::Client(client), message, Payload::from(vec![1; 512]));
        play.now += seconds(1);
    }
    let timed = VolumeInfo { io_timeout: wire::IoTimeout::After(seconds(3)), ..volume };
    let (views, deleted, bricks) = (Vec::new(), Vec::new(), Vec::new());
    play.hear(NodeId::Directory, Message::Published { views, volumes: vec![timed], deleted, bricks });
    play.sent();
    for sequence in [1, 2] {
        play.now += seconds(1);
        let now = play.now;
        play.gateway.wake(now, &mut play.fx);
        play.gateway.settle(now, &mut play.fx);
        let refusal = Message::Reply { sequence, result: Err(IoError::TimedOut) };
        let refused: Vec<Message> = play.sent().into_iter().map(|(_, message)| message).collect();
        assert!(refused.contains(&refusal), "{sequence}: {refused:?}");
    }
}

const OF_VOLUME: StreamId = StreamId(3);
const OF_CERTIFICATE: StreamId = StreamId(9);

impl Play {
    /// A gateway with a volume of a stream of its own.
    fn with_streams() -> Play {
        Play::new(&[VolumeInfo { stream: OF_VOLUME, ..info(VOLUME, "v") }])
    }

    /// Begins I/O of the session, or goes on with it, and says for which streams bricks are asked.
    fn streams_of(&mut self, io: Io, payload: Payload) -> Vec<(u64, StreamId)> {
        let (session, volume, stream) = (SESSION, VOLUME, self.stream);
        self.tag += 1;
        self.step(GatewayEvent::Io { session, tag: self.tag, volume, stream, io, payload });
        self.streams()
    }

    fn streams(&mut self) -> Vec<(u64, StreamId)> {
        let of = |(_, message)| match message {
            Message::Read { operation, service, .. } | Message::Prepare { operation, service, .. } => {
                Some((operation, service.stream))
            }
            _ => None,
        };
        self.sent().into_iter().filter_map(of).collect()
    }
}

#[test]
fn what_a_session_asks_belongs_to_the_stream_of_its_certificate() {
    let mut play = Play::with_streams();
    for (certificate, meant) in [(Some(OF_CERTIFICATE), OF_CERTIFICATE), (None, OF_VOLUME)] {
        play.stream = certificate;
        // One extent after the other is read: several parts are planned together.
        let read = Io::Read { offset: 0, length: 16 << 20 };
        let zero = Io::Zero { offset: 0, length: 4096 };
        let write = Io::Write { offset: 4096 };
        for (io, length) in [(read, 0), (zero, 0), (write, 4096)] {
            let asked = play.streams_of(io.clone(), Payload::from(vec![1; length]));
            assert!(
                !asked.is_empty() && asked.iter().all(|(_, stream)| *stream == meant),
                "{io:?}: {asked:?}"
            );
        }
    }
}

/// A part of a block is read, then written, and the next of that block waits for it: all of it belongs to the stream.
#[test]
fn each_step_of_a_patch_belongs_to_the_stream_of_its_request() {
    let mut play = Play::with_streams();
    let patch = |play: &mut Play, stream: StreamId, offset| {
        play.stream = Some(stream);
        play.streams_of(Io::Write { offset }, Payload::from(vec![1; 512]))
    };
    let brick = play.read(VOLUME, 0)[0].0;
    let first = patch(&mut play, OF_CERTIFICATE, 512);
    assert!(patch(&mut play, StreamId(8), 1024).is_empty(), "patches of one block take turns");
    let (operation, stream) = first[0];
    assert_eq!(stream, OF_CERTIFICATE);
    play.shows((brick, operation, Span { volume: HEAD, lba: 0, count: 1 }), Stamp(99 << 32));
    let (operation, stream) = play.streams()[0];
    assert_eq!(stream, OF_CERTIFICATE, "its write");
    let outcome = PrepareOutcome::Prepared { previous: Vec::new() };
    play.hear(brick, Message::Prepared { operation, outcome, wait: Wait::default() });
    let next: Vec<StreamId> = play.streams().into_iter().map(|(_, stream)| stream).collect();
    assert_eq!(next, [StreamId(8)], "each goes on as what it is");
}

/// The ledger: each brick of the volume hears what the certificate's stream was served at the others, and nothing of the volume's stream.
#[test]
fn bricks_hear_what_the_stream_of_a_certificate_was_served_elsewhere() {
    let mut play = Play::with_streams();
    play.stream = Some(OF_CERTIFICATE);
    let told = |play: &mut Play| {
        play.now += core::time::Duration::from_millis(100);
        let now = play.now;
        play.gateway.wake(now, &mut play.fx);
        let of = |(to, message)| match message {
            Message::Elsewhere { of } => Some((to, of)),
            _ => None,
        };
        play.sent().into_iter().filter_map(of).collect::<Vec<_>>()
    };
    play.read(VOLUME, 0);
    assert_eq!(told(&mut play), [], "bricks are introduced to the stream");
    let asked = play.io(VOLUME, Io::Write { offset: 0 }, Payload::from(vec![1; 4096]))[0].0;
    let heard = told(&mut play);
    assert_eq!(heard.len() as u64, GROUPS - 1, "{heard:?}");
    let service = Service { stream: OF_CERTIFICATE, delay: 9 };
    assert!(heard.iter().all(|(to, of)| *to != asked && *of == [service]), "{heard:?}");
}

#[test]
fn a_client_belongs_to_the_stream_of_its_certificate_whatever_it_says() {
    let mut play = Play::with_streams();
    let client = ClientId(77);
    let mut sequence = 0;
    let mut ask = |play: &mut Play, claimed: StreamId| {
        sequence += 1;
        let id = RequestId { client, sequence };
        let (io, service) = (Io::Read { offset: 0, length: 4096 }, Service { stream: claimed, delay: 0 });
        play.hear(NodeId::Client(client), Message::Request { id, floor: 1, volume: VOLUME, io, service });
        play.streams().into_iter().map(|(_, stream)| stream).collect::<Vec<_>>()
    };
    assert_eq!(ask(&mut play, OF_CERTIFICATE), [OF_VOLUME], "its certificate names none");
    play.step(GatewayEvent::Up(NodeId::Client(client)));
    play.step(GatewayEvent::Certified { client, stream: OF_CERTIFICATE });
    assert_eq!(ask(&mut play, OF_VOLUME), [OF_CERTIFICATE]);
    play.step(GatewayEvent::Down(NodeId::Client(client)));
    assert_eq!(ask(&mut play, OF_CERTIFICATE), [OF_VOLUME], "another connection, another certificate");
}

#[test]
fn a_volume_whose_clients_coordinate_by_themselves_is_served_to_nobody_else() {
    let protocol = "direct,ts-wait,2pcw+read".parse().expect("a protocol");
    let volume = VolumeInfo { protocol, ..info(VOLUME, "v") };
    let opened = |serves: Serves, from: NodeId| {
        let (name, address) = (String::new(), String::new());
        let config = GatewayConfig { id: GatewayId(1), name, address, serves, beside: None };
        let now = Time(1_000_000_000_000);
        let mut play = Play { gateway: Gateway::new(config, now), now, fx: Vec::new(), tag: 0, stream: None };
        play.hear(
            NodeId::Directory,
            Message::Registered { first_writer: 4, time: base::ClusterTime::FIRST, loan: None },
        );
        match from {
            NodeId::Client(_) => {
                play.hear(from, Message::Attach { operation: 7, volume: volume.name.clone() })
            }
            _ => play.step(GatewayEvent::Open { session: SESSION, name: volume.name.clone() }),
        }
        let asked = play.sent().into_iter().find_map(|(_, message)| match message {
            Message::OpenVolume { operation, .. } => Some(operation),
            _ => None,
        });
        let map = VolumeMap {
            volume: volume.clone(),
            groups: groups(1),
            bricks: Vec::new(),
            stream_bricks: Vec::new(),
        };
        let map = Ok(Box::new(map));
        play.hear(NodeId::Directory, Message::VolumeOpened { operation: asked.expect("asked"), map });
        let told = |effect: &GatewayEffect| match effect {
            GatewayEffect::Opened { volume, .. } => Some(volume.clone()),
            GatewayEffect::Send { packet, .. } => match &packet.message {
                Message::Attached { volume, .. } => Some(volume.clone()),
                _ => None,
            },
            _ => None,
        };
        play.fx.iter().find_map(told).expect("the waiter is told")
    };
    let (session, client) = (NodeId::Directory, NodeId::Client(ClientId(9)));
    assert!(opened(Serves::OwnClient, session).is_ok());
    for (serves, from) in [(Serves::OwnClient, client), (Serves::Anyone, session), (Serves::Anyone, client)] {
        let error = opened(serves, from).expect_err("it is served to nobody else").to_string();
        assert!(error.contains("attach --direct"), "{error}");
    }
}

#[test]
fn a_request_tells_at_whom_it_waits_since_when_and_who_refused_it() {
    let mut play = Play::new(&[info(VOLUME, "v")]);
    let asked = play.read(VOLUME, 0)[0];
    let (brick, operation, _) = asked;
    let awaited = Awaited::Session { session: SESSION, tag: play.tag };
    play.now += Duration::from_secs(3);
    play.step(GatewayEvent::Computed { number: u64::MAX >> 1, made: Ok(Vec::new()) });
    let told = play.gateway.describe(awaited).join("\n");
    assert!(told.starts_with("has it since 3.0s; 1 of its parts are not done\n"), "{told}");
    assert!(told.contains(&format!("asked {brick} 3.0s ago (Read, operation {operation})")), "{told}");

    let busy = Message::ReadDone { operation, outcome: ReadOutcome::Busy, wait: Wait::default() };
    play.hear(brick, busy);
    play.now += Duration::from_millis(1);
    play.step(GatewayEvent::Computed { number: u64::MAX >> 1, made: Ok(Vec::new()) });
    let told = play.gateway.describe(awaited).join("\n");
    assert!(told.contains(&format!("{brick} refused 1.0ms ago: too much waits there")), "{told}");
    let client = ClientId(5);
    let other = Awaited::Client(RequestId { client, sequence: 1 });
    assert_eq!(play.gateway.describe(other), ["it has no such request, or has answered it"]);
}

/// Found from outside: one message asked for 4 GiB, which the gateway then held, and forty held 7.5 GiB after their client was gone.
#[test]
fn what_clients_ask_for_is_bounded_and_let_go_of_when_they_are_gone() {
    let mut play = Play::new(&[info(VOLUME, "v")]);
    let client = NodeId::Client(ClientId(77));
    let ask = |play: &mut Play, sequence, io| {
        let id = RequestId { client: ClientId(77), sequence };
        let service = Service::default();
        play.hear(client, Message::Request { id, floor: 1, volume: VOLUME, io, service });
    };
    let blocks = |questions: &[(NodeId, u64, Span)]| -> u64 {
        questions.iter().map(|(_, _, span)| u64::from(span.count)).sum()
    };
    ask(&mut play, 1, Io::Read { offset: 0, length: u32::MAX });
    let refused = Message::Reply { sequence: 1, result: Err(IoError::OutOfRange) };
    assert_eq!(play.sent(), [(client, refused)]);
    ask(&mut play, 2, Io::Read { offset: 0, length: (32 << 20) + 1 });
    assert!(play.questions().is_empty());
    for sequence in 3..43 {
        ask(&mut play, sequence, Io::Read { offset: 0, length: 32 << 20 });
    }
    let asked = blocks(&play.questions());
    assert!((1..=(64 << 20) / BLOCK as u64).contains(&asked), "{asked} blocks are asked for at once");
    assert_eq!(play.gateway.requests_under_way(), 40);
    // Another client has its share all the same.
    let other = ClientId(78);
    let (id, io) = (RequestId { client: other, sequence: 1 }, Io::Read { offset: 0, length: 4096 });
    play.hear(
        NodeId::Client(other),
        Message::Request { id, floor: 1, volume: VOLUME, io, service: Service::default() },
    );
    assert_eq!(blocks(&play.questions()), 1);
    play.step(GatewayEvent::Down(client));
    assert_eq!(play.gateway.requests_under_way(), 1, "nobody waits for the others");
    assert!(play.sent().iter().all(|(to, _)| *to != client), "what is let go of is not answered");
    play.gateway.check(Depth::Deep);
}

/// Each short command took one of 16,384 numbers.
#[test]
fn who_writes_no_volume_takes_no_number_and_does_not_ask_again_and_again() {
    let asked = |serves, seconds: u64| {
        let (name, address) = (String::new(), String::new());
        let config = GatewayConfig { id: GatewayId(1), name, address, serves, beside: None };
        let now = Time(1_000_000_000_000);
        let (mut gateway, mut wanted) = (Gateway::new(config, now), Vec::new());
        for tenth in 0..seconds * 10 {
            let (now, mut fx) = (now + Duration::from_millis(100) * tenth as u32, Vec::new());
            gateway.wake(now, &mut fx);
            wanted.extend(fx.drain(..).filter_map(|effect| match effect {
                GatewayEffect::Send { packet, .. } => match packet.message {
                    Message::Register { writers, .. } => Some(writers),
                    _ => None,
                },
                _ => None,
            }));
            let first_writer = base::StampClock::WRITERS;
            let packet =
                Message::Registered { first_writer, time: base::ClusterTime::FIRST, loan: None }.into();
            gateway.step(now, GatewayEvent::Packet { from: NodeId::Directory, packet }, &mut fx);
        }
        wanted
    };
    assert_eq!(asked(Serves::Nobody, 5), [0; 3], "a sign of life every two seconds");
    assert!(asked(Serves::OwnClient, 5).len() > 10, "without a number it asks again soon");
}

/// What the gateway asks of the list of all volumes: under which number, and from which id on.
fn asked_for_list(play: &mut Play) -> Option<(u64, VolumeId)> {
    core::mem::take(&mut play.fx).into_iter().rev().find_map(|effect| match effect {
        GatewayEffect::Send { to: NodeId::Directory, packet } => match packet.message {
            Message::Admin { operation, request: AdminRequest::ListVolumes { from: Some(from) } } => {
                Some((operation, from))
            }
            _ => None,
        },
        _ => None,
    })
}

fn page(operation: u64, ids: &[u64]) -> Message {
    let volumes = ids.iter().map(|id| info(VolumeId(*id), &format!("v{id}"))).collect();
    Message::AdminDone { operation, result: Ok(AdminReply::Volumes(volumes)) }
}

#[test]
fn the_list_of_volumes_is_put_together_of_pages() {
    let mut play = Play::new(&[]);
    play.step(GatewayEvent::List { session: SESSION });
    let (first, from) = asked_for_list(&mut play).expect("asked");
    assert_eq!(from, VolumeId(0));
    play.hear(NodeId::Directory, page(first, &[2, 5]));
    let (second, from) = asked_for_list(&mut play).expect("asked for what follows");
    assert_eq!(from, VolumeId(6));
    play.hear(NodeId::Directory, page(first, &[2, 5]));
    assert_eq!(asked_for_list(&mut play), None, "an answer that came twice");
    play.hear(NodeId::Directory, page(second, &[9]));
    let (third, _) = asked_for_list(&mut play).expect("asked for what follows");
    play.hear(NodeId::Directory, page(third, &[]));
    assert_eq!(listed(&mut play), [2, 5, 9]);
    // The directory of an earlier release answers with all of it, whatever is asked.
    play.step(GatewayEvent::List { session: SESSION });
    let (first, _) = asked_for_list(&mut play).expect("asked");
    play.hear(NodeId::Directory, page(first, &[2, 5]));
    let (second, _) = asked_for_list(&mut play).expect("asked for what follows");
    play.hear(NodeId::Directory, page(second, &[2, 5]));
    assert_eq!(listed(&mut play), [2, 5]);
}

fn listed(play: &mut Play) -> Vec<u64> {
    let listed = core::mem::take(&mut play.fx).into_iter().find_map(|effect| match effect {
        GatewayEffect::Listed { session: SESSION, volumes } => volumes.ok(),
        _ => None,
    });
    listed.expect("a list").iter().map(|volume| volume.id.0).collect()
}
