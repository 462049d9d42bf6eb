//! Peers over real sockets on loopback: plain and TLS, strangers, large payloads, broken connections.

use crate::common::Authority;
use base::{BrickId, ClientId, ClusterId, GatewayId, NodeId, Payload, StreamId, Time};
use host::address::Address;
use host::clock::Clock;
use host::transport::{PeerEvent, Peers};
use host::{AdminOptions, NodeOptions, Security, identity};
use mio::{Events, Poll};
use proptest::prelude::*;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;
use wire::{AdminRequest, Message, Packet, ReadOutcome, Spoken, Version, Wait};

const OURS: ClusterId = ClusterId([1; 16]);
const BRICK: NodeId = NodeId::Brick(BrickId(3));
const OTHER_BRICK: NodeId = NodeId::Brick(BrickId(4));
const GATEWAY: NodeId = NodeId::Gateway(GatewayId(77));
/// Far above what anything here takes; only a failure waits for so long.
const LIMIT: Duration = Duration::from_secs(20);

/// A node that only talks.
struct Node {
    me: NodeId,
    poll: Poll,
    events: Events,
    peers: Peers,
    clock: Clock,
    heard: Vec<PeerEvent>,
}

impl Node {
    fn new(me: NodeId, cluster: ClusterId, security: &Security) -> Node {
        let poll = Poll::new().unwrap();
        let peers = Peers::new(me, cluster, security, poll.registry(), 1).unwrap();
        Node { me, poll, events: Events::with_capacity(64), peers, clock: Clock::start(), heard: Vec::new() }
    }

    /// A gateway with a certificate of its own.
    fn gateway(authority: &Authority) -> Node {
        let security = authority.security("gateway.brickwork");
        let id = identity::of_gateway(&security, 77).unwrap();
        Node::new(NodeId::Gateway(id), OURS, &security)
    }

    fn plain(me: NodeId) -> Node {
        Node::new(me, OURS, &Security::Plain)
    }

    fn listen(&mut self) -> Address {
        self.peers.listen(&"127.0.0.1:0".parse().unwrap()).unwrap()
    }

    fn learn(&mut self, node: NodeId, address: &Address) {
        let (now, heard) = (self.now(), &mut self.heard);
        self.peers.learn(node, address, now, &mut |event| heard.push(event));
    }

    fn now(&self) -> Time {
        self.clock.now()
    }

    fn send(&mut self, to: NodeId, packet: &Packet) {
        self.peers.send(to, packet);
    }

    fn turn(&mut self) {
        self.turn_at(self.now());
    }

    /// A turn at a time of which its clock knows nothing.
    fn turn_at(&mut self, now: Time) {
        self.poll.poll(&mut self.events, Some(Duration::from_millis(1))).unwrap();
        let heard = &mut self.heard;
        for event in &self.events {
            self.peers.ready(event, now, &mut |event| heard.push(event));
        }
        self.peers.read_on(now, &mut |event| heard.push(event));
        self.peers.tick(now, &mut |event| heard.push(event));
        self.peers.flush(now, &mut |event| heard.push(event));
    }

    fn has_heard(&self, what: &PeerEvent) -> bool {
        self.heard.contains(what)
    }

    fn packets(&self) -> Vec<&Packet> {
        let packet = |event: &'_ PeerEvent| matches!(event, PeerEvent::Packet { .. });
        let heard = self.heard.iter().filter(|event| packet(event));
        heard
            .map(|event| if let PeerEvent::Packet { packet, .. } = event { packet } else { unreachable!() })
            .collect()
    }
}

/// Lets both run until `done`.
fn until(a: &mut Node, b: &mut Node, done: impl Fn(&Node, &Node) -> bool) {
    let limit = a.now() + LIMIT;
    while !done(a, b) {
        assert!(a.now() < limit, "not done within {LIMIT:?}: {:?} / {:?}", a.heard, b.heard);
        a.turn();
        b.turn();
    }
}

