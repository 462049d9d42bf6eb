//! The one way to a disk: a request waits here for its turn, before the participant looks at it.
//!
//! What waits was not begun: it may be withdrawn, its asker may vanish, and nothing is left of it. A request that has its turn
//! has it for good: nobody waits in doubt for somebody's turn (`docs/decisions/2026-11-23-one-seat-one-world.md`, 2). How many
//! are at the disk is for whoever keeps them to say, so that no place there can be lost: what begins to wait for a decision is
//! not at the disk any more.
//!
//! What brings content needs room for it beside its turn ([`door`]): the disk says how much there is. With one stream, no limit
//! ([`Places::UNLIMITED`]) and room nothing ever waits here.

mod capacity;
mod door;
pub mod heads;
mod notices;
mod stay;
mod tally;
mod target;
#[cfg(test)]
mod tests;

use base::{HashMap, NodeId, StreamId, Time};
use capacity::Capacity;
use core::hash::Hash;
use core::time::Duration;
use door::Door;
use notices::Notices;
pub use notices::{NOTICE_EVERY, Notice};
use rules::fair::{Cost, Discipline, Entry, Order, Shares, Ticket, Unserved};
pub use stay::Stay;
use std::collections::BTreeMap;
use tally::Tally;
use target::Pace;
pub use target::{Kept, Targets};
use wire::{Service, StreamUse};

/// The most requests that wait at a disk. Who comes when there are so many is told that the disk is busy.
pub const WAITING_MAX: usize = 4096;

/// The most bytes of content that wait with them.
pub const WAITING_BYTES_MAX: usize = 64 << 20;

/// How many requests are at a disk at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Places(pub usize);

impl Places {
    /// As many as come.
    pub const UNLIMITED: Places = Places(usize::MAX);
}

/// How the requests of a disk take their turns: as they come, and all at once, unless something else is said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turns {
    pub order: Order,
    pub places: Places,
    pub cost: Cost,
}

impl Default for Turns {
    fn default() -> Turns {
        Turns { order: Order::Arrival, places: Places::UNLIMITED, cost: Cost::default() }
    }
}

/// What waits for its turn.
pub trait Request {
    /// Names what is asked for, so that a repeat of it is known as one.
    type Id: Copy + Eq + Hash;
    fn id(&self) -> Self::Id;
    /// What others may know it by, beside its own name.
    fn alias(&self) -> Option<Self::Id> {
        None
    }
    /// Who is told that it waits, and under which number; none where that is this brick itself.
    fn asker(&self) -> Option<(NodeId, u64)>;
    fn service(&self) -> Service;
    /// How many blocks it is about.
    fn blocks(&self) -> u32;
    /// How much content it brings: what brings some needs room for it.
    fn bytes(&self) -> usize;
    /// It takes the place of what was asked for before, and waits.
    fn repeats(&mut self, _before: &Self) {}
}

#[derive(Debug)]
struct Waiting<T> {
    request: T,
    /// As the discipline knows it: a repeat may say another delay.
    entry: Entry,
    since: Time,
    /// Whether it waits for room, and not for its turn yet.
    is_at_door: bool,
}

/// What became of a request that came.
#[derive(Debug, PartialEq, Eq)]
pub enum Entered<T> {
    /// It waits.
    Waits,
    /// What waits already is asked for again: the new one waits in its place, and this is the old one.
    Repeats(T),
    /// There is no room for it.
    Full(T),
}

/// The requests that wait for a disk.
#[derive(Debug)]
pub struct Seat<T: Request> {
    discipline: Box<dyn Discipline>,
    door: Door,
    places: Places,
    cost: Cost,
    waiting: BTreeMap<Ticket, Waiting<T>>,
    by_id: HashMap<T::Id, Ticket>,
    streams: BTreeMap<StreamId, u32>,
    bytes: usize,
    /// What nodes asked for and will not have its turn: of which stream, and of how many blocks.
    given_up: Vec<(StreamId, u32)>,
    last: Ticket,
    /// When the disk was last seen to get on: it answered, or had nothing to do.
    moved: Time,
    notices: Notices,
    tally: Tally,
    capacity: Capacity,
    pace: Pace,
    /// Places that are used, as of the last step.
    in_force: usize,
}

/// A disk that has not answered for so long gives no turns: who waits for one is not told to be patient.
const STALLED: Duration = Duration::from_millis(250);

impl<T: Request> Default for Seat<T> {
    fn default() -> Seat<T> {
        Seat::new(Turns::default())
    }
}

impl<T: Request> Seat<T> {
    /// Nobody waits.
    pub fn new(turns: Turns) -> Seat<T> {
        Seat::with(turns.order.discipline(), turns)
    }

