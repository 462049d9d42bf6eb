//! A link between a namespace and the bridge that can hold packets back, in user space: what `tc netem delay` does where the kernel has it.
//!
//! Both ends are TAP devices of this process. One thread for each direction takes frames from one end, another one gives them to
//! the other end when they are due. Frames keep their order, and none is dropped, unless more than [`FRAMES_MAX`] are held.

use anyhow::{Context, Result};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Frames held for each direction, at most: 100 MB/s of full frames for a quarter of a second, or 25 MB/s for a whole one.
const FRAMES_MAX: usize = 16 << 10;
/// Longer than any frame of a device whose MTU is 1500.
const FRAME_BYTES_MAX: usize = 4096;

/// The link ends when its devices are removed.
pub(super) struct LateLink(Arc<Lateness>);

/// By how much each direction is late now.
#[derive(Default)]
struct Lateness {
    each_way: Mutex<Duration>,
    changed: Condvar,
}

impl LateLink {
    /// Makes both devices, and carries frames between them at once.
    pub(super) fn new(outside: &str, inside: &str) -> Result<LateLink> {
        let (outside, inside) = (tap(outside)?, tap(inside)?);
        let lateness = Arc::new(Lateness::default());
        carry(outside.try_clone()?, inside.try_clone()?, &lateness);
        carry(inside, outside, &lateness);
        Ok(LateLink(lateness))
    }

    /// From now on frames are held for so long. It also counts for those that are held now: at zero they are let go.
    pub(super) fn set(&self, each_way: Duration) {
        *self.0.each_way.lock().unwrap_or_else(PoisonError::into_inner) = each_way;
        self.0.changed.notify_all();
    }
}

impl Lateness {
    fn wait(&self, arrived: Instant) {
        let mut each_way = self.each_way.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(left) = each_way.checked_sub(arrived.elapsed()).filter(|left| !left.is_zero()) {
            each_way = self.changed.wait_timeout(each_way, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

fn carry(from: File, to: File, lateness: &Arc<Lateness>) {
    let (sender, receiver) = sync_channel(FRAMES_MAX);
    thread::spawn(move || take(from, &sender));
    let lateness = Arc::clone(lateness);
    thread::spawn(move || give(to, &receiver, &lateness));
}

/// Until the device is gone.
fn take(mut from: File, frames: &SyncSender<(Instant, Vec<u8>)>) {
    let mut frame = [0; FRAME_BYTES_MAX];
    while let Ok(bytes) = from.read(&mut frame) {
        match frames.try_send((Instant::now(), frame[..bytes].to_vec())) {
            Ok(()) | Err(TrySendError::Full(_)) => {}
            Err(TrySendError::Disconnected(_)) => return,
        }
    }
}

fn give(mut to: File, frames: &Receiver<(Instant, Vec<u8>)>, lateness: &Lateness) {
    for (arrived, frame) in frames {
        lateness.wait(arrived);
        // A device that is down takes no frames: those are lost, as on a cable that is not plugged in.
        let _ = to.write(&frame);
    }
}

/// A new TAP device, which goes when its file is closed. It offloads nothing: the kernel hands over whole frames with their checksums.
fn tap(name: &str) -> Result<File> {
    const TUN: &str = "/dev/net/tun";
    let file =
        OpenOptions::new().read(true).write(true).open(TUN).with_context(|| format!("opening {TUN}"))?;
    // SAFETY: `ifreq` is plain data, of which all zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero.
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..room].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the call reads and writes an `ifreq`, which outlives it.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    match result {
        0 => Ok(file),
        _ => Err(std::io::Error::last_os_error()).with_context(|| format!("making the TAP device {name}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_wait_as_long_as_is_said_and_are_let_go_when_it_is_over() {
        let lateness = Arc::new(Lateness::default());
        let link = LateLink(Arc::clone(&lateness));
        link.set(Duration::from_millis(20));
        let arrived = Instant::now();
        lateness.wait(arrived);
        assert!(arrived.elapsed() >= Duration::from_millis(20));
        link.set(Duration::from_secs(3600));
        let waiting = thread::spawn(move || lateness.wait(Instant::now()));
        link.set(Duration::ZERO);
        waiting.join().expect("it ends");
    }
}
