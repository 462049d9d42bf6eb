//! Clients that break every rule, beside one that keeps them: it must not notice.

use super::record::beside;
use anyhow::{Context, Result, ensure};
use job::process;
use rig::cluster::{Cluster, Spec};
use rig::nbd::{self, Nbd, command, connect, error, greet, head, read_option_reply, send_option};
use rig::noise::Noise;
use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

/// More silent connections than all places of an NBD front.
const SILENT_NBD: usize = 1_200;
/// More than the places for strangers of every other door.
const SILENT_PEERS: usize = 400;
/// Silent callers have 5 s: whoever waits for them to go is answered later.
const ANSWERED_WITHIN: Duration = Duration::from_secs(4);

const SIZE: u64 = 64 << 20;
/// What a gateway may hold on to when clients never read: the bound for 64 busy connections.
const GATEWAY_BYTES_MAX: u64 = 150 << 20;
/// No stranger keeps a gateway's loop for so long: a read takes milliseconds, and clearing 4 GiB took 3.5 s.
const STAND_STILL: Duration = Duration::from_secs(2);

/// A cluster with a volume `v` for the hostile and `w` for the well-behaved client, through the same gateway.
fn with_witness(binary: &Path, hostile: impl FnOnce(&Cluster) -> Result<()>) -> Result<()> {
    let mut cluster = Cluster::start(binary, &Spec::default())?;
    cluster.create("v", SIZE, "raid1x3")?;
    cluster.create("w", SIZE, "raid5-2+1")?;
    beside(|| cluster.connect(0, "w"), || hostile(&cluster))?;
    cluster.all_alive()
}

/// Unknown options are refused by name and the negotiation goes on; nonsense ends the connection.
pub(super) fn negotiation(binary: &Path) -> Result<()> {
    with_witness(binary, |cluster| {
        let port = cluster.gateways[0].nbd_port;
        unknown_options(port)?;
        let mut magic = Vec::from(0x1234_5678_9abc_def0_u64.to_be_bytes());
        magic.extend_from_slice(&[0; 8]);
        let mut oversized = Vec::from(nbd::OPTION_MAGIC.to_be_bytes());
        oversized.extend_from_slice(&7u32.to_be_bytes());
        oversized.extend_from_slice(&u32::MAX.to_be_bytes());
        for nonsense in [magic, oversized] {
            nonsense_in_negotiation(port, &nonsense)?;
        }
        ensure!(Nbd::tcp(port, "no-such-volume").is_err(), "a volume that does not exist was opened");
        ensure!(Nbd::tcp(port, &"x".repeat(5000)).is_err(), "a volume with a name of 5000 bytes was opened");
        Nbd::tcp(port, "v").map(drop)
    })
}

fn unknown_options(port: u16) -> Result<()> {
    const UNSUPPORTED: u32 = (1 << 31) + 1;
    let mut stream = connect(port)?;
    greet(&mut stream)?;
    for (option, length) in [(0, 0), (99, 0), (4242, 1000), (u32::MAX, 3)] {
        send_option(&mut stream, option, &vec![7; length])?;
        let (kind, _) = read_option_reply(&mut stream).with_context(|| format!("option {option}"))?;
        ensure!(kind == UNSUPPORTED, "option {option} was answered with {kind:#x}");
    }
    const LIST: u32 = 3;
    send_option(&mut stream, LIST, &[])?;
    let (kind, _) = read_option_reply(&mut stream).context("listing after unknown options")?;
    ensure!(kind == 2, "listing after unknown options was answered with {kind:#x}");
    Ok(())
}

/// The server may answer with an error or close; it must not wait for 4 GiB.
fn nonsense_in_negotiation(port: u16, nonsense: &[u8]) -> Result<()> {
    let mut stream = connect(port)?;
    greet(&mut stream)?;
    stream.write_all(nonsense)?;
    match read_option_reply(&mut stream) {
        Ok((kind, _)) => ensure!(kind >> 31 == 1, "nonsense was answered with {kind:#x}"),
        Err(error) => ensure!(is_end(&error), "nonsense was answered with {error:#}"),
    }
    Ok(())
}

