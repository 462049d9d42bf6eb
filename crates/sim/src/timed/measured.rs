//! What a run measured. Throughput, service time and idle share are three sides of one account: a disk is busy from the
//! moment it is given an access until that is done, an access counts when it is done (of whole machines: when it begins), and the mean service time is
//! the time busy by the accesses counted. So throughput x service time = 1 - idle, exactly, for each brick and for all (for
//! disks that take one access at a time).

use super::record::{RequestRecord, ServedBy};
use base::{Time, octaves};

/// The kinds of messages between gateways and bricks, and among bricks. The ideal of one queue sends none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Message {
    /// A gateway asks a brick to read.
    Read,
    /// A brick claims a read.
    Claim,
    /// Data that were read, to the gateway.
    Data,
    /// A read is answered without data.
    Refused,
    /// A read is no longer wanted.
    Cancel,
    /// What became of a read that is no longer wanted.
    Cancelled,
    /// A gateway gives a brick data to write.
    Write,
    /// A write is in a brick's journal, or is not.
    Prepared,
    /// Whether writes take effect.
    Decide,
    /// Questions wait for their turn.
    Waiting,
}

/// How many kinds there are.
const MESSAGES: usize = Message::Waiting as usize + 1;

impl Message {
    pub const ALL: [Message; MESSAGES] = [
        Message::Read,
        Message::Claim,
        Message::Data,
        Message::Refused,
        Message::Cancel,
        Message::Cancelled,
        Message::Write,
        Message::Prepared,
        Message::Decide,
        Message::Waiting,
    ];

    pub(crate) fn carries_data(self) -> bool {
        matches!(self, Message::Data | Message::Write)
    }
}

/// What a run measured, after its warm-up.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    pub scheme: &'static str,
    /// Seconds measured.
    pub seconds: f64,
    /// Seconds in all, with the warm-up and without the cluster's set-up.
    pub simulated_s: f64,
    pub events: u64,
    pub answered: Answered,
    pub bricks: Vec<BrickMeasured>,
    pub traffic: Traffic,
    pub contention: Contention,
    /// The moves of addresses that LARD made.
    pub moves: u64,
    /// The share of a stream's requests, in all, that lay beyond the cluster's end, where addresses begin anew.
    pub wrapped: f64,
    /// Each request in the order of the answers, where that was asked for.
    pub requests: Vec<RequestRecord>,
}

/// What clients were answered, and when.
#[derive(Clone, PartialEq, Debug)]
pub struct Answered {
    pub requests: u64,
    pub reads: u64,
    /// Response times of all requests.
    pub response: Response,
    pub read_response: Response,
    /// Of writes, until they are acknowledged.
    pub write_response: Response,
    /// Of reads that needed a disk.
    pub disk_read_response: Response,
    /// Reads that a cache answered; not known where requests are several accesses.
    pub memory_reads: Option<u64>,
    /// How response times of all requests are distributed: milliseconds (at most 1.6% too high), and the share that did not take longer.
    pub distribution: Vec<[f64; 2]>,
    /// Mean response times over the time measured: at most 512 intervals of equal length.
    pub series: Vec<Interval>,
    /// The same of reads that needed a disk.
    pub disk_read_series: Vec<Interval>,
}

/// What was sent.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Traffic {
    /// Messages, by kind; see [`Measured::messages`].
    pub by_kind: [u64; MESSAGES],
    /// Bytes of messages, with data and without.
    pub bytes: [u64; 2],
}

/// What several bricks did for the same read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Contention {
    /// Claims beyond the first of a read.
    pub conflicts: u64,
    /// Reads that more than one brick claimed.
    pub contested: u64,
    /// Claims sent, each to all other holders.
    pub claims: u64,
    /// Answers that came after the first.
    pub duplicates: u64,
}

/// What one brick did.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct BrickMeasured {
    /// Accesses of its disk a second.
    pub throughput_iops: f64,
    /// The share of time in which its disk did nothing.
    pub idle: f64,
    /// The mean time of an access, in milliseconds.
    pub service_ms: f64,
    /// Reads of its disk.
    pub reads: u64,
    /// Writes of its disk.
    pub writes: u64,
    /// Reads that it answered from memory.
    pub hits: u64,
    /// The mean number of accesses that it chose from.
    pub queue_seen: f64,
}

