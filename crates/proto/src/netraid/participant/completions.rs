//! Which requests took effect at a brick, so that a retry takes effect once.
//!
//! Bounded: a client says below which sequence number it never asks again, and the memory of clients long gone is
//! dropped, the oldest first.
//!
//! A store forgets what it was told first. A part of a request whose other parts wait for a brick may be asked for again much later, and so the
//! store is told again of what may still be asked for, a few times before it would forget it.

use base::{ClientId, RequestId, Stamp, Time};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wire::Completion;
use wire::disk::{CLIENT_COMPLETIONS_MAX, Recovered};

const CLIENTS_MAX: usize = 4096;

/// The parts of requests that took effect, by client.
#[derive(Debug, Default)]
pub(super) struct Completions {
    clients: BTreeMap<ClientId, Client>,
    /// What the store was told, in order; it may be past meanwhile.
    told: VecDeque<Told>,
    /// How many it was told.
    count: u64,
    /// How many it may be told until it is told the first of them again.
    fade_after: u64,
}

#[derive(Debug)]
struct Told {
    number: u64,
    /// Since when it is known; none until somebody asks.
    since: Option<Time>,
    request: RequestId,
    part: u64,
}

/// For so long a completion is kept for a client that says nothing more.
const KEPT_MAX: Duration = Duration::from_secs(600);
/// Completions that are told again for each that is new: so up to two thirds of what a store remembers can be kept, at a bounded
/// cost, however many are kept.
const FADING_MAX: usize = 2;

#[derive(Debug, Default)]
struct Client {
    latest: Stamp,
    floor: u64,
    parts: BTreeMap<(u64, u64), Stamp>,
}

impl Completions {
    /// What a store found again.
    pub(super) fn recover(recovered: &Recovered) -> Completions {
        // A quarter: one that found the store busy is told again in time.
        let fade_after = (recovered.completions_max.min(CLIENT_COMPLETIONS_MAX) / 4) as u64;
        let mut completions = Completions { fade_after, ..Completions::default() };
        recovered.completions.iter().for_each(|completion| completions.insert(*completion));
        completions
    }

    /// What may still be asked for, and what the store will forget when it is told as much again as since then.
    pub(super) fn take_fading(&mut self, now: Time) -> Vec<Completion> {
        let mut fading = Vec::new();
        while let Some(told) = self.told.front_mut()
            && fading.len() < FADING_MAX
        {
            let since = *told.since.get_or_insert(now);
            let stamp = self.clients.get(&told.request.client);
            let stamp = stamp.and_then(|client| client.parts.get(&(told.request.sequence, told.part)));
            let is_old = self.count - told.number > self.fade_after;
            let Told { request, part, .. } = *told;
            match stamp.filter(|_| now.since(since) < KEPT_MAX) {
                Some(_) if !is_old => break,
                Some(stamp) => fading.push((Completion { request, part, stamp: *stamp }, since)),
                None => {}
            }
            self.told.pop_front();
        }
        for (Completion { request, part, .. }, since) in &fading {
            self.tell(*request, *part, Some(*since));
        }
        fading.into_iter().map(|(completion, _)| completion).collect()
    }

    fn tell(&mut self, request: RequestId, part: u64, since: Option<Time>) {
        self.count += 1;
        self.told.push_back(Told { number: self.count, since, request, part });
    }

    /// A part of a request took effect.
    pub(super) fn insert(&mut self, completion: Completion) {
        let Completion { request, part, stamp } = completion;
        if request == RequestId::default() {
            return;
        }
        let client = self.clients.entry(request.client).or_default();
        client.latest = client.latest.max(stamp);
        let is_new = request.sequence >= client.floor
            && client.parts.insert((request.sequence, part), stamp).is_none();
        if is_new {
            self.tell(request, part, None);
        }
        if self.clients.len() > CLIENTS_MAX {
            let oldest = self.clients.iter().min_by_key(|(_, client)| client.latest).map(|(id, _)| *id);
            oldest.and_then(|id| self.clients.remove(&id));
        }
    }

    /// At most `max` of the parts after `after`, in order.
    pub(super) fn page(&self, after: Option<(RequestId, u64)>, max: usize) -> Vec<Completion> {
        let (from, part) = after.unwrap_or_default();
        self.clients
            .range(from.client..)
            .flat_map(|(id, client)| client.parts.iter().map(move |(part, stamp)| (*id, *part, *stamp)))
            .map(|(client, (sequence, part), stamp)| {
                let request = RequestId { client, sequence };
                Completion { request, part, stamp }
            })
            .filter(|found| after.is_none() || (found.request, found.part) > (from, part))
            .take(max)
            .collect()
    }

    /// Whether the part took effect.
    pub(super) fn contains(&self, request: RequestId, part: u64) -> bool {
        self.clients
            .get(&request.client)
            .is_some_and(|client| client.parts.contains_key(&(request.sequence, part)))
    }

    /// Whether the client said that this request is answered and never comes again.
    pub(super) fn is_past(&self, request: RequestId) -> bool {
        self.clients.get(&request.client).is_some_and(|client| request.sequence < client.floor)
    }

    /// The client never asks again below `floor`.
    pub(super) fn raise_floor(&mut self, client: ClientId, floor: u64) {
        if let Some(client) = self.clients.get_mut(&client)
            && floor > client.floor
        {
            client.floor = floor;
            client.parts = client.parts.split_off(&(floor, 0));
        }
    }
}

