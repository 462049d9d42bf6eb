//! What a volume of many groups, and many volumes, cost the directory: in its machine's time, in its store, and in messages.
//!
//! ```text
//! cargo bench -p brickwork-roles --bench directory
//! cargo bench -p brickwork-roles --bench directory -- leases   # heartbeats and renewals of 10, 100 and 1,000 bricks
//! cargo bench -p brickwork-roles --bench directory -- large    # up to 1,000 bricks and 100,000 volumes: minutes, and some gigabytes
//! ```
//!
//! The bricks answer at once and nothing is lost or late, so that all time is the machine's own. Stored bytes are those of keys
//! and values; the host's store adds its own.

#![allow(clippy::disallowed_methods, reason = "a bench reads the clock")]

use base::{BrickId, ClientId, GatewayId, Machine, NodeId, StreamId, Time, VolumeId};
use core::time::Duration;
use roles::directory::{Directory, DirectoryConfig, DirectoryEffect, DirectoryEvent};
use rules::layout::placement::{self, Candidate, Wanted};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Instant;
use wire::{
    AdminReply, AdminRequest, BrickStatus, CatchUp, IoTimeout, JournalReport, Message, Packet, Placement,
    Protocol, ReadPolicy, Run, Space, StatusPart, StreamReport, Wire,
};

const ADMIN: NodeId = NodeId::Client(ClientId::operator(1));
/// The number of each brick's process.
const RUN: u64 = 1;
const GATEWAY: NodeId = NodeId::Gateway(GatewayId(1));
/// Bricks, and the groups of the volume. On few bricks, a brick's death concerns most groups.
const SIZES: [(u32, u32); 4] = [(32, 64), (32, 256), (32, 1024), (5, 1024)];

/// Clusters of many volumes.
const BRICKS_OF_MANY: u32 = 12;
const GROUPS_OF_MANY: u32 = 8;

/// Large clusters: bricks, and volumes.
const LARGE_BRICKS: [u32; 3] = [10, 100, 1000];
const LARGE_VOLUMES: [u64; 3] = [1000, 10_000, 100_000];

/// What leases cost is measured with so many volumes, and so many times.
const LEASED_VOLUMES: u64 = 1000;
const LEASE_ROUNDS: u32 = 100;

fn main() {
    let mut arguments = std::env::args().skip_while(|argument| argument != "large").skip(1);
    if std::env::args().any(|argument| argument == "large") {
        let mut number = || arguments.next().and_then(|argument| argument.parse().ok());
        return match (number(), number()) {
            (Some(bricks), Some(volumes)) => one_large(bricks as u32, volumes),
            _ => large(),
        };
    }
    if std::env::args().any(|argument| argument == "leases") {
        return leases();
    }
    println!("a volume raid1x3, hashed: milliseconds in the directory's machine, bytes stored, bytes sent");
    for (bricks, groups) in SIZES {
        println!(
            "\n{:>8}  {:>32}{:>10}{:>12}{:>12}",
            "groups",
            format!("on {bricks} bricks"),
            "ms",
            "stored",
            "sent"
        );
        let mut bench = Bench::new(bricks);
        bench.report(groups, "a volume is made", |bench| bench.create(groups));
        println!(
            "{groups:>8}  {:>32}{:>34}",
            "a brick's heartbeat, up to date",
            bench.heartbeat_answer(true)
        );
        println!(
            "{groups:>8}  {:>32}{:>34}",
            "the same, a brick that knows none",
            bench.heartbeat_answer(false)
        );
        println!("{groups:>8}  {:>32}{:>34}", "the map for a gateway", bench.map());
        bench.report(groups, "a second without events", |bench| bench.pass(10));
        bench.report(groups, "a snapshot", Bench::snapshot);
        bench.report(groups, "a brick dies", Bench::kill);
        bench.report(groups, "it returns and catches up", Bench::revive);
        bench.report(groups, "it dies and is given up", Bench::give_up);
        bench.report(groups, "a second of its rebuild", |bench| bench.pass(10));
        bench.report(groups, "the status meanwhile", |bench| drop(bench.ask(AdminRequest::STATUS)));
        bench.report(groups, "others have caught up", Bench::replace);
    }
    println!(
        "\nvolumes raid1x3 of {GROUPS_OF_MANY} groups each on {BRICKS_OF_MANY} bricks that beat ten times a second: milliseconds"
    );
    println!("{:>8}{:>14}{:>14}{:>14}{:>14}", "volumes", "100 more", "idle second", "status", "a brick dies");
    for volumes in [1000, 3000, 10_000] {
        many(volumes);
    }
    println!(
        "\nmilliseconds to choose the bricks of 1024 groups of raid1x3, without and with racks of hosts"
    );
    println!("{:>8}{:>12}{:>12}{:>12}", "bricks", "hashed", "weighted", "periodic");
    for bricks in [32, 128, 512] {
        for domains in [&[][..], &["rack", "host"]] {
            let cost = |rule| choice_ms(rule, bricks, domains);
            let [hashed, weighted, periodic] =
                [Placement::Hashed, Placement::Weighted, Placement::Periodic].map(cost);
            println!("{bricks:>8}{hashed:>12.1}{weighted:>12.1}{periodic:>12.1}");
        }
    }
}

