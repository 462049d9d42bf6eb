//! How long bricks take lately to answer a gateway's questions: what tells a slow brick from a usual one.
//!
//! By brick and kind of question, a moving mean and a high percentile of the last some hundred answers. A question that
//! is not answered yet counts as lasting at least as long as it does, and one that is given up as having lasted until then:
//! otherwise a brick that does not answer at all would look as fast as when it did last.
//!
//! Answers that say nothing of a brick's speed (another view, a queue that is full, a write in doubt) are left out, and so
//! is what was answered from memory where several were asked: beside it those that read their disks would look slow.

use base::{BrickId, Time, octaves};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use wire::Message;

/// Blocks of a read up to which it is short: its time is that of a device's access, not of the transfer.
const SHORT_BLOCKS: u32 = 16;
/// An answer changes the mean by so much of its distance from it.
const MEAN_WEIGHT: u64 = 16;
/// One that is quicker than the mean, and comes after so long without one, by half: what is seldom asked, as it did not answer for
/// seconds, is to be known soon when it is quick again. (What stops again and again for less is not.)
const RARE_NS: u64 = 500_000_000;
/// Times are known to an eighth.
const PARTS: usize = 8;
/// The percentile of [`Measure::high_ns`].
const HIGH_PERCENT: u64 = 95;
/// Above so many answers the older ones count half.
const WEIGHT_MAX: u64 = 256;
/// Of fewer answers none is forgotten for its age.
const WEIGHT_MIN: u64 = 64;
/// After so long answers count half.
const HALF_LIFE_NS: u64 = 2_000_000_000;
/// The most bricks that are remembered; beyond it the one forgotten is the one that was asked least recently.
const BRICKS_MAX: usize = 1024;
/// What a new answer counts: older ones lose half of it each time, and none at once.
const NEW: u64 = 16;
/// Fixed point: one answer. Of `n` bricks that are asked where one answers, each owes the `n`th part. 2520 is divisible by 3 to 10.
const ANSWER: u32 = 2520;
/// Who owes so many answers was silent by chance once in some hundred times: one of three after twelve questions, one of eight after 32.
const SILENT_MIN: u32 = 4 * ANSWER;
/// The most unanswered questions looked at in one glance.
const UNANSWERED_MAX: usize = 32;

/// Names a question among those of one asker.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct QuestionId(pub u64);

/// What is measured apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// A read of the content of up to 64 KiB.
    Read,
    LongRead,
    /// The first phase of a write.
    Prepare,
}

impl Kind {
    /// Of what kind a question is; `None` for what is not measured.
    pub fn of(message: &Message) -> Option<Kind> {
        match message {
            Message::Read { content: true, span, .. } => Some(Kind::of_read(span.count)),
            Message::Prepare { .. } => Some(Kind::Prepare),
            _ => None,
        }
    }

    /// Of what kind a read of `blocks` is.
    pub fn of_read(blocks: u32) -> Kind {
        if blocks <= SHORT_BLOCKS { Kind::Read } else { Kind::LongRead }
    }
}

/// How long answers took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Measure {
    /// Their moving mean, in nanoseconds.
    pub mean_ns: u64,
    /// Their 95th percentile, in nanoseconds, rounded up by at most an eighth.
    pub high_ns: u64,
    /// For how long the oldest unanswered question has waited; 0 where none has.
    pub oldest_ns: u64,
    /// How many are unanswered.
    pub unanswered: usize,
    /// How many answers this rests on, older ones counted for less.
    pub weight: u64,
}

/// The paces of bricks.
#[derive(Debug, Default)]
pub struct Pace {
    bricks: BTreeMap<BrickId, Bricks>,
}

#[derive(Debug, Default)]
struct Bricks {
    asked: Time,
    /// Since when it owes a sign of life (the first question after its last answer), and how much of it, in parts of [`ANSWER`].
    owes: Option<(Time, u32)>,
    kinds: [Track; 3],
}

impl Pace {
    /// A question goes to `brick`.
    pub fn begin(&mut self, now: Time, brick: BrickId, kind: Kind, question: QuestionId) {
        self.asked(now, brick, 1);
        if let Some(track) = self.track_mut(brick, kind) {
            track.owes.get_or_insert(now);
            track.unanswered.insert((now, question));
        }
    }

    /// `brick` was asked what one of `among` answers.
    pub fn asked(&mut self, now: Time, brick: BrickId, among: u8) {
        if self.bricks.len() >= BRICKS_MAX && !self.bricks.contains_key(&brick) {
            let stale = self.bricks.iter().min_by_key(|(_, paces)| paces.asked).map(|(brick, _)| *brick);
            stale.map(|brick| self.bricks.remove(&brick));
        }
        let paces = self.bricks.entry(brick).or_default();
        paces.asked = now;
        // Who is asked alone counts as one of three: other questions may lie before this one.
        let owed = ANSWER.div_ceil(u32::from(among).max(3));
        let owes = &mut paces.owes.get_or_insert((now, 0)).1;
        *owes = owes.saturating_add(owed);
    }

