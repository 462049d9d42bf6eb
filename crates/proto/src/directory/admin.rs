//! Commands, and who carries them out: [`super::volumes`], [`super::families`], [`super::bricks`], [`super::status`].

use super::volumes::{check_size, invalid, round_up};
use super::{Directory, DirectoryEffect, send};
use base::{NodeId, Time};
use wire::{AdminReply, AdminRequest, Message};

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
            AdminRequest::SetReadPolicy { name, read_policy } => {
                self.alter(from, operation, &name, fx, |info| {
                    info.read_policy = read_policy;
                    Ok(())
                })
            }
            AdminRequest::ListVolumes => Some(Ok(self.list())),
            AdminRequest::VolumeMap { name } => Some(self.volume_map(&name).map(AdminReply::Map)),
            AdminRequest::Status => Some(Ok(AdminReply::Status(self.cluster_status(now)))),
            AdminRequest::AdmitBrick { nonce } => self.admit(from, operation, nonce, fx),
            AdminRequest::DeleteVolume { .. }
            | AdminRequest::Snapshot { .. }
            | AdminRequest::Clone { .. }
            | AdminRequest::Rollback { .. } => self.on_cut_request(now, from, operation, request, fx),
            AdminRequest::EvictBrick { brick } => self.evict(now, from, operation, brick, None, fx),
            AdminRequest::ReplaceBrick { brick, by } => self.evict(now, from, operation, brick, by, fx),
            AdminRequest::ReadmitBrick { brick } => self.readmit(from, operation, brick, fx),
            AdminRequest::SetCare { .. } | AdminRequest::Scrub => {
                self.set_care(now, from, operation, &request, fx)
            }
        };
        if let Some(result) = answered {
            send(fx, from, Message::AdminDone { operation, result });
        }
    }
}
