//! A lost directory is made anew from what the bricks know.
//!
//! Every brick keeps the latest view and promise of its groups, and the families that they belong to. [`Recount`] asks all of
//! them and [`Recount::verdict`] says what the directory's store is to hold, or why that would not be safe.
//!
//! The latest view that is known goes on only if no later one can have been made behind the back of those that answered. A
//! later one has fenced a part of the writers of this one that can serve alone; whoever was fenced knows of it. So it must
//! be impossible for the silent writers alone to serve.
//!
//! Each group gets a further view, of those that answered, which settles what was in doubt; the others may join again.

use super::event::{DirectoryEffect, DirectoryEvent, Put, send};
use super::loans;
use super::records::{BrickRecord, FamilyRecord, GroupRecord, Records, TimeRecord, VolumeRecord};
use base::{BrickId, ClusterTime, Depth, GroupId, Machine, NodeId, Time, ViewNumber, VolumeId};
use rules::layout::Layout;
use std::collections::{BTreeMap, BTreeSet};
use wire::{BrickStatus, Family, GroupState, GroupView, Lineage, Message, RecountFrom, Slots, VolumeInfo};

/// Identifiers and versions that the lost directory may have given and nobody mentions: so many are left out.
const MARGIN: u64 = 1 << 20;

type Groups = Vec<(GroupId, GroupRecord)>;

/// What one brick knows.
#[derive(Clone, Debug, Default)]
struct Account {
    status: BrickStatus,
    known: u64,
    groups: BTreeMap<GroupId, GroupState>,
    families: Vec<Family>,
    /// What time of the cluster it believed it was.
    time: ClusterTime,
    /// Where the page begins that it is asked for.
    next: Option<RecountFrom>,
    /// It has told all; before that it was only heard.
    complete: bool,
}

impl Account {
    /// Of a brick that is heard.
    fn of(status: BrickStatus) -> Account {
        Account { status, next: Some(RecountFrom::FIRST), ..Account::default() }
    }
}

/// Asks all bricks that it hears what they know.
#[derive(Debug, Default)]
pub struct Recount {
    accounts: BTreeMap<BrickId, Account>,
    /// Volumes that are to be left out.
    forgotten: BTreeSet<String>,
}

/// What the new directory's store is to hold.
#[derive(Clone, Debug)]
pub struct Rebuilt {
    pub puts: Vec<Put>,
    /// The volumes that are there again.
    pub volumes: Vec<VolumeInfo>,
    /// How many groups they have.
    pub groups: usize,
    /// What an operator should know.
    pub notes: Vec<String>,
}

impl Recount {
    /// The bricks that have answered, and those that were only heard.
    pub fn bricks(&self) -> (Vec<BrickId>, Vec<BrickId>) {
        let (done, heard): (Vec<_>, Vec<_>) = self.accounts.iter().partition(|(_, account)| account.complete);
        (done.into_iter().map(|(id, _)| *id).collect(), heard.into_iter().map(|(id, _)| *id).collect())
    }

    /// Bricks that are members of groups and have not answered.
    pub fn missing(&self) -> BTreeSet<BrickId> {
        let views = self.answers().flat_map(|(_, account)| account.groups.values());
        let members = views.filter_map(|state| state.active.as_ref()).flat_map(GroupView::parties);
        members.filter(|brick| !self.has_answered(*brick)).collect()
    }

    fn answers(&self) -> impl Iterator<Item = (BrickId, &Account)> {
        self.accounts.iter().filter(|(_, account)| account.complete).map(|(id, account)| (*id, account))
    }

    fn has_answered(&self, brick: BrickId) -> bool {
        self.accounts.get(&brick).is_some_and(|account| account.complete)
    }

    /// Leaves out a volume, and all that shares its groups: one that was deleted while a brick was away, which still
    /// speaks of it.
    pub fn forget(&mut self, volume: &str) {
        self.forgotten.insert(volume.to_owned());
    }

