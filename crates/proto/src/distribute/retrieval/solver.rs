//! The best choice for one request: no other choice has an earlier last arrival. The decision page on continuous retrieval says why
//! this is exact.
//!
//! Nothing of a network is built. A disk's finish is its free time and its buckets' accesses; moving a bucket changes two finishes.
//! A complete choice is kept all the time, beside a proven bound of the last arrival ([`Solver::bound_ns`]):
//!
//! 1. `start`: each bucket goes to the holder that would finish it first.
//! 2. `level`: disks that finish after the bound give buckets away, along paths of disks that take one and give one.
//! 3. `raise`: where no path is left, the disks that were reached are *closed*: what they have to read only they can read. The
//!    bound rises to the earliest time at which they can have done it.
//!
//! It ends when no disk finishes after the bound. Cost: no allocation once the buffers have grown, and nothing that depends on the number
//! of disks of the array, only on those that hold something of the request.

use super::request::{Disk, Request};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// No edge follows in a disk's list.
const LAST: u32 = u32::MAX;
/// The edge is in no disk's list: the bucket is not read there.
const UNUSED: u32 = u32::MAX - 1;

/// A disk while a request is solved. Those of which the request has nothing keep a mark from before.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    free_ns: u64,
    access_ns: u64,
    /// When it has read all that the choice reads there.
    finish_ns: u64,
    /// The first edge of its list: what the choice reads there.
    head: u32,
    /// The last search that reached it, or the beginning of the solution.
    mark: u32,
}

impl Node {
    /// Whether something is read there that arrives after this time.
    fn is_late(&self, bound_ns: u64) -> bool {
        self.finish_ns > bound_ns && self.head != LAST
    }

    /// Its last completion by this time; its free time if it completes nothing by then.
    fn last_by(&self, bound_ns: u64) -> u64 {
        if self.finish_ns <= bound_ns && bound_ns - self.finish_ns < self.access_ns {
            return self.finish_ns;
        }
        if self.free_ns > bound_ns {
            self.free_ns
        } else {
            bound_ns - (bound_ns - self.free_ns) % self.access_ns
        }
    }
}

/// A disk on the path that a search has come, and the bucket that it would give to the next one.
#[derive(Clone, Copy, Debug)]
struct Step {
    disk: u32,
    /// The edge before `edge` in the disk's list.
    before: u32,
    /// The edge that would be given up.
    edge: u32,
    /// The edge that would be used instead.
    instead: u32,
}

/// What a search for a disk with room ended with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Search {
    Moved,
    Exhausted,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Solver {
    nodes: Vec<Node>,
    /// For each edge the one after it in its disk's list.
    next: Vec<u32>,
    /// The disks that hold something of the request.
    touched: Vec<u32>,
    /// The disks that were reached with the current mark.
    reached: Vec<u32>,
    path: Vec<Step>,
    mark: u32,
    bound_ns: u64,
    looks: u64,
    /// Work of [`Solver::raise`]: each disk's next completion, and the time from one to the next.
    completions: Vec<(u64, u64)>,
}

impl Solver {
    /// Writes into `chosen` from which disk each bucket is read, as many for each as it needs; gives the last arrival.
    ///
    /// # Panics
    /// If a holder is not among `disks`, or a time beyond 2^63 ns comes out.
    pub fn solve(&mut self, disks: &[Disk], request: &Request, chosen: &mut Vec<u32>) -> u64 {
        self.start(disks, request);
        if self.is_any_late() {
            self.fluid(request);
            self.level(request);
        }
        chosen.clear();
        let used = request.holders().iter().zip(&self.next).filter(|(_, next)| **next != UNUSED);
        chosen.extend(used.map(|(disk, _)| *disk));
        self.bound_ns
    }

    /// After [`Solver::solve`]: the last arrival, which is proven to be the earliest that can be.
    pub fn bound_ns(&self) -> u64 {
        self.bound_ns
    }

