//! Who is next where several streams want one disk: a file a discipline, behind one trait.
//!
//! [`crate::seat`] keeps what waits, and asks. A discipline knows streams, costs and delays, and no requests.

mod drawn;
mod fcfs;

pub use drawn::Drawn;
pub use fcfs::Fcfs;

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
    /// In units of cost: see [`crate::seat::cost`].
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
}

impl Order {
    /// The discipline, for one disk.
    pub fn discipline(self) -> Box<dyn Discipline> {
        match self {
            Order::Arrival => Box::new(Fcfs::default()),
            Order::Drawn { seed } => Box::new(Drawn::new(seed)),
        }
    }
}

/// Who is next.
pub trait Discipline: Debug + Send {
    /// Something comes when nobody waits and a place is free: whether it may begin at once, as it may where nobody is held back.
    fn admits(&mut self, _service: Service, _cost: u32) -> bool {
        true
    }
    /// Something comes that is to wait.
    fn push(&mut self, entry: Entry);
    /// Whoever is next leaves; `None` where nobody may begin now.
    fn pop(&mut self) -> Option<Ticket>;
    /// It was withdrawn before it was next.
    fn remove(&mut self, entry: Entry);
}