    /// The same, with a discipline that is in no list.
    pub fn with(discipline: Box<dyn Discipline>, Turns { order, places, cost }: Turns) -> Seat<T> {
        Seat {
            discipline,
            door: Door::new(order.discipline()),
            places,
            cost,
            waiting: BTreeMap::new(),
            by_id: HashMap::default(),
            streams: BTreeMap::new(),
            bytes: 0,
            given_up: Vec::new(),
            last: Ticket(0),
            moved: Time::ZERO,
            notices: Notices::default(),
            tally: Tally::default(),
            capacity: Capacity::default(),
            pace: Pace::default(),
            in_force: places.0,
        }
    }

    /// Nobody waits yet, where requests took their turns otherwise before: what was counted goes on, and `before` gives all that waited.
    pub fn after(
        now: Time,
        before: Seat<T>,
        discipline: Box<dyn Discipline>,
        turns: Turns,
    ) -> (Seat<T>, Vec<T>) {
        let Seat { waiting, tally, capacity, pace, moved, door, .. } = before;
        let mut seat = Seat { tally, capacity, pace, moved, ..Seat::with(discipline, turns) };
        seat.door.go_on_from(now, &door);
        for Waiting { entry, since, .. } in waiting.values() {
            seat.charge(entry.service.stream, entry.cost, now.since(*since));
        }
        (seat, waiting.into_values().map(|waiting| waiting.request).collect())
    }

    /// Whether what comes now has its turn at once, with so many at the disk.
    pub fn admits(&mut self, now: Time, at_disk: usize, request: &T) -> bool {
        let (service, cost) = (request.service(), self.cost.of(request.blocks()));
        let admits = self.waiting.is_empty()
            && self.door.is_open_to(request.bytes())
            && at_disk < self.places_used(now)
            && self.discipline.admits(now, service, cost);
        if admits {
            self.door.begin(request.bytes());
            self.door.served_past(now, service.stream, cost);
            self.charge(service.stream, cost, Duration::ZERO);
        }
        admits
    }

    /// A request waits from now on.
    pub fn enter(&mut self, now: Time, request: T) -> Entered<T> {
        if let Some(ticket) = self.by_id.get(&request.id()) {
            let (ticket, service) = (*ticket, request.service());
            let waiting = self.waiting.get_mut(&ticket).expect("what is known by its id waits");
            self.notices.asked(now);
            self.bytes = self.bytes + request.bytes() - waiting.request.bytes();
            if !waiting.is_at_door {
                self.door.leave(waiting.request.bytes());
                self.door.pass(request.bytes());
            }
            let before = core::mem::replace(&mut waiting.request, request);
            waiting.request.repeats(&before);
            let alias = waiting.request.alias();
            before.alias().map(|alias| self.by_id.remove(&alias));
            alias.map(|alias| self.by_id.insert(alias, ticket));
            self.elsewhere(now, service.stream, service.delay);
            self.give_up(&before);
            return Entered::Repeats(before);
        }
        if self.waiting.len() >= WAITING_MAX || self.bytes + request.bytes() > WAITING_BYTES_MAX {
            self.turn_away(now, &request, Unserved::Dropped);
            return Entered::Full(request);
        }
        let entry = self.entry(&request);
        self.by_id.insert(request.id(), entry.ticket);
        request.alias().map(|alias| self.by_id.insert(alias, entry.ticket));
        self.bytes += request.bytes();
        *self.streams.entry(entry.service.stream).or_default() += 1;
        let is_at_door = !self.door.is_open_to(request.bytes());
        if is_at_door {
            self.door.push(now, entry);
        } else {
            self.door.pass(request.bytes());
            self.discipline.push(now, entry);
        }
        self.waiting.insert(entry.ticket, Waiting { request, entry, since: now, is_at_door });
        self.notices.asked(now);
        Entered::Waits
    }

    /// From now on, until more is said, there is room for content of so many bytes.
    pub fn set_room(&mut self, bytes: u64) {
        self.door.set_room(bytes);
    }

    /// The disk has brought content home, which makes room.
    pub fn on_home(&mut self, now: Time) {
        self.door.on_progress(now);
    }

    /// Whether a request that comes now would wait for room.
    pub fn lacks_room(&self, request: &T) -> bool {
        !self.door.is_open_to(request.bytes())
    }

    /// For how long something has waited for room so far, all in all.
    pub fn held(&self, now: Time) -> Duration {
        self.door.held(now)
    }

    /// Who has room waits for its turn now.
    fn pass_door(&mut self, now: Time) {
        while let Some(ticket) = self.door.pop(now) {
            let waiting = self.waiting.get_mut(&ticket).expect("a discipline names what waits");
            waiting.is_at_door = false;
            self.door.pass(waiting.request.bytes());
            self.discipline.push(now, waiting.entry);
        }
    }