    /// What the store is to hold; or what speaks against it, group by group. With `force` groups that are not safe are
    /// taken as the bricks know them: what was acknowledged under a view that nobody mentions is lost.
    pub fn verdict(&self, force: bool) -> Result<Rebuilt, Vec<String>> {
        let mut records = Records::load(&[]).expect("nothing is well-formed");
        let (mut objections, mut notes) = (Vec::new(), Vec::new());
        let families = self.families();
        for (family, told) in &families {
            if told.volumes.iter().any(|volume| self.forgotten.contains(&volume.name)) {
                continue;
            }
            match self.rebuild_family(told, force, &mut notes) {
                Ok((record, groups)) => {
                    let lineage = record.next.as_ref().unwrap_or(&record.lineage);
                    let recovered = unnamed(lineage, told, &mut notes);
                    for info in told.volumes.iter().cloned().chain(recovered) {
                        let nonce = info.id.0;
                        records.volumes.insert(info.id, VolumeRecord { info, nonce, ready: true });
                    }
                    records.families.insert(*family, record);
                    groups.into_iter().for_each(|(group, record)| records.groups.insert(group, record));
                }
                Err(why) => objections.extend(why),
            }
        }
        let nameless = self.nameless(&families);
        if !nameless.is_empty() && !force {
            objections.push(format!(
                "bricks hold {nameless:?} of volumes that none of them can describe: wait for more bricks, or use \
                 --force to leave them out"
            ));
        }
        if !objections.is_empty() {
            return Err(objections);
        }
        self.enter_bricks(&mut records);
        self.enter_bare(&mut records);
        self.enter_counts(&mut records);
        Ok(rebuilt(records, notes))
    }

    /// Each family as the brick with the latest word of it tells it.
    fn families(&self) -> BTreeMap<VolumeId, Family> {
        let mut families: BTreeMap<VolumeId, (u64, Family)> = BTreeMap::new();
        for (_, account) in self.answers() {
            for family in &account.families {
                let Some(first) = family.volumes.first() else { continue };
                let place = families.entry(first.family).or_insert((0, family.clone()));
                if family.number > place.0 {
                    *place = (family.number, family.clone());
                }
            }
        }
        families.into_iter().map(|(id, (_, family))| (id, family)).collect()
    }

    /// Groups of families that nobody can describe: made just before the directory was lost.
    fn nameless(&self, families: &BTreeMap<VolumeId, Family>) -> Vec<GroupId> {
        let groups: BTreeSet<GroupId> =
            self.answers().flat_map(|(_, account)| account.groups.keys().copied()).collect();
        let is_nameless =
            |group: &GroupId| self.latest(*group).is_some_and(|view| !families.contains_key(&view.volume));
        groups.into_iter().filter(is_nameless).collect()
    }

    /// The latest view of a group that any brick knows.
    fn latest(&self, group: GroupId) -> Option<&GroupView> {
        let states = self.answers().filter_map(|(_, account)| account.groups.get(&group));
        states.filter_map(|state| state.active.as_ref()).max_by_key(|view| view.number)
    }

    fn rebuild_family(
        &self,
        told: &Family,
        force: bool,
        notes: &mut Vec<String>,
    ) -> Result<(FamilyRecord, Groups), Vec<String>> {
        let name = told.volumes.first().map_or("", |volume| volume.name.as_str());
        let layout: Option<Layout> = told.volumes.first().and_then(|volume| volume.layout.parse().ok());
        let Some(layout) = layout else { return Err(vec![format!("volume '{name}' has no known layout")]) };
        let views: Vec<&GroupView> = told.groups.iter().filter_map(|group| self.latest(*group)).collect();
        if views.len() < told.groups.len() {
            let lost = told.groups.len() - views.len();
            return Err(vec![format!(
                "{lost} groups of volume '{name}' are known to no brick that answered"
            )]);
        }
        let mut objections = Vec::new();
        // Where one group has begun with a lineage all had promised it: the others follow.
        let lineages = || views.iter().map(|view| &*view.lineage);
        let oldest = lineages().min_by_key(|lineage| lineage.number).cloned().unwrap_or_default();
        let newest = lineages().max_by_key(|lineage| lineage.number).cloned().unwrap_or_default();
        let groups = views.iter().filter_map(|view| match self.rebuild_group(view, layout, force, notes) {
            Ok(record) => Some((view.group, record)),
            Err(why) => {
                objections.push(format!("{} of volume '{name}': {why}", view.group));
                None
            }
        });
        let groups: Vec<(GroupId, GroupRecord)> = groups.collect();
        if !objections.is_empty() {
            return Err(objections);
        }
        let doomed = newest.merging.clone();
        let next = (newest != oldest).then_some(newest);
        let record = FamilyRecord { groups: told.groups.clone(), lineage: oldest, next, doomed, changed: 0 };
        Ok((record, groups))
    }

