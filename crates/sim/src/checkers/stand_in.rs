//! `stand_in`: a write that a stand-in takes part in is decided only once the stand-in has it on stable storage.
//!
//! Watches what coordinators ask of stand-ins, what these answer, and what gateways decide. A view that is being made decides by itself what
//! becomes of the writes of the one before.

use super::Violation;
use base::{BrickId, GroupId, HashMap, NodeId, Stamp, ViewNumber};
use std::collections::{BTreeMap, BTreeSet};
use wire::{Fate, GroupView, Message, PrepareOutcome, Scope};

const NAME: &str = "stand_in";

/// A write that stand-ins take part in.
#[derive(Debug)]
struct Asked {
    group: GroupId,
    view: ViewNumber,
    /// Whether each of them has said that it has it.
    holders: BTreeMap<BrickId, bool>,
}

/// What was seen so far.
#[derive(Debug, Default)]
pub struct StandIns {
    /// Views in which some stand in.
    views: BTreeMap<(GroupId, ViewNumber), GroupView>,
    /// The newest view that was promised, of groups in which some stood in.
    promised: BTreeMap<GroupId, ViewNumber>,
    writes: HashMap<Stamp, Asked>,
    /// Which write a stand-in was asked about.
    questions: HashMap<(NodeId, BrickId, u64), Stamp>,
    /// Writes of which a decision was judged, under this view: a gateway that does not know may ask for them again there, and decide again.
    decided: BTreeSet<(Stamp, ViewNumber)>,
    judged: u64,
}

impl StandIns {
    /// How many decisions were judged.
    pub fn judged(&self) -> u64 {
        self.judged
    }

    /// Looks at a message as it is sent.
    pub fn watch(&mut self, from: NodeId, to: NodeId, message: &Message) -> Result<(), Violation> {
        match (from, to, message) {
            (_, _, Message::Fence { view, .. } | Message::Activate { view, .. }) => self.on_view(view),
            (coordinator, NodeId::Brick(brick), Message::Prepare { operation, view, write, .. }) => {
                let Some(under) = self.views.get(&(write.group, *view)) else { return Ok(()) };
                // In whole rows each slot takes part; so they must be asked, too.
                let all = under.sealed.iter().filter_map(|(slot, _)| under.stands_in_at(*slot));
                let part: Vec<BrickId> =
                    all.filter(|stand_in| *stand_in == brick || write.scope == Scope::Row).collect();
                if part.is_empty() || self.decided.contains(&(write.stamp, *view)) {
                    return Ok(());
                }
                let asked = self.writes.entry(write.stamp).or_insert_with(|| Asked {
                    group: write.group,
                    view: *view,
                    holders: BTreeMap::new(),
                });
                for stand_in in part {
                    asked.holders.entry(stand_in).or_insert(false);
                }
                if asked.holders.contains_key(&brick) {
                    self.questions.insert((coordinator, brick, *operation), write.stamp);
                }
            }
            (settler, NodeId::Brick(brick), Message::Query { operation, write, .. })
                if self.writes.contains_key(&write.stamp) =>
            {
                self.questions.insert((settler, brick, *operation), write.stamp);
            }
            (NodeId::Brick(brick), asker, Message::Prepared { operation, outcome, .. }) => {
                let has_it = matches!(outcome, PrepareOutcome::Prepared { .. } | PrepareOutcome::Duplicate);
                self.on_answer((asker, brick, *operation), has_it);
            }
            (NodeId::Brick(brick), asker, Message::QueryDone { operation, fate }) => {
                let question = (asker, brick, *operation);
                // It was decided before, maybe in a view in which nobody stood in.
                if let (Ok(Fate::Committed), Some(stamp)) = (fate, self.questions.get(&question)) {
                    self.writes.remove(stamp);
                }
                self.on_answer(question, matches!(fate, Ok(Fate::Prepared)));
            }
            (NodeId::Gateway(_), _, Message::Decide { commits, aborts }) => {
                for abort in aborts {
                    self.writes.remove(&abort.stamp);
                }
                self.questions.retain(|_, stamp| self.writes.contains_key(stamp));
                return commits.iter().try_for_each(|commit| self.on_commit(from, commit.stamp));
            }
            _ => {}
        }
        Ok(())
    }

    fn on_view(&mut self, view: &GroupView) {
        let promised = self.promised.entry(view.group).or_insert(view.number);
        *promised = view.number.max(*promised);
        if !view.sealed.is_empty() {
            self.views.insert((view.group, view.number), view.clone());
        }
    }

    fn on_answer(&mut self, question: (NodeId, BrickId, u64), has_it: bool) {
        let Some(stamp) = self.questions.remove(&question).filter(|_| has_it) else { return };
        if let Some(holds) = self.writes.get_mut(&stamp).and_then(|asked| asked.holders.get_mut(&question.1))
        {
            *holds = true;
        }
    }

