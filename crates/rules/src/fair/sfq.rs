//! Start-time fair queueing with places and delays: SFQ(D), and DSFQ with what gateways say was served elsewhere (formulas 5
//! and 6), under reservations and limits.
//!
//! A stream has one entry in the order, that of its first request; the others of the stream wait behind that one. So each step takes
//! O(log n) for n streams that wait. A request is charged when it leaves the queue: what is withdrawn before was never charged.

use super::clock::{Clock, Tag};
use super::share::{Share, Shares};
use super::{Discipline, Entry, Ticket, Unserved};
use base::{HashMap, StreamId, Time};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use wire::Service;

/// What becomes of delays that a stream's minimum keeps from being applied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum History {
    /// It is forgotten with the request (formula 12).
    Forget,
    /// The stream owes it, and later requests apply it; of what is owed half is forgotten each time this long.
    Keep { half_life: Duration },
}

impl History {
    /// Longer than bursts by which a stream could gain from a shorter memory, and shorter than what operators call unfair.
    pub const USUAL: History = History::Keep { half_life: Duration::from_secs(5) };
}

/// A stream with a reservation gets what it missed in so much time: clients that wait for answers leave gaps.
const RESERVED_LATE_MAX: Duration = Duration::from_millis(100);
/// What a stream was served elsewhere moves its reservation, and its limit, to this time from now at the most: what was served before is no reason to
/// be served less now.
const ELSEWHERE_MAX: Duration = Duration::from_millis(200);
/// The most that a stream owes: about a minute of a fast disk. A gateway that says more than that lies, or was silent for long.
const OWED_MAX: f64 = 4e6;
/// After so many requests that left by reservations one leaves by weight: reservations that a disk cannot meet, as it has become slower, do not starve
/// those that have none.
const RESERVED_RUN_MAX: u32 = 7;
/// The ticket of what begins at once. Seats count from 1.
const AT_ONCE: Ticket = Ticket(0);
/// The part of a request in [`Rates::reserved_part`].
const RESERVED_PART_GAIN: f64 = 1.0 / 16.0;
/// A stream at its limit that waited for a place, or for others, is so much late at the most when it goes on: what it missed before that is lost.
const LIMITED_LATE_MAX: Duration = Duration::from_millis(20);
/// From so many streams on those are forgotten that left nothing behind.
const STREAMS_KEPT: usize = 1024;

/// The order in which streams get a disk.
#[derive(Debug)]
pub struct Sfq {
    clock: Clock,
    history: History,
    shares: Shares,
    /// The start tag of the request that left last by its weight.
    virtual_time: Tag,
    /// The latest finish tag of all. Virtual time where nobody waits: what was served while there was enough for all puts nobody behind.
    latest: Tag,
    streams: HashMap<StreamId, Stream>,
    /// Streams that wait and may go on, by the start tag of their first request.
    by_start: BTreeSet<(Tag, Ticket, StreamId)>,
    /// Those of them that have a reservation, by when it is due.
    by_reservation: BTreeSet<(Time, Ticket, StreamId)>,
    /// Streams that wait and are at their limit, by when they may go on.
    held: BTreeSet<(Time, StreamId)>,
    /// How many requests in a row left by their reservations.
    reserved_run: u32,
    /// How many streams are known when idle ones are looked for next.
    prune_at: usize,
    /// What left by weight so far and was not given back, in units of cost: by this it is known how much others got while a stream waited.
    by_weight: u64,
    /// The greatest cost of a request so far.
    cost_max: u32,
}

/// What is known of a stream, whether it waits or not.
#[derive(Debug, Default)]
struct Stream {
    waiting: BTreeMap<Ticket, Waiting>,
    /// The first of those, as it stands in the order.
    first: Option<First>,
    /// Virtual time when it began to wait.
    since: Tag,
    /// When its first request became the first: by this, and not by the time at which it is looked at, it stands in the order.
    stood: Time,
    /// The finish tag of its request that left last.
    finish: Tag,
    /// Its first request does not stand before this, however often it is looked at again: what it owes decays, and is no claim to what others
    /// were served meanwhile.
    floor: Tag,
    /// What had left by weight, of all streams, when its first request came to stand in the order.
    stood_at: u64,
    /// What was given back of it and is not taken off `Sfq::by_weight` yet.
    refunded: u64,
    /// Served elsewhere, and told without a request, or with one that was withdrawn.
    told: u64,
    owed: Owed,
    /// From when on its next request is within its reservation, and within its limit.
    reserved: Time,
    limited: Time,
    /// So much before now `limited` may be when its next request becomes the first: it might have left then, and had to wait.
    late: Duration,
    rates: Rates,
}