/// What it costs to keep the leases of all bricks, in a cluster where nothing changes.
fn leases() {
    println!(
        "{LEASED_VOLUMES} volumes raid1x3 of {GROUPS_OF_MANY} groups each: microseconds of the directory's machine, bytes both ways, and the share of\n\
         one processor that heartbeats (2.5 a second and brick), renewals (7.5) and looks (10 a second) take"
    );
    println!(
        "{:>8}{:>14}{:>8}{:>14}{:>8}{:>10}{:>12}",
        "bricks", "a heartbeat", "bytes", "a renewal", "bytes", "a look", "processor"
    );
    for bricks in LARGE_BRICKS {
        let mut bench = Bench::new(bricks);
        bench.fill(LEASED_VOLUMES);
        let [heartbeat, renewal] = [false, true].map(|renews| {
            bench.sent = 0;
            let ms = bench.ms(|bench| (0..LEASE_ROUNDS).for_each(|_| bench.beat(renews)));
            let count = f64::from(LEASE_ROUNDS * bricks);
            (1000.0 * ms / count, bench.sent as f64 / count)
        });
        let look = bench.ms(|bench| bench.look(LEASE_ROUNDS)) * 1000.0 / f64::from(LEASE_ROUNDS);
        let per_second = f64::from(bricks) * (2.5 * heartbeat.0 + 7.5 * renewal.0) + 10.0 * look;
        println!(
            "{bricks:>8}{:>14.2}{:>8.0}{:>14.2}{:>8.0}{look:>10.0}{:>10.2} %",
            heartbeat.0,
            heartbeat.1,
            renewal.0,
            renewal.1,
            per_second / 10_000.0
        );
    }
}

/// What clusters cost that are larger than those of most.
fn large() {
    println!(
        "volumes raid1x3 of {GROUPS_OF_MANY} groups each, on bricks that beat ten times a second: milliseconds of the directory's machine,\n\
         bytes of the answer to a heartbeat, and MiB that the process has grown by (the records as the store has them, and the bench's views, are in it)"
    );
    println!(
        "{:>7}{:>9}{:>10}{:>12}{:>10}{:>9}{:>9}{:>12}{:>12}{:>12}{:>10}{:>8}",
        "bricks",
        "volumes",
        "100 more",
        "idle second",
        "answer B",
        "summary",
        "a page",
        "brick dies",
        "away, 1 s",
        "it returns",
        "restart",
        "MiB"
    );
    for bricks in LARGE_BRICKS {
        for volumes in LARGE_VOLUMES {
            // Each in a process of its own, as memory that was given back is not taken again.
            let myself = std::env::current_exe().expect("a program has a path");
            let arguments = ["large".to_owned(), bricks.to_string(), volumes.to_string()];
            let ended = std::process::Command::new(myself).args(arguments).status().expect("it starts");
            assert!(ended.success(), "{ended}");
        }
    }
}

fn one_large(bricks: u32, volumes: u64) {
    let before = resident_mib();
    let mut bench = Bench::new(bricks);
    bench.store = Some(BTreeMap::new());
    let (more, idle) = bench.fill(volumes);
    let answer = bench.heartbeat_answer(true);
    let part = |part| AdminRequest::Status { part };
    let summary = bench.ms(|bench| drop(bench.ask(part(StatusPart::Summary { most: 50 }))));
    let page = bench.ms(|bench| drop(bench.ask(part(StatusPart::From(VolumeId(0))))));
    let death = bench.ms(Bench::kill);
    bench.pass(10);
    let away = bench.ms(|bench| bench.pass(10));
    let back = bench.ms(Bench::revive);
    let restart = bench.restart_ms();
    let grown = resident_mib().saturating_sub(before);
    println!(
        "{bricks:>7}{volumes:>9}{more:>10.1}{idle:>12.1}{answer:>10}{summary:>9.1}{page:>9.1}{death:>12.1}{away:>12.1}{back:>12.1}{restart:>10.0}{grown:>8}"
    );
}