/// Whether the other side ended the connection (and it did not just fall silent).
fn is_end(error: &anyhow::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    let io = error.chain().find_map(|cause| cause.downcast_ref::<std::io::Error>());
    io.is_some_and(|io| matches!(io.kind(), BrokenPipe | ConnectionReset | UnexpectedEof))
}

/// Requests that make no sense are answered with an error, and the connection goes on.
pub(super) fn requests(binary: &Path) -> Result<()> {
    with_witness(binary, |cluster| {
        let mut nbd = cluster.connect(0, "v")?;
        for unknown in [8, 99, 0x7fff] {
            let error = nbd.ask(unknown, 0, 4096)?;
            ensure!(error == error::EINVAL, "command {unknown}: error {error}");
        }
        beyond_the_end(&mut nbd)?;
        unaligned(&mut nbd)?;
        zero_lengths(&mut nbd)?;
        four_gibibytes(cluster)?;
        let mut broken = cluster.connect(0, "v")?;
        broken.raw(&[0xee; 28])?;
        ensure!(broken.closed(), "a request without magic was not answered by closing");
        nbd.ask(command::FLUSH, 0, 0).map(drop)
    })
}

fn beyond_the_end(nbd: &mut Nbd) -> Result<()> {
    let places =
        [(SIZE, 4096), (SIZE - 4096, 8192), (u64::MAX - 4095, 4096), (u64::MAX - 100, 4096), (1 << 63, 512)];
    for (offset, length) in places {
        for command in [command::READ, command::TRIM, command::WRITE_ZEROES] {
            let error = nbd.ask(command, offset, length)?;
            ensure!(error != 0, "command {command} of {length} bytes at {offset} was accepted");
        }
        nbd.send_write(9, offset, &vec![1; length as usize])?;
        let error = nbd.reply()?.error;
        ensure!(matches!(error, error::EINVAL | error::ENOSPC), "writing at {offset}: error {error}");
    }
    Ok(())
}

/// This client asks for no block sizes, so that it is served down to single bytes. A trim promises nothing about the bytes
/// that it names, and must leave all others.
fn unaligned(nbd: &mut Nbd) -> Result<()> {
    let mut expected = vec![5; 16384];
    nbd.write(0, &expected)?;
    for (offset, length) in [(512usize, 512usize), (1, 1), (4095, 2), (100, 9000), (8191, 4097)] {
        let (start, end) = (offset as u64, offset + length);
        let data = vec![(offset % 250) as u8 + 6; length];
        nbd.write(start, &data).with_context(|| format!("writing {length} bytes at {offset}"))?;
        expected[offset..end].copy_from_slice(&data);
        ensure!(nbd.read(start, length as u32)? == data, "reading {length} bytes at {offset}");
        ensure!(nbd.read(0, 16384)? == expected, "after writing {length} bytes at {offset}");
        let error = nbd.ask(command::TRIM, start, length as u32)?;
        let found = nbd.read(0, 16384)?;
        let others = found[..offset] == expected[..offset] && found[end..] == expected[end..];
        ensure!(error == 0 && others, "trimming {length} bytes at {offset}: error {error}");
        let error = nbd.ask(command::WRITE_ZEROES, start, length as u32)?;
        expected[offset..end].fill(0);
        ensure!(error == 0 && nbd.read(0, 16384)? == expected, "zeroing {length} bytes at {offset}");
    }
    Ok(())
}

fn zero_lengths(nbd: &mut Nbd) -> Result<()> {
    for command in [command::READ, command::WRITE, command::TRIM, command::WRITE_ZEROES] {
        let error = nbd.ask(command, 4096, 0)?;
        ensure!(matches!(error, 0 | error::EINVAL), "command {command} of no bytes: error {error}");
    }
    Ok(())
}

