//! Requests of buckets of different sizes, where an access takes longer for a larger bucket.
//!
//! To choose copies with the earliest last arrival is then scheduling on unrelated machines, which is NP-hard (Lenstra, Shmoys and
//! Tardos, "Approximation algorithms for scheduling unrelated parallel machines", 1990). [`MixedSizes::choose`] gives a good choice in
//! a bounded number of steps, and [`MixedSizes::bound_ns`] a time before which no choice can have its last arrival: their
//! ratio is how far from the best the choice is at most. Where all sizes are equal, the [`Solver`] finds the best choice.

use super::request::{Disk, Request};
use super::solver::Solver;

/// Picoseconds in a nanosecond. Transfer times a byte are below a nanosecond on fast disks.
const PS_PER_NS: u64 = 1_000;
/// The search for moves looks at so many buckets for each edge of the request before it ends. Four times as many brought the last
/// arrival of drawn requests of 4,096 buckets on 10 to 1,000 disks forward by 0.01% at most.
const LOOKS_PER_EDGE: u64 = 100;
/// A bound cuts a request into so many pieces for each access, unless a common divisor of all buckets makes fewer.
const PIECES_PER_ACCESS: u64 = 32;
/// Bounds are computed for so many kinds of disks, and for so many sizes. Arrays have few kinds; of many, some are left out.
const KINDS_MAX: usize = 8;
/// Later than this many picoseconds after the first disk is free, 26 days, no disk counts as free.
const FREE_PS_MAX: u64 = 1 << 61;

/// A disk whose accesses take longer for larger buckets. Times are in nanoseconds from any one origin.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct SizedDisk {
    /// When it will have done all that it has to do already.
    pub free_ns: u64,
    /// How long an access takes before the first byte. Not 0 together with `transfer_ps`.
    pub access_ns: u64,
    /// How long each byte takes after that, in picoseconds. A disk of 100 MB/s has 10,000.
    pub transfer_ps: u64,
}

impl SizedDisk {
    /// How long it takes to read a bucket, rounded up to whole nanoseconds.
    pub fn cost_ns(&self, bytes: u64) -> u64 {
        self.access_ns + (bytes * self.transfer_ps).div_ceil(PS_PER_NS)
    }
}

/// A disk while a request is answered.
#[derive(Clone, Debug, Default)]
struct Place {
    /// When it has read all that the choice reads there.
    finish_ns: u64,
    /// The edges that the choice uses there: a bucket and one of its holders.
    edges: Vec<u32>,
    is_touched: bool,
}

/// A bucket that is to be read from another holder: one edge is used no more, another is.
#[derive(Clone, Copy, Debug)]
struct Move {
    from: u32,
    to: u32,
}

/// What is known of a request and an array, and does not change while it is answered.
#[derive(Clone, Copy)]
struct Task<'a> {
    disks: &'a [SizedDisk],
    request: &'a Request,
    bytes: &'a [u64],
}

impl Task<'_> {
    fn disk_of(&self, edge: u32) -> u32 {
        self.request.holders()[edge as usize]
    }

    fn cost_ns(&self, edge: u32) -> u64 {
        let bucket = self.request.bucket_of()[edge as usize];
        self.disks[self.disk_of(edge) as usize].cost_ns(self.bytes[bucket as usize])
    }

    /// When its bucket would arrive if there were no other.
    fn alone_ns(&self, edge: u32) -> u64 {
        self.disks[self.disk_of(edge) as usize].free_ns + self.cost_ns(edge)
    }

    fn edges_of(&self, bucket: u32) -> core::ops::Range<u32> {
        let row = self.request.rows()[bucket as usize];
        row.begin..row.end
    }

    /// All edges of an edge's bucket.
    fn siblings(&self, edge: u32) -> core::ops::Range<u32> {
        self.edges_of(self.request.bucket_of()[edge as usize])
    }

    fn check(&self) {
        assert_eq!(self.request.len(), self.bytes.len(), "each bucket has a size");
    }
}

/// See the module. Keeps its buffers from request to request.
#[derive(Clone, Debug, Default)]
pub struct MixedSizes {
    solver: Solver,
    places: Vec<Place>,
    touched: Vec<u32>,
    /// For each edge whether the choice uses it.
    is_used: Vec<bool>,
    looks: u64,
}