fn connected(gateway: &mut Node, brick: &mut Node) {
    let address = brick.listen();
    gateway.learn(BRICK, &address);
    until(gateway, brick, |g, b| g.has_heard(&PeerEvent::Up(BRICK)) && b.has_heard(&PeerEvent::Up(g.me)));
}

/// Two bricks: the first may call the second on demand.
fn two_bricks(mut first: Node, mut second: Node) -> (Node, Node) {
    let address = second.listen();
    let (now, heard) = (first.now(), &mut first.heard);
    first.peers.learn_on_demand(OTHER_BRICK, &address, now, &mut |event| heard.push(event));
    (first, second)
}

/// A brick calls another when it has something to say, and the other answers.
fn converse(first: Node, second: Node) {
    let (mut first, mut second) = two_bricks(first, second);
    let start = first.now();
    until(&mut first, &mut second, |f, _| f.now().since(start) > Duration::from_millis(400));
    assert_eq!(first.peers.counters().connections, 0, "nobody is called for nothing");
    let question = packet(1, bytes(70_000, 3));
    first.send(OTHER_BRICK, &question);
    first.send(OTHER_BRICK, &packet(2, Payload::new()));
    until(&mut first, &mut second, |_, s| s.packets().len() == 2);
    assert_eq!((second.packets()[0], &second.heard[0]), (&question, &PeerEvent::Up(BRICK)));
    assert_eq!(first.heard, [PeerEvent::Up(OTHER_BRICK)]);
    second.send(BRICK, &packet(3, Payload::new()));
    until(&mut first, &mut second, |f, _| f.packets().len() == 1);
}

#[test]
fn bricks_call_each_other_when_they_have_something_to_say() {
    converse(Node::plain(BRICK), Node::plain(OTHER_BRICK));
    let authority = Authority::new();
    let brick = |node, name| Node::new(node, OURS, &authority.security(name));
    converse(brick(BRICK, "brick-3.bricks.brickwork"), brick(OTHER_BRICK, "brick-4.bricks.brickwork"));
}

#[test]
fn a_gateway_cannot_pass_for_a_brick() {
    let authority = Authority::new();
    let node = |node, name| Node::new(node, OURS, &authority.security(name));
    let impostor = node(BRICK, "gateway.brickwork");
    let (mut impostor, mut brick) = two_bricks(impostor, node(OTHER_BRICK, "brick-4.bricks.brickwork"));
    impostor.send(OTHER_BRICK, &packet(1, Payload::new()));
    until(&mut impostor, &mut brick, |_, b| b.peers.counters().broken == 1);
    assert!(brick.heard.is_empty(), "{:?}", brick.heard);
}

#[test]
fn connections_on_demand_end_when_nothing_was_said_for_long() {
    let (mut first, mut second) = two_bricks(Node::plain(BRICK), Node::plain(OTHER_BRICK));
    first.send(OTHER_BRICK, &packet(1, Payload::new()));
    until(&mut first, &mut second, |_, s| s.packets().len() == 1);
    let start = first.now();
    until(&mut first, &mut second, |_, s| s.has_heard(&PeerEvent::Down(BRICK)));
    assert!(first.now().since(start) > Duration::from_secs(5), "pings alone keep it for a while");
    assert!(first.has_heard(&PeerEvent::Down(OTHER_BRICK)));
    first.send(OTHER_BRICK, &packet(2, Payload::new()));
    until(&mut first, &mut second, |_, s| s.packets().len() == 2);
}

