//! Large objects in the torture: [`segments`] puts and gets segments alone, [`named`] whole objects by their names; [`redundancy`] looks whether
//! what was lost of these was made again, [`space`] what they take, and [`wrong`] what a
//! fragment of other content does.

mod actors;
pub(crate) mod named;
mod redundancy;
pub(crate) mod segments;
mod space;
mod wrong;

use crate::faults::Incident;
use crate::world::World;

impl World {
    pub(crate) fn start_objects(&mut self) {
        self.start_segments();
        self.start_named();
    }

    /// Disks that were lost or put back from older copies so far, and sectors that went bad: each may have held fragments.
    fn lost_of_objects(&self) -> u64 {
        const LOSSES: [Incident; 6] = [
            Incident::BricksLostForGood,
            Incident::DisksExchanged,
            Incident::BricksReplaced,
            // What was stored since it was copied an old disk lacks.
            Incident::OldDisksPutBack,
            Incident::RottenSectors,
            Incident::UnreadableSectors,
        ];
        LOSSES.iter().filter_map(|of| self.faults.counts().get(of)).sum()
    }
}
