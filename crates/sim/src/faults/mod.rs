//! Faults: what goes wrong, when, and what must not go wrong at the same time.
//!
//! The safety phase draws one fault after the other. Crashes and restarts, pauses, partitions, slow disks and a bad
//! network are free: disks survive them. What is lost for good (a brick that never returns, exchanged disks, rotten
//! blocks) is bounded by what each layout promises to survive at that moment: [`tolerance`].
//!
//! What faults are and what they left is here and in `harm`; `course` is how they happen to the world, one after the other,
//! by `nodes`, `network` and `rot`. Apart from that course, and until the end of the run, a gateway may lie: `lies`.

mod course;
mod harm;
mod incident;
mod lies;
mod network;
mod nodes;
mod old_disks;
mod old_store;
mod rot;
mod tolerance;
mod twins;

use crate::options::Shape;
use crate::units::{MS, SECOND};
use base::BrickId;
use harm::{Harm, Rot};
pub(crate) use incident::Incident;
use lies::Liar;
use model::Draw;
use model::link::Arrivals;
use old_disks::Copy;
use old_store::Kept;
use std::collections::BTreeMap;
use twins::Twins;

/// A fault that ends by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Packets vanish between these, one way.
    Cut(Vec<(usize, usize)>),
    /// A brick's disks are slow.
    SlowDisks(usize),
    /// All that a brick says is late.
    LateBrick(usize),
    /// The network loses, repeats and holds up packets.
    Noise,
    /// Blocks rotted, and nobody has looked for them yet.
    Rot,
    /// A copy of the directory's store was taken, and is put back, or the newest one is.
    StoreCopied,
    /// A copy of a brick's disks was taken, and is put back.
    Copied {
        /// Whether the directory has had time to store how far the disks were.
        is_stored: bool,
    },
    /// A copy of a brick runs, and others hear of it.
    TwinIsKnown,
    /// One of two processes with a brick's id is started anew.
    TwinRestarts,
    /// Two processes have one brick's id, and one is stopped.
    Twins,
}

/// Draws faults and keeps count.
pub(crate) struct Faults {
    /// How often each kind happened.
    counts: BTreeMap<Incident, u64>,
    harm: Harm,
    /// Blocks that rotted.
    rot: Rot,
    draw: Draw,
    /// The kinds that this seed draws from.
    kinds: Vec<Trouble>,
    interval_ns: u64,
    until_ns: u64,
    /// Until when nodes were cut off, at least.
    disturbed_ns: u64,
    /// Bricks all of whose messages are late, and by how much.
    late: BTreeMap<usize, u64>,
    /// Until when disks or the network were slow, at least.
    hindered_ns: u64,
    /// The brick that crashes in the middle of its next write.
    armed: Option<usize>,
    /// Disks that were copied, and are to be put back.
    copy: Option<Copy>,
    /// The directory's store that was copied, or put aside for an older one.
    store: Option<Kept>,
    /// The brick that runs twice.
    twins: Option<Twins>,
    /// No further fault before.
    quiet_until_ns: u64,
    /// Who lies about delays.
    liar: Option<Liar>,
}

/// What may go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    CrashBrick,
    CrashAll,
    CrashGateway,
    CrashDirectory,
    CrashClient,
    LoseBrick,
    ExchangeDisks,
    Partition,
    Pause,
    SlowDisks,
    Noise,
    Reset,
    Rot,
    SlowBrick,
    OldDisks,
    OldStore,
    Twins,
}

/// Each kind, and in how many of a hundred seeds it may happen.
const KINDS: [(Trouble, u32); 14] = [
    (Trouble::CrashBrick, 70),
    (Trouble::CrashAll, 15),
    (Trouble::CrashGateway, 60),
    (Trouble::CrashDirectory, 40),
    (Trouble::CrashClient, 40),
    (Trouble::LoseBrick, 30),
    (Trouble::ExchangeDisks, 40),
    (Trouble::Partition, 50),
    (Trouble::Pause, 50),
    (Trouble::SlowDisks, 40),
    (Trouble::Noise, 50),
    (Trouble::Reset, 40),
    (Trouble::Rot, 50),
    (Trouble::SlowBrick, 40),
];

