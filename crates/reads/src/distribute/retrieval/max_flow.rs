//! The choice whose last bucket arrives earliest: the paper's `max-flow`, by the [`Solver`].

use super::chooser::Chooser;
use super::request::{Disk, Request};
use super::solver::Solver;

#[derive(Debug, Default)]
pub struct MaxFlow {
    solver: Solver,
}

impl Chooser for MaxFlow {
    fn choose(&mut self, disks: &mut [Disk], request: &Request, chosen: &mut Vec<u32>) {
        self.solver.solve(disks, request, chosen);
        chosen.iter().for_each(|disk| disks[*disk as usize].add());
    }

    fn looks(&self) -> u64 {
        self.solver.looks()
    }
}