/// What a stream's reservation and limit count of what is served elsewhere.
///
/// They count it as soon as it is told, and do not wait until the request that told it is the first. A limit counts it even before: bricks say which
/// reads of others they serve, and the gateway tells of them when it has an answer and asks again. By then as many requests as the stream has
/// under way could have left at each of its bricks.
#[derive(Clone, Copy, Debug, Default)]
struct Rates {
    /// Told in any way since its last request left, for the reservation.
    reserved: u64,
    /// And for the limit: without what that had counted.
    limited: u64,
    /// The limit counts it already, and it was not told yet.
    counted: u64,
    /// Of its latest requests, the part that left by the reservation: so much of a refund was charged to that.
    reserved_part: f64,
}

impl Rates {
    fn told(&mut self, cost: u64) {
        let counted = cost.min(self.counted);
        self.counted -= counted;
        self.reserved = self.reserved.saturating_add(cost);
        self.limited = self.limited.saturating_add(cost - counted);
    }

    /// A request leaves.
    fn left(&mut self, is_reserved: bool) {
        let part = if is_reserved { 1.0 } else { 0.0 };
        self.reserved_part += (part - self.reserved_part) * RESERVED_PART_GAIN;
        (self.reserved, self.limited) = (0, 0);
    }
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    cost: u32,
    delay: u32,
}

/// The first request of a stream that waits.
#[derive(Clone, Copy, Debug)]
struct First {
    ticket: Ticket,
    cost: u64,
    start: Tag,
    /// When its reservation is due, if it has one.
    reserved: Option<Time>,
    /// Before then the stream's limit holds it back.
    limited: Time,
    /// What remains owed when it leaves, as it was at that moment.
    left: Owed,
}

/// Delays that were not applied yet. Fractions count: what is owed is looked at for each request, and decays a little each time.
#[derive(Clone, Copy, Debug, Default)]
struct Owed {
    cost: f64,
    at: Time,
}

impl Owed {
    fn now(self, now: Time, history: History) -> f64 {
        match history {
            History::Keep { half_life } if self.cost > 0.0 => {
                let halves = now.since(self.at).as_secs_f64() / half_life.as_secs_f64().max(1e-9);
                self.cost * libm::exp2(-halves)
            }
            _ => 0.0,
        }
    }
}

/// The time that this cost takes at so many units a second.
fn time_of(cost: u64, units_per_second: u64) -> Duration {
    let ns = u128::from(cost) * 1_000_000_000 / u128::from(units_per_second.max(1));
    Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}

impl Stream {
    /// How its first request stands in the order, under the clock, share and history that are in force.
    fn stand(&self, now: Time, share: &Share, (clock, history): (Clock, History)) -> Option<First> {
        let (&ticket, &Waiting { cost, delay }) = self.waiting.first_key_value()?;
        let cost = u64::from(cost);
        let told = u64::from(delay).saturating_add(self.told);
        let owed = self.owed.now(now, history);
        let applied = told.saturating_add(owed as u64).min(share.delay_max(cost));
        let start =
            clock.start(self.finish + Tag::of(applied, share.weight()), (self.since, now)).max(self.floor);
        // A time from which on it is within a rate, moved by what it was served elsewhere.
        let moved =
            |from: Time, told, rate| (from + time_of(told, rate)).min(from.max(self.stood + ELSEWHERE_MAX));
        let reserved = (share.reservation() > 0).then(|| {
            moved(self.reserved.max(self.stood - RESERVED_LATE_MAX), self.rates.reserved, share.reservation())
        });
        let limited = match share.limit() {
            0 => Time::ZERO,
            limit => moved(self.within_limit(), self.rates.limited, limit),
        };
        let left = Owed { cost: (told as f64 + owed - applied as f64).clamp(0.0, OWED_MAX), at: now };
        Some(First { ticket, cost, start, reserved, limited, left })
    }

    /// From when on its first request is within its limit, but for what it was served elsewhere.
    fn within_limit(&self) -> Time {
        self.limited.max(self.stood - self.late)
    }

    /// Another brick serves what waited here: its limit counts it now, and not again when that is told.
    fn is_served_elsewhere(&mut self, cost: u64, share: &Share) {
        if share.limit() > 0 {
            self.limited = self.within_limit() + time_of(cost, share.limit());
            self.rates.counted = self.rates.counted.saturating_add(cost);
        }
    }

    /// Whether nothing that is known of it would make a difference.
    fn is_past(&self, now: Time, virtual_time: Tag, history: History) -> bool {
        self.waiting.is_empty()
            && self.told == 0
            && self.rates.reserved.max(self.rates.limited) == 0
            && self.finish <= virtual_time
            && self.owed.now(now, history) < 1.0
            && self.reserved.max(self.limited) <= now
    }
}

