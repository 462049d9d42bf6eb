//! Commands about bricks: they are admitted, evicted, readmitted, replaced, forgotten; how they look after their blocks.

use super::admission::Proposal;
use super::cluster::Answered;
use super::desk::Desk;
use super::event::DirectoryEffect;
use super::news::News;
use super::records::{BrickRecord, CareRecord};
use super::store::{After, Asker};
use base::{BrickId, GroupId, Time, VolumeId};
use wire::{AdminError, AdminReply, AdminRequest, StatusPart};

impl Desk {
    pub(super) fn admit(
        &mut self,
        now: Time,
        asker: Asker,
        nonce: u64,
        fx: &mut Vec<DirectoryEffect>,
    ) -> Answered {
        if let Some((id, _)) = self.cluster.records.bricks.iter().find(|(_, record)| record.nonce == nonce) {
            return Some(Ok(AdminReply::Brick(*id)));
        }
        let id = BrickId(self.cluster.records.counts.next_brick);
        self.cluster.records.counts.next_brick += 1;
        self.cluster.records.bricks.insert(id, BrickRecord::new(nonce));
        let puts = vec![self.cluster.records.put_brick(id)];
        let answer = After::Answer(asker, Ok(AdminReply::Brick(id)));
        self.cluster.put_news(now, puts, vec![answer], News::Admitted { brick: id }, fx);
        None
    }

    /// Evicts a brick, or replaces it: `by` names who is to get its groups.
    pub(super) fn evict(
        &mut self,
        now: Time,
        asker: Asker,
        brick: BrickId,
        by: Option<BrickId>,
        fx: &mut Vec<DirectoryEffect>,
    ) -> Answered {
        if !self.cluster.records.bricks.contains_key(&brick) {
            return Some(Err(AdminError::NoBrick(brick)));
        }
        if let Some(by) = by.filter(|by| !self.cluster.takes_groups(*by) || *by == brick) {
            return Some(Err(match self.cluster.records.bricks.contains_key(&by) {
                false => AdminError::NoBrick(by),
                true if self.cluster.is_slow(by) => AdminError::NotNow(format!(
                    "{by} is slow and left out; wait until it is well again (`brickwork status`) or name another"
                )),
                true if by == brick => AdminError::Invalid(format!("{brick} cannot replace itself")),
                true => AdminError::NotNow(format!("{by} is evicted; readmit it first")),
            }));
        }
        if let Some(group) = self.members.group_that_needs(&self.cluster, now, brick) {
            return Some(Err(AdminError::NotNow(self.why_it_is_needed(brick, group))));
        }
        let may_reserve = |by| self.cluster.may_reserve(now, &Proposal::Replaced { brick, by });
        if let Some(Err(error)) = by.map(may_reserve) {
            return Some(Err(error));
        }
        let news = News::Evicted { brick, by, asked_by: asker.node };
        self.alter_brick(now, asker, (brick, news), fx, |record| {
            record.evicted = true;
            record.substitute = by;
        })
    }

    /// Whether other bricks could take all places of a brick that is evicted.
    pub(super) fn may_evict(&self, now: Time, brick: BrickId) -> Result<(), AdminError> {
        if !self.cluster.records.bricks.contains_key(&brick) {
            return Err(AdminError::NoBrick(brick));
        }
        let stuck = self.members.without_taker(&self.cluster, now, brick);
        let Some(first) = stuck.first() else { return Ok(()) };
        let volume = self.cluster.volume_on(*first);
        Err(AdminError::NotNow(format!(
            "no other brick can take the place of {brick} in {} of its {} groups, one of them of volume '{volume}': each \
             member needs a brick of its own, with room; these groups would stay without one until a brick is added",
            stuck.len(),
            self.cluster.groups_of(brick).count()
        )))
    }

    /// Why a brick cannot go: the volume that stands in its way, and what can be done.
    fn why_it_is_needed(&self, brick: BrickId, group: GroupId) -> String {
        let family = self.cluster.records.groups.get(&group).map(|record| record.volume);
        let volumes = family.into_iter().flat_map(|family| self.cluster.records.volumes_of(family));
        let volumes: Vec<_> =
            volumes.filter(|volume| !volume.info.is_snapshot).map(|volume| &volume.info).collect();
        let names: Vec<String> = volumes.iter().map(|info| format!("'{}'", info.name)).collect();
        let (names, layout) = (names.join(" and "), volumes.first().map_or("", |info| info.layout.as_str()));
        let is_bare = family
            .and_then(|family| self.cluster.geometry(family))
            .is_some_and(|of| of.layout().tolerates() == 0);
        let what = match is_bare {
            true => {
                "This layout keeps one copy, which cannot be rebuilt elsewhere: copy the volume to one with redundancy and \
                     delete it, then run this again"
            }
            false => "Wait until the bricks that are away have come back or are rebuilt (`brickwork status`)",
        };
        format!(
            "{brick} holds blocks of {group} of volume {names} ({layout}) that no other brick has any more. {what}"
        )
    }

