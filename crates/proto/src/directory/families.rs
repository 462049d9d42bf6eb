//! Branches of a family of volumes: snapshots, clones, rollbacks, and what becomes of deleted ones.
//!
//! Each is a *cut*: one view change of all groups of the family to a new lineage. Where a volume moves to another head, no
//! group goes on from fencing before all have fenced ([`Directory::release_family`]), so that a snapshot is closed under
//! happens-before. A family makes one cut at a time, and only while all its groups are in order; requests wait for that.

use super::members::following;
use super::records::VolumeRecord;
use super::store::{After, Asker};
use super::volumes::{check_name, invalid};
use super::{Answered, Directory, DirectoryEffect, Put};
use crate::member::change::Step;
use base::{GroupId, Time, VolumeId};
use core::time::Duration;
use wire::{AdminError, AdminReply, AdminRequest, GroupView, Lineage, VolumeInfo};

/// How long a request waits for the groups to be in order.
const PATIENCE: Duration = Duration::from_secs(15);
/// The most branches of a family, dead ones included: every view names them all.
const BRANCHES_MAX: usize = 256;

/// A request for a cut that has to wait.
#[derive(Debug)]
pub(super) struct Wish {
    until: Time,
    pub(super) asker: Asker,
    request: AdminRequest,
}

/// What tells copies of a request from other requests of the same kind.
fn nonce_of(request: &AdminRequest) -> Option<u64> {
    match request {
        AdminRequest::Snapshot { nonce, .. }
        | AdminRequest::Clone { nonce, .. }
        | AdminRequest::Rollback { nonce, .. } => Some(*nonce),
        _ => None,
    }
}

fn not_now() -> AdminError {
    AdminError::NotNow(
        "a brick of the volume is away or its groups are changing; try again when `brickwork status` shows no group as \
         unavailable"
            .to_owned(),
    )
}

/// A cut as it is to be made.
struct Cut {
    family: VolumeId,
    lineage: Lineage,
    /// Who is answered when it is made.
    volume: VolumeId,
    puts: Vec<Put>,
    after: Vec<After>,
}

impl Directory {
    // ---- requests ----

    /// A snapshot, clone, rollback or deletion is asked for.
    pub(super) fn on_cut_request(
        &mut self,
        now: Time,
        asker: Asker,
        request: AdminRequest,
        fx: &mut Vec<DirectoryEffect>,
    ) -> Answered {
        match self.try_cut(now, asker, &request, fx) {
            Some(Err(AdminError::Busy)) => {
                let same = |wish: &Wish| wish.asker == asker;
                if !self.wishes.iter().any(same) {
                    self.wishes.push(Wish { until: now + PATIENCE, asker, request });
                }
                None
            }
            Some(Err(why)) => {
                self.refuse(asker, &request, why, fx);
                None
            }
            answered => answered,
        }
    }

    /// Answers that a request is refused, once it is stored that it is: a copy that was on its way meanwhile must not do
    /// later what nobody expects any more.
    fn refuse(
        &mut self,
        asker: Asker,
        request: &AdminRequest,
        why: AdminError,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        if let Some(nonce) = nonce_of(request).filter(|nonce| self.records.refusal(*nonce).is_none()) {
            let put = self.records.refuse(nonce, why.clone());
            self.put(vec![put], Vec::new(), fx);
        }
        self.answer_behind(asker, Err(why), fx);
    }

    /// Tries again what had to wait.
    pub(super) fn grant_wishes(&mut self, now: Time, fx: &mut Vec<DirectoryEffect>) {
        if self.store.is_failing() {
            return;
        }
        for wish in core::mem::take(&mut self.wishes) {
            match self.try_cut(now, wish.asker, &wish.request, fx) {
                None => {}
                Some(Err(AdminError::Busy)) if now < wish.until => self.wishes.push(wish),
                Some(Err(AdminError::Busy)) => self.refuse(wish.asker, &wish.request, not_now(), fx),
                Some(Err(why)) => self.refuse(wish.asker, &wish.request, why, fx),
                Some(result) => self.answer_behind(wish.asker, result, fx),
            }
        }
    }