#[test]
fn a_brick_that_hangs_up_is_called_for_what_is_said_and_not_for_ever() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let mut first = Node::plain(BRICK);
    let (now, address) = (first.now(), listener.local_addr().unwrap().to_string().parse().unwrap());
    first.peers.learn_on_demand(OTHER_BRICK, &address, now, &mut |_| {});
    let mut calls = 0;
    let mut turns = |first: &mut Node, length: Duration, enough: u64| {
        let limit = first.now() + length;
        while first.now() < limit && first.peers.counters().broken < enough {
            first.turn();
            calls += u64::from(listener.accept().is_ok());
        }
        calls
    };
    for sent in 1..4 {
        first.send(OTHER_BRICK, &packet(sent, Payload::new()));
        assert_eq!(turns(&mut first, LIMIT, sent), sent);
    }
    assert_eq!(turns(&mut first, Duration::from_secs(2), u64::MAX), 3, "and then only for something to say");
}

/// What a gateway hears of `caller` before its first packet.
fn heard_of(
    authority: &Authority,
    names: &[&str],
    caller: impl Fn(&Security) -> NodeId,
) -> (NodeId, Vec<PeerEvent>) {
    let security = Security::Tls(authority.certify_all(names));
    let mut gateway = Node::gateway(authority);
    let mut caller = Node::new(caller(&security), OURS, &security);
    let address = gateway.listen();
    caller.learn(gateway.me, &address);
    until(&mut gateway, &mut caller, |gateway, caller| caller.has_heard(&PeerEvent::Up(gateway.me)));
    caller.send(gateway.me, &packet(1, Payload::new()));
    until(&mut gateway, &mut caller, |gateway, _| !gateway.packets().is_empty());
    let heard =
        gateway.heard.into_iter().take_while(|event| !matches!(event, PeerEvent::Packet { .. })).collect();
    (caller.me, heard)
}

/// A gateway knows the stream before the first request comes.
#[test]
fn a_client_is_known_by_the_stream_that_its_certificate_names() {
    let authority = Authority::new();
    let (role, stream) = ("client.brickwork", "stream-12.streams.brickwork");
    let client = |security: &Security| NodeId::Client(identity::of_client(security, 5).unwrap());
    let (me, heard) = heard_of(&authority, &[role, stream], client);
    let NodeId::Client(id) = me else { panic!("{me} is no client") };
    assert_eq!(heard, [PeerEvent::Up(me), PeerEvent::Certified { client: id, stream: StreamId(12) }]);
    let (me, heard) = heard_of(&authority, &[role], client);
    assert_eq!(heard, [PeerEvent::Up(me)]);
    let (me, heard) = heard_of(&authority, &[role, stream, "stream-13.streams.brickwork"], client);
    assert_eq!(heard, [PeerEvent::Up(me)], "which one is meant?");
    let (_, heard) = heard_of(&authority, &["brick-3.bricks.brickwork", stream], |_| BRICK);
    assert_eq!(heard, [PeerEvent::Up(BRICK)], "a brick is of no stream");
}

/// Found from outside: a gateway's certificate was good for the id of every gateway, and its hellos alone kept the real one from its bricks.
#[test]
fn nobody_has_the_id_of_another_gateway_or_client() {
    let authority = Authority::new();
    let brick = || Node::new(BRICK, OURS, &authority.security("brick-3.bricks.brickwork"));
    let real = Node::gateway(&authority).me;
    let other = |name| authority.security(name);
    refused(Node::new(real, OURS, &other("gateway.brickwork")), brick(), "closed by the other side");
    let client = identity::of_client(&other("client.brickwork"), 5).unwrap();
    refused(
        Node::new(NodeId::Client(client), OURS, &other("client.brickwork")),
        brick(),
        "closed by the other side",
    );
    // And nobody is an operator by an id alone.
    let own = other("client.brickwork");
    let claimed = NodeId::Client(ClientId::operator(identity::of_client(&own, 5).unwrap().0));
    refused(Node::new(claimed, OURS, &own), brick(), "closed by the other side");
}