/// 4 GiB less one byte, the most that a request can say: refused. The payload of a write is drained or the connection is
/// closed, but it is never kept.
fn four_gibibytes(cluster: &Cluster) -> Result<()> {
    for command in [command::READ, command::TRIM, command::WRITE_ZEROES] {
        let error = cluster.connect(0, "v")?.ask(command, 0, u32::MAX)?;
        ensure!(
            matches!(error, error::EINVAL | error::EOVERFLOW | error::ENOSPC),
            "command {command}: error {error}"
        );
    }
    let mut nbd = cluster.connect(0, "v")?;
    nbd.request(command::WRITE, 1, 0, u32::MAX)?;
    let (chunk, mut left) = (vec![1; 1 << 20], u32::MAX as usize);
    while left > 0 && nbd.raw(&chunk[..left.min(1 << 20)]).is_ok() {
        left -= left.min(1 << 20);
    }
    match nbd.reply() {
        Ok(reply) => ensure!(reply.error != 0, "a write of 4 GiB was accepted"),
        Err(error) => ensure!(is_end(&error), "a write of 4 GiB: {error:#}"),
    }
    bounded_memory(cluster)
}

/// The peak counts, not what is held by now: a buffer that was reserved, cleared and given back is no longer seen.
fn bounded_memory(cluster: &Cluster) -> Result<()> {
    let peak = process::peak_bytes(cluster.gateways[0].daemon.pid())?;
    eprintln!("    the gateway has held {} MiB at most", peak >> 20);
    ensure!(peak < GATEWAY_BYTES_MAX, "the gateway has held {} MiB", peak >> 20);
    Ok(())
}

/// What is held for clients that do not read is there to be seen; buffers on their way are not what this bounds.
fn held_memory(cluster: &Cluster) -> Result<()> {
    let held = process::resident_bytes(cluster.gateways[0].daemon.pid())?;
    eprintln!("    the gateway holds {} MiB", held >> 20);
    ensure!(held < GATEWAY_BYTES_MAX, "the gateway holds {} MiB", held >> 20);
    Ok(())
}

/// Strangers who announce 4 GiB, send four bytes of them, and go: each once made the gateway reserve and clear 4 GiB, for
/// which its loop stood still.
pub(super) fn announced_and_gone(binary: &Path) -> Result<()> {
    with_witness(binary, |cluster| {
        let port = cluster.gateways[0].nbd_port;
        let announcing = |length: u32| {
            [&nbd::OPTION_MAGIC.to_be_bytes()[..], &99u32.to_be_bytes(), &length.to_be_bytes()].concat()
        };
        let (question, header) = (announcing(0), announcing(u32::MAX));
        let mut other = cluster.connect(0, "w")?;
        let mut slowest = Duration::ZERO;
        for _ in 0..100 {
            let mut stranger = connect(port)?;
            greet(&mut stranger)?;
            let mut attached = cluster.connect(0, "v")?;
            // The gateway must have read the headers before it finds the rest: each goes out together with a question, and
            // who has the answer knows that both were read.
            stranger.write_all(&[&question[..], &header].concat())?;
            attached
                .raw(&[head(command::READ, 1, 0, 4096), head(command::WRITE, 2, 0, u32::MAX)].concat())?;
            read_option_reply(&mut stranger).context("the question before the announcement")?;
            ensure!(attached.reply()?.error == 0, "the read before the announcement failed");
            attached.payload(4096)?;
            stranger.write_all(&[0; 4])?;
            attached.raw(&[0; 4])?;
            drop((stranger, attached));
            let start = Instant::now();
            other.read(0, 4096)?;
            slowest = slowest.max(start.elapsed());
        }
        eprintln!("    the slowest read of another client took {slowest:?}");
        ensure!(slowest < STAND_STILL, "a read of another client took {slowest:?}");
        bounded_memory(cluster)
    })
}