    fn try_cut(
        &mut self,
        now: Time,
        asker: Asker,
        request: &AdminRequest,
        fx: &mut Vec<DirectoryEffect>,
    ) -> Answered {
        if let Some(why) = nonce_of(request).and_then(|nonce| self.records.refusal(nonce)) {
            return Some(Err(why.clone()));
        }
        let planned = match request {
            // What is being moved or let go in the background must end first.
            AdminRequest::DeleteVolume { name } => return self.delete(asker, name, fx),
            AdminRequest::Snapshot { volume, snapshot, nonce } => {
                self.plan_snapshot(now, volume, snapshot, *nonce)
            }
            AdminRequest::Clone { snapshot, name, nonce } => self.plan_clone(now, snapshot, name, *nonce),
            AdminRequest::Rollback { snapshot, nonce } => self.plan_rollback(now, snapshot, *nonce),
            _ => return None,
        };
        match planned {
            Ok(Planned::Done(volume)) => Some(Ok(AdminReply::Volume(volume))),
            Ok(Planned::UnderWay(volume)) => {
                self.creating.entry(volume).or_default().push(asker);
                None
            }
            Ok(Planned::Cut(cut)) => {
                self.creating.entry(cut.volume).or_default().push(asker);
                self.begin_cut(now, cut, fx);
                None
            }
            Err(error) => Some(Err(error)),
        }
    }

    fn plan_snapshot(
        &mut self,
        now: Time,
        volume: &str,
        snapshot: &str,
        nonce: u64,
    ) -> Result<Planned, AdminError> {
        check_name(snapshot)?;
        let name = format!("{volume}@{snapshot}");
        if let Some(known) = self.known(&name, nonce)? {
            return Ok(known);
        }
        let of = self.volume(volume)?;
        if of.is_snapshot {
            return Err(invalid(format!("'{volume}' is a snapshot itself; clone it to write to it")));
        }
        let (mut lineage, family) = (self.lineage_for_more(now, of.family)?, of.family);
        let (frozen, head) = (lineage.branch_of(of.id), self.draw_id());
        move_head(&mut lineage, of.id, head);
        lineage.parents.push((head, frozen));
        let origin = Some(of.id);
        let info = VolumeInfo { id: frozen, name, read_only: true, origin, is_snapshot: true, ..of };
        let puts = self.enter(info, nonce);
        Ok(Planned::Cut(Cut { family, lineage, volume: frozen, puts, after: Vec::new() }))
    }

    fn plan_clone(
        &mut self,
        now: Time,
        snapshot: &str,
        name: &str,
        nonce: u64,
    ) -> Result<Planned, AdminError> {
        check_name(name)?;
        if let Some(known) = self.known(name, nonce)? {
            return Ok(known);
        }
        let of = self.snapshot(snapshot)?;
        let (mut lineage, family) = (self.lineage_for_more(now, of.family)?, of.family);
        let (id, head) = (self.draw_id(), self.draw_id());
        lineage.heads.push((id, head));
        lineage.parents.push((head, of.id));
        let (name, origin) = (name.to_owned(), Some(of.id));
        let info = VolumeInfo { id, name, read_only: false, origin, is_snapshot: false, ..of };
        let puts = self.enter(info, nonce);
        Ok(Planned::Cut(Cut { family, lineage, volume: id, puts, after: Vec::new() }))
    }