    fn rebuild_group(
        &self,
        view: &GroupView,
        layout: Layout,
        force: bool,
        notes: &mut Vec<String>,
    ) -> Result<GroupRecord, String> {
        let knows = |brick: BrickId| {
            let account = self.accounts.get(&brick).filter(|account| account.complete);
            let state = account.and_then(|account| account.groups.get(&view.group));
            state.is_some_and(|state| state.active.is_some())
        };
        let answered = view.current_bricks().filter(|(_, brick)| knows(*brick));
        let current = answered.fold(Slots::default(), |current, (slot, _)| current.with(slot));
        // One that stands in catches up in a further view before it can continue.
        let silent: Vec<String> = view
            .writing_bricks()
            .filter(|(_, brick)| !knows(*brick) && !view.stands_in(*brick))
            .map(|(_, brick)| brick.to_string())
            .collect();
        let needed = layout.width() - layout.tolerates();
        if current.len() < needed {
            return Err(format!(
                "{} of its current bricks answered and {needed} are needed; missing: {}",
                current.len(),
                silent.join(", ")
            ));
        }
        if silent.len() >= usize::from(needed) {
            let one = if silent.len() == 1 { "it" } else { "one of them" };
            let silent = silent.join(", ");
            let why = format!("{silent} may have continued without the other members");
            if !force {
                return Err(format!(
                    "{why}. Start {silent}. If {one} runs and answered, it has no record of the group: either the volume was \
                     deleted (use --forget VOLUME), or its disks were exchanged. If its blocks are lost for good, use \
                     --force, and format its disks before it returns."
                ));
            }
            notes.push(format!("{}: {why}; forced", view.group));
        }
        let promised = self.answers().filter_map(|(_, account)| account.groups.get(&view.group));
        let promised = promised.map(|state| state.promised.0).max().unwrap_or_default();
        let number = ViewNumber(promised.max(view.number.0) + 1);
        let mut next = GroupView { number, current, ..view.clone() };
        // Who stood in knows too little to be one of them.
        next.close(view.joining);
        // Who knows the group and has no slot in it has lost that to another brick and may still hold blocks.
        let former = self
            .answers()
            .filter(|(brick, account)| account.groups.contains_key(&view.group) && !next.has_part(*brick));
        let former = former.map(|(brick, _)| (brick, view.number)).collect();
        Ok(GroupRecord {
            volume: view.volume,
            active: Some(view.clone()),
            next: Some(next),
            voters: current,
            changed: 0,
            former,
        })
    }

    /// Slots of groups whose members say that they lost what they had.
    fn enter_bare(&self, records: &mut Records) {
        let views =
            records.groups.iter().filter_map(|(group, record)| Some((*group, record.active.as_ref()?)));
        let is_bare = |group: GroupId, brick: &BrickId| {
            let state = self.accounts.get(brick).and_then(|account| account.groups.get(&group));
            state.is_some_and(|state| state.is_bare)
        };
        let bare = views.filter_map(|(group, view)| {
            let slots = (0u8..).zip(&view.members).filter(|(_, brick)| is_bare(group, brick));
            let slots = slots.fold(Slots::default(), |slots, (slot, _)| slots.with(slot));
            (!slots.is_empty()).then_some((group, slots))
        });
        records.bare = bare.collect();
    }

    fn enter_bricks(&self, records: &mut Records) {
        let members: BTreeSet<BrickId> = records
            .groups
            .values()
            .filter_map(|record| record.active.as_ref())
            .flat_map(GroupView::parties)
            .collect();
        for brick in members.into_iter().chain(self.accounts.keys().copied()) {
            let mut record = BrickRecord::new(u64::from(brick.0));
            if let Some(account) = self.accounts.get(&brick) {
                record.address.clone_from(&account.status.address);
                record.labels.clone_from(&account.status.labels);
                record.disks.clone_from(&account.status.disks);
            }
            records.bricks.insert(brick, record);
        }
    }