    /// Something came from `brick`.
    pub fn heard(&mut self, brick: BrickId) {
        if let Some(paces) = self.bricks.get_mut(&brick) {
            paces.owes = None;
            paces.kinds.iter_mut().for_each(|track| track.owes = None);
        }
    }

    /// For how long nothing at all came from `brick` although it was asked what it alone can answer, and what takes no longer:
    /// a write that waits for a flush is no sign of trouble to a read.
    pub fn silence(&self, now: Time, brick: BrickId, kind: Kind) -> Duration {
        let since = self.bricks.get(&brick).and_then(|paces| paces.kinds[kind as usize].owes);
        since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// How long a question of this kind to `brick` is to be expected to take, in nanoseconds: its mean, or for how long
    /// nothing at all came from it although it was asked so often that this is no chance. 0 where nothing is known.
    pub fn expected_ns(&self, now: Time, brick: BrickId, kind: Kind) -> u64 {
        let Some(paces) = self.bricks.get(&brick) else { return 0 };
        let silent = paces.owes.filter(|(_, owed)| *owed >= SILENT_MIN);
        let silence_ns = silent.map_or(0, |(since, _)| nanos(now, since));
        paces.kinds[kind as usize].measure(now).mean_ns.max(silence_ns)
    }

    pub fn answered(&mut self, now: Time, brick: BrickId, kind: Kind, question: QuestionId, since: Time) {
        if let Some(track) = self.track_mut(brick, kind) {
            track.unanswered.remove(&(since, question));
            track.record(now, nanos(now, since));
        }
    }

    /// A question counts as if it was asked later, since it waited for its turn meanwhile.
    pub fn excused(&mut self, brick: BrickId, kind: Kind, question: QuestionId, (from, to): (Time, Time)) {
        if let Some(track) = self.track_mut(brick, kind)
            && track.unanswered.remove(&(from, question))
        {
            track.unanswered.insert((to, question));
        }
    }

    /// An answer came to a question that was asked at `since` of several, of which one answers.
    pub fn answered_by_one(&mut self, now: Time, brick: BrickId, kind: Kind, since: Time) {
        self.bricks.entry(brick).or_default().kinds[kind as usize].record(now, nanos(now, since));
    }

    /// Nobody waits for its answer any more. What waited longer than is usual has shown that much.
    pub fn given_up(&mut self, now: Time, brick: BrickId, kind: Kind, question: QuestionId, since: Time) {
        if let Some(track) = self.track_mut(brick, kind) {
            track.unanswered.remove(&(since, question));
            let waited_ns = nanos(now, since);
            if waited_ns > track.mean_ns {
                track.record(now, waited_ns);
            }
        }
    }

    /// It was answered with what says nothing of the brick's speed.
    pub fn left_out(&mut self, brick: BrickId, kind: Kind, question: QuestionId, since: Time) {
        if let Some(track) = self.track_mut(brick, kind) {
            track.unanswered.remove(&(since, question));
        }
    }

    /// How long `brick` takes for the first phase of a write.
    pub fn prepare(&self, now: Time, brick: BrickId) -> Option<Measure> {
        self.measure(now, brick, Kind::Prepare)
    }

    /// How long it takes for a read of up to 64 KiB.
    pub fn read(&self, now: Time, brick: BrickId) -> Option<Measure> {
        self.measure(now, brick, Kind::Read)
    }

    /// How long it takes for questions of a kind; `None` where it was never asked one.
    pub fn measure(&self, now: Time, brick: BrickId, kind: Kind) -> Option<Measure> {
        let track = &self.bricks.get(&brick)?.kinds[kind as usize];
        (track.sum > 0 || !track.unanswered.is_empty()).then(|| track.measure(now))
    }

    /// The 95th percentile of a brick's answers, whatever it still owes; `None` where it gave fewer than `least` lately.
    pub fn answered_high_ns(&self, brick: BrickId, kind: Kind, least: u64) -> Option<u64> {
        let track = &self.bricks.get(&brick)?.kinds[kind as usize];
        (track.sum / NEW >= least).then_some(track.high_ns)
    }

    /// All bricks that were asked.
    pub fn bricks(&self) -> impl Iterator<Item = BrickId> + '_ {
        self.bricks.keys().copied()
    }

