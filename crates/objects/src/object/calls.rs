//! Questions to bricks about fragments: each has a number, is asked again while it is not answered, and is called off when nobody wants
//! its answer any more.

use super::TransferId;
use super::access::Place;
use super::charges::Charges;
use base::{BLOCK, BrickId, Payload, StreamId, Time};
use core::ops::Range;
use core::time::Duration;
use reads::distribute::pace::{Kind, Pace, QuestionId};
use rules::fair::Cost;
use rules::median::upper_median;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wire::{FragmentId, Message, OPERATIONS_MAX, Packet, Service};

/// After so long without an answer a question is asked again: it, or its answer, may be lost.
const AGAIN: Duration = Duration::from_secs(2);
/// The same where content goes out with it, which is dear to send twice: a disk at 0.5 MB/s has two fragments of 1 MiB within 4 s. What a broken
/// connection lost is sent again as soon as there is another one.
const CONTENT_AGAIN: Duration = Duration::from_secs(5);
/// A brick that says nothing for so many times as long as it usually takes between two answers, and for so long at least, is late: whoever waits to
/// put something there is told, also those whose questions are held back here.
const LATE_TIMES: u32 = 8;
const LATE_MIN: Duration = Duration::from_millis(500);
/// What is taken for its usual time before it is known: a brick that never said anything is late after 2 s.
const USUAL_AT_FIRST: Duration = Duration::from_millis(250);
/// A reader of a few fragments waits for so many times the time in which 95 of 100 answers come: the others are many fragments (dozens for one), so that few
/// readers may ask for them where all is well. Of answers whose times follow an exponential law one in 400 takes longer.
const READ_LATE_TIMES: u64 = 2;
/// No less than this (and no more than [`AGAIN`]: where all answers take long, more questions would make them longer),
const READ_LATE_MIN: Duration = Duration::from_millis(2);
/// and for so long while no brick of the segment has given so many answers.
const READ_LATE_UNKNOWN: Duration = Duration::from_millis(200);
const READ_KNOWN_MIN: u64 = 8;
/// It does not wait for a brick that is expected to take so many times as long as the others do, and so much longer.
const READ_SLOW_TIMES: u64 = 2;
const READ_SLOW_MIN_NS: u64 = 2_000_000;
/// A brick that was busy is asked again after so long, and each time after twice as long.
const BUSY: Duration = Duration::from_millis(50);
/// So much content is on its way to or from a brick; the rest waits here, where it costs nothing to call it off.
const BYTES_MAX: usize = 16 << 20;

/// A question to a brick.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) brick: BrickId,
    pub(super) fragment: FragmentId,
    pub(super) wish: Wish,
    /// The blocks of the fragment.
    pub(super) blocks: u32,
    /// For whom it is.
    pub(super) stream: StreamId,
}

/// What a brick is to do with a fragment.
#[derive(Clone, Debug)]
pub(super) enum Wish {
    /// With `is_new` it is of a version that nobody can see yet: if it is called off, the brick gives back what it has stored of it.
    Put {
        content: Payload,
        is_new: bool,
    },
    Get,
    /// Say whether it is there, and with `reads` whether it can be read.
    Check {
        reads: bool,
    },
}

impl Call {
    /// So many blocks the disk moves.
    fn moves(&self) -> u32 {
        match self.wish {
            Wish::Put { .. } | Wish::Get | Wish::Check { reads: true } => self.blocks,
            Wish::Check { reads: false } => 0,
        }
    }

    /// What the brick is busy with, and the way to it or from it.
    fn bytes(&self) -> usize {
        self.moves() as usize * BLOCK
    }

    /// As what a fragment that is asked for is measured.
    fn kind(&self) -> Option<Kind> {
        matches!(self.wish, Wish::Get).then(|| Kind::of_read(self.blocks))
    }

    /// For how long an answer is waited for.
    fn again(&self) -> Duration {
        if matches!(self.wish, Wish::Put { .. }) { CONTENT_AGAIN } else { AGAIN }
    }
}

