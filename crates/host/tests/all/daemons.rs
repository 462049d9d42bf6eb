//! All daemons on loopback, with real sockets and real disks; an NBD client by hand.

use crate::common::Authority;
use crate::common::daemon::{Daemon, LIMIT, MIB, admin, brick_options, node, start_brick, start_directory};
use base::BrickId;
use host::{
    AdminOptions, AttachOptions, DiskIdentity, DiskSpec, GatewayOptions, HostError, NbdOptions, Shutdown,
    TlsFiles, admin_call, format_disk, run_attach, run_brick, run_gateway,
};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use wire::{AdminReply, AdminRequest};

struct Cluster {
    gateway: Daemon,
    _bricks: Vec<Daemon>,
    directory: Daemon,
    folder: tempfile::TempDir,
}

impl Cluster {
    fn start() -> Cluster {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let directory = start_directory(folder.path());
        let address = directory.addresses[0].clone();
        let bricks = (1..=3).map(|nonce| start_brick(folder.path(), &address, nonce)).collect();
        let gateway = start_gateway(&address, None);
        Cluster { gateway, _bricks: bricks, directory, folder }
    }

    fn admin(&self, request: AdminRequest) -> Result<AdminReply, HostError> {
        admin(&self.directory.addresses[0], request)
    }

    fn create(&self, name: &str, size_bytes: u64) {
        self.create_as(name, "raid1x3", size_bytes);
    }

