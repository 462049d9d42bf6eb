//! Stream sockets, TCP and unix alike, that never block.

use crate::HostError;
use crate::address::{Address, resolve};
use crate::admission::Origin;
use mio::event::Source;
use mio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use mio::{Interest, Registry, Token};
use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::fs::Permissions;
use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Connections that may wait to be taken: as many as the system permits.
const BACKLOG: i32 = -1;

#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Where to connect to, with names resolved.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Target {
    /// May block on the name service when `address` is not literal.
    pub(crate) fn resolve(address: &Address) -> io::Result<Target> {
        Ok(match address {
            Address::Tcp(place) => Target::Tcp(resolve(place)?),
            Address::Unix(path) => Target::Unix(path.clone()),
        })
    }

    /// Whether only this machine reaches it.
    pub(crate) fn is_local(&self) -> bool {
        match self {
            Target::Tcp(address) => address.ip().is_loopback(),
            Target::Unix(_) => true,
        }
    }
}

impl Socket {
    /// Begins to connect; the socket becomes writable when it is connected, or has failed.
    pub(crate) fn connect(target: &Target) -> io::Result<Socket> {
        Ok(match target {
            Target::Tcp(address) => {
                let stream = TcpStream::connect(*address)?;
                stream.set_nodelay(true)?;
                Socket::Tcp(stream)
            }
            Target::Unix(path) => Socket::Unix(UnixStream::connect(path)?),
        })
    }