/// What was answered in an interval of time.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Interval {
    /// When it begins, in seconds from the beginning of the run.
    pub from_s: f64,
    /// How long it is, in seconds.
    pub seconds: f64,
    /// Requests answered in it.
    pub requests: u64,
    /// The mean of their response times, in milliseconds; 0 when there are none.
    pub response_ms: f64,
}

/// Response times as clients see them, in milliseconds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Response {
    pub count: u64,
    pub mean_ms: f64,
    /// Half of them were not longer. Percentiles are at most 1.6% too high.
    pub p50_ms: f64,
    /// 95% were not longer.
    pub p95_ms: f64,
    /// 99% were not longer.
    pub p99_ms: f64,
    /// 99.9% were not longer.
    pub p999_ms: f64,
    pub max_ms: f64,
}

impl Measured {
    /// Disk accesses a second of a brick, in the mean over bricks.
    pub fn throughput_iops(&self) -> f64 {
        self.mean(|brick| brick.throughput_iops)
    }

    /// The share of time in which a disk did nothing, in the mean over bricks.
    pub fn idle(&self) -> f64 {
        self.mean(|brick| brick.idle)
    }

    /// The mean time of a disk access, in milliseconds.
    pub fn service_ms(&self) -> f64 {
        let accesses = |brick: &BrickMeasured| (brick.reads + brick.writes) as f64;
        let all: f64 = self.bricks.iter().map(accesses).sum();
        self.bricks.iter().map(|brick| brick.service_ms * accesses(brick)).sum::<f64>() / all.max(1.0)
    }

    /// The mean number of accesses that a disk's next one was chosen from.
    pub fn queue_seen(&self) -> f64 {
        self.mean(|brick| brick.queue_seen)
    }

    /// Requests answered a second, by all bricks.
    pub fn requests_per_second(&self) -> f64 {
        self.answered.requests as f64 / self.seconds.max(1e-9)
    }

    /// The share of reads answered from memory.
    pub fn hit_rate(&self) -> f64 {
        // Several bricks may have the same read in memory, and each counts it.
        let of_bricks = || self.bricks.iter().map(|brick| brick.hits).sum();
        let hits: u64 = self.answered.memory_reads.unwrap_or_else(of_bricks);
        hits as f64 / (self.answered.reads.max(1)) as f64
    }

    /// Disk reads for each read that no memory answered: 1 when nothing is read twice.
    pub fn device_reads_per_read(&self) -> f64 {
        let (mut disk, mut hits) = (0, 0);
        self.bricks.iter().for_each(|brick| (disk, hits) = (disk + brick.reads, hits + brick.hits));
        let hits = self.answered.memory_reads.unwrap_or(hits);
        disk as f64 / (self.answered.reads.saturating_sub(hits).max(1)) as f64
    }

    /// Messages of a kind for each request.
    pub fn messages(&self, kind: Message) -> f64 {
        self.traffic.by_kind[kind as usize] as f64 / self.answered.requests.max(1) as f64
    }

    /// Messages of all kinds for each request, as D-SPTF counts them (table 5): with those to and from gateways, and a
    /// claim beyond the first as one to each holder, the claimer among them.
    pub fn messages_per_request(&self) -> f64 {
        let sent: u64 = self.traffic.by_kind.iter().sum();
        (sent + self.contention.conflicts) as f64 / self.answered.requests.max(1) as f64
    }

    /// The share of requests that more than one brick claimed (table 6).
    pub fn conflicts_per_request(&self) -> f64 {
        self.contention.contested as f64 / self.answered.requests.max(1) as f64
    }

    fn mean(&self, of: impl Fn(&BrickMeasured) -> f64) -> f64 {
        self.bricks.iter().map(of).sum::<f64>() / self.bricks.len().max(1) as f64
    }
}

/// Times are known to one part in so many.
const PARTS: usize = 64;

#[derive(Clone, Debug)]
pub(crate) struct Times {
    buckets: Vec<u32>,
    count: u64,
    sum_ns: u128,
    max_ns: u64,
}

impl Times {
    pub(crate) fn new() -> Times {
        Times { buckets: vec![0; octaves::boxes::<PARTS>()], count: 0, sum_ns: 0, max_ns: 0 }
    }