impl Faults {
    pub(crate) fn new(mut draw: Draw, shape: &Shape) -> Faults {
        let kinds =
            KINDS.iter().filter(|(_, percent)| draw.percent(*percent)).map(|(kind, _)| *kind).collect();
        let mut kinds: Vec<Trouble> = kinds;
        if shape.intrigues.old_disks {
            kinds.push(Trouble::OldDisks);
        }
        if shape.intrigues.old_store {
            kinds.push(Trouble::OldStore);
        }
        if shape.intrigues.twins {
            kinds.push(Trouble::Twins);
        }
        let mut counts = BTreeMap::new();
        if shape.clocks.skew_ppm > 0 {
            counts.insert(Incident::SkewedClocks, u64::from(shape.bricks + shape.gateways + 1));
        }
        if shape.disks.are_small {
            counts.insert(Incident::SmallDisks, u64::from(shape.bricks * shape.disks.per_brick));
        }
        Faults {
            counts,
            harm: Harm::default(),
            rot: Rot::default(),
            kinds,
            interval_ns: draw.between(300 * MS, 6 * SECOND),
            draw,
            until_ns: 0,
            disturbed_ns: 0,
            late: BTreeMap::new(),
            hindered_ns: 0,
            armed: None,
            copy: None,
            store: None,
            twins: None,
            quiet_until_ns: 0,
            liar: shape.intrigues.lies.map(Liar::new),
        }
    }

    /// Counts what the network did to a packet.
    pub(crate) fn note_arrivals(&mut self, arrivals: &Arrivals) {
        match arrivals {
            Arrivals { first_ns: None, .. } => self.count(Incident::PacketsLost),
            Arrivals { second_ns, reordered, .. } => {
                if second_ns.is_some() {
                    self.count(Incident::PacketsRepeated);
                }
                if *reordered {
                    self.count(Incident::PacketsReordered);
                }
            }
        }
    }

    /// How often each kind of fault happened.
    pub(crate) fn counts(&self) -> &BTreeMap<Incident, u64> {
        &self.counts
    }

    /// A brick that is gone has no place in the cluster any more.
    pub(crate) fn forget(&mut self, brick: BrickId) {
        self.harm.forget(brick);
    }

    /// Whether a brick never returns.
    pub(crate) fn is_lost(&self, brick: BrickId) -> bool {
        self.harm.is_lost(brick)
    }

    /// Whether two processes have the brick's id.
    fn runs_twice(&self, brick: BrickId) -> bool {
        self.twins.as_ref().is_some_and(|twins| twins.brick() == brick)
    }

    /// Whether a block of a brick may be rotten.
    pub(crate) fn may_be_rotten(&self, brick: BrickId) -> bool {
        self.rot.is_rotten(brick)
    }

    /// Whether a brick is out of reach now, or may be taken for such a one.
    pub(crate) fn is_unsettled(&self, brick: BrickId, now_ns: u64) -> bool {
        self.harm.is_unsettled(brick, now_ns)
    }

    /// A brick is out of reach until then.
    pub(crate) fn unsettle(&mut self, brick: BrickId, until_ns: u64) {
        self.harm.unsettle(brick, until_ns);
    }

    /// Nodes are cut off until then, at least.
    fn disturb(&mut self, until_ns: u64) {
        self.disturbed_ns = self.disturbed_ns.max(until_ns);
    }

    /// Disks or the network are slow until then, at least.
    fn hinder(&mut self, until_ns: u64) {
        self.hindered_ns = self.hindered_ns.max(until_ns);
    }

    /// By how much all that a node says is late.
    pub(crate) fn lateness_ns(&self, node: usize) -> u64 {
        self.late.get(&node).copied().unwrap_or(0)
    }

    /// Until when nodes were cut off or slow, at least.
    pub(crate) fn disturbed_ns(&self) -> u64 {
        self.disturbed_ns.max(self.hindered_ns)
    }

    /// Whether no further fault may happen yet.
    fn are_quiet(&self, now_ns: u64) -> bool {
        now_ns < self.quiet_until_ns
    }

    /// Whether faults may still happen.
    pub(crate) fn are_on(&self) -> bool {
        self.until_ns > 0
    }

    pub(crate) fn count(&mut self, what: Incident) {
        *self.counts.entry(what).or_default() += 1;
    }
}
