//! The one-way elevator: the arm goes from the outermost waiting cylinder to the innermost, and back in one seek.
//! On one cylinder accesses are served in the order of arrival.

use super::cylinders::Cylinders;

#[derive(Debug, Default)]
pub(super) struct Clook {
    pub(super) cylinders: Cylinders,
}

impl Clook {
    /// The first on the nearest cylinder at or beyond the arm, and when there is none, on the outermost.
    pub(super) fn next(&self, arm: u32) -> Option<u32> {
        let cylinder = self.cylinders.from(arm).or_else(|| self.cylinders.from(0))?;
        Some(self.cylinders.first(cylinder))
    }
}
