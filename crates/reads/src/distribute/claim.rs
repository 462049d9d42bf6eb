//! Reads bound late: a read waits at every brick that could serve it, and the first that can claims it. After D-SPTF
//! (Lumb, Golding, Ganger: ASPLOS 2004), sections 3 and 3.1.
//!
//! A [`Claims`] stands before one disk. It owns the queue of what waits for it: reads that other holders could serve as
//! well, and work that is the disk's own (destaged writes, reads of blocks that nobody else has). A little before the
//! disk is free it chooses by positioning time, tells the other holders by a claim that carries that time as its bid, and
//! waits two one-way latencies for theirs. The lowest bid wins, a tie goes to the lowest brick, and when a claim was sent
//! counts for nothing: each brick judges alone, and all come to the same judgement. Who loses drops the read and chooses
//! again.
//!
//! A claim that is lost or late costs a second service, which the client squashes, and never an answer: a read leaves
//! the queue only by being served, cancelled, or claimed by a brick that said so. A claimer that dies is the client's
//! to notice; its retry carries a higher attempt, which earlier claims do not touch.
//!
//! Without rotation there is no time to hide the wait in. Such a device ([`Config::defer`]) serves at once what it was
//! the best last-known bidder for, and leaves a read to another for the time that that one said it needs ([`bids`]).
//!
//! Reading order: `words` ([`Event`] and [`Effect`]), `choose`, `on_claim`; then [`bids`], `recent`, [`estimate`].
//!
//! Deliberately absent: caches and journals (the brick's; it tells of a hit by [`Event::Hit`]), and messages: the driver
//! sends an [`Effect::Claim`] to all holders but this brick.

pub mod bids;
mod entries;
pub mod estimate;
mod recent;
#[cfg(test)]
mod tests;
mod words;

use base::{BrickId, Depth, HashMap, Machine, Mechanics, Position, Time};
use bids::{Bids, Expected};
use core::time::Duration;
use entries::{Entries, Entry, Place};
use recent::Recent;
use rules::heads::HeadQueue;
use std::collections::BTreeSet;
pub use words::{Attempt, Config, Counts, Dropped, Effect, Event, Holders, ReadId};

#[derive(Clone, Copy, Debug)]
struct Chosen {
    entry: u32,
    bid_ns: u64,
    issue_at: Time,
}

/// The claims of one disk. `M` predicts its device; `T` is the driver's own word for an access.
///
/// Its memory is bounded: by [`Config::waiting_max`], and by the local work that its driver admits.
#[derive(Debug)]
pub struct Claims<M, T> {
    config: Config,
    device: M,
    entries: Entries<T>,
    waiting: HeadQueue<u32>,
    deferred: BTreeSet<(Time, u32)>,
    reads: HashMap<ReadId, u32>,
    recent: Recent,
    bids: Bids,
    chosen: Option<Chosen>,
    /// Whether a better bidder has what was chosen to be issued next.
    has_lost: bool,
    serving: u32,
    free: Option<Time>,
    counts: Counts,
}

impl<M: Mechanics, T> Claims<M, T> {
    /// A disk with nothing to do.
    pub fn new(config: Config, device: M) -> Claims<M, T> {
        Claims {
            config,
            device,
            entries: Entries::default(),
            waiting: HeadQueue::new(config.policy),
            deferred: BTreeSet::new(),
            reads: HashMap::default(),
            recent: Recent::new(config.recent),
            bids: Bids::new(config.brick, config.defer.unwrap_or_default()),
            chosen: None,
            has_lost: false,
            serving: 0,
            free: None,
            counts: Counts::default(),
        }
    }

    /// The device, for the driver to serve with and to tell what it measured.
    pub fn device_mut(&mut self) -> &mut M {
        &mut self.device
    }

    pub fn device(&self) -> &M {
        &self.device
    }

    /// How often things happened.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Accesses that wait, chosen and deferred ones among them.
    pub fn waiting(&self) -> usize {
        self.entries.len()
    }

    /// All accesses that wait.
    pub fn into_waiting(self) -> impl Iterator<Item = T> {
        self.entries.into_items()
    }

    /// A read that waits here.
    pub fn get(&self, read: ReadId) -> Option<&T> {
        self.reads.get(&read).map(|index| &self.entries[*index].item)
    }

    /// Accesses at the device.
    pub fn serving(&self) -> u32 {
        self.serving
    }