impl Sfq {
    /// Nobody waits, and all have the usual share.
    pub fn new(clock: Clock, history: History) -> Sfq {
        Sfq {
            clock,
            history,
            shares: Shares::default(),
            virtual_time: Tag::ZERO,
            latest: Tag::ZERO,
            streams: HashMap::default(),
            by_start: BTreeSet::new(),
            by_reservation: BTreeSet::new(),
            held: BTreeSet::new(),
            reserved_run: 0,
            prune_at: STREAMS_KEPT,
            by_weight: 0,
            cost_max: 0,
        }
    }

    /// The start tag of the request that left last by its weight.
    pub fn virtual_time(&self) -> Tag {
        self.virtual_time
    }

    /// Takes a stream out of the order: how its first request stood.
    fn take(&mut self, id: StreamId) -> Option<First> {
        let first = self.streams.get_mut(&id)?.first.take()?;
        self.by_start.remove(&(first.start, first.ticket, id));
        first.reserved.map(|reserved| self.by_reservation.remove(&(reserved, first.ticket, id)));
        self.held.remove(&(first.limited, id));
        Some(first)
    }

    /// Puts a stream into the order, if it waits.
    fn put(&mut self, now: Time, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.first = stream.stand(now, &self.shares.of(id), (self.clock, self.history));
        let Some(First { ticket, start, reserved, limited, .. }) = stream.first else { return };
        if limited > now {
            self.held.insert((limited, id));
        } else {
            self.by_start.insert((start, ticket, id));
            reserved.map(|reserved| self.by_reservation.insert((reserved, ticket, id)));
        }
    }

    /// Changes what is known of a stream that is known. What others were served while it was at its limit it does not make up for.
    fn change(&mut self, now: Time, id: StreamId, change: impl FnOnce(&mut Stream)) {
        let is_held = |first: First| self.held.contains(&(first.limited, id));
        let was_held = self.streams.get(&id).and_then(|stream| stream.first).is_some_and(is_held);
        let before = self.take(id).map_or(Tag::ZERO, |first| first.start.min(self.virtual_time));
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.floor = stream.floor.max(before);
            if was_held {
                stream.since = stream.since.max(self.virtual_time);
                stream.stood_at = self.by_weight;
            }
            change(stream);
        }
        self.put(now, id);
    }

    /// Who was at its limit and is not any more may go on.
    fn release(&mut self, now: Time) {
        while let Some(&(at, id)) = self.held.first()
            && at <= now
        {
            self.change(now, id, |_| {});
        }
    }

    /// The first request of a stream leaves, and is charged.
    fn leave(&mut self, now: Time, id: StreamId, is_reserved: bool) -> Option<Ticket> {
        let First { ticket, cost, start, reserved, limited, left } = self.take(id)?;
        if !is_reserved {
            self.virtual_time = self.virtual_time.max(start);
        }
        let share = self.shares.of(id);
        let stream = self.streams.get_mut(&id)?;
        stream.waiting.remove(&ticket);
        stream.rates.left(is_reserved);
        stream.stood = now;
        stream.finish = start + Tag::of(cost, share.weight());
        if is_reserved && share.minimum() > 0 {
            // Service that comes first, whatever the weight is, must not be held against its minimum later.
            stream.finish = stream.finish.min(self.virtual_time + Tag::of(cost, share.minimum()));
        }
        let given_back = stream.refunded.min(cost);
        stream.refunded -= given_back;
        if !is_reserved {
            self.by_weight += cost - given_back;
        }
        (stream.floor, stream.stood_at) = (Tag::ZERO, self.by_weight);
        self.latest = self.latest.max(stream.finish);
        stream.told = 0;
        stream.owed = left;
        if let Some(reserved) = reserved {
            let took = if is_reserved { time_of(cost, share.reservation()) } else { Duration::ZERO };
            stream.reserved = reserved + took;
        }
        if share.limit() > 0 {
            stream.limited = limited + time_of(cost, share.limit());
            stream.late = now.since(stream.limited).min(LIMITED_LATE_MAX);
        }
        self.put(now, id);
        Some(ticket)
    }

    /// Forgets streams of which nothing is left that makes a difference, now and then.
    fn prune(&mut self, now: Time) {
        if self.streams.len() < self.prune_at {
            return;
        }
        let (virtual_time, history) = (self.virtual_time, self.history);
        self.streams.retain(|_, stream| !stream.is_past(now, virtual_time, history));
        self.prune_at = (2 * self.streams.len()).max(STREAMS_KEPT);
    }
}

impl Discipline for Sfq {
    fn admits(&mut self, now: Time, service: Service, cost: u32) -> bool {
        let rates = self.streams.get(&service.stream).map_or(Rates::default(), |stream| stream.rates);
        let entry = Entry { ticket: AT_ONCE, service, cost };
        self.push(now, entry);
        let is_next = self.pop(now).is_some();
        if !is_next {
            self.change(now, service.stream, |stream| {
                stream.waiting.remove(&AT_ONCE);
                // It comes again, to wait, and tells it then.
                stream.rates = rates;
            });
        }
        is_next
    }

