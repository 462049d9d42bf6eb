//! Which parts of which requests took effect: what makes a retried request take effect once.

use crate::record::Effect;
use base::{ClientId, RequestId, Stamp};
use std::collections::{BTreeMap, BTreeSet};

/// The most parts remembered of one client.
const PARTS_MAX: usize = 4096;
/// The most clients remembered.
const CLIENTS_MAX: usize = 4096;

/// The memory of effects, bounded; the oldest are forgotten first.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    clients: BTreeMap<ClientId, Client>,
    /// Clients by their newest stamp, to find the one to forget.
    by_age: BTreeSet<(Stamp, ClientId)>,
    len: usize,
    max: usize,
}

#[derive(Debug, Default)]
struct Client {
    newest: Stamp,
    parts: BTreeMap<(u64, u64), Stamp>,
}

impl Effects {
    /// A memory of at most `max` parts altogether.
    pub(crate) fn new(max: usize) -> Effects {
        Effects { max, ..Effects::default() }
    }

    /// How many parts it remembers.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Remembers a part. Sequence 0 belongs to no request.
    pub(crate) fn insert(&mut self, effect: Effect) {
        let RequestId { client: id, sequence } = effect.request;
        if sequence == 0 {
            return;
        }
        let client = self.clients.entry(id).or_default();
        self.by_age.remove(&(client.newest, id));
        client.newest = client.newest.max(effect.stamp);
        self.by_age.insert((client.newest, id));
        self.len += usize::from(client.parts.insert((sequence, effect.part), effect.stamp).is_none());
        if client.parts.len() > PARTS_MAX {
            client.parts.pop_first();
            self.len -= 1;
        }
        self.forget();
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Effect> {
        self.clients.iter().flat_map(|(&client, known)| {
            known.parts.iter().map(move |(&(sequence, part), &stamp)| Effect {
                request: RequestId { client, sequence },
                part,
                stamp,
            })
        })
    }

    /// Forgets until the bounds hold: whole clients, then the oldest parts of the only one left.
    fn forget(&mut self) {
        while self.clients.len() > CLIENTS_MAX || (self.len > self.max && self.clients.len() > 1) {
            let (_, id) = self.by_age.pop_first().expect("each client has an age");
            self.len -= self.clients.remove(&id).map_or(0, |client| client.parts.len());
        }
        while self.len > self.max {
            let client = self.clients.values_mut().next().expect("a part has a client");
            client.parts.pop_first();
            self.len -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(client: u64, sequence: u64, stamp: u64) -> Effect {
        Effect { request: RequestId { client: ClientId(client), sequence }, part: 0, stamp: Stamp(stamp) }
    }

    #[test]
    fn forgets_the_oldest_client_then_the_oldest_parts() {
        let mut effects = Effects::new(4);
        [effect(1, 1, 1), effect(2, 1, 2), effect(2, 2, 3), effect(1, 2, 4), effect(0, 0, 9)]
            .map(|e| effects.insert(e));
        assert_eq!(effects.len(), 4);
        effects.insert(effect(1, 3, 5));
        assert_eq!(effects.iter().map(|e| e.stamp.0).collect::<Vec<_>>(), [1, 4, 5]);
        (4..8).for_each(|n| effects.insert(effect(1, n, n + 2)));
        assert_eq!(effects.iter().map(|e| e.stamp.0).collect::<Vec<_>>(), [6, 7, 8, 9]);
    }
}
