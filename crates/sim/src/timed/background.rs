//! Other applications that share a brick's disk: their accesses come past the brick, and wait in the disk's own queue with the brick's.

use super::workload::{Arrivals, Drawn, Mix, Moments, Shape};
use base::Time;
use model::Draw;

/// What other applications ask of a disk, however long it takes. Nothing of it is counted in what is measured of the brick.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Background {
    /// Accesses a second, more than zero. If there are more than the disk can serve, its queue grows without a bound.
    pub per_second: f64,
    pub arrivals: Arrivals,
    /// Addresses are those of the disk's sectors, and not of the brick's volumes.
    pub mix: Mix,
}

impl Background {
    pub(crate) fn can_be(&self) -> bool {
        (1e-9..=1e9).contains(&self.per_second)
    }
}

/// The accesses of a [`Background`] that have not come yet, by rising time.
pub(crate) struct Coming {
    moments: Moments,
    next: Time,
    drawn: Drawn,
    sectors: u64,
}

impl Coming {
    /// Accesses to a disk of so many sectors, from the beginning of its clock on.
    pub(crate) fn new(background: &Background, sectors: u64, mut draw: Draw) -> Coming {
        let Background { per_second, arrivals, mix } = *background;
        let mut moments = Moments::new(arrivals, per_second, draw.fork());
        Coming { next: moments.next(), moments, drawn: Drawn::new(mix, draw), sectors }
    }

    /// The first of them, if it has come by `now`: when it came, and what it asks for.
    pub(crate) fn come_by(&mut self, now: Time) -> Option<(Time, Shape)> {
        let at = self.next;
        (at <= now).then(|| {
            self.next = self.moments.next();
            (at, self.drawn.next(self.sectors))
        })
    }
}