    fn push(&mut self, now: Time, entry: Entry) {
        self.prune(now);
        let Entry { ticket, service: Service { stream: id, delay }, cost } = entry;
        if self.by_start.is_empty() && self.held.is_empty() {
            self.virtual_time = self.virtual_time.max(self.latest);
        }
        let virtual_time = self.virtual_time;
        self.cost_max = self.cost_max.max(cost);
        let share = self.shares.of(id);
        let has_rates = share.reservation() > 0 || share.limit() > 0;
        let stream = self.streams.entry(id).or_default();
        stream.waiting.insert(ticket, Waiting { cost, delay });
        if stream.waiting.len() > 1 && has_rates && delay > 0 {
            self.change(now, id, |stream| stream.rates.told(u64::from(delay)));
        } else if stream.waiting.len() == 1 {
            stream.rates.told(u64::from(delay));
            (stream.since, stream.stood) = (virtual_time, now);
            (stream.floor, stream.stood_at) = (Tag::ZERO, self.by_weight);
            self.put(now, id);
        }
    }

    fn pop(&mut self, now: Time) -> Option<Ticket> {
        self.release(now);
        let due = self.by_reservation.first().filter(|(due, ..)| *due <= now).map(|(.., id)| *id);
        let due = due.filter(|_| self.reserved_run < RESERVED_RUN_MAX);
        self.reserved_run = if due.is_some() { self.reserved_run + 1 } else { 0 };
        let id = due.or_else(|| self.by_start.first().map(|(.., id)| *id))?;
        self.leave(now, id, due.is_some())
    }

    /// Its delay was served elsewhere all the same.
    fn remove(&mut self, now: Time, entry: Entry, why: Unserved) {
        let share = self.shares.of(entry.service.stream);
        self.change(now, entry.service.stream, |stream| {
            if let Some(Waiting { delay, cost }) = stream.waiting.remove(&entry.ticket) {
                stream.told = stream.told.saturating_add(u64::from(delay));
                if why == Unserved::ByAnother {
                    stream.is_served_elsewhere(u64::from(cost), &share);
                }
            }
        });
    }

    fn refund(&mut self, now: Time, id: StreamId, cost: u32, why: Unserved) {
        let (cost, share) = (u64::from(cost), self.shares.of(id));
        self.change(now, id, |stream| {
            stream.finish = stream.finish - Tag::of(cost, share.weight());
            stream.floor = stream.floor - Tag::of(cost, share.weight());
            stream.refunded += cost;
            if share.reservation() > 0 {
                let part = stream.rates.reserved_part;
                stream.reserved = stream.reserved - time_of(cost, share.reservation()).mul_f64(part);
            }
            match why {
                // The charge stands for what will be told.
                Unserved::ByAnother if share.limit() > 0 => stream.rates.counted += cost,
                Unserved::Dropped if share.limit() > 0 => {
                    stream.limited = stream.limited - time_of(cost, share.limit());
                    // It was held for what it was not served.
                    stream.late = stream.late.max(stream.stood.since(stream.limited)).min(LIMITED_LATE_MAX);
                }
                _ => {}
            }
        });
    }

    fn elsewhere(&mut self, now: Time, id: StreamId, cost: u32) {
        self.change(now, id, |stream| {
            stream.told = stream.told.saturating_add(u64::from(cost));
            stream.rates.told(u64::from(cost));
        });
    }

    fn set_shares(&mut self, now: Time, shares: &Shares) {
        let waiting: Vec<StreamId> =
            self.by_start.iter().map(|(.., id)| *id).chain(self.held.iter().map(|(_, id)| *id)).collect();
        for id in &waiting {
            self.take(*id);
        }
        self.shares = shares.clone();
        let (virtual_time, by_weight, cost_max) = (self.virtual_time, self.by_weight, self.cost_max);
        for (id, stream) in &mut self.streams {
            // What a stream did not get under its old share it does not make up for under the new one, and a minimum holds from now on.
            (stream.floor, stream.stood_at) = (virtual_time, by_weight);
            let minimum = self.shares.of(*id).minimum();
            if minimum > 0 {
                let most = virtual_time + Tag::of(u64::from(cost_max), minimum);
                stream.finish = stream.finish.min(most);
            }
        }
        waiting.into_iter().for_each(|id| self.put(now, id));
    }

    fn deadline(&self) -> Option<Time> {
        self.held.first().filter(|_| self.by_start.is_empty()).map(|(at, _)| *at)
    }