/// Of this process.
fn resident_mib() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or_default();
    (pages * 4096) >> 20
}

/// What a cluster of so many volumes costs.
fn many(volumes: u64) {
    let mut bench = Bench::new(BRICKS_OF_MANY);
    let (more, idle) = bench.fill(volumes);
    let status = bench.ms(|bench| drop(bench.ask(AdminRequest::STATUS)));
    let death = bench.ms(Bench::kill);
    println!("{volumes:>8}{more:>14.1}{idle:>14.1}{status:>14.1}{death:>14.1}");
}

fn choice_ms(rule: Placement, bricks: u32, domains: &[&str]) -> f64 {
    let labels =
        |id: u32| vec![("rack".to_owned(), (id % 8).to_string()), ("host".to_owned(), id.to_string())];
    let brick = |id: u32| Candidate { id: BrickId(id), weight: 1 + u64::from(id % 3), labels: labels(id) };
    let candidates: Vec<Candidate> = (1..=bricks).map(brick).collect();
    let wanted = Wanted { family: base::VolumeId(1), groups: 1024, width: 3 };
    let began = Instant::now();
    let groups = placement::rule(rule).place(wanted, &candidates, domains).expect("enough bricks");
    assert_eq!(groups.len(), 1024);
    began.elapsed().as_secs_f64() * 1000.0
}

/// A directory among bricks that say yes to all it asks.
struct Bench {
    now: Time,
    directory: Directory,
    alive: BTreeSet<BrickId>,
    /// The brick that dies.
    victim: BrickId,
    /// Whether the victim has died ever: before, nobody catches up, and nobody looks for who does.
    has_died: bool,
    /// Whether bricks catch up at once, or not at all.
    catches_up: bool,
    answers: Vec<Message>,
    spent: Duration,
    stored: usize,
    sent: usize,
    /// What is stored, where that is kept.
    store: Option<BTreeMap<Vec<u8>, Vec<u8>>>,
}

impl Bench {
    fn new(bricks: u32) -> Bench {
        let now = Time(1_000_000_000);
        let care = wire::Care { rebuild_after_s: 60, ..wire::Care::default() };
        let config = DirectoryConfig { care, ..DirectoryConfig::default() };
        let mut bench = Bench {
            now,
            directory: Directory::new(config, Vec::new(), now).expect("an empty store"),
            alive: (1..=bricks).map(BrickId).collect(),
            victim: BrickId(1),
            has_died: false,
            catches_up: true,
            answers: Vec::new(),
            spent: Duration::ZERO,
            stored: 0,
            sent: 0,
            store: None,
        };
        for brick in 1..=bricks {
            bench.ask(AdminRequest::AdmitBrick { nonce: u64::from(brick) });
        }
        let register = Message::Register {
            speaks: wire::Version::CURRENT,
            gateway: GatewayId(1),
            address: "gateway:1".to_owned(),
            writers: 1,
            beside: None,
            held: None,
            time: base::ClusterTime::FIRST,
            sent: Time::ZERO,
            name: String::new(),
            opened: Vec::new(),
        };
        // Until it has heard all bricks.
        bench.pass(20);
        bench.event(GATEWAY, register);
        bench.pass(10);
        bench
    }

    fn report(&mut self, groups: u32, what: &str, work: impl FnOnce(&mut Bench)) {
        (self.spent, self.stored, self.sent) = (Duration::ZERO, 0, 0);
        work(self);
        let ms = self.spent.as_secs_f64() * 1000.0;
        println!("{groups:>8}  {what:>32}{ms:>10.1}{:>12}{:>12}", self.stored, self.sent);
    }

    /// Milliseconds of the directory's machine.
    fn ms(&mut self, work: impl FnOnce(&mut Bench)) -> f64 {
        self.spent = Duration::ZERO;
        work(self);
        self.spent.as_secs_f64() * 1000.0
    }

    /// Makes so many volumes. What 100 more take, and then a second without events.
    fn fill(&mut self, volumes: u64) -> (f64, f64) {
        self.create_many(0..volumes);
        self.pass(10);
        let more = self.ms(|bench| bench.create_many(volumes..volumes + 100));
        self.pass(10);
        (more, self.ms(|bench| bench.pass(10)))
    }

    fn create_many(&mut self, volumes: core::ops::Range<u64>) {
        volumes.for_each(|volume| self.create_named(&format!("v{volume}"), GROUPS_OF_MANY, 100 + volume));
    }