    pub(crate) fn add(&mut self, ns: u64) {
        self.buckets[octaves::index::<PARTS>(ns)] += 1;
        self.count += 1;
        self.sum_ns += u128::from(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    pub(crate) fn response(&self) -> Response {
        Response {
            count: self.count,
            mean_ms: self.sum_ns as f64 / self.count.max(1) as f64 / 1e6,
            p50_ms: self.percentile_ms(0.5),
            p95_ms: self.percentile_ms(0.95),
            p99_ms: self.percentile_ms(0.99),
            p999_ms: self.percentile_ms(0.999),
            max_ms: self.max_ns as f64 / 1e6,
        }
    }

    /// Milliseconds, and the share that is not longer.
    fn distribution(&self) -> Vec<[f64; 2]> {
        let mut seen = 0;
        let point = |(bucket, count): (usize, &u32)| {
            seen += u64::from(*count);
            let ms = octaves::greatest::<PARTS>(bucket).min(self.max_ns) as f64 / 1e6;
            (*count > 0).then_some([ms, seen as f64 / self.count as f64])
        };
        self.buckets.iter().enumerate().filter_map(point).collect()
    }

    fn percentile_ms(&self, share: f64) -> f64 {
        let rank = (libm::ceil(self.count as f64 * share) as u64).max(1);
        let mut seen = 0;
        let is_reached = |count: &u32| {
            seen += u64::from(*count);
            seen >= rank
        };
        let bucket = self.buckets.iter().position(is_reached);
        bucket.map_or(0.0, |bucket| octaves::greatest::<PARTS>(bucket).min(self.max_ns) as f64 / 1e6)
    }
}

/// The intervals of a series at most.
const INTERVALS_MAX: usize = 512;

/// Response times by intervals, which double when there are too many: no run needs to know how long it will be.
#[derive(Clone, Debug)]
struct Series {
    since: Time,
    interval_ns: u64,
    /// Requests, and the sum of their response times.
    intervals: Vec<(u64, u128)>,
}

impl Series {
    fn new(since: Time) -> Series {
        Series { since, interval_ns: 1_000_000, intervals: Vec::with_capacity(INTERVALS_MAX) }
    }

    fn add(&mut self, now: Time, response_ns: u64) {
        let passed_ns = now.0 - self.since.0;
        while passed_ns / self.interval_ns >= INTERVALS_MAX as u64 {
            self.halve();
        }
        let at = (passed_ns / self.interval_ns) as usize;
        if self.intervals.len() <= at {
            self.intervals.resize(at + 1, (0, 0));
        }
        let (requests, sum_ns) = &mut self.intervals[at];
        (*requests, *sum_ns) = (*requests + 1, *sum_ns + u128::from(response_ns));
    }

    fn halve(&mut self) {
        self.interval_ns *= 2;
        let add = |(a, b): (u64, u128), (c, d): &(u64, u128)| (a + c, b + d);
        for at in 0..self.intervals.len().div_ceil(2) {
            let end = self.intervals.len().min(2 * at + 2);
            self.intervals[at] = self.intervals[2 * at..end].iter().fold((0, 0), add);
        }
        self.intervals.truncate(self.intervals.len().div_ceil(2));
    }

    fn intervals(&self) -> Vec<Interval> {
        let seconds = self.interval_ns as f64 / 1e9;
        let interval = |(at, &(requests, sum_ns)): (usize, &(u64, u128))| Interval {
            from_s: self.since.0 as f64 / 1e9 + at as f64 * seconds,
            seconds,
            requests,
            response_ms: sum_ns as f64 / requests.max(1) as f64 / 1e6,
        };
        self.intervals.iter().enumerate().map(interval).collect()
    }
}

/// What is counted while measuring.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    pub(crate) since: Time,
    pub(crate) requests: u64,
    pub(crate) reads: Times,
    pub(crate) writes: Times,
    disk_reads: Times,
    /// Reads from memory, and those of which it is not known.
    memory_reads: u64,
    unknown_reads: u64,
    traffic: Traffic,
    pub(crate) contention: Contention,
    /// Of all requests, and of reads that needed a disk.
    series: [Series; 2],
    kept: Option<Vec<RequestRecord>>,
}

impl Meter {
    /// Measures from `since` on. Where it keeps records, of each request.
    pub(crate) fn new(since: Time, keeps_requests: bool) -> Meter {
        Meter {
            since,
            requests: 0,
            reads: Times::new(),
            writes: Times::new(),
            disk_reads: Times::new(),
            memory_reads: 0,
            unknown_reads: 0,
            traffic: Traffic::default(),
            contention: Contention::default(),
            series: [Series::new(since), Series::new(since)],
            kept: keeps_requests.then(Vec::new),
        }
    }

