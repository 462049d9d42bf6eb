//! Which requests took effect at a brick, so that a retry takes effect once.
//!
//! Bounded: a client says below which sequence number it never asks again (its *floor*), and the memory of clients long gone is
//! dropped, the oldest first. An old copy of a request may still come, much later (of a gateway that did not run for a while,
//! or from a socket): so each part that took effect is known, or a floor above it is, at this brick, in its store, and where
//! it is taken over.
//!
//! A store forgets what it was told first. A part of a request whose other parts wait for a brick may be asked for again much later, and so the
//! store is told again of what may still be asked for, a few times before it would forget it. Of what is below a floor it is told the
//! floor instead.

use base::{ClientId, RequestId, Stamp, Time};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wire::Completion;
use wire::disk::{CLIENT_COMPLETIONS_MAX, Recovered};

const CLIENTS_MAX: usize = 4096;

/// The parts of requests that took effect, and the floors, by client.
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
    completion: Completion,
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
    /// The floor that the store was told.
    told_floor: u64,
    /// Not below the floor.
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

    /// What the store will forget when it is told as much again as since it was told that: parts that may still be asked for, and the
    /// floors above the others.
    pub(super) fn take_fading(&mut self, now: Time) -> Vec<Completion> {
        let mut fading = Vec::new();
        while let Some(told) = self.told.front_mut()
            && fading.len() < FADING_MAX
        {
            let since = *told.since.get_or_insert(now);
            let is_kept = now.since(since) < KEPT_MAX;
            if is_kept && self.count - told.number <= self.fade_after {
                break;
            }
            let told = self.told.pop_front().expect("just seen");
            let client = self.clients.get_mut(&told.completion.request.client).filter(|_| is_kept);
            if let Some(completion) = client.and_then(|client| client.fading(&told.completion)) {
                // A floor stands for younger ones than that which it is told for first.
                let is_again = completion.as_floor().is_none() || told.completion.as_floor().is_some();
                fading.push((completion, is_again.then_some(since)));
            }
        }
        for (completion, since) in &fading {
            self.tell(*completion, *since);
        }
        fading.into_iter().map(|(completion, _)| completion).collect()
    }

    fn tell(&mut self, completion: Completion, since: Option<Time>) {
        self.count += 1;
        self.told.push_back(Told { number: self.count, since, completion });
    }

    /// A part of a request took effect, or all of the client's requests before one are over.
    pub(super) fn insert(&mut self, completion: Completion) {
        let Completion { request, part, stamp } = completion;
        if request == RequestId::default() {
            return;
        }
        let client = self.clients.entry(request.client).or_default();
        client.latest = client.latest.max(stamp);
        let is_new = match completion.as_floor() {
            // The store has it.
            Some(floor) => {
                client.told_floor = client.told_floor.max(floor);
                client.raise_floor(floor)
            }
            None => {
                request.sequence >= client.floor
                    && client.parts.insert((request.sequence, part), stamp).is_none()
            }
        };
        if is_new {
            self.tell(completion, None);
        }
        if self.clients.len() > CLIENTS_MAX {
            let oldest = self.clients.iter().min_by_key(|(_, client)| client.latest).map(|(id, _)| *id);
            oldest.and_then(|id| self.clients.remove(&id));
        }
    }

    /// At most `max` of the parts and floors after `after`, in order.
    pub(super) fn page(&self, after: Option<(RequestId, u64)>, max: usize) -> Vec<Completion> {
        let (from, part) = after.unwrap_or_default();
        self.clients
            .range(from.client..)
            .flat_map(|(id, client)| client.completions(*id))
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
        if let Some(client) = self.clients.get_mut(&client) {
            client.raise_floor(floor);
        }
    }
}

impl Client {
    /// Whether that is news.
    fn raise_floor(&mut self, floor: u64) -> bool {
        let is_new = floor > self.floor;
        if is_new {
            self.floor = floor;
            self.parts = self.parts.split_off(&(floor, 0));
        }
        is_new
    }

    /// All that is known of it: its floor and its parts.
    fn completions(&self, id: ClientId) -> impl Iterator<Item = Completion> {
        let parts = self.parts.iter().map(move |((sequence, part), stamp)| {
            let request = RequestId { client: id, sequence: *sequence };
            Completion { request, part: *part, stamp: *stamp }
        });
        self.floor_of(id).into_iter().chain(parts)
    }

    /// Its floor, unless that is before all requests.
    fn floor_of(&self, id: ClientId) -> Option<Completion> {
        (self.floor > 1).then(|| Completion::floor(id, self.floor, self.latest))
    }

