//! Who is next where several streams want one disk: a file a discipline, behind one trait.
//!
//! [`reads::seat`] keeps what waits, and asks. A discipline knows streams, costs and delays, and no requests. Reading order:
//! [`Discipline`], [`share`] (what streams are entitled to), [`clock`] (virtual time), [`sfq`] (start-time fair queueing, which is the one that
//! shares), [`ledger`] (delays). Why it is so: `docs/decisions/2026-11-24-proportional-sharing.md`.

mod clock;
mod cost;
mod drawn;
mod fcfs;
mod ledger;
mod sfq;
mod share;

pub use clock::{Clock, Tag};
pub use cost::Cost;
pub use drawn::Drawn;
pub use fcfs::Fcfs;
pub use ledger::Ledger;
pub use sfq::{History, Sfq};
pub use share::{Share, Shares};

use base::{StreamId, Time};
use core::fmt::Debug;
use wire::Service;

/// Names what waits, in the order in which it came.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ticket(pub u64);

/// What a discipline is told of what waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    pub ticket: Ticket,
    pub service: Service,
    /// See [`Cost`].
    pub cost: u32,
}

/// The disciplines that a brick can be told to use, one a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    #[default]
    Arrival,
    Drawn {
        seed: u64,
    },
    /// In proportion to weights.
    Shares {
        clock: Clock,
        history: History,
    },
}

impl Order {
    /// Start-time fair queueing, with what streams owe remembered.
    pub const FAIR: Order = Order::Shares { clock: Clock::StartTime, history: History::USUAL };

    /// The discipline, for one disk.
    pub fn discipline(self) -> Box<dyn Discipline> {
        match self {
            Order::Arrival => Box::new(Fcfs::default()),
            Order::Drawn { seed } => Box::new(Drawn::new(seed)),
            Order::Shares { clock, history } => Box::new(Sfq::new(clock, history)),
        }
    }
}

/// Why something is not served where it was to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unserved {
    /// Nobody wants it any more, or it could not be served.
    Dropped,
    /// Another place serves it, as that has said. Whoever asked will tell so too, later.
    ByAnother,
}

/// Who is next.
pub trait Discipline: Debug + Send {
    /// Something comes when nobody waits and a place is free: whether it begins at once, as it does where nobody is held back. It is
    /// charged then.
    fn admits(&mut self, _now: Time, _service: Service, _cost: u32) -> bool {
        true
    }
    /// Something comes that is to wait.
    fn push(&mut self, now: Time, entry: Entry);
    /// Whoever is next leaves, and is charged; `None` where nobody may begin now.
    fn pop(&mut self, now: Time) -> Option<Ticket>;
    /// It leaves before it is next.
    fn remove(&mut self, now: Time, entry: Entry, why: Unserved);
    /// It began, and is not served here.
    fn refund(&mut self, _now: Time, _stream: StreamId, _cost: u32, _why: Unserved) {}
    /// The stream was served elsewhere.
    fn elsewhere(&mut self, _now: Time, _stream: StreamId, _cost: u32) {}
    /// What streams are entitled to from now on.
    fn set_shares(&mut self, _now: Time, _shares: &Shares) {}
    /// When somebody who is held back now may begin.
    fn deadline(&self) -> Option<Time> {
        None
    }
    /// Asserts what must hold.
    fn check(&self) {}
}