    /// How many copies were looked at, over all requests.
    pub fn looks(&self) -> u64 {
        self.looks
    }

    /// The choice of `online`, and the bound by single buckets.
    fn start(&mut self, disks: &[Disk], request: &Request) {
        if self.nodes.len() < disks.len() {
            self.nodes.resize(disks.len(), Node::default());
        }
        if self.mark > u32::MAX / 2 {
            self.nodes.iter_mut().for_each(|node| node.mark = 0);
            self.mark = 0;
        }
        self.mark += 1;
        let mark = self.mark;
        self.touched.clear();
        self.next.clear();
        self.next.resize(request.holders().len(), UNUSED);
        self.bound_ns = 0;
        self.looks += request.copies() as u64;
        for row in request.rows() {
            let edges = row.edges();
            for disk in &request.holders()[edges.clone()] {
                let node = &mut self.nodes[*disk as usize];
                if node.mark < mark {
                    let Disk { free_ns, access_ns, .. } = disks[*disk as usize];
                    *node = Node { free_ns, access_ns, finish_ns: free_ns, head: LAST, mark };
                    self.touched.push(*disk);
                }
            }
            for _ in 0..row.needed {
                self.take_best(request, edges.clone());
            }
            self.bound_ns = self.bound_ns.max(self.alone_ns(request, edges, row.needed));
        }
    }

    /// Reads a bucket from one more of its holders.
    fn take_best(&mut self, request: &Request, edges: core::ops::Range<usize>) {
        let (mut best, mut best_ns) = (LAST, u64::MAX);
        for edge in edges {
            let node = &self.nodes[request.holders()[edge] as usize];
            let finish_ns = node.finish_ns + node.access_ns;
            if finish_ns < best_ns && self.next[edge] == UNUSED {
                (best, best_ns) = (edge as u32, finish_ns);
            }
        }
        self.link(request, best);
    }

    /// When a bucket would arrive if there were no other.
    fn alone_ns(&self, request: &Request, edges: core::ops::Range<usize>, needed: u32) -> u64 {
        let alone = |edge: usize| {
            let node = &self.nodes[request.holders()[edge] as usize];
            node.free_ns + node.access_ns
        };
        if needed == 1 {
            return edges.map(alone).min().unwrap_or(0);
        }
        let rank = |of: usize| edges.clone().filter(|edge| (alone(*edge), *edge) < (alone(of), of)).count();
        edges.clone().find(|edge| rank(*edge) + 1 == needed as usize).map_or(0, alone)
    }

    fn link(&mut self, request: &Request, edge: u32) {
        let node = &mut self.nodes[request.holders()[edge as usize] as usize];
        self.next[edge as usize] = node.head;
        node.head = edge;
        node.finish_ns += node.access_ns;
    }

    fn unlink(&mut self, step: Step) {
        let node = &mut self.nodes[step.disk as usize];
        let after = core::mem::replace(&mut self.next[step.edge as usize], UNUSED);
        match step.before {
            LAST => node.head = after,
            before => self.next[before as usize] = after,
        }
        node.finish_ns -= node.access_ns;
    }

    fn is_any_late(&self) -> bool {
        self.touched.iter().any(|disk| self.nodes[*disk as usize].is_late(self.bound_ns))
    }