    fn on_read(&mut self, now: Time, read: Arriving<T>, fx: &mut Vec<Effect<T>>) {
        self.counts.arrived += 1;
        let Arriving { attempt, data, sector, holders, item } = read;
        if let Some(&index) = self.reads.get(&attempt.read) {
            let known = &mut self.entries[index].attempt.number;
            *known = attempt.number.max(*known);
            return self.drop_item(item, Dropped::Squashed, fx);
        }
        if self.recent.covers(attempt) {
            return self.drop_item(item, Dropped::Squashed, fx);
        }
        if self.entries.len() >= self.config.waiting_max {
            return self.drop_item(item, Dropped::Full, fx);
        }
        let position = self.device.position_of(sector, false);
        let left_to = data.and_then(|data| self.left_to(data, &holders, now));
        let entry = Entry { place: Place::Nowhere, attempt, holders: Some(holders), position, item };
        let index = self.entries.insert(entry);
        self.reads.insert(attempt.read, index);
        match left_to {
            None => self.enqueue(index),
            Some(place) => {
                self.entries[index].place = place;
                if let Place::Deferred { until, .. } = place {
                    self.deferred.insert((until, index));
                }
            }
        }
    }

    /// For whom a read waits here, and until when, on a device that has no rotation to wait in. Whose turn comes
    /// waits for the best's time and for its claim, and long enough to hear of those who had their turn before.
    fn left_to(&self, data: u64, holders: &Holders, now: Time) -> Option<Place> {
        self.config.defer?;
        let own_ns = self.device.positioning_ns(now, &Position::default());
        let Expected { best: to, bid_ns, turn } = self.bids.expected(data, holders, own_ns, now);
        let heard_ns = self.config.wait_ns().max(self.bids.late_ns());
        let at_turn =
            |turn: u64| now + Duration::from_nanos(bid_ns.saturating_add(heard_ns.saturating_mul(turn)));
        // The first turn stays empty where the best is first by the data's hash too.
        let passed = at_turn(turn.saturating_sub(1).min(2));
        (turn > 0).then_some(Place::Deferred { since: now, until: at_turn(turn), passed, to, turn })
    }

    fn on_local(&mut self, sector: u64, is_write: bool, item: T) {
        self.counts.arrived += 1;
        let position = self.device.position_of(sector, is_write);
        let (attempt, holders) = (Attempt::default(), None);
        let index = self.entries.insert(Entry { place: Place::Nowhere, attempt, holders, position, item });
        self.enqueue(index);
    }

    fn enqueue(&mut self, index: u32) {
        let ticket = self.waiting.push(self.entries[index].position, index);
        self.entries[index].place = Place::Waiting(ticket);
    }

    fn on_hit(&mut self, now: Time, attempt: Attempt, holders: Holders, fx: &mut Vec<Effect<T>>) {
        self.on_cancel(attempt.read, fx);
        self.claim(now, attempt, 0, holders, fx);
    }

    fn claim(&mut self, now: Time, attempt: Attempt, bid_ns: u64, holders: Holders, fx: &mut Vec<Effect<T>>) {
        self.counts.claims += 1;
        self.recent.note(attempt);
        if bid_ns > 0 {
            self.bids.heard(self.config.brick, bid_ns, now);
        }
        fx.push(Effect::Claim { attempt, bid_ns, holders });
    }

    fn on_claim(&mut self, now: Time, attempt: Attempt, bid: (u64, BrickId), fx: &mut Vec<Effect<T>>) {
        if bid.0 > 0 {
            self.bids.heard(bid.1, bid.0, now);
        }
        let Some(&index) = self.reads.get(&attempt.read) else { return self.recent.note(attempt) };
        if attempt.number < self.entries[index].attempt.number {
            return;
        }
        if let (Place::Chosen, Some(chosen)) = (self.entries[index].place, self.chosen) {
            self.counts.conflicts += 1;
            if bid > (chosen.bid_ns, self.config.brick) {
                return;
            }
            self.counts.lost += 1;
            self.has_lost = true;
        }
        if let Place::Deferred { since, passed, to, turn, .. } = self.entries[index].place {
            self.bids.claimed(now.since(since));
            // Someone whose turn was earlier took up what the best had let pass: here it is not waited for again either.
            if bid.1 != to && turn > 1 && now >= passed {
                self.bids.heard(to, u64::MAX, now);
            }
        }
        self.recent.note(attempt);
        let item = self.take(index).item;
        self.drop_item(item, Dropped::Claimed(bid.1), fx);
    }

    fn on_cancel(&mut self, read: ReadId, fx: &mut Vec<Effect<T>>) {
        if let Some(&index) = self.reads.get(&read) {
            let item = self.take(index).item;
            self.drop_item(item, Dropped::Cancelled, fx);
        }
    }