    fn create(&mut self, groups: u32) {
        self.create_named("v", groups, 7);
    }

    fn create_named(&mut self, name: &str, groups: u32, nonce: u64) {
        let made = self.ask(AdminRequest::CreateVolume {
            name: name.to_owned(),
            size_bytes: 1 << 44,
            layout: "raid1x3".to_owned(),
            stripe_unit_blocks: 0,
            groups,
            read_policy: ReadPolicy::default(),
            io_timeout: IoTimeout::default(),
            protocol: Protocol::default(),
            placement: Placement::Hashed,
            stream: StreamId::default(),
            nonce,
            reads: wire::Reads::default(),
        });
        assert!(matches!(made, AdminReply::Volume(_)), "{made:?}");
    }

    fn snapshot(&mut self) {
        let (volume, snapshot) = ("v".to_owned(), "s".to_owned());
        self.ask(AdminRequest::Snapshot { volume, snapshot, nonce: 8 });
    }

    /// Until no group counts on the victim any more.
    fn kill(&mut self) {
        self.alive.remove(&self.victim);
        self.has_died = true;
        self.pass_until(|bench| !bench.views().any(|view| view.is_writer(bench.victim)));
    }

    /// Until the victim is current again wherever it is a member.
    fn revive(&mut self) {
        self.alive.insert(self.victim);
        self.pass_until(|bench| {
            bench.views().all(|view| !view.has_part(bench.victim) || view.is_current(bench.victim))
        });
    }

    /// Until the first of the victim's slots are given to others, which do not catch up yet.
    fn give_up(&mut self) {
        self.alive.remove(&self.victim);
        self.has_died = true;
        self.catches_up = false;
        self.pass_until(|bench| bench.views().any(|view| !view.catching_up().is_empty()));
        self.pass(10);
    }

    /// Until others have all slots of the victim, and have caught up.
    fn replace(&mut self) {
        self.catches_up = true;
        self.pass_until(|bench| {
            bench.views().all(|view| view.current.len() == 3 && !view.has_part(bench.victim))
        });
    }

    /// Milliseconds in which another process takes in what is stored.
    fn restart_ms(&mut self) -> f64 {
        let contents = self.store.take().expect("it is kept").into_iter().collect();
        let began = Instant::now();
        self.directory =
            Directory::new(DirectoryConfig::default(), contents, self.now).expect("its own store");
        began.elapsed().as_secs_f64() * 1000.0
    }

    fn views(&self) -> impl Iterator<Item = &wire::GroupView> {
        self.directory.views()
    }

    fn pass_until(&mut self, is_over: impl Fn(&Bench) -> bool) {
        for _ in 0..10_000 {
            if is_over(self) {
                return;
            }
            self.pass(1);
        }
        panic!("it is never over");
    }

    /// Lets tenths of seconds pass; each brick sends a heartbeat in each.
    fn pass(&mut self, tenths: u32) {
        for _ in 0..tenths {
            self.now = Time(self.now.0 + 100_000_000);
            let joins = self.joins();
            for brick in self.alive.clone() {
                let done = joins.get(&brick).cloned().unwrap_or_default();
                let beat = self.heartbeat(brick, u64::MAX - 1, done);
                self.event(NodeId::Brick(brick), beat);
            }
            let began = Instant::now();
            let mut fx = Vec::new();
            self.directory.wake(self.now, &mut fx);
            self.spent += began.elapsed();
            self.follow(fx);
        }
    }

    /// Each brick's heartbeat, or its renewal, once.
    fn beat(&mut self, renews: bool) {
        let known = self.directory.version();
        for brick in self.alive.clone() {
            let message = match renews {
                true => Message::Renew { brick, sent: self.now, run: RUN, known },
                false => self.heartbeat(brick, known, Vec::new()),
            };
            self.sent += message.to_bytes().len();
            self.event(NodeId::Brick(brick), message);
        }
    }

    /// So many looks at all bricks and groups.
    fn look(&mut self, times: u32) {
        for _ in 0..times {
            self.now = Time(self.now.0 + 100_000_000);
            let began = Instant::now();
            let mut fx = Vec::new();
            self.directory.wake(self.now, &mut fx);
            self.spent += began.elapsed();
            self.follow(fx);
            let spent = self.spent;
            self.beat(false);
            self.spent = spent;
        }
    }

