//! `evicted cannot answer`: once a view is in force, a brick that it leaves out, or that only catches up in it, never
//! vouches for a read of its group.
//!
//! A brick whose clock stood while others went on does so all the same, until it has heard from the directory: there the readers must not
//! believe it, which the histories show.
//!
//! Also keeps the newest view of each group that was seen anywhere, which the faults are bounded by.

use super::Violation;
use base::{BrickId, GroupId, HashMap, NodeId};
use std::collections::BTreeMap;
use wire::{GroupView, Message, ReadOutcome};

const NAME: &str = "evicted cannot answer";

/// What was seen so far.
#[derive(Default)]
pub struct Evicted {
    in_force: BTreeMap<GroupId, GroupView>,
    newest: BTreeMap<GroupId, GroupView>,
    /// The newest view that members were told to begin.
    begun: BTreeMap<GroupId, GroupView>,
    reads: HashMap<(NodeId, BrickId, u64), GroupId>,
    /// Bricks whose clock stood, and how many answers to heartbeats end that.
    stood: BTreeMap<BrickId, u8>,
    /// How often such a brick vouched for a read.
    vouched: u64,
}

/// The first ones may answer what was asked before.
const HEARD: u8 = 3;

impl Evicted {
    /// Looks at a message as it is sent.
    pub fn watch(&mut self, from: NodeId, to: NodeId, message: &Message) -> Result<(), Violation> {
        match (from, to, message) {
            (_, _, Message::Published { views, .. }) => {
                views.iter().for_each(|view| {
                    note(&mut self.in_force, view);
                    note(&mut self.newest, view);
                });
            }
            (_, _, Message::VolumeOpened { map: Ok(map), .. }) => {
                map.groups.iter().for_each(|view| note(&mut self.newest, view));
            }
            (_, _, Message::Fence { view, .. }) => note(&mut self.newest, view),
            (_, _, Message::Activate { view, .. }) => {
                note(&mut self.newest, view);
                note(&mut self.begun, view);
            }
            (NodeId::Directory, to, Message::HeartbeatDone { views, .. }) => {
                if let NodeId::Brick(brick) = to {
                    self.hears(brick);
                }
                views.iter().for_each(|view| {
                    note(&mut self.in_force, view);
                    note(&mut self.newest, view);
                });
            }
            (_, NodeId::Brick(brick), Message::Read { operation, group, content: true, .. }) => {
                self.reads.insert((from, brick, *operation), *group);
            }
            // Who was restarted counts its questions anew: one of its former life that was lost has the same number.
            (_, NodeId::Brick(brick), Message::Read { operation, content: false, .. }) => {
                self.reads.remove(&(from, brick, *operation));
            }
            (NodeId::Brick(brick), _, Message::ReadDone { operation, outcome, .. }) => {
                if let (
                    Some(group),
                    ReadOutcome::Done { leased: true, .. } | ReadOutcome::Older { leased: true, .. },
                ) = (self.reads.remove(&(to, brick, *operation)), outcome)
                {
                    let verdict = self.check(brick, group);
                    if verdict.is_err() && self.stood.contains_key(&brick) {
                        self.vouched += 1;
                        return Ok(());
                    }
                    return verdict;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The newest view of each group that was seen anywhere, in force or being made.
    pub fn newest(&self) -> &BTreeMap<GroupId, GroupView> {
        &self.newest
    }

    /// The newest view of a group that is known to be in force.
    pub fn in_force(&self, group: GroupId) -> Option<&GroupView> {
        self.in_force.get(&group)
    }

    /// All groups of which a view was seen.
    pub fn groups(&self) -> Vec<GroupId> {
        self.newest.keys().copied().collect()
    }

    /// Whether this view is the one in force, and none is being made.
    pub fn is_in_force(&self, view: &GroupView) -> bool {
        self.in_force.get(&view.group).is_none_or(|known| known.number == view.number)
    }

    /// The clock of a brick stood, and goes on now.
    pub fn has_stood(&mut self, brick: BrickId) {
        self.stood.insert(brick, HEARD);
    }

    /// How often bricks vouched for a read wrongly, as their clock had stood.
    pub fn vouched(&self) -> u64 {
        self.vouched
    }

    fn hears(&mut self, brick: BrickId) {
        if let Some(left) = self.stood.get_mut(&brick) {
            *left -= 1;
            if *left == 0 {
                self.stood.remove(&brick);
            }
        }
    }

    fn check(&self, brick: BrickId, group: GroupId) -> Result<(), Violation> {
        // A member that is promoted serves from when it begins, before the view is known to be in force.
        let is_begun = |view: &GroupView| {
            self.begun.get(&group).is_some_and(|next| next.number > view.number && next.is_current(brick))
        };
        match self.in_force.get(&group) {
            Some(view) if !view.is_current(brick) && !is_begun(view) => Err(Violation::new(
                NAME,
                format!("{brick} vouches for a read of {group}, whose {} leaves it out", view.number),
            )),
            _ => Ok(()),
        }
    }
}

fn note(views: &mut BTreeMap<GroupId, GroupView>, view: &GroupView) {
    let known = views.entry(view.group).or_insert_with(|| view.clone());
    if known.number < view.number {
        *known = view.clone();
    }
}
