//! Room for content: what brings some waits at the door, before its turn, while the disk takes content home more slowly than it comes.
//!
//! Room is a resource beside the disk's places, and is shared out by an order of its own, of the kind in which turns are taken: what has passed the
//! door waits for its turn among those that bring nothing. So reads pass writes that wait for room, and a stream that writes more than the disk
//! takes does not fill the room of the others.

use base::{StreamId, Time};
use core::time::Duration;
use rules::fair::{Discipline, Entry, Shares, Ticket, Unserved};

/// Longer than a disk flushes at the end of a cycle, as a rule.
const STANDS_STILL: Duration = Duration::from_secs(1);

/// Who waits for room, and how much there is.
#[derive(Debug)]
pub(super) struct Door {
    discipline: Box<dyn Discipline>,
    waiting: usize,
    /// Since when somebody has waited, and for how long somebody did before, all in all.
    since: Time,
    held: Duration,
    /// When the disk got on with what makes room, or somebody began to wait.
    moved: Time,
    /// Bytes of content that may come to the disk; [`u64::MAX`] if all may.
    room: u64,
    /// Of these, those of requests that have passed and wait for their turn.
    passed: u64,
}

impl Door {
    /// Nobody waits.
    pub(super) fn new(discipline: Box<dyn Discipline>) -> Door {
        let (since, held) = (Time::ZERO, Duration::ZERO);
        Door { discipline, waiting: 0, since, held, moved: since, room: u64::MAX, passed: 0 }
    }

    /// What the door before has counted goes on.
    pub(super) fn go_on_from(&mut self, now: Time, before: &Door) {
        self.held = before.held(now);
    }

    /// How much may come from now on.
    pub(super) fn set_room(&mut self, bytes: u64) {
        self.room = bytes;
    }

    /// Something came home.
    pub(super) fn on_progress(&mut self, now: Time) {
        self.moved = now;
    }

    /// Whether nothing came home for so long that who waits for room is not told to be patient.
    pub(super) fn stands_still(&self, now: Time) -> bool {
        now.since(self.moved) >= STANDS_STILL
    }

    /// A stream is served that did not wait for room: it counts here all the same, or a stream that is held back by a limit would pass here and then
    /// keep room that others could use.
    pub(super) fn served_past(&mut self, now: Time, stream: StreamId, cost: u32) {
        if self.waiting > 0 {
            self.discipline.elsewhere(now, stream, cost);
        }
    }

    /// Whether nothing that brings content may pass now.
    pub(super) fn is_shut(&self) -> bool {
        self.room <= self.passed
    }

    /// Whether a request with so much content passes at once.
    pub(super) fn is_open_to(&self, bytes: usize) -> bool {
        bytes == 0 || (self.waiting == 0 && !self.is_shut())
    }

    /// So much content passes, and waits for its turn. The last of it may be more than there is room for: a request is not cut.
    pub(super) fn pass(&mut self, bytes: usize) {
        self.passed += bytes as u64;
    }

    /// What has passed does not wait any more.
    pub(super) fn leave(&mut self, bytes: usize) {
        self.passed -= bytes as u64;
    }

    /// So much content comes to the disk.
    pub(super) fn begin(&mut self, bytes: usize) {
        if self.room != u64::MAX {
            self.room = self.room.saturating_sub(bytes as u64);
        }
    }

    /// It waits for room.
    pub(super) fn push(&mut self, now: Time, entry: Entry) {
        self.discipline.push(now, entry);
        if self.waiting == 0 {
            (self.since, self.moved) = (now, now);
        }
        self.waiting += 1;
    }

    /// Who passes now; [`Door::pass`] tells what it brings.
    pub(super) fn pop(&mut self, now: Time) -> Option<Ticket> {
        let ticket = if self.waiting > 0 && !self.is_shut() { self.discipline.pop(now) } else { None };
        if ticket.is_some() {
            self.one_less(now);
        }
        ticket
    }

    /// It leaves before it passes.
    pub(super) fn remove(&mut self, now: Time, entry: Entry, why: Unserved) {
        self.discipline.remove(now, entry, why);
        self.one_less(now);
    }

    fn one_less(&mut self, now: Time) {
        self.waiting -= 1;
        if self.waiting == 0 {
            self.held += now.since(self.since);
        }
    }

    /// For how long somebody has waited for room so far, all in all.
    pub(super) fn held(&self, now: Time) -> Duration {
        let lasting = if self.waiting > 0 { now.since(self.since) } else { Duration::ZERO };
        self.held + lasting
    }

    pub(super) fn elsewhere(&mut self, now: Time, stream: StreamId, cost: u32) {
        self.discipline.elsewhere(now, stream, cost);
    }

    pub(super) fn set_shares(&mut self, now: Time, shares: &Shares) {
        self.discipline.set_shares(now, shares);
    }

    /// When somebody who is held back, although there is room, may pass.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.discipline.deadline().filter(|_| self.waiting > 0 && !self.is_shut())
    }

    /// Asserts what must hold.
    pub(super) fn check(&self, waiting: usize, passed: usize) {
        assert_eq!(self.waiting, waiting, "who waits for room is counted");
        assert_eq!(self.passed, passed as u64, "content that waits for its turn is counted");
        self.discipline.check();
    }
}