/// A release of before draws its ids, and cannot show whose they are: it is let in as long as nobody else is there.
#[test]
fn an_earlier_releases_id_is_not_taken_from_somebody_who_is_there() {
    let authority = Authority::new();
    let mut brick = Node::new(BRICK, OURS, &authority.security("brick-3.bricks.brickwork"));
    let mut real = Node::gateway(&authority);
    let address = brick.listen();
    real.learn(BRICK, &address);
    until(&mut real, &mut brick, |r, b| {
        r.has_heard(&PeerEvent::Up(BRICK)) && b.has_heard(&PeerEvent::Up(r.me))
    });
    let mut thief = Node::new(real.me, OURS, &authority.security("gateway.brickwork"));
    thief.peers.speak(Spoken { oldest: Version(3), newest: Version(19) });
    thief.learn(BRICK, &address);
    until(&mut thief, &mut brick, |t, _| t.peers.last_failure(BRICK).is_some());
    assert!(!brick.has_heard(&PeerEvent::Down(real.me)), "{:?}", brick.heard);
    real.send(BRICK, &packet(9, Payload::new()));
    until(&mut real, &mut brick, |_, b| !b.packets().is_empty());
}

/// It waited for an answer to a question that it had not sent.
#[test]
fn a_command_that_the_directory_does_not_know_fails_at_once_and_says_so() {
    let mut directory = Node::plain(NodeId::Directory);
    directory.peers.speak(Spoken { oldest: Version(3), newest: Version(21) });
    let node = NodeOptions { cluster: OURS, security: Security::Plain, metrics: None };
    let options = AdminOptions { node, directory: directory.listen().to_string(), timeout: LIMIT };
    let request = AdminRequest::ListEvents { after: 0, most: 1 };
    let call = std::thread::spawn(move || host::admin_call(&options, request));
    let began = directory.now();
    while !call.is_finished() {
        directory.turn();
    }
    let why = call.join().unwrap().unwrap_err().to_string();
    assert!(why.contains("is of an earlier release") && why.contains("upgrade it first"), "{why}");
    assert!(directory.now().since(began) < LIMIT / 2);
}

fn packet(nonce: u64, payload: Payload) -> Packet {
    Packet { message: Message::Ping { nonce }, payload }
}

fn bytes(len: usize, seed: u8) -> Payload {
    Payload::from((0..len).map(|at| seed.wrapping_add((at / 3) as u8)).collect::<Vec<u8>>())
}

fn exchange(mut gateway: Node, mut brick: Node) {
    let sizes = [0, 1, 511, 512, 4096, 32 * 1024 - 1, 32 * 1024, 70_000, 1 << 20, 32 << 20, 4096, 3];
    // Made first: on a busy machine that takes so long that peers would hold each other for dead.
    let sent: Vec<Packet> =
        sizes.iter().enumerate().map(|(n, &size)| packet(n as u64, bytes(size, n as u8))).collect();
    connected(&mut gateway, &mut brick);
    for packet in &sent {
        gateway.send(BRICK, packet);
        brick.send(gateway.me, packet);
    }
    until(&mut gateway, &mut brick, |g, b| {
        g.packets().len() == sent.len() && b.packets().len() == sent.len()
    });
    for node in [&gateway, &brick] {
        assert!(node.packets().into_iter().eq(sent.iter()));
        let aligned = |packet: &&Packet| (packet.payload.parts()[0].as_ptr() as usize).is_multiple_of(4096);
        assert!(node.packets().iter().filter(|packet| packet.payload.len() >= 32 * 1024).all(aligned));
    }
}

#[test]
fn packets_of_all_sizes_pass_in_both_directions() {
    exchange(Node::plain(GATEWAY), Node::plain(BRICK));
}

#[test]
fn packets_of_all_sizes_pass_under_tls() {
    let authority = Authority::new();
    let brick = Node::new(BRICK, OURS, &authority.security("brick-3.bricks.brickwork"));
    exchange(Node::gateway(&authority), brick);
}