    /// A month after the time of the cluster that most bricks know: what the lost directory has lent is over then. One brick that lies does not decide it. None where all are of before there was one.
    fn time(&self) -> Option<TimeRecord> {
        let times = self.accounts.values().map(|account| account.time);
        let mut times: Vec<ClusterTime> = times.filter(|time| time.is_valid()).collect();
        times.sort_unstable();
        times.get(times.len() / 2).copied().map(|time| TimeRecord::begins_at(time + loans::FORGOTTEN))
    }

    /// Everything the lost directory may have given out is left behind.
    fn enter_counts(&self, records: &mut Records) {
        let known = self.accounts.values().map(|account| account.known.max(account.status.run.newest_known));
        let known = known.max().unwrap_or_default();
        let version = known + MARGIN;
        let branches = records.families.values().flat_map(|family| {
            let lineage = family.next.as_ref().unwrap_or(&family.lineage);
            lineage.heads.iter().chain(&lineage.parents).flat_map(|(one, other)| [one.0, other.0])
        });
        let volume = branches.chain(records.volumes.keys().map(|id| id.0)).max().unwrap_or_default();
        let group = records.groups.keys().map(|id| id.0).max().unwrap_or_default();
        let brick = records.bricks.keys().map(|id| id.0).max().unwrap_or_default();
        records.counts.version = version;
        records.counts.next_volume = volume + MARGIN;
        records.counts.next_group = group + MARGIN;
        records.counts.next_brick = brick + 1000;
        // Bricks know the streams of volumes alone, and certificates may name others. The version leaves behind what every directory before
        // this one has given: between two of them it grows by the margin, and fewer streams are made.
        let stream = records.volumes.values().map(|record| record.info.stream.0).max().unwrap_or_default();
        let passed = u32::try_from(version).unwrap_or(stream).max(stream);
        records.of_streams.next = passed.saturating_add(1);
        records.time = self.time();
        // Each at a version of its own: what a brick is told at a time ends at one.
        let mut version = version;
        let mut next = || {
            version += 1;
            version
        };
        records.families.change_all(|family| family.changed = next());
        records.groups.change_all(|group| group.changed = next());
        records.counts.version = version;
    }
}

/// Branches that no volume names, under names of their own: they may be snapshots and clones that nobody was told of in
/// time, and whoever knows better can delete them.
fn unnamed(lineage: &Lineage, told: &Family, notes: &mut Vec<String>) -> Vec<VolumeInfo> {
    let Some(first) = told.volumes.first() else { return Vec::new() };
    let size_bytes = told.volumes.iter().map(|info| info.size_bytes).max().unwrap_or_default();
    let is_named = |id: VolumeId| told.volumes.iter().any(|info| info.id == id);
    let heads: BTreeSet<VolumeId> = lineage.heads.iter().map(|(_, head)| *head).collect();
    let frozen: BTreeSet<VolumeId> =
        lineage.parents.iter().flat_map(|(child, parent)| [*child, *parent]).collect();
    let frozen = frozen
        .into_iter()
        .filter(|branch| !heads.contains(branch) && !lineage.merging.contains(branch) && !is_named(*branch));
    let frozen = frozen.map(|id| {
        let name = format!("{}@recovered-{}", first.name.split('@').next().unwrap_or_default(), id.0);
        let origin = Some(first.id);
        VolumeInfo { id, name, size_bytes, read_only: true, origin, is_snapshot: true, ..first.clone() }
    });
    let volumes = lineage.heads.iter().map(|(volume, _)| *volume).filter(|id| !is_named(*id));
    let volumes = volumes.map(|id| {
        let (name, origin) = (format!("recovered-{}", id.0), None);
        VolumeInfo { id, name, size_bytes, read_only: false, origin, is_snapshot: false, ..first.clone() }
    });
    let found: Vec<VolumeInfo> = frozen.chain(volumes).collect();
    notes.extend(found.iter().map(|info| {
        format!("'{}' has blocks and no name that any brick knows; delete it if it is not wanted", info.name)
    }));
    found
}

fn rebuilt(records: Records, notes: Vec<String>) -> Rebuilt {
    let mut puts: Vec<Put> = records.bricks.keys().map(|id| records.put_brick(*id)).collect();
    puts.extend(records.volumes.keys().map(|id| records.put_volume(*id)));
    puts.extend(records.families.keys().map(|id| records.put_family(*id)));
    puts.extend(records.groups.keys().map(|id| records.put_group(*id)));
    puts.extend(records.bare.keys().map(|id| records.put_bare(*id)));
    puts.extend([records.put_counts(), records.put_of_streams(), records.put_time()]);
    let volumes = records.volumes.values().map(|record| record.info.clone()).collect();
    Rebuilt { puts, volumes, groups: records.groups.len(), notes }
}

