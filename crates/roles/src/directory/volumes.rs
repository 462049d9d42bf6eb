//! Volumes are made, deleted, changed and listed. Snapshots and clones are in [`super::snapshots`].

use super::admission::Proposal;
use super::cluster::Answered;
use super::desk::Desk;
use super::event::{DirectoryEffect, Put};
use super::members::{full, fullness};
use super::names::check_name;
use super::records::{FamilyRecord, GroupRecord, VolumeRecord};
use super::status::page;
use super::store::{After, Asker};
use super::streams::may_be_given;
use super::views::following;
use base::{BLOCK_U64, BrickId, GroupId, Time, ViewNumber, VolumeId};
use rules::layout::placement::{self, Candidate, Wanted};
use rules::layout::{Geometry, Layout};
use std::collections::BTreeSet;
use wire::{
    AdminError, AdminReply, AdminRequest, BrickStatus, GroupView, Lineage, Reads, Slots, StreamInfo,
    VolumeInfo, VolumeMap,
};

const SIZE_MAX: u64 = 1 << 50;
/// Each group is a view that the directory keeps and tells of. The costs are measured up to here (docs/benchmarks.md).
const GROUPS_MAX: u32 = 1024;

fn candidate((id, status): (BrickId, &BrickStatus)) -> Candidate {
    Candidate { id, weight: status.space.capacity_bytes, labels: status.labels.clone() }
}

/// How many values of a label the bricks have.
fn domains(label: &String, bricks: &[Candidate]) -> usize {
    let labels = bricks.iter().flat_map(|brick| &brick.labels).filter(|(name, _)| name == label);
    labels.map(|(_, value)| value).collect::<BTreeSet<_>>().len()
}

impl Desk {
    pub(super) fn create(
        &mut self,
        now: Time,
        asker: Asker,
        request: AdminRequest,
        fx: &mut Vec<DirectoryEffect>,
    ) -> Answered {
        let AdminRequest::CreateVolume {
            name,
            size_bytes,
            layout,
            stripe_unit_blocks,
            groups,
            read_policy,
            io_timeout,
            nonce,
            protocol,
            placement,
            stream,
            reads,
        } = request
        else {
            return None;
        };
        if let Some(known) = self.cluster.records.volume_named(&name) {
            if known.nonce != nonce {
                return Some(Err(AdminError::Exists(name)));
            }
            if known.ready {
                return Some(Ok(AdminReply::Volume(known.info.clone())));
            }
            self.waiting.for_volume(known.info.id, asker);
            return None;
        }
        if self.cluster.records.counts.recent.contains(&nonce) {
            return Some(Err(AdminError::NotNow(format!(
                "'{name}' was made by this request and is deleted since"
            ))));
        }
        let unit = if stripe_unit_blocks == 0 { Geometry::STRIPE_UNIT_BLOCKS } else { stripe_unit_blocks };
        let id = VolumeId(self.cluster.records.counts.next_volume);
        let usual = VolumeInfo::new(id, name, round_up(size_bytes), layout);
        let info = VolumeInfo {
            stripe_unit_blocks: unit,
            read_policy,
            io_timeout,
            protocol,
            placement,
            stream,
            reads,
            ..usual
        };
        match self.plan(now, &info, groups) {
            Ok(members) => {
                self.waiting.for_volume(info.id, asker);
                self.begin_volume(now, info, nonce, members, fx);
                None
            }
            Err(error) => Some(Err(error)),
        }
    }

    /// The members of each group of a new volume.
    fn plan(&mut self, now: Time, info: &VolumeInfo, groups: u32) -> Result<Vec<Vec<BrickId>>, AdminError> {
        check_name(&info.name, "volume")?;
        let background = StreamInfo::built_in().into_iter().find(|of| of.id == info.stream);
        background.map_or(Ok(()), |of| may_be_given(&of))?;
        check_size(info.size_bytes)?;
        self.cluster.may_have(info.protocol.since(), info.protocol)?;
        self.may_read(info.reads)?;
        let layout: Layout = info.layout.parse().map_err(|error| invalid(format!("{error}")))?;
        let geometry = Geometry::new(layout, info.stripe_unit_blocks, info.column_blocks)
            .map_err(|error| invalid(error.to_string()))?;
        let needed = layout.width();
        let candidates = self.candidates(now, usize::from(needed));
        let available = candidates.len() as u32;
        if available < u32::from(needed) {
            return Err(AdminError::TooFewBricks { needed: u32::from(needed), available });
        }
        let rule = placement::rule(info.placement);
        let extents = geometry.extents(info.size_bytes / BLOCK_U64);
        let asked = if groups == 0 { rule.usual_groups(available).min(GROUPS_MAX) } else { groups };
        let groups = asked.min(u32::try_from(extents).unwrap_or(u32::MAX)).max(1);
        if groups > GROUPS_MAX {
            return Err(invalid(format!("{groups} groups are too many: at most {GROUPS_MAX}")));
        }
        let domains: Vec<&str> = self.cluster.config.domains.iter().map(String::as_str).collect();
        let wanted = Wanted { family: info.id, groups, width: needed };
        let members =
            rule.place(wanted, &candidates, &domains).map_err(|error| invalid(error.to_string()))?;
        self.cluster.may_reserve(now, &Proposal::NewVolume(info, &members))?;
        Ok(members)
    }