#[test]
fn unix_sockets_do_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let (mut gateway, mut brick) = (Node::plain(GATEWAY), Node::plain(BRICK));
    let address = brick.peers.listen(&Address::Unix(folder.path().join("socket"))).unwrap();
    gateway.learn(BRICK, &address);
    until(&mut gateway, &mut brick, |g, b| g.peers.is_up(BRICK) && b.peers.is_up(GATEWAY));
}

/// Calls, and checks that it is turned away, with a reason on the caller's side that has `hint` in it.
fn refused(caller: Node, brick: Node, hint: &str) {
    let (mut caller, mut brick) = (caller, brick);
    let address = brick.listen();
    caller.learn(BRICK, &address);
    until(&mut caller, &mut brick, |c, b| {
        c.peers.last_failure(BRICK).is_some()
            && (b.peers.counters().broken > 0 || c.peers.counters().broken > 1)
    });
    let why = caller.peers.last_failure(BRICK).unwrap();
    assert!(why.contains(hint), "{why}");
    assert!(caller.heard.is_empty(), "{:?}", caller.heard);
    assert!(brick.packets().is_empty(), "{:?}", brick.heard);
}

#[test]
fn another_cluster_is_refused() {
    refused(Node::new(GATEWAY, ClusterId([2; 16]), &Security::Plain), Node::plain(BRICK), "another cluster");
}

#[test]
fn who_answers_must_be_who_was_called() {
    refused(Node::plain(GATEWAY), Node::plain(NodeId::Brick(BrickId(4))), "it is brick-4, not brick-3");
}

/// Found from outside: a gateway that restarted at its address was called under its old id for ever, and each call ended the
/// connection to the new one.
#[test]
fn a_gateway_that_is_another_by_now_is_called_no_more() {
    let (mut client, mut gateway) = (Node::plain(NodeId::Client(ClientId(5))), Node::plain(GATEWAY));
    let (address, old) = (gateway.listen(), NodeId::Gateway(GatewayId(78)));
    client.learn(GATEWAY, &address);
    until(&mut client, &mut gateway, |client, _| client.has_heard(&PeerEvent::Up(GATEWAY)));
    client.learn(old, &address);
    until(&mut client, &mut gateway, |client, _| client.has_heard(&PeerEvent::Gone(old)));
    assert_eq!(client.peers.contacts(), 1);
    // That call may have taken the place of the connection; it is made again once, and stays.
    let start = client.now();
    until(&mut client, &mut gateway, |client, _| client.now().since(start) > Duration::from_secs(1));
    let before = client.peers.counters();
    until(&mut client, &mut gateway, |client, _| client.now().since(start) > Duration::from_secs(3));
    assert_eq!(client.peers.counters().connections, before.connections);
    assert!(client.peers.is_up(GATEWAY) && client.peers.last_failure(old).is_none());
    let (now, heard) = (client.now(), &mut client.heard);
    client.peers.forget(GATEWAY, now, &mut |event| heard.push(event));
    assert!(client.heard.ends_with(&[PeerEvent::Down(GATEWAY)]) && client.peers.contacts() == 0);
}

/// However many others say nothing, or half of it, a caller gets in within moments.
#[test]
fn callers_who_say_nothing_make_way() {
    for said in [&b""[..], b"BRKH\x01\0\0\0"] {
        let mut brick = Node::plain(BRICK);
        let address = brick.listen();
        let Address::Tcp(place) = &address else { unreachable!() };
        let mut crowd: Vec<TcpStream> = Vec::new();
        for _ in 0..400 {
            crowd.push(TcpStream::connect(place).unwrap());
            crowd.last_mut().unwrap().write_all(said).unwrap();
            brick.turn();
        }
        let mut gateway = Node::plain(GATEWAY);
        let start = gateway.now();
        gateway.learn(BRICK, &address);
        until(&mut gateway, &mut brick, |gateway, _| gateway.has_heard(&PeerEvent::Up(BRICK)));
        assert!(gateway.now().since(start) < Duration::from_secs(1), "{:?}", gateway.now().since(start));
        // Those that are left have seconds, and who is known has not.
        until(&mut gateway, &mut brick, |_, brick| brick.peers.counters().broken >= 400);
        assert!(gateway.peers.is_up(BRICK) && brick.peers.is_up(GATEWAY));
    }
}

