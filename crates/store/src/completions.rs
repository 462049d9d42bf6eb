//! Which parts of which requests took effect: what makes a retried request take effect once.

use base::{ClientId, RequestId, Stamp};
use std::collections::{BTreeMap, BTreeSet};
use wire::Completion;
use wire::disk::CLIENT_COMPLETIONS_MAX;

/// The most clients remembered.
const CLIENTS_MAX: usize = 4096;

/// A part of a request: client, sequence, part.
type Name = (ClientId, u64, u64);

/// The memory of completions, bounded. What it was told first is forgotten first; what it is told again is as new, so that
/// whoever knows that a part may still be asked for can keep it.
#[derive(Debug, Default)]
pub(crate) struct Completions {
    /// Each part, with when it was told: the serial number of that.
    parts: BTreeMap<Name, (Stamp, u64)>,
    in_order: BTreeMap<u64, Name>,
    clients: BTreeMap<ClientId, BTreeSet<u64>>,
    serial: u64,
    /// The latest stamp among those that were forgotten.
    forgotten: Stamp,
    max: usize,
}

impl Completions {
    /// A memory of at most `max` parts altogether.
    pub(crate) fn new(max: usize) -> Completions {
        Completions { max, ..Completions::default() }
    }

    /// How many parts it remembers at most.
    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// How many parts it remembers.
    pub(crate) fn len(&self) -> usize {
        self.parts.len()
    }

    /// Later stamps that took effect are all remembered.
    pub(crate) fn forgotten(&self) -> Stamp {
        self.forgotten
    }

    /// Remembers a part. Sequence 0 belongs to no request.
    pub(crate) fn insert(&mut self, completion: Completion) {
        let RequestId { client, sequence } = completion.request;
        if sequence == 0 {
            return;
        }
        let name = (client, sequence, completion.part);
        if let Some((_, serial)) = self.parts.get(&name) {
            self.remove(*serial);
        }
        self.serial += 1;
        self.parts.insert(name, (completion.stamp, self.serial));
        self.in_order.insert(self.serial, name);
        let of_client = self.clients.entry(client).or_default();
        of_client.insert(self.serial);
        let oldest = of_client.first().copied().filter(|_| of_client.len() > CLIENT_COMPLETIONS_MAX);
        oldest.into_iter().for_each(|serial| self.forget(serial));
        while self.parts.len() > self.max || self.clients.len() > CLIENTS_MAX {
            let (&oldest, _) = self.in_order.first_key_value().expect("each part was told");
            self.forget(oldest);
        }
    }

    /// All that it remembers, in the order in which it would be forgotten.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Completion> {
        self.in_order.values().map(|name| {
            let (client, sequence, part) = *name;
            Completion { request: RequestId { client, sequence }, part, stamp: self.parts[name].0 }
        })
    }

    fn forget(&mut self, serial: u64) {
        let stamp = self.remove(serial);
        self.forgotten = self.forgotten.max(stamp);
    }

    fn remove(&mut self, serial: u64) -> Stamp {
        let name = self.in_order.remove(&serial).expect("a part was told");
        let (stamp, _) = self.parts.remove(&name).expect("what was told is a part");
        let of_client = self.clients.get_mut(&name.0).expect("a part has a client");
        of_client.remove(&serial);
        if of_client.is_empty() {
            self.clients.remove(&name.0);
        }
        stamp
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completion(client: u64, sequence: u64, stamp: u64) -> Completion {
        let request = RequestId { client: ClientId(client), sequence };
        Completion { request, part: 0, stamp: Stamp(stamp) }
    }

    fn stamps(completions: &Completions) -> Vec<u64> {
        completions.iter().map(|completion| completion.stamp.0).collect()
    }

    #[test]
    fn what_was_told_first_is_forgotten_first_and_what_is_told_again_is_as_new() {
        let mut completions = Completions::new(4);
        let told = [(1, 1, 1), (2, 1, 2), (2, 2, 3), (1, 2, 4), (0, 0, 9)];
        told.into_iter().for_each(|(client, sequence, stamp)| {
            completions.insert(completion(client, sequence, stamp));
        });
        assert_eq!((stamps(&completions), completions.forgotten()), (vec![1, 2, 3, 4], Stamp::ZERO));
        completions.insert(completion(1, 1, 1));
        assert_eq!(stamps(&completions), [2, 3, 4, 1]);
        completions.insert(completion(1, 3, 5));
        completions.insert(completion(1, 3, 6));
        assert_eq!((stamps(&completions), completions.forgotten()), (vec![3, 4, 1, 6], Stamp(2)));
        completions.insert(completion(1, 4, 7));
        completions.insert(completion(1, 5, 8));
        completions.insert(completion(1, 6, 9));
        assert_eq!((stamps(&completions), completions.forgotten()), (vec![6, 7, 8, 9], Stamp(4)));
        (10..9000).for_each(|n| completions.insert(completion(n, 1, n)));
        assert_eq!((completions.len(), completions.in_order.len(), completions.clients.len()), (4, 4, 4));
    }

    #[test]
    fn of_one_client_it_remembers_so_many() {
        let mut completions = Completions::new(usize::MAX);
        (1..5000).for_each(|n| completions.insert(completion(1, n, n)));
        assert_eq!(
            (completions.len(), stamps(&completions)[0], completions.forgotten()),
            (4096, 904, Stamp(903))
        );
    }
}
