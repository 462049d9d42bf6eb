//! The best choice for one request: no other choice has an earlier last arrival. The decision page on continuous retrieval says why
//! this is exact.
//!
//! Nothing of a network is built. A disk's finish is its free time and its buckets' accesses; moving a bucket changes two finishes.
//! A complete choice is kept all the time, beside a proven bound of the last arrival ([`Solver::bound_ns`]):
//!
//! 1. `start`: each bucket goes to the holder that would finish it first. Where this choice meets the bound, nothing else is done.
//! 2. `fluid`: the bound rises to what all holders together need.
//! 3. `level`: disks that finish after the bound are *late*. They give buckets away, along paths of disks that take one and give one,
//!    to disks with room. All late disks search at the same time, so that a round looks at each bucket once at most, and paths are short.
//! 4. `raise`: where there is no path, the disks that were reached are *closed*: what they have to read only they can read. The
//!    bound rises to the earliest time at which they can have done it.
//!
//! It ends when no disk finishes after the bound. Cost: no allocation once the buffers have grown, and nothing that grows with the number
//! of disks of the array, only with those that hold something of the request.

use super::request::{Disk, Request, Row};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// No access follows in a disk's list.
const LAST: u32 = u32::MAX;
/// The mark of disks that can read one bucket more by the bound.
const ROOM: u32 = u32::MAX;
/// The mark of disks that cannot, and that no search has reached.
const UNREACHED: u32 = 0;

/// All that `start` has to know of a disk. It is small so that the places of 1,000 disks stay in the nearest cache.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// When it would have read one bucket if it read no other.
    alone_ns: u64,
    /// When it would have read one bucket more than the choice reads there.
    next_ns: u64,
}

impl Place {
    /// Saturates: the times of a disk that holds nothing of the request may be anything.
    fn of(disk: &Disk) -> Place {
        let alone_ns = disk.free_ns.saturating_add(disk.access_ns);
        Place { alone_ns, next_ns: alone_ns }
    }
}

/// A bucket that is read from a holder. A bucket that needs several holders has several accesses, one after the other.
#[derive(Clone, Copy, Debug)]
struct Access {
    /// The bucket at the holder.
    edge: u32,
    /// The next access in the holder's list.
    next: u32,
    /// The edges of the bucket.
    begin: u32,
    end: u32,
}

impl Access {
    fn edges(&self) -> core::ops::Range<usize> {
        self.begin as usize..self.end as usize
    }
}

/// A disk while buckets are moved.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    free_ns: u64,
    access_ns: u64,
    /// When it has read all that the choice reads there.
    finish_ns: u64,
    /// The first access of its list: what the choice reads there.
    head: u32,
}

impl Node {
    /// Whether something is read there that arrives after this time.
    fn is_late(&self, bound_ns: u64) -> bool {
        self.finish_ns > bound_ns && self.head != LAST
    }

