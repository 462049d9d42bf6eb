//! The views that a brick holds of its groups, and what it promised of views to come.
//!
//! A view is *active* here when the directory said that it begins; a brick serves a request only under the active
//! view, only as a current member of it, and only while it has promised no later one (it is *fenced* otherwise).
//! Both facts are durable notes on the brick's first disk before anyone relies on them.

use base::{BrickId, GroupId, ViewNumber, VolumeId};
use std::collections::BTreeMap;
use wire::{GroupState, GroupView, Wire};

/// All groups of a brick.
#[derive(Debug)]
pub struct Groups {
    me: BrickId,
    states: BTreeMap<GroupId, GroupState>,
}

const NOTE_PREFIX: u8 = b'v';

impl Groups {
    /// What the notes of the first disk say.
    pub fn recover(me: BrickId, notes: &[(Vec<u8>, Vec<u8>)]) -> Groups {
        let states = notes
            .iter()
            .filter(|(key, _)| key.first() == Some(&NOTE_PREFIX))
            .filter_map(|(key, value)| {
                Some((GroupId::from_bytes(&key[1..]).ok()?, GroupState::from_bytes(value).ok()?))
            })
            .collect();
        Groups { me, states }
    }

    /// The key and value of a group's note.
    pub fn note(&self, group: GroupId) -> (Vec<u8>, Option<Vec<u8>>) {
        let mut key = vec![NOTE_PREFIX];
        group.encode(&mut key);
        (key, self.states.get(&group).map(Wire::to_bytes))
    }

    /// Whether a request under `number` may be served; if not, the view to tell the asker, if it is newer.
    pub fn serves(&self, group: GroupId, number: ViewNumber) -> Result<(), Option<GroupView>> {
        let Some(state) = self.states.get(&group) else { return Err(None) };
        let Some(active) = &state.active else { return Err(None) };
        if active.number == number && state.promised == number && active.is_current(self.me) {
            return Ok(());
        }
        Err((active.number > number).then(|| active.clone()))
    }

    /// Whether a later view than the active one is promised: writes in doubt are frozen until it begins.
    pub fn is_fenced(&self, group: GroupId) -> bool {
        self.states
            .get(&group)
            .is_some_and(|state| state.active.as_ref().is_none_or(|active| state.promised > active.number))
    }

    /// The view that began last.
    pub fn active(&self, group: GroupId) -> Option<&GroupView> {
        self.states.get(&group)?.active.as_ref()
    }

    /// The latest view promised.
    pub fn promised(&self, group: GroupId) -> ViewNumber {
        self.states.get(&group).map_or(ViewNumber(0), |state| state.promised)
    }

    /// Promises `number`; false when a later one is promised, or this one began already.
    pub fn promise(&mut self, group: GroupId, number: ViewNumber) -> bool {
        let state = self.states.entry(group).or_default();
        let began = state.active.as_ref().is_some_and(|active| active.number >= number);
        if began || state.promised > number {
            return false;
        }
        state.promised = number;
        true
    }

    /// Begins `view`; false when a later one is promised or began.
    pub fn activate(&mut self, view: &GroupView) -> bool {
        let state = self.states.entry(view.group).or_default();
        if state.promised > view.number
            || state.active.as_ref().is_some_and(|active| active.number > view.number)
        {
            return false;
        }
        state.promised = view.number;
        state.active = Some(view.clone());
        true
    }

    /// Forgets the groups of a deleted volume, and names them.
    pub fn forget(&mut self, volume: VolumeId) -> Vec<GroupId> {
        let gone: Vec<GroupId> = self
            .states
            .iter()
            .filter(|(_, state)| state.active.as_ref().is_some_and(|view| view.volume == volume))
            .map(|(group, _)| *group)
            .collect();
        gone.iter().for_each(|group| {
            self.states.remove(group);
        });
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Slots;

    fn view(number: u64, current: u32) -> GroupView {
        GroupView {
            group: GroupId(1),
            volume: VolumeId(1),
            number: ViewNumber(number),
            members: vec![BrickId(1), BrickId(2)],
            current: Slots(current),
            joining: Slots::default(),
            lineage: wire::Lineage::default(),
        }
    }

    #[test]
    fn a_promise_fences_and_a_note_restores_it() {
        let mut groups = Groups::recover(BrickId(1), &[]);
        assert!(groups.activate(&view(1, 3)));
        assert_eq!(groups.serves(GroupId(1), ViewNumber(1)), Ok(()));
        assert!(groups.promise(GroupId(1), ViewNumber(2)));
        assert_eq!(groups.serves(GroupId(1), ViewNumber(1)), Err(None));
        let (key, value) = groups.note(GroupId(1));
        let mut restored = Groups::recover(BrickId(1), &[(key, value.expect("a note"))]);
        assert!(restored.is_fenced(GroupId(1)) && !restored.promise(GroupId(1), ViewNumber(1)));
        assert!(restored.activate(&view(2, 2)), "left out of view 2");
        assert_eq!(restored.serves(GroupId(1), ViewNumber(1)), Err(Some(view(2, 2))));
        assert_eq!(restored.serves(GroupId(1), ViewNumber(2)), Err(None), "not current: nothing is served");
    }
}