impl MixedSizes {
    /// Writes into `chosen` from which disk each bucket is read, as many for each as it needs; gives the last arrival. `bytes` are the
    /// sizes of what is read from each of these disks, one for each bucket.
    ///
    /// The last arrival is the earliest that can be if all sizes are equal. Otherwise no single move of a bucket, and no pair of moves
    /// through one other disk, brings the disk that finishes last forward, unless the search for them was cut off.
    ///
    /// # Panics
    /// If there are not as many sizes as buckets, a holder is not among `disks`, or a time beyond 2^63 ns comes out.
    pub fn choose(
        &mut self,
        disks: &[SizedDisk],
        request: &Request,
        bytes: &[u64],
        chosen: &mut Vec<u32>,
    ) -> u64 {
        let task = Task { disks, request, bytes };
        task.check();
        if let Some(first) = bytes.first().filter(|first| bytes.iter().all(|size| size == *first)) {
            return self.solver.solve(&of_one_size(disks, *first), request, chosen);
        }
        self.start(task);
        self.improve(task);
        chosen.clear();
        let used = request.holders().iter().zip(&self.is_used).filter(|(_, is_used)| **is_used);
        chosen.extend(used.map(|(disk, _)| *disk));
        self.latest().map_or(0, |disk| self.places[disk as usize].finish_ns)
    }

    /// Largest first: each bucket goes to the holder that would finish it first.
    fn start(&mut self, task: Task<'_>) {
        for disk in self.touched.drain(..) {
            self.places[disk as usize].edges.clear();
            self.places[disk as usize].is_touched = false;
        }
        if self.places.len() < task.disks.len() {
            self.places.resize(task.disks.len(), Place::default());
        }
        self.is_used.clear();
        self.is_used.resize(task.request.holders().len(), false);
        for disk in task.request.holders() {
            let place = &mut self.places[*disk as usize];
            if !place.is_touched {
                (place.is_touched, place.finish_ns) = (true, task.disks[*disk as usize].free_ns);
                self.touched.push(*disk);
            }
        }
        let mut order: Vec<u32> = (0..task.request.len() as u32).collect();
        order.sort_by_key(|bucket| core::cmp::Reverse(task.bytes[*bucket as usize]));
        for bucket in order {
            for _ in 0..task.request.rows()[bucket as usize].needed {
                let finish_ns = |edge: &u32| self.finish_ns(task, *edge) + task.cost_ns(*edge);
                let unused = task.edges_of(bucket).filter(|edge| !self.is_used[*edge as usize]);
                let best = unused.min_by_key(finish_ns).expect("a bucket has as many holders as it needs");
                self.add(task, best);
            }
        }
    }

    fn finish_ns(&self, task: Task<'_>, edge: u32) -> u64 {
        self.places[task.disk_of(edge) as usize].finish_ns
    }

    fn add(&mut self, task: Task<'_>, edge: u32) {
        self.is_used[edge as usize] = true;
        let place = &mut self.places[task.disk_of(edge) as usize];
        place.finish_ns += task.cost_ns(edge);
        place.edges.push(edge);
    }

    fn apply(&mut self, task: Task<'_>, Move { from, to }: Move) {
        self.is_used[from as usize] = false;
        let place = &mut self.places[task.disk_of(from) as usize];
        place.finish_ns -= task.cost_ns(from);
        place.edges.retain(|edge| *edge != from);
        self.add(task, to);
    }

    /// The disk that finishes last of those that read something.
    fn latest(&self) -> Option<u32> {
        let used = self.touched.iter().filter(|disk| !self.places[**disk as usize].edges.is_empty());
        used.max_by_key(|disk| self.places[**disk as usize].finish_ns).copied()
    }

    /// Moves buckets away from the disk that finishes last, while all disks that this changes finish before that one did. Each time the
    /// finishes from the latest to the earliest become less in the order of words, so that no choice comes twice.
    fn improve(&mut self, task: Task<'_>) {
        self.looks = LOOKS_PER_EDGE * task.request.holders().len() as u64;
        while let Some(latest) = self.latest() {
            let count = self.places[latest as usize].edges.len() as u64;
            let Some(looks) = self.looks.checked_sub(count) else { return };
            self.looks = looks;
            if let Some(single) = self.single(task, latest) {
                self.apply(task, single);
            } else if let Some([first, second]) = self.pair(task, latest) {
                self.apply(task, second);
                self.apply(task, first);
            } else {
                return;
            }
        }
    }