impl Machine for Recount {
    type Event = DirectoryEvent;
    type Effect = DirectoryEffect;

    fn step(&mut self, _now: Time, event: DirectoryEvent, fx: &mut Vec<DirectoryEffect>) {
        let DirectoryEvent::Packet { from: from @ NodeId::Brick(id), packet } = event else { return };
        match packet.message {
            Message::Heartbeat { brick, status, .. } if brick == id => {
                let account = self.accounts.entry(id).or_insert_with(|| Account::of((*status).clone()));
                // One that has restarted, maybe with other disks, begins from the start.
                if account.status.run.number != status.run.number {
                    *account = Account::of((*status).clone());
                }
                account.status = *status;
                if !account.complete {
                    send(fx, from, Message::Recount { from: account.next });
                }
            }
            Message::Recounted { brick, known, groups, families, time, from: begins, next }
                if brick == id =>
            {
                let account = self.accounts.entry(id).or_default();
                // Of an earlier release it tells all at once, and does not say where it begins.
                if account.complete || (begins.is_some() && begins != account.next) {
                    return;
                }
                let group_of = |state: &GroupState| state.active.as_ref().map(|view| view.group);
                account
                    .groups
                    .extend(groups.into_iter().filter_map(|state| Some((group_of(&state)?, state))));
                account.families.extend(families);
                (account.known, account.time) = (known, time);
                (account.next, account.complete) = (next, next.is_none());
                if next.is_some() {
                    send(fx, from, Message::Recount { from: next });
                }
            }
            _ => {}
        }
    }

    fn settle(&mut self, _now: Time, _fx: &mut Vec<DirectoryEffect>) {}

    fn wake(&mut self, _now: Time, _fx: &mut Vec<DirectoryEffect>) {}

    fn deadline(&self) -> Option<(Time, &'static str)> {
        None
    }

    fn check(&self, _depth: Depth) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(layout: &str) -> VolumeInfo {
        VolumeInfo::new(VolumeId(1), "first", 4096, layout)
    }

    fn view(number: u64, current: u32) -> GroupView {
        GroupView {
            group: GroupId(1),
            volume: VolumeId(1),
            number: ViewNumber(number),
            members: vec![BrickId(1), BrickId(2), BrickId(3)],
            current: Slots(current),
            joining: Slots::default(),
            lineage: Lineage { heads: vec![(VolumeId(1), VolumeId(2))], ..Lineage::default() }.into(),
            sealed: Vec::new(),
        }
    }

    /// What bricks `(id, promised, view)` report of a volume with this layout.
    fn recount(layout: &str, told: &[(u32, u64, GroupView)]) -> Recount {
        let mut recount = Recount::default();
        for (id, promised, view) in told {
            let state =
                GroupState { promised: ViewNumber(*promised), active: Some(view.clone()), is_bare: false };
            let families =
                vec![Family { number: 1, volumes: vec![volume(layout)], groups: vec![GroupId(1)] }];
            let brick = BrickId(*id);
            let message = Message::Recounted {
                brick,
                known: 7,
                groups: vec![state],
                families,
                time: ClusterTime::FIRST,
                from: None,
                next: None,
            };
            let packet = message.into();
            let event = DirectoryEvent::Packet { from: NodeId::Brick(brick), packet };
            recount.step(Time::ZERO, event, &mut Vec::new());
        }
        recount
    }

    fn records_of(rebuilt: &Rebuilt) -> Records {
        let load: Vec<_> =
            rebuilt.puts.iter().map(|(k, v)| (k.clone(), v.clone().expect("a value"))).collect();
        Records::load(&load).expect("well-formed")
    }

    fn group_of(rebuilt: &Rebuilt) -> GroupRecord {
        records_of(rebuilt).groups[&GroupId(1)].clone()
    }