    /// Makes a volume as soon as its bricks have been heard of.
    fn create_as(&self, name: &str, layout: &str, size_bytes: u64) {
        let limit = Instant::now() + LIMIT;
        let request = AdminRequest::CreateVolume {
            name: name.to_owned(),
            size_bytes,
            layout: layout.to_owned(),
            stripe_unit_blocks: 0,
            groups: 1,
            read_policy: wire::ReadPolicy::default(),
            io_timeout: wire::IoTimeout::default(),
            protocol: wire::Protocol::default(),
            placement: wire::Placement::default(),
            stream: base::StreamId::default(),
            nonce: 1,
            reads: wire::Reads::default(),
        };
        while let Err(error) = self.admin(request.clone()) {
            assert!(Instant::now() < limit, "{error}");
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// A small file system of its own, unmounted when this is dropped; `None`, and a word why, where mounts are not permitted.
struct Tmpfs(tempfile::TempDir);

impl Tmpfs {
    fn mount(bytes: u64) -> Option<Tmpfs> {
        let folder = tempfile::tempdir().unwrap();
        let target = std::ffi::CString::new(folder.path().to_str().unwrap()).unwrap();
        let data = std::ffi::CString::new(format!("size={bytes}")).unwrap();
        let (name, data) = (c"tmpfs".as_ptr(), data.as_ptr().cast());
        // SAFETY: four strings that end in zero.
        if unsafe { libc::mount(name, target.as_ptr(), name, 0, data) } != 0 {
            eprintln!("skipped: cannot mount a tmpfs: {}", std::io::Error::last_os_error());
            return None;
        }
        Some(Tmpfs(folder))
    }

    /// Leaves no room.
    fn fill(&self) {
        let mut filler = std::fs::File::create(self.0.path().join("filler")).unwrap();
        while filler.write_all(&[7; 65_536]).is_ok() {}
        while filler.write_all(&[7; 512]).is_ok() {}
    }

    fn empty(&self) {
        std::fs::remove_file(self.0.path().join("filler")).unwrap();
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let target = std::ffi::CString::new(self.0.path().to_str().unwrap()).unwrap();
        // SAFETY: a string that ends in zero.
        unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
    }
}

/// Copies what is not zero: the copy is sparse, so that it finds no room for the rest on a full file system.
fn copy_sparsely(from: &Path, to: &Path) {
    use std::os::unix::fs::FileExt;
    let content = std::fs::read(from).unwrap();
    let copy = std::fs::File::create(to).unwrap();
    copy.set_len(content.len() as u64).unwrap();
    for (at, block) in content.chunks(4096).enumerate().filter(|(_, block)| block.iter().any(|b| *b != 0)) {
        copy.write_all_at(block, at as u64 * 4096).unwrap();
    }
}

fn start_gateway(directory: &str, tls: Option<TlsFiles>) -> Daemon {
    let options = GatewayOptions {
        node: node(),
        listen: "127.0.0.1:0".to_owned(),
        advertise: None,
        name: None,
        beside: None,
        directory: directory.to_owned(),
        nbd: NbdOptions { listen: vec!["tcp:127.0.0.1:0".to_owned()], tls, group: None },
    };
    Daemon::start(move |shutdown, on_ready| run_gateway(options, shutdown, on_ready))
}

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// The least of an NBD client: simple replies, one request at a time.
struct NbdClient {
    stream: Box<dyn Stream>,
    size_bytes: u64,
}

impl NbdClient {
    fn tcp(address: &str, export: &str) -> NbdClient {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        NbdClient::open(Box::new(stream), export)
    }

    fn unix(path: &Path, export: &str) -> NbdClient {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        NbdClient::open(Box::new(stream), export)
    }

    /// Over TLS, with a certificate of one's own.
    fn tls(address: &str, export: &str, files: &TlsFiles) -> std::io::Result<NbdClient> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(LIMIT))?;
        greet(&mut stream);
        let start_tls = [b"IHAVEOPT".as_slice(), &5u32.to_be_bytes(), &0u32.to_be_bytes()].concat();
        stream.write_all(&start_tls)?;
        let mut answer = [0; 20];
        stream.read_exact(&mut answer)?;
        assert_eq!(&answer[8..16], &[0, 0, 0, 5, 0, 0, 0, 1], "STARTTLS is acknowledged");
        let mut stream = rustls::StreamOwned::new(tls_client(files), stream);
        // A certificate that the server refuses shows only when something is read.
        let client = ask_export(&mut stream, export)?;
        Ok(NbdClient { stream: Box::new(stream), size_bytes: client })
    }

    fn open(mut stream: Box<dyn Stream>, export: &str) -> NbdClient {
        greet(&mut stream);
        let size_bytes = ask_export(&mut stream, export).unwrap();
        NbdClient { stream, size_bytes }
    }

    fn ask(&mut self, command: u16, offset: u64, length: u32, content: &[u8]) -> u32 {
        let mut request = 0x2560_9513u32.to_be_bytes().to_vec();
        request.extend_from_slice(&[0, 0]);
        request.extend_from_slice(&command.to_be_bytes());
        request.extend_from_slice(&7u64.to_be_bytes());
        request.extend_from_slice(&offset.to_be_bytes());
        request.extend_from_slice(&length.to_be_bytes());
        request.extend_from_slice(content);
        self.stream.write_all(&request).unwrap();
        let mut reply = [0; 16];
        self.stream.read_exact(&mut reply).unwrap();
        assert_eq!(&reply[..4], &0x6744_6698u32.to_be_bytes());
        u32::from_be_bytes(reply[4..8].try_into().unwrap())
    }

    fn write(&mut self, offset: u64, content: &[u8]) {
        assert_eq!(self.ask(1, offset, content.len() as u32, content), 0);
    }

    fn read(&mut self, offset: u64, length: usize) -> Vec<u8> {
        assert_eq!(self.ask(0, offset, length as u32, &[]), 0);
        let mut content = vec![0; length];
        self.stream.read_exact(&mut content).unwrap();
        content
    }
}

fn greet(stream: &mut dyn Stream) {
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
    stream.write_all(&3u32.to_be_bytes()).unwrap();
}

/// Attaches to an export; its size in bytes.
fn ask_export(stream: &mut dyn Stream, export: &str) -> std::io::Result<u64> {
    let length = (export.len() as u32).to_be_bytes();
    stream.write_all(&[b"IHAVEOPT".as_slice(), &1u32.to_be_bytes(), &length, export.as_bytes()].concat())?;
    let mut answer = [0; 10];
    stream.read_exact(&mut answer)?;
    Ok(u64::from_be_bytes(answer[..8].try_into().unwrap()))
}

fn tls_client(files: &TlsFiles) -> rustls::ClientConnection {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&files.ca).unwrap()).unwrap();
    let chain = vec![CertificateDer::from_pem_file(&files.cert).unwrap()];
    let config = rustls::ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, PrivateKeyDer::from_pem_file(&files.key).unwrap())
        .unwrap();
    rustls::ClientConnection::new(config.into(), ServerName::try_from("gateway.brickwork").unwrap()).unwrap()
}

fn content(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|at| (at / 5 + seed) as u8).collect()
}

#[test]
fn a_volume_is_written_through_one_front_and_read_through_another() {
    let cluster = Cluster::start();
    cluster.create("v", 16 * MIB);
    let mut client = NbdClient::tcp(cluster.gateway.nbd(), "v");
    assert_eq!(client.size_bytes, 16 * MIB);
    let writes =
        [(0, 4096), (12_288, 512), (MIB, 1 << 20), (3 * MIB + 4096, 100 * 4096), (16 * MIB - 512, 512)];
    for (seed, (offset, length)) in writes.into_iter().enumerate() {
        client.write(offset, &content(length, seed));
    }
    let socket = cluster.folder.path().join("attach");
    let options = AttachOptions {
        node: node(),
        directory: cluster.directory.addresses[0].clone(),
        volume: "v".to_owned(),
        socket: socket.clone(),
        group: None,
    };
    let _attach = Daemon::start(move |shutdown, on_ready| run_attach(options, shutdown, on_ready));
    let mut attached = NbdClient::unix(&socket, "v");
    for (seed, (offset, length)) in writes.into_iter().enumerate() {
        assert!(client.read(offset, length) == content(length, seed), "through the gateway at {offset}");
        assert!(attached.read(offset, length) == content(length, seed), "through attach at {offset}");
    }
    assert_eq!(attached.read(8192, 4096), vec![0; 4096]);
    attached.write(8192, &content(4096, 9));
    assert_eq!(client.read(8192, 4096), content(4096, 9));
}

