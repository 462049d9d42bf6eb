//! The address book: who is called where, and when next.

use crate::address::Address;
use crate::socket::Target;
use base::{Rng, Time};
use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::time::Duration;
use wire::Packet;

const BACKOFF_MIN: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(1);
/// While there is something to say to a peer that could not be reached, it is called again after so long.
const HURRY: Duration = Duration::from_millis(100);
/// How often at most it is logged that a peer cannot be reached: one that comes and goes must not fill a disk.
const LOG_EVERY: Duration = Duration::from_secs(60);
/// Packets that wait for the connection to a peer that is called on demand; the machines ask again for the rest.
const WAITING_MAX: usize = 64;

/// When a peer is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Keep {
    /// At once, and again whenever the connection breaks.
    Always,
    /// When there is something to say; the connection ends when nothing was said for long.
    OnDemand,
}

/// A peer that this node calls.
pub(super) struct Contact {
    pub(super) address: Address,
    /// The connection, or the attempt at one.
    pub(super) slot: Option<usize>,
    /// When to call (again), while there is no connection.
    pub(super) call_at: Time,
    /// When it could not be reached last.
    failed_at: Time,
    /// Failures since the last success.
    pub(super) failures: u32,
    /// The last failure, for people.
    pub(super) why: String,
    logged: Option<Time>,
    pub(super) keep: Keep,
    /// What to say as soon as there is a connection, of a peer that is called on demand.
    waiting: VecDeque<Packet>,
    resolving: Option<Receiver<io::Result<Target>>>,
}

impl Contact {
    pub(super) fn new(address: Address, keep: Keep, now: Time) -> Contact {
        Contact {
            address,
            slot: None,
            call_at: now,
            failed_at: now,
            failures: 0,
            why: String::new(),
            logged: None,
            keep,
            waiting: VecDeque::new(),
            resolving: None,
        }
    }

    /// Whether there is a reason to have a connection.
    pub(super) fn is_wanted(&self) -> bool {
        self.keep == Keep::Always || !self.waiting.is_empty()
    }

    /// Keeps a packet until there is a connection. `false` when it is lost: nobody is called on its behalf, or too much
    /// waits.
    pub(super) fn wait(&mut self, packet: &Packet) -> bool {
        let takes = self.keep == Keep::OnDemand && self.waiting.len() < WAITING_MAX;
        if takes {
            self.waiting.push_back(packet.clone());
        }
        takes
    }

    /// The connection is there: what waited for it.
    pub(super) fn take_waiting(&mut self) -> VecDeque<Packet> {
        std::mem::take(&mut self.waiting)
    }

    /// Notes a failure and when to try again: twice as long each time, and not all nodes at once. What waited is given
    /// up, or a peer that is gone would be called for ever.
    pub(super) fn failed(&mut self, why: String, now: Time, rng: &mut Rng) {
        let full = BACKOFF_MIN * (1 << self.failures.min(8));
        let full = full.min(BACKOFF_MAX).as_nanos() as u64;
        self.call_at = now + Duration::from_nanos(full / 2 + rng.u64(0..=full / 2));
        (self.slot, self.why, self.failures, self.failed_at) = (None, why, self.failures + 1, now);
        self.waiting.clear();
    }

    /// There is something to say to it: a brick that has just come back, and is a member again, must not wait for its turn.
    pub(super) fn hurry(&mut self) {
        if self.resolving.is_some() {
            return;
        }
        self.call_at = self.call_at.min(self.failed_at + HURRY);
    }

    /// Whether a failure is to be logged: the first one, and seldom.
    pub(super) fn is_news(&mut self, now: Time) -> bool {
        let is_news = self.failures == 0 && self.logged.is_none_or(|logged| now.since(logged) >= LOG_EVERY);
        if is_news {
            self.logged = Some(now);
        }
        is_news
    }

    /// Where to connect to; `None` while the name service is being asked, by a thread, so that the loop does not wait.
    pub(super) fn target(&mut self, now: Time) -> Option<io::Result<Target>> {
        if self.address.is_literal() {
            return Some(Target::resolve(&self.address));
        }
        let answer = self.resolving.get_or_insert_with(|| ask(self.address.clone())).try_recv();
        match answer {
            Err(TryRecvError::Empty) => {
                self.call_at = now + BACKOFF_MIN;
                None
            }
            Err(TryRecvError::Disconnected) => {
                self.resolving = None;
                Some(Err(io::Error::other("the name service did not answer")))
            }
            Ok(answer) => {
                self.resolving = None;
                Some(answer)
            }
        }
    }
}

fn ask(address: Address) -> Receiver<io::Result<Target>> {
    let (sender, receiver) = mpsc::channel();
    let asked = thread::Builder::new().name("resolve".to_owned()).spawn(move || {
        // The loop may have given the contact up meanwhile.
        let _ = sender.send(Target::resolve(&address));
    });
    if let Err(error) = asked {
        tracing::warn!(%error, "no thread to ask the name service");
    }
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_wanted_is_called_again_soon_however_often_that_failed() {
        let mut rng = Rng::with_seed(1);
        let mut contact = Contact::new("10.0.0.1:7".parse().expect("an address"), Keep::Always, Time(0));
        let mut now = Time(0);
        for _ in 0..9 {
            now += BACKOFF_MAX;
            contact.failed("refused".to_owned(), now, &mut rng);
        }
        assert!(contact.call_at >= now + BACKOFF_MAX / 2, "nobody has anything to say");
        contact.hurry();
        assert_eq!(contact.call_at, now + HURRY);
        let mut contact = Contact::new("10.0.0.1:7".parse().expect("an address"), Keep::Always, Time(0));
        contact.failed("refused".to_owned(), now, &mut rng);
        let soon = contact.call_at;
        contact.hurry();
        assert_eq!(contact.call_at, soon, "no later than it was to be");
    }
}