/// The questions of all transfers.
#[derive(Debug)]
pub(super) struct Calls {
    open: BTreeMap<u64, Open>,
    /// When each that was sent is sent again.
    due: BTreeSet<(Time, u64)>,
    /// When to look whether a brick that was asked is late.
    looks: BTreeSet<(Time, BrickId)>,
    /// What was asked of a brick that was late already, and when.
    late: Vec<(Time, Again)>,
    lanes: BTreeMap<BrickId, Lane>,
    /// How long bricks take to give a fragment, from when it was asked for: the time for which it is held back here counts.
    pace: Pace,
    last: u64,
    charges: Charges,
    /// To be sent.
    outbox: Vec<(BrickId, Packet)>,
    called_off: BTreeMap<BrickId, Vec<u64>>,
}

#[derive(Debug)]
struct Open {
    transfer: TransferId,
    call: Call,
    asked: Time,
    /// When it is sent again; none before it was sent.
    again: Option<Time>,
    /// How often the brick was busy.
    refused: u32,
    /// Whether that was its last word.
    is_refused: bool,
}

/// A question that is asked again, or whose brick is late.
#[derive(Clone, Copy, Debug)]
pub(super) struct Again {
    pub(super) transfer: TransferId,
    pub(super) place: Place,
    /// The brick had no room for it; if not, it said nothing.
    pub(super) was_busy: bool,
}

/// The way to a brick.
#[derive(Debug)]
struct Lane {
    bytes: usize,
    /// How many questions are on it.
    sent: usize,
    held: VecDeque<u64>,
    /// When the brick said something last, or was asked after it had answered all.
    heard: Time,
    /// The usual time between two answers.
    usual: Duration,
    is_late: bool,
    /// When it is looked at next.
    look: Option<Time>,
}

impl Default for Lane {
    fn default() -> Lane {
        let (bytes, sent, held, usual) = (0, 0, VecDeque::new(), USUAL_AT_FIRST);
        Lane { bytes, sent, held, heard: Time::ZERO, usual, is_late: false, look: None }
    }
}

impl Lane {
    fn on_sent(&mut self, now: Time, bytes: usize) {
        if self.sent == 0 {
            self.heard = now;
        }
        self.sent += 1;
        self.bytes += bytes;
    }

    /// The brick answered, or asked for patience.
    fn on_word(&mut self, now: Time) {
        if self.sent > 0 {
            // What comes in batches takes as long as from one batch to the next.
            self.usual = now.since(self.heard).max(self.usual * 15 / 16);
        }
        (self.heard, self.is_late) = (now, false);
    }

    /// From when on the brick is late if it says nothing.
    fn late_from(&self) -> Time {
        self.heard + LATE_MIN.max(self.usual * LATE_TIMES)
    }
}

impl Calls {
    /// What requests cost in this cluster.
    pub(super) fn set_cost(&mut self, cost: Cost) {
        self.charges.set_cost(cost);
    }

    /// Whose numbers come behind this one.
    pub(super) fn from(first: u64) -> Calls {
        Calls {
            open: BTreeMap::new(),
            due: BTreeSet::new(),
            looks: BTreeSet::new(),
            late: Vec::new(),
            lanes: BTreeMap::new(),
            pace: Pace::default(),
            last: first,
            charges: Charges::default(),
            outbox: Vec::new(),
            called_off: BTreeMap::new(),
        }
    }

    /// Who is asked what and does not answer, for people.
    pub(super) fn describe(&self, now: Time) -> impl Iterator<Item = String> {
        self.open.iter().map(
            move |(operation, Open { call: Call { brick, fragment, wish, .. }, again, refused, .. })| {
                let what = match wish {
                    Wish::Put { .. } => "to take",
                    Wish::Get => "for",
                    Wish::Check { .. } => "to check",
                };
                let again = again.map_or("is not sent yet".to_owned(), |again| {
                    format!("is sent again in {:.1?}", again.since(now))
                });
                let busy = if *refused > 0 {
                    format!("; it said {refused} times that it is busy")
                } else {
                    String::new()
                };
                format!("asks {brick} {what} {fragment:?} (operation {operation}): {again}{busy}")
            },
        )
    }