    /// The bricks among which a volume's groups are spread; those that are nearly full only if the others are fewer than
    /// `needed`, or lie in fewer failure domains than the copies could be spread over.
    fn candidates(&self, now: Time, needed: usize) -> Vec<Candidate> {
        let (bricks, lacking) = (self.cluster.records.bricks.keys(), self.cluster.lacking());
        let present = bricks
            .filter(|brick| self.cluster.leases.is_alive(now, **brick) && self.cluster.takes_groups(**brick))
            // One that lacks something gets no lease before its groups have left it out, and begins nothing.
            .filter(|brick| !lacking.contains(*brick))
            .filter_map(|brick| Some((*brick, &self.cluster.leases.get(*brick)?.status)))
            .filter(|(_, status)| status.space.capacity_bytes > 0);
        let (roomy, full): (Vec<_>, Vec<_>) = present.partition(|(_, status)| fullness(status) < full::WARN);
        let [roomy, full] = [roomy, full].map(|bricks| bricks.into_iter().map(candidate).collect::<Vec<_>>());
        let all = [&roomy[..], &full].concat();
        let spread = |label: &String, of: &[Candidate]| domains(label, of).min(needed);
        let is_spread = |label| spread(label, &roomy) == spread(label, &all);
        let suffice = roomy.len() >= needed && self.cluster.config.domains.iter().all(is_spread);
        if suffice { roomy } else { all }
    }

    fn begin_volume(
        &mut self,
        now: Time,
        info: VolumeInfo,
        nonce: u64,
        members: Vec<Vec<BrickId>>,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        let (volume, head) = (self.cluster.draw_id(), self.cluster.draw_id());
        let first = self.cluster.records.counts.next_group;
        let groups: Vec<GroupId> = (first..first + members.len() as u64).map(GroupId).collect();
        self.cluster.records.counts.next_group += members.len() as u64;
        let lineage = Lineage { heads: vec![(volume, head)], ..Lineage::default() };
        let family = FamilyRecord {
            groups: groups.clone(),
            lineage: lineage.clone(),
            next: None,
            doomed: Vec::new(),
            changed: self.cluster.records.bump(),
        };
        self.cluster.records.volumes.insert(volume, VolumeRecord { info, nonce, ready: false });
        self.cluster.records.families.insert(volume, family);
        self.cluster.records.note_nonce(nonce);
        // One write makes the volume known; each group's own change begins behind it.
        let puts = vec![
            self.cluster.records.put_volume(volume),
            self.cluster.records.put_family(volume),
            self.cluster.records.put_counts(),
        ];
        self.cluster.put(puts, Vec::new(), fx);
        for (group, members) in groups.into_iter().zip(members) {
            let record = GroupRecord {
                volume,
                active: None,
                next: None,
                voters: Slots::default(),
                changed: 0,
                former: Vec::new(),
            };
            self.cluster.records.groups.insert(group, record);
            let (number, joining, sealed) = (ViewNumber(1), Slots::default(), Vec::new());
            let (current, lineage) = (Slots::all(members.len() as u8), Box::new(lineage.clone()));
            let view = GroupView { group, volume, number, members, current, joining, lineage, sealed };
            self.views.begin_change(&mut self.cluster, now, view, Vec::new(), fx);
        }
    }

    pub(super) fn delete(
        &mut self,
        asker: Asker,
        name: &str,
        nonce: u64,
        fx: &mut Vec<DirectoryEffect>,
    ) -> Answered {
        // Come again: what has the name now is another volume.
        if self.cluster.records.counts.recent.contains(&nonce) {
            return Some(Ok(AdminReply::Done));
        }
        let Some(record) = self.cluster.records.volume_named(name) else {
            return Some(Err(AdminError::NoVolume(name.to_owned())));
        };
        let info = record.info.clone();
        if let Err(error) = self.may_delete(&info) {
            return Some(Err(error));
        }
        self.cluster.records.volumes.remove(&info.id);
        self.cluster.records.note_nonce(nonce);
        let mut puts = vec![self.cluster.records.put_volume(info.id), self.cluster.records.put_counts()];
        if self.cluster.records.volumes_of(info.family).next().is_none() {
            puts.extend(self.drop_family(info.family));
        } else {
            let families = &mut self.cluster.records.families;
            families.change(&info.family, |family| family.doomed.push(family.lineage.branch_of(info.id)));
            puts.extend(self.cluster.touch_family(info.family));
        }
        self.waiting.take_for(info.id);
        self.cluster.forget_told(info.id);
        let done = After::Answer(asker, Ok(AdminReply::Done));
        self.cluster.put(puts, vec![After::Deleted(info.id), done], fx);
        None
    }

