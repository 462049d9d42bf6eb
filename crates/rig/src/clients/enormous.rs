//! A client of the peers' protocol that asks for gigabytes, many times over, and goes: what a gateway holds for it is bounded.

use anyhow::{Context, Result, ensure};
use base::{ClientId, NodeId, Payload, RequestId, VolumeId};
use job::process;
use rig::cluster::{Cluster, Spec};
use rig::nbd::connect;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use wire::frame::{self, HEADER_BYTES};
use wire::{Io, IoError, Message, Packet, Service, Spoken, Wire};

const VOLUME_BYTES: u64 = 64 << 30;
const READS: u64 = 40;
/// The longest that a request can name.
const FOUR_GIB: u32 = !4095;
/// The longest that a gateway answers with content.
const LONGEST: u32 = 32 << 20;
/// Clients that take no answers.
const LAZY: u64 = 7;
/// What is worked on for all clients, what waits for each that takes no answers, and what a gateway takes when idle.
const GATEWAY_BYTES_MAX: u64 = (256 + LAZY * 64 + 64) << 20;
/// A client that says nothing for two seconds is taken for gone.
const ALIVE_EVERY: Duration = Duration::from_millis(200);
/// Whoever left is forgotten by then.
const FORGOTTEN: Duration = Duration::from_secs(20);
const HELLO_BYTES: usize = 40;

/// A client of a cluster without TLS, by its bytes.
struct Peer {
    stream: TcpStream,
    me: ClientId,
    volume: VolumeId,
    sequence: u64,
}

impl Peer {
    fn connect(cluster: &Cluster, volume: VolumeId, number: u64) -> Result<Peer> {
        let me = ClientId::plain(number);
        let mut stream = connect(cluster.gateways[0].port)?;
        let mut hello = b"BRKH".to_vec();
        Spoken::OURS.oldest.0.append(&mut hello);
        cluster.admin_options()?.node.cluster.append(&mut hello);
        NodeId::Client(me).append(&mut hello);
        hello.resize(HELLO_BYTES - 4, 0);
        Spoken::OURS.newest.0.append(&mut hello);
        stream.write_all(&hello)?;
        stream.read_exact(&mut hello).context("the gateway says hello")?;
        let mut peer = Peer { stream, me, volume, sequence: 0 };
        peer.say(Message::Attach { operation: 1, volume: "v".to_owned() })?;
        peer.hear(|message| matches!(message, Message::Attached { .. }))?;
        Ok(peer)
    }

    fn say(&mut self, message: Message) -> Result<()> {
        let mut bytes = Vec::new();
        frame::encode(Spoken::OURS.newest, &Packet { message, payload: Payload::new() }, &mut bytes)?;
        Ok(self.stream.write_all(&bytes)?)
    }

    /// The next message of that kind.
    fn hear(&mut self, is: impl Fn(&Message) -> bool) -> Result<Message> {
        loop {
            let mut head = [0; HEADER_BYTES];
            self.stream.read_exact(&mut head)?;
            let header = frame::Header::parse(&head)?;
            let mut message = vec![0; header.message_bytes];
            self.stream.read_exact(&mut message)?;
            let payload = &mut Read::by_ref(&mut self.stream).take(header.payload_bytes as u64);
            std::io::copy(payload, &mut std::io::sink())?;
            match header.message(Spoken::OURS.newest, &message)? {
                Message::Ping { nonce } => self.say(Message::Pong { nonce })?,
                message if is(&message) => return Ok(message),
                _ => {}
            }
        }
    }

    fn ask_to_read(&mut self, length: u32) -> Result<()> {
        self.sequence += 1;
        let message = Message::Request {
            id: RequestId { client: self.me, sequence: self.sequence },
            floor: 1,
            volume: self.volume,
            io: Io::Read { offset: u64::from(length) * (self.sequence % 8), length },
            service: Service::default(),
        };
        self.say(message)
    }

    /// What the next request that is answered came to.
    fn reply(&mut self) -> Result<Result<(), IoError>> {
        match self.hear(|message| matches!(message, Message::Reply { .. }))? {
            Message::Reply { result, .. } => Ok(result.map(drop)),
            other => anyhow::bail!("{other:?}"),
        }
    }
}

/// Reads of 4 GiB are an error at once, and reads of the longest that is answered take no more memory than the page says: while
/// nobody takes the answers, and once their client is gone.
pub(super) fn reads(binary: &Path) -> Result<()> {
    let mut cluster = Cluster::start(binary, &Spec::default())?;
    let volume = cluster.create("v", VOLUME_BYTES, "raid1x3")?.id;
    let pid = cluster.gateways[0].daemon.pid();
    let before = process::resident_bytes(pid)?;
    let mut peer = Peer::connect(&cluster, volume, 1)?;
    (0..READS).try_for_each(|_| peer.ask_to_read(FOUR_GIB))?;
    for _ in 0..READS {
        let result = peer.reply()?;
        ensure!(result.is_err(), "a read of 4 GiB was answered with content");
    }
    eprintln!(
        "    {READS} reads of 4 GiB: the gateway has held {} MiB at most",
        process::peak_bytes(pid)? >> 20
    );
    let mut peers: Vec<Peer> =
        (2..2 + LAZY).map(|number| Peer::connect(&cluster, volume, number)).collect::<Result<_>>()?;
    for of in &mut peers {
        (0..READS).try_for_each(|_| of.ask_to_read(LONGEST))?;
    }
    // One more takes its answers, so that the gateway has worked on all clients' in turn; the others only say that they live.
    let mut taking = Peer::connect(&cluster, volume, 2 + LAZY)?;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Relaxed)
                && peers.iter_mut().all(|of| of.say(Message::Ping { nonce: 1 }).is_ok())
            {
                std::thread::sleep(ALIVE_EVERY);
            }
        });
        let taken = (0..READS).try_for_each(|_| {
            taking.ask_to_read(LONGEST)?;
            taking.reply()?.with_context(|| format!("a read of {LONGEST} B"))
        });
        is_over.store(true, Relaxed);
        taken
    })?;
    let peak = process::peak_bytes(pid)?;
    eprintln!(
        "    {READS} reads of 32 MiB by each of {} clients, of whom {LAZY} take no answers: {} MiB at most",
        LAZY + 1,
        peak >> 20
    );
    ensure!(peak < GATEWAY_BYTES_MAX, "the gateway has held {} MiB", peak >> 20);
    drop((peer, peers, taking));
    let gone = Instant::now();
    loop {
        let held = process::resident_bytes(pid)?;
        if held < before + (64 << 20) {
            eprintln!(
                "    {:.1} s after they left it holds {} MiB ({} before)",
                gone.elapsed().as_secs_f64(),
                held >> 20,
                before >> 20
            );
            return cluster.all_alive();
        }
        ensure!(gone.elapsed() < FORGOTTEN, "the gateway still holds {} MiB", held >> 20);
        std::thread::sleep(Duration::from_millis(50));
    }
}