    /// The move after which the later of the two disks finishes earliest.
    fn single(&mut self, task: Task<'_>, latest: u32) -> Option<Move> {
        let place = &self.places[latest as usize];
        let mut best = None;
        let mut best_ns = place.finish_ns;
        for from in &place.edges {
            let left_ns = place.finish_ns - task.cost_ns(*from);
            for to in task.siblings(*from).filter(|edge| !self.is_used[*edge as usize]) {
                let later_ns = left_ns.max(self.finish_ns(task, to) + task.cost_ns(to));
                if later_ns < best_ns {
                    (best, best_ns) = (Some(Move { from: *from, to }), later_ns);
                }
            }
        }
        best
    }

    /// Two moves: a bucket of the latest disk goes to another disk, and from there another bucket to the latest or a third one. The
    /// first pair that is found.
    fn pair(&mut self, task: Task<'_>, latest: u32) -> Option<[Move; 2]> {
        let place = &self.places[latest as usize];
        let before_ns = place.finish_ns;
        for from in &place.edges {
            let left_ns = before_ns - task.cost_ns(*from);
            for to in task.siblings(*from).filter(|edge| !self.is_used[*edge as usize]) {
                let second = &self.places[task.disk_of(to) as usize];
                let full_ns = second.finish_ns + task.cost_ns(to);
                self.looks = self.looks.checked_sub(second.edges.len() as u64 + 1)?;
                let gives_enough = |edge: &&u32| full_ns - task.cost_ns(**edge) < before_ns;
                for other in second.edges.iter().filter(gives_enough) {
                    let mut places = task.siblings(*other).filter(|edge| !self.is_used[*edge as usize]);
                    let has_room = |edge: &u32| {
                        let is_back = task.disk_of(*edge) == latest;
                        let finish_ns = if is_back { left_ns } else { self.finish_ns(task, *edge) };
                        finish_ns + task.cost_ns(*edge) < before_ns
                    };
                    if let Some(onward) = places.find(has_room) {
                        return Some([Move { from: *from, to }, Move { from: *other, to: onward }]);
                    }
                }
            }
        }
        None
    }

    /// A time before which no choice can have its last arrival, in nanoseconds.
    ///
    /// The latest of several bounds:
    ///
    /// - A bucket takes its time even if there is no other.
    /// - Buckets may be cut into pieces, each of which costs on a disk at most its part of what any bucket costs there. Pieces arrive no
    ///   later than whole buckets. They all cost the same, so that the [`Solver`] finds their earliest last arrival. The number of
    ///   pieces is free for each bucket: it is proportional to the size, then to the cost on each kind of disk.
    /// - The buckets from a size on are left whole, and smaller ones are left out. All count as if they cost what the cheapest of
    ///   them costs.
    ///
    /// The bound by all disks together, as if buckets could be divided at will, is left out: that of pieces is as late, but for what
    /// rounding takes away.
    ///
    /// # Panics
    /// As [`MixedSizes::choose`], and if a time beyond 2^63 ps after the first disk is free comes out, which is 106 days.
    pub fn bound_ns(&mut self, disks: &[SizedDisk], request: &Request, bytes: &[u64]) -> u64 {
        let task = Task { disks, request, bytes };
        task.check();
        let mut bound_ns = (0..request.len() as u32).map(|bucket| alone_ns(task, bucket)).max().unwrap_or(0);
        for weights in weights(task) {
            bound_ns = bound_ns.max(self.pieces_ns(task, &weights));
        }
        bound_ns
    }

