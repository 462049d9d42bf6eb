//! The paper's worked examples, which are small enough to be checked by hand: Figure 1, and Example 1 with its Figures 8 and 9.

use reads::distribute::retrieval::Request;

/// What an example asks an array for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Example {
    /// What each disk takes for a bucket.
    pub access_ns: Vec<u64>,
    /// Each request with the time at which it comes.
    pub requests: Vec<(u64, Request)>,
}

impl Example {
    /// The same when each bucket has its first copy alone.
    #[must_use]
    pub fn first_copies(&self) -> Example {
        let first = |(at_ns, request): &(u64, Request)| {
            let mut alone = Request::default();
            request.buckets().for_each(|(holders, _)| alone.push(&holders[..1]));
            (*at_ns, alone)
        };
        let requests = self.requests.iter().map(first).collect();
        Example { access_ns: self.access_ns.clone(), requests }
    }
}

/// The side of Figure 1's grid, and its disks.
const SIDE: u32 = 7;

/// The disk of a bucket's first copy, and of its second one, in Figure 1. These are formulas for the numbers that the paper prints.
pub fn figure_1_copies(row: u32, column: u32) -> [u32; 2] {
    [(3 * row + column) % SIDE, (2 * row + column) % SIDE]
}

/// Figure 1: the request R1, three rows by two columns, at seven equal and idle disks.
pub fn figure_1(access_ns: u64) -> Example {
    let mut request = Request::default();
    for (row, column) in (0..3).flat_map(|row| (0..2).map(move |column| (row, column))) {
        let [first, second] = figure_1_copies(row, column);
        // The grids are equal in their first rows: there both copies are on one disk.
        if first == second { request.push(&[first]) } else { request.push(&[first, second]) }
    }
    Example { access_ns: vec![access_ns; SIDE as usize], requests: vec![(0, request)] }
}

/// Example 1's disks, one of each kind of Table I: Raptor, Barracuda, Cheetah, Vertex, X25-E.
const EXAMPLE_1_ACCESS_NS: [u64; 5] = [8_300_000, 13_200_000, 6_100_000, 500_000, 200_000];
/// When Example 1's requests come.
const EXAMPLE_1_AT_NS: [u64; 2] = [8_000_000, 10_000_000];
/// Where the buckets of the first request lie: one on a hard disk in any case, the others on solid-state disks too.
const EXAMPLE_1_FIRST: [[u32; 2]; 5] = [[0, 1], [3, 1], [4, 2], [3, 4], [4, 3]];
/// Where those of the second request lie. The first bucket is the paper's [0, 0]: one copy is on disk 0.
const EXAMPLE_1_SECOND: [[u32; 2]; 4] = [[0, 2], [3, 1], [4, 0], [4, 3]];

/// Example 1. The paper's text does not have the allocation of its Figure 8: this one is ours, with all that the text says of it. Only the
/// buckets that are asked for are given.
pub fn example_1() -> Example {
    let request = |buckets: &[[u32; 2]]| {
        let mut request = Request::default();
        buckets.iter().for_each(|holders| request.push(holders));
        request
    };
    let requests = [request(&EXAMPLE_1_FIRST), request(&EXAMPLE_1_SECOND)];
    let requests = EXAMPLE_1_AT_NS.into_iter().zip(requests).collect();
    Example { access_ns: EXAMPLE_1_ACCESS_NS.to_vec(), requests }
}

#[cfg(test)]
mod tests {
    use super::super::{Costs, Driver, Planning, replay};
    use super::*;
    use reads::distribute::retrieval::{Choice, Fairness};

    const FLOW: Choice = Choice::MaxFlow;

    fn done_ns(example: &Example, driver: Driver) -> Vec<u64> {
        let mut planning = Planning::Modelled(Costs { plan_ns: 0.0, look_ns: 0.0 });
        replay(&example.access_ns, driver, &example.requests, &mut planning, 1)
    }

    /// All rows of Figure 1 that the paper prints, both grids.
    #[test]
    fn the_grids_are_those_of_the_paper() {
        let first = ["0123456", "3456012", "6012345", "2345601", "5601234", "1234560", "4560123"];
        let second = ["0123456", "2345601", "4560123", "6012345", "1234560", "3456012", "5601234"];
        for (copy, rows) in [first, second].iter().enumerate() {
            for (row, text) in (0..).zip(rows) {
                let ours: String =
                    (0..SIDE).map(|column| figure_1_copies(row, column)[copy].to_string()).collect();
                assert_eq!(&ours, text, "copy {copy}, row {row}");
            }
        }
    }

    #[test]
    fn figure_1_needs_one_access_with_both_copies_and_two_with_the_first() {
        let example = figure_1(1_000);
        let first: Vec<u32> = example.requests[0].1.buckets().map(|(holders, _)| holders[0]).collect();
        assert_eq!(first, [0, 1, 3, 4, 6, 0]);
        assert_eq!(done_ns(&example, Driver::Conservative(FLOW)), [1_000]);
        assert_eq!(done_ns(&example.first_copies(), Driver::Conservative(FLOW)), [2_000]);
    }

    #[test]
    fn example_1_is_retrieved_as_the_text_says() {
        let example = example_1();
        let lens: Vec<usize> = example.requests.iter().map(|(_, request)| request.len()).collect();
        assert_eq!(lens, [5, 4]);
        // The second request is complete before the first one, which came earlier.
        for driver in [Driver::Conservative(FLOW), Driver::Adaptive(Fairness::Promise)] {
            assert_eq!(done_ns(&example, driver), [16_300_000, 16_100_000], "{driver:?}");
        }
        // Its bucket [0, 0] at disk 0, where the first request's bucket is read until 16.3 ms.
        assert_eq!(done_ns(&example.first_copies(), Driver::Conservative(FLOW)), [16_300_000, 24_600_000]);
        // In a batch it waits until the array is idle.
        let batched = Driver::Batched { choice: FLOW, cap: 1_000 };
        assert_eq!(done_ns(&example, batched), [16_300_000, 22_400_000]);
    }
}