    pub(super) fn readmit(
        &mut self,
        now: Time,
        asker: Asker,
        brick: BrickId,
        fx: &mut Vec<DirectoryEffect>,
    ) -> Answered {
        let news = News::Readmitted { brick, asked_by: asker.node };
        self.alter_brick(now, asker, (brick, news), fx, |record| {
            record.evicted = false;
            record.substitute = None;
        })
    }

    fn alter_brick(
        &mut self,
        now: Time,
        asker: Asker,
        (brick, news): (BrickId, News),
        fx: &mut Vec<DirectoryEffect>,
        change: impl FnOnce(&mut BrickRecord),
    ) -> Answered {
        let Some(record) = self.cluster.records.bricks.get_mut(&brick) else {
            return Some(Err(AdminError::NoBrick(brick)));
        };
        change(record);
        let put = self.cluster.records.put_brick(brick);
        let done = After::Answer(asker, Ok(AdminReply::Done));
        self.cluster.put_news(now, vec![put], vec![done], news, fx);
        None
    }

    /// Removes all that is known of a brick that is gone. Its id is given to no other brick; should it come again after all, it
    /// is a stranger.
    pub(super) fn forget(
        &mut self,
        now: Time,
        asker: Asker,
        brick: BrickId,
        fx: &mut Vec<DirectoryEffect>,
    ) -> Answered {
        if let Err(error) = self.may_forget(now, brick) {
            return Some(Err(error));
        }
        self.members.forget(brick);
        self.slow.forget(brick);
        let puts = self.cluster.forget_brick(brick);
        let news = News::Forgotten { brick, asked_by: asker.node };
        let done = After::Answer(asker, Ok(AdminReply::Done));
        self.cluster.put_news(now, puts, vec![done], news, fx);
        None
    }

    /// Whether nothing needs the brick any more: it is silent, was evicted or never came, and no group has a place for it.
    fn may_forget(&self, now: Time, brick: BrickId) -> Result<(), AdminError> {
        let Some(record) = self.cluster.records.bricks.get(&brick) else {
            return Err(AdminError::NoBrick(brick));
        };
        let not_now = |why: String| Err(AdminError::NotNow(why));
        let of_it: Vec<GroupId> = self.cluster.groups_of(brick).collect();
        if let Some(group) = of_it.first() {
            let (count, volume) = (of_it.len(), self.cluster.volume_on(*group));
            let next = match record.evicted {
                true => {
                    "wait until others have its blocks (`brickwork rebuild --wait`); where no other brick can take them, add one"
                }
                false => "if it is gone for good, evict it first (`brickwork brick evict`)",
            };
            return not_now(format!(
                "{brick} is a member of {count} groups, one of them of volume '{volume}': {next}"
            ));
        }
        if self.cluster.leases.is_alive(now, brick) {
            return not_now(format!(
                "{brick} is up: stop its process first, and it may be forgotten some seconds later"
            ));
        }
        // One that was heard before this directory started may be about to be heard again.
        if record.has_come() && !self.cluster.leases.is_settled(now, brick) {
            return not_now(format!("it is not known yet whether {brick} is up: try again in a few seconds"));
        }
        if !record.evicted && record.has_come() {
            return not_now(format!(
                "{brick} may hold fragments of objects, and others make them again only when it is evicted: evict it \
                 first (`brickwork brick evict`)"
            ));
        }
        Ok(())
    }

    /// Changes the care, or asks for a scrub.
    pub(super) fn set_care(
        &mut self,
        now: Time,
        asker: Asker,
        request: &AdminRequest,
        fx: &mut Vec<DirectoryEffect>,
    ) -> Answered {
        let care = &mut self.cluster.records.care;
        match *request {
            AdminRequest::Scrub => care.scrub += 1,
            AdminRequest::SetCare {
                rebuild_bytes_per_second,
                scrub_bytes_per_second,
                scrub_interval_s,
                rebuild_after_s,
            } => {
                let rate = |wanted: Option<u64>| wanted.map(|rate| rate.max(1));
                *care = CareRecord {
                    scrub: care.scrub,
                    rebuild_bytes_per_second: rate(rebuild_bytes_per_second)
                        .or(care.rebuild_bytes_per_second),
                    scrub_bytes_per_second: rate(scrub_bytes_per_second).or(care.scrub_bytes_per_second),
                    scrub_interval_s: scrub_interval_s.or(care.scrub_interval_s),
                    rebuild_after_s: rebuild_after_s.or(care.rebuild_after_s),
                };
            }
            _ => {}
        }
        let puts = self.cluster.records.put_care();
        let result =
            Ok(AdminReply::Status(Box::new(self.cluster_status(now, StatusPart::From(VolumeId(0))))));
        self.cluster.put(puts, vec![After::Answer(asker, result)], fx);
        None
    }
}
