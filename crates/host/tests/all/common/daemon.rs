//! Daemons on threads of the test, on loopback and with small disks.

use base::{BrickId, ClusterId};
use host::{
    AdminOptions, BrickOptions, DirectoryOptions, DiskIdentity, DiskSpec, HostError, IoEngine, NodeOptions,
    Ready, Security, Shutdown, admin_call, format_disk, run_brick, run_directory,
};
use std::os::unix::thread::JoinHandleExt;
use std::path::Path;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use wire::{AdminReply, AdminRequest};

pub const MIB: u64 = 1 << 20;
/// Far above what anything here takes; only a failure waits for so long.
pub const LIMIT: Duration = Duration::from_secs(60);

pub fn node() -> NodeOptions {
    NodeOptions { cluster: ClusterId([4; 16]), security: Security::Plain, metrics: None }
}

/// A daemon on a thread; it ends when this is dropped.
pub struct Daemon {
    shutdown: Shutdown,
    pub addresses: Vec<String>,
    thread: Option<JoinHandle<Result<(), HostError>>>,
}

impl Daemon {
    pub fn start<F>(run: F) -> Daemon
    where
        F: FnOnce(&Shutdown, Box<dyn FnOnce(&Ready)>) -> Result<(), HostError> + Send + 'static,
    {
        let shutdown = Shutdown::new().unwrap();
        let (sender, ready) = mpsc::channel::<Vec<String>>();
        let on_ready = move |ready: &Ready| sender.send(ready.addresses.clone()).unwrap();
        let thread = thread::spawn({
            let shutdown = shutdown.clone();
            move || run(&shutdown, Box::new(on_ready))
        });
        let addresses = ready.recv_timeout(LIMIT).expect("the daemon is ready in time");
        Daemon { shutdown, addresses, thread: Some(thread) }
    }

    /// Processor time that its loop has used: other tests run in this process too.
    pub fn processor_time(&self) -> Duration {
        let thread = self.thread.as_ref().expect("not joined yet").as_pthread_t();
        // SAFETY: a thread that was not joined, and valid places for both results.
        let time = unsafe {
            let (mut clock, mut time) = (0, std::mem::zeroed::<libc::timespec>());
            assert_eq!(libc::pthread_getcpuclockid(thread, &raw mut clock), 0);
            assert_eq!(libc::clock_gettime(clock, &raw mut time), 0, "the daemon has ended");
            time
        };
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }

    /// Where its NBD front listens on TCP.
    pub fn nbd(&self) -> &str {
        self.addresses.iter().find_map(|address| address.strip_prefix("nbd:tcp:")).expect("an NBD address")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.shutdown.request();
        let result = self.thread.take().expect("joined once").join();
        if !thread::panicking() {
            result.expect("no panic").expect("a clean end");
        }
    }
}

pub fn admin(directory: &str, request: AdminRequest) -> Result<AdminReply, HostError> {
    admin_within(LIMIT, directory, request)
}

pub fn admin_within(
    timeout: Duration,
    directory: &str,
    request: AdminRequest,
) -> Result<AdminReply, HostError> {
    admin_call(&AdminOptions { node: node(), directory: directory.to_owned(), timeout }, request)
}

pub fn start_directory(folder: &Path) -> Daemon {
    let options = DirectoryOptions {
        node: node(),
        listen: "127.0.0.1:0".to_owned(),
        store: folder.join("directory.redb"),
        config: roles::directory::DirectoryConfig::default(),
    };
    Daemon::start(move |shutdown, on_ready| run_directory(options, shutdown, on_ready))
}

pub fn start_brick(folder: &Path, directory: &str, nonce: u64) -> Daemon {
    let reply = admin(directory, AdminRequest::AdmitBrick { nonce }).unwrap();
    let AdminReply::Brick(id) = reply else { panic!("{reply:?}") };
    let spec = DiskSpec { path: folder.join(id.to_string()), size_bytes: Some(64 * MIB) };
    let identity = DiskIdentity { cluster: node().cluster, brick: id, index: 0, journal_bytes: None };
    assert_eq!(format_disk(&spec, &identity).unwrap(), 64 * MIB);
    let options = brick_options(id, spec, directory);
    Daemon::start(move |shutdown, on_ready| run_brick(options, shutdown, on_ready))
}

pub fn brick_options(id: BrickId, spec: DiskSpec, directory: &str) -> BrickOptions {
    BrickOptions {
        node: node(),
        id,
        listen: "127.0.0.1:0".to_owned(),
        advertise: None,
        directory: directory.to_owned(),
        disks: vec![spec],
        calibrations: Vec::new(),
        io: if id.0.is_multiple_of(2) { IoEngine::Plain } else { IoEngine::Auto },
        destage_bytes: None,
        emulation: None,
        cache_bytes: 4 * MIB,
        labels: vec![("host".to_owned(), id.to_string())],
    }
}
