//! Shortest seek time first: whoever is fewest cylinders away, which stands for the shortest seek.

use super::cylinders::Cylinders;
use super::slots::Slots;

#[derive(Debug, Default)]
pub(super) struct Sstf {
    pub(super) cylinders: Cylinders,
}

impl Sstf {
    /// Of the nearest cylinder, or of the two that are equally near, the access that was pushed first.
    pub(super) fn nearest<T>(&self, slots: &Slots<T>, arm: u32) -> Option<u32> {
        let (mut up, mut down) = (self.cylinders.from(arm), self.cylinders.below(arm));
        if let (Some(above), Some(below)) = (up, down) {
            let first = |cylinder| slots.sequence(self.cylinders.first(cylinder));
            match (above - arm, arm - below) {
                (away, back) if away < back => down = None,
                (away, back) if away > back => up = None,
                _ if first(above) < first(below) => down = None,
                _ => up = None,
            }
        }
        up.or(down).map(|cylinder| self.cylinders.first(cylinder))
    }
}
