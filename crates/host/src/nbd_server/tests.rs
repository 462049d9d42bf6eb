//! What clients that announce much and send little cost the server.

use super::*;
use mio::{Events, Poll};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

const HOSTILE: usize = 100;
const SIZE_BYTES: u64 = 1 << 40;
const FLAGS: &[u8] = &[0, 0, 0, 3];
/// An option that nobody knows, of 2^32 - 1 bytes: with the flags and four of its bytes a stranger sends 24.
const HUGE_OPTION: &[u8] = b"IHAVEOPT\0\0\0\x63\xff\xff\xff\xff";
const EXPORT_NAME: &[u8] = b"IHAVEOPT\0\0\0\x01\0\0\0\x01v";
const READ: u16 = 0;
const WRITE: u16 = 1;

struct Bed {
    poll: Poll,
    server: NbdServer,
    folder: tempfile::TempDir,
    /// Lengths of the reads and writes that the machine was asked for.
    asked: Vec<u64>,
    longest_turn: Duration,
}

impl Bed {
    fn new() -> Bed {
        let folder = tempfile::tempdir().unwrap();
        let poll = Poll::new().unwrap();
        let listen = vec![format!("unix:{}", folder.path().join("nbd").display())];
        let server =
            NbdServer::new(&NbdOptions { listen, ..NbdOptions::default() }, poll.registry()).unwrap();
        Bed { poll, server, folder, asked: Vec::new(), longest_turn: Duration::ZERO }
    }

    /// A connection on which `bytes` were sent behind the flags.
    fn client(&self, bytes: &[&[u8]]) -> UnixStream {
        let mut stream = UnixStream::connect(self.folder.path().join("nbd")).unwrap();
        stream.write_all(&[FLAGS, &bytes.concat()].concat()).unwrap();
        stream
    }

    /// Turns of the loop, until one left nothing to do.
    fn run(&mut self, now: Time) {
        let mut events = Events::with_capacity(256);
        for turn in 0.. {
            // What was sent on a unix socket has arrived.
            self.poll.poll(&mut events, Some(Duration::ZERO)).unwrap();
            if turn > 0 && events.is_empty() && !self.server.has_more() {
                return;
            }
            let start = Instant::now();
            events.iter().for_each(|event| self.server.ready(event, now));
            let wanted: Vec<FrontEvent> = self.server.gather(now).collect();
            wanted.into_iter().for_each(|event| self.answer(event, now));
            self.server.flush(now);
            self.longest_turn = self.longest_turn.max(start.elapsed());
        }
    }

    fn answer(&mut self, event: FrontEvent, now: Time) {
        match event {
            FrontEvent::Open { session, .. } => self.server.opened(session, Ok(volume()), now),
            FrontEvent::Io { io: Io::Read { length, .. }, .. } => self.asked.push(length.into()),
            FrontEvent::Io { payload, .. } => self.asked.push(payload.len() as u64),
            FrontEvent::List { .. } | FrontEvent::Close { .. } => {}
        }
    }
}

fn volume() -> VolumeInfo {
    VolumeInfo::new(VolumeId(1), "v", SIZE_BYTES, "raid1x3")
}

fn request(kind: u16, length: u32) -> Vec<u8> {
    let mut bytes = vec![0x25, 0x60, 0x95, 0x13, 0, 0];
    bytes.extend(kind.to_be_bytes());
    bytes.extend([0; 16]);
    bytes.extend(length.to_be_bytes());
    bytes
}

/// Runs a test in a process of its own, where what it measures is its own doing; `true` in that process.
fn is_alone(test: &str) -> bool {
    const ALONE: &str = "BRICKWORK_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let name = module_path!().split_once("::").map(|(_, module)| format!("{module}::{test}")).unwrap();
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    let output = command.args([&name, "--exact", "--nocapture"]).env(ALONE, "1").output().unwrap();
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    eprint!("{said}");
    false
}