/// The stamps of the latest writes that took effect at a disk, whoever asked for them: what a settler may ask for after
/// newer writes went over the blocks.
#[derive(Debug, Default)]
pub(super) struct Applied {
    stamps: BTreeSet<Stamp>,
    /// All later stamps that took effect are known.
    horizon: Stamp,
}

const APPLIED_MAX: usize = 1 << 14;

impl Applied {
    /// What a store found again. What is not listed and took effect is earlier than all that is, or than the horizon that the store
    /// notes.
    pub(super) fn recover(recovered: &Recovered) -> Applied {
        let stamps: BTreeSet<Stamp> =
            recovered.completions.iter().map(|completion| completion.stamp).collect();
        let horizon = match has_full_client(recovered) {
            // Of such a client the earliest requests are forgotten, whatever their stamps.
            true => {
                stamps.last().copied().max(recovered.staged.iter().map(|staged| staged.write.stamp).max())
            }
            false => stamps.first().copied(),
        };
        Applied { stamps, horizon: horizon.unwrap_or_default() }
    }

    /// A write took effect.
    pub(super) fn insert(&mut self, stamp: Stamp) {
        self.stamps.insert(stamp);
        if self.stamps.len() > APPLIED_MAX
            && let Some(oldest) = self.stamps.pop_first()
        {
            self.horizon = self.horizon.max(oldest);
        }
    }

    /// What took effect elsewhere, up to `stamp`, is listed here too: nothing follows any more from what is not listed and
    /// is earlier.
    pub(super) fn raise_horizon(&mut self, stamp: Stamp) {
        self.horizon = self.horizon.max(stamp);
    }

    /// Whether the write took effect here, as far as is known.
    pub(super) fn contains(&self, stamp: Stamp) -> bool {
        self.stamps.contains(&stamp)
    }

    /// Whether the write would be known if it had taken effect here.
    pub(super) fn covers(&self, stamp: Stamp) -> bool {
        stamp > self.horizon
    }
}

/// Whether the store has as many parts of one client as it keeps.
fn has_full_client(recovered: &Recovered) -> bool {
    let mut parts: BTreeMap<ClientId, usize> = BTreeMap::new();
    recovered.completions.iter().any(|completion| {
        let count = parts.entry(completion.request.client).or_default();
        *count += 1;
        *count >= CLIENT_COMPLETIONS_MAX
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completion(sequence: u64, part: u64, stamp: u64) -> Completion {
        Completion { request: RequestId { client: ClientId(1), sequence }, part, stamp: Stamp(stamp) }
    }

    #[test]
    fn the_floor_forgets_and_nothing_comes_back_below_it() {
        let request = |sequence| RequestId { client: ClientId(1), sequence };
        let mut completions = Completions::default();
        completions.insert(completion(1, 0, 10));
        completions.insert(completion(2, 8, 11));
        assert!(completions.contains(request(1), 0) && !completions.contains(request(2), 0));
        completions.raise_floor(ClientId(1), 2);
        assert!(!completions.contains(request(1), 0) && completions.contains(request(2), 8));
        assert!(completions.is_past(request(1)) && !completions.is_past(request(2)));
        completions.insert(completion(1, 0, 12));
        assert!(!completions.contains(request(1), 0));
    }

    #[test]
    fn what_may_still_be_asked_for_is_told_again_before_a_store_forgets_it() {
        let recovered =
            Recovered { completions: vec![completion(1, 3, 1)], completions_max: 40, ..Recovered::default() };
        let mut completions = Completions::recover(&recovered);
        let second = |second: u64| Time(second * 1_000_000_000);
        let mut told = Vec::new();
        for stamp in 2..100 {
            // One of another client, which goes on.
            let request = RequestId { client: ClientId(2), sequence: stamp };
            completions.insert(Completion { request, part: 0, stamp: Stamp(stamp) });
            completions.raise_floor(ClientId(2), stamp);
            told.extend(completions.take_fading(second(stamp)).into_iter().map(|fading| (stamp, fading)));
        }
        let again: Vec<u64> = told.iter().map(|(stamp, _)| *stamp).collect();
        assert_eq!(again[..3], [12, 23, 34], "after ten others");
        assert!(told.iter().all(|(_, fading)| *fading == completion(1, 3, 1)), "{told:?}");
        let waits = RequestId { client: ClientId(1), sequence: 1 };
        assert!(completions.contains(waits, 3) && completions.told.len() < 14);
        // Nobody asks for ever.
        completions.raise_floor(ClientId(2), 100);
        assert_eq!(completions.take_fading(second(700)), []);
        assert!(completions.told.is_empty());

        completions.insert(completion(5, 0, 200));
        completions.raise_floor(ClientId(1), 6);
        assert_eq!((completions.take_fading(second(701)), completions.told.len()), (vec![], 0), "it is past");
    }

    #[test]
    fn after_a_restart_what_is_not_listed_and_later_than_the_earliest_listed_never_took_effect() {
        let listed = |stamp| completion(stamp, 0, stamp);
        let recovered = |completions| Recovered { completions, ..Recovered::default() };
        let applied = Applied::recover(&recovered(vec![listed(7), listed(9)]));
        assert!(applied.contains(Stamp(9)) && !applied.contains(Stamp(8)));
        assert!(applied.covers(Stamp(8)) && !applied.covers(Stamp(7)));
        assert!(Applied::recover(&recovered(vec![])).covers(Stamp(1)));
        let full = (1..=CLIENT_COMPLETIONS_MAX as u64).map(|n| listed(2 * n)).collect();
        assert!(!Applied::recover(&recovered(full)).covers(Stamp(11)), "earlier requests were forgotten");
    }
}