    /// A certificate of a client names a stream by its number. The next stream must not be that one.
    #[test]
    fn a_stream_is_not_made_under_a_number_that_the_lost_directory_may_have_given() {
        let told = [(1, 3, view(3, 7)), (2, 3, view(3, 7)), (3, 3, view(3, 7))];
        let rebuilt = recount("raid1x3", &told).verdict(false).expect("all answered");
        // The bricks know the map's version 7.
        assert_eq!(u64::from(records_of(&rebuilt).of_streams.next), MARGIN + 8);
    }

    /// What the lost directory lent of numbers of stamps is not known: it must be over.
    #[test]
    fn the_time_is_later_than_any_that_the_lost_directory_may_have_lent_a_number_for() {
        let told = [(1, 3, view(3, 7)), (2, 3, view(3, 7)), (3, 3, view(3, 7))];
        let rebuilt = recount("raid1x3", &told).verdict(false).expect("all answered");
        let time = records_of(&rebuilt).time.expect("a time").time;
        assert!(time.since(ClusterTime::FIRST) > loans::LONGEST + base::ClusterClock::AHEAD);
    }

    #[test]
    fn all_that_answer_go_on_under_a_later_view_than_any_promised() {
        let told = [(1, 4, view(3, 7)), (2, 3, view(3, 7)), (3, 3, view(3, 7))];
        let rebuilt = recount("raid1x3", &told).verdict(false).expect("all answered");
        assert_eq!((rebuilt.volumes.len(), rebuilt.groups), (1, 1));
        let next = group_of(&rebuilt).next.expect("a further view");
        assert_eq!((next.number, next.current), (ViewNumber(5), Slots(7)));
    }

    #[test]
    fn a_view_that_those_who_are_silent_could_have_left_behind_is_refused() {
        let told = [(1, 3, view(3, 7)), (2, 3, view(3, 7))];
        let refusals = recount("raid1x3", &told).verdict(false).expect_err("brick 3 may have gone on alone");
        assert!(refusals[0].contains("brick-3 may have continued"), "{refusals:?}");
        assert!(recount("raid1x3", &told).verdict(true).is_ok(), "forced");
        let rebuilt = recount("raid5-2+1", &told).verdict(false).expect("brick 3 alone cannot serve");
        assert_eq!(group_of(&rebuilt).next.expect("a view").current, Slots(3));
        let refusals = recount("raid5-2+1", &told[..1]).verdict(true).expect_err("one brick of three");
        assert!(refusals[0].contains("2 are needed"), "{refusals:?}");
    }

    #[test]
    fn a_brick_that_was_left_out_does_not_bring_its_view_back() {
        let told = [(1, 5, view(5, 3)), (2, 5, view(5, 3)), (3, 3, view(3, 7))];
        let rebuilt = recount("raid1x3", &told).verdict(false).expect("all of the latest view answered");
        assert_eq!(group_of(&rebuilt).next.expect("a view").current, Slots(3));
    }

    #[test]
    fn a_sealed_member_is_expected_back_and_who_stood_in_for_it_leaves() {
        let mut stood_in = view(5, 7);
        stood_in.seal(2, BrickId(4));
        let told = [1, 2, 4].map(|brick| (brick, 5, stood_in.clone()));
        for answers in [&told[..], &told[..2]] {
            let recount = recount("raid1x3", answers);
            assert!(recount.missing().contains(&BrickId(3)));
            let rebuilt = recount.verdict(false).expect("a stand-in cannot continue alone");
            let next = group_of(&rebuilt).next.expect("a view");
            assert_eq!(
                (&next.members, next.writers(), next.sealed.len()),
                (&view(1, 7).members, Slots(3), 0)
            );
            assert!(records_of(&rebuilt).bricks.contains_key(&BrickId(3)), "it is no stranger when it calls");
            let is_former = group_of(&rebuilt).former.iter().any(|(brick, _)| *brick == BrickId(4));
            assert_eq!(is_former, answers.len() == 3);
        }
    }

    #[test]
    fn a_volume_that_members_have_forgotten_needs_a_decision() {
        let mut recount = recount("raid1x3", &[(1, 3, view(3, 7)), (3, 3, view(3, 7))]);
        let message = Message::Recounted {
            brick: BrickId(2),
            known: 9,
            groups: Vec::new(),
            families: Vec::new(),
            time: ClusterTime::default(),
            from: None,
            next: None,
        };
        let event = DirectoryEvent::Packet { from: NodeId::Brick(BrickId(2)), packet: message.into() };
        recount.step(Time::ZERO, event, &mut Vec::new());
        let refusals = recount.verdict(false).expect_err("brick 2 may have gone on, or have deleted it");
        assert!(refusals[0].contains("--forget"), "{refusals:?}");
        recount.forget("first");
        assert!(recount.verdict(false).expect("left out").volumes.is_empty());
    }