    fn drop_item(&mut self, item: T, why: Dropped, fx: &mut Vec<Effect<T>>) {
        match why {
            Dropped::Claimed(_) => self.counts.claimed_away += 1,
            Dropped::Squashed => self.counts.squashed += 1,
            Dropped::Cancelled => self.counts.cancelled += 1,
            Dropped::Full => self.counts.refused += 1,
        }
        fx.push(Effect::Drop { item, why });
    }

    /// Takes an entry out of wherever it stands.
    fn take(&mut self, index: u32) -> Entry<T> {
        let entry = self.entries.remove(index);
        match entry.place {
            Place::Waiting(ticket) => {
                let found = self.waiting.remove(ticket);
                assert!(
                    found == Some(index),
                    "access {index} waits, and the queue holds {found:?} in its place"
                );
            }
            Place::Deferred { until, .. } => {
                self.deferred.remove(&(until, index));
            }
            Place::Chosen => self.chosen = None,
            Place::Nowhere => {}
        }
        if entry.holders.is_some() {
            self.reads.remove(&entry.attempt.read);
        }
        entry
    }

    fn on_done(&mut self) {
        assert!(self.serving > 0, "an access ended, and none was under way");
        self.serving -= 1;
        self.free = None;
    }

    /// Does all that is due: who waited long enough for another brick, the next choice, the next issue.
    fn advance(&mut self, now: Time, fx: &mut Vec<Effect<T>>) {
        self.overtake(now);
        loop {
            if self.chosen.is_none() && self.choose_at().is_some_and(|at| at <= now) {
                self.choose(now, fx);
            }
            match self.chosen {
                Some(chosen) if self.serving < self.config.depth && chosen.issue_at <= now => {
                    self.issue(chosen, fx)
                }
                _ => return,
            }
        }
    }

    fn overtake(&mut self, now: Time) {
        while let Some(&(until, index)) = self.deferred.first()
            && until <= now
        {
            self.deferred.pop_first();
            self.counts.overtaken += 1;
            if let Place::Deferred { since, to, turn, .. } = self.entries[index].place {
                self.bids.silent(to, now.since(since) / u32::try_from(turn.max(1)).unwrap_or(1), now);
            }
            self.enqueue(index);
        }
    }

    /// When the next access is to be chosen; the past when at once.
    fn choose_at(&self) -> Option<Time> {
        if self.waiting.is_empty() {
            return None;
        }
        if self.serving < self.config.depth {
            return Some(Time::ZERO);
        }
        self.free.map(|free| Time(free.0.saturating_sub(self.config.wait_ns())))
    }

    /// Chooses for the head as it will be when the command can go out, and claims what others could serve. Their claims
    /// are heard for the whole wait where the access under way is too short to hide it (section 5.3.2). An idle disk
    /// waits only as long as the platter makes it wait anyway (section 3.1), and so does one that lost what it had
    /// chosen: it has waited once.
    fn choose(&mut self, now: Time, fx: &mut Vec<Effect<T>>) {
        self.counts.choices += 1;
        self.counts.choices_seen += self.waiting.len() as u64;
        let after_wait = now + Duration::from_nanos(self.config.wait_ns());
        let idle = self.serving < self.config.depth;
        let free = if idle { now } else { self.free.unwrap_or(now).max(now) };
        let hides_in_rotation = idle || self.has_lost || self.config.hold_rotation_only;
        let start = if hides_in_rotation { free } else { free.max(after_wait) };
        let device = Held { device: &self.device, held: start.since(free) };
        let Some(picked) = self.waiting.pick(free, &device) else { return };
        let entry = picked.item;
        let waiting = &mut self.entries[entry];
        waiting.place = Place::Chosen;
        let (attempt, position) = (waiting.attempt, waiting.position);
        let shared = waiting.holders.clone().filter(|holders| holders.len() > 1);
        let mut issue_at = now;
        let bid_ns = self.device.positioning_ns(start, &position);
        if let Some(holders) = shared {
            let rotation = Duration::from_nanos(self.device.rotation_ns(start, &position));
            issue_at = if hides_in_rotation { after_wait.min(start + rotation) } else { after_wait };
            self.claim(now, attempt, bid_ns, holders, fx);
        }
        self.chosen = Some(Chosen { entry, bid_ns, issue_at });
    }

    fn issue(&mut self, chosen: Chosen, fx: &mut Vec<Effect<T>>) {
        self.serving += 1;
        (self.free, self.has_lost) = (None, false);
        self.counts.issued += 1;
        let item = self.take(chosen.entry).item;
        fx.push(Effect::Issue { item });
    }