#[test]
fn what_was_acknowledged_is_there_after_all_daemons_were_restarted() {
    let Cluster { gateway, _bricks: bricks, directory, folder } = {
        let cluster = Cluster::start();
        cluster.create("v", 16 * MIB);
        let mut client = NbdClient::tcp(cluster.gateway.nbd(), "v");
        client.write(4096, &content(70_000 / 512 * 512, 1));
        cluster
    };
    drop((gateway, bricks));
    drop(directory);
    let directory = start_directory(folder.path());
    let again = |id: u32| {
        let spec = DiskSpec { path: folder.path().join(BrickId(id).to_string()), size_bytes: None };
        let options = brick_options(BrickId(id), spec, &directory.addresses[0]);
        Daemon::start(move |shutdown, on_ready| run_brick(options, shutdown, on_ready))
    };
    let _bricks: Vec<Daemon> = (1..=3).map(again).collect();
    let gateway = start_gateway(&directory.addresses[0], None);
    let mut client = NbdClient::tcp(gateway.nbd(), "v");
    assert_eq!(client.read(4096, 69_632), content(69_632, 1));
}

#[test]
fn half_open_and_deaf_clients_by_the_hundred_harm_nobody() {
    let cluster = Cluster::start();
    cluster.create("v", 16 * MIB);
    let silent: Vec<TcpStream> =
        (0..150).map(|_| TcpStream::connect(cluster.gateway.nbd()).unwrap()).collect();
    let halfway: Vec<TcpStream> = (0..150)
        .map(|_| {
            let mut stream = TcpStream::connect(cluster.gateway.nbd()).unwrap();
            stream.write_all(b"\0\0\0\x03IHAVE").unwrap();
            stream
        })
        .collect();
    // These ask for far more than sockets hold, and never read it.
    let deaf: Vec<NbdClient> = (0..20)
        .map(|_| {
            let mut client = NbdClient::tcp(cluster.gateway.nbd(), "v");
            let mut requests = Vec::new();
            for _ in 0..64 {
                requests.extend_from_slice(&0x2560_9513u32.to_be_bytes());
                requests.extend_from_slice(&[0; 20]);
                requests.extend_from_slice(&(MIB as u32).to_be_bytes());
            }
            client.stream.write_all(&requests).unwrap();
            client
        })
        .collect();
    let mut client = NbdClient::tcp(cluster.gateway.nbd(), "v");
    for seed in 0..50 {
        client.write(seed * 4096, &content(4096, seed as usize));
        assert_eq!(client.read(seed * 4096, 4096), content(4096, seed as usize));
    }
    drop((silent, halfway, deaf));
    client.write(0, &content(4096, 77));
}

#[test]
fn an_nbd_client_must_show_a_certificate_where_there_are_some() {
    let cluster = Cluster::start();
    cluster.create("v", 16 * MIB);
    let (ours, theirs) = (Authority::new(), Authority::new());
    let files = ours.certify("gateway.brickwork");
    let gateway = start_gateway(&cluster.directory.addresses[0], Some(files));
    let mut client = NbdClient::tls(gateway.nbd(), "v", &ours.certify("someone.example")).unwrap();
    for (offset, length) in [(0, 4096), (MIB, 1 << 20)] {
        client.write(offset, &content(length, 5));
        assert_eq!(client.read(offset, length), content(length, 5));
    }
    // A certificate of another authority, checked against ours on the client's side so that only the server minds.
    let stranger = TlsFiles { ca: ours.certify("x.example").ca, ..theirs.certify("someone.example") };
    assert!(NbdClient::tls(gateway.nbd(), "v", &stranger).is_err());
    // Found from outside: a brick's certificate opened every volume.
    for daemon in ["brick-3.bricks.brickwork", "directory.brickwork", "gateway.brickwork"] {
        assert!(NbdClient::tls(gateway.nbd(), "v", &ours.certify(daemon)).is_err(), "{daemon}");
    }
    assert!(NbdClient::tls(gateway.nbd(), "v", &ours.certify("client.brickwork")).is_ok());
    let mut plain = TcpStream::connect(gateway.nbd()).unwrap();
    plain.set_read_timeout(Some(LIMIT)).unwrap();
    greet(&mut plain);
    assert!(ask_export(&mut plain, "v").is_err(), "nothing is served before TLS");
}