    pub(crate) fn sent(&mut self, kind: Message, bytes: u64) {
        self.traffic.by_kind[kind as usize] += 1;
        self.traffic.bytes[usize::from(!kind.carries_data())] += bytes;
    }

    pub(crate) fn answered(&mut self, record: RequestRecord) {
        let (now, response_ns) = (record.answered, record.response_ns());
        let [all, disk_reads] = &mut self.series;
        all.add(now, response_ns);
        self.requests += 1;
        let times = if record.is_write { &mut self.writes } else { &mut self.reads };
        times.add(response_ns);
        match record.served_by {
            _ if record.is_write => {}
            ServedBy::Disk(_) => {
                self.disk_reads.add(response_ns);
                disk_reads.add(now, response_ns);
            }
            ServedBy::Memory => self.memory_reads += 1,
            ServedBy::Several => self.unknown_reads += 1,
        }
        if let Some(kept) = &mut self.kept {
            kept.push(record);
        }
    }

    /// The same, measuring from `since` on.
    pub(crate) fn anew(&self, since: Time) -> Meter {
        Meter::new(since, self.kept.is_some())
    }

    /// All that was counted until `now`; bricks and what the schemes count are the caller's.
    pub(crate) fn finish(self, scheme: &'static str, now: Time) -> Measured {
        let mut all = self.reads.clone();
        all.buckets.iter_mut().zip(&self.writes.buckets).for_each(|(all, more)| *all += more);
        all.count += self.writes.count;
        all.sum_ns += self.writes.sum_ns;
        all.max_ns = all.max_ns.max(self.writes.max_ns);
        Measured {
            scheme,
            seconds: now.since(self.since).as_nanos() as f64 / 1e9,
            simulated_s: now.0 as f64 / 1e9,
            events: 0,
            answered: Answered {
                requests: self.requests,
                reads: self.reads.count,
                response: all.response(),
                read_response: self.reads.response(),
                write_response: self.writes.response(),
                disk_read_response: self.disk_reads.response(),
                memory_reads: (self.unknown_reads == 0).then_some(self.memory_reads),
                distribution: all.distribution(),
                series: self.series[0].intervals(),
                disk_read_series: self.series[1].intervals(),
            },
            bricks: Vec::new(),
            traffic: self.traffic,
            contention: self.contention,
            moves: 0,
            wrapped: 0.0,
            requests: self.kept.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_keeps_all_requests_however_long_it_becomes() {
        let mut series = Series::new(Time(5));
        (0..100_000u64).for_each(|at| series.add(Time(5 + at * 1_000_000), at * 1_000_000));
        let intervals = series.intervals();
        assert!((256..=512).contains(&intervals.len()), "{}", intervals.len());
        assert_eq!(intervals.iter().map(|interval| interval.requests).sum::<u64>(), 100_000);
        for interval in &intervals[..intervals.len() - 1] {
            let middle_ms = (interval.from_s + interval.seconds / 2.0) * 1e3;
            assert!((interval.response_ms - middle_ms).abs() < 1.0, "{interval:?}");
        }
    }

    #[test]
    fn percentiles_are_at_most_a_part_too_high() {
        let mut times = Times::new();
        (1..=10_000u64).for_each(|ms| times.add(ms * 1_000_000));
        let response = times.response();
        assert_eq!((response.count, response.mean_ms, response.max_ms), (10_000, 5000.5, 10_000.0));
        for (ms, exact) in [(response.p50_ms, 5000.0), (response.p99_ms, 9900.0), (response.p999_ms, 9990.0)]
        {
            assert!((exact..=exact * 1.016).contains(&ms), "{ms} for {exact}");
        }
    }
}