    fn track_mut(&mut self, brick: BrickId, kind: Kind) -> Option<&mut Track> {
        self.bricks.get_mut(&brick).map(|paces| &mut paces.kinds[kind as usize])
    }
}

/// Answers to one kind of question by one brick.
#[derive(Debug)]
struct Track {
    mean_ns: u64,
    high_ns: u64,
    boxes: Box<[u16; BOXES]>,
    /// Of all boxes, [`NEW`] for each new answer.
    sum: u64,
    since_look: u32,
    halved: Time,
    /// When the last answer was recorded.
    recorded: Time,
    /// Since when it owes an answer that it alone can give.
    owes: Option<Time>,
    unanswered: BTreeSet<(Time, QuestionId)>,
}

const BOXES: usize = octaves::boxes::<PARTS>();
/// The percentile is looked up anew after so many answers.
const LOOK_EVERY: u32 = 8;

impl Default for Track {
    fn default() -> Track {
        Track {
            mean_ns: 0,
            high_ns: 0,
            boxes: Box::new([0; BOXES]),
            sum: 0,
            since_look: 0,
            halved: Time::ZERO,
            recorded: Time::ZERO,
            owes: None,
            unanswered: BTreeSet::new(),
        }
    }
}

impl Track {
    fn record(&mut self, now: Time, lasted_ns: u64) {
        self.age(now);
        let gap_ns = nanos(now, self.recorded);
        self.recorded = now;
        self.mean_ns = match self.sum {
            0 => lasted_ns,
            _ if lasted_ns < self.mean_ns && gap_ns >= RARE_NS => self.mean_ns.midpoint(lasted_ns),
            _ => moved(self.mean_ns, lasted_ns),
        };
        self.boxes[octaves::index::<PARTS>(lasted_ns)] += NEW as u16;
        self.sum += NEW;
        self.since_look += 1;
        if self.since_look >= LOOK_EVERY || self.sum < u64::from(2 * LOOK_EVERY) * NEW {
            self.since_look = 0;
            self.high_ns = self.high(&[]);
        }
    }

    fn age(&mut self, now: Time) {
        if self.sum == 0 {
            self.halved = now;
        }
        let is_late = nanos(now, self.halved) >= HALF_LIFE_NS && self.sum > WEIGHT_MIN * NEW;
        if self.sum < WEIGHT_MAX * NEW && !is_late {
            return;
        }
        self.halved = now;
        self.boxes.iter_mut().for_each(|count| *count /= 2);
        self.sum = self.boxes.iter().map(|count| u64::from(*count)).sum();
    }

    fn measure(&self, now: Time) -> Measure {
        let waits = self.unanswered.iter().map(|(since, _)| nanos(now, *since));
        let longer: Vec<u64> = waits.take(UNANSWERED_MAX).filter(|wait| *wait > self.mean_ns).collect();
        let mean_ns = longer.iter().fold(self.mean_ns, |mean, wait| match self.sum {
            0 => mean.max(*wait),
            _ => moved(mean, (*wait).max(mean)),
        });
        Measure {
            mean_ns,
            high_ns: if longer.is_empty() { self.high_ns } else { self.high(&longer) },
            oldest_ns: self.unanswered.first().map_or(0, |(since, _)| nanos(now, *since)),
            unanswered: self.unanswered.len(),
            weight: self.sum / NEW,
        }
    }

    /// The percentile of the answers and of what waits for so long, oldest first.
    fn high(&self, longer: &[u64]) -> u64 {
        let all = self.sum + longer.len() as u64 * NEW;
        // So many may be above it.
        let mut above = all * (100 - HIGH_PERCENT) / 100;
        let mut waits = longer.iter().map(|wait| octaves::index::<PARTS>(*wait)).peekable();
        for index in (0..BOXES).rev() {
            let mut here = u64::from(self.boxes[index]);
            while waits.next_if(|wait| *wait >= index).is_some() {
                here += NEW;
            }
            if here > above {
                return octaves::greatest::<PARTS>(index);
            }
            above -= here;
        }
        0
    }
}

fn moved(mean: u64, to: u64) -> u64 {
    let step = to.abs_diff(mean) / MEAN_WEIGHT;
    if to > mean { mean + step } else { mean - step }
}

