//! What is asked for, and what is known of the disks that hold it.

/// A disk as whoever chooses sees it. Times are in nanoseconds from any one origin.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Disk {
    /// When it will have done all that it has to do already. The paper's X and D together.
    pub free_ns: u64,
    /// How long it takes for one bucket of this request. The paper's C. At least 1.
    pub access_ns: u64,
    /// How many buckets wait there already.
    pub queue: u32,
}

impl Disk {
    /// When it would have read so many buckets more.
    pub fn finish_ns(&self, buckets: u32) -> u64 {
        self.free_ns + u64::from(buckets) * self.access_ns
    }

    /// Gives it one bucket more.
    pub fn add(&mut self) {
        self.free_ns += self.access_ns;
        self.queue += 1;
    }
}

/// The buckets of a request: which disks hold each, and from how many of those it must be read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Request {
    /// The holders of all buckets, one bucket's after the other's.
    holders: Vec<u32>,
    /// For each of these, its bucket.
    bucket_of: Vec<u32>,
    rows: Vec<Row>,
    needed: usize,
}

/// Where a bucket's holders stand, and how many of them are needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Row {
    pub(super) begin: u32,
    pub(super) end: u32,
    pub(super) needed: u32,
}

impl Row {
    pub(super) fn edges(self) -> core::ops::Range<usize> {
        self.begin as usize..self.end as usize
    }
}

impl Request {
    /// One more bucket, with copies on these disks, of which one is read.
    ///
    /// # Panics
    /// If there is no holder, or a disk holds it twice.
    pub fn push(&mut self, holders: &[u32]) {
        self.push_coded(holders, 1);
    }

    /// One more bucket, in coded fragments on these disks, of which any `needed` give the bucket.
    ///
    /// # Panics
    /// If more are needed than there are, none is needed, or a disk holds two.
    pub fn push_coded(&mut self, holders: &[u32], needed: u32) {
        assert!((1..=holders.len()).contains(&(needed as usize)), "{needed} of {} holders", holders.len());
        let is_repeated = |at: usize| holders[..at].contains(&holders[at]);
        assert!(!(1..holders.len()).any(is_repeated), "a disk holds a bucket twice: {holders:?}");
        let (begin, bucket) = (self.holders.len() as u32, self.rows.len() as u32);
        self.holders.extend_from_slice(holders);
        self.bucket_of.resize(self.holders.len(), bucket);
        self.rows.push(Row { begin, end: self.holders.len() as u32, needed });
        self.needed += needed as usize;
    }

    /// No bucket any more; what was allocated is kept.
    pub fn clear(&mut self) {
        self.holders.clear();
        self.bucket_of.clear();
        self.rows.clear();
        self.needed = 0;
    }

    /// How many buckets there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// How many accesses all buckets together need.
    pub fn accesses(&self) -> usize {
        self.needed
    }

    /// How many copies or fragments all buckets together have.
    pub fn copies(&self) -> usize {
        self.holders.len()
    }

    /// Each bucket's holders, and how many of them are needed.
    pub fn buckets(&self) -> impl Iterator<Item = (&[u32], u32)> {
        self.rows.iter().map(|row| (&self.holders[row.edges()], row.needed))
    }

    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The disk of each edge, where an edge is a bucket and one of its holders.
    pub(super) fn holders(&self) -> &[u32] {
        &self.holders
    }

    /// The bucket of each edge.
    pub(super) fn bucket_of(&self) -> &[u32] {
        &self.bucket_of
    }

    /// When the last bucket arrives if all are read from where `chosen` says, in the order of the buckets.
    pub fn finish_ns(&self, disks: &[Disk], chosen: &[u32]) -> u64 {
        let mut counts = vec![0; disks.len()];
        chosen.iter().for_each(|disk| counts[*disk as usize] += 1);
        let used = disks.iter().zip(&counts).filter(|(_, count)| **count > 0);
        used.map(|(disk, count)| disk.finish_ns(*count)).max().unwrap_or(0)
    }

    /// Whether `chosen` reads each bucket from as many different holders as it needs.
    pub fn is_possible(&self, chosen: &[u32]) -> bool {
        let mut rest = chosen;
        let is_served = self.buckets().all(|(holders, needed)| {
            let Some((ours, others)) = rest.split_at_checked(needed as usize) else { return false };
            rest = others;
            let is_new = |at: usize| !ours[..at].contains(&ours[at]);
            ours.iter().all(|disk| holders.contains(disk)) && (1..ours.len()).all(is_new)
        });
        is_served && rest.is_empty()
    }
}