    fn plan_rollback(&mut self, now: Time, snapshot: &str, nonce: u64) -> Result<Planned, AdminError> {
        let to = self.snapshot(snapshot)?;
        let volume = to.origin.and_then(|id| self.records.volumes.get(&id));
        let Some(VolumeRecord { info, .. }) = volume.cloned() else {
            return Err(AdminError::NoVolume(snapshot.split('@').next().unwrap_or_default().to_owned()));
        };
        let is_moving = self.records.families.get(&to.family).is_some_and(|family| family.next.is_some());
        if self.records.counts.recent.contains(&nonce) {
            return Ok(if is_moving { Planned::UnderWay(info.id) } else { Planned::Done(info) });
        }
        let (mut lineage, family) = (self.lineage_for_more(now, to.family)?, to.family);
        let (dropped, head) = (lineage.branch_of(info.id), self.draw_id());
        move_head(&mut lineage, info.id, head);
        lineage.parents.push((head, to.id));
        let volume = info.id;
        let rolled_back = VolumeInfo { size_bytes: to.size_bytes, ..info.clone() };
        self.hold_back(info);
        if let Some(record) = self.records.volumes.get_mut(&volume) {
            record.info = rolled_back.clone();
        }
        if let Some(record) = self.records.families.get_mut(&family) {
            record.doomed.push(dropped);
        }
        self.records.note_nonce(nonce);
        let puts = vec![self.records.put_volume(volume), self.records.put_counts()];
        Ok(Planned::Cut(Cut {
            family,
            lineage,
            volume,
            puts,
            after: vec![After::Settled(Box::new(rolled_back))],
        }))
    }

    /// A volume of that name that this very request made. A request that comes again after what it made was deleted does
    /// not make it once more.
    fn known(&self, name: &str, nonce: u64) -> Result<Option<Planned>, AdminError> {
        match self.records.volume_named(name) {
            None if self.records.counts.recent.contains(&nonce) => {
                Err(AdminError::NotNow(format!("'{name}' was made by this request and is deleted since")))
            }
            None => Ok(None),
            Some(known) if known.nonce != nonce => Err(AdminError::Exists(name.to_owned())),
            Some(known) if known.ready => Ok(Some(Planned::Done(known.info.clone()))),
            Some(known) => Ok(Some(Planned::UnderWay(known.info.id))),
        }
    }

    fn volume(&self, name: &str) -> Result<VolumeInfo, AdminError> {
        let record = self.records.volume_named(name).filter(|record| record.ready);
        record.map(|record| record.info.clone()).ok_or_else(|| AdminError::NoVolume(name.to_owned()))
    }

    fn snapshot(&self, name: &str) -> Result<VolumeInfo, AdminError> {
        let info = self.volume(name)?;
        match info.is_snapshot {
            true => Ok(info),
            false => {
                Err(invalid(format!("'{name}' is not a snapshot; snapshots are named 'volume@snapshot'")))
            }
        }
    }

    pub(super) fn draw_id(&mut self) -> VolumeId {
        self.records.counts.next_volume += 1;
        VolumeId(self.records.counts.next_volume - 1)
    }

    fn enter(&mut self, info: VolumeInfo, nonce: u64) -> Vec<Put> {
        let id = info.id;
        self.records.volumes.insert(id, VolumeRecord { info, nonce, ready: false });
        self.records.note_nonce(nonce);
        vec![self.records.put_volume(id), self.records.put_counts()]
    }

    /// The family's lineage, if a cut can be made now.
    fn lineage_at_rest(&self, now: Time, family: VolumeId) -> Result<Lineage, AdminError> {
        let record = self.records.families.get(&family).ok_or(AdminError::Busy)?;
        let in_order = |group: &GroupId| {
            !self.changes.contains_key(group)
                && self.active(*group).is_some_and(|view| {
                    view.writing_bricks().all(|(_, brick)| self.leases.is_alive(now, brick))
                })
        };
        match record.next.is_none() && record.groups.iter().all(in_order) {
            true => Ok(record.lineage.clone()),
            false => Err(AdminError::Busy),
        }
    }