    /// Asks, for `transfer`.
    pub(super) fn ask(&mut self, now: Time, transfer: TransferId, call: Call) {
        self.last += 1;
        let brick = call.brick;
        let lane = self.lanes.entry(brick).or_default();
        lane.held.push_back(self.last);
        if lane.is_late && matches!(call.wish, Wish::Put { .. }) {
            let place = (call.fragment.index, brick);
            self.late.push((now, Again { transfer, place, was_busy: false }));
        }
        if let Some(kind) = call.kind() {
            self.pace.begin(now, brick, kind, QuestionId(self.last));
        }
        let open = Open { transfer, call, asked: now, again: None, refused: 0, is_refused: false };
        self.open.insert(self.last, open);
        self.fill(now, brick);
    }

    /// For how long somebody who wants these symbols of a segment alone is to wait for them before the others are asked for; not at all where a brick that
    /// has one of them is slow.
    pub(super) fn patience(&self, now: Time, places: &[Place], wanted: &Range<u32>, blocks: u32) -> Duration {
        let kind = Kind::of_read(blocks);
        let bricks: BTreeSet<BrickId> = places.iter().map(|(_, brick)| *brick).collect();
        let expected_ns = |brick: BrickId| self.pace.expected_ns(now, brick, kind);
        let usual_ns = upper_median(bricks.iter().map(|brick| expected_ns(*brick))).unwrap_or(0);
        let slow_ns = usual_ns.saturating_mul(READ_SLOW_TIMES).saturating_add(READ_SLOW_MIN_NS);
        let of_wanted = places.iter().filter(|(symbol, _)| wanted.contains(symbol));
        if usual_ns > 0 && of_wanted.map(|(_, brick)| expected_ns(*brick)).any(|ns| ns > slow_ns) {
            return Duration::ZERO;
        }
        let high_ns = |brick: &BrickId| self.pace.answered_high_ns(*brick, kind, READ_KNOWN_MIN);
        let high_ns = upper_median(bricks.iter().filter_map(high_ns));
        high_ns.map_or(READ_LATE_UNKNOWN, |high_ns| {
            Duration::from_nanos(high_ns.saturating_mul(READ_LATE_TIMES)).clamp(READ_LATE_MIN, AGAIN)
        })
    }

    /// Sends what was held back, as far as there is room on its way.
    fn fill(&mut self, now: Time, brick: BrickId) {
        let Some(lane) = self.lanes.get_mut(&brick) else { return };
        while let Some(operation) = lane.held.front().copied() {
            // What was called off meanwhile is not there any more.
            let Some(open) = self.open.get_mut(&operation) else {
                lane.held.pop_front();
                continue;
            };
            let bytes = open.call.bytes();
            if lane.bytes > 0 && lane.bytes + bytes > BYTES_MAX {
                break;
            }
            lane.on_sent(now, bytes);
            lane.held.pop_front();
            let again = now + open.call.again();
            open.again = Some(again);
            let service = self.charges.ask(open.call.stream, brick, open.call.moves());
            self.due.insert((again, operation));
            self.outbox.push((brick, open.call.packet(operation, service)));
        }
        self.watch(brick);
    }

    /// An answer came: whose question it answers, if it was not called off or answered before.
    pub(super) fn answered(
        &mut self,
        now: Time,
        from: BrickId,
        operation: u64,
    ) -> Option<(TransferId, Call)> {
        // Also an answer that nobody waits for any more is a word.
        self.on_word(now, from);
        if self.open.get(&operation)?.call.brick != from {
            return None;
        }
        let open = self.open.remove(&operation)?;
        if let Some(kind) = open.call.kind() {
            self.pace.answered(now, from, kind, QuestionId(operation), open.asked);
        }
        self.leave(operation, &open);
        self.fill(now, from);
        Some((open.transfer, open.call))
    }