    /// No stream starves that has a minimum, and is not held back by a limit: what left by weight since its first request came to stand in the order
    /// is bounded.
    ///
    /// *The bound.* Let that request stand since virtual time was `v`, `w` be the stream's weight, `m` its minimum, and `c` the greatest cost. The
    /// finish tag of its request before is at most `v + c/m`, as each request moves `v` to its own start or is cut to that ([`Sfq::leave`]).
    /// The request applies a delay of at most `(w/m - 1) c`, which is `c/m - c/w` on the tag, whatever gateways say. So it starts at
    /// `v + 2c/m` at the latest, and nothing that starts later leaves before it by weight. Another stream of weight `w_g` stands at `v` at the earliest,
    /// but for what was given back to it, which is not counted; so it gets `w_g 2c/m` at the most, and what exceeds that is part of
    /// one request. Between two requests that leave by weight at most [`RESERVED_RUN_MAX`] leave by their reservations.
    fn check(&self) {
        assert!(self.reserved_run <= RESERVED_RUN_MAX, "reservations leave something to the others");
        // Streams that were served meanwhile may be forgotten from so many on, and other clocks promise other things.
        if self.streams.len() >= STREAMS_KEPT || self.clock != Clock::StartTime {
            return;
        }
        let weights: u128 = self.streams.keys().map(|id| u128::from(self.shares.of(*id).weight())).sum();
        let (streams, cost_max) = (self.streams.len() as u128, u128::from(self.cost_max));
        for (_, _, id) in &self.by_start {
            let share = self.shares.of(*id);
            let (others, minimum) = (weights - u128::from(share.weight()), u128::from(share.minimum()));
            let Some(stream) = self.streams.get(id).filter(|_| minimum > 0) else { continue };
            let got = u128::from(self.by_weight - stream.stood_at);
            // Tags are rounded down: a unit a stream.
            let bound = others * 2 * cost_max / minimum + streams * (cost_max + 1);
            assert!(
                got <= bound,
                "{id:?} waits while others get {got} units, and {bound} at the most: {stream:?}"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn id(stream: u32) -> StreamId {
        StreamId(stream)
    }

    /// Streams 1, 2, ... with these shares.
    fn sfq(history: History, shares: &[Share]) -> Sfq {
        let mut sfq = Sfq::new(Clock::StartTime, history);
        let shares = (1..).map(id).zip(shares.iter().copied());
        sfq.set_shares(Time::ZERO, &shares.collect());
        sfq
    }

    /// So many requests of cost 10, whose tickets begin with the stream's number times 1000.
    fn push(sfq: &mut Sfq, now: Time, stream: u32, count: u64) {
        for number in 0..count {
            let ticket = Ticket(u64::from(stream) * 1000 + now.0 / 1_000_000 + number);
            let service = Service { stream: id(stream), delay: 0 };
            sfq.push(now, Entry { ticket, service, cost: 10 });
        }
    }

    /// Serves one request each millisecond, and keeps three of each stream waiting: how many of each leave in so many milliseconds.
    fn served<const STREAMS: usize>(sfq: &mut Sfq, from: Time, ms: u64) -> [u64; STREAMS] {
        let mut served = [0; STREAMS];
        let mut waiting = [0u64; STREAMS];
        for at in 0..ms {
            let now = from + MS * at as u32;
            for (stream, waiting) in waiting.iter_mut().enumerate() {
                for number in *waiting..3 {
                    let ticket = Ticket((at + 1) * 100 + (stream as u64) * 10 + number);
                    let service = Service { stream: id(stream as u32 + 1), delay: 0 };
                    sfq.push(now, Entry { ticket, service, cost: 10 });
                }
                *waiting = 3;
            }
            if let Some(Ticket(number)) = sfq.pop(now) {
                let stream = (number % 100 / 10) as usize;
                waiting[stream] -= 1;
                served[stream] += 1;
            }
            sfq.check();
        }
        served
    }

    #[test]
    fn service_is_in_proportion_to_weights_and_a_new_weight_counts_at_once() {
        let mut sfq = sfq(History::USUAL, &[1, 2, 4].map(Share::total));
        assert_eq!(served::<3>(&mut sfq, Time::ZERO, 700), [100, 200, 400]);
        let shares = (1..).map(id).zip([4, 2, 1].map(Share::total)).collect();
        let now = Time::ZERO + 701 * MS;
        sfq.set_shares(now, &shares);
        let [first, second, third] = served::<3>(&mut sfq, now, 700);
        assert!(first.abs_diff(400) < 4 && second.abs_diff(200) < 4 && third.abs_diff(100) < 4);
    }

    /// Two bricks, each of which could serve a stream's limit alone, and tells the other with each request, of which 64 wait: the first second is like any
    /// other.
    #[test]
    fn a_limit_counts_what_was_served_elsewhere_before_the_request_that_tells_it_is_first() {
        let shares = [Share::total(100).with_rates(0, 5_000)];
        let mut bricks = [sfq(History::USUAL, &shares), sfq(History::USUAL, &shares)];
        let (mut next, mut served, mut untold) = (0, 0, [0u32; 2]);
        let mut waiting = [0u64; 2];
        for at in 0..1_000 {
            let now = Time::ZERO + MS * at;
            for (brick, sfq) in bricks.iter_mut().enumerate() {
                for _ in core::mem::replace(&mut waiting[brick], 64)..64 {
                    next += 1;
                    let delay = core::mem::take(&mut untold[brick]);
                    sfq.push(
                        now,
                        Entry { ticket: Ticket(next), service: Service { stream: id(1), delay }, cost: 10 },
                    );
                }
                if sfq.pop(now).is_some() {
                    waiting[brick] -= 1;
                    untold[1 - brick] += 10;
                    served += 1;
                }
            }
        }
        assert!((470..=515).contains(&served), "500 a second: {served}");
    }

    /// Two bricks that are asked for the same, and the gateway stands still so that neither is told: each hears from the other what that serves.
    #[test]
    fn a_limit_counts_what_another_brick_serves_before_that_is_told() {
        let shares = [Share::total(100).with_rates(0, 5_000)];
        let mut bricks = [sfq(History::USUAL, &shares), sfq(History::USUAL, &shares)];
        let entry = |ticket, delay| {
            let service = Service { stream: id(1), delay };
            Entry { ticket: Ticket(ticket), service, cost: 10 }
        };
        for sfq in &mut bricks {
            (0..64).for_each(|ticket| sfq.push(Time::ZERO, entry(ticket, 0)));
        }
        let mut served = [0; 2];
        let turns = |bricks: &mut [Sfq; 2], served: &mut [u32; 2], now| {
            for brick in 0..2 {
                if let Some(ticket) = bricks[brick].pop(now) {
                    served[brick] += 1;
                    let other = &mut bricks[1 - brick];
                    other.remove(now, Entry { ticket, ..entry(0, 0) }, Unserved::ByAnother);
                }
            }
            served[0] + served[1]
        };
        for at in 0..100 {
            turns(&mut bricks, &mut served, Time::ZERO + MS * at);
        }
        let now = Time::ZERO + 100 * MS;
        assert_eq!(turns(&mut bricks, &mut served, now), 51, "500 a second");
        // Now it is told, and no time is lost by that.
        for (sfq, elsewhere) in bricks.iter_mut().zip([served[1], served[0]]) {
            sfq.elsewhere(now, id(1), elsewhere * 10);
        }
        assert_eq!(turns(&mut bricks, &mut served, now + MS), 51);
        assert_eq!(turns(&mut bricks, &mut served, now + 2 * MS), 52);
    }

    /// Its limit ends, and before anybody looks something is told of it: it stands from then on, and not from when it was held.
    #[test]
    fn what_others_get_while_a_stream_is_at_its_limit_keeps_nothing_from_its_minimum() {
        let shares = [Share::total(100).with_minimum(100).with_rates(0, 100), Share::total(100)];
        let mut sfq = sfq(History::USUAL, &shares);
        push(&mut sfq, Time::ZERO, 1, 2);
        push(&mut sfq, Time::ZERO, 2, 50);
        for at in 0..20 {
            assert!(sfq.pop(Time::ZERO + MS * at).is_some());
            sfq.check();
        }
        sfq.elsewhere(Time::ZERO + 101 * MS, id(1), 0);
        sfq.check();
        assert_eq!(sfq.pop(Time::ZERO + 101 * MS), Some(Ticket(1001)));
    }

    /// It is asked first whether it may begin at once, and counts once.
    #[test]
    fn a_request_that_may_not_begin_at_once_tells_its_delay_once() {
        let shares = [Share::total(100).with_rates(0, 1_000)];
        let mut sfq = sfq(History::USUAL, &shares);
        let service = |delay| Service { stream: id(1), delay };
        assert!(sfq.admits(Time::ZERO, service(0), 10));
        assert!(!sfq.admits(Time::ZERO, service(5), 10));
        sfq.push(Time::ZERO, Entry { ticket: Ticket(7), service: service(5), cost: 10 });
        assert_eq!((sfq.pop(Time::ZERO), sfq.deadline()), (None, Some(Time::ZERO + 15 * MS)));
        assert_eq!(sfq.pop(Time::ZERO + 15 * MS), Some(Ticket(7)));
    }

    /// A thousand units of ten a second: reservations come first, the rest is shared by weight.
    #[test]
    fn a_reservation_is_met_whatever_the_weights_are() {
        let shares = [Share::total(1).with_rates(5_000, 0), Share::total(100), Share::total(100)];
        let [first, second, third] = served::<3>(&mut sfq(History::USUAL, &shares), Time::ZERO, 1_000);
        assert!(first.abs_diff(500) <= 25, "{first}");
        assert!(second.abs_diff(third) <= 2, "{second} {third}");
    }

    #[test]
    fn reservations_that_cannot_be_met_leave_something_to_the_others() {
        let shares = [Share::total(1).with_rates(1 << 40, 0), Share::total(1)];
        let [_, second] = served::<2>(&mut sfq(History::USUAL, &shares), Time::ZERO, 800);
        assert_eq!(second, 100);
    }

    #[test]
    fn a_limit_is_kept_in_each_tenth_of_a_second_and_leaves_the_rest_to_others() {
        let shares = [Share::total(100).with_rates(0, 2_000), Share::total(1)];
        let mut sfq = sfq(History::USUAL, &shares);
        for tenth in 0..10 {
            let [first, second] = served::<2>(&mut sfq, Time::ZERO + 100 * MS * tenth, 100);
            assert!((19..=21).contains(&first), "{first}");
            assert_eq!(first + second, 100, "work is conserved");
        }
    }

    /// Two of three requests that begin are left to other bricks, some time later. Of a stream with a weight of 1 and of 1000, beside one of 100: what it
    /// is served in a second, with these rates.
    fn contested(weight: u32, reservation: u64, limit: u64) -> u64 {
        let shares = [Share::total(weight).with_rates(reservation, limit), Share::total(100)];
        let mut sfq = sfq(History::USUAL, &shares);
        let (mut served, mut next, mut begun) = (0, 0, Vec::new());
        let (mut waiting, mut left) = ([0u64; 2], [0u64; 2]);
        for at in 0..3_000 {
            let now = Time::ZERO + MS * at;
            for (stream, waiting) in waiting.iter_mut().enumerate() {
                for _ in core::mem::replace(waiting, 8)..8 {
                    next += 2;
                    let service = Service { stream: id(stream as u32 + 1), delay: 0 };
                    sfq.push(now, Entry { ticket: Ticket(next + stream as u64), service, cost: 10 });
                }
            }
            // What began four steps ago is known to be left elsewhere, or to be served here.
            begun.retain(|(since, stream, is_served): &(u32, usize, bool)| {
                if since + 4 == at && !is_served {
                    sfq.refund(now, id(*stream as u32 + 1), 10, Unserved::Dropped);
                }
                since + 4 > at
            });
            if let Some(Ticket(number)) = sfq.pop(now) {
                let stream = (number % 2) as usize;
                waiting[stream] -= 1;
                left[stream] += 1;
                let is_served = left[stream] % 3 == 0;
                begun.push((at, stream, is_served));
                served += u64::from(stream == 0 && is_served && at >= 1_000);
            }
        }
        served / 2
    }

    /// A disk that begins a thousand requests of ten units a second, and serves a third of them.
    #[test]
    fn what_is_left_to_others_counts_against_neither_reservation_nor_limit() {
        let reserved = contested(1, 2_000, 0);
        assert!((190..=215).contains(&reserved), "200 are reserved: {reserved}");
        let limited = contested(1_000, 0, 2_000);
        assert!((190..=205).contains(&limited), "200 are the limit: {limited}");
    }

    /// It counts once, however often the stream is looked at.
    #[test]
    fn what_is_told_of_a_stream_at_its_limit_moves_it_once() {
        let mut sfq = sfq(History::USUAL, &[Share::total(100).with_rates(0, 1_000)]);
        push(&mut sfq, Time::ZERO, 1, 2);
        assert_eq!(sfq.pop(Time::ZERO), Some(Ticket(1000)));
        assert_eq!((sfq.pop(Time::ZERO), sfq.deadline()), (None, Some(Time::ZERO + 10 * MS)));
        sfq.elsewhere(Time::ZERO + MS, id(1), 5);
        assert_eq!((sfq.pop(Time::ZERO + 10 * MS), sfq.deadline()), (None, Some(Time::ZERO + 15 * MS)));
        assert_eq!(sfq.pop(Time::ZERO + 15 * MS), Some(Ticket(1001)));
    }

    #[test]
    fn what_was_left_to_others_is_not_charged_and_what_is_told_is() {
        let mut sfq = sfq(History::USUAL, &[Share::total(1), Share::total(1)]);
        push(&mut sfq, Time::ZERO, 1, 3);
        push(&mut sfq, Time::ZERO, 2, 3);
        assert_eq!(sfq.pop(Time::ZERO), Some(Ticket(1000)));
        sfq.refund(Time::ZERO, id(1), 10, Unserved::Dropped);
        assert_eq!(sfq.pop(Time::ZERO), Some(Ticket(1001)), "as if the first had not been");
        sfq.elsewhere(Time::ZERO, id(2), 25);
        assert_eq!(
            [sfq.pop(Time::ZERO), sfq.pop(Time::ZERO)].map(Option::unwrap),
            [Ticket(1002), Ticket(2000)]
        );
    }

    /// A stream that owes pays for it with every request, and keeps its minimum.
    #[test]
    fn what_a_minimum_keeps_from_being_applied_is_owed_or_forgotten() {
        let shares = [Share::total(100).with_minimum(50), Share::total(100)];
        let part = |history| {
            let mut sfq = sfq(history, &shares);
            served::<2>(&mut sfq, Time::ZERO, 100);
            sfq.elsewhere(Time::ZERO + 100 * MS, id(1), 1_000);
            served::<2>(&mut sfq, Time::ZERO + 100 * MS, 300)
        };
        let [kept, _] = part(History::Keep { half_life: Duration::from_secs(1_000) });
        assert!((99..=104).contains(&kept), "a third, as long as it owes: {kept}");
        let [forgotten, _] = part(History::Forget);
        assert!((147..=151).contains(&forgotten), "{forgotten}");
    }

    /// Whatever gateways say of streams 1 and 2, each gets its minimum: 10 of 10, 10 and 100.
    #[test]
    fn lies_take_no_streams_minimum_and_are_forgotten_in_a_minute() {
        let shares = [10, 10, 10].map(|minimum| Share::total(100).with_minimum(minimum));
        let mut sfq = sfq(History::USUAL, &shares);
        let (mut now, mut last, mut waiting) = (Time::ZERO, 0, [0; 3]);
        let mut run = |requests: u64, lies: bool| {
            let mut served = [0; 3];
            for _ in 0..requests {
                now += MS;
                for stream in 0..3u32 {
                    let missing = 3 - core::mem::replace(&mut waiting[stream as usize], 3);
                    for _ in 0..missing {
                        last += 3;
                        let delay = if lies && stream < 2 { u32::MAX } else { 0 };
                        let service = Service { stream: id(stream + 1), delay };
                        sfq.push(now, Entry { ticket: Ticket(last + u64::from(stream)), service, cost: 10 });
                    }
                }
                if lies {
                    sfq.elsewhere(now, id(2), u32::MAX);
                }
                let Ticket(number) = sfq.pop(now).expect("they wait");
                sfq.check();
                let stream = (number % 3) as usize;
                waiting[stream] -= 1;
                served[stream] += 1;
            }
            served
        };
        let served = run(1_200, true);
        assert!(served[0] >= 99 && served[1] >= 99, "{served:?}");
        run(60_000, false);
        let served = run(300, false);
        assert!(served.iter().all(|served| (95..=105).contains(served)), "{served:?}");
    }

    /// Stream 1 is told to have had much elsewhere, and waits for that at a weight of 1.
    #[test]
    fn a_greater_weight_is_no_claim_to_what_others_were_served_before() {
        let shares = |weight| [Share::total(weight), Share::total(100).with_minimum(10)];
        let mut sfq = sfq(History::USUAL, &shares(1));
        push(&mut sfq, Time::ZERO, 1, 1);
        sfq.elsewhere(Time::ZERO, id(1), 1_000_000);
        let [first, second] = served::<2>(&mut sfq, Time::ZERO, 5_000);
        assert_eq!((first, second), (0, 5_000));
        let now = Time::ZERO + 5_000 * MS;
        sfq.set_shares(now, &(1..).map(id).zip(shares(100_000)).collect());
        let [_, second] = served::<2>(&mut sfq, now, 10_000);
        assert!(second >= 9, "a thousandth of 10,000: {second}");
    }

    /// Stream 1 has half of the disk by its reservation, and a hundredth of it by its weight.
    #[test]
    fn who_had_a_reservation_keeps_its_minimum_without_it() {
        let share = Share::total(2).with_minimum(1);
        let shares = |reservation| [share.with_rates(reservation, 0), Share::total(99), Share::total(99)];
        let mut sfq = sfq(History::USUAL, &shares(5_000));
        let [first, ..] = served::<3>(&mut sfq, Time::ZERO, 20_000);
        assert!(first > 9_000, "{first}");
        let now = Time::ZERO + 20_000 * MS;
        sfq.set_shares(now, &(1..).map(id).zip(shares(0)).collect());
        let [first, ..] = served::<3>(&mut sfq, now, 2_000);
        assert!((18..=22).contains(&first), "a hundredth of 2,000: {first}");
    }

    #[test]
    fn streams_that_left_nothing_behind_are_forgotten() {
        let mut sfq = sfq(History::USUAL, &[]);
        for stream in 0..100_000 {
            let now = Time::ZERO + MS * stream;
            push(&mut sfq, now, stream, 1);
            assert!(sfq.pop(now).is_some());
        }
        assert!(sfq.streams.len() <= 2 * STREAMS_KEPT, "{}", sfq.streams.len());
    }
}