fn nanos(now: Time, since: Time) -> u64 {
    u64::try_from(now.since(since).as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: BrickId = BrickId(1);
    const MS: u64 = 1_000_000;

    fn answered(pace: &mut Pace, at: u64, lasted_ns: u64) {
        pace.begin(Time(at), A, Kind::Read, QuestionId(at));
        pace.answered(Time(at + lasted_ns), A, Kind::Read, QuestionId(at), Time(at));
    }

    fn read_at(pace: &Pace, at: u64) -> Measure {
        pace.read(Time(at), A).expect("it was asked")
    }

    #[test]
    fn kinds_and_bricks_are_measured_apart() {
        let mut pace = Pace::default();
        answered(&mut pace, 0, MS);
        assert!(pace.prepare(Time(MS), A).is_none());
        assert!(pace.read(Time(MS), BrickId(2)).is_none());
        assert_eq!(read_at(&pace, MS).mean_ns, MS);
    }

    #[test]
    fn what_is_not_answered_counts_as_lasting_as_long_as_it_does() {
        let mut pace = Pace::default();
        (0..20).for_each(|i| answered(&mut pace, i * MS, MS / 10));
        let usual = read_at(&pace, 20 * MS);
        for call in 0..10 {
            pace.begin(Time(20 * MS), A, Kind::Read, QuestionId(1000 + call));
        }
        let stalled = read_at(&pace, 220 * MS);
        assert_eq!((stalled.oldest_ns, stalled.unanswered), (200 * MS, 10));
        assert!(usual.high_ns < MS && stalled.high_ns >= 200 * MS, "{usual:?} {stalled:?}");
        assert!(stalled.mean_ns > 50 * usual.mean_ns, "{usual:?} {stalled:?}");
        pace.given_up(Time(220 * MS), A, Kind::Read, QuestionId(1000), Time(20 * MS));
        assert!(read_at(&pace, 220 * MS).mean_ns > 50 * usual.mean_ns, "it is not forgotten when given up");
    }

    #[test]
    fn a_brick_that_has_recovered_is_seen_to_have() {
        let mut pace = Pace::default();
        (0..500).for_each(|i| answered(&mut pace, i * 50 * MS, 40 * MS));
        let from = 500 * 50 * MS;
        (0..500).for_each(|i| answered(&mut pace, from + i * MS, MS / 10));
        let now = read_at(&pace, from + 500 * MS);
        assert!(now.mean_ns < MS && now.high_ns < MS, "{now:?}");
    }

    #[test]
    fn a_brick_is_silent_to_those_who_ask_alike_until_something_comes_from_it() {
        let mut pace = Pace::default();
        pace.begin(Time(0), A, Kind::Prepare, QuestionId(1));
        pace.begin(Time(2 * MS), A, Kind::Read, QuestionId(2));
        let silence = |pace: &Pace, kind| pace.silence(Time(5 * MS), A, kind).as_millis();
        assert_eq!([Kind::Read, Kind::LongRead, Kind::Prepare].map(|kind| silence(&pace, kind)), [3, 0, 5]);
        pace.heard(A);
        assert_eq!([Kind::Read, Kind::LongRead, Kind::Prepare].map(|kind| silence(&pace, kind)), [0; 3]);
    }

    /// Of many that are asked and one that answers, most are silent for long by chance.
    #[test]
    fn who_is_one_of_many_may_be_silent_for_longer() {
        let silent_after = |among: u8| {
            let mut pace = Pace::default();
            let is_silent = |asked: &u64| {
                pace.asked(Time(*asked - 1), A, among);
                pace.expected_ns(Time(*asked), A, Kind::Read) > 0
            };
            (1..).find(is_silent)
        };
        assert_eq!([1, 2, 3, 8].map(silent_after), [12, 12, 12, 32].map(Some));
    }

    #[test]
    fn bricks_are_bounded() {
        let mut pace = Pace::default();
        for brick in 0..3 * BRICKS_MAX as u32 {
            pace.begin(Time(u64::from(brick)), BrickId(brick), Kind::Prepare, QuestionId(1));
        }
        assert_eq!(pace.bricks().count(), BRICKS_MAX);
        assert!(pace.bricks().all(|brick| brick.0 >= 2 * BRICKS_MAX as u32));
    }

    proptest! {
        #[test]
        fn the_percentile_is_that_of_the_answers(mut lasted in prop::collection::vec(1u64..1 << 30, 16..200)) {
            let mut pace = Pace::default();
            for (i, ns) in lasted.iter().enumerate() {
                pace.begin(Time(0), A, Kind::Read, QuestionId(i as u64));
                pace.answered(Time(*ns), A, Kind::Read, QuestionId(i as u64), Time(0));
            }
            // The last look is some answers ago.
            let seen = read_at(&pace, 0).high_ns;
            lasted.truncate(lasted.len() - (lasted.len() - 15) % LOOK_EVERY as usize);
            lasted.sort_unstable();
            let above = lasted.len() * (100 - HIGH_PERCENT as usize) / 100;
            let exact = lasted[lasted.len() - 1 - above].max(8);
            prop_assert!(seen >= exact && seen <= exact + exact / 8 + 1, "{seen} for {exact}");
        }
    }
}