#[test]
fn bad_requests_get_errors_and_the_connection_goes_on() {
    let cluster = Cluster::start();
    cluster.create("v", MIB);
    let mut client = NbdClient::tcp(cluster.gateway.nbd(), "v");
    let (einval, enospc) = (22, 28);
    let size = client.size_bytes;
    assert_eq!(client.ask(0, size, 4096, &[]), einval);
    assert_eq!(client.ask(1, size - 512, 1024, &[0; 1024]), enospc);
    assert_eq!(client.ask(99, 0, 4096, &[]), einval);
    assert_eq!(client.read(0, 512), vec![0; 512]);
}

#[test]
fn two_bricks_on_one_disk_are_refused() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let directory = start_directory(folder.path());
    let _first = start_brick(folder.path(), &directory.addresses[0], 1);
    let spec = DiskSpec { path: folder.path().join("brick-1"), size_bytes: None };
    let options = brick_options(BrickId(1), spec, &directory.addresses[0]);
    let error = run_brick(options, &Shutdown::new().unwrap(), Box::new(|_| {})).unwrap_err().to_string();
    assert!(error.contains("in use") && error.contains("brick-1"), "{error}");
}

#[test]
fn a_disk_of_another_brick_is_refused_by_name() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let directory = start_directory(folder.path());
    drop(start_brick(folder.path(), &directory.addresses[0], 1));
    let spec = DiskSpec { path: folder.path().join("brick-1"), size_bytes: None };
    let options = brick_options(BrickId(9), spec, &directory.addresses[0]);
    let error = run_brick(options, &Shutdown::new().unwrap(), Box::new(|_| {})).unwrap_err().to_string();
    assert!(error.contains("brick-1"), "{error}");
}

#[test]
fn a_directory_that_is_not_there_is_a_timeout_that_says_why() {
    let options = AdminOptions {
        node: node(),
        directory: "127.0.0.1:1".to_owned(),
        timeout: Duration::from_millis(300),
    };
    let error = admin_call(&options, AdminRequest::STATUS).unwrap_err().to_string();
    assert!(error.contains("127.0.0.1:1") && error.contains("refused"), "{error}");
}

/// Found from outside: a brick whose disk file met ENOSPC stayed failed until it was restarted, long after there was room.
#[test]
fn a_brick_on_a_full_file_system_says_so_and_serves_again_once_there_is_room() {
    let Some(small) = Tmpfs::mount(48 * MIB) else { return };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let directory = start_directory(folder.path());
    let address = directory.addresses[0].clone();
    let bricks: Vec<Daemon> = (1..=2)
        .map(|nonce| {
            let AdminReply::Brick(id) = admin(&address, AdminRequest::AdmitBrick { nonce }).unwrap() else {
                panic!("no brick")
            };
            let spec = DiskSpec { path: folder.path().join(id.to_string()), size_bytes: Some(64 * MIB) };
            let identity = DiskIdentity { cluster: node().cluster, brick: id, index: 0, journal_bytes: None };
            format_disk(&spec, &identity).unwrap();
            let sparse = small.0.path().join(id.to_string());
            copy_sparsely(&spec.path, &sparse);
            let spec = DiskSpec { path: sparse, size_bytes: None };
            let options = brick_options(id, spec, &address);
            Daemon::start(move |shutdown, on_ready| run_brick(options, shutdown, on_ready))
        })
        .collect();
    let gateway = start_gateway(&address, None);
    let cluster = Cluster { gateway, _bricks: bricks, directory, folder };
    cluster.create_as("v", "raid1x2", 16 * MIB);
    let mut client = NbdClient::tcp(cluster.gateway.nbd(), "v");
    client.write(0, &content(4096, 1));
    small.fill();
    let writer = thread::spawn(move || {
        for at in 0..64 {
            client.write(at * 65_536, &content(65_536, at as usize));
        }
        client
    });
    let failures = || -> Vec<String> {
        let Ok(AdminReply::Status(status)) = cluster.admin(AdminRequest::STATUS) else { panic!("no status") };
        status.bricks.into_iter().filter_map(|brick| brick.status.failed).collect()
    };
    let limit = Instant::now() + LIMIT;
    while failures().is_empty() {
        assert!(Instant::now() < limit, "no brick says that it has failed");
        thread::sleep(Duration::from_millis(20));
    }
    let why = failures().join(", ");
    assert!(why.is_empty() || why.contains(wire::DISK_FULL) && why.contains("brick-"), "{why}");
    small.empty();
    let mut client = writer.join().expect("all that was written is acknowledged in the end");
    for at in 0..64 {
        assert!(client.read(at * 65_536, 65_536) == content(65_536, at as usize), "at {at}");
    }
    assert_eq!(failures(), Vec::<String>::new());
}