    /// How far bricks have caught up, each in its groups.
    fn joins(&self) -> BTreeMap<BrickId, Vec<CatchUp>> {
        let mut joins: BTreeMap<BrickId, Vec<CatchUp>> = BTreeMap::new();
        if !self.has_died {
            return joins;
        }
        for view in self.views() {
            let done = CatchUp {
                group: view.group,
                number: view.number,
                compared_blocks: 0,
                total_blocks: 0,
                fetched_bytes: 0,
                done: self.catches_up,
            };
            view.catching_up_bricks().for_each(|brick| joins.entry(brick).or_default().push(done));
        }
        joins
    }

    fn heartbeat(&self, brick: BrickId, known: u64, catching_up: Vec<CatchUp>) -> Message {
        let mut status = BrickStatus {
            address: format!("brick-{}:7000", brick.0),
            space: Space { capacity_bytes: 1 << 40, ..Space::default() },
            disks: vec![u64::from(brick.0)],
            ..BrickStatus::default()
        };
        let journal = JournalReport { disk: u64::from(brick.0), found: 0, durable: 0 };
        status.run = Run { number: RUN, journals: vec![journal], ..Run::default() };
        status.groups.catching_up = catching_up;
        Message::Heartbeat {
            speaks: wire::Version::CURRENT,
            brick,
            sent: self.now,
            known,
            status: Box::new(status),
            streams: StreamReport::default(),
            time: base::ClusterTime::FIRST,
        }
    }

    /// The bytes of the answer to a brick that knows all, or nothing.
    fn heartbeat_answer(&mut self, is_informed: bool) -> usize {
        let brick = BrickId(2);
        let beat = self.heartbeat(brick, if is_informed { u64::MAX - 1 } else { 0 }, Vec::new());
        self.sent = 0;
        self.event(NodeId::Brick(brick), beat);
        self.sent
    }

    /// The bytes of the map that a gateway opens the volume with.
    fn map(&mut self) -> usize {
        self.sent = 0;
        self.event(GATEWAY, Message::OpenVolume { operation: 1, name: "v".to_owned() });
        self.sent
    }

    fn ask(&mut self, request: AdminRequest) -> AdminReply {
        self.answers.clear();
        self.event(ADMIN, Message::Admin { operation: 1, request });
        for _ in 0..300 {
            if let Some(Message::AdminDone { result, .. }) = self.answers.pop() {
                return result.expect("nothing is in the way");
            }
            self.pass(1);
        }
        panic!("no answer");
    }

    fn event(&mut self, from: NodeId, message: Message) {
        let fx = self.step(DirectoryEvent::Packet { from, packet: message.into() });
        self.follow(fx);
    }

    fn step(&mut self, event: DirectoryEvent) -> Vec<DirectoryEffect> {
        let (began, mut fx) = (Instant::now(), Vec::new());
        self.directory.step(self.now, event, &mut fx);
        self.spent += began.elapsed();
        fx
    }

    fn follow(&mut self, fx: Vec<DirectoryEffect>) {
        let mut effects: VecDeque<DirectoryEffect> = fx.into();
        while let Some(effect) = effects.pop_front() {
            let event = match effect {
                DirectoryEffect::Store { token, puts } => {
                    let bytes = |(key, value): &(Vec<u8>, Option<Vec<u8>>)| {
                        key.len() + value.as_ref().map_or(0, Vec::len)
                    };
                    self.stored += puts.iter().map(bytes).sum::<usize>();
                    if let Some(store) = &mut self.store {
                        for (key, value) in puts {
                            match value {
                                Some(value) => store.insert(key, value),
                                None => store.remove(&key),
                            };
                        }
                    }
                    Some(DirectoryEvent::Stored { token, result: Ok(()) })
                }
                DirectoryEffect::Send { to, packet } => self.deliver(to, packet),
                DirectoryEffect::Tell(_) => None,
                DirectoryEffect::Shard { .. } => unreachable!("nobody asks for objects"),
            };
            effects.extend(event.map(|event| self.step(event)).into_iter().flatten());
        }
    }

    fn deliver(&mut self, to: NodeId, packet: Packet) -> Option<DirectoryEvent> {
        self.sent += packet.message.to_bytes().len();
        let answer = match packet.message {
            Message::Fence { view, .. } => {
                Message::Fenced { group: view.group, number: view.number, doubts: Vec::new(), run: 0 }
            }
            Message::Activate { view, .. } => {
                Message::Activated { group: view.group, number: view.number, run: 0 }
            }
            other => {
                self.answers.extend((to == ADMIN).then_some(other));
                return None;
            }
        };
        let NodeId::Brick(brick) = to else { return None };
        self.alive.contains(&brick).then(|| DirectoryEvent::Packet { from: to, packet: answer.into() })
    }
}
