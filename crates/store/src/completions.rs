//! Which parts of which requests took effect: what makes a retried request take effect once.

use base::{ClientId, RequestId, Stamp};
use std::collections::{BTreeMap, BTreeSet};
use wire::Completion;
use wire::disk::CLIENT_COMPLETIONS_MAX;

/// The most clients remembered.
const CLIENTS_MAX: usize = 4096;

/// A part of a request: client, sequence, part.
type Name = (ClientId, u64, u64);

/// The memory of completions, bounded; the oldest are forgotten first.
#[derive(Debug, Default)]
pub(crate) struct Completions {
    parts: BTreeMap<Name, Stamp>,
    by_age: BTreeSet<(Stamp, Name)>,
    /// How many parts of each client.
    clients: BTreeMap<ClientId, usize>,
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

    /// Remembers a part. Sequence 0 belongs to no request.
    pub(crate) fn insert(&mut self, completion: Completion) {
        let RequestId { client, sequence } = completion.request;
        if sequence == 0 {
            return;
        }
        let name = (client, sequence, completion.part);
        self.forget(name);
        self.parts.insert(name, completion.stamp);
        self.by_age.insert((completion.stamp, name));
        let of_client = self.clients.entry(client).or_default();
        *of_client += 1;
        if *of_client > CLIENT_COMPLETIONS_MAX {
            let (&oldest, _) = self.parts.range((client, 0, 0)..).next().expect("the client has parts");
            self.forget(oldest);
        }
        while self.parts.len() > self.max || self.clients.len() > CLIENTS_MAX {
            let &(_, oldest) = self.by_age.first().expect("each part has an age");
            self.forget(oldest);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Completion> {
        self.parts.iter().map(|(&(client, sequence, part), &stamp)| Completion {
            request: RequestId { client, sequence },
            part,
            stamp,
        })
    }

    fn forget(&mut self, name: Name) {
        let Some(stamp) = self.parts.remove(&name) else { return };
        self.by_age.remove(&(stamp, name));
        let of_client = self.clients.get_mut(&name.0).expect("a part has a client");
        *of_client -= 1;
        if *of_client == 0 {
            self.clients.remove(&name.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completion(client: u64, sequence: u64, stamp: u64) -> Completion {
        Completion { request: RequestId { client: ClientId(client), sequence }, part: 0, stamp: Stamp(stamp) }
    }

    #[test]
    fn forgets_the_oldest() {
        let mut completions = Completions::new(4);
        [
            completion(1, 1, 1),
            completion(2, 1, 2),
            completion(2, 2, 3),
            completion(1, 2, 4),
            completion(0, 0, 9),
        ]
        .into_iter()
        .for_each(|e| completions.insert(e));
        assert_eq!(completions.len(), 4);
        completions.insert(completion(1, 3, 5));
        completions.insert(completion(1, 3, 6));
        assert_eq!(completions.iter().map(|e| e.stamp.0).collect::<Vec<_>>(), [4, 6, 2, 3]);
        (10..9000).for_each(|n| completions.insert(completion(n, 1, n)));
        assert_eq!((completions.len(), completions.by_age.len(), completions.clients.len()), (4, 4, 4));
    }

    #[test]
    fn a_client_has_its_bound() {
        let mut completions = Completions::new(usize::MAX);
        (1..5000).for_each(|n| completions.insert(completion(1, n, n)));
        assert_eq!((completions.len(), completions.iter().next().unwrap().stamp.0), (4096, 904));
    }
}