    /// Raises the bound to what all holders together need if buckets could be divided: a first bound that is near for large requests.
    fn fluid(&mut self, request: &Request) {
        let origin = self.touched.iter().map(|disk| self.nodes[*disk as usize].free_ns).min().unwrap_or(0);
        let mut finish = f64::INFINITY;
        loop {
            let (mut work, mut speed) = (request.accesses() as f64, 0.0);
            for disk in &self.touched {
                let node = &self.nodes[*disk as usize];
                let free = (node.free_ns - origin) as f64;
                if free < finish {
                    let inverse = 1.0 / node.access_ns as f64;
                    work += free * inverse;
                    speed += inverse;
                }
            }
            let lower = work / speed;
            // A disk that is busy until after the finish counted as if it undid work: without it the finish is earlier, which may leave
            // out more of them. When no more are left out, this is the finish of buckets that can be divided: a bound.
            if lower >= finish || !lower.is_finite() {
                break;
            }
            finish = lower;
        }
        if !finish.is_finite() {
            return;
        }
        // Rounded down by more than all roundings together can have raised it.
        let fluid_ns = origin + (finish * (1.0 - 1e-9)) as u64;
        if fluid_ns > self.bound_ns {
            self.bound_ns = fluid_ns;
            // Buckets cannot be divided. All holders together are closed.
            self.reached.clone_from(&self.touched);
            self.raise();
        }
    }

    fn level(&mut self, request: &Request) {
        loop {
            self.new_mark();
            let (mut has_moved, mut is_late) = (false, false);
            for at in 0..self.touched.len() {
                let disk = self.touched[at];
                while self.nodes[disk as usize].is_late(self.bound_ns) {
                    match self.search(request, disk) {
                        Search::Moved => has_moved = true,
                        // Marks are from before a move: that this disk cannot give anything away is not known.
                        Search::Exhausted if has_moved => {
                            is_late = true;
                            break;
                        }
                        Search::Exhausted => {
                            self.raise();
                            self.new_mark();
                        }
                    }
                }
            }
            if !is_late {
                return;
            }
        }
    }

    fn new_mark(&mut self) {
        self.mark += 1;
        self.reached.clear();
    }

    fn reach(&mut self, disk: u32) {
        self.nodes[disk as usize].mark = self.mark;
        self.reached.push(disk);
    }

    /// Moves a bucket away from `root`, and others along a path, so that one disk more is used and still finishes by the bound.
    fn search(&mut self, request: &Request, root: u32) -> Search {
        if self.nodes[root as usize].mark == self.mark {
            return Search::Exhausted;
        }
        self.path.clear();
        if self.enter(request, root) {
            return self.moved(request);
        }
        while let Some(step) = self.path.last().copied() {
            match self.next_step(request, step) {
                None => {
                    self.path.pop();
                }
                Some(step) => {
                    *self.path.last_mut().expect("a path") = step;
                    let disk = request.holders()[step.instead as usize];
                    if self.enter(request, disk) {
                        return self.moved(request);
                    }
                }
            }
        }
        Search::Exhausted
    }

    /// Reaches a disk. If one of its buckets can go to a disk with room at once, this is the path's last step: `true`.
    fn enter(&mut self, request: &Request, disk: u32) -> bool {
        self.reach(disk);
        let (mut before, mut edge) = (LAST, self.nodes[disk as usize].head);
        self.path.push(Step { disk, before: LAST, edge: UNUSED, instead: 0 });
        while edge != LAST {
            let row = request.rows()[request.bucket_of()[edge as usize] as usize];
            self.looks += u64::from(row.end - row.begin);
            for instead in row.edges() {
                let node = &self.nodes[request.holders()[instead] as usize];
                if node.finish_ns + node.access_ns <= self.bound_ns && self.next[instead] == UNUSED {
                    let step = Step { disk, before, edge, instead: instead as u32 };
                    *self.path.last_mut().expect("just pushed") = step;
                    return true;
                }
            }
            (before, edge) = (edge, self.next[edge as usize]);
        }
        false
    }

    /// The next disk that was not reached yet and could take a bucket from the step's.
    fn next_step(&self, request: &Request, step: Step) -> Option<Step> {
        let Step { disk, mut before, mut edge, instead } = step;
        let mut from = instead as usize + 1;
        if edge == UNUSED {
            edge = self.nodes[disk as usize].head;
            from = 0;
        }
        while edge != LAST {
            let row = request.rows()[request.bucket_of()[edge as usize] as usize];
            for instead in from.max(row.begin as usize)..row.end as usize {
                let node = &self.nodes[request.holders()[instead] as usize];
                if node.mark != self.mark && self.next[instead] == UNUSED {
                    return Some(Step { disk, before, edge, instead: instead as u32 });
                }
            }
            (before, edge) = (edge, self.next[edge as usize]);
            from = 0;
        }
        None
    }

