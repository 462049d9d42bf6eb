//! Reads that wait until it is confirmed that their group's view is in force: who waits for the round of questions that is under way, and who for
//! the next one. A round serves all reads that were asked before it began.

use crate::netraid::outcome::OperationId;
use base::{GroupId, ViewNumber};
use std::collections::{BTreeMap, BTreeSet};

/// Who waits, by group.
#[derive(Debug, Default)]
pub(crate) struct Confirmations {
    groups: BTreeMap<GroupId, Waiting>,
    /// Groups whose questions have not left yet: their round serves whoever comes.
    unsent: BTreeSet<GroupId>,
    confirmed: Vec<Confirmed>,
}

/// The view of the group was in force after this operation had asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Confirmed {
    pub(crate) id: OperationId,
    pub(crate) group: GroupId,
    pub(crate) view: ViewNumber,
}

#[derive(Debug, Default)]
struct Waiting {
    now: BTreeSet<OperationId>,
    next: BTreeSet<OperationId>,
}

impl Confirmations {
    /// An operation is to hear that the view is in force, from now on. Whether a round is to begin for that.
    pub(crate) fn wants(&mut self, group: GroupId, id: OperationId) -> bool {
        let begins = !self.groups.contains_key(&group);
        if begins {
            self.unsent.insert(group);
        }
        let waiting = self.groups.entry(group).or_default();
        let round = if self.unsent.contains(&group) { &mut waiting.now } else { &mut waiting.next };
        round.insert(id);
        begins
    }

    /// An operation waits no more.
    pub(crate) fn leave(&mut self, group: GroupId, id: OperationId) {
        if let Some(waiting) = self.groups.get_mut(&group) {
            waiting.now.remove(&id);
            waiting.next.remove(&id);
        }
    }

    /// A round begins anew, under another view or since answers stay away: it serves all who wait.
    pub(crate) fn begin_anew(&mut self, group: GroupId) {
        if let Some(waiting) = self.groups.get_mut(&group) {
            let next = core::mem::take(&mut waiting.next);
            waiting.now.extend(next);
            self.unsent.insert(group);
        }
    }

    /// The round has ended with this view. Whether another one is to begin.
    pub(crate) fn on_confirmed(&mut self, group: GroupId, view: ViewNumber) -> bool {
        let Some(waiting) = self.groups.get_mut(&group) else { return false };
        let served = core::mem::take(&mut waiting.now);
        self.confirmed.extend(served.into_iter().map(|id| Confirmed { id, group, view }));
        self.begin_anew(group);
        self.goes_on(group)
    }

    /// Whether somebody waits. If not, the round is over.
    pub(crate) fn goes_on(&mut self, group: GroupId) -> bool {
        let is_wanted = self
            .groups
            .get(&group)
            .is_some_and(|waiting| !waiting.now.is_empty() || !waiting.next.is_empty());
        if !is_wanted {
            self.end(group);
        }
        is_wanted
    }

    /// No round of the group is under way any more.
    pub(crate) fn end(&mut self, group: GroupId) {
        self.groups.remove(&group);
        self.unsent.remove(&group);
    }

    /// All questions leave.
    pub(crate) fn on_sent(&mut self) {
        self.unsent.clear();
    }

    /// Whether an operation waits.
    pub(crate) fn has(&self, group: GroupId, id: OperationId) -> bool {
        self.groups.get(&group).is_some_and(|waiting| waiting.now.contains(&id) || waiting.next.contains(&id))
    }

    /// For whom it was confirmed, since the last call.
    pub(crate) fn take_confirmed(&mut self) -> Vec<Confirmed> {
        core::mem::take(&mut self.confirmed)
    }
}
