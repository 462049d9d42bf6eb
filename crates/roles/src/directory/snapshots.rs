//! Branches of a family of volumes: snapshots, clones, rollbacks, and what becomes of deleted ones.
//!
//! Each is a *cut*: one view change of all groups of the family to a new lineage, so that a snapshot is closed under
//! happens-before ([`super::cut`]). A family makes one cut at a time, and only while all its groups are in order; requests
//! wait for that.

use super::admission::Proposal;
use super::cluster::Answered;
use super::desk::Desk;
use super::event::{DirectoryEffect, Put};
use super::names::check_name;
use super::records::VolumeRecord;
use super::store::{After, Asker};
use super::views::following;
use super::volumes::invalid;
use super::waiting::Wish;
use base::{GroupId, Time, VolumeId};
use core::time::Duration;
use rules::counters::Counter;
use wire::{AdminError, AdminReply, AdminRequest, Lineage, VolumeInfo};

/// How long a request waits for the groups to be in order.
const PATIENCE: Duration = Duration::from_secs(15);
/// The most branches of a family, dead ones included: every view names them all.
const BRANCHES_MAX: usize = 256;

/// What tells copies of a request from other requests of the same kind.
fn nonce_of(request: &AdminRequest) -> Option<u64> {
    match request {
        AdminRequest::Snapshot { nonce, .. }
        | AdminRequest::Clone { nonce, .. }
        | AdminRequest::Rollback { nonce, .. }
        | AdminRequest::DeleteVolume { nonce, .. } => Some(*nonce),
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

impl Desk {
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
                self.waiting.wish(Wish { until: now + PATIENCE, asker, request });
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
        if let Some(nonce) = nonce_of(request).filter(|nonce| self.cluster.records.refusal(*nonce).is_none())
        {
            let put = self.cluster.records.refuse(nonce, why.clone());
            self.cluster.put(vec![put], Vec::new(), fx);
        }
        self.cluster.answer_behind(asker, Err(why), fx);
    }

    /// Tries again what had to wait.
    pub(super) fn grant_wishes(&mut self, now: Time, fx: &mut Vec<DirectoryEffect>) {
        if self.cluster.store.is_failing() {
            return;
        }
        for wish in self.waiting.take_wishes() {
            match self.try_cut(now, wish.asker, &wish.request, fx) {
                None => {}
                Some(Err(AdminError::Busy)) if now < wish.until => self.waiting.wish(wish),
                Some(Err(AdminError::Busy)) => self.refuse(wish.asker, &wish.request, not_now(), fx),
                Some(Err(why)) => self.refuse(wish.asker, &wish.request, why, fx),
                Some(result) => self.cluster.answer_behind(wish.asker, result, fx),
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
        if let Some(why) = nonce_of(request).and_then(|nonce| self.cluster.records.refusal(nonce)) {
            return Some(Err(why.clone()));
        }
        let planned = match request {
            // What is being moved or let go in the background must end first.
            AdminRequest::DeleteVolume { name, nonce } => return self.delete(asker, name, *nonce, fx),
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
                self.waiting.for_volume(volume, asker);
                None
            }
            Ok(Planned::Cut(cut)) => {
                self.waiting.for_volume(cut.volume, asker);
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
        check_name(snapshot, "snapshot")?;
        let name = format!("{volume}@{snapshot}");
        if let Some(known) = self.known(&name, nonce)? {
            return Ok(known);
        }
        let of = self.volume(volume)?;
        if of.is_snapshot {
            return Err(invalid(format!("'{volume}' is a snapshot itself; clone it to write to it")));
        }
        let (mut lineage, family) = (self.lineage_for_more(now, of.family)?, of.family);
        let (frozen, head) = (lineage.branch_of(of.id), self.cluster.draw_id());
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
        check_name(name, "volume")?;
        if let Some(known) = self.known(name, nonce)? {
            return Ok(known);
        }
        let of = self.snapshot(snapshot)?;
        let (mut lineage, family) = (self.lineage_for_more(now, of.family)?, of.family);
        let next = VolumeId(self.cluster.records.counts.next_volume);
        let cloned = VolumeInfo { id: next, is_snapshot: false, ..of.clone() };
        self.cluster.may_reserve(now, &Proposal::Volumes(&[cloned]))?;
        let (id, head) = (self.cluster.draw_id(), self.cluster.draw_id());
        lineage.heads.push((id, head));
        lineage.parents.push((head, of.id));
        let (name, origin) = (name.to_owned(), Some(of.id));
        let info = VolumeInfo { id, name, read_only: false, origin, is_snapshot: false, ..of };
        let puts = self.enter(info, nonce);
        Ok(Planned::Cut(Cut { family, lineage, volume: id, puts, after: Vec::new() }))
    }

    fn plan_rollback(&mut self, now: Time, snapshot: &str, nonce: u64) -> Result<Planned, AdminError> {
        let to = self.snapshot(snapshot)?;
        let volume = to.origin.and_then(|id| self.cluster.records.volumes.get(&id));
        let Some(VolumeRecord { info, .. }) = volume.cloned() else {
            return Err(AdminError::NoVolume(snapshot.split('@').next().unwrap_or_default().to_owned()));
        };
        let is_moving =
            self.cluster.records.families.get(&to.family).is_some_and(|family| family.next.is_some());
        if self.cluster.records.counts.recent.contains(&nonce) {
            return Ok(if is_moving { Planned::UnderWay(info.id) } else { Planned::Done(info) });
        }
        let (mut lineage, family) = (self.lineage_for_more(now, to.family)?, to.family);
        let (dropped, head) = (lineage.branch_of(info.id), self.cluster.draw_id());
        move_head(&mut lineage, info.id, head);
        lineage.parents.push((head, to.id));
        let volume = info.id;
        let rolled_back = VolumeInfo { size_bytes: to.size_bytes, ..info.clone() };
        self.cluster.set_volume(rolled_back.clone());
        self.cluster.records.families.change(&family, |record| record.doomed.push(dropped));
        self.cluster.records.note_nonce(nonce);
        let puts = vec![self.cluster.records.put_volume(volume), self.cluster.records.put_counts()];
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
        match self.cluster.records.volume_named(name) {
            None if self.cluster.records.counts.recent.contains(&nonce) => {
                Err(AdminError::NotNow(format!("'{name}' was made by this request and is deleted since")))
            }
            None => Ok(None),
            Some(known) if known.nonce != nonce => Err(AdminError::Exists(name.to_owned())),
            Some(known) if known.ready => Ok(Some(Planned::Done(known.info.clone()))),
            Some(known) => Ok(Some(Planned::UnderWay(known.info.id))),
        }
    }

    fn volume(&self, name: &str) -> Result<VolumeInfo, AdminError> {
        let record = self.cluster.records.volume_named(name).filter(|record| record.ready);
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

    fn enter(&mut self, info: VolumeInfo, nonce: u64) -> Vec<Put> {
        let id = info.id;
        self.cluster.records.volumes.insert(id, VolumeRecord { info, nonce, ready: false });
        self.cluster.records.note_nonce(nonce);
        vec![self.cluster.records.put_volume(id), self.cluster.records.put_counts()]
    }

    /// The family's lineage, if a cut can be made now.
    fn lineage_at_rest(&self, now: Time, family: VolumeId) -> Result<Lineage, AdminError> {
        let record = self.cluster.records.families.get(&family).ok_or(AdminError::Busy)?;
        let in_order = |group: &GroupId| {
            !self.views.is_changing(*group)
                && self.cluster.active(*group).is_some_and(|view| {
                    view.writing_bricks().all(|(_, brick)| self.cluster.leases.is_alive(now, brick))
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
        self.cluster.counters.count(Counter::CutBegun);
        let groups = self.cluster.records.families.get(&cut.family).map_or(&[][..], |record| &record.groups);
        let has_stand_in =
            |group: &GroupId| self.cluster.active(*group).is_some_and(|view| !view.sealed.is_empty());
        if groups.iter().any(has_stand_in) {
            self.cluster.counters.count(Counter::CutBegunBesideAStandIn);
        }
        let moved = self.cluster.records.families.change(&cut.family, |record| {
            record.next = Some(Lineage { number: record.lineage.number + 1, ..cut.lineage });
        });
        if moved.is_none() {
            return;
        }
        let mut puts = cut.puts;
        puts.push(self.cluster.records.put_family(cut.family));
        self.cluster.put(puts, cut.after, fx);
        self.continue_cut(now, cut.family, fx);
    }

    /// Groups that have not begun to move to the lineage to come do so.
    pub(super) fn continue_cut(&mut self, now: Time, family: VolumeId, fx: &mut Vec<DirectoryEffect>) {
        let Some(record) = self.cluster.records.families.get(&family) else { return };
        let Some(lineage) = record.next.clone() else { return };
        for group in record.groups.clone() {
            let Some(view) = self.cluster.latest_view(group).filter(|view| *view.lineage != lineage) else {
                continue;
            };
            let next = following(view, |next| *next.lineage = lineage.clone());
            self.views.begin_change(&mut self.cluster, now, next, Vec::new(), fx);
        }
    }

    /// A group of the family has a new view; when all have come to the lineage, its volumes are ready.
    pub(super) fn on_family_advanced(&mut self, family: VolumeId, fx: &mut Vec<DirectoryEffect>) {
        let Some(record) = self.cluster.records.families.get(&family) else { return };
        let is_complete =
            record.next.is_none() && self.cluster.records.volumes_of(family).all(|record| record.ready);
        if is_complete || !self.cluster.records.finish_family(family) {
            return;
        }
        let mut puts = self.cluster.touch_family(family);
        let volumes: Vec<VolumeInfo> =
            self.cluster.records.volumes_of(family).map(|record| record.info.clone()).collect();
        let mut after = Vec::new();
        for info in volumes {
            puts.push(self.cluster.records.put_volume(info.id));
            after.push(After::Changed(info.id));
            for asker in self.waiting.take_for(info.id) {
                after.push(After::Answer(asker, Ok(AdminReply::Volume(info.clone()))));
            }
        }
        self.cluster.put(puts, after, fx);
    }

    // ---- what is deleted ----

    /// Goes on with cuts that a restart interrupted, and lets the branches of deleted volumes go.
    pub(super) fn keep_families(&mut self, now: Time, fx: &mut Vec<DirectoryEffect>) {
        self.views.release_held(&mut self.cluster, now, fx);
        for family in self.cluster.records.families.index().busy().collect::<Vec<_>>() {
            self.continue_cut(now, family, fx);
            let Ok(lineage) = self.lineage_at_rest(now, family) else { continue };
            let doomed = self.cluster.records.families[&family].doomed.clone();
            if self.cluster.records.volumes_of(family).next().is_none() {
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
        let version = self.cluster.records.bump();
        self.cluster.records.deleted.insert(version, branch);
        self.cluster.records.families.change(&family, |record| record.doomed.retain(|of| *of != branch));
        let puts = vec![self.cluster.records.put_deleted(version), self.cluster.records.put_counts()];
        Some(Cut { family, lineage: next, volume: branch, puts, after: Vec::new() })
    }

    /// Whether no writer has anything left in the branch that its child lacks.
    fn is_merged(&self, family: VolumeId, branch: VolumeId) -> bool {
        let groups = self.cluster.records.families.get(&family).map_or(&[][..], |record| &record.groups);
        groups.iter().filter_map(|group| self.cluster.active(*group)).all(|view| {
            view.writing_bricks().all(|(_, brick)| {
                self.cluster
                    .status(brick)
                    .is_some_and(|status| status.groups.merged.contains(&(view.group, branch)))
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