/// The most memory that this process has held, in bytes.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string(Path::new("/proc/self/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// Each stranger makes the server drop up to 4 GiB that never come. It once reserved and cleared a buffer for them.
#[test]
fn announced_lengths_cost_neither_memory_nor_time() {
    if !is_alone("announced_lengths_cost_neither_memory_nor_time") {
        return;
    }
    let mut bed = Bed::new();
    let before = peak_bytes();
    let mut strangers = Vec::new();
    for _ in 0..HOSTILE / 2 {
        strangers.push(bed.client(&[HUGE_OPTION]));
        strangers.push(bed.client(&[EXPORT_NAME, &request(WRITE, u32::MAX)]));
    }
    bed.run(Time::ZERO);
    strangers.iter_mut().for_each(|stream| stream.write_all(&[0; 4]).unwrap());
    bed.run(Time::ZERO);
    drop(strangers);
    bed.run(Time::ZERO);
    let grown = peak_bytes() - before;
    eprintln!("{} KiB more, the longest turn {:?}", grown >> 10, bed.longest_turn);
    assert!(grown < 32 << 20, "100 strangers who sent 24 bytes each cost {grown} bytes");
    // 100 connections are opened, read and closed in milliseconds; clearing 4 GiB for one of them takes seconds.
    assert!(bed.longest_turn < Duration::from_secs(1), "a turn took {:?}", bed.longest_turn);
}

/// What was sent and the end of the stream may come in one event, and the socket tells of neither again.
#[test]
fn clients_that_close_at_once_are_let_go() {
    let mut bed = Bed::new();
    let last_words = [request(WRITE, u32::MAX), request(WRITE, 4096), Vec::new()];
    let mut clients: Vec<UnixStream> = last_words.iter().map(|_| bed.client(&[EXPORT_NAME])).collect();
    bed.run(Time::ZERO);
    assert_eq!(bed.server.clients.len(), 3);
    clients.iter_mut().zip(&last_words).for_each(|(client, words)| client.write_all(words).unwrap());
    // Dropping them may close nothing yet: where another test starts a process, that has them too until it runs its program.
    clients.iter().for_each(|client| client.shutdown(Shutdown::Both).unwrap());
    bed.run(Time::ZERO);
    assert_eq!(bed.server.clients.len(), 0, "closed connections are kept");
}

#[test]
fn large_requests_share_a_bound_and_nobody_waits_for_ever() {
    if !is_alone("large_requests_share_a_bound_and_nobody_waits_for_ever") {
        return;
    }
    let mut bed = Bed::new();
    let before = peak_bytes();
    let large = 32 << 20;
    let mut stalled: Vec<UnixStream> =
        (0..HOSTILE).map(|_| bed.client(&[EXPORT_NAME, &request(WRITE, large), &[0; 4]])).collect();
    bed.run(Time::ZERO);
    assert!(peak_bytes() - before < 64 << 20, "announced payloads cost {}", peak_bytes() - before);
    assert_eq!(bed.server.lender.lent_bytes(), 64 << 20, "two of them may send");
    let mut small = bed.client(&[EXPORT_NAME, &request(WRITE, 4096), &[7; 4096]]);
    bed.run(Time::ZERO);
    assert_eq!(bed.asked, [4096], "a small request does not wait for large ones");
    let mut reader = bed.client(&[EXPORT_NAME, &request(READ, large)]);
    bed.run(Time::ZERO);
    assert_eq!(bed.asked, [4096], "a large one waits for its turn");
    // Those who hold a loan and do not send are let go, two each time, until the reader has its turn.
    let mut now = Time::ZERO;
    for _ in 0..HOSTILE {
        now += Duration::from_secs(31);
        bed.run(now);
    }
    assert_eq!(bed.asked, [4096, large.into()]);
    assert!(stalled.iter_mut().all(|stream| stream.read_to_end(&mut Vec::new()).is_ok()), "all are closed");
    for stream in [&mut small, &mut reader] {
        stream.set_nonblocking(true).unwrap();
        let open =
            std::iter::from_fn(|| Some(stream.read(&mut [0; 4096]))).find(|read| !matches!(read, Ok(1..)));
        assert_eq!(open.unwrap().unwrap_err().kind(), io::ErrorKind::WouldBlock, "still connected");
    }
}
