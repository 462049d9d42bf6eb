//! The views that a brick holds of its groups, and what it promised of views to come.
//!
//! A view is *active* here when the directory said that it begins; a brick works on a request only under the active
//! view and only while it has promised no later one (it is *fenced* otherwise). Reads it serves as a current member
//! alone; writes it takes as a member that catches up too. Both facts are durable notes on the brick's first disk
//! before anyone relies on them: a promise is answered, and a view served, only once its note is.
//!
//! Applications and drops of writes are lazy in the store, and a note could overtake them. So each note of a group comes
//! behind a barrier on every disk (`brick::membership`): a write that is found staged after a crash was prepared under the
//! view that the note says is in force, is listed when its promise is asked for once more, or was given up.
//!
//! What is found on the disks at a start may be older than what was promised since: an older copy of a disk, or a disk that
//! lost what it called durable. So every group that was recovered is *doubted* until the directory has compared how far the
//! disks are with what it heard before: nothing of it is served, and nothing is said of its writes. A group that lags stays
//! doubted until a view begins in which this brick joins: it compares every block before it is current.
//!
//! Of a group that it left, or lost its blocks of, a brick keeps a *tombstone*: the promise without a view, so that no late
//! message revives an old one.

use base::{BrickId, GroupId, ViewNumber, VolumeId};
use rules::promises::{Rules, SOUND};
use std::collections::{BTreeMap, BTreeSet};
use wire::{GroupState, GroupView, Reader, Version, Wire, Writer};

/// All groups of a brick.
#[derive(Debug)]
pub struct Groups {
    me: BrickId,
    states: BTreeMap<GroupId, GroupState>,
    /// The view in force of each group, as the latest note says.
    noted: BTreeMap<GroupId, ViewNumber>,
    /// Groups of which the disks may lack what was promised.
    doubted: BTreeSet<GroupId>,
    /// Another run of this brick counts.
    is_ousted: bool,
    rules: &'static dyn Rules,
}

const NOTE_PREFIX: u8 = b'v';
/// The last version whose notes do not say whether a group is bare.
const BEFORE_BARE: Version = Version(19);

/// What is noted: as earlier releases note it, unless somebody stands in for a member.
fn note_of(state: &GroupState) -> Vec<u8> {
    let has_stand_ins = state.active.as_ref().is_some_and(|view| !view.sealed.is_empty());
    let version = if has_stand_ins { Version::CURRENT } else { Version::BEFORE_STAND_INS };
    let mut note = Vec::new();
    state.encode(&mut Writer::of(version, &mut note));
    note
}

/// What a note says, also one of an earlier release. The bytes of one are not those of another: each ends where the next one has more.
fn state_of(note: &[u8]) -> Option<GroupState> {
    let as_of = |version| {
        let mut reader = Reader::of(version, note);
        let state = GroupState::decode(&mut reader).ok()?;
        reader.end().ok().map(|()| state)
    };
    [Version::CURRENT, Version::BEFORE_STAND_INS, BEFORE_BARE].into_iter().find_map(as_of)
}

impl Groups {
    /// What the notes of the first disk say.
    pub fn recover(me: BrickId, notes: &[(Vec<u8>, Vec<u8>)]) -> Groups {
        let states: BTreeMap<GroupId, GroupState> = notes
            .iter()
            .filter(|(key, _)| key.first() == Some(&NOTE_PREFIX))
            .filter_map(|(key, value)| Some((GroupId::from_bytes(&key[1..]).ok()?, state_of(value)?)))
            .collect();
        let number = |state: &GroupState| Some(state.active.as_ref()?.number);
        let noted = states.iter().filter_map(|(group, state)| Some((*group, number(state)?))).collect();
        let doubted =
            states.iter().filter(|(_, state)| state.active.is_some()).map(|(group, _)| *group).collect();
        Groups { me, states, noted, doubted, is_ousted: false, rules: SOUND }
    }

    /// The directory has compared how far the disks are: of all groups that were recovered only these lag, in views up to
    /// those.
    pub fn settle_doubts(&mut self, behind: &[(GroupId, ViewNumber)]) {
        let found = core::mem::take(&mut self.doubted);
        self.doubt(behind);
        self.doubted.retain(|group| found.contains(group));
    }

    /// These groups lag. Who has begun a later view was let in by it, and compares all blocks.
    pub fn doubt(&mut self, behind: &[(GroupId, ViewNumber)]) {
        let lags = |(group, number): &&(GroupId, ViewNumber)| {
            self.active(*group).is_some_and(|view| view.number <= *number)
        };
        let lag: Vec<GroupId> = behind.iter().filter(lags).map(|(group, _)| *group).collect();
        self.doubted.extend(lag);
    }