#[test]
fn a_certificate_of_another_authority_is_refused() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let brick = Node::new(BRICK, OURS, &ours.security("brick-3.bricks.brickwork"));
    refused(Node::new(GATEWAY, OURS, &theirs.security("gateway.brickwork")), brick, "certificate");
}

#[test]
fn a_role_that_the_certificate_does_not_name_is_refused() {
    let ours = Authority::new();
    let brick = || Node::new(BRICK, OURS, &ours.security("brick-3.bricks.brickwork"));
    refused(
        Node::new(GATEWAY, OURS, &ours.security("client.brickwork")),
        brick(),
        "closed by the other side",
    );
    let other = Node::new(BRICK, OURS, &ours.security("brick-4.bricks.brickwork"));
    refused(Node::gateway(&ours), other, "certificate");
}

#[test]
fn plain_text_meets_no_tls() {
    let ours = Authority::new();
    let brick = Node::new(BRICK, OURS, &ours.security("brick-3.bricks.brickwork"));
    refused(Node::plain(GATEWAY), brick, "");
}

#[test]
fn plain_text_is_for_loopback() {
    let mut brick = Node::plain(BRICK);
    let error = brick.peers.listen(&"0.0.0.0:0".parse().unwrap()).unwrap_err().to_string();
    assert!(error.contains("configure TLS"), "{error}");
    let mut gateway = Node::plain(GATEWAY);
    gateway.learn(BRICK, &"192.0.2.1:9".parse().unwrap());
    let why = gateway.peers.last_failure(BRICK).unwrap();
    assert!(why.contains("configure TLS"), "{why}");
}

#[test]
fn a_stranger_gets_not_one_byte_and_harms_nobody() {
    let (mut gateway, mut brick) = (Node::plain(GATEWAY), Node::plain(BRICK));
    connected(&mut gateway, &mut brick);
    let Address::Tcp(place) = brick.listen() else { unreachable!() };
    let mut stranger = TcpStream::connect(place).unwrap();
    stranger.write_all(&[b'x'; 100]).unwrap();
    stranger.set_nonblocking(true).unwrap();
    until(&mut gateway, &mut brick, |_, b| b.peers.counters().broken == 1);
    let mut answer = Vec::new();
    // The end of the stream, or a reset: no byte either way.
    let _ = stranger.read_to_end(&mut answer);
    assert!(answer.is_empty());
    gateway.send(BRICK, &packet(1, Payload::new()));
    until(&mut gateway, &mut brick, |_, b| b.packets().len() == 1);
}

#[test]
fn connections_come_back_after_the_peer_does() {
    let (mut gateway, mut brick) = (Node::plain(GATEWAY), Node::plain(BRICK));
    let address = brick.listen();
    gateway.learn(BRICK, &address);
    until(&mut gateway, &mut brick, |g, _| g.has_heard(&PeerEvent::Up(BRICK)));
    drop(brick);
    let mut bystander = Node::plain(NodeId::Client(ClientId(5)));
    until(&mut gateway, &mut bystander, |g, _| g.has_heard(&PeerEvent::Down(BRICK)));
    gateway.heard.clear();
    gateway.send(BRICK, &packet(1, Payload::new()));
    assert_eq!(gateway.peers.counters().unroutable, 1);
    let mut brick = Node::plain(BRICK);
    brick.peers.listen(&address).unwrap();
    until(&mut gateway, &mut brick, |g, _| g.has_heard(&PeerEvent::Up(BRICK)));
}