    fn on_commit(&mut self, coordinator: NodeId, stamp: Stamp) -> Result<(), Violation> {
        let Some(asked) = self.writes.remove(&stamp) else { return Ok(()) };
        let Asked { group, view, holders } = &asked;
        if self.promised.get(group).is_some_and(|promised| promised > view) {
            return Ok(());
        }
        self.judged += 1;
        self.decided.insert((stamp, *view));
        let Some((brick, _)) = holders.iter().find(|(_, has_it)| !**has_it) else { return Ok(()) };
        Err(Violation::new(
            NAME,
            format!(
                "{coordinator} decided the write {stamp:?} in view {} of {group} before {brick}, which stands in there, said that it has it",
                view.0
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::progress::tests::prepare;
    use super::*;
    use base::{GatewayId, VolumeId};
    use wire::{Decision, Slots, Wait};

    const GATEWAY: NodeId = NodeId::Gateway(GatewayId(1));
    const STAND_IN: BrickId = BrickId(4);

    fn view(number: u64) -> GroupView {
        let mut view = GroupView {
            group: GroupId(1),
            volume: VolumeId(1),
            number: ViewNumber(number),
            members: vec![BrickId(1), BrickId(2)],
            current: Slots(0b11),
            joining: Slots::default(),
            lineage: Box::default(),
            sealed: Vec::new(),
        };
        view.seal(1, STAND_IN);
        view
    }

    /// A write of which the stand-in says this before it is decided, under a view on which another one may have followed.
    fn judged(
        asks: &[BrickId],
        outcome: Option<PrepareOutcome>,
        is_superseded: bool,
    ) -> Result<u64, Violation> {
        let mut judge = StandIns::default();
        let directory = NodeId::Directory;
        let fence = |number| Message::Fence { view: view(number), speaks: true, run: 0 };
        judge.watch(directory, NodeId::Brick(STAND_IN), &fence(1))?;
        for brick in asks.iter().copied() {
            judge.watch(GATEWAY, NodeId::Brick(brick), &prepare(u64::from(brick.0), Stamp(5)))?;
        }
        if let Some(outcome) = outcome {
            let prepared = Message::Prepared { operation: 4, outcome, wait: Wait::default() };
            judge.watch(NodeId::Brick(STAND_IN), GATEWAY, &prepared)?;
        }
        if is_superseded {
            judge.watch(directory, NodeId::Brick(STAND_IN), &fence(2))?;
        }
        let commit = Decision { volume: VolumeId(1), lba: 0, stamp: Stamp(5) };
        let decide = Message::Decide { commits: vec![commit], aborts: Vec::new() };
        judge.watch(GATEWAY, NodeId::Brick(BrickId(1)), &decide)?;
        Ok(judge.judged())
    }

    /// Torture seed 6: a gateway that had been away for long asks again in a later view what became of its write.
    #[test]
    fn what_was_decided_before_may_be_decided_again() {
        let member = NodeId::Brick(BrickId(1));
        for (fate, is_found) in [(Fate::Committed, false), (Fate::Prepared, true)] {
            let mut judge = StandIns::default();
            let fence = Message::Fence { view: view(1), speaks: true, run: 0 };
            judge.watch(NodeId::Directory, NodeId::Brick(STAND_IN), &fence).expect("nothing is decided");
            judge.watch(GATEWAY, NodeId::Brick(STAND_IN), &prepare(4, Stamp(5))).expect("nothing is decided");
            let Message::Prepare { view, write, .. } = prepare(4, Stamp(5)) else { unreachable!() };
            let query = Message::Query { operation: 9, view, write, width: 1, only_looks: false };
            judge.watch(GATEWAY, member, &query).expect("nothing is decided");
            let done = Message::QueryDone { operation: 9, fate: Ok(fate) };
            judge.watch(member, GATEWAY, &done).expect("nothing is decided");
            let commit = Decision { volume: VolumeId(1), lba: 0, stamp: Stamp(5) };
            let decide = Message::Decide { commits: vec![commit], aborts: Vec::new() };
            assert_eq!(judge.watch(GATEWAY, member, &decide).is_err(), is_found, "{fate:?}");
        }
    }

    /// Torture seed 2800171: one gateway settled another one's write, whose gateway then asked a member again and decided it, too.
    #[test]
    fn what_another_gateway_settled_may_be_asked_for_and_decided_again() {
        let mut judge = StandIns::default();
        let member = NodeId::Brick(BrickId(1));
        let fence = Message::Fence { view: view(1), speaks: true, run: 0 };
        let prepared = |operation| Message::Prepared {
            operation,
            outcome: PrepareOutcome::Prepared { previous: Vec::new() },
            wait: Wait::default(),
        };
        let commit = Decision { volume: VolumeId(1), lba: 0, stamp: Stamp(5) };
        let decide = Message::Decide { commits: vec![commit], aborts: Vec::new() };
        let said = [
            (NodeId::Directory, NodeId::Brick(STAND_IN), fence),
            (GATEWAY, NodeId::Brick(STAND_IN), prepare(4, Stamp(5))),
            (NodeId::Brick(STAND_IN), GATEWAY, prepared(4)),
            (NodeId::Gateway(GatewayId(2)), member, decide.clone()),
            (GATEWAY, member, prepare(7, Stamp(5))),
            (member, GATEWAY, prepared(7)),
            (GATEWAY, member, decide),
        ];
        for (from, to, message) in said {
            judge.watch(from, to, &message).expect("the stand-in had it before anybody decided");
        }
        assert_eq!(judge.judged(), 1);
    }

    #[test]
    fn who_decides_before_the_stand_in_has_the_write_is_found() {
        let prepared = || Some(PrepareOutcome::Prepared { previous: Vec::new() });
        let both = [BrickId(1), STAND_IN];
        assert_eq!(judged(&both, prepared(), false), Ok(1));
        assert_eq!(judged(&both, None, true), Ok(0), "that is the view's business");
        for (asks, too_early) in
            [(&both[..], None), (&both[..], Some(PrepareOutcome::Busy)), (&both[..1], None)]
        {
            let violation = judged(asks, too_early, false).expect_err("it is found");
            assert!(violation.what.contains("before brick-4, which stands in there"), "{violation:?}");
        }
    }
}
