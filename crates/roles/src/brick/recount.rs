//! A directory is made anew (`directory/rebuild.rs`): the brick says all that it knows, a page at a time, first its families and then its
//! groups, each in the order of their ids.

use super::{Brick, BrickEffect, reply};
use base::{GroupId, NodeId, Time};
use wire::{Family, GroupState, Message, RecountFrom, Wire};

impl Brick {
    /// Says a page of what it knows, or all of it to who is of an earlier release and names no place where the page begins.
    pub(super) fn on_recount(&mut self, now: Time, from: Option<RecountFrom>, fx: &mut Vec<BrickEffect>) {
        let (families, groups, next) = match from {
            None => (self.families.iter().cloned().collect(), self.groups.states().cloned().collect(), None),
            Some(from) => self.page_from(from),
        };
        let (brick, known) = (self.membership.id(), self.membership.known);
        let time = self.membership.time().time(now);
        let counted = Message::Recounted { brick, known, groups, families, time, from, next };
        reply(fx, NodeId::Directory, counted);
    }

    /// What is from there on, until it has the length of a page; and where the next page begins, if this is not the last one.
    fn page_from(&self, from: RecountFrom) -> (Vec<Family>, Vec<GroupState>, Option<RecountFrom>) {
        let (mut families, mut groups, mut bytes) = (Vec::new(), Vec::new(), 0);
        let first_group = match from {
            RecountFrom::Family(first) => {
                for (id, family) in self.families.from(first) {
                    if bytes >= self.page_bytes {
                        return (families, groups, Some(RecountFrom::Family(id)));
                    }
                    bytes += family.to_bytes().len();
                    families.push(family.clone());
                }
                GroupId(0)
            }
            RecountFrom::Group(first) => first,
        };
        for (id, state) in self.groups.states_from(first_group) {
            if bytes >= self.page_bytes {
                return (families, groups, Some(RecountFrom::Group(id)));
            }
            bytes += state.to_bytes().len();
            groups.push(state.clone());
        }
        (families, groups, None)
    }
}