    #[test]
    fn a_branch_without_a_name_is_kept_under_one() {
        let (v, old, head) = (VolumeId(1), VolumeId(2), VolumeId(3));
        let lineage = Lineage {
            number: 1,
            heads: vec![(v, head), (VolumeId(8), VolumeId(9))],
            parents: vec![(head, old)],
            ..Lineage::default()
        };
        let view = GroupView { lineage: Box::new(lineage), ..view(3, 7) };
        let told = [(1, 3, view.clone()), (2, 3, view.clone()), (3, 3, view)];
        let rebuilt = recount("raid1x3", &told).verdict(false).expect("all answered");
        let names: Vec<&str> = rebuilt.volumes.iter().map(|info| info.name.as_str()).collect();
        assert_eq!(names, ["first", "first@recovered-2", "recovered-8"]);
        assert_eq!(rebuilt.notes.len(), 2);
    }

    /// Of a brick with a page for its family and one for its group, whose messages are lost and repeated, and which restarts.
    #[test]
    fn pages_are_taken_in_their_order_and_anew_from_a_brick_that_has_restarted() {
        const BRICK: BrickId = BrickId(1);
        let mut recount = Recount::default();
        let mut hear = |message: Message| {
            let mut fx = Vec::new();
            let event = DirectoryEvent::Packet { from: NodeId::Brick(BRICK), packet: message.into() };
            recount.step(Time::ZERO, event, &mut fx);
            let asked = fx.into_iter().map(|effect| match effect {
                DirectoryEffect::Send { packet, .. } => match packet.message {
                    Message::Recount { from } => from,
                    other => panic!("{other:?}"),
                },
                other => panic!("{other:?}"),
            });
            (asked.collect::<Vec<_>>(), recount.bricks().0.len(), recount.families().len())
        };
        let heartbeat = |run: u64| {
            let run = wire::Run { number: run, ..wire::Run::default() };
            Message::Heartbeat {
                brick: BRICK,
                sent: Time::ZERO,
                known: 7,
                status: Box::new(BrickStatus { run, ..BrickStatus::default() }),
                streams: wire::StreamReport::default(),
                speaks: wire::Version::CURRENT,
                time: ClusterTime::FIRST,
            }
        };
        let (first, second) = (Some(RecountFrom::FIRST), Some(RecountFrom::Group(GroupId(0))));
        let page = |from: Option<RecountFrom>| {
            let family = Family { number: 1, volumes: vec![volume("raid1x3")], groups: vec![GroupId(1)] };
            let state =
                GroupState { promised: ViewNumber(3), active: Some(view(3, 7)), ..GroupState::default() };
            let (families, groups, next) = match from == first {
                true => (vec![family], Vec::new(), second),
                false => (Vec::new(), vec![state], None),
            };
            let (brick, known, time) = (BRICK, 7, ClusterTime::FIRST);
            Message::Recounted { brick, known, groups, families, time, from, next }
        };
        assert_eq!(hear(heartbeat(5)), (vec![first], 0, 0));
        assert_eq!(hear(page(second)), (vec![], 0, 0), "not asked for yet");
        assert_eq!(hear(page(first)), (vec![second], 0, 0), "a part does not count");
        assert_eq!(hear(page(first)), (vec![], 0, 0), "that is known");
        assert_eq!(hear(heartbeat(5)), (vec![second], 0, 0), "no answer came");
        assert_eq!(hear(heartbeat(6)), (vec![first], 0, 0), "it has restarted");
        assert_eq!(hear(page(second)), (vec![], 0, 0));
        hear(page(first));
        assert_eq!(hear(page(second)), (vec![], 1, 1));
        assert_eq!(hear(heartbeat(6)), (vec![], 1, 1), "it has told all");
        assert_eq!(hear(heartbeat(7)), (vec![first], 0, 0), "its disks may be others now");
    }
}