#[test]
fn whoever_has_something_to_say_calls_soon_though_nobody_answered_for_long() {
    let mut gateway = Node::plain(GATEWAY);
    let place = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    gateway.learn(BRICK, &Address::Tcp(place.to_string()));
    let mut now = gateway.now();
    while gateway.peers.last_failure(BRICK).is_none() || gateway.now() + Duration::from_secs(10) > now {
        now += Duration::from_secs(1);
        gateway.turn_at(now);
        // A refusal is heard of in a turn after the call.
        gateway.turn_at(now);
    }
    let listener = TcpListener::bind(place).unwrap();
    listener.set_nonblocking(true).unwrap();
    now += Duration::from_millis(200);
    gateway.turn_at(now);
    assert!(listener.accept().is_err(), "after ten refusals it waits for half a second at least");
    gateway.send(BRICK, &packet(1, Payload::new()));
    gateway.turn_at(now);
    listener.accept().expect("there is something to say");
}

#[test]
fn a_silent_peer_is_down_and_a_living_one_is_not() {
    let (mut gateway, mut brick) = (Node::plain(GATEWAY), Node::plain(BRICK));
    connected(&mut gateway, &mut brick);
    let start = gateway.now();
    // Nothing is said for longer than a peer may be silent; pings alone keep it up.
    until(&mut gateway, &mut brick, |g, _| g.now().since(start) > Duration::from_millis(2500));
    assert!(!gateway.has_heard(&PeerEvent::Down(BRICK)) && !brick.has_heard(&PeerEvent::Down(GATEWAY)));
    // The brick stands still, its sockets open.
    let mut bystander = Node::plain(NodeId::Client(ClientId(5)));
    until(&mut gateway, &mut bystander, |g, _| g.has_heard(&PeerEvent::Down(BRICK)));
}

#[test]
fn what_a_peer_does_not_read_is_bounded() {
    let (mut gateway, mut brick) = (Node::plain(GATEWAY), Node::plain(BRICK));
    connected(&mut gateway, &mut brick);
    let large = packet(1, bytes(1 << 20, 1));
    for _ in 0..100 {
        gateway.send(BRICK, &large);
    }
    let counters = gateway.peers.counters();
    assert!(counters.dropped >= 36 && counters.sent >= 60, "{counters:?}");
    until(&mut gateway, &mut brick, |_, b| b.packets().len() as u64 == counters.sent);
}

proptest! {
    // A case that fails waits for `LIMIT`: looking for a smaller one would take hours.
    #![proptest_config(ProptestConfig { cases: 64, max_shrink_iters: 4, ..ProptestConfig::default() })]

    /// A peer that speaks in pieces of any size is understood.
    #[test]
    fn frames_come_through_cut_anywhere(
        sizes in proptest::collection::vec(prop_oneof![0usize..600, 30_000..40_000usize], 1..6),
        cuts in proptest::collection::vec(1usize..9000, 1..40),
    ) {
        let mut brick = Node::plain(BRICK);
        let Address::Tcp(place) = brick.listen() else { unreachable!() };
        let mut stream = TcpStream::connect(place).unwrap();
        stream.set_nodelay(true).unwrap();
        let sent: Vec<Packet> = sizes.iter().enumerate().map(|(n, &s)| packet(n as u64, bytes(s, n as u8))).collect();
        let mut left = hello();
        for packet in &sent {
            wire::frame::encode(Version::OLDEST, packet, &mut left).unwrap();
            packet.payload.parts().iter().for_each(|part| left.extend_from_slice(part));
        }
        let mut left = &left[..];
        for &cut in cuts.iter().cycle() {
            let (now, later) = left.split_at(cut.min(left.len()));
            stream.write_all(now).unwrap();
            brick.turn();
            left = later;
            if left.is_empty() {
                break;
            }
        }
        let limit = brick.now() + LIMIT;
        while brick.packets().len() < sent.len() {
            prop_assert!(brick.now() < limit);
            brick.turn();
        }
        prop_assert!(brick.packets().into_iter().eq(sent.iter()));
        prop_assert_eq!(&brick.heard[0], &PeerEvent::Up(GATEWAY));
    }
}

