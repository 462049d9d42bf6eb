//! Versions that are kept although they are not visible: those that are being put, and those that were visible and may still be read. Of the latter it
//! is known with which versions they share fragments, as that ends with them.
//!
//! A version leaves this list in two steps, so that no brick is told that it is gone before that is durable: it *ends*, and is forgotten when
//! that is stored.

use base::{ObjectVersion, Time};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use wire::ObjectName;

/// So many versions end at a time because their time is over. After a restart millions may be due at once.
const ENDS_AT_ONCE: usize = 1000;

#[derive(Debug, PartialEq, Eq)]
enum State {
    Open {
        name: ObjectName,
        /// So long at least, whenever it is renewed.
        keep: Duration,
        until: Time,
    },
    /// It is becoming visible.
    Committing,
    /// It was visible, and may still be read.
    Past { until: Time, shares: Vec<ObjectVersion> },
    /// Its end is on its way to stable storage.
    Ending,
}

/// All of a shard.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// How long a version is held, unless it is to be kept for longer.
    usual: Duration,
    states: BTreeMap<ObjectVersion, State>,
    /// When which is to end.
    due: BTreeSet<(Time, ObjectVersion)>,
    /// Those of which the time was over, and that is not stored yet.
    ends: BTreeSet<ObjectVersion>,
}

/// A version whose time is over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Over {
    pub(super) version: ObjectVersion,
    /// Whether it has a manifest, and with which versions it shares fragments.
    pub(super) was_visible: Option<Vec<ObjectVersion>>,
}

impl Held {
    /// None yet; each will be held for so long.
    pub(super) fn new(usual: Duration) -> Held {
        Held { usual, ..Held::default() }
    }

    /// For how long a version is held that is to be kept for `keep`.
    pub(super) fn length(&self, keep: Duration) -> Duration {
        self.usual.max(keep)
    }

    fn set(&mut self, version: ObjectVersion, state: State) {
        if let State::Open { until, .. } | State::Past { until, .. } = &state {
            self.due.insert((*until, version));
        }
        if let Some(State::Open { until, .. } | State::Past { until, .. }) =
            self.states.insert(version, state)
        {
            let is_same = self.until(version) == Some(until);
            if !is_same {
                self.due.remove(&(until, version));
            }
        }
    }

    fn until(&self, version: ObjectVersion) -> Option<Time> {
        match self.states.get(&version)? {
            State::Open { until, .. } | State::Past { until, .. } => Some(*until),
            State::Committing | State::Ending => None,
        }
    }

    pub(super) fn open(&mut self, now: Time, version: ObjectVersion, name: ObjectName, keep: Duration) {
        self.set(version, State::Open { name, keep, until: now + self.length(keep) });
    }

    /// It is visible no more; readers may still have it.
    pub(super) fn leave(&mut self, now: Time, version: ObjectVersion, shares: Vec<ObjectVersion>) {
        self.set(version, State::Past { until: now + self.usual, shares });
    }

    /// Whether it is being put under this name, and nobody makes it visible yet.
    pub(super) fn is_open(&self, version: ObjectVersion, of: &ObjectName) -> bool {
        matches!(self.states.get(&version), Some(State::Open { name, .. }) if name == of)
    }

    /// Whether it is being put, under whatever name, and nobody makes it visible yet.
    pub(super) fn is_being_put(&self, version: ObjectVersion) -> bool {
        matches!(self.states.get(&version), Some(State::Open { .. }))
    }

    pub(super) fn was_visible(&self, version: ObjectVersion) -> bool {
        matches!(self.states.get(&version), Some(State::Past { .. }))
    }

    /// Whether it was visible, and shares fragments of other versions.
    pub(super) fn shares_anything(&self, version: ObjectVersion) -> bool {
        matches!(self.states.get(&version), Some(State::Past { shares, .. }) if !shares.is_empty())
    }

    /// Whether it may become visible yet.
    pub(super) fn is_to_come(&self, version: ObjectVersion) -> bool {
        matches!(self.states.get(&version), Some(State::Open { .. } | State::Committing))
    }

    /// Whether it is being forgotten.
    pub(super) fn is_ending(&self, version: ObjectVersion) -> bool {
        matches!(self.states.get(&version), Some(State::Ending))
    }

    pub(super) fn knows(&self, version: ObjectVersion) -> bool {
        self.states.contains_key(&version)
    }