    /// Each disk of the path gives its bucket to the next.
    fn moved(&mut self, request: &Request) -> Search {
        while let Some(step) = self.path.pop() {
            self.unlink(step);
            self.link(request, step.instead);
            // It may have more to give.
            self.nodes[step.disk as usize].mark = self.mark - 1;
        }
        Search::Moved
    }

    /// The disks that were reached are closed: raises the bound to the earliest time by which they can have done what they have to.
    fn raise(&mut self) {
        let bound_ns = self.bound_ns;
        // Accesses that are too many by the bound, and each disk's next completion after it.
        let mut excess = 0;
        let mut next = core::mem::take(&mut self.completions);
        next.clear();
        for disk in &self.reached {
            let node = self.nodes[*disk as usize];
            let by_bound_ns = node.last_by(bound_ns);
            excess += match node.finish_ns >= by_bound_ns {
                true => ((node.finish_ns - by_bound_ns) / node.access_ns) as i64,
                false => -(((by_bound_ns - node.finish_ns) / node.access_ns) as i64),
            };
            next.push((by_bound_ns + node.access_ns, node.access_ns));
        }
        match usize::try_from(excess) {
            Err(_) | Ok(0) => self.completions = next,
            Ok(excess) => (self.bound_ns, self.completions) = nth_completion(next, excess),
        }
    }
}

