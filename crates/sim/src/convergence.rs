//! Every seed ends live: once all is healed, all groups become fully redundant again within a bound, and a scrub ends
//! clean.

use crate::checkers::{Violation, bounded};
use crate::units::{MS, SECOND};
use crate::world::{Node, World};
use base::{BrickId, GatewayId, NodeId, VolumeId};
use std::collections::BTreeSet;
use wire::directory::{BrickEntry, BrickStatus, ClusterStatus, LostBlocks, ScrubStatus, VolumeStatus};
use wire::{AdminError, AdminReply, AdminRequest, StatusPart};

/// After healing, all groups are redundant within this time.
const REDUNDANT_NS: u64 = 120 * SECOND;
/// A scrub of all bricks takes no longer.
const SCRUB_NS: u64 = 60 * SECOND;
/// The directory forgets a gateway after 10 s, and clients ask for the list every 5 s: then every client has forgotten it.
const FORGOTTEN_NS: u64 = 20 * SECOND;
const FULL_SPEED: u64 = 256 << 20;
const POLL_NS: u64 = 100 * MS;
/// What a store has journalled is at its final place within this time, once nobody asks anything of it.
const DESTAGED_NS: u64 = 30 * SECOND;

impl World {
    /// Runs until all bricks are back and all groups are redundant.
    pub(crate) fn converge(&mut self) -> Result<(), Violation> {
        let end_ns = self.time.now_ns() + REDUNDANT_NS;
        while !self.administrator.is_idle() && self.time.now_ns() < end_ns && self.judges.are_content() {
            self.run_until(self.time.now_ns() + POLL_NS);
        }
        self.readmit_all()?;
        self.hurry()?;
        let mut last = None;
        while self.judges.are_content() {
            let status = self.status()?;
            let Some(worst) = status.volumes.iter().find(|volume| !is_whole(volume)) else { return Ok(()) };
            if self.shape.disks.are_small && status.bricks.iter().any(|brick| is_full(&brick.status)) {
                // What would fill a disk is not rebuilt onto it.
                return Ok(());
            }
            last = Some(what_is_missing(worst, &status.warnings));
            if self.time.now_ns() > end_ns {
                break;
            }
            self.run_until(self.time.now_ns() + POLL_NS);
        }
        let last = last.unwrap_or_else(|| "its state was not looked at".to_owned());
        let what = format!("a volume is not redundant after {} s: {last}", REDUNDANT_NS / SECOND);
        Err(Violation::new("live", what))
    }

    /// Clients call nobody who is gone: the directory has forgotten it, and has told so.
    pub(crate) fn calls_are_bounded(&mut self) -> Result<(), Violation> {
        self.run_until(self.time.now_ns() + FORGOTTEN_NS);
        for node in self.nodes.iter().filter(|node| node.runs()) {
            let Some(client) = node.client() else { continue };
            let runs = |id| self.nodes.slot(NodeId::Gateway(id)).is_some_and(|slot| self.nodes[slot].runs());
            let gone: Vec<GatewayId> = client.gateways().filter(|id| !runs(*id)).collect();
            let what = format!("gateways called by {} that are gone ({gone:?})", node.id());
            bounded::check(&what, gone.len(), bounded::GONE_GATEWAYS_MAX)?;
        }
        Ok(())
    }

    /// Lets every brick check all its blocks, twice: the first scrub repairs whatever it finds, the second finds nothing.
    pub(crate) fn scrub_clean(&mut self) -> Result<(), Violation> {
        for round in 0..2 {
            let status = match self.administer(vec![AdminRequest::Scrub])?.remove(0) {
                AdminReply::Status(status) => *status,
                other => return Err(Violation::new("scrub", format!("it was answered with {other:?}"))),
            };
            let number = status.care.scrub;
            for entry in self.await_scrub(number)? {
                self.judge_scrub(&entry, round == 1)?;
            }
        }
        Ok(())
    }

    /// What is left to do goes on at full speed: how fast it goes says nothing of whether it ends.
    fn hurry(&mut self) -> Result<(), Violation> {
        let care = AdminRequest::SetCare {
            rebuild_bytes_per_second: Some(FULL_SPEED),
            scrub_bytes_per_second: Some(FULL_SPEED),
            scrub_interval_s: Some(0),
            rebuild_after_s: Some(self.shape.upkeep.rebuild_after_s),
        };
        self.administer(vec![care]).map(drop)
    }

    /// Waits until every store has written what it journalled to its final place: none waits for ever for its turn.
    pub(crate) fn destage_all(&mut self) -> Result<(), Violation> {
        let end_ns = self.time.now_ns() + DESTAGED_NS;
        while self.judges.are_content() {
            let waits = |node: &Node| Some((node.id(), node.waiting_to_be_destaged()?));
            let Some((node, slots)) = self.nodes.iter().find_map(waits) else { break };
            if self.time.now_ns() > end_ns {
                let what = format!("{node} has not destaged {slots} slots for {} s", DESTAGED_NS / SECOND);
                return Err(Violation::new("live", what));
            }
            self.run_until(self.time.now_ns() + POLL_NS);
        }
        Ok(())
    }