    /// Whether nothing else needs the volume's or snapshot's blocks by name.
    fn may_delete(&self, info: &VolumeInfo) -> Result<(), AdminError> {
        let family = self.cluster.records.families.get(&info.family);
        if family.is_some_and(|family| family.next.is_some()) {
            return Err(AdminError::Busy);
        }
        let of_it =
            self.cluster.records.volumes_of(info.family).filter(|record| record.info.origin == Some(info.id));
        let names: Vec<&str> = of_it.map(|record| record.info.name.as_str()).collect();
        let kind = if info.is_snapshot { "clones of it" } else { "snapshots of it" };
        if !names.is_empty() {
            let (name, names) = (&info.name, names.join(", "));
            return Err(AdminError::NotNow(format!(
                "'{name}' is still needed by {kind}: delete {names} first"
            )));
        }
        Ok(())
    }

    /// Forgets a family that has no volume any more, and all its groups.
    fn drop_family(&mut self, family: VolumeId) -> Vec<Put> {
        let Some(record) = self.cluster.records.families.remove(&family) else { return Vec::new() };
        let mut puts = vec![self.cluster.records.put_family(family)];
        let lineage = record.next.as_ref().unwrap_or(&record.lineage);
        let mut branches: BTreeSet<VolumeId> = lineage.heads.iter().map(|(_, head)| *head).collect();
        branches.extend(lineage.parents.iter().flat_map(|(child, parent)| [*child, *parent]));
        branches.extend(record.doomed);
        branches.insert(family);
        for branch in branches {
            let version = self.cluster.records.bump();
            self.cluster.records.deleted.insert(version, branch);
            puts.push(self.cluster.records.put_deleted(version));
        }
        for group in record.groups {
            self.cluster.records.groups.remove(&group);
            self.views.forget(group);
            self.cluster.records.bare.remove(&group);
            self.cluster.records.revocable.remove(&group);
            puts.extend([self.cluster.records.put_group(group), self.cluster.records.put_bare(group)]);
            puts.push(self.cluster.records.put_revocable(group));
        }
        puts.push(self.cluster.records.put_counts());
        puts
    }

    /// Whether all daemons know how volumes are read that are read so. One that does not would go on with a volume that it has open.
    fn may_read(&self, reads: Reads) -> Result<(), AdminError> {
        self.cluster.may_have(reads.since(), format_args!("{reads} reads"))
    }

    /// Says what a volume's reads count on from now on.
    pub(super) fn set_reads(
        &mut self,
        asker: Asker,
        name: &str,
        reads: Reads,
        fx: &mut Vec<DirectoryEffect>,
    ) -> Answered {
        if let Err(error) = self.may_read(reads) {
            return Some(Err(error));
        }
        self.alter(asker, name, fx, |info| {
            info.reads = reads;
            Ok(())
        })
    }

    pub(super) fn alter(
        &mut self,
        asker: Asker,
        name: &str,
        fx: &mut Vec<DirectoryEffect>,
        change: impl FnOnce(&mut VolumeInfo) -> Result<(), AdminError>,
    ) -> Answered {
        let Some(mut info) = self.cluster.records.volume_named(name).map(|record| record.info.clone()) else {
            return Some(Err(AdminError::NoVolume(name.to_owned())));
        };
        if info.is_snapshot {
            return Some(Err(invalid(format!("'{name}' is a snapshot and stays as it is"))));
        }
        if let Err(error) = change(&mut info) {
            return Some(Err(error));
        }
        let volume = info.id;
        self.cluster.set_volume(info.clone());
        let done = After::Answer(asker, Ok(AdminReply::Volume(info.clone())));
        let settled = After::Settled(Box::new(info.clone()));
        let mut puts = self.cluster.touch_family(info.family);
        puts.push(self.cluster.records.put_volume(volume));
        self.cluster.put(puts, vec![settled, After::Changed(volume), done], fx);
        None
    }

