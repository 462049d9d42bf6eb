//! Finds out which records are needed no more, so that others can be written in their place.

use super::decided::DecidedOperation;
use crate::netraid::answer::NoAnswer;
use crate::netraid::context::gates::Leaving;
use crate::netraid::context::links::{Kept, Records};
use crate::netraid::operate::{Context, Operate};
use crate::netraid::outcome::{AllDecided, Child, OperationId, Outcome, Progress, Released};
use base::GroupId;
use std::collections::{BTreeMap, BTreeSet};
use wire::WriteId;

/// Has the writes of some records decided at all members, and gives back the addresses of those whose groups all say so.
pub(super) struct ReleaseOperation {
    records: Records,
    kept: Vec<Kept>,
    /// The groups that have still to say so; the last one is asked.
    asked: Vec<(GroupId, Vec<WriteId>)>,
    /// Those that have.
    decided: BTreeSet<GroupId>,
}

type Releasing = Progress<Released>;

/// What was found out of a group, which may not be known any more.
pub(crate) struct OfGroup {
    is_decided: bool,
}

impl Child for OfGroup {
    fn from_outcome(outcome: Outcome) -> Option<OfGroup> {
        match outcome {
            Outcome::AllDecided(decided) => Some(OfGroup { is_decided: decided == AllDecided::Yes }),
            Outcome::Gone(_) => Some(OfGroup { is_decided: false }),
            _ => None,
        }
    }
}

impl ReleaseOperation {
    pub(super) fn new(records: Records) -> ReleaseOperation {
        ReleaseOperation { records, kept: Vec::new(), asked: Vec::new(), decided: BTreeSet::new() }
    }

    /// Asks the next group.
    fn next(&self, cx: &mut Context<'_>) -> Releasing {
        let Some((group, writes)) = self.asked.last() else { return Progress::Ended(Released) };
        cx.begin(DecidedOperation::new(*group, writes.clone()));
        Progress::Sleeps
    }
}

impl Operate for ReleaseOperation {
    type Answer = NoAnswer;
    type Child = OfGroup;
    type Outcome = Released;

    fn start(&mut self, cx: &mut Context<'_>) -> Releasing {
        if self.kept.is_empty() {
            self.kept = cx.links.take_kept(self.records);
            let mut groups: BTreeMap<GroupId, Vec<WriteId>> = BTreeMap::new();
            for write in self.kept.iter().flat_map(|kept| &kept.writes) {
                groups.entry(write.group).or_default().push(*write);
            }
            self.asked = groups.into_iter().collect();
        }
        self.next(cx)
    }

    fn on_answer(&mut self, _: &mut Context<'_>, _: u8, answer: NoAnswer) -> Releasing {
        match answer {}
    }

    fn on_child(&mut self, cx: &mut Context<'_>, of_group: OfGroup) -> Releasing {
        let (group, _) = self.asked.pop().expect("one is asked at a time");
        if of_group.is_decided {
            self.decided.insert(group);
        }
        self.next(cx)
    }

    fn on_timer(&mut self, _: &mut Context<'_>) -> Releasing {
        Progress::Sleeps
    }

    fn group(&self) -> GroupId {
        self.records.group
    }

    fn release(&self, _id: OperationId, left: &mut Leaving<'_>) {
        let is_decided = |kept: &&Kept| kept.writes.iter().all(|write| self.decided.contains(&write.group));
        let (decided, others): (Vec<&Kept>, Vec<&Kept>) = self.kept.iter().partition(is_decided);
        let owned = |those: Vec<&Kept>| those.into_iter().cloned().collect();
        left.links.end_release(self.records, owned(decided), owned(others));
    }
}
