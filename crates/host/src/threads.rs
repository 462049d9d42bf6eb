//! A door whose callers have a thread each: for what is asked seldom, such as joining and metrics. Who is let in is decided in
//! [`crate::admission`], as for every other door.

use crate::admission::{Bounds, Entry, HELLO_MAX, Room, Standing};
use crate::clock::Clock;
use crate::descriptors::{self, Reserve, is_exhausted};
use crate::refusals::refused;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// After so long a door that could not take a connection tries again.
const AGAIN: Duration = Duration::from_millis(100);

/// Serves callers of `listener` until the process ends. Each has [`HELLO_MAX`] and, once it is known, `patience`; then it is hung up
/// on.
///
/// # Errors
/// When there is no thread.
pub fn serve<F>(
    name: &str,
    listener: TcpListener,
    bounds: Bounds,
    patience: Duration,
    answer: F,
) -> io::Result<()>
where
    F: Fn(Caller) + Send + Sync + 'static,
{
    crate::socket::widen(&listener)?;
    let inside = Inside::new(bounds.within(descriptors::raise()));
    let hall = Hall { clock: Clock::start(), inside: Mutex::new(inside), patience };
    let (hall, answer) = (Arc::new(hall), Arc::new(answer));
    thread::Builder::new().name(name.to_owned()).spawn(move || {
        let mut door = Door { listener, reserve: Reserve::default() };
        loop {
            let Some(stream) = door.next(&hall) else { continue };
            let Some(caller) = hall.welcome(stream) else { continue };
            let answer = answer.clone();
            let started = thread::Builder::new().name("caller".to_owned()).spawn(move || answer(caller));
            if let Err(error) = started {
                refused(|| tracing::warn!(%error, "no thread to serve a caller"));
            }
        }
    })?;
    Ok(())
}

/// One who called, as a stream that ends at a moment, however slowly the other side drips.
pub struct Caller {
    stream: Arc<TcpStream>,
    key: u64,
    hall: Arc<Hall>,
    end: Instant,
    has_spoken: bool,
}

impl Caller {
    /// It has proved who it is: nobody takes its place any more.
    ///
    /// # Errors
    /// When there are too many of its kind.
    pub fn is_known(&mut self) -> io::Result<()> {
        self.end = Instant::now() + self.hall.patience;
        let now = self.hall.clock.now();
        let mut inside = self.hall.inside();
        match inside.room.rise(self.key, Standing::Client, now) {
            Entry::Free => {}
            Entry::Instead(other) => inside.send_away(other),
            Entry::Refused => return Err(io::ErrorKind::ConnectionAborted.into()),
        }
        Ok(())
    }

    fn left(&self) -> io::Result<Duration> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

impl Read for Caller {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        let count = (&*self.stream).read(buffer)?;
        if count > 0 && !std::mem::replace(&mut self.has_spoken, true) {
            self.hall.inside().room.has_spoken(self.key);
        }
        Ok(count)
    }
}

impl Write for Caller {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        (&*self.stream).write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.hall.inside().leave(self.key);
    }
}

/// Those inside, shared by their threads and the one at the door.
struct Hall {
    clock: Clock,
    inside: Mutex<Inside>,
    /// What a known caller has.
    patience: Duration,
}

struct Inside {
    room: Room<u64>,
    streams: BTreeMap<u64, Arc<TcpStream>>,
    serial: u64,
}

impl Inside {
    fn new(bounds: Bounds) -> Inside {
        Inside { room: Room::new(bounds), streams: BTreeMap::new(), serial: 0 }
    }

    fn leave(&mut self, key: u64) {
        self.room.leave(key);
        self.streams.remove(&key);
    }

    /// Ends a connection whose place another one has: its thread finds the end of the stream.
    fn send_away(&mut self, key: u64) {
        if let Some(stream) = self.streams.remove(&key) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Hall {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn welcome(self: &Arc<Hall>, stream: TcpStream) -> Option<Caller> {
        let origin = stream.peer_addr().ok()?.ip().into();
        let mut inside = self.inside();
        match inside.room.knock(origin) {
            Entry::Free => {}
            Entry::Instead(key) => inside.send_away(key),
            Entry::Refused => {
                refused(|| tracing::warn!("too many callers; a new one is hung up on"));
                return None;
            }
        }
        inside.serial += 1;
        let (key, stream) = (inside.serial, Arc::new(stream));
        inside.room.enter(key, origin, self.clock.now());
        inside.streams.insert(key, stream.clone());
        drop(inside);
        let end = Instant::now() + HELLO_MAX;
        Some(Caller { stream, key, hall: self.clone(), end, has_spoken: false })
    }

    /// Lets somebody go for the sake of a descriptor. Whether there was one.
    fn give_way(&self) -> bool {
        let mut inside = self.inside();
        let victim = inside.room.give_way();
        victim.map(|key| inside.send_away(key)).is_some()
    }
}

struct Door {
    listener: TcpListener,
    reserve: Reserve,
}

impl Door {
    /// The next caller, when there is one and there is a descriptor for it.
    fn next(&mut self, hall: &Hall) -> Option<TcpStream> {
        self.reserve.restock();
        match self.listener.accept() {
            Ok((stream, _)) => Some(stream),
            Err(error) if is_exhausted(&error) => self.take_the_last(hall),
            Err(_) => {
                // It tells of one caller that is gone; what is wrong for longer must not keep a processor busy.
                thread::sleep(Duration::from_millis(1));
                None
            }
        }
    }

    /// There is no descriptor. A caller is taken with the one in reserve, and somebody goes for it, or it goes itself.
    fn take_the_last(&mut self, hall: &Hall) -> Option<TcpStream> {
        if !self.reserve.spend() {
            thread::sleep(AGAIN);
            return None;
        }
        let stream = self.listener.accept().map(|(stream, _)| stream).ok()?;
        if hall.give_way() {
            return Some(stream);
        }
        crate::door::turned_away();
        None
    }
}