    /// Whoever has it wants it for longer. `None` where it is not in this list.
    pub(super) fn renew(&mut self, now: Time, version: ObjectVersion) -> Option<bool> {
        let (was, length) = match self.states.get_mut(&version)? {
            State::Open { until, keep, .. } => (until, self.usual.max(*keep)),
            State::Past { until, .. } => (until, self.usual),
            State::Committing => return Some(true),
            State::Ending => return Some(false),
        };
        let until = now + length;
        let was = core::mem::replace(was, until);
        self.due.remove(&(was, version));
        self.due.insert((until, version));
        Some(true)
    }

    /// It becomes visible once that is stored.
    pub(super) fn commit(&mut self, version: ObjectVersion) {
        self.set(version, State::Committing);
    }

    /// Whoever puts it has given up. Whether there was something to give up.
    pub(super) fn abandon(&mut self, version: ObjectVersion) -> bool {
        let is_open = matches!(self.states.get(&version), Some(State::Open { .. }));
        if is_open {
            self.set(version, State::Ending);
        }
        is_open
    }

    /// That it is visible, or gone, is stored.
    pub(super) fn forget(&mut self, version: ObjectVersion) {
        if let Some(until) = self.until(version) {
            self.due.remove(&(until, version));
        }
        self.states.remove(&version);
        self.ends.remove(&version);
    }

    /// Of those whose time is over the first ones end; the next ones when that is stored.
    pub(super) fn take_due(&mut self, now: Time) -> Vec<Over> {
        let mut over = Vec::new();
        if !self.ends.is_empty() {
            return over;
        }
        let is_due = |(until, _): &(Time, ObjectVersion)| *until <= now;
        while let Some((until, version)) =
            self.due.first().copied().filter(|first| over.len() < ENDS_AT_ONCE && is_due(first))
        {
            self.ends.insert(version);
            self.due.remove(&(until, version));
            let was_visible = match self.states.insert(version, State::Ending) {
                Some(State::Past { shares, .. }) => Some(shares),
                _ => None,
            };
            over.push(Over { version, was_visible });
        }
        over
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.due.first().map(|(until, _)| *until).filter(|_| self.ends.is_empty())
    }

    pub(super) fn check(&self) {
        assert!(
            self.due.iter().all(|(until, version)| self.until(*version) == Some(*until)),
            "what is due is held"
        );
        let timed = self.states.keys().filter(|version| self.until(**version).is_some()).count();
        assert_eq!(timed, self.due.len(), "what is held is due once");
        assert!(self.ends.iter().all(|version| self.is_ending(*version)), "what ends is forgotten once");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_that_are_due_few_end_at_a_time() {
        let (mut held, now) = (Held::new(Duration::ZERO), Time(5));
        let count = 2 * ENDS_AT_ONCE as u64 + 7;
        (0..count).for_each(|version| held.leave(now, ObjectVersion(version), Vec::new()));
        let mut ended = Vec::new();
        while let Some(due) = held.deadline() {
            let over = held.take_due(due);
            assert!(!over.is_empty() && over.len() <= ENDS_AT_ONCE);
            assert_eq!((held.deadline(), held.take_due(due)), (None, Vec::new()), "until that is stored");
            held.check();
            over.iter().for_each(|over| held.forget(over.version));
            ended.extend(over.into_iter().map(|over| over.version.0));
        }
        assert_eq!(ended, (0..count).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_renewed_ends_later_and_what_becomes_visible_does_not() {
        let name = ObjectName { bucket: "abc".to_owned(), key: "k".to_owned() };
        let (mut held, at) = (Held::new(Duration::from_nanos(10)), Time);
        let [renewed, visible, old, abandoned, kept] = [1, 2, 3, 4, 5].map(ObjectVersion);
        for version in [renewed, visible, abandoned] {
            held.open(at(0), version, name.clone(), Duration::ZERO);
        }
        held.open(at(0), kept, name.clone(), Duration::from_nanos(90));
        held.leave(at(0), old, vec![visible]);
        assert_eq!(held.renew(at(20), renewed), Some(true));
        held.commit(visible);
        assert!(held.abandon(abandoned) && !held.abandon(abandoned) && !held.abandon(old));
        held.check();
        assert_eq!(held.take_due(at(20)), [Over { version: old, was_visible: Some(vec![visible]) }]);
        assert!(held.knows(old) && held.renew(at(40), old) == Some(false), "it is gone when that is stored");
        held.forget(old);
        assert!(!held.knows(old) && held.renew(at(40), old).is_none());
        assert_eq!(held.deadline(), Some(at(30)));
        assert_eq!(held.take_due(at(30)), [Over { version: renewed, was_visible: None }]);
        held.forget(renewed);
        assert_eq!((held.deadline(), held.renew(at(50), kept)), (Some(at(90)), Some(true)));
        assert_eq!(held.deadline(), Some(at(140)));
        held.check();
    }
}