    fn on_word(&mut self, now: Time, from: BrickId) {
        self.pace.heard(from);
        self.lanes.entry(from).and_modify(|lane| lane.on_word(now));
        self.watch(from);
    }

    /// The brick is looked at as long as anything is asked of it and it is not late.
    fn watch(&mut self, brick: BrickId) {
        let Some(lane) = self.lanes.get_mut(&brick).filter(|lane| lane.sent > 0 && !lane.is_late) else {
            return;
        };
        let at = lane.late_from();
        // One that is due sooner finds that it was too early.
        if lane.look.is_none_or(|look| at < look) {
            if let Some(before) = lane.look.replace(at) {
                self.looks.remove(&(before, brick));
            }
            self.looks.insert((at, brick));
        }
    }

    /// It is over: its place on the way is free.
    fn leave(&mut self, operation: u64, open: &Open) {
        if let (Some(again), Some(lane)) = (open.again, self.lanes.get_mut(&open.call.brick)) {
            self.due.remove(&(again, operation));
            lane.bytes -= open.call.bytes();
            lane.sent -= 1;
        }
    }

    /// The brick has no room for this question now.
    pub(super) fn busy(&mut self, now: Time, from: BrickId, operation: u64) {
        self.on_word(now, from);
        let Some(open) = self.open.get_mut(&operation).filter(|open| open.call.brick == from) else { return };
        let pause = BUSY.saturating_mul(1 << open.refused.min(6)).min(AGAIN);
        open.refused += 1;
        open.is_refused = true;
        self.postpone(from, operation, now + pause);
    }

    /// The brick lets these wait, in their turn: whose they are.
    pub(super) fn wait(&mut self, now: Time, from: BrickId, operations: &[u64]) -> BTreeSet<TransferId> {
        self.on_word(now, from);
        let wait = |operation: &u64| {
            let again = now + self.open.get(operation)?.call.again();
            self.postpone(from, *operation, again)
        };
        operations.iter().filter_map(wait).collect()
    }

    /// A question that was sent is sent again then. What was not sent a brick knows nothing of, whatever it says.
    fn postpone(&mut self, from: BrickId, operation: u64, until: Time) -> Option<TransferId> {
        let open = self.open.get_mut(&operation).filter(|open| open.call.brick == from)?;
        let again = open.again.as_mut()?;
        self.due.remove(&(*again, operation));
        self.due.insert((until, operation));
        *again = until;
        Some(open.transfer)
    }

    /// The brick says what it withdrew of what was called off, and what it did not.
    pub(super) fn cancelled(&mut self, now: Time, from: BrickId, withdrawn: &[u64], late: &[u64]) {
        self.on_word(now, from);
        self.charges.cancelled(from, withdrawn, late);
    }

    /// The brick can be reached again: what was on its way is lost.
    pub(super) fn on_up(&mut self, now: Time, brick: BrickId) {
        self.charges.on_up(brick);
        let is_its = |(_, open): &(&u64, &Open)| open.call.brick == brick && open.again.is_some();
        let its: Vec<u64> = self.open.iter().filter(is_its).map(|(operation, _)| *operation).collect();
        for operation in its {
            self.postpone(brick, operation, now);
        }
    }

    /// Nobody wants the answers of a transfer any more.
    pub(super) fn call_off(&mut self, now: Time, transfer: TransferId) {
        let over = self.open.extract_if(.., |_, open| open.transfer == transfer).collect();
        self.forget(now, over);
    }

    /// Nobody wants these answers of a transfer any more: how many there were to come.
    pub(super) fn call_off_some(&mut self, now: Time, transfer: TransferId, places: &[Place]) -> usize {
        if places.is_empty() {
            return 0;
        }
        let is_one = |open: &Open| places.contains(&(open.call.fragment.index, open.call.brick));
        let over = self.open.extract_if(.., |_, open| open.transfer == transfer && is_one(open));
        let over: Vec<(u64, Open)> = over.collect();
        let count = over.len();
        self.forget(now, over);
        count
    }

