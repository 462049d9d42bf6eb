//! The physics of the world: when a packet arrives, and when a disk's access is done.
//!
//! *Faulty* physics draw delays, loss, repetition and order from the seed, and have no bandwidth. *Timed* physics have
//! resources ([`timed`]), and draw nothing.

pub(crate) mod timed;

use super::bay::Bay;
use super::net::Net;
use crate::timed::{Class, Hardware};
use crate::units::{MS, SECOND};
use model::link::Arrivals;
use model::{Draw, PowerCut};
use store::IoKind;
use timed::{Coded, Parcel, Wires};

/// A disk's access that has begun.
pub(super) struct Access {
    /// By which the disk knows it.
    pub(super) ticket: u64,
    pub(super) delay_ns: u64,
}

/// Whether disks honour that a write is to be durable when it is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Durability {
    Honoured,
    /// They say that it is, and keep it in their cache. This is a fault that tests plant.
    #[cfg_attr(not(feature = "planted"), expect(dead_code, reason = "only tests plant it"))]
    Cached,
}

/// How long packets are on their way.
enum Ways {
    /// As long as is drawn.
    Faulty,
    /// As long as it takes.
    Timed(Wires),
}

/// The network and the disks' ways, and the draw of all that machines cannot know.
pub(crate) struct Physics {
    net: Net,
    ways: Ways,
    durability: Durability,
    draw: Draw,
}

impl Physics {
    pub(super) fn new(draw: Draw, hardware: Option<&Hardware>) -> Physics {
        let wires =
            |hardware: &Hardware| Ways::Timed(Wires::new(hardware.network, hardware.buses, hardware.grain));
        let ways = hardware.map_or(Ways::Faulty, wires);
        Physics { net: Net::new(), ways, durability: Durability::Honoured, draw }
    }

    #[cfg(feature = "planted")]
    pub(crate) fn set_durability(&mut self, durability: Durability) {
        self.durability = durability;
    }

    pub(crate) fn net(&self) -> &Net {
        &self.net
    }

    pub(crate) fn net_mut(&mut self) -> &mut Net {
        &mut self.net
    }

    /// What the world decides by chance.
    pub(crate) fn draw(&mut self) -> &mut Draw {
        &mut self.draw
    }

    /// When the copies of a packet arrive that is sent now. None where no connection stands.
    pub(super) fn send(&mut self, now_ns: u64, from: usize, to: usize, parcel: Parcel) -> Option<Arrivals> {
        let config = *self.net.config();
        let link = self.net.link(from, to)?;
        Some(match &mut self.ways {
            Ways::Faulty => link.send(now_ns, &config, &mut self.draw),
            Ways::Timed(wires) => {
                let first_ns = Some(wires.send(now_ns, (from, to), parcel));
                Arrivals { first_ns, second_ns: None, reordered: false }
            }
        })
    }

    /// What content passes, where that takes time.
    pub(crate) fn wires(&mut self) -> Option<&mut Wires> {
        match &mut self.ways {
            Ways::Timed(wires) => Some(wires),
            Ways::Faulty => None,
        }
    }

    /// Whether two nodes stand on one machine.
    pub(super) fn are_together(&self, one: usize, other: usize) -> bool {
        matches!(&self.ways, Ways::Timed(wires) if wires.are_together(one, other))
    }

    /// Whether a packet that has come from one node to another still has something to pass before it is in the other's memory.
    pub(super) fn takes_in(&self, from: usize, to: usize) -> bool {
        matches!(&self.ways, Ways::Timed(wires) if wires.takes_in() && !wires.are_together(from, to))
    }

    /// When a packet with such content, which has come to `node` now and counts as that, is in its memory.
    pub(super) fn take_in(&mut self, now_ns: u64, node: usize, what: (Option<Class>, u64)) -> u64 {
        match &mut self.ways {
            Ways::Timed(wires) => wires.take_in(now_ns, node, what),
            Ways::Faulty => now_ns,
        }
    }

    /// When the XOR engine of `node` has done that.
    pub(super) fn code(&mut self, now_ns: u64, node: usize, coded: Coded) -> u64 {
        match &mut self.ways {
            Ways::Timed(wires) => wires.code(now_ns, node, coded),
            Ways::Faulty => now_ns,
        }
    }

    /// When something is computed that `node` wants now: when the XOR engine is done, or a processor was free for it.
    pub(super) fn compute(&mut self, now_ns: u64, node: usize, coded: Coded) -> u64 {
        match &mut self.ways {
            Ways::Timed(_) => self.code(now_ns, node, coded),
            Ways::Faulty => {
                // Now and then others have the processors, and sometimes for long.
                let longest_ns = match self.draw.below(100) {
                    0 => 2 * SECOND,
                    1..10 => 20 * MS,
                    _ => MS / 5,
                };
                now_ns + self.draw.below(longest_ns)
            }
        }
    }

    /// When so many bytes have gone from memory to a disk of `node`, or from there to memory.
    pub(super) fn cross_for_disk(&mut self, now_ns: u64, node: usize, bytes: u64) -> u64 {
        match &mut self.ways {
            Ways::Timed(wires) => wires.cross_for_disk(now_ns, node, bytes),
            Ways::Faulty => now_ns,
        }
    }

    /// A disk begins an access.
    pub(super) fn access(&mut self, bay: &mut Bay, disk: usize, kind: IoKind) -> Access {
        let kind = match kind {
            IoKind::Write { offset, payload, durable: true } => {
                IoKind::Write { offset, payload, durable: self.durability == Durability::Honoured }
            }
            kind => kind,
        };
        let (ticket, delay_ns) = bay.submit(disk, kind, &mut self.draw);
        Access { ticket, delay_ns }
    }

    /// Disks lose what such a cut takes from them.
    pub(super) fn cut_power(&mut self, bay: &mut Bay, cut: PowerCut) {
        bay.crash(cut, &mut self.draw);
    }
}
