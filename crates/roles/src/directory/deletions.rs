//! What is forgotten of deletions. A table of all that was ever deleted would grow for ever; and ids are given in turn and never
//! twice, so that an id below the next one that names nothing was deleted.
//!
//! A deletion is kept until every brick that is there has confirmed it, and is then forgotten, [`ForgottenRecord::version`] on. A brick that
//! comes back and knows only an earlier version says which families it knows ([`wire::Message::Held`]), a page at a time, and hears which of
//! them are gone.
//!
//! There is one limit. Of an id below [`ForgottenRecord::counts_from`] its number says nothing: a directory that was made anew from
//! what bricks knew lacks volumes whose bricks were away, and a store of an earlier release does not say whether that happened. Deletions of
//! such ids are kept for good.

use super::cluster::Cluster;
use super::event::{DirectoryEffect, Put};
use super::records::ForgottenRecord;
use base::{Time, VolumeId};
use wire::Version;

/// The release with which bricks came that say which families they know.
const ASKED: Version = Version(20);
/// So many deletions are forgotten at a time: a write of the store stays short.
const AT_A_TIME: usize = 1000;

/// Forgets deletions that all bricks have confirmed which are there.
pub(super) fn keep(cluster: &mut Cluster, now: Time, fx: &mut Vec<DirectoryEffect>) {
    if cluster.store.is_failing() {
        return;
    }
    // From which id on they count is known from the first start on.
    if !core::mem::replace(&mut cluster.records.forgotten_is_kept, true) {
        let put = cluster.records.put_forgotten();
        cluster.put(vec![put], Vec::new(), fx);
    }
    let from = cluster.records.forgotten.version.saturating_add(1);
    if cluster.records.deleted.range(from..).next().is_none() {
        return;
    }
    let Some(confirmed) = confirmed(cluster, now) else { return };
    let to = confirmed.min(cluster.store.durable());
    if from > to {
        return;
    }
    let counts_from = cluster.records.forgotten.counts_from;
    let deleted = cluster.records.deleted.range(from..=to).take(AT_A_TIME);
    let deleted: Vec<(u64, VolumeId)> = deleted.map(|(version, id)| (*version, *id)).collect();
    let Some((last, _)) = deleted.last().copied() else { return };
    let mut puts: Vec<Put> = Vec::new();
    for (version, _) in deleted.into_iter().filter(|(_, id)| *id >= counts_from) {
        cluster.records.deleted.remove(&version);
        puts.push(cluster.records.put_deleted(version));
    }
    cluster.records.forgotten.version = last;
    puts.push(cluster.records.put_forgotten());
    cluster.put(puts, Vec::new(), fx);
}

/// The version that every brick has confirmed which is there; none where none is, or one would not say which families it knows.
fn confirmed(cluster: &Cluster, now: Time) -> Option<u64> {
    let bricks = || cluster.records.bricks.keys().filter(|brick| cluster.leases.is_alive(now, **brick));
    let is_asked = |brick| cluster.bricks_speak.get(brick).is_some_and(|speaks| *speaks >= ASKED);
    if !bricks().all(is_asked) {
        return None;
    }
    let known = bricks().map(|brick| cluster.leases.get(*brick).map_or(0, |lease| lease.known)).min()?;
    cluster.rules.forgets_up_to(known)
}

/// Which of these families are gone for good. Of what cannot be told nothing is said.
pub(super) fn gone(cluster: &Cluster, families: &[VolumeId]) -> Vec<VolumeId> {
    let ForgottenRecord { counts_from, .. } = cluster.records.forgotten;
    let given = counts_from..VolumeId(cluster.records.counts.next_volume);
    families.iter().copied().filter(|id| given.contains(id) && cluster.is_gone(*id)).collect()
}