    /// The lineage to put a further branch into, if a cut can be made now.
    fn lineage_for_more(&self, now: Time, family: VolumeId) -> Result<Lineage, AdminError> {
        let lineage = self.lineage_at_rest(now, family)?;
        if lineage.parents.len() >= BRANCHES_MAX {
            return Err(AdminError::NotNow(format!(
                "the volume and its clones have {BRANCHES_MAX} snapshots, counting deleted ones that are still \
                 being merged: delete some and wait"
            )));
        }
        Ok(lineage)
    }

    // ---- cuts ----

    fn begin_cut(&mut self, now: Time, cut: Cut, fx: &mut Vec<DirectoryEffect>) {
        self.counters.count("cut begun");
        let Some(record) = self.records.families.get_mut(&cut.family) else { return };
        record.next = Some(Lineage { number: record.lineage.number + 1, ..cut.lineage });
        let mut puts = cut.puts;
        puts.push(self.records.put_family(cut.family));
        self.put(puts, cut.after, fx);
        self.continue_cut(now, cut.family, fx);
    }

    /// Groups that have not begun to move to the lineage to come do so.
    pub(super) fn continue_cut(&mut self, now: Time, family: VolumeId, fx: &mut Vec<DirectoryEffect>) {
        let Some(record) = self.records.families.get(&family) else { return };
        let Some(lineage) = record.next.clone() else { return };
        for group in record.groups.clone() {
            let Some(view) = self.latest_view(group).filter(|view| view.lineage != lineage) else { continue };
            let next = following(view, |next| next.lineage = lineage.clone());
            self.begin_change(now, next, Vec::new(), fx);
        }
    }

    /// Whether a view to come moves a volume to another head: then all groups fence before any goes on.
    pub(super) fn moves_branches(&self, next: &GroupView) -> bool {
        let Some(active) = self.active(next.group) else { return false };
        let moves_a_head = active.lineage.heads.iter().any(|(volume, head)| {
            let moved = next.lineage.heads.iter().find(|(of, _)| of == volume);
            moved.is_some_and(|(_, to)| to != head)
        });
        self.rules.fences_family(moves_a_head)
    }

    /// A group of the family has fenced: if all have, they go on.
    pub(super) fn release_family(&mut self, now: Time, group: GroupId, fx: &mut Vec<DirectoryEffect>) {
        let family = self.records.groups.get(&group).map(|record| record.volume);
        let Some(record) = family.and_then(|family| self.records.families.get(&family)) else { return };
        // Who has come to the lineage had promised on the way there, whatever is being changed since.
        let has_promised = |group: &GroupId| {
            let is_there = |view: &GroupView| Some(&view.lineage) == record.next.as_ref();
            self.active(*group).is_some_and(is_there)
                || (self.changes.get(group))
                    .is_some_and(|change| !matches!(change.step, Step::Storing | Step::Fencing))
        };
        if !record.groups.iter().all(has_promised) {
            return;
        }
        for group in record.groups.clone() {
            if let Some(change) = self.changes.get_mut(&group).filter(|change| change.step == Step::Held) {
                change.release();
                self.ask(now, group, fx);
            }
        }
    }

    /// What holds a group may have ended while another one was busy with a change of its own.
    fn release_held(&mut self, now: Time, family: VolumeId, fx: &mut Vec<DirectoryEffect>) {
        let groups = self.records.families.get(&family).map_or(&[][..], |record| &record.groups);
        let is_held =
            |group: &&GroupId| self.changes.get(group).is_some_and(|change| change.step == Step::Held);
        if let Some(group) = groups.iter().find(is_held).copied() {
            self.release_family(now, group, fx);
        }
    }

