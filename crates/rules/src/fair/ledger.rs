//! What a stream was served at several places, and which place has heard how much of that.
//!
//! A gateway keeps one over bricks, and a brick with several disks one over its disks. Each place hears of all service of
//! a stream, once: what it serves itself, and the rest as the delay of the next request (formula 7).

use base::StreamId;
use std::collections::BTreeMap;

/// Streams that are kept track of. When one more comes, the half that was idle longest is forgotten: places hear no more of what they have not heard
/// of these.
const STREAMS_MAX: usize = 1 << 15;

/// Service in units of cost, of streams at places.
#[derive(Debug)]
pub struct Ledger<P> {
    streams: BTreeMap<StreamId, Account<P>>,
    /// Counts what is charged, so that it is known who was idle longest.
    last: u64,
}

#[derive(Debug)]
struct Account<P> {
    /// All service so far.
    total: u64,
    /// So much of it each place has heard of.
    heard: BTreeMap<P, u64>,
    used: u64,
}

impl<P> Default for Ledger<P> {
    fn default() -> Ledger<P> {
        Ledger { streams: BTreeMap::new(), last: 0 }
    }
}

impl<P> Default for Account<P> {
    fn default() -> Account<P> {
        Account { total: 0, heard: BTreeMap::new(), used: 0 }
    }
}

impl<P: Copy + Ord> Ledger<P> {
    /// A stream asks `place` for service of this cost: what the place has not heard of yet, which is the delay of the request. A place that is
    /// asked for the first time has nothing to hear: what was before is over.
    pub fn charge(&mut self, stream: StreamId, place: P, cost: u64) -> u64 {
        let account = self.account(stream);
        let heard = account.heard.entry(place).or_insert(account.total);
        let delay = account.total.saturating_sub(*heard);
        *heard = account.total.max(*heard) + cost;
        account.total += cost;
        delay
    }

    /// What was charged was not served there.
    pub fn refund(&mut self, stream: StreamId, place: P, cost: u64) {
        let Some(account) = self.streams.get_mut(&stream) else { return };
        account.total = account.total.saturating_sub(cost);
        if let Some(heard) = account.heard.get_mut(&place) {
            *heard = heard.saturating_sub(cost);
        }
    }

    /// A stream was served at `place`, which knows of it, and was not charged when it asked.
    pub fn served(&mut self, stream: StreamId, place: P, cost: u64) {
        let account = self.account(stream);
        let heard = account.heard.entry(place).or_insert(account.total);
        account.total += cost;
        *heard += cost;
    }

    /// The stream's service elsewhere is told to `place` by itself: how much it has not heard of. Nothing where it never asked there.
    pub fn tell(&mut self, stream: StreamId, place: P) -> u64 {
        let Some(account) = self.streams.get_mut(&stream) else { return 0 };
        let total = account.total;
        account.heard.get_mut(&place).map_or(0, |heard| {
            let unheard = total.saturating_sub(*heard);
            *heard += unheard;
            unheard
        })
    }

    /// A place is to hear of a stream although nothing was asked of it yet.
    pub fn introduce(&mut self, stream: StreamId, place: P) {
        let account = self.account(stream);
        account.heard.entry(place).or_insert(account.total);
    }

    /// What places have not heard of, by stream.
    pub fn unheard(&self) -> impl Iterator<Item = (StreamId, P, u64)> {
        self.streams.iter().flat_map(|(stream, account)| {
            account.heard.iter().filter_map(move |(place, heard)| {
                let unheard = account.total.saturating_sub(*heard);
                (unheard > 0).then_some((*stream, *place, unheard))
            })
        })
    }

    fn account(&mut self, stream: StreamId) -> &mut Account<P> {
        self.last += 1;
        if self.streams.len() >= STREAMS_MAX && !self.streams.contains_key(&stream) {
            let mut used: Vec<u64> = self.streams.values().map(|account| account.used).collect();
            let (_, median, _) = used.select_nth_unstable(STREAMS_MAX / 2);
            self.streams.retain(|_, account| account.used > *median);
        }
        let account = self.streams.entry(stream).or_default();
        account.used = self.last;
        account
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const F: StreamId = StreamId(1);

    /// The requests of Figs 5 and 7: two to A, one to B, and so on, each of cost 1.
    const FIGURE_5: [char; 5] = ['A', 'B', 'B', 'A', 'A'];

    #[test]
    fn delays_are_those_of_figure_5() {
        let mut ledger = Ledger::default();
        let delays = FIGURE_5.map(|brick| (brick, ledger.charge(F, brick, 1)));
        let at_a: Vec<u64> =
            delays.into_iter().filter(|(brick, _)| *brick == 'A').map(|(_, delay)| delay).collect();
        assert_eq!(at_a, [0, 2, 0]);
    }

    /// Two gateways in turn: 0 and 1 at the first, 1 at the second, and as much altogether.
    #[test]
    fn delays_are_those_of_figure_7() {
        let mut ledgers = [Ledger::default(), Ledger::default()];
        // The second gateway has been used before: its first request to A was one of those.
        ledgers[1].introduce(F, 'A');
        let mut delays = [Vec::new(), Vec::new()];
        for (at, brick) in FIGURE_5.into_iter().enumerate() {
            let delay = ledgers[at % 2].charge(F, brick, 1);
            if brick == 'A' {
                delays[at % 2].push(delay);
            }
        }
        assert_eq!(delays, [vec![0, 1], vec![1]]);
    }

    #[test]
    fn what_was_not_served_is_told_to_nobody() {
        let mut ledger = Ledger::default();
        ledger.charge(F, 'A', 5);
        ledger.charge(F, 'B', 7);
        ledger.refund(F, 'B', 7);
        assert_eq!(ledger.charge(F, 'A', 1), 0);
        ledger.served(F, 'B', 3);
        assert_eq!((ledger.tell(F, 'A'), ledger.tell(F, 'A')), (3, 0));
        assert_eq!(ledger.tell(F, 'B'), 1, "A's last");
        assert_eq!(ledger.unheard().count(), 0);
    }

    /// B heard of 7 units that A did not serve after all: it hears of so much less later, also where it is asked meanwhile.
    #[test]
    fn what_a_place_heard_too_much_it_hears_less_of_later() {
        let mut ledger = Ledger::default();
        ledger.introduce(F, 'B');
        ledger.charge(F, 'A', 7);
        assert_eq!(ledger.charge(F, 'B', 1), 7);
        ledger.refund(F, 'A', 7);
        assert_eq!((ledger.tell(F, 'B'), ledger.charge(F, 'B', 1)), (0, 0));
        ledger.charge(F, 'A', 10);
        assert_eq!(ledger.tell(F, 'B'), 3);
    }

    #[test]
    fn streams_are_bounded() {
        let mut ledger = Ledger::default();
        for stream in 0..3 * STREAMS_MAX as u32 {
            ledger.charge(StreamId(stream), 'A', 1);
            assert!(ledger.streams.len() <= STREAMS_MAX && ledger.streams.contains_key(&StreamId(stream)));
        }
    }
}