/// The n-th completion (from 1) of disks that complete at a first time and then in steps, each given as both.
fn nth_completion(mut disks: Vec<(u64, u64)>, mut n: usize) -> (u64, Vec<(u64, u64)>) {
    let after = |first_ns: u64, step_ns: u64, time_ns: u64| (time_ns - first_ns) / step_ns + 1;
    // While more are to come than there are disks: by the latest of their first completions all have completed once.
    while n > disks.len() {
        let latest_ns = disks.iter().map(|(first_ns, _)| *first_ns).max().expect("a closed set is not empty");
        let by_then: u64 =
            disks.iter().map(|(first_ns, step_ns)| after(*first_ns, *step_ns, latest_ns)).sum();
        if by_then > n as u64 {
            break;
        }
        n -= by_then as usize;
        if n == 0 {
            return (latest_ns, disks);
        }
        for (first_ns, step_ns) in &mut disks {
            *first_ns += after(*first_ns, *step_ns, latest_ns) * *step_ns;
        }
    }
    if n <= disks.len() {
        let (earlier, nth, _) = disks.select_nth_unstable(n - 1);
        let nth_ns = nth.0;
        // No disk completes twice by then: this is the one.
        if earlier.iter().all(|(first_ns, step_ns)| first_ns + step_ns >= nth_ns) {
            return (nth_ns, disks);
        }
    }
    let mut heap = BinaryHeap::from(disks.into_iter().map(Reverse).collect::<Vec<_>>());
    loop {
        let mut earliest = heap.peek_mut().expect("a closed set is not empty");
        let (first_ns, step_ns) = earliest.0;
        n -= 1;
        if n == 0 {
            drop(earliest);
            return (first_ns, heap.into_iter().map(|Reverse(disk)| disk).collect());
        }
        earliest.0.0 = first_ns + step_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    /// A drawn array and a request of it: few disks and few distinct times, so that ties and full disks are common.
    fn drawn(random: &mut Rng, buckets_max: u64) -> (Vec<Disk>, Request) {
        let count = random.u64(1..=6) as usize;
        let is_mixed = random.bool();
        let disk = |random: &mut Rng| {
            let access_ns = if is_mixed { [1, 2, 7, 30, 132][random.u64(..5) as usize] } else { 5 };
            Disk { free_ns: random.u64(..3) * random.u64(..40), access_ns, queue: 0 }
        };
        let disks: Vec<Disk> = (0..count).map(|_| disk(random)).collect();
        let mut request = Request::default();
        for _ in 0..random.u64(1..=buckets_max) {
            let mut holders: Vec<u32> = (0..count as u32).collect();
            random.shuffle(&mut holders);
            holders.truncate(random.u64(1..=3) as usize);
            let needed = if random.bool() { 1 } else { random.u64(1..=holders.len() as u64) };
            request.push_coded(&holders, needed as u32);
        }
        (disks, request)
    }

    /// The earliest last arrival of all choices there are.
    fn best_ns(disks: &[Disk], request: &Request) -> u64 {
        fn extend(
            disks: &[Disk],
            buckets: &[(&[u32], u32)],
            counts: &mut [u32],
            until_ns: u64,
            best_ns: &mut u64,
        ) {
            let Some(((holders, needed), others)) = buckets.split_first() else {
                *best_ns = until_ns.min(*best_ns);
                return;
            };
            let subsets = (0..1_u32 << holders.len()).filter(|subset| subset.count_ones() == *needed);
            for subset in subsets {
                let taken: Vec<usize> = (0..holders.len())
                    .filter(|at| subset >> at & 1 == 1)
                    .map(|at| holders[at] as usize)
                    .collect();
                taken.iter().for_each(|disk| counts[*disk] += 1);
                let latest = taken.iter().map(|disk| disks[*disk].finish_ns(counts[*disk])).max();
                let until_ns = until_ns.max(latest.expect("at least one is needed"));
                if until_ns < *best_ns {
                    extend(disks, others, counts, until_ns, best_ns);
                }
                taken.iter().for_each(|disk| counts[*disk] -= 1);
            }
        }
        let buckets: Vec<(&[u32], u32)> = request.buckets().collect();
        let mut best = u64::MAX;
        extend(disks, &buckets, &mut vec![0; disks.len()], 0, &mut best);
        best
    }

    #[test]
    fn it_is_as_good_as_the_best_of_all_choices() {
        let (mut random, mut solver, mut chosen) = (Rng::with_seed(1), Solver::default(), Vec::new());
        let mut is_better_than_online = 0;
        for case in 0..100_000 {
            let (disks, request) = drawn(&mut random, 6);
            let last_ns = solver.solve(&disks, &request, &mut chosen);
            assert!(request.is_possible(&chosen), "case {case}: {chosen:?} of {request:?}");
            assert_eq!(request.finish_ns(&disks, &chosen), last_ns, "case {case}: {disks:?} {request:?}");
            assert_eq!(last_ns, best_ns(&disks, &request), "case {case}: {disks:?} {request:?}");
            solver.start(&disks, &request);
            let latest = solver.touched.iter().map(|disk| &solver.nodes[*disk as usize]);
            is_better_than_online += u32::from(
                latest.filter(|node| node.head != LAST).map(|node| node.finish_ns).max() > Some(last_ns),
            );
        }
        assert!(is_better_than_online > 2_000, "{is_better_than_online} cases put the solver to the test");
    }

    #[test]
    fn the_nth_completion_is_that_of_all_in_order() {
        let mut random = Rng::with_seed(2);
        for _ in 0..20_000 {
            let disk = |random: &mut Rng| (random.u64(..50), [1, 3, 40, 1000][random.u64(..4) as usize]);
            let disks: Vec<(u64, u64)> = (0..random.u64(1..6)).map(|_| disk(&mut random)).collect();
            let n = random.u64(1..40) as usize;
            let mut all: Vec<u64> = disks
                .iter()
                .flat_map(|(first_ns, step_ns)| (0..40).map(move |more| first_ns + more * step_ns))
                .collect();
            all.sort_unstable();
            assert_eq!(nth_completion(disks.clone(), n).0, all[n - 1], "{n} of {disks:?}");
        }
    }
}