    fn check_deep(&self) {
        let (mut waiting, mut deferred, mut chosen, mut reads) = (0, 0, 0, 0);
        for (index, entry) in self.entries.iter() {
            match entry.place {
                Place::Waiting(ticket) => {
                    waiting += 1;
                    assert_eq!(
                        self.waiting.get(ticket),
                        Some(&index),
                        "access {index} is not where it waits"
                    );
                }
                Place::Deferred { until, .. } => {
                    deferred += 1;
                    assert!(
                        self.deferred.contains(&(until, index)),
                        "deferred access {index} would never be taken up"
                    );
                }
                Place::Chosen => chosen += 1,
                Place::Nowhere => panic!("access {index} is neither waiting nor chosen"),
            }
            if entry.holders.is_some() {
                reads += 1;
                assert_eq!(
                    self.reads.get(&entry.attempt.read),
                    Some(&index),
                    "a claim would not find access {index}"
                );
            }
        }
        assert_eq!(waiting, self.waiting.len(), "the head's queue holds what no longer waits");
        assert_eq!(deferred, self.deferred.len(), "deferred accesses that are no longer here");
        assert_eq!(chosen, usize::from(self.chosen.is_some()), "more than one access is chosen");
        assert_eq!(reads, self.reads.len(), "reads that are no longer here");
    }
}

/// A device that is held back for as long before a read that others may claim, and not before writes, which are its
/// own. (A read that only this disk can serve is ranked as if it had to be claimed.)
struct Held<'a, M> {
    device: &'a M,
    held: Duration,
}

impl<M: Mechanics> Mechanics for Held<'_, M> {
    fn position_of(&self, sector: u64, is_write: bool) -> Position {
        self.device.position_of(sector, is_write)
    }

    fn cylinder(&self) -> u32 {
        self.device.cylinder()
    }

    fn positioning_ns(&self, free: Time, to: &Position) -> u64 {
        let held = if to.is_write { Duration::ZERO } else { self.held };
        held.as_nanos() as u64 + self.device.positioning_ns(free + held, to)
    }

    fn rotation_ns(&self, free: Time, to: &Position) -> u64 {
        self.device.rotation_ns(free, to)
    }

    fn seek_floor_ns(&self, cylinders: u32) -> u64 {
        self.device.seek_floor_ns(cylinders)
    }
}

/// [`Event::Read`] as a value.
struct Arriving<T> {
    attempt: Attempt,
    /// What names the data; none for a read that is left to nobody.
    data: Option<u64>,
    sector: u64,
    holders: Holders,
    item: T,
}

impl<M: Mechanics, T> Machine for Claims<M, T> {
    type Event = Event<T>;
    type Effect = Effect<T>;

    fn step(&mut self, now: Time, event: Event<T>, fx: &mut Vec<Effect<T>>) {
        match event {
            Event::Read { attempt, data, sector, holders, item } => {
                self.on_read(now, Arriving { attempt, data: Some(data), sector, holders, item }, fx);
            }
            Event::Tied { attempt, sector, holders, item } => {
                self.on_read(now, Arriving { attempt, data: None, sector, holders, item }, fx);
            }
            Event::Local { sector, is_write, item } => self.on_local(sector, is_write, item),
            Event::Hit { attempt, holders } => self.on_hit(now, attempt, holders, fx),
            Event::Claim { attempt, bid_ns, brick } => self.on_claim(now, attempt, (bid_ns, brick), fx),
            Event::Cancel { read } => self.on_cancel(read, fx),
            Event::Busy { free } => self.free = (self.serving > 0).then_some(free),
            Event::Done => self.on_done(),
        }
    }

    fn settle(&mut self, now: Time, fx: &mut Vec<Effect<T>>) {
        self.advance(now, fx);
    }

    fn wake(&mut self, now: Time, fx: &mut Vec<Effect<T>>) {
        self.advance(now, fx);
    }

    fn deadline(&self) -> Option<(Time, &'static str)> {
        let next = match self.chosen {
            Some(chosen) if self.serving < self.config.depth => {
                Some((chosen.issue_at, "claims have been heard"))
            }
            Some(_) => None,
            None => self.choose_at().map(|at| (at, "the next access is to be chosen")),
        };
        let deferred = self.deferred.first().map(|(until, _)| (*until, "the best bidder let its time pass"));
        next.into_iter().chain(deferred).min_by_key(|(at, _)| *at)
    }

    fn check(&self, depth: Depth) {
        let counts = &self.counts;
        let left = counts.issued + counts.claimed_away + counts.squashed + counts.cancelled + counts.refused;
        assert_eq!(counts.arrived, left + self.entries.len() as u64, "an access was lost, or left twice");
        assert!(
            self.serving <= self.config.depth,
            "{} accesses at a device that takes {}",
            self.serving,
            self.config.depth
        );
        if depth == Depth::Deep {
            self.check_deep();
        }
    }
}
