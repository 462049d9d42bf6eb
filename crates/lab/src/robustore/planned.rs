//! What no read can beat: whoever knows how fast each disk is, and sends nothing in vain.

use objects::object::Place;
use reads::distribute::retrieval::{Disk, Request, Solver};
use std::time::Duration;

/// The least time in which disks of such rates, the first brick's first, give enough of an object: each block from one of its copies (by max flow),
/// or any symbols of a code, as many as there are blocks.
pub(super) fn least(places: &[Place], blocks: u32, (of_code, rates_mb_s): (bool, &[f64])) -> Duration {
    let disk = |rate: &f64| Disk { free_ns: 0, access_ns: libm::round(1e9 / rate) as u64, queue: 0 };
    let disks: Vec<Disk> = rates_mb_s.iter().map(disk).collect();
    let at = |place: &Place| place.1.0 - 1;
    if of_code {
        let mut counts = vec![0; disks.len()];
        let mut ends: Vec<u64> = Vec::with_capacity(places.len());
        for place in places {
            let disk = at(place) as usize;
            counts[disk] += 1;
            ends.push(disks[disk].finish_ns(counts[disk]));
        }
        ends.sort_unstable();
        return Duration::from_nanos(ends[blocks as usize - 1]);
    }
    let mut holders: Vec<Vec<u32>> = vec![Vec::new(); blocks as usize];
    places.iter().for_each(|place| holders[(place.0 % blocks) as usize].push(at(place)));
    let mut request = Request::default();
    holders.iter().for_each(|holders| request.push(holders));
    Duration::from_nanos(Solver::default().solve(&disks, &request, &mut Vec::new()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::BrickId;

    #[test]
    fn the_least_time_is_of_the_best_assignment() {
        let at = |bricks: &[u32]| -> Vec<Place> { (0..).zip(bricks.iter().copied().map(BrickId)).collect() };
        let rates = [1.0, 4.0];
        // Two symbols suffice, and the fast disk gives two in half a second.
        assert_eq!(least(&at(&[1, 1, 2, 2]), 2, (true, &rates)), Duration::from_millis(500));
        assert_eq!(least(&at(&[1, 1, 1, 2]), 2, (true, &rates)), Duration::from_secs(1));
        // Both blocks have a copy on the fast disk, or only one of them has.
        assert_eq!(least(&at(&[1, 1, 2, 2]), 2, (false, &rates)), Duration::from_millis(500));
        assert_eq!(least(&at(&[1, 2]), 2, (false, &rates)), Duration::from_secs(1));
    }
}
