//! Volumes that nobody opens: the administrator makes them, takes snapshots of them, and deletes both again, while bricks are away that
//! will hear of it later. All of that is drawn apart, so that runs without it are as they would be.

use super::{Command, OPEN_MAX};
use crate::checkers::{Violation, bounded};
use crate::faults::Incident;
use crate::options::VolumePlan;
use crate::schedule::By;
use crate::units::{MS, SECOND};
use crate::world::World;
use crate::world::event::Event;
use base::VolumeId;
use model::Draw;
use std::collections::BTreeSet;
use wire::{AdminReply, AdminRequest, VolumeInfo};

/// Volumes that there are at a time, each with so many snapshots at most.
const VOLUMES_MAX: usize = 3;
const SNAPSHOTS_MAX: usize = 2;
/// Volumes of a run.
const MADE_MAX: u64 = 12;

/// A volume that is there, and its snapshots.
#[derive(Clone, Debug)]
pub(super) struct Idle {
    name: String,
    snapshots: Vec<String>,
}

/// The volumes that it made, and what it draws from.
pub(super) struct Churn {
    draw: Draw,
    interval_ns: u64,
    /// Those that no command is about.
    at_rest: Vec<Idle>,
    made: u64,
    made_max: u64,
    cuts: u64,
}

impl Churn {
    pub(super) fn new(seed: u64) -> Churn {
        let mut draw = Draw::new(seed);
        let interval_ns = draw.between(100 * MS, 2 * SECOND);
        Churn { draw, interval_ns, at_rest: Vec::new(), made: 0, made_max: MADE_MAX, cuts: 0 }
    }

    pub(super) fn go_on_for_ever(&mut self) {
        self.made_max = u64::MAX;
    }

    /// The next command, and what it is about as it is before.
    fn next(&mut self, model: &VolumePlan) -> Option<(AdminRequest, Idle)> {
        let nonce = self.draw.bits();
        let makes = self.at_rest.is_empty() || self.at_rest.len() < VOLUMES_MAX && self.draw.percent(30);
        if makes && self.made < self.made_max {
            self.made += 1;
            let name = format!("idle{}", self.made);
            let plan = VolumePlan { name: name.clone(), ..model.clone() };
            return Some((plan.creation(nonce), Idle { name, snapshots: Vec::new() }));
        }
        if self.at_rest.is_empty() {
            return None;
        }
        let at = self.draw.index(self.at_rest.len());
        let idle = self.at_rest.swap_remove(at);
        let cuts = idle.snapshots.len() < SNAPSHOTS_MAX && self.draw.percent(40);
        let (name, snapshots) = (idle.name.clone(), &idle.snapshots);
        let request = match snapshots.first() {
            _ if cuts => {
                self.cuts += 1;
                AdminRequest::Snapshot { volume: name, snapshot: format!("cut{}", self.cuts), nonce }
            }
            Some(_) => AdminRequest::DeleteVolume { name: self.draw.pick(snapshots).clone(), nonce },
            None => AdminRequest::DeleteVolume { name, nonce },
        };
        Some((request, idle))
    }
}

impl World {
    /// The administrator has its turn with idle volumes.
    pub(crate) fn on_churn(&mut self) {
        let is_mine = self.is_its_turn(By::Churn, Event::Churn, |of| {
            of.churn.as_mut().map(|of| (&mut of.draw, of.interval_ns))
        });
        if !is_mine || self.administrator.open.len() >= OPEN_MAX {
            return;
        }
        let model = self.workload.plan(0);
        let next = self.administrator.churn.as_mut().and_then(|churn| churn.next(model));
        if let Some((request, idle)) = next {
            self.note(0, &format!("is told by the administrator: {request:?}"));
            let idle = Some(idle);
            self.give(Command { request, asked_ns: self.time.now_ns(), volume: 0, idle });
        }
    }

    /// A command about an idle volume was carried out.
    pub(super) fn on_churned(&mut self, request: &AdminRequest, reply: &AdminReply, mut idle: Idle) {
        let incident = match (request, reply) {
            (AdminRequest::Snapshot { .. }, AdminReply::Volume(info)) => {
                idle.snapshots.push(info.name.clone());
                Incident::IdleVolumesCut
            }
            (AdminRequest::DeleteVolume { name, .. }, _) if *name == idle.name => {
                return self.faults.count(Incident::IdleVolumesDeleted);
            }
            (AdminRequest::DeleteVolume { name, .. }, _) => {
                idle.snapshots.retain(|snapshot| snapshot != name);
                Incident::SnapshotsDeleted
            }
            _ => Incident::IdleVolumesMade,
        };
        self.rests(idle);
        self.faults.count(incident);
    }

    /// Nothing was done about an idle volume.
    pub(super) fn on_churn_refused(&mut self, request: &AdminRequest, idle: Idle) {
        if !matches!(request, AdminRequest::CreateVolume { .. }) {
            self.rests(idle);
        }
    }

    fn rests(&mut self, idle: Idle) {
        if let Some(churn) = &mut self.administrator.churn {
            churn.at_rest.push(idle);
        }
    }

    /// All volumes, page by page.
    fn all_volumes(&mut self) -> Result<Vec<VolumeInfo>, Violation> {
        let mut volumes: Vec<VolumeInfo> = Vec::new();
        loop {
            let from = volumes.last().map_or(VolumeId(0), |last| VolumeId(last.id.0 + 1));
            match self.administer(vec![AdminRequest::ListVolumes { from: Some(from) }])?.remove(0) {
                AdminReply::Volumes(page) if page.is_empty() => return Ok(volumes),
                AdminReply::Volumes(page) => volumes.extend(page),
                other => return Err(Violation::new("live", format!("the volumes are {other:?}"))),
            }
        }
    }

    /// Every brick has forgotten the volumes that are deleted, whatever it missed of their lives.
    pub(crate) fn deletions_are_known(&mut self) -> Result<(), Violation> {
        let there: BTreeSet<VolumeId> = self.all_volumes()?.iter().map(|volume| volume.family).collect();
        for (node, brick) in self.nodes.iter().filter_map(|node| Some((node.id(), node.machine()?.brick()?)))
        {
            let gone: BTreeSet<VolumeId> = brick.volumes_held().filter(|of| !there.contains(of)).collect();
            let what = format!("deleted volumes of which {node} still holds what it knew ({gone:?})");
            bounded::check(&what, gone.len(), 0)?;
        }
        let Some(directory) = self.nodes.iter().find_map(|node| node.directory()) else { return Ok(()) };
        let views = directory.views();
        let named: BTreeSet<VolumeId> =
            views.flat_map(|view| view.lineage.branches().chain([view.volume])).collect();
        for node in self.nodes.iter() {
            let unnamed: BTreeSet<VolumeId> = node.branches().difference(&named).copied().collect();
            let what = format!("branches on disks of {} of which no view speaks ({unnamed:?})", node.id());
            bounded::check(&what, unnamed.len(), 0)?;
        }
        let kept = directory.deletions();
        bounded::check("deletions that the directory remembers though all bricks know them", kept, 0)
    }
}
