//! Callers who say nothing, or half of what they should, keep nobody else out of any door; nor does a daemon without descriptors.

use crate::common::{BINARY, Site};
use rig::nbd::{Nbd, connect};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const CALLERS: usize = 400;
/// Far below the 5 s after which a silent caller is hung up on.
const SERVED_WITHIN: Duration = Duration::from_secs(4);
/// The start of a TLS record that announces more.
const HALF_TLS: &[u8] = &[0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00];
/// The start of Brickwork's own hello.
const HALF_HELLO: &[u8] = b"BRKH\x01\0\0\0";

/// So many connections to a port, on which `said` was said; one that is closed is opened again until this is dropped.
struct Crowd {
    is_over: Arc<AtomicBool>,
    opened: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Crowd {
    fn gather(port: u16, count: usize, said: &'static [u8]) -> Crowd {
        let (is_over, opened) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let thread = thread::spawn({
            let (is_over, opened) = (is_over.clone(), opened.clone());
            move || {
                let mut callers: Vec<TcpStream> = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    callers.retain_mut(is_open);
                    while callers.len() < count && !is_over.load(Ordering::Relaxed) {
                        callers.push(call(port, said));
                        opened.fetch_add(1, Ordering::Relaxed);
                    }
                    thread::sleep(Duration::from_millis(20));
                }
            }
        });
        let crowd = Crowd { is_over, opened, thread: Some(thread) };
        while crowd.opened.load(Ordering::Relaxed) < count {
            thread::sleep(Duration::from_millis(5));
        }
        crowd
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.take().expect("joined once").join().expect("no panic");
        eprintln!("  {} connections were opened", self.opened.load(Ordering::Relaxed));
    }
}

fn call(port: u16, said: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the daemon listens");
    // It may be closed already.
    let _ = stream.write_all(said);
    stream.set_nonblocking(true).expect("a socket");
    stream
}

fn is_open(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0; 64]) {
        Ok(0) => false,
        Ok(_) => true,
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    }
}

/// Does something that must not take long, and tells how long it took.
fn soon<T>(what: &str, does: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let done = does();
    eprintln!("{what}: {:.2} s", started.elapsed().as_secs_f64());
    assert!(started.elapsed() < SERVED_WITHIN, "{what} took {:?}", started.elapsed());
    done
}

fn four_operators(site: &Site, what: &str) {
    soon(what, || {
        thread::scope(|scope| {
            let operators: Vec<_> = (0..4).map(|_| scope.spawn(|| site.text("status"))).collect();
            operators.into_iter().for_each(|operator| drop(operator.join().expect("an operator is served")));
        });
    });
}

#[test]
fn silent_callers_keep_nobody_out() {
    host::descriptors::raise();
    let site = Site::measured(1);
    site.text("volume create v --size 16MiB --layout raid0x1 --groups 1");
    let cluster = &site.cluster;
    four_operators(&site, "status of four operators beside nobody");
    for (what, said) in [("silent callers", &b""[..]), ("half TLS handshakes", HALF_TLS)] {
        let _crowd = Crowd::gather(cluster.directory_port, CALLERS, said);
        four_operators(&site, &format!("status of four operators beside {CALLERS} {what}"));
    }
    {
        let _crowd = Crowd::gather(cluster.gateways[0].nbd_port, 1_100, b"");
        soon("an NBD client beside 1,100 silent ones", || {
            let mut nbd = Nbd::open(&cluster.endpoint(0), "v").expect("it attaches");
            nbd.read(0, 4096).expect("it reads");
        });
    }
    for port in cluster.metrics_ports() {
        let _crowd = Crowd::gather(port, CALLERS, b"");
        // All of loopback is one address: a reader may make way before its request is read, and asks again as Prometheus does.
        let page = soon("metrics beside 400 silent callers", || {
            (0..20).map(|_| metrics(port)).find(|page| !page.is_empty()).unwrap_or_default()
        });
        assert!(page.contains("brickwork_peers_up"), "{page}");
    }
    let token = cluster.token().expect("a token");
    let _crowd = Crowd::gather(cluster.join_port, CALLERS, b"");
    let joined = soon("a client that joins beside 400 silent callers", || {
        let mut command = Command::new(BINARY);
        command.args(["client", "init", "--join", &token, "--dir"]).arg(site.dir.path().join("joined"));
        command.output().expect("the binary runs")
    });
    assert!(joined.status.success(), "{}", String::from_utf8_lossy(&joined.stderr));
}

/// A page of metrics; nothing if the connection was closed before.
fn metrics(port: u16) -> String {
    let mut text = String::new();
    let asked = connect(port).and_then(|mut stream| {
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n")?;
        Ok(stream.read_to_string(&mut text)?)
    });
    asked.map(|_| text).unwrap_or_default()
}

#[test]
fn half_hellos_keep_no_operator_out_of_a_plain_cluster() {
    host::descriptors::raise();
    let site = Site::start(1);
    let _crowd = Crowd::gather(site.cluster.directory_port, CALLERS, HALF_HELLO);
    four_operators(&site, &format!("status of four operators beside {CALLERS} half hellos"));
}

/// Found from outside: a listener that had no descriptor took nobody until somebody else called.
#[test]
fn a_daemon_without_descriptors_takes_those_who_waited_once_it_has_some() {
    host::descriptors::raise();
    let site = Site::start(1);
    limit_descriptors(site.cluster.directory.pid(), 40);
    soon("status of a directory that may have 40 descriptors", || site.text("status"));
    let crowd: Vec<TcpStream> = (0..100).map(|_| call(site.cluster.directory_port, b"")).collect();
    soon("status beside a hundred callers of a directory that may have 40 descriptors", || {
        site.text("status")
    });
    let waiting: Vec<TcpStream> = (0..100).map(|_| call(site.cluster.directory_port, HALF_HELLO)).collect();
    drop((crowd, waiting));
    soon("status after these have hung up", || site.text("status"));
    let nbd_gateway = &site.cluster.gateways[0];
    limit_descriptors(nbd_gateway.daemon.pid(), 40);
    site.text("volume create v --size 16MiB --layout raid0x1 --groups 1");
    let crowd: Vec<TcpStream> = (0..100).map(|_| call(nbd_gateway.nbd_port, b"")).collect();
    soon("an NBD client beside a hundred silent ones of a gateway that may have 40 descriptors", || {
        let mut nbd = Nbd::open(&site.cluster.endpoint(0), "v").expect("it attaches");
        nbd.read(0, 4096).expect("it reads");
    });
    drop(crowd);
}

fn limit_descriptors(pid: u32, count: usize) {
    let mut command = Command::new("prlimit");
    command.args([format!("--pid={pid}"), format!("--nofile={count}:{count}")]);
    assert!(command.status().expect("prlimit runs").success(), "descriptors of {pid} are limited");
}