    fn forget(&mut self, now: Time, over: Vec<(u64, Open)>) {
        let bricks: BTreeSet<BrickId> = over.iter().map(|(_, open)| open.call.brick).collect();
        for (operation, open) in over {
            if let Some(kind) = open.call.kind() {
                self.pace.given_up(now, open.call.brick, kind, QuestionId(operation), open.asked);
            }
            self.leave(operation, &open);
            if open.again.is_some() {
                let Call { brick, stream, .. } = open.call;
                self.charges.call_off(operation, stream, brick, open.call.moves());
                self.called_off.entry(open.call.brick).or_default().push(operation);
            }
        }
        bricks.into_iter().for_each(|brick| self.fill(now, brick));
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        let due = self.due.first().map(|(again, _)| *again);
        let look = self.looks.first().map(|(at, _)| *at);
        let late = self.late.first().map(|(at, _)| *at);
        due.into_iter().chain(look).chain(late).min()
    }

    /// Asks again what is due, and says what that is, and what was to be put at bricks that are late.
    pub(super) fn wake(&mut self, now: Time) -> Vec<Again> {
        let mut asked: Vec<Again> =
            core::mem::take(&mut self.late).into_iter().map(|(_, again)| again).collect();
        while let Some((at, brick)) = self.looks.first().copied().filter(|(at, _)| *at <= now) {
            self.looks.remove(&(at, brick));
            asked.extend(self.look(now, brick));
        }
        while let Some((again, operation)) = self.due.first().copied().filter(|(again, _)| *again <= now) {
            self.due.remove(&(again, operation));
            let open = self.open.get_mut(&operation).expect("what is due is open");
            let again = now + open.call.again();
            open.again = Some(again);
            self.due.insert((again, operation));
            // What its stream was served elsewhere has been said, or is said by another one.
            let service = Service { stream: open.call.stream, delay: 0 };
            self.outbox.push((open.call.brick, open.call.packet(operation, service)));
            let place = (open.call.fragment.index, open.call.brick);
            let was_busy = core::mem::take(&mut open.is_refused);
            // It has yet to answer that, and was not asked before.
            if was_busy && let Some(lane) = self.lanes.get_mut(&open.call.brick) {
                lane.heard = now;
            }
            asked.push(Again { transfer: open.transfer, place, was_busy });
        }
        asked
    }

    /// Whether the brick is late. Then all that was to be put there is, whether it was sent or not.
    fn look(&mut self, now: Time, brick: BrickId) -> Vec<Again> {
        let Some(lane) = self.lanes.get_mut(&brick) else { return Vec::new() };
        lane.look = None;
        if lane.sent == 0 || lane.late_from() > now {
            self.watch(brick);
            return Vec::new();
        }
        // What it was too busy for is not asked of it now, but in a while.
        let is_asked = |open: &Open| open.call.brick == brick && open.again.is_some() && !open.is_refused;
        if !self.open.values().any(is_asked) {
            lane.heard = now;
            self.watch(brick);
            return Vec::new();
        }
        lane.is_late = true;
        let late = |open: &Open| {
            let place = (open.call.fragment.index, brick);
            Again { transfer: open.transfer, place, was_busy: open.is_refused }
        };
        // A reader asks all that have fragments anyway, and whoever answers will do; who wants a few of them has its own patience.
        let is_put = |open: &&Open| open.call.brick == brick && matches!(open.call.wish, Wish::Put { .. });
        self.open.values().filter(is_put).map(late).collect()
    }

    /// What is to be sent since the last call. What was called off goes out in as few messages as it takes.
    pub(super) fn take_outbox(&mut self) -> Vec<(BrickId, Packet)> {
        let mut outbox = core::mem::take(&mut self.outbox);
        for (brick, operations) in core::mem::take(&mut self.called_off) {
            for operations in operations.chunks(OPERATIONS_MAX) {
                outbox.push((brick, Message::Cancel { operations: operations.to_vec() }.into()));
            }
        }
        outbox
    }
}

