//! Who has which volume open here: sessions of the gateway's own front end, and clients that attach. The directory is told how
//! many, for operators.

use base::{NodeId, VolumeId};
use std::collections::{BTreeMap, BTreeSet};
use wire::OpenCount;

/// Somebody who opened volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum User {
    Session(u64),
    Client(NodeId),
}

#[derive(Debug, Default)]
pub(super) struct Users(BTreeMap<User, BTreeSet<VolumeId>>);

impl Users {
    pub(super) fn opened(&mut self, user: User, volume: VolumeId) {
        self.0.entry(user).or_default().insert(volume);
    }

    pub(super) fn left(&mut self, user: User) {
        self.0.remove(&user);
    }

    /// By volume, as far as a registration has room.
    pub(super) fn counts(&self) -> Vec<OpenCount> {
        let mut counts: BTreeMap<VolumeId, u32> = BTreeMap::new();
        for volume in self.0.values().flatten() {
            *counts.entry(*volume).or_default() += 1;
        }
        let counts = counts.into_iter().map(|(volume, users)| OpenCount { volume, users });
        counts.take(OpenCount::MAX).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::ClientId;

    #[test]
    fn who_leaves_counts_no_more_and_who_opens_twice_counts_once() {
        let mut users = Users::default();
        let (first, second) = (VolumeId(1), VolumeId(2));
        let client = User::Client(NodeId::Client(ClientId(5)));
        users.opened(User::Session(1), first);
        users.opened(User::Session(1), first);
        users.opened(client, first);
        users.opened(client, second);
        let counts =
            |users: &Users| users.counts().iter().map(|of| (of.volume, of.users)).collect::<Vec<_>>();
        assert_eq!(counts(&users), [(first, 2), (second, 1)]);
        users.left(client);
        assert_eq!(counts(&users), [(first, 1)]);
        users.left(User::Session(1));
        assert!(counts(&users).is_empty());
    }
}