    /// The request whose turn it is, with so many at the disk.
    pub fn next(&mut self, now: Time, at_disk: usize) -> Option<T> {
        if self.waiting.is_empty() || at_disk >= self.places_used(now) {
            return None;
        }
        self.pass_door(now);
        let ticket = self.discipline.pop(now)?;
        let Waiting { request, entry, since, .. } = self.take(ticket);
        self.door.leave(request.bytes());
        self.door.begin(request.bytes());
        if request.bytes() == 0 {
            self.door.served_past(now, entry.service.stream, entry.cost);
        }
        self.charge(entry.service.stream, entry.cost, now.since(since));
        Some(request)
    }

    fn entry(&mut self, request: &T) -> Entry {
        self.last.0 += 1;
        Entry { ticket: self.last, service: request.service(), cost: self.cost.of(request.blocks()) }
    }

    /// A request has its turn.
    fn charge(&mut self, stream: StreamId, cost: u32, waited: Duration) {
        self.tally.served(stream, cost, waited);
        self.capacity.charge(cost);
    }

    /// A request, by its name or alias, is not to be served here. `None` where it does not wait here.
    pub fn withdraw(&mut self, now: Time, id: &T::Id, why: Unserved) -> Option<T> {
        let ticket = *self.by_id.get(id)?;
        Some(self.remove(now, ticket, why))
    }

    /// All that are meant are of no interest any more.
    pub fn withdraw_where(&mut self, now: Time, is_meant: impl Fn(&T) -> bool) -> Vec<T> {
        if self.waiting.is_empty() {
            return Vec::new();
        }
        let meant = self.waiting.iter().filter(|(_, waiting)| is_meant(&waiting.request));
        let meant: Vec<Ticket> = meant.map(|(ticket, _)| *ticket).collect();
        meant.into_iter().map(|ticket| self.remove(now, ticket, Unserved::Dropped)).collect()
    }

    /// A request that waits begins although it is not its turn. `None` where it does not wait here.
    pub fn go_ahead(&mut self, now: Time, id: &T::Id) -> Option<T> {
        let ticket = *self.by_id.get(id)?;
        Some(self.leave(now, ticket, Unserved::Dropped))
    }

    /// What comes does not begin here, and does not wait. What it tells was served elsewhere all the same.
    pub fn turn_away(&mut self, now: Time, request: &T, why: Unserved) {
        let entry = self.entry(request);
        self.discipline.push(now, entry);
        self.discipline.remove(now, entry, why);
        self.give_up(request);
    }

    /// It will not have its turn: it was charged where it came from, and not here.
    fn give_up(&mut self, request: &T) {
        if request.asker().is_some() {
            self.given_up.push((request.service().stream, request.blocks()));
        }
    }

    /// What was given up since the last call.
    pub fn take_given_up(&mut self) -> Vec<(StreamId, u32)> {
        core::mem::take(&mut self.given_up)
    }

    fn remove(&mut self, now: Time, ticket: Ticket, why: Unserved) -> T {
        let request = self.leave(now, ticket, why);
        self.give_up(&request);
        request
    }

    fn leave(&mut self, now: Time, ticket: Ticket, why: Unserved) -> T {
        let Waiting { request, entry, is_at_door, .. } = self.take(ticket);
        if is_at_door {
            self.door.remove(now, entry, why);
        } else {
            self.door.leave(request.bytes());
            self.discipline.remove(now, entry, why);
        }
        request
    }

