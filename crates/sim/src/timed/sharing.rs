//! Streams that share bricks: volumes on sets of bricks that may overlap, how requests take their turns there, and what each
//! volume was served.

use super::{Timed, TimedError};
use crate::checkers::Violation;
use crate::options::VolumePlan;
use crate::units::SECOND;
use base::{BrickId, NodeId, StreamId, Time};
use core::time::Duration;
use reads::seat::Turns;
use rules::fair::Shares;
use rules::layout::Layout;

/// Until the directory has heard from each brick how full it is.
const TOLD_NS: u64 = 3 * SECOND;

/// Who shares a cluster's bricks, and how.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Sharing {
    /// All of the same size.
    pub volumes: Vec<VolumeSpec>,
    pub turns: Turns,
    pub shares: Shares,
}

/// A volume of a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VolumeSpec {
    /// The cluster's bricks on which it lies, as many as its layout is wide.
    pub bricks: Vec<u32>,
    pub layout: Layout,
    pub stream: StreamId,
    /// The gateways through which it is asked, in turn; all where none is named. It is open at all of them.
    pub gateways: Vec<u32>,
}

impl VolumeSpec {
    /// A volume with one copy on one brick, asked through all gateways.
    pub fn on(brick: u32, stream: StreamId) -> VolumeSpec {
        VolumeSpec::striped(vec![brick], stream)
    }

    /// A volume with one copy, striped over these bricks, asked through all gateways.
    pub fn striped(bricks: Vec<u32>, stream: StreamId) -> VolumeSpec {
        let layout = Layout::Raid0 { width: bricks.len() as u8 };
        VolumeSpec { bricks, layout, stream, gateways: Vec::new() }
    }
}

impl Sharing {
    /// Whether a cluster of so many bricks and gateways can be shared so.
    pub(super) fn validate(&self, bricks: usize, gateways: u32) -> Result<(), TimedError> {
        let wrong = |number: usize, why: &str| Err(TimedError::Layout(format!("volume {number} {why}")));
        for (number, volume) in self.volumes.iter().enumerate() {
            let mut named = volume.bricks.clone();
            named.sort_unstable();
            named.dedup();
            if named.len() != usize::from(volume.layout.width()) || named.len() != volume.bricks.len() {
                return wrong(number, &format!("needs {} bricks, each once", volume.layout.width()));
            }
            if named.iter().any(|brick| *brick as usize >= bricks) {
                return wrong(number, "names a brick that does not exist");
            }
            if volume.gateways.iter().any(|gateway| *gateway >= gateways) {
                return wrong(number, "names a gateway that does not exist");
            }
        }
        if self.volumes.is_empty() { wrong(0, "is missing: nobody shares anything") } else { Ok(()) }
    }

    /// The most volumes that share a brick.
    pub(super) fn volumes_on_a_brick(&self, bricks: usize) -> u64 {
        let on = |brick: usize| self.volumes.iter().filter(|of| of.bricks.contains(&(brick as u32))).count();
        (0..bricks).map(on).max().unwrap_or(0) as u64
    }
}

impl Timed {
    /// All bricks, then volume by volume. While one is created, all bricks but its own say that they are full, so that the directory puts it
    /// nowhere else.
    pub(super) fn set_up_sharing(&mut self, gateways: &[usize], sharing: &Sharing) -> Result<(), TimedError> {
        let failed = |violation: Violation| TimedError::Failed(violation.to_string());
        for gateway in gateways {
            let machine = self.world.nodes[*gateway].gateway_mut().expect("a gateway that was just started");
            machine.set_cost(sharing.turns.cost);
        }
        let bricks = self.placed.order.len() as u32;
        self.world.shape.bricks = bricks;
        self.world.add_bricks(1..=u64::from(bricks)).map_err(failed)?;
        self.world.await_bricks().map_err(failed)?;
        let plans: Vec<VolumePlan> = self.volumes.clone();
        for ((number, plan), volume) in (0..).zip(plans).zip(&sharing.volumes) {
            for brick in 0..bricks {
                let slot = self.world.nodes.slot(NodeId::Brick(BrickId(brick + 1)));
                let slot = slot.expect("a brick that was just started");
                self.world.nodes[slot].close_shelves(!volume.bricks.contains(&brick));
            }
            self.world.run_until(self.world.time.now_ns() + TOLD_NS);
            self.world.create_volume(&plan).map_err(failed)?;
            let holders = u32::from(volume.layout.copies());
            self.open((number, holders), &plan.name, gateways)?;
            if !volume.gateways.is_empty() {
                self.load().ask_through(number, &volume.gateways);
            }
        }
        Ok(())
    }
}

/// What a volume was served in an interval.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Served {
    /// When it begins, in seconds from the beginning of the load.
    pub from_s: f64,
    pub seconds: f64,
    pub requests: u64,
    pub bytes: u64,
    /// The sum of the response times of its requests, in milliseconds.
    pub response_ms: f64,
}

/// Counts what volumes are served, by intervals.
pub(super) struct ServedByVolume {
    since: Time,
    length: Duration,
    volumes: Vec<Vec<Served>>,
}

impl ServedByVolume {
    /// By intervals of this length; not at all when it is zero.
    pub(super) fn new(since: Time, length: Duration, volumes: usize) -> ServedByVolume {
        ServedByVolume { since, length, volumes: vec![Vec::new(); volumes] }
    }

    pub(super) fn add(&mut self, now: Time, volume: u32, (bytes, response_ns): (u64, u64)) {
        let (seconds, Some(served)) = (self.length.as_secs_f64(), self.volumes.get_mut(volume as usize))
        else {
            return;
        };
        if self.length.is_zero() {
            return;
        }
        let at = (now.since(self.since).as_nanos() / self.length.as_nanos()) as usize;
        while served.len() <= at {
            served.push(Served { from_s: served.len() as f64 * seconds, seconds, ..Served::default() });
        }
        let served = &mut served[at];
        (served.requests, served.bytes) = (served.requests + 1, served.bytes + bytes);
        served.response_ms += response_ns as f64 / 1e6;
    }

    /// Of each volume the intervals that are over by then.
    pub(super) fn until(&self, now: Time) -> Vec<Vec<Served>> {
        if self.length.is_zero() {
            return Vec::new();
        }
        let over = (now.since(self.since).as_nanos() / self.length.as_nanos()) as usize;
        let seconds = self.length.as_secs_f64();
        let none = |at: usize| Served { from_s: at as f64 * seconds, seconds, ..Served::default() };
        let all =
            |served: &Vec<Served>| (0..over).map(|at| served.get(at).copied().unwrap_or(none(at))).collect();
        self.volumes.iter().map(all).collect()
    }
}
