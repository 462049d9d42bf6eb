//! Commands, and who carries them out: [`super::volumes`], [`super::snapshots`], [`super::bricks`],
//! [`super::streams`], [`super::status`].

use super::cluster::{Answered, answer};
use super::desk::Desk;
use super::event::DirectoryEffect;
use super::store::Asker;
use super::streams::Change;
use base::Time;
use wire::{AdminError, AdminReply, AdminRequest};

impl Desk {
    pub(super) fn on_admin(
        &mut self,
        now: Time,
        asker: Asker,
        request: AdminRequest,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        let read = self.read(now, &request);
        let outdated = self.cluster.age.warning(self.cluster.records.counts.version);
        if let Some(why) = outdated.filter(|_| !matches!(request, AdminRequest::Status { .. })) {
            // A command may have been carried out as far as the newest store knows: it is not denied.
            let refusal = if read.is_some() { AdminError::NotNow(why) } else { AdminError::Unknown(why) };
            return answer(fx, asker, Err(refusal));
        }
        if let Some(result) = read {
            return answer(fx, asker, result);
        }
        if let Some(refusal) = self.cluster.store.refusal() {
            // Who waits is told when what it has begun is stored, or when that takes too long.
            if !self.waits(asker) {
                answer(fx, asker, Err(refusal));
            }
            return;
        }
        let answered = match request {
            AdminRequest::CreateVolume { .. } => self.create(now, asker, request, fx),
            AdminRequest::ResizeVolume { name, size_bytes } => self.resize(now, asker, &name, size_bytes, fx),
            AdminRequest::SetReadOnly { name, read_only } => self.alter(asker, &name, fx, |info| {
                info.read_only = read_only;
                Ok(())
            }),
            AdminRequest::SetReadPolicy { name, read_policy } => self.alter(asker, &name, fx, |info| {
                info.read_policy = read_policy;
                Ok(())
            }),
            AdminRequest::SetReads { name, reads } => self.set_reads(asker, &name, reads, fx),
            AdminRequest::ListVolumes { .. }
            | AdminRequest::VolumeMap { .. }
            | AdminRequest::Status { .. }
            | AdminRequest::MayEvict { .. }
            | AdminRequest::ListEvents { .. }
            | AdminRequest::ListStreams => unreachable!("answered above"),
            AdminRequest::SetIoTimeout { name, io_timeout } => self.alter(asker, &name, fx, |info| {
                info.io_timeout = io_timeout;
                Ok(())
            }),
            AdminRequest::ForgetLost { name } => self.forget_lost(now, asker, &name, fx),
            AdminRequest::AdmitBrick { nonce } => self.admit(now, asker, nonce, fx),
            AdminRequest::DeleteVolume { .. }
            | AdminRequest::Snapshot { .. }
            | AdminRequest::Clone { .. }
            | AdminRequest::Rollback { .. } => self.on_cut_request(now, asker, request, fx),
            AdminRequest::EvictBrick { brick } => self.evict(now, asker, brick, None, fx),
            AdminRequest::ReplaceBrick { brick, by } => self.evict(now, asker, brick, by, fx),
            AdminRequest::ForgetBrick { brick } => self.forget(now, asker, brick, fx),
            AdminRequest::ReadmitBrick { brick } => self.readmit(now, asker, brick, fx),
            AdminRequest::SetCare { .. } | AdminRequest::Scrub => self.set_care(now, asker, &request, fx),
            AdminRequest::CreateStream { .. } => self.create_stream(now, asker, request, fx),
            AdminRequest::SetStream { name, weight, minimum, reservation, limit, latency_us } => {
                let change = Change { weight, minimum, reservation, limit, latency_us };
                self.set_stream(now, asker, &name, change, fx)
            }
            AdminRequest::DeleteStream { name, nonce } => self.delete_stream(asker, &name, nonce, fx),
            AdminRequest::SetVolumeStream { volume, stream } => {
                self.set_volume_stream(now, asker, &volume, &stream, fx)
            }
            AdminRequest::SetBucketStream { bucket, stream } => {
                self.set_bucket_stream(now, asker, bucket, &stream, fx)
            }
            AdminRequest::SetPlaces { places } => self.set_places(asker, places, fx),
        };
        if let Some(result) = answered {
            self.cluster.answer_behind(asker, result, fx);
        }
    }

    /// The answer to a command that changes nothing.
    fn read(&self, now: Time, request: &AdminRequest) -> Answered {
        match request {
            AdminRequest::ListVolumes { from } => Some(Ok(self.list(*from))),
            AdminRequest::VolumeMap { name } => Some(self.volume_map(name).map(AdminReply::Map)),
            AdminRequest::MayEvict { brick } => Some(self.may_evict(now, *brick).map(|()| AdminReply::Done)),
            AdminRequest::Status { part } => {
                Some(Ok(AdminReply::Status(Box::new(self.cluster_status(now, *part)))))
            }
            AdminRequest::ListEvents { after, most } => {
                let page = self.cluster.records.events.page(*after, *most, self.cluster.page_bytes());
                Some(Ok(AdminReply::Events(Box::new(page))))
            }
            AdminRequest::ListStreams => Some(Ok(AdminReply::Streams(Box::new(self.streams_status(now))))),
            _ => None,
        }
    }

    /// Whether the command is under way.
    fn waits(&self, asker: Asker) -> bool {
        self.cluster.store.will_answer(asker) || self.waiting.has(asker)
    }
}
