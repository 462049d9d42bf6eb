//! Commands: volumes are made, listed, resized and deleted; bricks are admitted; the cluster at a glance.

use super::records::{BrickRecord, GroupRecord, VolumeRecord};
use super::{After, Directory, DirectoryEffect, send};
use crate::layout::placement::{self, Candidate};
use crate::layout::{Geometry, Layout};
use base::{BLOCK_U64, BrickId, GroupId, NodeId, Time, ViewNumber, VolumeId};
use wire::directory::{BrickEntry, VolumeStatus};
use wire::{
    AdminError, AdminReply, AdminRequest, ClusterStatus, GatewayStatus, GroupView, Message, Slots,
    VolumeInfo, VolumeMap,
};

const NAME_MAX: usize = 63;
const SIZE_MAX: u64 = 1 << 50;
const GROUPS_MAX: u32 = 1024;

impl Directory {
    pub(super) fn on_admin(
        &mut self,
        now: Time,
        from: NodeId,
        operation: u64,
        request: AdminRequest,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        let answered = match request {
            AdminRequest::CreateVolume { .. } => self.create(now, from, operation, request, fx),
            AdminRequest::DeleteVolume { name } => self.delete(from, operation, &name, fx),
            AdminRequest::ResizeVolume { name, size_bytes } => {
                self.alter(from, operation, &name, fx, |info| {
                    let size_bytes = round_up(size_bytes);
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
            AdminRequest::SetReadOnly { name, read_only } => self.alter(from, operation, &name, fx, |info| {
                info.read_only = read_only;
                Ok(())
            }),
            AdminRequest::ListVolumes => Some(Ok(self.list())),
            AdminRequest::VolumeMap { name } => Some(self.volume_map(&name).map(AdminReply::Map)),
            AdminRequest::Status => Some(Ok(AdminReply::Status(self.status(now)))),
            AdminRequest::AdmitBrick { nonce } => self.admit(from, operation, nonce, fx),
            _ => Some(Err(AdminError::Busy)),
        };
        if let Some(result) = answered {
            send(fx, from, Message::AdminDone { operation, result });
        }
    }

    // ---- volumes ----

    fn create(
        &mut self,
        now: Time,
        from: NodeId,
        operation: u64,
        request: AdminRequest,
        fx: &mut Vec<DirectoryEffect>,
    ) -> Option<Result<AdminReply, AdminError>> {
        let AdminRequest::CreateVolume { name, size_bytes, layout, stripe_unit_blocks, groups, nonce } =
            request
        else {
            return None;
        };
        if let Some(known) = self.records.volume_named(&name) {
            if known.nonce != nonce {
                return Some(Err(AdminError::Exists(name)));
            }
            if known.ready {
                return Some(Ok(AdminReply::Volume(known.info.clone())));
            }
            self.creating.entry(known.info.id).or_default().push((from, operation));
            return None;
        }
        let unit = if stripe_unit_blocks == 0 { Geometry::STRIPE_UNIT_BLOCKS } else { stripe_unit_blocks };
        let info = VolumeInfo {
            id: VolumeId(self.records.counts.next_volume),
            name,
            size_bytes: round_up(size_bytes),
            layout,
            stripe_unit_blocks: unit,
            column_blocks: Geometry::COLUMN_BLOCKS,
            read_only: false,
            family: VolumeId(self.records.counts.next_volume),
            origin: None,
            is_snapshot: false,
        };
        match self.plan(now, &info, groups) {
            Ok(members) => {
                self.creating.entry(info.id).or_default().push((from, operation));
                self.begin_volume(now, info, nonce, members, fx);
                None
            }
            Err(error) => Some(Err(error)),
        }
    }

    /// The members of each group of a new volume.
    fn plan(&self, now: Time, info: &VolumeInfo, groups: u32) -> Result<Vec<Vec<BrickId>>, AdminError> {
        check_name(&info.name)?;
        check_size(info.size_bytes)?;
        let layout: Layout = info.layout.parse().map_err(|error| invalid(format!("{error}")))?;
        let geometry = Geometry::new(layout, info.stripe_unit_blocks, info.column_blocks)
            .map_err(|error| invalid(error.to_string()))?;
        let candidates: Vec<Candidate> = self
            .records
            .bricks
            .keys()
            .filter(|brick| self.leases.is_alive(now, **brick))
            .filter_map(|brick| {
                let status = &self.leases.get(*brick)?.status;
                Some(Candidate { id: *brick, weight: status.capacity_bytes, labels: status.labels.clone() })
            })
            .filter(|candidate| candidate.weight > 0)
            .collect();
        let (needed, available) = (u32::from(layout.width()), candidates.len() as u32);
        if available < needed {
            return Err(AdminError::TooFewBricks { needed, available });
        }
        let extents = geometry.extents(info.size_bytes / BLOCK_U64);
        let usual = (available * 4).min(64);
        let count =
            if groups == 0 { usual } else { groups }.min(u32::try_from(extents).unwrap_or(u32::MAX)).max(1);
        if count > GROUPS_MAX {
            return Err(invalid(format!("{count} groups are too many: at most {GROUPS_MAX}")));
        }
        let domains: Vec<&str> = self.config.domains.iter().map(String::as_str).collect();
        (0..count)
            .map(|group| {
                placement::choose(info.id, group, layout.width(), &candidates, &domains)
                    .map_err(|error| invalid(error.to_string()))
            })
            .collect()
    }

    fn begin_volume(
        &mut self,
        now: Time,
        info: VolumeInfo,
        nonce: u64,
        members: Vec<Vec<BrickId>>,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        let volume = info.id;
        let first = self.records.counts.next_group;
        let groups: Vec<GroupId> = (first..first + members.len() as u64).map(GroupId).collect();
        self.records.counts.next_volume += 1;
        self.records.counts.next_group += members.len() as u64;
        self.records
            .volumes
            .insert(volume, VolumeRecord { info, groups: groups.clone(), nonce, ready: false });
        // One write makes the volume and all its groups known; each group's own change begins behind it.
        let puts = vec![self.records.put_volume(volume), self.records.put_counts()];
        self.store(puts, Vec::new(), fx);
        for (group, members) in groups.into_iter().zip(members) {
            let record = GroupRecord { volume, active: None, next: None, changed: 0 };
            self.records.groups.insert(group, record);
            let current = Slots::all(members.len() as u8);
            let (number, joining, lineage) = (ViewNumber(1), Slots::default(), wire::Lineage::default());
            let view = GroupView { group, volume, number, members, current, joining, lineage };
            self.begin_change(now, view, fx);
        }
    }

    /// A group of the volume has a view; when all have, the volume is ready.
    pub(super) fn on_group_ready(&mut self, volume: VolumeId, fx: &mut Vec<DirectoryEffect>) {
        let Some(record) = self.records.volumes.get(&volume) else { return };
        if record.ready || record.groups.iter().any(|group| self.active(*group).is_none()) {
            return;
        }
        let reply = AdminReply::Volume(record.info.clone());
        if let Some(record) = self.records.volumes.get_mut(&volume) {
            record.ready = true;
        }
        let waiters = self.creating.remove(&volume).unwrap_or_default();
        let after = waiters.into_iter().map(|(to, operation)| {
            After::Send(to, Message::AdminDone { operation, result: Ok(reply.clone()) })
        });
        let after = after.collect();
        let put = self.records.put_volume(volume);
        self.store(vec![put], after, fx);
    }

    fn delete(
        &mut self,
        from: NodeId,
        operation: u64,
        name: &str,
        fx: &mut Vec<DirectoryEffect>,
    ) -> Option<Result<AdminReply, AdminError>> {
        let Some(record) = self.records.volume_named(name) else {
            return Some(Err(AdminError::NoVolume(name.to_owned())));
        };
        let (volume, groups) = (record.info.id, record.groups.clone());
        let version = self.records.bump();
        self.records.volumes.remove(&volume);
        self.records.deleted.insert(version, volume);
        let mut puts = vec![
            self.records.put_volume(volume),
            self.records.put_deleted(version),
            self.records.put_counts(),
        ];
        for group in groups {
            self.records.groups.remove(&group);
            self.changes.remove(&group);
            puts.push(self.records.put_group(group));
        }
        self.creating.remove(&volume);
        let done = Message::AdminDone { operation, result: Ok(AdminReply::Done) };
        self.store(puts, vec![After::Deleted(volume, from, done)], fx);
        None
    }

    fn alter(
        &mut self,
        from: NodeId,
        operation: u64,
        name: &str,
        fx: &mut Vec<DirectoryEffect>,
        change: impl FnOnce(&mut VolumeInfo) -> Result<(), AdminError>,
    ) -> Option<Result<AdminReply, AdminError>> {
        let Some(mut info) = self.records.volume_named(name).map(|record| record.info.clone()) else {
            return Some(Err(AdminError::NoVolume(name.to_owned())));
        };
        if let Err(error) = change(&mut info) {
            return Some(Err(error));
        }
        let volume = info.id;
        if let Some(record) = self.records.volumes.get_mut(&volume) {
            record.info = info.clone();
        }
        let done = Message::AdminDone { operation, result: Ok(AdminReply::Volume(info)) };
        let put = self.records.put_volume(volume);
        self.store(vec![put], vec![After::Changed(volume, from, done)], fx);
        None
    }

    pub(super) fn list(&self) -> AdminReply {
        let ready = self.records.volumes.values().filter(|record| record.ready);
        AdminReply::Volumes(ready.map(|record| record.info.clone()).collect())
    }

    pub(super) fn volume_map(&self, name: &str) -> Result<VolumeMap, AdminError> {
        let record = self
            .records
            .volume_named(name)
            .filter(|record| record.ready)
            .ok_or_else(|| AdminError::NoVolume(name.to_owned()))?;
        let groups = record.groups.iter().filter_map(|group| self.active(*group).cloned()).collect();
        Ok(VolumeMap { volume: record.info.clone(), groups, bricks: self.addresses() })
    }

    // ---- bricks ----

    fn admit(
        &mut self,
        from: NodeId,
        operation: u64,
        nonce: u64,
        fx: &mut Vec<DirectoryEffect>,
    ) -> Option<Result<AdminReply, AdminError>> {
        if let Some((id, _)) = self.records.bricks.iter().find(|(_, record)| record.nonce == nonce) {
            return Some(Ok(AdminReply::Brick(*id)));
        }
        let id = BrickId(self.records.counts.next_brick);
        self.records.counts.next_brick += 1;
        let record = BrickRecord { nonce, address: String::new(), labels: Vec::new() };
        self.records.bricks.insert(id, record);
        let puts = vec![self.records.put_brick(id), self.records.put_counts()];
        let done = Message::AdminDone { operation, result: Ok(AdminReply::Brick(id)) };
        self.store(puts, vec![After::Send(from, done)], fx);
        None
    }

    // ---- the cluster at a glance ----

    fn status(&self, now: Time) -> ClusterStatus {
        ClusterStatus {
            bricks: self.records.bricks.keys().map(|brick| self.brick_entry(now, *brick)).collect(),
            gateways: self
                .gateways
                .iter()
                .map(|(id, entry)| GatewayStatus {
                    id: *id,
                    address: entry.address.clone(),
                    silent_ms: now.since(entry.heard).as_millis() as u64,
                })
                .collect(),
            volumes: self.records.volumes.values().map(|record| self.volume_status(record)).collect(),
            version: self.records.counts.version,
            care: wire::Care::default(),
            warnings: Vec::new(),
        }
    }

    fn brick_entry(&self, now: Time, id: BrickId) -> BrickEntry {
        let lease = self.leases.get(id);
        let views = || self.views().filter(|view| view.slot_of(id).is_some());
        let mut status = lease.map(|lease| lease.status.clone()).unwrap_or_default();
        if let Some(record) = self.records.bricks.get(&id).filter(|_| lease.is_none()) {
            status.address.clone_from(&record.address);
            status.labels.clone_from(&record.labels);
        }
        BrickEntry {
            id,
            alive: self.leases.is_alive(now, id),
            silent_ms: lease.map(|lease| now.since(lease.heard).as_millis() as u64),
            groups: views().count() as u32,
            stale_groups: views().filter(|view| !view.is_current(id)).count() as u32,
            joining_groups: 0,
            evicted: false,
            status,
        }
    }

    fn volume_status(&self, record: &VolumeRecord) -> VolumeStatus {
        let tolerates = self.geometry(record.info.id).map_or(0, |geometry| geometry.layout().tolerates());
        let views: Vec<&GroupView> = record.groups.iter().filter_map(|group| self.active(*group)).collect();
        let lost = |view: &GroupView| view.members.len() as u8 - view.current.len();
        let changing = record.groups.iter().filter(|group| self.changes.contains_key(group)).count();
        VolumeStatus {
            volume: record.info.clone(),
            groups: record.groups.len() as u32,
            degraded: views.iter().filter(|view| lost(view) > 0).count() as u32,
            unavailable: changing as u32,
            can_lose: views
                .iter()
                .map(|view| tolerates.saturating_sub(lost(view)))
                .min()
                .unwrap_or(tolerates),
            rebuilding: 0,
            unplaced: 0,
        }
    }
}

fn invalid(why: String) -> AdminError {
    AdminError::Invalid(why)
}

fn round_up(size_bytes: u64) -> u64 {
    size_bytes.checked_next_multiple_of(BLOCK_U64).unwrap_or(u64::MAX)
}

fn check_size(size_bytes: u64) -> Result<(), AdminError> {
    match size_bytes {
        0 => Err(invalid("a volume needs a size".to_owned())),
        size if size > SIZE_MAX => Err(invalid(format!("{size} bytes are too many: at most {SIZE_MAX}"))),
        _ => Ok(()),
    }
}

fn check_name(name: &str) -> Result<(), AdminError> {
    let first = name.chars().next();
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    if name.len() <= NAME_MAX && name.chars().all(allowed) && first.is_some_and(|c| c.is_ascii_alphanumeric())
    {
        return Ok(());
    }
    Err(invalid(format!(
        "'{name}' cannot be a volume's name: 1 to {NAME_MAX} of a-z 0-9 - _ . beginning with a letter or digit"
    )))
}