    /// A volume becomes larger.
    pub(super) fn resize(
        &mut self,
        now: Time,
        asker: Asker,
        name: &str,
        size_bytes: u64,
        fx: &mut Vec<DirectoryEffect>,
    ) -> Answered {
        let size_bytes = round_up(size_bytes);
        let known = self.cluster.records.volume_named(name);
        if let Some(known) = known.filter(|record| record.info.size_bytes < size_bytes) {
            // Of its stream's reservation a larger part falls on its bricks.
            let larger = VolumeInfo { size_bytes, ..known.info.clone() };
            if let Err(error) = self.cluster.may_reserve(now, &Proposal::Volumes(&[larger])) {
                return Some(Err(error));
            }
        }
        self.alter(asker, name, fx, |info| {
            if size_bytes < info.size_bytes {
                return Err(invalid(format!(
                    "volume '{}' has {} bytes and can only be made larger: shrinking would drop data",
                    info.name, info.size_bytes
                )));
            }
            check_size(size_bytes)?;
            info.size_bytes = size_bytes;
            Ok(())
        })
    }

    /// All volumes that can be opened, or a page of them from an id on.
    pub(super) fn list(&self, from: Option<VolumeId>) -> AdminReply {
        let records = self.cluster.records.volumes.range(from.unwrap_or_default()..);
        let ready = records.filter(|(_, record)| record.ready);
        let shown = ready.map(|(_, record)| self.cluster.shown(&record.info).clone());
        AdminReply::Volumes(match from {
            Some(_) => page(shown, self.cluster.page_bytes()),
            None => shown.collect(),
        })
    }

    /// What the groups of a volume lost is not lost any more, but zeros: a view of the same members says so.
    pub(super) fn forget_lost(
        &mut self,
        now: Time,
        asker: Asker,
        name: &str,
        fx: &mut Vec<DirectoryEffect>,
    ) -> Answered {
        let found = self.cluster.records.volume_named(name);
        let Some(family) = found.map(|record| record.info.family) else {
            return Some(Err(AdminError::NoVolume(name.to_owned())));
        };
        let groups = self.cluster.records.families.get(&family).map_or(&[][..], |record| &record.groups);
        let has_lost =
            |group: &GroupId| self.cluster.records.bare.get(group).is_some_and(|slots| !slots.is_empty());
        let groups: Vec<GroupId> = groups.iter().copied().filter(has_lost).collect();
        if groups.iter().any(|group| self.views.is_changing(*group)) {
            return Some(Err(AdminError::NotNow(format!(
                "the membership of a group of '{name}' is being changed; try again in a moment"
            ))));
        }
        let views = groups.iter().filter_map(|group| self.cluster.active(*group));
        let away =
            views.flat_map(GroupView::parties).find(|brick| !self.cluster.leases.is_alive(now, *brick));
        if let Some(away) = away {
            return Some(Err(AdminError::NotNow(format!(
                "{away} is away, and '{name}' would not be served before it is back: start it first"
            ))));
        }
        for group in groups {
            let Some(view) = self.cluster.active(group).cloned() else { continue };
            self.cluster.records.bare.insert(group, Slots::default());
            let puts = vec![self.cluster.records.put_bare(group)];
            self.views.begin_change(&mut self.cluster, now, following(&view, |_| {}), puts, fx);
        }
        self.cluster.answer_behind(asker, Ok(AdminReply::Done), fx);
        None
    }

    pub(super) fn volume_map(&self, name: &str) -> Result<Box<VolumeMap>, AdminError> {
        let record = self
            .cluster
            .records
            .volume_named(name)
            .filter(|record| record.ready)
            .ok_or_else(|| AdminError::NoVolume(name.to_owned()))?;
        let groups =
            self.cluster.records.families.get(&record.info.family).map_or(&[][..], |family| &family.groups);
        let groups = groups.iter().filter_map(|group| self.cluster.active(*group).cloned()).collect();
        // Of all bricks: those on which the rest of its stream lies are told of it too.
        let (volume, bricks) = (self.cluster.shown(&record.info).clone(), self.cluster.addresses());
        Ok(Box::new(VolumeMap { volume, groups, bricks, stream_bricks: Vec::new() }))
    }

    /// The same for whoever serves it, who is to tell bricks of its stream.
    pub(super) fn open_volume(&mut self, name: &str) -> Result<Box<VolumeMap>, AdminError> {
        let mut map = self.volume_map(name)?;
        map.stream_bricks = self.cluster.bricks_of_stream(map.volume.stream);
        Ok(map)
    }
}

pub(super) fn invalid(why: String) -> AdminError {
    AdminError::Invalid(why)
}

pub(super) fn round_up(size_bytes: u64) -> u64 {
    size_bytes.checked_next_multiple_of(BLOCK_U64).unwrap_or(u64::MAX)
}

pub(super) fn check_size(size_bytes: u64) -> Result<(), AdminError> {
    match size_bytes {
        0 => Err(invalid("a volume needs a size".to_owned())),
        size if size > SIZE_MAX => Err(invalid(format!("{size} bytes are too many: at most {SIZE_MAX}"))),
        _ => Ok(()),
    }
}