    /// Another run of this brick counts: of no group anything is served any more.
    pub fn doubt_all(&mut self) {
        self.is_ousted = true;
    }

    /// Whether its disks may lack what this brick promised of the group.
    pub fn is_doubted(&self, group: GroupId) -> bool {
        self.rules.doubts(self.is_ousted || self.doubted.contains(&group))
    }

    /// The key and value of a group's note.
    pub fn note(&self, group: GroupId) -> (Vec<u8>, Option<Vec<u8>>) {
        let mut key = vec![NOTE_PREFIX];
        group.append(&mut key);
        (key, self.states.get(&group).map(note_of))
    }

    /// Whether a block of the group that has no stamp here is lost, and not zeros.
    pub fn is_bare(&self, group: GroupId) -> bool {
        self.states.get(&group).is_some_and(|state| state.is_bare)
    }

    /// The groups of which what this brick had before is lost.
    pub fn bare(&self) -> impl Iterator<Item = GroupId> + '_ {
        self.states
            .iter()
            .filter(|(_, state)| state.is_bare && state.active.is_some())
            .map(|(group, _)| *group)
    }

    /// Whether a view may call what this brick had of the group lost. Who has a view of it has blocks that are older than what was
    /// lost: they would pass for it.
    pub fn may_be_bare(&self, group: GroupId) -> bool {
        self.is_bare(group) || !self.has(group)
    }

    /// Of a group whose view begins: whether what this brick had before is lost. It is noted with the view.
    pub fn set_bare(&mut self, group: GroupId, is_bare: bool) {
        self.states.entry(group).or_default().is_bare = is_bare;
    }

    /// A note is durable that says that the view `number` is in force.
    pub fn on_noted(&mut self, group: GroupId, number: ViewNumber) {
        if self.has(group) {
            let noted = self.noted.entry(group).or_insert(number);
            *noted = number.max(*noted);
        }
    }

    /// Goes by other rules, in tests.
    #[cfg(feature = "planted")]
    pub fn set_rules(&mut self, rules: &'static dyn Rules) {
        self.rules = rules;
    }

    /// The rules that the brick goes by.
    pub fn rules(&self) -> &'static dyn Rules {
        self.rules
    }

    pub fn me(&self) -> BrickId {
        self.me
    }

    /// Whether a request under `number` may be served, which needs every acknowledged write; if not, the view to tell
    /// the asker, if it is newer.
    pub fn serves(&self, group: GroupId, number: ViewNumber) -> Result<(), Option<GroupView>> {
        self.admits(group, number, GroupView::is_current)
    }

    /// Whether writes under `number` are taken, as a current member or as one that catches up; otherwise as above.
    pub fn takes(&self, group: GroupId, number: ViewNumber) -> Result<(), Option<GroupView>> {
        self.admits(group, number, GroupView::is_writer)
    }

    fn admits(
        &self,
        group: GroupId,
        number: ViewNumber,
        is_party: fn(&GroupView, BrickId) -> bool,
    ) -> Result<(), Option<GroupView>> {
        let Some(state) = self.states.get(&group) else { return Err(None) };
        let Some(active) = &state.active else { return Err(None) };
        let is_noted = self.noted.get(&group).is_some_and(|noted| *noted >= number);
        let in_force = active.number == number && state.promised == number && is_noted;
        if self.rules.works_under(in_force && !self.is_doubted(group)) && is_party(active, self.me) {
            return Ok(());
        }
        Err((active.number > number).then(|| active.clone()))
    }

    /// The views in which this brick takes writes, also where a later one is promised.
    pub fn working(&self) -> impl Iterator<Item = &GroupView> {
        self.states.values().filter_map(|state| state.active.as_ref()).filter(|view| view.is_writer(self.me))
    }

    /// The view of a group in which this brick takes writes, also where a later one is promised.
    pub fn working_view(&self, group: GroupId) -> Option<&GroupView> {
        self.active(group).filter(|view| view.is_writer(self.me))
    }

    /// What is known of groups, from this one on.
    pub fn states_from(&self, first: GroupId) -> impl Iterator<Item = (GroupId, &GroupState)> {
        self.states.range(first..).map(|(id, state)| (*id, state))
    }

    /// All that is known of all groups.
    pub fn states(&self) -> impl Iterator<Item = &GroupState> {
        self.states.values()
    }

    /// Whether a later view than the active one is promised: writes in doubt are frozen until it begins. So are those of a
    /// group that is doubted.
    pub fn is_fenced(&self, group: GroupId) -> bool {
        self.is_doubted(group)
            || self.states.get(&group).is_some_and(|state| {
                state.active.as_ref().is_none_or(|active| state.promised > active.number)
            })
    }

    /// The view that began last.
    pub fn active(&self, group: GroupId) -> Option<&GroupView> {
        self.states.get(&group)?.active.as_ref()
    }

    /// The branch below `branch`, by the view that began last.
    pub fn parent_of(&self, group: GroupId, branch: VolumeId) -> Option<VolumeId> {
        self.active(group)?.lineage.parent_of(branch)
    }

    /// Whether what a branch has is being moved to its child.
    pub fn is_merging(&self, group: GroupId, branch: VolumeId) -> bool {
        self.active(group).is_some_and(|view| view.lineage.merging.contains(&branch))
    }

    /// The volume that writes to a branch, or the snapshot that it is.
    pub fn volume_of(&self, group: GroupId, branch: VolumeId) -> VolumeId {
        let heads = self.active(group).map_or(&[][..], |view| &view.lineage.heads);
        heads.iter().find(|(_, head)| *head == branch).map_or(branch, |(volume, _)| *volume)
    }

    /// The family of a branch; a volume of which nothing is known is its own.
    pub fn family_of(&self, branch: VolumeId) -> VolumeId {
        self.known_family(branch).unwrap_or(branch)
    }

    /// The family of a branch, if any view speaks of it.
    pub fn known_family(&self, branch: VolumeId) -> Option<VolumeId> {
        let views = self.states.values().filter_map(|state| state.active.as_ref());
        let mut of = views.filter(|view| view.volume == branch || view.lineage.knows(branch));
        of.next().map(|view| view.volume)
    }

    /// Whether `volume` names a family of which every head is among `deleted`.
    pub fn is_family_of(&self, volume: VolumeId, deleted: &[VolumeId]) -> bool {
        let views = self.states.values().filter_map(|state| state.active.as_ref());
        let mut of_family = views.filter(|view| view.volume == volume);
        of_family.all(|view| view.lineage.heads.iter().all(|(_, head)| deleted.contains(head)))
    }

    /// The families of the views that it holds; one of several groups is named for each.
    pub fn families(&self) -> impl Iterator<Item = VolumeId> {
        self.states.values().filter_map(|state| Some(state.active.as_ref()?.volume))
    }

    /// The branches that this view leaves out and the one before it did not: they are gone, in every group. A branch is let go once all
    /// members of all groups have moved what it has.
    pub fn left_out_by(&self, view: &GroupView) -> BTreeSet<VolumeId> {
        let before = self.active(view.group).map(|active| &active.lineage);
        let before =
            before.filter(|before| before.number < view.lineage.number && !view.lineage.heads.is_empty());
        let branches = before.into_iter().flat_map(|before| before.branches());
        branches.filter(|branch| self.rules.lets_go(!view.lineage.knows(*branch))).collect()
    }

    /// The branches of these families, as far as its views speak of them.
    pub fn branches_of(&self, families: &BTreeSet<VolumeId>) -> BTreeSet<VolumeId> {
        let views = self.states.values().filter_map(|state| state.active.as_ref());
        let views = views.filter(|view| families.contains(&view.volume));
        views.flat_map(|view| view.lineage.branches().chain([view.volume])).collect()
    }

    /// Whether what it has of a group is of another slot than the one that a later view gives it.
    pub fn has_another_slot(&self, view: &GroupView) -> bool {
        let Some(active) = self.active(view.group).filter(|active| active.number < view.number) else {
            return false;
        };
        matches!((active.place_of(self.me), view.place_of(self.me)), (Some(had), Some(has)) if had != has)
    }

    /// Whether all that is known of a group is what it promised.
    pub fn is_buried(&self, group: GroupId) -> bool {
        self.states.get(&group).is_some_and(|state| state.active.is_none())
    }

    /// Whether it has a view of a group.
    pub fn has(&self, group: GroupId) -> bool {
        self.active(group).is_some()
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

    /// Begins `view`; false when a later one is promised or began, and when it counts on what this brick may lack.
    pub fn activate(&mut self, view: &GroupView) -> bool {
        if self.is_ousted || self.is_doubted(view.group) && view.is_current(self.me) {
            return false;
        }
        let state = self.states.entry(view.group).or_default();
        if state.promised > view.number
            || state.active.as_ref().is_some_and(|active| active.number > view.number)
        {
            return false;
        }
        state.promised = view.number;
        state.active = Some(view.clone());
        if view.is_joining(self.me) {
            self.doubted.remove(&view.group);
        }
        true
    }

    /// Leaves a tombstone of a group: of views up to `number` it takes nothing any more.
    pub fn bury(&mut self, group: GroupId, number: ViewNumber) {
        let promised = self.promised(group).max(number);
        self.states.insert(group, GroupState { promised, active: None, is_bare: false });
        self.noted.remove(&group);
        self.doubted.remove(&group);
    }

    /// Leaves a tombstone of every group: the brick has lost what it took, also under the views that are in force. Gives
    /// those views.
    pub fn bury_all(&mut self) -> Vec<GroupView> {
        let views: Vec<GroupView> = self.states.values().filter_map(|state| state.active.clone()).collect();
        for view in &views {
            let latest = self.promised(view.group).max(view.number);
            self.bury(view.group, ViewNumber(latest.0 + 1));
        }
        views
    }

    /// Forgets the groups of deleted families, tombstones among `groups` included, and names them.
    pub fn forget(&mut self, families: &BTreeSet<VolumeId>, groups: &BTreeSet<GroupId>) -> Vec<GroupId> {
        if families.is_empty() {
            return Vec::new();
        }
        let is_of = |group: &GroupId, state: &GroupState| match &state.active {
            Some(view) => self.rules.forgets(families.contains(&view.volume)),
            None => groups.contains(group),
        };
        let of_family = self.states.iter().filter(|(group, state)| is_of(group, state));
        let gone: Vec<GroupId> = of_family.map(|(group, _)| *group).collect();
        for group in &gone {
            self.states.remove(group);
            self.noted.remove(group);
            self.doubted.remove(group);
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Slots;

    #[test]
    fn notes_of_the_release_before_are_read() {
        let state = GroupState { promised: ViewNumber(3), active: Some(view(3, 1)), is_bare: false };
        let mut note = Vec::new();
        state.encode(&mut wire::Writer::of(BEFORE_BARE, &mut note));
        assert_eq!(state_of(&note), Some(state.clone()));
        let mut bare = GroupState { is_bare: true, ..state };
        let mut later = Vec::new();
        bare.encode(&mut wire::Writer::of(Version::BEFORE_STAND_INS, &mut later));
        assert_eq!(state_of(&later), Some(bare.clone()));
        assert_eq!(note_of(&bare), later, "as long as nobody stands in");
        bare.active.iter_mut().for_each(|view| view.seal(1, BrickId(3)));
        assert_eq!(state_of(&note_of(&bare)), Some(bare));
        assert_eq!(state_of(&note[1..]), None);
    }

    fn view(number: u64, current: u32) -> GroupView {
        GroupView {
            group: GroupId(1),
            volume: VolumeId(1),
            number: ViewNumber(number),
            members: vec![BrickId(1), BrickId(2)],
            current: Slots(current),
            joining: Slots::default(),
            lineage: Box::default(),
            sealed: Vec::new(),
        }
    }

    #[test]
    fn what_was_left_is_not_revived_by_what_comes_late() {
        let mut groups = Groups::recover(BrickId(1), &[]);
        assert!(groups.activate(&view(1, 3)) && groups.activate(&view(4, 3)));
        groups.bury(GroupId(1), ViewNumber(5));
        let (key, value) = groups.note(GroupId(1));
        let mut restored = Groups::recover(BrickId(1), &[(key, value.expect("a note"))]);
        assert!(!restored.activate(&view(1, 3)) && !restored.activate(&view(4, 3)));
        assert!(!restored.promise(GroupId(1), ViewNumber(4)) && !restored.has(GroupId(1)));
        assert!(restored.promise(GroupId(1), ViewNumber(6)) && restored.activate(&view(6, 3)));
        let lost = restored.bury_all();
        assert_eq!(lost, [view(6, 3)]);
        assert!(!restored.activate(&view(6, 3)), "it took part, and has lost what it took");
        assert_eq!(restored.forget(&[VolumeId(1)].into(), &[GroupId(1)].into()), [GroupId(1)]);
        assert_eq!(restored.promised(GroupId(1)), ViewNumber(0));
    }

    #[test]
    fn a_promise_fences_and_a_note_restores_it() {
        let mut groups = Groups::recover(BrickId(1), &[]);
        assert!(groups.activate(&view(1, 3)));
        assert_eq!(groups.serves(GroupId(1), ViewNumber(1)), Err(None), "not durable");
        groups.on_noted(GroupId(1), ViewNumber(1));
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