    /// A group of the family has a new view; when all have come to the lineage, its volumes are ready.
    pub(super) fn on_family_advanced(&mut self, family: VolumeId, fx: &mut Vec<DirectoryEffect>) {
        let Some(record) = self.records.families.get(&family) else { return };
        let is_complete = record.next.is_none() && self.records.volumes_of(family).all(|record| record.ready);
        if is_complete || !self.records.finish_family(family) {
            return;
        }
        let mut puts = self.touch_family(family);
        let volumes: Vec<VolumeInfo> =
            self.records.volumes_of(family).map(|record| record.info.clone()).collect();
        let mut after = Vec::new();
        for info in volumes {
            puts.push(self.records.put_volume(info.id));
            after.push(After::Changed(info.id));
            for asker in self.creating.remove(&info.id).unwrap_or_default() {
                after.push(After::Answer(asker, Ok(AdminReply::Volume(info.clone()))));
            }
        }
        self.put(puts, after, fx);
    }

    /// Something of the family changed: bricks are to learn of it.
    pub(super) fn touch_family(&mut self, family: VolumeId) -> Vec<Put> {
        let version = self.records.bump();
        if let Some(record) = self.records.families.get_mut(&family) {
            record.changed = version;
        }
        vec![self.records.put_family(family), self.records.put_counts()]
    }

    // ---- what is deleted ----

    /// Goes on with cuts that a restart interrupted, and lets the branches of deleted volumes go.
    pub(super) fn keep_families(&mut self, now: Time, fx: &mut Vec<DirectoryEffect>) {
        for family in self.records.families.keys().copied().collect::<Vec<_>>() {
            self.continue_cut(now, family, fx);
            self.release_held(now, family, fx);
            let Ok(lineage) = self.lineage_at_rest(now, family) else { continue };
            let doomed = self.records.families[&family].doomed.clone();
            if self.records.volumes_of(family).next().is_none() {
                continue;
            }
            let step = doomed.into_iter().find_map(|branch| self.let_go(family, &lineage, branch));
            if let Some(cut) = step {
                self.begin_cut(now, cut, fx);
            }
        }
    }

    /// The next step in letting a branch go, if one can be made.
    fn let_go(&mut self, family: VolumeId, lineage: &Lineage, branch: VolumeId) -> Option<Cut> {
        let mut next = lineage.clone();
        let children: Vec<VolumeId> = lineage.children_of(branch).collect();
        match children[..] {
            [] => {}
            [_] if lineage.merging.is_empty() => {
                next.merging.push(branch);
                return Some(Cut {
                    family,
                    lineage: next,
                    volume: branch,
                    puts: Vec::new(),
                    after: Vec::new(),
                });
            }
            [child] if lineage.merging.contains(&branch) && self.is_merged(family, branch) => {
                let parent = lineage.parent_of(branch);
                next.parents.retain(|(of, _)| *of != child);
                next.parents.extend(parent.map(|parent| (child, parent)));
            }
            _ => return None,
        }
        next.heads.retain(|(_, head)| *head != branch);
        next.parents.retain(|(of, _)| *of != branch);
        next.merging.retain(|of| *of != branch);
        let version = self.records.bump();
        self.records.deleted.insert(version, branch);
        if let Some(record) = self.records.families.get_mut(&family) {
            record.doomed.retain(|of| *of != branch);
        }
        let puts = vec![self.records.put_deleted(version), self.records.put_counts()];
        Some(Cut { family, lineage: next, volume: branch, puts, after: Vec::new() })
    }

    /// Whether no writer has anything left in the branch that its child lacks.
    fn is_merged(&self, family: VolumeId, branch: VolumeId) -> bool {
        let groups = self.records.families.get(&family).map_or(&[][..], |record| &record.groups);
        groups.iter().filter_map(|group| self.active(*group)).all(|view| {
            view.writing_bricks().all(|(_, brick)| {
                self.status(brick).is_some_and(|status| status.merged.contains(&(view.group, branch)))
            })
        })
    }
}

/// What is to be done about a request for a cut.
enum Planned {
    Done(VolumeInfo),
    UnderWay(VolumeId),
    Cut(Cut),
}

fn move_head(lineage: &mut Lineage, volume: VolumeId, to: VolumeId) {
    lineage.heads.retain(|(of, _)| *of != volume);
    lineage.heads.push((volume, to));
}