/// A read-only volume refuses writes, and says so in its flags.
pub(super) fn read_only(binary: &Path) -> Result<()> {
    let mut cluster = Cluster::start(binary, &Spec::default())?;
    cluster.create("v", SIZE, "raid1x3")?;
    cluster.connect(0, "v")?.write(0, &[1; 4096])?;
    cluster.admin(&["volume", "read-only", "v", "on"])?;
    let mut nbd =
        eventually(|| cluster.connect(0, "v"), |nbd| nbd.flags & 2 != 0).context("the read-only flag")?;
    nbd.send_write(1, 0, &[2; 4096])?;
    let error = nbd.reply()?.error;
    ensure!(error == error::EPERM, "writing to a read-only volume: error {error}");
    ensure!(nbd.read(0, 4096)? == [1; 4096], "a read-only volume has changed");
    cluster.all_alive()
}

fn eventually<T>(mut make: impl FnMut() -> Result<T>, good: impl Fn(&T) -> bool) -> Result<T> {
    for _ in 0..100 {
        let value = make()?;
        if good(&value) {
            return Ok(value);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    anyhow::bail!("did not come within 10 s")
}

/// Clients that ask for much and read nothing cost a bounded amount of memory.
pub(super) fn replies_never_read(binary: &Path) -> Result<()> {
    with_witness(binary, |cluster| {
        cluster.connect(0, "v")?.write(0, &vec![3; 1 << 20])?;
        let connections: Vec<Nbd> = (0..16).map(|_| cluster.connect(0, "v")).collect::<Result<_>>()?;
        std::thread::scope(|scope| {
            for mut nbd in connections {
                scope.spawn(move || {
                    // The server stops taking requests at some point; then this side cannot send, and that is right.
                    let _ = ask_without_reading(&mut nbd);
                });
            }
        });
        held_memory(cluster)
    })
}

fn ask_without_reading(nbd: &mut Nbd) -> Result<()> {
    nbd.write_timeout(Duration::from_secs(3))?;
    for handle in 0..200_000 {
        nbd.request(command::READ, handle, 0, 1 << 20)?;
    }
    Ok(())
}

/// Connections that end in the middle of a payload, politely or not, harm nobody.
pub(super) fn closed_in_mid_payload(binary: &Path) -> Result<()> {
    with_witness(binary, |cluster| {
        for round in 0..60 {
            let mut nbd = cluster.connect(0, "v")?;
            nbd.request(command::WRITE, 1, 0, 1 << 20)?;
            nbd.raw(&vec![8; 1 + round * 17_000])?;
            // With replies unread in our buffers, closing sends a reset instead of an end.
            if round % 2 == 0 {
                nbd.request(command::READ, 2, 0, 1 << 20).ok();
            }
        }
        for _ in 0..20 {
            let mut nbd = cluster.connect(0, "v")?;
            (0..8).try_for_each(|handle| nbd.request(command::READ, handle, 0, 4 << 20))?;
            nbd.payload(1000)?;
        }
        Ok(())
    })
}

/// Hundreds that connect and say nothing, or one byte at a time; others are still served, also new ones.
pub(super) fn half_open_and_slow(binary: &Path) -> Result<()> {
    // This process holds more connections than each door of a daemon lets in.
    host::descriptors::raise();
    with_witness(binary, |cluster| {
        let port = cluster.gateways[0].nbd_port;
        let silent: Vec<TcpStream> = (0..SILENT_NBD).filter_map(|_| connect(port).ok()).collect();
        let mut doors = vec![cluster.directory_port, cluster.join_port, cluster.gateways[0].port];
        doors.extend(&cluster.brick_ports);
        let crowds: Vec<TcpStream> = doors
            .into_iter()
            .flat_map(|door| (0..SILENT_PEERS).filter_map(move |_| connect(door).ok()))
            .collect();
        let started = Instant::now();
        ensure!(cluster.status()?.is_object(), "the directory no longer answers");
        let _token = cluster.token()?;
        eprintln!("    an operator was answered in {:.2} s beside them", started.elapsed().as_secs_f64());
        ensure!(started.elapsed() < ANSWERED_WITHIN, "an operator waited for {:?}", started.elapsed());
        let mut slow: Vec<TcpStream> = (0..100).filter_map(|_| connect(port).ok()).collect();
        let mut opening = Vec::from(3u32.to_be_bytes());
        opening.extend_from_slice(&nbd::OPTION_MAGIC.to_be_bytes());
        for byte in opening {
            slow.retain_mut(|stream| stream.write_all(&[byte]).is_ok());
            std::thread::sleep(Duration::from_millis(50));
        }
        let mut fresh = Nbd::tcp(port, "v").context("a new client beside hundreds that say nothing")?;
        fresh.write(0, &[4; 4096])?;
        ensure!(fresh.read(0, 4096)? == [4; 4096], "a new client beside hundreds that say nothing");
        drop((silent, slow, crowds));
        Ok(())
    })
}

/// Random bytes, enormous lengths and the beginnings of other protocols, to every port of the cluster.
pub(super) fn garbage_to_daemons(binary: &Path) -> Result<()> {
    with_witness(binary, |cluster| {
        let mut ports = vec![cluster.directory_port, cluster.join_port, cluster.gateways[0].port];
        ports.extend(&cluster.brick_ports);
        ports.push(cluster.gateways[0].nbd_port);
        let mut noise = Noise::new(13);
        for port in ports {
            for message in garbage(&mut noise) {
                let mut stream = connect(port).with_context(|| format!("port {port} no longer answers"))?;
                // It may be closed while we send; that is a good answer.
                let _ = stream.write_all(&message);
                let _ = stream.shutdown(Shutdown::Write);
            }
        }
        ensure!(cluster.status()?.is_object(), "the directory no longer answers");
        Ok(())
    })
}

fn garbage(noise: &mut Noise) -> Vec<Vec<u8>> {
    let mut messages = vec![
        Vec::new(),
        vec![0; 4],
        vec![0xff; 64],
        vec![0; 1 << 20],
        b"GET / HTTP/1.1\r\nHost: brick\r\n\r\n".to_vec(),
        vec![0x16, 3, 1, 0xff, 0xff, 1, 0, 0xff, 0xff],
    ];
    messages.extend((0..20).map(|round| {
        let length = 1 + noise.below(1 << (round % 16 + 1)) as usize;
        noise.bytes(length)
    }));
    messages
}

/// Writes of 512 bytes into one block through two gateways lose nothing.
pub(super) fn two_gateways_one_block(binary: &Path) -> Result<()> {
    let mut cluster = Cluster::start(binary, &Spec { gateways: 2, ..Spec::default() })?;
    cluster.create("v", SIZE, "raid1x3")?;
    for round in 1..=50u8 {
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..8u64)
                .map(|sector| {
                    let cluster = &cluster;
                    scope.spawn(move || {
                        let mut nbd = cluster.connect((sector % 2) as usize, "v")?;
                        nbd.write(sector * 512, &[round * 4 + sector as u8 / 2; 512])
                    })
                })
                .collect();
            writers
                .into_iter()
                .try_for_each(|writer| writer.join().map_err(|_| anyhow::anyhow!("a writer panicked"))?)
        })?;
        let block = cluster.connect((round % 2).into(), "v")?.read(0, 4096)?;
        for sector in 0..8 {
            let expected = round * 4 + sector as u8 / 2;
            let found = &block[sector * 512..][..512];
            ensure!(
                found.iter().all(|byte| *byte == expected),
                "round {round}: sector {sector} lost its write"
            );
        }
    }
    cluster.all_alive()
}