    /// Whether it can read one bucket more by this time.
    fn has_room(&self, bound_ns: u64) -> bool {
        self.finish_ns + self.access_ns <= bound_ns
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

/// A disk that a search reached, and the move of an access that would lead there. A late disk is where a search begins.
#[derive(Clone, Copy, Debug)]
struct Step {
    disk: u32,
    /// The index in [`Solver::reached`] of the late disk from which the search began.
    root: u32,
    /// The index there of the disk that would give the access.
    from: u32,
    /// [`LAST`] where a search begins.
    access: u32,
    /// The access's edge after the move.
    edge: u32,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Solver {
    bound_ns: u64,
    looks: u64,
    places: Vec<Place>,
    accesses: Vec<Access>,
    nodes: Vec<Node>,
    /// The disks that hold something of the request.
    touched: Vec<u32>,
    /// For each disk [`ROOM`], [`UNREACHED`], or the last round of searches that reached it.
    marks: Vec<u32>,
    mark: u32,
    /// The disks that finish after the bound.
    late: Vec<u32>,
    /// The disks that the current round has reached, those first that search.
    reached: Vec<Step>,
    /// Work of [`Solver::raise`]: disks such that what is read there can be read only there.
    closed: Vec<u32>,
    /// For each disk that searches, whether it has found a disk with room.
    has_found: Vec<bool>,
    /// Work of [`Solver::fluid`]: each disk's free time, and its accesses a nanosecond.
    rates: Vec<(f64, f64)>,
    /// Work of [`Solver::raise`]: each disk's next completion, and the time from one to the next.
    completions: Vec<(u64, u64)>,
}

impl Solver {
    /// Writes into `chosen` from which disk each bucket is read, as many for each as it needs; gives the last arrival.
    ///
    /// # Panics
    /// If a holder is not among `disks`, or a time beyond 2^63 ns comes out.
    pub fn solve(&mut self, disks: &[Disk], request: &Request, chosen: &mut Vec<u32>) -> u64 {
        if self.start(disks, request) > self.bound_ns {
            self.build(disks, request);
            self.fluid(request);
            self.level(request);
        }
        chosen.clear();
        chosen.extend(self.accesses.iter().map(|access| request.holders()[access.edge as usize]));
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

    /// The choice of `online`, and the bound by single buckets. Gives the choice's last arrival.
    fn start(&mut self, disks: &[Disk], request: &Request) -> u64 {
        if self.places.len() < disks.len() {
            self.places.resize(disks.len(), Place::default());
        }
        if disks.len() <= request.copies() {
            self.places.iter_mut().zip(disks).for_each(|(place, disk)| *place = Place::of(disk));
        } else {
            for disk in request.holders() {
                self.places[*disk as usize] = Place::of(&disks[*disk as usize]);
            }
        }
        self.accesses.clear();
        self.looks += request.copies() as u64;
        let (mut last_ns, mut bound_ns) = (0, 0);
        for row in request.rows() {
            let (finish_ns, alone_ns) = match row.needed {
                1 => self.take_one(disks, request, *row),
                _ => self.take_several(disks, request, *row),
            };
            last_ns = last_ns.max(finish_ns);
            bound_ns = bound_ns.max(alone_ns);
        }
        self.bound_ns = bound_ns;
        last_ns
    }

    /// Reads a bucket from the holder that finishes it first. Gives when it arrives, and when it would if there were no other.
    fn take_one(&mut self, disks: &[Disk], request: &Request, row: Row) -> (u64, u64) {
        let (mut best, mut best_ns, mut alone_ns) = (0, u64::MAX, u64::MAX);
        for (edge, disk) in (row.begin..).zip(&request.holders()[row.edges()]) {
            let place = self.places[*disk as usize];
            alone_ns = alone_ns.min(place.alone_ns);
            if place.next_ns < best_ns {
                (best, best_ns) = (edge, place.next_ns);
            }
        }
        self.take(disks, request, row, best);
        (best_ns, alone_ns)
    }

    /// As `take_one`, for a bucket that is read from several holders.
    fn take_several(&mut self, disks: &[Disk], request: &Request, row: Row) -> (u64, u64) {
        let (first, mut last_ns) = (self.accesses.len(), 0);
        for _ in 0..row.needed {
            let is_free = |edge: &u32| self.accesses[first..].iter().all(|access| access.edge != *edge);
            let place = |edge: u32| self.places[request.holders()[edge as usize] as usize];
            let best = (row.begin..row.end).filter(is_free).min_by_key(|edge| place(*edge).next_ns);
            let best = best.expect("a bucket needs no more than it has");
            last_ns = last_ns.max(place(best).next_ns);
            self.take(disks, request, row, best);
        }
        let alone = |edge: u32| self.places[request.holders()[edge as usize] as usize].alone_ns;
        let edges = row.begin..row.end;
        let rank = |of: u32| edges.clone().filter(|edge| (alone(*edge), *edge) < (alone(of), of)).count();
        let alone_ns = edges.clone().find(|edge| rank(*edge) + 1 == row.needed as usize).map_or(0, alone);
        (last_ns, alone_ns)
    }

    fn take(&mut self, disks: &[Disk], request: &Request, Row { begin, end, .. }: Row, edge: u32) {
        let disk = request.holders()[edge as usize] as usize;
        self.places[disk].next_ns += disks[disk].access_ns;
        self.accesses.push(Access { edge, next: LAST, begin, end });
    }

    /// Makes the nodes and lists of all touched disks from the accesses.
    fn build(&mut self, disks: &[Disk], request: &Request) {
        self.touch(disks, request);
        for disk in &self.touched {
            let Disk { free_ns, access_ns, .. } = disks[*disk as usize];
            let finish_ns = self.places[*disk as usize].next_ns - access_ns;
            self.nodes[*disk as usize] = Node { free_ns, access_ns, finish_ns, head: LAST };
        }
        for (at, access) in (0..).zip(&mut self.accesses) {
            let node = &mut self.nodes[request.holders()[access.edge as usize] as usize];
            access.next = core::mem::replace(&mut node.head, at);
        }
    }

    /// Finds the disks that hold something of the request.
    fn touch(&mut self, disks: &[Disk], request: &Request) {
        if self.nodes.len() < disks.len() {
            self.nodes.resize(disks.len(), Node::default());
            self.marks.resize(disks.len(), UNREACHED);
        }
        if self.mark > u32::MAX / 2 {
            self.marks.fill(UNREACHED);
            self.mark = 0;
        }
        self.mark += 1;
        self.touched.clear();
        request.holders().iter().for_each(|disk| self.marks[*disk as usize] = self.mark);
        if disks.len() <= request.copies() {
            // In the order of disks: nearly all hold something, so that branch prediction rarely fails, as it does in the order of edges.
            let marks = (0..).zip(&self.marks[..disks.len()]);
            self.touched.extend(marks.filter(|(_, mark)| **mark == self.mark).map(|(disk, _)| disk));
            return;
        }
        for disk in request.holders() {
            if core::mem::replace(&mut self.marks[*disk as usize], UNREACHED) == self.mark {
                self.touched.push(*disk);
            }
        }
    }

    /// Raises the bound to what all holders together need if buckets could be divided: a first bound that is near for large requests.
    fn fluid(&mut self, request: &Request) {
        let nodes = self.touched.iter().map(|disk| &self.nodes[*disk as usize]);
        let origin = nodes.clone().map(|node| node.free_ns).min().unwrap_or(0);
        self.rates.clear();
        self.rates.extend(nodes.map(|node| ((node.free_ns - origin) as f64, 1.0 / node.access_ns as f64)));
        let mut finish = f64::INFINITY;
        loop {
            let (mut work, mut speed) = (request.accesses() as f64, 0.0);
            for (free, inverse) in &self.rates {
                let inverse = if *free < finish { *inverse } else { 0.0 };
                work += free * inverse;
                speed += inverse;
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
        self.bound_ns = self.bound_ns.max(fluid_ns);
        // Buckets cannot be divided. All holders together are closed.
        self.closed.clone_from(&self.touched);
        if !self.is_room_enough() {
            self.raise();
        }
    }

    /// Moves buckets and raises the bound until no disk finishes after it.
    fn level(&mut self, request: &Request) {
        self.mark_rooms();
        let mut late = core::mem::take(&mut self.late);
        late.clear();
        late.extend(self.touched.iter().filter(|disk| self.nodes[**disk as usize].is_late(self.bound_ns)));
        // A new bound is tried with one disk: if there is no path, what one has reached is a smaller set than what all have reached, and
        // the bound rises further at once.
        let mut is_alone = true;
        while !late.is_empty() {
            if is_alone {
                let latest = (0..late.len()).max_by_key(|at| self.nodes[late[*at] as usize].finish_ns);
                late.swap(0, latest.expect("it is not empty"));
            }
            let roots = if is_alone { &late[..1] } else { &late[..] };
            let moves = self.round(request, roots);
            if moves == 0 {
                self.closed.clear();
                self.closed.extend(self.reached.iter().map(|step| step.disk));
                self.raise();
                self.mark_rooms();
            }
            is_alone = moves == 0;
            late.retain(|disk| self.nodes[*disk as usize].is_late(self.bound_ns));
        }
        self.late = late;
    }

    /// Marks all touched disks anew, after the bound has risen.
    fn mark_rooms(&mut self) {
        for disk in &self.touched {
            let has_room = self.nodes[*disk as usize].has_room(self.bound_ns);
            self.marks[*disk as usize] = if has_room { ROOM } else { UNREACHED };
        }
    }

    /// Late disks search for disks with room, all at the same time, breadth first. What one of them has reached no other reaches, and each
    /// gives one bucket away when it has found room. Gives how many have. If none has, the reached disks are closed.
    fn round(&mut self, request: &Request, roots: &[u32]) -> usize {
        self.mark += 1;
        self.reached.clear();
        for (root, disk) in (0..).zip(roots) {
            self.marks[*disk as usize] = self.mark;
            self.reached.push(Step { disk: *disk, root, from: root, access: LAST, edge: LAST });
        }
        self.has_found.clear();
        self.has_found.resize(roots.len(), false);
        let (mut at, mut searching) = (0, roots.len());
        while at < self.reached.len() && searching > 0 {
            let root = self.reached[at].root as usize;
            // A search that has found room is over: the lists of the disks that it reached are not as they were.
            if !self.has_found[root]
                && let Some(step) = self.scan(request, at)
            {
                self.shift(step);
                self.has_found[root] = true;
                searching -= 1;
            }
            at += 1;
        }
        roots.len() - searching
    }

    /// Reaches the disks to which a reached disk could give something. Ends at the first with room, which it returns.
    fn scan(&mut self, request: &Request, from: usize) -> Option<Step> {
        let Solver { accesses, nodes, marks, mark, reached, looks, .. } = self;
        let Step { disk, root, .. } = reached[from];
        let is_coded = request.accesses() > request.len();
        let mut at = nodes[disk as usize].head;
        while at != LAST {
            let access = accesses[at as usize];
            *looks += access.edges().len() as u64;
            for (edge, disk) in (access.begin..).zip(&request.holders()[access.edges()]) {
                let seen = &mut marks[*disk as usize];
                if *seen == *mark || is_coded && is_taken(accesses, at as usize, edge) {
                    continue;
                }
                let step = Step { disk: *disk, root, from: from as u32, access: at, edge };
                if *seen == ROOM {
                    return Some(step);
                }
                *seen = *mark;
                reached.push(step);
            }
            at = access.next;
        }
        None
    }

    /// Each disk on the path to a disk with room gives an access to the next.
    fn shift(&mut self, last: Step) {
        let mut step = last;
        while step.access != LAST {
            let from = self.reached[step.from as usize];
            self.unlink(from.disk, step.access);
            self.accesses[step.access as usize].edge = step.edge;
            self.link(step.disk, step.access);
            step = from;
        }
        if !self.nodes[last.disk as usize].has_room(self.bound_ns) {
            self.marks[last.disk as usize] = UNREACHED;
        }
    }

    fn link(&mut self, disk: u32, access: u32) {
        let node = &mut self.nodes[disk as usize];
        node.finish_ns += node.access_ns;
        self.accesses[access as usize].next = core::mem::replace(&mut node.head, access);
    }

    fn unlink(&mut self, disk: u32, access: u32) {
        let after = self.accesses[access as usize].next;
        let node = &mut self.nodes[disk as usize];
        node.finish_ns -= node.access_ns;
        if node.head == access {
            node.head = after;
            return;
        }
        let mut before = node.head as usize;
        while self.accesses[before].next != access {
            before = self.accesses[before].next as usize;
        }
        self.accesses[before].next = after;
    }

    /// Raises the bound to the earliest time by which the closed disks can have done what they have to.
    fn raise(&mut self) {
        let bound_ns = self.bound_ns;
        // Accesses that are too many by the bound, and each disk's next completion after it.
        let mut excess = 0;
        let mut next = core::mem::take(&mut self.completions);
        next.clear();
        for disk in &self.closed {
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

    /// Whether the closed disks need no later bound because those with room could take all that is late, one access each. This is found
    /// without most of the divisions that `raise` needs.
    fn is_room_enough(&self) -> bool {
        let (mut excess, mut room) = (0, 0);
        for disk in &self.closed {
            let node = self.nodes[*disk as usize];
            if node.is_late(self.bound_ns) {
                excess += (node.finish_ns - node.last_by(self.bound_ns)) / node.access_ns;
            }
            room += u64::from(node.has_room(self.bound_ns));
        }
        excess <= room
    }
}

/// Whether the bucket of an access is read at an edge already, by this access or another one.
fn is_taken(accesses: &[Access], at: usize, edge: u32) -> bool {
    let is_same = |other: &&Access| other.begin == accesses[at].begin;
    let before = accesses[..at].iter().rev().take_while(is_same);
    before.chain(accesses[at..].iter().take_while(is_same)).any(|access| access.edge == edge)
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
            is_better_than_online += u32::from(solver.start(&disks, &request) > last_ns);
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