impl Call {
    fn packet(&self, operation: u64, service: Service) -> Packet {
        let Call { fragment, ref wish, blocks, .. } = *self;
        match wish {
            Wish::Put { content, is_new } => {
                let message = Message::PutFragment { operation, fragment, service, is_new: *is_new };
                Packet { message, payload: content.clone() }
            }
            Wish::Get => Message::GetFragment { operation, fragment, blocks, service }.into(),
            Wish::Check { reads } => {
                Message::CheckFragment { operation, fragment, blocks, reads: *reads, service }.into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::ObjectVersion;

    const BRICK: BrickId = BrickId(1);
    const MIB_BLOCKS: u32 = (1 << 20) / BLOCK as u32;

    fn ms(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    fn put(index: u32) -> Call {
        let fragment = FragmentId { version: ObjectVersion(1), segment: 0, index };
        let wish = Wish::Put { content: Payload::default(), is_new: true };
        Call { brick: BRICK, fragment, wish, blocks: MIB_BLOCKS, stream: StreamId::default() }
    }

    /// Questions to a brick that answered each of so many after so many milliseconds; and when that was over.
    fn known(answers: u64, each_ms: u64) -> (Calls, u64) {
        let mut calls = Calls::from(0);
        for answer in 0..answers {
            calls.ask(ms(answer * each_ms), TransferId(0), put(0));
            assert!(calls.answered(ms((answer + 1) * each_ms), BRICK, calls.last).is_some());
        }
        (calls, answers * each_ms)
    }

    fn late(calls: &mut Calls, now: u64) -> usize {
        let again = calls.wake(ms(now));
        calls.take_outbox();
        again.len()
    }

    #[test]
    fn a_brick_that_says_nothing_is_late_also_for_what_is_held_back() {
        let (mut calls, began) = known(40, 10);
        let transfers = 100;
        (0..transfers).for_each(|nth| calls.ask(ms(began), TransferId(nth), put(nth as u32)));
        assert_eq!(calls.take_outbox().iter().filter(|(_, packet)| is_put(packet)).count(), 40 + 16);
        assert_eq!(late(&mut calls, began + 499), 0);
        assert_eq!(late(&mut calls, began + 500), transfers as usize);
        assert_eq!(late(&mut calls, began + 600), 0, "each is told once");
        calls.ask(ms(began + 700), TransferId(200), put(200));
        assert_eq!(calls.deadline(), Some(ms(began + 700)));
        assert_eq!(late(&mut calls, began + 700), 1, "and who comes later at once");
        // It is back.
        let first = calls.open.keys().copied().min().expect("open");
        assert!(calls.answered(ms(began + 800), BRICK, first).is_some());
        calls.ask(ms(began + 801), TransferId(201), put(201));
        assert_eq!(late(&mut calls, began + 1200), 0);
        // What is wanted by nobody is waited for by nobody.
        (0..=201).for_each(|nth| calls.call_off(ms(began + 1300), TransferId(nth)));
        while let Some(at) = calls.deadline() {
            assert!(calls.wake(at).is_empty());
        }
    }

    #[test]
    fn a_brick_that_takes_long_and_goes_on_is_not_late() {
        let (mut calls, began) = known(3, 1500);
        (0..40).for_each(|nth| calls.ask(ms(began), TransferId(nth), put(nth as u32)));
        for answer in 1..=40 {
            let now = began + answer * 1500;
            let is_late = calls.wake(ms(now)).iter().any(|again| again.transfer.0 >= 16 + answer);
            assert!(!is_late, "what is held back is not asked again");
            let first = *calls.open.keys().min().expect("open");
            assert!(calls.answered(ms(now), BRICK, first).is_some());
        }
    }

    #[test]
    fn a_brick_that_answers_in_batches_is_not_late_between_two_and_its_silence_counts_from_the_last() {
        let (mut calls, began) = known(40, 10);
        (0..48).for_each(|nth| calls.ask(ms(began), TransferId(nth), put(nth as u32)));
        let mut now = began;
        for batch in 0..2 {
            now += 1500;
            // Of the first one nothing is known yet.
            assert!(batch == 0 || late(&mut calls, now) == 0);
            calls.wake(ms(now));
            let sent: Vec<u64> = calls.open.keys().copied().take(16).collect();
            sent.iter().for_each(|operation| drop(calls.answered(ms(now), BRICK, *operation)));
        }
        // The gaps of none between the answers of a batch count for little.
        assert_eq!(late(&mut calls, now + 4000), 0);
        let from = calls.lanes[&BRICK].late_from();
        assert_eq!(from, ms(now) + calls.lanes[&BRICK].usual * LATE_TIMES);
        calls.wake(Time(from.0 - 1));
        assert!(!calls.lanes[&BRICK].is_late);
        calls.wake(from);
        assert!(calls.lanes[&BRICK].is_late);
    }

    #[test]
    fn a_brick_that_is_busy_is_not_late_and_one_whose_answer_nobody_waits_for_is_back() {
        let (mut calls, began) = known(40, 10);
        (0..4).for_each(|nth| calls.ask(ms(began), TransferId(nth), put(nth as u32)));
        let sent: Vec<u64> = calls.open.keys().copied().collect();
        for _ in 0..4 {
            sent.iter().for_each(|operation| calls.busy(ms(began), BRICK, *operation));
        }
        // They are asked again after 400 ms, and the brick has half a second from then on.
        assert!(calls.wake(ms(began + 390)).is_empty());
        assert_eq!(calls.wake(ms(began + 400)).iter().filter(|again| again.was_busy).count(), 4);
        assert_eq!(late(&mut calls, began + 899), 0);
        assert_eq!(late(&mut calls, began + 900), 4);
        (0..4).for_each(|nth| calls.call_off(ms(began + 1000), TransferId(nth)));
        assert!(calls.lanes[&BRICK].is_late);
        assert!(calls.answered(ms(began + 1100), BRICK, sent[0]).is_none());
        assert!(!calls.lanes[&BRICK].is_late);
    }

    fn get(index: u32, brick: BrickId) -> Call {
        let wish = Wish::Get;
        Call { brick, wish, blocks: 16, ..put(index) }
    }

    #[test]
    fn a_lane_that_is_full_does_not_hide_from_readers_of_a_part_that_its_brick_is_silent() {
        let bricks: Vec<BrickId> = (1..=4).map(BrickId).collect();
        let places: Vec<Place> = (0..).zip(bricks.iter().copied()).collect();
        let mut calls = Calls::from(0);
        let patience =
            |calls: &Calls, now, symbol| calls.patience(ms(now), &places, &(symbol..symbol + 1), 16);
        assert_eq!(patience(&calls, 0, 0), READ_LATE_UNKNOWN);
        for turn in 0..20 {
            for brick in &bricks {
                calls.ask(ms(turn * 10), TransferId(0), get(0, *brick));
                assert!(calls.answered(ms(turn * 10 + 4), *brick, calls.last).is_some());
            }
        }
        let usual = patience(&calls, 200, 0);
        assert!((ms(8).0..ms(10).0).contains(&(usual.as_nanos() as u64)), "{usual:?}");
        // The lane to the first brick is full, and what is asked of it is held back here.
        (0..40).for_each(|nth| calls.ask(ms(200), TransferId(nth), put(nth as u32)));
        (100..120).for_each(|nth| calls.ask(ms(200), TransferId(nth), get(nth as u32, BRICK)));
        calls.take_outbox();
        assert_eq!(patience(&calls, 204, 0), usual);
        assert_eq!(patience(&calls, 230, 0), Duration::ZERO, "it owes too much");
        assert_eq!(patience(&calls, 230, 1), usual, "of the others nobody is slow");
        // All readers go without it: what it owed them it has shown.
        (100..120).for_each(|nth| calls.call_off(ms(230), TransferId(nth)));
        assert_eq!(patience(&calls, 231, 0), Duration::ZERO);
    }

    fn is_put(packet: &Packet) -> bool {
        matches!(packet.message, Message::PutFragment { .. })
    }
}
