//! What waits at all disks, kept best while buckets come, begin and are withdrawn: what `immediate-adaptive` keeps.
//!
//! A bucket that comes goes to the earliest place that can be reached: the next place of one of its holders, or that of a disk to which
//! a holder can pass on a waiting bucket, and so on. All waiting buckets together then use the places of least total completion
//! time, and of these choices also the one whose last bucket arrives earliest; the decision page on continuous retrieval says why.
//! That holds as far as buckets may be moved ([`Fairness`]), and where no queue is longer than what is looked at of it.
//!
//! To which disks a disk could pass a bucket on is kept as bits, which may say too much: what waited there may have begun, or may not be
//! moved. What they say too much is found, and forgotten, when a path is followed; the next bucket that comes to wait there says it
//! again. So a bucket costs a search over rows of bits, and a look at the
//! buckets of the disks along its path only.

use super::request::{Disk, Request};
use std::collections::VecDeque;

/// A bucket in the plan, as long as it waits anywhere.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Waiting(u32);

impl Waiting {
    /// Its number: small, and used again for another bucket when this one does not wait any more.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A waiting bucket goes from one disk to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Move {
    pub bucket: Waiting,
    pub from: u32,
    pub to: u32,
}

/// Which waiting buckets may be moved, and where they wait then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fairness {
    /// Whatever was asked for first is read first, at each disk, and each bucket is moved so often at most. A bucket that is moved to a
    /// disk delays those that were asked for after it.
    Order { moves_max: u32 },
    /// When a request comes, it is promised to be complete when its last bucket arrives as planned then. No bucket is moved to where it
    /// would arrive later than that, and a bucket that is moved waits behind all others. So no promise is broken.
    Promise,
}

/// A disk, and what waits there in the order in which it is read.
#[derive(Clone, Debug, Default)]
struct Queue {
    /// When all that has begun is done. The first that waits begins then, or when the plan allows it.
    free_ns: u64,
    access_ns: u64,
    waiting: VecDeque<u32>,
}

impl Queue {
    /// When so many buckets would have arrived, none of which begins before `from_ns`.
    fn finish_ns(&self, from_ns: u64, buckets: usize) -> u64 {
        self.free_ns.max(from_ns) + buckets as u64 * self.access_ns
    }
}

#[derive(Clone, Debug, Default)]
struct Bucket {
    /// When it was asked for, as a number.
    order: u64,
    holders: Vec<u32>,
    /// At which of the holders it waits, as bits in their order.
    waits: u64,
    /// At which of them it has begun.
    begun: u64,
    moves: u32,
    /// When its request is promised to be complete.
    promise_ns: u64,
}

impl Bucket {
    /// Whether it could wait at the holder of this place: it does not, and has not begun there.
    fn is_free(&self, at: usize) -> bool {
        (self.waits | self.begun) >> at & 1 == 0
    }

    /// The place of `disk` among its holders.
    fn at(&self, disk: u32) -> Option<usize> {
        self.holders.iter().position(|holder| *holder == disk)
    }