    fn take(&mut self, ticket: Ticket) -> Waiting<T> {
        let waiting = self.waiting.remove(&ticket).expect("a discipline names what waits");
        self.by_id.remove(&waiting.request.id());
        waiting.request.alias().map(|alias| self.by_id.remove(&alias));
        self.bytes -= waiting.request.bytes();
        let stream = waiting.entry.service.stream;
        let left = self.streams.get_mut(&stream).expect("it was counted");
        *left -= 1;
        if *left == 0 {
            self.streams.remove(&stream);
        }
        waiting
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How many of a stream wait.
    pub fn queued(&self, stream: StreamId) -> u32 {
        self.streams.get(&stream).copied().unwrap_or(0)
    }

    /// When askers are to be told that they wait, or somebody who is held back may begin, with so many at the disk.
    pub fn deadline(&self, at_disk: usize) -> Option<Time> {
        let notices = self.notices.due().filter(|_| !self.waiting.is_empty());
        let held = self.discipline.deadline().into_iter().chain(self.door.deadline());
        notices.into_iter().chain(held.filter(|_| at_disk < self.in_force)).min()
    }

    /// What began, of so many blocks, is not served here.
    pub fn refund(&mut self, now: Time, stream: StreamId, blocks: u32, why: Unserved) {
        let cost = self.cost.of(blocks);
        self.discipline.refund(now, stream, cost, why);
        self.tally.refund(stream, cost);
        self.capacity.refund(cost);
    }

    /// A stream was served elsewhere.
    pub fn elsewhere(&mut self, now: Time, stream: StreamId, cost: u32) {
        self.discipline.elsewhere(now, stream, cost);
        self.door.elsewhere(now, stream, cost);
    }

    /// What streams are entitled to from now on.
    pub fn set_shares(&mut self, now: Time, shares: &Shares) {
        self.discipline.set_shares(now, shares);
        self.door.set_shares(now, shares);
    }

    /// How many requests are at the disk at a time from now on.
    pub fn set_places(&mut self, places: Places) {
        self.places = places;
    }

    /// Within what streams are to be served from now on.
    pub fn set_targets(&mut self, targets: &Targets) {
        self.pace.set_targets(targets);
    }

    /// How many places are used of those that there are: fewer while a stream's target is missed.
    pub fn places_used(&self, now: Time) -> usize {
        self.pace.in_force(now, self.places.0)
    }

    /// Whether a request of a stream that comes now counts for the stream's target.
    pub fn is_timed(&self, stream: StreamId) -> bool {
        self.pace.has_target(stream) && self.queued(stream) == 0
    }

    /// A request was answered.
    pub fn on_answer(&mut self, now: Time, stream: StreamId, stay: &Stay) {
        if let Some(since) = stay.timed() {
            self.pace.on_answer(now, stream, since, self.places.0);
            self.in_force = self.places_used(now);
        }
    }

    /// How targets were kept lately, by stream.
    pub fn targets_kept(&self) -> impl Iterator<Item = (StreamId, Kept)> {
        self.pace.kept()
    }

    /// What streams were served here, and what waits of them.
    pub fn uses(&self) -> impl Iterator<Item = StreamUse> {
        let served = self.tally.uses().map(|used| StreamUse { waiting: self.queued(used.stream), ..used });
        let waits_first = self.streams.iter().filter(|(stream, _)| !self.tally.counts(**stream));
        let waits_first = waits_first.map(|(stream, waiting)| StreamUse {
            stream: *stream,
            waiting: *waiting,
            ..StreamUse::default()
        });
        served.chain(waits_first)
    }

    /// After each step: so many requests are at the disk from now on.
    pub fn observe(&mut self, now: Time, at_disk: usize) {
        self.capacity.observe(now, at_disk, self.places.0);
        self.in_force = self.places_used(now);
    }

    /// What the disk can serve, in units of cost a second, as far as it was seen to; 0 as long as that is not known.
    pub fn capacity(&self) -> u64 {
        self.capacity.units_per_second()
    }

    /// The disk gets on: it has answered, or has nothing to do.
    pub fn on_progress(&mut self, now: Time) {
        self.moved = now;
    }

    /// What askers are to be told now, with so many at the disk. Nothing where the disk stands still: they shall ask others.
    pub fn take_notices(&mut self, now: Time, at_disk: usize) -> Vec<Notice> {
        if self.waiting.is_empty() || self.notices.due().is_none_or(|due| due > now) {
            return Vec::new();
        }
        if at_disk > 0 && now.since(self.moved) >= STALLED {
            self.notices.put_off(now);
            return Vec::new();
        }
        let door_stands_still = self.door.stands_still(now);
        let patient = self.waiting.values().filter(|waiting| !(waiting.is_at_door && door_stands_still));
        self.notices.take(now, patient.filter_map(|waiting| waiting.request.asker()))
    }

    /// Asserts what must hold.
    pub fn check(&self) {
        assert!(self.waiting.len() <= WAITING_MAX, "what waits is bounded");
        let aliases = self.waiting.values().filter(|waiting| waiting.request.alias().is_some()).count();
        assert_eq!(self.waiting.len() + aliases, self.by_id.len(), "what waits is known by its names");
        let bytes: usize = self.waiting.values().map(|waiting| waiting.request.bytes()).sum();
        assert_eq!(self.bytes, bytes, "the content that waits is counted");
        let of_streams: u32 = self.streams.values().sum();
        assert_eq!(self.waiting.len(), of_streams as usize, "what waits is counted for its stream");
        self.discipline.check();
        let passed = self.waiting.values().filter(|waiting| !waiting.is_at_door);
        let passed_bytes = passed.clone().map(|waiting| waiting.request.bytes()).sum();
        self.door.check(self.waiting.len() - passed.count(), passed_bytes);
    }
}