#[test]
fn a_peer_of_the_release_before_is_spoken_to_as_it_knows() {
    let mut brick = Node::plain(BRICK);
    let mut stream = introduced(&mut brick);
    let done = |queued| Message::ReadDone {
        operation: 7,
        outcome: ReadOutcome::Busy,
        wait: Wait { queued, ..Wait::default() },
    };
    brick.peers.send(GATEWAY, &Message::Cancelled { withdrawn: vec![1], late: vec![] }.into());
    brick.peers.send(GATEWAY, &done(9).into());
    brick.turn();
    assert_eq!(brick.peers.counters().unspoken, 1);
    let mut expected = hello();
    wire::frame::encode(Version::OLDEST, &done(0).into(), &mut expected).unwrap();
    let mut came = vec![0; expected.len()];
    stream.read_exact(&mut came).unwrap();
    let (greeting, frame) = came.split_at(hello().len());
    assert_eq!(
        greeting[4..8],
        Version::OLDEST.0.to_le_bytes(),
        "what an earlier release compares with its own"
    );
    assert_eq!(wire::frame::decode(Version::OLDEST, frame), Ok(Some((done(0).into(), frame.len()))));
}

/// How the gateway introduces itself in a release that speaks the oldest version alone, as `transport::hello` has it.
fn hello() -> Vec<u8> {
    let mut hello = b"BRKH".to_vec();
    hello.extend_from_slice(&Version::OLDEST.0.to_le_bytes());
    hello.extend_from_slice(&OURS.0);
    wire::Wire::append(&GATEWAY, &mut hello);
    hello.resize(40, 0);
    hello
}

/// A connection on which the gateway has introduced itself so.
fn introduced(node: &mut Node) -> TcpStream {
    let Address::Tcp(place) = node.listen() else { unreachable!() };
    let mut stream = TcpStream::connect(place).unwrap();
    stream.write_all(&hello()).unwrap();
    let limit = node.now() + LIMIT;
    while node.heard.is_empty() {
        assert!(node.now() < limit);
        node.turn();
    }
    stream
}

/// It closed the connection, and both sides began anew for ever.
#[test]
fn a_packet_that_is_too_long_is_not_sent_and_whoever_asked_is_told() {
    let mut directory = Node::plain(BRICK);
    let mut stream = introduced(&mut directory);
    let deleted = vec![base::VolumeId(1); wire::frame::MESSAGE_BYTES_MAX];
    let published = Message::Published { views: vec![], volumes: vec![], deleted, bricks: vec![] };
    let volume = wire::VolumeInfo::new(base::VolumeId(1), "v".repeat(60), 4096, "raid1x3");
    let listed = wire::AdminReply::Volumes(vec![volume; 100_000]);
    directory.peers.send(GATEWAY, &published.into());
    directory.peers.send(GATEWAY, &Message::AdminDone { operation: 7, result: Ok(listed) }.into());
    directory.turn();
    assert_eq!(directory.peers.counters().too_long, 2);
    let mut came = vec![0; hello().len()];
    stream.read_exact(&mut came).unwrap();
    let mut header = [0; wire::frame::HEADER_BYTES];
    stream.read_exact(&mut header).unwrap();
    let header = wire::frame::Header::parse(&header).unwrap();
    let mut message = vec![0; header.message_bytes];
    stream.read_exact(&mut message).unwrap();
    let Message::AdminDone { operation: 7, result: Err(why) } =
        header.message(Version::OLDEST, &message).unwrap()
    else {
        panic!("no answer");
    };
    assert!(why.to_string().contains("longer than the 4194304 allowed"), "{why}");
}