    fn could_wait_at(&self, disk: u32) -> bool {
        self.at(disk).is_some_and(|at| self.is_free(at))
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Plan {
    queues: Vec<Queue>,
    buckets: Vec<Bucket>,
    unused: Vec<u32>,
    asked: u64,
    fairness: Fairness,
    /// Nothing that waits begins before.
    from_ns: u64,
    /// What the fastest disk takes for a bucket.
    fastest_ns: u64,
    /// Words of a row.
    words: usize,
    /// A row for each disk: the disks to which it could pass a waiting bucket on, or more.
    rows: Vec<u64>,
    /// The disks at which something waits.
    has_waiting: Vec<u64>,
    seen: Vec<u64>,
    /// By disk, from which one the search reached it.
    parent: Vec<u32>,
    frontier: Vec<u32>,
    path: Vec<Move>,
    looks: u64,
}

/// How many buckets that wait at a disk are looked at for one that may go elsewhere, the last ones first. Queues are longer than this only
/// where disks do not keep up; looking at all of them then takes longer than it saves.
const LOOKED_AT_MAX: usize = 64;

/// The search began at this disk: it is a holder of the bucket that is placed.
const HOLDER: u32 = u32::MAX;

impl Plan {
    /// Nothing waits.
    pub fn new(disks: &[Disk], fairness: Fairness) -> Plan {
        let words = disks.len().div_ceil(64);
        let queue = |disk: &Disk| Queue {
            free_ns: disk.free_ns,
            access_ns: disk.access_ns,
            waiting: VecDeque::new(),
        };
        Plan {
            queues: disks.iter().map(queue).collect(),
            buckets: Vec::new(),
            unused: Vec::new(),
            asked: 0,
            fairness,
            from_ns: 0,
            fastest_ns: disks.iter().map(|disk| disk.access_ns).min().unwrap_or(0),
            words,
            rows: vec![0; words * disks.len()],
            has_waiting: vec![0; words],
            seen: vec![0; words],
            parent: vec![HOLDER; disks.len()],
            frontier: Vec::new(),
            path: Vec::new(),
            looks: 0,
        }
    }

    /// One more request, none of which begins before `from_ns`. Writes its buckets into `waiting`, and adds to `moves` whoever is moved for
    /// it, its own buckets as well, in an order in which each move can be done. Gives when its last bucket will have arrived. All that
    /// begins before `from_ns` has begun: what waits still does not begin before either.
    ///
    /// # Panics
    /// If a bucket has more than 64 holders.
    pub fn ask(
        &mut self,
        request: &Request,
        from_ns: u64,
        waiting: &mut Vec<Waiting>,
        moves: &mut Vec<Move>,
    ) -> u64 {
        self.from_ns = from_ns;
        waiting.clear();
        for (holders, needed) in request.buckets() {
            let bucket = self.add_bucket(holders);
            waiting.push(Waiting(bucket));
            (0..needed).for_each(|_| self.place(bucket, moves));
        }
        self.promise(waiting)
    }

    /// Planning for the last request, whose buckets are `waiting`, was done at this time, and not at that which [`Plan::ask`] was given: what
    /// waits begins from then on. Gives what the request is promised now. Where the time is later, promises to others are late by as
    /// much at most.
    pub fn begin_from(&mut self, done_ns: u64, waiting: &[Waiting]) -> u64 {
        self.from_ns = done_ns;
        self.promise(waiting)
    }

    /// Promises a request that it is complete when its last bucket arrives as planned.
    fn promise(&mut self, waiting: &[Waiting]) -> u64 {
        let arrivals = waiting.iter().map(|Waiting(bucket)| self.arrives_ns(*bucket));
        let promise_ns = arrivals.max().unwrap_or(self.from_ns);
        waiting.iter().for_each(|Waiting(bucket)| self.buckets[*bucket as usize].promise_ns = promise_ns);
        promise_ns
    }

    /// A bucket that waits nowhere yet.
    fn add_bucket(&mut self, holders: &[u32]) -> u32 {
        assert!(holders.len() <= 64, "{} holders of a bucket", holders.len());
        let bucket = self.unused.pop().unwrap_or_else(|| {
            self.buckets.push(Bucket::default());
            self.buckets.len() as u32 - 1
        });
        self.asked += 1;
        let fresh = &mut self.buckets[bucket as usize];
        fresh.holders.clear();
        fresh.holders.extend_from_slice(holders);
        (fresh.order, fresh.waits, fresh.begun) = (self.asked, 0, 0);
        (fresh.moves, fresh.promise_ns) = (0, u64::MAX);
        bucket
    }

    /// When all of a bucket that waits will have arrived. What came last is found soonest.
    fn arrives_ns(&self, bucket: u32) -> u64 {
        let Bucket { holders, waits, .. } = &self.buckets[bucket as usize];
        let arrives_ns = |at: u32| {
            let disk = holders[at as usize];
            let later = self.queues[disk as usize].waiting.iter().rev().take_while(|other| **other != bucket);
            self.finish_ns(disk) - later.count() as u64 * self.queues[disk as usize].access_ns
        };
        bits(&[*waits]).map(arrives_ns).max().unwrap_or(0)
    }

    /// There are so many disks at least; those that are new are idle.
    pub fn grow(&mut self, disks: u32) {
        let (count, words) =
            (self.queues.len().max(disks as usize), self.queues.len().max(disks as usize).div_ceil(64));
        if words > self.words {
            let mut rows = vec![0; words * count];
            for (from, to) in self.rows.chunks(self.words.max(1)).zip(rows.chunks_mut(words)) {
                to[..from.len()].copy_from_slice(from);
            }
            self.rows = rows;
            self.words = words;
            self.has_waiting.resize(words, 0);
            self.seen.resize(words, 0);
        }
        self.rows.resize(words * count, 0);
        self.parent.resize(count, HOLDER);
        self.queues.resize_with(count, Queue::default);
    }

    /// How busy a disk is apart from what waits there, and what an access takes: it was measured anew. What waits stays where it is; the
    /// next request is planned by the new values.
    pub fn set_disk(&mut self, disk: u32, free_ns: u64, access_ns: u64) {
        let queue = &mut self.queues[disk as usize];
        (queue.free_ns, queue.access_ns) = (free_ns, access_ns);
    }

    /// How many wait at a disk.
    pub fn waiting(&self, disk: u32) -> u32 {
        self.queues[disk as usize].waiting.len() as u32
    }

    /// Where a bucket waits; one of the disks where several are to read it.
    pub fn waits_at(&self, Waiting(bucket): Waiting) -> Option<u32> {
        let Bucket { holders, waits, .. } = &self.buckets[bucket as usize];
        bits(&[*waits]).next().map(|at| holders[at as usize])
    }

    /// A bucket does not wait any more, wherever it did. Its name may mean another one from the next [`Plan::ask`] on.
    pub fn withdraw(&mut self, bucket: Waiting) {
        while let Some(disk) = self.waits_at(bucket) {
            self.remove(bucket.0, disk);
        }
        self.unused.push(bucket.0);
    }

    /// How many copies and disks were looked at, over all buckets.
    pub fn looks(&self) -> u64 {
        self.looks
    }

    /// The disks at which something waits.
    pub fn disks_with_waiting(&self) -> impl Iterator<Item = u32> {
        bits(&self.has_waiting)
    }

    /// When the first bucket that waits at a disk begins; `None` where none does.
    pub fn begins_ns(&self, disk: u32) -> Option<u64> {
        let queue = &self.queues[disk as usize];
        queue.waiting.front().map(|_| queue.finish_ns(self.from_ns, 0))
    }

    /// The first bucket that waits at a disk begins, and is not moved any more: the bucket, when it arrives, and whether it
    /// waits nowhere else. In that case its name may mean another bucket from the next [`Plan::ask`] on.
    pub fn begin(&mut self, disk: u32) -> Option<(Waiting, u64, bool)> {
        let bucket = *self.queues[disk as usize].waiting.front()?;
        self.remove(bucket, disk);
        let queue = &mut self.queues[disk as usize];
        let arrives_ns = queue.finish_ns(self.from_ns, 1);
        queue.free_ns = arrives_ns;
        let begun = &mut self.buckets[bucket as usize];
        begun.begun |= begun.at(disk).map_or(0, |at| 1 << at);
        let is_last = begun.waits == 0;
        if is_last {
            self.unused.push(bucket);
        }
        Some((Waiting(bucket), arrives_ns, is_last))
    }

    /// When what waits at a disk, and what has begun there, will have arrived.
    pub fn finish_ns(&self, disk: u32) -> u64 {
        let queue = &self.queues[disk as usize];
        match queue.waiting.len() {
            0 => queue.free_ns,
            waiting => queue.finish_ns(self.from_ns, waiting),
        }
    }

    /// Lets a bucket wait at one more disk.
    fn place(&mut self, bucket: u32, moves: &mut Vec<Move>) {
        let holder = loop {
            let best = self.reach(bucket);
            if let Some(holder) = self.follow(best) {
                break holder;
            }
        };
        let mut path = core::mem::take(&mut self.path);
        for step in &path {
            self.remove(step.bucket.0, step.from);
            self.add(step.bucket.0, step.to);
            self.buckets[step.bucket.0 as usize].moves += 1;
        }
        moves.append(&mut path);
        self.path = path;
        self.add(bucket, holder);
    }

    /// Finds all disks that can be reached from a bucket's holders, and of these the one with the earliest next place. It does not search on
    /// where no place can be earlier.
    fn reach(&mut self, bucket: u32) -> (u32, u64) {
        self.seen.fill(0);
        self.frontier.clear();
        let (mut best, mut best_ns) = (HOLDER, u64::MAX);
        let placed = &self.buckets[bucket as usize];
        for (at, disk) in placed.holders.iter().enumerate() {
            if placed.is_free(at) {
                self.seen[*disk as usize / 64] |= 1 << (disk % 64);
                self.parent[*disk as usize] = HOLDER;
                self.frontier.push(*disk);
            }
        }
        let earliest_ns = self.from_ns + self.fastest_ns;
        let mut at = 0;
        while let Some(disk) = self.frontier.get(at).copied() {
            at += 1;
            let queue = &self.queues[disk as usize];
            let next_ns = queue.finish_ns(self.from_ns, queue.waiting.len() + 1);
            if next_ns < best_ns {
                (best, best_ns) = (disk, next_ns);
                if best_ns <= earliest_ns {
                    break;
                }
            }
            let row = &self.rows[disk as usize * self.words..][..self.words];
            for (word, (row, seen)) in row.iter().zip(&mut self.seen).enumerate() {
                let mut fresh = row & !*seen;
                *seen |= fresh;
                while fresh != 0 {
                    let reached = word as u32 * 64 + fresh.trailing_zeros();
                    self.parent[reached as usize] = disk;
                    self.frontier.push(reached);
                    fresh &= fresh - 1;
                }
            }
        }
        self.looks += at as u64;
        (best, best_ns)
    }

    /// Finds the buckets that move along the path to `best`, the last of the path first: so each disk gives before it takes. Gives the
    /// holder where the path begins; `None` if a bit said too much, which it does not any more.
    fn follow(&mut self, (best, best_ns): (u32, u64)) -> Option<u32> {
        self.path.clear();
        let mut to = best;
        loop {
            let from = self.parent[to as usize];
            if from == HOLDER {
                return Some(to);
            }
            match self.movable(from, to, (best, best_ns)) {
                Some(bucket) => self.path.push(Move { bucket: Waiting(bucket), from, to }),
                None => {
                    self.rows[from as usize * self.words + to as usize / 64] &= !(1 << (to % 64));
                    return None;
                }
            }
            to = from;
        }
    }

    /// Of the buckets that wait at `from` and may wait at `to` instead the one that is read last.
    fn movable(&mut self, from: u32, to: u32, (best, best_ns): (u32, u64)) -> Option<u32> {
        // Behind all others at `to`, which gives one away as well unless the path ends there.
        let arrives_ns = if to == best { best_ns } else { self.finish_ns(to) };
        let is_allowed = |bucket: &Bucket| match self.fairness {
            Fairness::Order { moves_max } => bucket.moves < moves_max,
            Fairness::Promise => arrives_ns <= bucket.promise_ns,
        };
        let mut looks = 0;
        let last = self.queues[from as usize].waiting.iter().rev().take(LOOKED_AT_MAX);
        let found = last.copied().find(|bucket| {
            looks += 1;
            let bucket = &self.buckets[*bucket as usize];
            is_allowed(bucket) && bucket.could_wait_at(to)
        });
        self.looks += looks;
        found
    }

    fn add(&mut self, bucket: u32, disk: u32) {
        let added = &mut self.buckets[bucket as usize];
        let at = added.at(disk).filter(|at| added.is_free(*at)).expect("a holder at which it does not wait");
        added.waits |= 1 << at;
        let queue = &mut self.queues[disk as usize];
        if queue.waiting.is_empty() {
            self.has_waiting[disk as usize / 64] |= 1 << (disk % 64);
        }
        let order = added.order;
        match self.fairness {
            Fairness::Promise => queue.waiting.push_back(bucket),
            Fairness::Order { .. } => {
                let at = queue.waiting.partition_point(|other| self.buckets[*other as usize].order < order);
                queue.waiting.insert(at, bucket);
            }
        }
        // From wherever it waits it can go to wherever it does not.
        let Plan { rows, words, buckets, .. } = self;
        let Bucket { holders, waits, .. } = &buckets[bucket as usize];
        for from in bits(&[*waits]) {
            let row = &mut rows[holders[from as usize] as usize * *words..][..*words];
            holders.iter().for_each(|to| row[*to as usize / 64] |= 1 << (to % 64));
        }
    }

    fn remove(&mut self, bucket: u32, disk: u32) {
        let removed = &mut self.buckets[bucket as usize];
        let at = removed.at(disk).expect("it waits at a holder");
        removed.waits &= !(1 << at);
        let queue = &mut self.queues[disk as usize];
        let is_first = queue.waiting.front() == Some(&bucket);
        let at = if is_first { Some(0) } else { queue.waiting.iter().rposition(|other| *other == bucket) };
        queue.waiting.remove(at.expect("it waits there"));
        if queue.waiting.is_empty() {
            self.has_waiting[disk as usize / 64] &= !(1 << (disk % 64));
            self.rows[disk as usize * self.words..][..self.words].fill(0);
        }
    }
}

/// The set bits' numbers.
fn bits(words: &[u64]) -> impl Iterator<Item = u32> {
    words.iter().enumerate().flat_map(|(at, word)| {
        let mut left = *word;
        core::iter::from_fn(move || {
            (left != 0).then(|| {
                let bit = left.trailing_zeros();
                left &= left - 1;
                at as u32 * 64 + bit
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::Solver;
    use super::*;
    use base::Rng;
    use std::collections::BTreeMap;

    const ANY: Fairness = Fairness::Order { moves_max: u32::MAX };

    fn ask(
        plan: &mut Plan,
        buckets: &[(Vec<u32>, u32)],
        from_ns: u64,
        moves: &mut Vec<Move>,
    ) -> Vec<Waiting> {
        let (mut request, mut waiting) = (Request::default(), Vec::new());
        buckets.iter().for_each(|(holders, needed)| request.push_coded(holders, *needed));
        plan.ask(&request, from_ns, &mut waiting, moves);
        waiting
    }

    /// A drawn array with few distinct times.
    fn drawn_disks(random: &mut Rng) -> Vec<Disk> {
        let is_mixed = random.bool();
        let disk = |random: &mut Rng| {
            let access_ns = if is_mixed { [1, 2, 7, 30][random.u64(..4) as usize] } else { 5 };
            Disk { free_ns: random.u64(..3) * random.u64(..40), access_ns, queue: 0 }
        };
        (0..random.u64(2..=7)).map(|_| disk(random)).collect()
    }

    fn drawn_bucket(random: &mut Rng, disks: u32) -> (Vec<u32>, u32) {
        let mut holders: Vec<u32> = (0..disks).collect();
        random.shuffle(&mut holders);
        holders.truncate(random.u64(1..=4).min(u64::from(disks)) as usize);
        let needed = if random.bool() { 1 } else { random.u64(1..=holders.len() as u64) as u32 };
        (holders, needed)
    }

    /// What waits, as a request of its own: what has begun is no choice any more.
    fn waiting(plan: &Plan) -> Request {
        let mut request = Request::default();
        for bucket in plan.buckets.iter().filter(|bucket| bucket.waits != 0) {
            let left = (0..bucket.holders.len()).filter(|at| bucket.begun >> at & 1 == 0);
            let left: Vec<u32> = left.map(|at| bucket.holders[at]).collect();
            request.push_coded(&left, bucket.waits.count_ones());
        }
        request
    }

    #[test]
    fn the_last_of_what_waits_arrives_as_early_as_can_be() {
        let (mut random, mut solver, mut chosen) = (Rng::with_seed(1), Solver::default(), Vec::new());
        let (mut moves, mut moved) = (Vec::new(), 0);
        for case in 0..3_000 {
            let disks = drawn_disks(&mut random);
            let mut plan = Plan::new(&disks, ANY);
            let mut from_ns = 0;
            for _ in 0..random.u64(1..25) {
                if random.u64(..3) == 0 {
                    let disk = random.u64(..disks.len() as u64) as u32;
                    plan.begin(disk);
                }
                // A plan knows nothing of the time: all that begins before this time has begun.
                from_ns += random.u64(..2);
                let early = |plan: &Plan| {
                    plan.disks_with_waiting()
                        .find(|disk| plan.begins_ns(*disk).is_some_and(|ns| ns < from_ns))
                };
                while let Some(disk) = early(&plan) {
                    plan.begin(disk);
                }
                ask(&mut plan, &[drawn_bucket(&mut random, disks.len() as u32)], from_ns, &mut moves);
                moved += moves.len();
                moves.clear();
                let queues = plan.queues.iter();
                let loads: Vec<Disk> = queues
                    .map(|queue| Disk {
                        free_ns: queue.free_ns.max(from_ns),
                        access_ns: queue.access_ns,
                        queue: 0,
                    })
                    .collect();
                let best_ns = solver.solve(&loads, &waiting(&plan), &mut chosen);
                let last_ns = plan.disks_with_waiting().map(|disk| plan.finish_ns(disk)).max();
                assert_eq!(last_ns, Some(best_ns), "case {case}: {plan:?}");
            }
        }
        assert!(moved > 2_000, "{moved} moves put the plan to the test");
    }

    /// The least total completion time of all choices there are, with the disks' numbers of buckets.
    fn least_total_ns(disks: &[Disk], buckets: &[(Vec<u32>, u32)], counts: &mut [u32]) -> u64 {
        let Some(((holders, needed), others)) = buckets.split_first() else { return 0 };
        let subsets = (0..1_u32 << holders.len()).filter(|subset| subset.count_ones() == *needed);
        let total = |subset: u32| {
            let taken = (0..holders.len()).filter(|at| subset >> at & 1 == 1).map(|at| holders[at] as usize);
            let taken: Vec<usize> = taken.collect();
            taken.iter().for_each(|disk| counts[*disk] += 1);
            let own_ns: u64 = taken.iter().map(|disk| disks[*disk].finish_ns(counts[*disk])).sum();
            let total_ns = own_ns + least_total_ns(disks, others, counts);
            taken.iter().for_each(|disk| counts[*disk] -= 1);
            total_ns
        };
        subsets.map(total).min().expect("a bucket needs no more than it has")
    }

    #[test]
    fn all_that_waits_arrives_as_early_as_can_be_in_total() {
        let (mut random, mut moves) = (Rng::with_seed(2), Vec::new());
        for case in 0..2_000 {
            let disks = drawn_disks(&mut random);
            let mut plan = Plan::new(&disks, ANY);
            let buckets: Vec<(Vec<u32>, u32)> =
                (0..random.u64(1..6)).map(|_| drawn_bucket(&mut random, disks.len() as u32)).collect();
            ask(&mut plan, &buckets, 0, &mut moves);
            let places = |(disk, queue): (&Disk, &Queue)| {
                (1..=queue.waiting.len() as u32).map(|count| disk.finish_ns(count)).sum::<u64>()
            };
            let total_ns: u64 = disks.iter().zip(&plan.queues).map(places).sum();
            let least_ns = least_total_ns(&disks, &buckets, &mut vec![0; disks.len()]);
            assert_eq!(total_ns, least_ns, "case {case}: {plan:?}");
        }
    }

    #[test]
    fn a_bucket_is_moved_so_often_and_no_more() {
        let mut random = Rng::with_seed(3);
        let disks: Vec<Disk> =
            (0..6).map(|_| Disk { free_ns: random.u64(..9), access_ns: 5, queue: 0 }).collect();
        let (mut plan, mut moves) = (Plan::new(&disks, Fairness::Order { moves_max: 2 }), Vec::new());
        let mut counts = BTreeMap::new();
        for _ in 0..200 {
            ask(&mut plan, &[drawn_bucket(&mut random, 6)], 0, &mut moves);
        }
        moves.iter().for_each(|step| *counts.entry(step.bucket).or_insert(0) += 1);
        assert_eq!(counts.values().max(), Some(&2), "{counts:?}");
    }

    /// Disks that do not keep up: a bucket must not cost more, the longer queues are.
    #[test]
    fn a_bucket_costs_no_more_where_queues_are_long() {
        for fairness in [ANY, Fairness::Promise] {
            let (mut random, mut moves) = (Rng::with_seed(5), Vec::new());
            let disk = |at: u64| Disk { free_ns: at, access_ns: 5 + at, queue: 0 };
            let disks: Vec<Disk> = (0..6).map(disk).collect();
            let mut plan = Plan::new(&disks, fairness);
            let mut cost = |plan: &mut Plan| {
                let before = plan.looks();
                (0..2_000).for_each(|_| drop(ask(plan, &[drawn_bucket(&mut random, 6)], 0, &mut moves)));
                (plan.looks() - before) as f64
            };
            let (first, _, third) = (cost(&mut plan), cost(&mut plan), cost(&mut plan));
            assert!(third < 1.5 * first, "{fairness:?}: {first} looks, then {third}");
        }
    }

    #[test]
    fn what_was_asked_for_first_begins_first() {
        let disks =
            [Disk { free_ns: 0, access_ns: 5, queue: 0 }, Disk { free_ns: 100, access_ns: 5, queue: 0 }];
        let (mut plan, mut moves) = (Plan::new(&disks, ANY), Vec::new());
        let first = ask(&mut plan, &[(vec![0, 1], 1)], 0, &mut moves)[0];
        let second = ask(&mut plan, &[(vec![0], 1)], 0, &mut moves)[0];
        assert_eq!(plan.begin(0), Some((first, 5, true)));
        assert_eq!(plan.begin(0), Some((second, 10, true)));
        assert_eq!((plan.begin(0), moves.len()), (None, 0));
    }

    #[test]
    fn what_waits_begins_when_planning_is_done_and_is_promised_then() {
        let idle = Disk { free_ns: 0, access_ns: 5, queue: 0 };
        for (done_ns, busy_ns) in [(20, 35), (150, 150)] {
            // Planning was expected to be done at 100.
            let disks = [idle, Disk { free_ns: busy_ns, ..idle }];
            let (mut plan, mut moves) = (Plan::new(&disks, Fairness::Promise), Vec::new());
            let asked = ask(&mut plan, &[(vec![0], 1), (vec![1], 1)], 100, &mut moves);
            let last_ns = busy_ns.max(done_ns) + 5;
            assert_eq!(plan.begin_from(done_ns, &asked), last_ns);
            assert_eq!(plan.begins_ns(0), Some(done_ns));
            assert_eq!(plan.begin(1).map(|(_, arrives_ns, _)| arrives_ns), Some(last_ns));
        }
    }

    #[test]
    fn no_promise_is_broken() {
        let (mut random, mut moves, mut moved) = (Rng::with_seed(4), Vec::new(), 0);
        for case in 0..1_000 {
            let disks = drawn_disks(&mut random);
            let mut plan = Plan::new(&disks, Fairness::Promise);
            let mut promises = BTreeMap::new();
            let read = |plan: &mut Plan, promises: &BTreeMap<Waiting, u64>, until_ns: u64| {
                let due = |plan: &Plan| {
                    let mut waiting = plan.disks_with_waiting();
                    waiting.find(|disk| plan.begins_ns(*disk).is_some_and(|ns| ns < until_ns))
                };
                while let Some(disk) = due(plan) {
                    let (bucket, arrives_ns, _) = plan.begin(disk).expect("one begins");
                    assert!(arrives_ns <= promises[&bucket], "case {case}: {bucket:?} at {arrives_ns}");
                }
            };
            let mut from_ns = 0;
            for _ in 0..30 {
                from_ns += random.u64(..6);
                read(&mut plan, &promises, from_ns);
                let buckets: Vec<(Vec<u32>, u32)> =
                    (0..random.u64(1..5)).map(|_| drawn_bucket(&mut random, disks.len() as u32)).collect();
                let mut request = Request::default();
                buckets.iter().for_each(|(holders, needed)| request.push_coded(holders, *needed));
                let mut waiting = Vec::new();
                let promise_ns = plan.ask(&request, from_ns, &mut waiting, &mut moves);
                promises.extend(waiting.into_iter().map(|bucket| (bucket, promise_ns)));
                moved += moves.len();
                moves.clear();
            }
            read(&mut plan, &promises, u64::MAX);
        }
        assert!(moved > 1_000, "{moved} moves put promises to the test");
    }
}