    /// Blocks that bricks name as lost are waited for longer: a member that was left out for being slow may have what it
    /// takes to make them out, and comes back.
    fn await_scrub(&mut self, number: u64) -> Result<Vec<BrickEntry>, Violation> {
        let mut end_ns = self.time.now_ns() + SCRUB_NS;
        let whole_ns = self.time.now_ns() + REDUNDANT_NS;
        loop {
            let mut bricks = self.status()?.bricks;
            bricks.retain(|brick| !self.faults.is_lost(brick.id));
            let is_done = |brick: &BrickEntry| {
                let scrub = &brick.status.scrub;
                scrub.number >= number && !scrub.running
            };
            let names_lost = bricks.iter().any(|brick| brick.status.rot.lost_blocks > 0);
            let is_all = bricks.iter().all(is_done);
            if is_all {
                // From here on bricks look again at what is lost, and are busy with that for a moment.
                end_ns = whole_ns + SCRUB_NS;
            }
            if is_all && (!names_lost || self.time.now_ns() > whole_ns) || !self.judges.are_content() {
                return Ok(bricks);
            }
            if self.time.now_ns() > end_ns {
                let mut late: Vec<String> =
                    bricks.iter().filter(|brick| !is_done(brick)).map(how_far).collect();
                if late.is_empty() {
                    late.push("bricks have ended, and still look for lost blocks".to_owned());
                }
                let what = format!("scrub {number} does not end: {}", late.join("; "));
                return Err(Violation::new("scrub", what));
            }
            self.run_until(self.time.now_ns() + POLL_NS);
        }
    }

    fn judge_scrub(&self, brick: &BrickEntry, is_clean: bool) -> Result<(), Violation> {
        let scrub = &brick.status.scrub;
        let wrongs = [
            (brick.status.rot.lost_blocks > 0, "names blocks that nobody can make out"),
            (scrub.found_blocks > scrub.repaired_blocks, "could not repair what it found"),
            (is_clean && scrub.found_blocks > 0, "finds what an earlier scrub left"),
        ];
        match wrongs.iter().find(|(is_so, _)| *is_so) {
            Some((_, what)) => {
                Err(Violation::new("scrub", format!("{} {what}: {}", brick.id, how_far(brick))))
            }
            None => Ok(()),
        }
    }

    /// Bricks that the administrator took out may come back: their places may be needed.
    fn readmit_all(&mut self) -> Result<(), Violation> {
        // A command to leave may have been carried out once more after the one to come back: networks repeat.
        let told = self.status()?.bricks.into_iter().filter(|brick| brick.evicted).map(|brick| brick.id);
        let bricks: BTreeSet<BrickId> = self.administrator.evicted().into_iter().chain(told).collect();
        for brick in bricks {
            self.readmit(brick)?;
        }
        Ok(())
    }

    fn readmit(&mut self, brick: BrickId) -> Result<(), Violation> {
        let end_ns = self.time.now_ns() + REDUNDANT_NS;
        while self.judges.are_content() {
            match self.try_administer(AdminRequest::ReadmitBrick { brick })? {
                Ok(_) | Err(AdminError::Invalid(_)) => return Ok(()),
                Err(error) if self.time.now_ns() > end_ns => {
                    return Err(Violation::new("live", format!("{brick} is not readmitted: {error}")));
                }
                Err(_) => self.run_until(self.time.now_ns() + POLL_NS),
            }
        }
        Ok(())
    }

    /// The status of the cluster, asked for a page at a time.
    fn status(&mut self) -> Result<ClusterStatus, Violation> {
        let (mut whole, mut next) = (ClusterStatus::default(), Some(VolumeId(0)));
        while let Some(first) = next {
            let request = AdminRequest::Status { part: StatusPart::From(first) };
            let page = match self.administer(vec![request])?.remove(0) {
                AdminReply::Status(status) => *status,
                other => return Err(Violation::new("live", format!("the status is {other:?}"))),
            };
            next = whole.take_page(page);
        }
        Ok(whole)
    }
}

/// Why the volume is not redundant, in words.
fn what_is_missing(worst: &VolumeStatus, warnings: &[String]) -> String {
    let VolumeStatus { volume, groups, degraded, unavailable, rebuilding, unplaced, .. } = worst;
    let mut what = format!(
        "of the {groups} groups of '{}' {degraded} are degraded, {unavailable} unavailable, {rebuilding} rebuilding, and for {unplaced} no brick has room",
        volume.name
    );
    for warning in warnings {
        what = format!("{what}; the directory warns: {warning}");
    }
    what
}

/// What the brick's scrub has come to, in words.
fn how_far(brick: &BrickEntry) -> String {
    let ScrubStatus { number, running, checked_blocks, total_blocks, found_blocks, repaired_blocks, .. } =
        brick.status.scrub;
    let state = if running { "is at" } else { "has ended" };
    let mut what = format!(
        "{} {state} scrub {number}: {checked_blocks} of {total_blocks} blocks checked, {found_blocks} found wrong, {repaired_blocks} repaired",
        brick.id
    );
    let rot = &brick.status.rot;
    if rot.lost_blocks > 0 {
        let in_words = |lost: &LostBlocks| format!("{} B at {} of {}", lost.length, lost.offset, lost.volume);
        let named: Vec<String> = rot.lost.iter().map(in_words).collect();
        what = format!("{what}, {} lost ({})", rot.lost_blocks, named.join(", "));
    }
    what
}

/// By what the directory goes by: room for data alone says too little.
fn is_full(status: &BrickStatus) -> bool {
    status.space.fullest_percent > 85
}

fn is_whole(volume: &VolumeStatus) -> bool {
    volume.degraded == 0 && volume.unavailable == 0 && volume.rebuilding == 0
}