    /// Edge-triggered, both ways, for as long as it lives: no further system call to change what is waited for.
    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        self.source().register(registry, token, Interest::READABLE | Interest::WRITABLE)
    }

    /// Reads into two places in turn with one system call. The number of bytes; 0 at the end of the stream.
    pub(crate) fn read_two(
        &mut self,
        first: &mut [MaybeUninit<u8>],
        second: &mut [MaybeUninit<u8>],
    ) -> io::Result<usize> {
        let iovecs = [first, second]
            .map(|part| libc::iovec { iov_base: part.as_mut_ptr().cast(), iov_len: part.len() });
        // SAFETY: both slices are valid for writes for the length of the call.
        let count = unsafe { libc::readv(self.fd(), iovecs.as_ptr(), 2) };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }

    pub(crate) fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.write_vectored(parts),
            Socket::Unix(stream) => stream.write_vectored(parts),
        }
    }

    /// The error of a connection attempt, once.
    pub(crate) fn take_error(&self) -> io::Result<Option<io::Error>> {
        match self {
            Socket::Tcp(stream) => stream.take_error(),
            Socket::Unix(stream) => stream.take_error(),
        }
    }

    pub(crate) fn is_tcp(&self) -> bool {
        matches!(self, Socket::Tcp(_))
    }

    fn source(&mut self) -> &mut dyn Source {
        match self {
            Socket::Tcp(stream) => stream,
            Socket::Unix(stream) => stream,
        }
    }

    fn fd(&self) -> RawFd {
        match self {
            Socket::Tcp(stream) => stream.as_raw_fd(),
            Socket::Unix(stream) => stream.as_raw_fd(),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.read(into),
            Socket::Unix(stream) => stream.read(into),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.write(from),
            Socket::Unix(stream) => stream.write(from),
        }
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        Socket::write_vectored(self, parts)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes connections. A unix socket's file is removed with it.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

impl Listener {
    /// Opens and registers it. The file of a unix socket that nobody listens on any more is replaced.
    /// Whoever may open that file reads and writes all that is served behind it: its owner may, and `group` if there is one.
    pub(crate) fn open(
        address: &Address,
        group: Option<libc::gid_t>,
        registry: &Registry,
        token: Token,
    ) -> Result<Listener, HostError> {
        let failed =
            |error: io::Error| HostError::Listen { address: address.to_string(), why: error.to_string() };
        let mut listener = Listener::bind(address, group).map_err(failed)?;
        let source: &mut dyn Source = match &mut listener {
            Listener::Tcp(listener) => listener,
            Listener::Unix(listener, _) => listener,
        };
        source.register(registry, token, Interest::READABLE).map_err(failed)?;
        Ok(listener)
    }

    fn bind(address: &Address, group: Option<libc::gid_t>) -> io::Result<Listener> {
        match address {
            Address::Tcp(place) => {
                let listener = TcpListener::bind(resolve(place)?)?;
                widen(&listener)?;
                Ok(Listener::Tcp(listener))
            }
            Address::Unix(path) => {
                let bind = || group.map_or_else(|| bind_private(path), |group| bind_shared(path, group));
                let bound = match bind() {
                    Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_abandoned(path) => {
                        std::fs::remove_file(path)?;
                        bind()
                    }
                    other => other,
                };
                Ok(Listener::Unix(bound?, path.clone()))
            }
        }
    }

    /// Where it listens, with the port that was drawn.
    pub(crate) fn address(&self) -> io::Result<Address> {
        Ok(match self {
            Listener::Tcp(listener) => Address::Tcp(listener.local_addr()?.to_string()),
            Listener::Unix(_, path) => Address::Unix(path.clone()),
        })
    }

    /// The next connection, and where it comes from; `None` when there is none now.
    pub(crate) fn accept(&self) -> io::Result<Option<(Socket, Origin)>> {
        let accepted = match self {
            Listener::Tcp(listener) => {
                listener.accept().map(|(stream, from)| (Socket::Tcp(stream), from.ip().into()))
            }
            Listener::Unix(listener, _) => {
                listener.accept().map(|(stream, _)| (Socket::Unix(stream), Origin::Here))
            }
        };
        match accepted {
            Ok((socket, origin)) => {
                if let Socket::Tcp(stream) = &socket {
                    // It fails for a caller that is gone by now, of which its first read tells.
                    let _ = stream.set_nodelay(true);
                }
                Ok(Some((socket, origin)))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Binds a socket that only its owner may use, from its first moment on: Linux makes its file with the socket's own mode.
fn bind_private(path: &Path) -> io::Result<UnixListener> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    net::listen(&socket, BACKLOG)?;
    Ok(UnixListener::from_std(socket.into()))
}

/// Lets as many callers wait as the system permits: those beyond call again after a second.
pub(crate) fn widen(listener: impl AsFd) -> io::Result<()> {
    Ok(net::listen(listener, BACKLOG)?)
}

/// Binds a socket that a group may use, too. Its file gets its group and mode in a folder that nobody else can enter, and its name
/// when it has both: by its name, somebody else could have put another file in its place meanwhile.
fn bind_shared(path: &Path, group: libc::gid_t) -> io::Result<UnixListener> {
    let parent = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut private = tempfile::Builder::new();
    private.prefix(".brickwork-").permissions(Permissions::from_mode(0o700));
    let private = private.tempdir_in(parent)?;
    let entered = enter(private.path())?;
    let listener = bind_private(&private.path().join(SHARED))?;
    // All by the folder that was entered, whatever its name leads to by now.
    rustix::fs::chownat(&entered, SHARED, None, Some(Gid::from_raw(group)), AtFlags::SYMLINK_NOFOLLOW)?;
    rustix::fs::chmodat(&entered, SHARED, Mode::from_raw_mode(0o660), AtFlags::empty())?;
    match rustix::fs::linkat(&entered, SHARED, CWD, path, AtFlags::empty()) {
        Err(Errno::EXIST) => Err(io::ErrorKind::AddrInUse.into()),
        linked => Ok(linked.map(|()| listener)?),
    }
}

/// Opens a folder that we have made, if it is still the one that its name leads to: one that is ours, and that only we may enter.
fn enter(folder: &Path) -> io::Result<OwnedFd> {
    let entered = rustix::fs::open(folder, DIRECTORY, Mode::empty())?;
    let found = rustix::fs::fstat(&entered)?;
    let is_ours = found.st_uid == rustix::process::geteuid().as_raw() && found.st_mode & 0o077 == 0;
    if is_ours { Ok(entered) } else { Err(io::Error::other("somebody moved the folder in which it is made")) }
}

/// The name of a socket in a folder of its own.
const SHARED: &str = "s";
const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The number of a group that is given by name or number.
pub(crate) fn group_id(group: &str) -> Result<libc::gid_t, HostError> {
    if let Ok(number) = group.parse() {
        return Ok(number);
    }
    let groups = std::fs::read_to_string("/etc/group").unwrap_or_default();
    let mut lines = groups.lines().map(|line| line.split(':'));
    let number =
        lines.find_map(|mut fields| (fields.next()? == group).then(|| fields.nth(1)?.parse().ok())?);
    number.ok_or_else(|| HostError::Group { group: group.to_owned() })
}

/// Whether there is a socket that nobody listens on. A file of another kind refuses connections, too.
fn is_abandoned(path: &Path) -> bool {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    is_socket && std::os::unix::net::UnixStream::connect(path).err().is_some_and(refused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::thread;
    use std::time::{Duration, Instant};

    /// Whatever else the process makes while it binds a socket keeps its permissions: a folder without `x` is of no use.
    #[test]
    fn binding_a_socket_leaves_what_other_threads_make_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (socket, is_over) = (folder.path().join("socket"), AtomicBool::new(false));
        std::fs::create_dir(folder.path().join("first")).unwrap();
        let mode = |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().mode();
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    drop(Listener::bind(&Address::Unix(socket.clone()), None).unwrap());
                }
            });
            let made: Vec<u32> = (0..2000)
                .map(|number| {
                    std::fs::create_dir(folder.path().join(number.to_string())).unwrap();
                    mode(&number.to_string())
                })
                .collect();
            is_over.store(true, Ordering::Relaxed);
            assert!(made.iter().all(|made| *made == mode("first")), "{:o}", made.iter().min().unwrap());
        });
    }

    /// Who may write in the folder puts something of their own where the socket is made, again and again. Whatever comes of it, the
    /// group gets the socket and nothing else.
    #[test]
    fn a_socket_for_a_group_changes_nothing_that_is_put_in_its_way() {
        let folder = tempfile::tempdir().unwrap();
        let [victim, socket, bait] = ["victim", "socket", "bait"].map(|name| folder.path().join(name));
        std::fs::write(&victim, "precious").unwrap();
        std::fs::set_permissions(&victim, Permissions::from_mode(0o600)).unwrap();
        let own = std::fs::metadata(folder.path()).unwrap().gid();
        let (is_over, exchanges) = (AtomicBool::new(false), AtomicU32::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let _ = std::fs::hard_link(&victim, &bait);
                    while !is_over.load(Ordering::Relaxed) && !exchange(&socket, &bait) {
                        std::hint::spin_loop();
                    }
                    exchanges.fetch_add(1, Ordering::Relaxed);
                    let exchanged = Instant::now();
                    while exchanged.elapsed() < Duration::from_micros(100) {}
                    let _ = [&bait, &socket].map(std::fs::remove_file);
                }
            });
            let end = Instant::now() + Duration::from_secs(20);
            while exchanges.load(Ordering::Relaxed) < 500 && Instant::now() < end {
                drop(Listener::bind(&Address::Unix(socket.clone()), Some(own)));
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert_eq!(std::fs::metadata(&victim).unwrap().permissions().mode() & 0o777, 0o600);
    }

    /// Lets two files change their names, at once.
    fn exchange(one: &Path, other: &Path) -> bool {
        let flags = rustix::fs::RenameFlags::EXCHANGE;
        rustix::fs::renameat_with(CWD, one, CWD, other, flags).is_ok()
    }

    /// What is there and in use, or no socket at all, is not replaced, and nothing is left beside it.
    #[test]
    fn a_socket_replaces_only_one_that_is_abandoned() {
        let folder = tempfile::tempdir().unwrap();
        let own = std::fs::metadata(folder.path()).unwrap().gid();
        for (name, group) in [("own", None), ("shared", Some(own))] {
            let folder = folder.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            replaces_only_what_is_abandoned(&folder, group);
        }
    }

    fn replaces_only_what_is_abandoned(folder: &Path, group: Option<libc::gid_t>) {
        let [socket, other] = ["socket", "other"].map(|name| folder.join(name));
        let address = Address::Unix(socket.clone());
        let bind = || Listener::bind(&address, group);
        let listener = bind().unwrap();
        assert_eq!(bind().unwrap_err().kind(), io::ErrorKind::AddrInUse);
        std::os::unix::net::UnixStream::connect(&socket).unwrap();
        assert!(listener.accept().unwrap().is_some());
        std::fs::rename(&socket, &other).unwrap();
        std::fs::write(&socket, "a file").unwrap();
        assert_eq!(bind().unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert_eq!(std::fs::read_to_string(&socket).unwrap(), "a file");
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 2, "the file, and the socket of before");
        drop(listener);
        drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
        bind().unwrap();
    }

    #[test]
    fn a_unix_socket_is_its_owners_unless_a_group_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let poll = mio::Poll::new().unwrap();
        let address = Address::Unix(folder.path().join("socket"));
        let own = std::fs::metadata(folder.path()).unwrap().gid();
        for (group, mode) in [(None, 0o600), (Some(own), 0o660)] {
            let listener = Listener::open(&address, group, poll.registry(), Token(1)).unwrap();
            let found = std::fs::metadata(folder.path().join("socket")).unwrap();
            assert_eq!((found.permissions().mode() & 0o777, found.gid()), (mode, own));
            drop(listener);
        }
        assert_eq!((group_id("root").unwrap(), group_id("4711").unwrap()), (0, 4711));
        let error = group_id("no-such-group").unwrap_err().to_string();
        assert!(error.contains("no-such-group"), "{error}");
    }
}