    /// The earliest last arrival if each bucket is cut into so many pieces that can be read from different disks; 0 leaves it out.
    fn pieces_ns(&mut self, task: Task<'_>, pieces: &[u64]) -> u64 {
        let free = task.request.holders().iter().map(|disk| task.disks[*disk as usize].free_ns);
        let origin_ns = free.min().unwrap_or(0);
        let after_origin = |disk: &SizedDisk| {
            let free_ns = disk.free_ns.saturating_sub(origin_ns);
            let free_ps = free_ns.saturating_mul(PS_PER_NS).min(FREE_PS_MAX);
            // In picoseconds, so that little is lost when the cost of a piece is rounded down.
            Disk { free_ns: free_ps, access_ns: u64::MAX, queue: 0 }
        };
        let mut disks: Vec<Disk> = task.disks.iter().map(after_origin).collect();
        let mut cut = Request::default();
        for ((bucket, (holders, needed)), count) in (0..).zip(task.request.buckets()).zip(pieces) {
            for edge in task.edges_of(bucket).filter(|_| *count > 0) {
                let cost = &mut disks[task.disk_of(edge) as usize].access_ns;
                *cost = (task.cost_ns(edge) * PS_PER_NS / count).min(*cost);
            }
            (0..*count).for_each(|_| cut.push_coded(holders, needed));
        }
        let last_ps = self.solver.solve(&disks, &cut, &mut Vec::new());
        if last_ps == 0 { 0 } else { origin_ns + last_ps.div_ceil(PS_PER_NS) }
    }
}

/// When a bucket has arrived if there is no other.
fn alone_ns(task: Task<'_>, bucket: u32) -> u64 {
    let mut alone: Vec<u64> = task.edges_of(bucket).map(|edge| task.alone_ns(edge)).collect();
    let needed = task.request.rows()[bucket as usize].needed as usize;
    *alone.select_nth_unstable(needed - 1).1
}

/// The array as requests of buckets of one size see it.
fn of_one_size(disks: &[SizedDisk], bytes: u64) -> Vec<Disk> {
    let disk = |disk: &SizedDisk| Disk { free_ns: disk.free_ns, access_ns: disk.cost_ns(bytes), queue: 0 };
    disks.iter().map(disk).collect()
}

/// Numbers of pieces, one for each bucket, in several ways.
fn weights(task: Task<'_>) -> Vec<Vec<u64>> {
    let mut kinds: Vec<SizedDisk> =
        task.request.holders().iter().map(|disk| task.disks[*disk as usize]).collect();
    kinds.iter_mut().for_each(|disk| disk.free_ns = 0);
    kinds.sort_unstable();
    kinds.dedup();
    let mut sizes = task.bytes.to_vec();
    sizes.sort_unstable();
    sizes.dedup();
    let by_bytes = in_pieces(task.bytes.to_vec());
    let cost = |kind: &SizedDisk| task.bytes.iter().map(|bytes| kind.cost_ns(*bytes)).collect();
    let by_cost = some_of(&kinds).map(|kind| in_pieces(cost(kind)));
    let whole_from = |least: u64| task.bytes.iter().map(|bytes| u64::from(*bytes >= least)).collect();
    let whole = some_of(&sizes).map(|least| whole_from(*least));
    core::iter::once(by_bytes).chain(by_cost).chain(whole).collect()
}

/// At most [`KINDS_MAX`] of them at equal distances, the first among them.
fn some_of<T>(all: &[T]) -> impl Iterator<Item = &T> {
    all.iter().step_by(all.len().div_ceil(KINDS_MAX).max(1))
}

/// Whole pieces of the greatest size that divides all, or of a size that makes few enough; what is left over of a bucket is left out.
fn in_pieces(sizes: Vec<u64>) -> Vec<u64> {
    let common = sizes.iter().fold(0, |common, size| greatest_common_divisor(common, *size));
    let total: u64 = sizes.iter().sum();
    let few_enough = (total / (PIECES_PER_ACCESS * sizes.len().max(1) as u64)).max(1);
    let piece = common.max(few_enough);
    sizes.iter().map(|size| size / piece).collect()
}