    /// What the store has to be told because it will forget `told`.
    fn fading(&mut self, told: &Completion) -> Option<Completion> {
        let Completion { request, part, .. } = *told;
        if request.sequence >= self.floor {
            let stamp = self.parts.get(&(request.sequence, part));
            return stamp.map(|stamp| Completion { stamp: *stamp, ..*told });
        }
        if told.as_floor().unwrap_or(request.sequence) < self.told_floor {
            return None;
        }
        self.told_floor = self.floor;
        self.floor_of(request.client)
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
        let parts = recovered.completions.iter().filter(|completion| completion.as_floor().is_none());
        let stamps: BTreeSet<Stamp> = parts.map(|completion| completion.stamp).collect();
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
    fn who_takes_it_over_page_by_page_takes_nothing_for_new_that_is_over_elsewhere() {
        let mut there = Completions::default();
        (1..10).for_each(|sequence| there.insert(completion(sequence, sequence % 3, sequence)));
        there.raise_floor(ClientId(1), 4);
        let mut here = Completions::default();
        let mut after = None;
        for max in [1, 2, 3, 1, 2].into_iter().cycle() {
            let page = there.page(after, max);
            let Some(last) = page.last() else { break };
            after = Some((last.request, last.part));
            page.into_iter().for_each(|completion| here.insert(completion));
            // A floor that rises meanwhile takes away what the next page would begin with.
            there.raise_floor(ClientId(1), 6);
        }
        for Completion { request, part, .. } in (1..10).map(|sequence| completion(sequence, sequence % 3, 0))
        {
            assert!(here.contains(request, part) || here.is_past(request), "{request:?}");
        }
        assert!(!here.is_past(RequestId { client: ClientId(1), sequence: 7 }));
    }

    #[test]
    fn after_a_restart_all_is_known_to_be_over_that_was_however_little_the_store_keeps() {
        const STORE_MAX: usize = 40;
        let mut store = VecDeque::new();
        let mut remember = |completion: Completion| {
            store.retain(|told: &Completion| {
                (told.request, told.part) != (completion.request, completion.part)
            });
            store.push_back(completion);
            store.drain(..store.len().saturating_sub(STORE_MAX));
            Recovered {
                completions: store.iter().copied().collect(),
                completions_max: STORE_MAX,
                ..Recovered::default()
            }
        };
        let mut completions = Completions::recover(&remember(completion(1, 0, 1)));
        let client_of = |stamp| ClientId(if stamp % 50 == 0 { 2 } else { 1 });
        let mut draw = 7_u64;
        for stamp in 2..3000 {
            // The second client may repeat all of its requests for long.
            let client = client_of(stamp);
            let request = RequestId { client, sequence: stamp };
            let effect = Completion { request, part: stamp % 5, stamp: Stamp(stamp) };
            completions.insert(effect);
            let mut recovered = remember(effect);
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let lag = (draw >> 33) % 8;
            if client == ClientId(1) || stamp > 1000 {
                completions.raise_floor(client, stamp.saturating_sub(lag));
            }
            for fading in completions.take_fading(Time(stamp)) {
                recovered = remember(fading);
            }
            if lag == 0 {
                completions = Completions::recover(&recovered);
            }
            for sequence in 2..=stamp {
                let request = RequestId { client: client_of(sequence), sequence };
                let is_over = completions.contains(request, sequence % 5) || completions.is_past(request);
                assert!(is_over, "{sequence} after {stamp}");
            }
            assert!(!completions.is_past(RequestId { client, sequence: stamp }));
        }
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
        let (floors, parts): (Vec<_>, Vec<_>) =
            told.into_iter().partition(|(_, fading)| fading.request.client == ClientId(2));
        let at = |told: &[(u64, Completion)]| told[..3].iter().map(|(stamp, _)| *stamp).collect::<Vec<_>>();
        assert_eq!((at(&parts), at(&floors)), (vec![12, 22, 32], vec![13, 23, 33]), "after ten others");
        assert!(parts.iter().all(|(_, fading)| *fading == completion(1, 3, 1)), "{parts:?}");
        assert!(floors.iter().all(|(stamp, fading)| fading.as_floor() == Some(*stamp)), "{floors:?}");
        let waits = RequestId { client: ClientId(1), sequence: 1 };
        assert!(completions.contains(waits, 3) && completions.told.len() < 14);
        // Nobody asks for ever.
        completions.raise_floor(ClientId(2), 100);
        assert_eq!(completions.take_fading(second(700)), []);

        completions.insert(completion(5, 0, 200));
        completions.raise_floor(ClientId(1), 6);
        assert_eq!(completions.take_fading(second(701)), [], "it is past, and young");
        assert!(completions.told.len() < 14);
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