fn greatest_common_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    /// Access times of the paper's five kinds of disks, and the transfer times of its table I.
    const KINDS: [(u64, u64); 5] =
        [(13_200_000, 16_730), (8_300_000, 14_025), (6_100_000, 11_089), (500_000, 4_841), (200_000, 3_815)];
    const BLOCK: u64 = 4_096;

    struct Drawn {
        disks: Vec<SizedDisk>,
        request: Request,
        bytes: Vec<u64>,
    }

    /// An array of one kind or of all five, half of whose disks are busy for up to eight accesses, and a request of buckets whose sizes
    /// are powers of two, any, some blocks, or nearly all the least.
    fn drawn(random: &mut Rng, disks: u64, buckets: u64, copies_max: u64) -> Drawn {
        let (is_mixed, way, is_coded) = (random.bool(), random.u64(..4), random.u64(..4) == 0);
        let disk = |random: &mut Rng| {
            let (access_ns, transfer_ps) = KINDS[if is_mixed { random.u64(..5) as usize } else { 0 }];
            let free_ns = if random.bool() { random.u64(..8 * access_ns) } else { 0 };
            SizedDisk { free_ns, access_ns, transfer_ps }
        };
        let size = |random: &mut Rng| match way {
            0 => BLOCK << random.u64(..9),
            1 => random.u64(BLOCK..1 << 22),
            2 => BLOCK * random.u64(1..=16),
            _ if random.u64(..10) == 0 => 1 << 22,
            _ => BLOCK,
        };
        let array = (0..disks).map(|_| disk(random)).collect();
        let mut request = Request::default();
        for _ in 0..buckets {
            let mut holders: Vec<u32> = Vec::new();
            let copies = random.u64(1..=copies_max.min(disks)) as usize;
            while holders.len() < copies {
                let disk = random.u64(..disks) as u32;
                if !holders.contains(&disk) {
                    holders.push(disk);
                }
            }
            let needed = if is_coded { random.u64(1..=holders.len() as u64) } else { 1 };
            request.push_coded(&holders, needed as u32);
        }
        let bytes = (0..buckets).map(|_| size(random)).collect();
        Drawn { disks: array, request, bytes }
    }

    /// When the last bucket arrives by what `chosen` says.
    fn last_ns(Drawn { disks, request, bytes }: &Drawn, chosen: &[u32]) -> u64 {
        let mut finish_ns: Vec<u64> = disks.iter().map(|disk| disk.free_ns).collect();
        let (mut rest, mut last_ns) = (chosen, 0);
        for ((_, needed), bytes) in request.buckets().zip(bytes) {
            let (ours, others) = rest.split_at(needed as usize);
            for disk in ours {
                finish_ns[*disk as usize] += disks[*disk as usize].cost_ns(*bytes);
                last_ns = finish_ns[*disk as usize].max(last_ns);
            }
            rest = others;
        }
        last_ns
    }

    /// The earliest last arrival of all choices there are.
    fn best_ns(drawn: &Drawn) -> u64 {
        fn extend(drawn: &Drawn, bucket: usize, finish_ns: &mut [u64], until_ns: u64, best_ns: &mut u64) {
            let Some((holders, needed)) = drawn.request.buckets().nth(bucket) else {
                *best_ns = until_ns;
                return;
            };
            let subsets = (0..1_u32 << holders.len()).filter(|subset| subset.count_ones() == needed);
            for subset in subsets {
                let taken = holders.iter().zip(0..).filter(|(_, at)| subset >> at & 1 == 1);
                let before_ns = finish_ns.to_vec();
                let mut later_ns = until_ns;
                for (disk, _) in taken {
                    let finish_ns = &mut finish_ns[*disk as usize];
                    *finish_ns += drawn.disks[*disk as usize].cost_ns(drawn.bytes[bucket]);
                    later_ns = later_ns.max(*finish_ns);
                }
                if later_ns < *best_ns {
                    extend(drawn, bucket + 1, finish_ns, later_ns, best_ns);
                }
                finish_ns.copy_from_slice(&before_ns);
            }
        }
        let mut finish_ns: Vec<u64> = drawn.disks.iter().map(|disk| disk.free_ns).collect();
        let mut best_ns = u64::MAX;
        extend(drawn, 0, &mut finish_ns, 0, &mut best_ns);
        best_ns
    }

    /// Ratios of last arrivals, for their mean and the greatest.
    #[derive(Default)]
    struct Ratios {
        sum: f64,
        count: f64,
        worst: f64,
    }

    impl Ratios {
        fn add(&mut self, of_ns: u64, to_ns: u64) {
            let ratio = of_ns as f64 / to_ns as f64;
            self.sum += ratio;
            self.count += 1.0;
            self.worst = self.worst.max(ratio);
        }

        fn mean(&self) -> f64 {
            self.sum / self.count
        }
    }

    #[test]
    fn it_is_near_the_best_of_all_choices_and_the_bound_is_below() {
        let (mut random, mut mixed, mut chosen) = (Rng::with_seed(1), MixedSizes::default(), Vec::new());
        let (mut to_best, mut to_bound) = (Ratios::default(), Ratios::default());
        for case in 0..10_000 {
            let (disks, buckets) = (random.u64(2..=6), random.u64(1..=8));
            let drawn = drawn(&mut random, disks, buckets, 3);
            let Drawn { disks, request, bytes } = &drawn;
            let found_ns = mixed.choose(disks, request, bytes, &mut chosen);
            assert!(request.is_possible(&chosen), "case {case}: {chosen:?} of {request:?}");
            assert_eq!(last_ns(&drawn, &chosen), found_ns, "case {case}");
            let (best_ns, bound_ns) = (best_ns(&drawn), mixed.bound_ns(disks, request, bytes));
            assert!(
                bound_ns <= best_ns && best_ns <= found_ns,
                "case {case}: {bound_ns} {best_ns} {found_ns}"
            );
            to_best.add(found_ns, best_ns);
            to_bound.add(best_ns, bound_ns);
        }
        println!(
            "last arrival to the best: {:.5} in the mean, {:.3} at worst",
            to_best.mean(),
            to_best.worst
        );
        println!("the best to the bound: {:.5} in the mean, {:.3} at worst", to_bound.mean(), to_bound.worst);
        assert!(to_best.mean() < 1.002 && to_best.worst < 1.5);
        assert!(to_bound.mean() < 1.03);
    }

    #[test]
    fn large_requests_are_near_the_bound() {
        let (mut random, mut mixed, mut chosen) = (Rng::with_seed(2), MixedSizes::default(), Vec::new());
        let mut to_bound = Ratios::default();
        for case in 0..60 {
            let drawn = drawn(&mut random, 40, 64 << (case % 4), 5);
            let Drawn { disks, request, bytes } = &drawn;
            let found_ns = mixed.choose(disks, request, bytes, &mut chosen);
            assert!(request.is_possible(&chosen), "case {case}: {chosen:?}");
            assert_eq!(last_ns(&drawn, &chosen), found_ns, "case {case}");
            let bound_ns = mixed.bound_ns(disks, request, bytes);
            assert!(bound_ns <= found_ns, "case {case}: {bound_ns} {found_ns}");
            to_bound.add(found_ns, bound_ns);
        }
        println!(
            "last arrival to the bound: {:.4} in the mean, {:.3} at worst",
            to_bound.mean(),
            to_bound.worst
        );
        assert!(to_bound.mean() < 1.05 && to_bound.worst < 1.4);
    }

    #[test]
    fn equal_sizes_are_answered_with_the_best_choice_and_the_bound_shows_it() {
        let (mut random, mut mixed, mut chosen) = (Rng::with_seed(3), MixedSizes::default(), Vec::new());
        for case in 0..2_000 {
            let mut drawn = drawn(&mut random, 6, 20, 3);
            let size = drawn.bytes[0];
            drawn.bytes.fill(size);
            let Drawn { disks, request, bytes } = &drawn;
            let found_ns = mixed.choose(disks, request, bytes, &mut chosen);
            assert_eq!(last_ns(&drawn, &chosen), found_ns, "case {case}");
            assert_eq!(mixed.bound_ns(disks, request, bytes), found_ns, "case {case}: {disks:?} {request:?}");
        }
    }

    #[test]
    fn a_pair_of_moves_is_found_where_no_single_one_helps() {
        // On two like disks, largest first ends with 7 and 5, and with 8 and 6.
        let disks = [SizedDisk { free_ns: 0, access_ns: 0, transfer_ps: 1_000 }; 2];
        let mut request = Request::default();
        (0..5).for_each(|_| request.push(&[0, 1]));
        let mut chosen = Vec::new();
        assert_eq!(MixedSizes::default().choose(&disks, &request, &[3, 3, 2, 2, 2], &mut chosen), 6);
        assert_eq!(MixedSizes::default().choose(&disks, &request, &[4, 3, 3, 2, 2], &mut chosen), 7);
    }

    #[test]
    fn an_empty_request_ends_at_once() {
        let (mut mixed, mut chosen) = (MixedSizes::default(), vec![1]);
        assert_eq!(mixed.choose(&[], &Request::default(), &[], &mut chosen), 0);
        assert_eq!(mixed.bound_ns(&[], &Request::default(), &[]), 0);
        assert!(chosen.is_empty());
    }
}
