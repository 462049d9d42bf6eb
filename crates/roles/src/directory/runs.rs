//! Which run of each brick counts, and whether its disks hold what the runs before it promised.
//!
//! A disk's journal only grows. So a brick whose new run finds a journal that ends before what an earlier run told of it has an
//! older copy of the disk, or a disk that lost what it called durable. Such a brick counts as having lost its blocks in all
//! groups that it writes ([`super::heartbeat`]): it is left out, and compares every block when it joins again. A counter of
//! starts would not see a copy that was taken since the last start.
//!
//! Of two processes with one id the later counts. One that runs at the same place, from the same file or disk and since the same start of
//! the machine, counts at once: it has the disk's lock, so that the earlier one has ended. Any other counts only once the earlier one's
//! lease has ended: who is silent may be cut off from the directory alone, and still serve others. One that runs elsewhere with the same disk is
//! *suspect*: since the copy the earlier one may have taken writes that it told nobody of. It takes them as long as a view counts on it, also without a
//! lease. So the later one counts as having lost its blocks in all groups that count on it and whose other members are there and have all; and in all
//! groups where the earlier one is still heard. A disk that was moved while its brick was away loses nothing by that: views have left it out there. And
//! it leaves once more what the earlier one has left since: a copy has that still.
//!
//! What a process sent before it ended may arrive after what the next one at the same place sends, and a run that was never told its number among
//! the runs looks like a new one then. Its journal ends before what the next one told, like that of an older copy of the disk, and nowhere beyond what
//! the next one found. But a process that finds such a copy at a place comes after the end of the one before: so it waits until that one is silent.
//!
//! *What is not seen*, where the place stays the same: what a brick took after the last position that the directory heard, a heartbeat's
//! time; after a restart of the directory itself, after the last that it stored, [`STORED_EVERY`] and a heartbeat's time. And one process
//! that runs twice, as of a virtual machine whose memory was copied, too.

use super::cluster::Cluster;
use super::event::{DirectoryEffect, Put};
use super::records::RunRecord;
use base::{BrickId, GroupId, Time, ViewNumber};
use core::time::Duration;
use rules::counters::Counter;
use std::collections::{BTreeMap, BTreeSet};
use wire::{JournalReport, Place, Run, Standing};

/// Two heartbeats, and half of one for what holds them up: who is silent for so long was killed, or cannot reach the directory.
const SILENCE: Duration = Duration::from_millis(1000);
/// A process that goes on for so long after another one came with its id is not one that is ending.
const CONTEST: Duration = Duration::from_secs(2);
/// So many exchanged disks of a brick are remembered: more than any machine has bays, several times over.
const FORMER_MAX: usize = 64;
/// Between two times at which positions are stored: one write of the store a second, for all bricks that took any.
const STORED_EVERY: Duration = Duration::from_secs(1);
/// For so long it is told that a brick ran twice, since the last sign of it: an operator looks within a minute.
const TOLD_FOR: Duration = Duration::from_secs(60);

/// What the directory makes of a brick's run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The brick is of a release that tells nothing.
    Untold,
    /// It is not known yet whether it may count.
    Waits,
    Counts {
        incarnation: u64,
    },
    Ousted {
        by: u64,
    },
}

impl Verdict {
    pub(super) fn counts(self) -> bool {
        matches!(self, Verdict::Untold | Verdict::Counts { .. })
    }

    /// What the brick is told, where its disks lag in these groups.
    pub(super) fn standing(self, behind: Vec<(GroupId, ViewNumber)>) -> Standing {
        match self {
            Verdict::Untold => Standing::Untold,
            Verdict::Waits => Standing::Waits,
            Verdict::Counts { incarnation } => Standing::Stands { incarnation, behind },
            Verdict::Ousted { by } => Standing::Ousted { by },
        }
    }
}

/// What is known of a brick's runs since the directory started.
#[derive(Debug, Default)]
struct Known {
    /// When the run that counts was heard last.
    heard: Option<Time>,
    /// Its address.
    address: String,
    /// Another run that came and does not count yet.
    rival: Option<Rival>,
    /// That one has other disks.
    has_other_disks: bool,
    /// The last sign that two processes run, and the address of the one that does not count.
    twice: Option<(Time, String)>,
    /// Since when it is said that its disk is old.
    old: Option<Time>,
}

/// A run that came while another one counts.
#[derive(Clone, Copy, Debug)]
struct Rival {
    number: u64,
    since: Time,
    heard: Time,
}

impl Rival {
    /// Whether it has come for so long that the run that counts is not one that is ending.
    fn contests(&self, now: Time) -> bool {
        now.since(self.since) > CONTEST && now.since(self.heard) < CONTEST
    }
}

#[derive(Debug)]
pub(super) struct Runs {
    began: Time,
    bricks: BTreeMap<BrickId, Known>,
    /// Bricks whose position is newer than what is stored.
    moved: BTreeSet<BrickId>,
    store_at: Time,
}

impl Runs {
    pub(super) fn new(now: Time) -> Runs {
        Runs { began: now, bricks: BTreeMap::new(), moved: BTreeSet::new(), store_at: now }
    }

    pub(super) fn len(&self) -> usize {
        self.bricks.len()
    }

    /// The brick is no more.
    pub(super) fn forget(&mut self, brick: BrickId) {
        self.bricks.remove(&brick);
        self.moved.remove(&brick);
    }

    /// Whether a run of the brick waits to count that has other disks than the brick is known with.
    pub(super) fn waits_with_other_disks(&self, brick: BrickId) -> bool {
        self.bricks.get(&brick).is_some_and(|known| known.has_other_disks)
    }

    /// Whether a run of the brick is heard that does not count yet: it does once the lease of the one before has ended.
    pub(super) fn is_about_to_count(&self, now: Time, brick: BrickId) -> bool {
        let rival = self.bricks.get(&brick).and_then(|known| known.rival);
        rival.is_some_and(|rival| now.since(rival.heard) < SILENCE)
    }

    /// What an operator should know: of disks that are older than they say, and of bricks that run twice.
    pub(super) fn warnings(&self, now: Time) -> impl Iterator<Item = String> {
        self.bricks.iter().flat_map(move |(brick, known)| {
            let twice = known.twice.as_ref().filter(|(at, _)| now.since(*at) < TOLD_FOR);
            let twice = twice.map(|(_, other)| format!(
                "{brick} runs twice: at {} and at {other}. The one that started later counts, once all its blocks are compared; stop the process at \
                 {other}, and do not start a copy of a brick's disk",
                known.address
            ));
            // Of two processes with a copy of the disk each one lacks what the other took: then the disk is not to blame.
            let old = known.old.filter(|since| now.since(*since) < TOLD_FOR && twice.is_none());
            let old = old.map(|_| format!(
                "a disk of {brick} ({}) came back older than it was: it lacks writes that it had called durable. Its groups were \
                 served without it, and every block is compared. If you did not put an old copy back, the disk loses acknowledged \
                 writes when its power fails: replace it",
                known.address
            ));
            twice.into_iter().chain(old)
        })
    }
}

/// A brick's run says how far its disks are.
pub(super) fn on_run(
    cluster: &mut Cluster,
    now: Time,
    brick: BrickId,
    (run, address): (&Run, &str),
    fx: &mut Vec<DirectoryEffect>,
) -> Verdict {
    if run.journals.is_empty() {
        return Verdict::Untold;
    }
    match cluster.records.runs.get(&brick) {
        Some(record) if record.number == run.number => on_same_run(cluster, now, brick, run, address),
        Some(record) if run.incarnation > 0 && run.incarnation < record.incarnation => {
            on_ousted(cluster, now, brick, (run, address), fx)
        }
        // It was told the same incarnation by a directory whose store another one has replaced since: neither is known to be the later.
        Some(record) if run.incarnation > 0 && run.incarnation == record.incarnation => {
            if !record.place.ends_with(run.place) {
                note_lag(cluster, now, brick, run, fx);
            }
            on_new_run(cluster, now, brick, (run, address), fx)
        }
        _ => on_new_run(cluster, now, brick, (run, address), fx),
    }
}

fn on_same_run(cluster: &mut Cluster, now: Time, brick: BrickId, run: &Run, address: &str) -> Verdict {
    let Some(record) = cluster.records.runs.get_mut(&brick) else { return Verdict::Waits };
    // One that was first heard by a directory of an earlier release.
    let is_placed = record.place == Place::default() && run.place != record.place;
    if is_placed {
        record.place = run.place;
    }
    let has_moved = record.advance(&run.journals) || is_placed;
    let incarnation = record.incarnation;
    let runs = &mut cluster.runs;
    if has_moved {
        runs.moved.insert(brick);
    }
    let known = runs.bricks.entry(brick).or_default();
    known.heard = Some(now);
    known.has_other_disks = false;
    address.clone_into(&mut known.address);
    // Another process with its id wants to be heard, and this one does not end: neither may count until its lease has ended.
    if known.rival.is_some_and(|rival| rival.contests(now)) {
        Verdict::Waits
    } else {
        Verdict::Counts { incarnation }
    }
}

/// A run comes that was not heard before, or of which only a directory before this one heard.
fn on_new_run(
    cluster: &mut Cluster,
    now: Time,
    brick: BrickId,
    (run, address): (&Run, &str),
    fx: &mut Vec<DirectoryEffect>,
) -> Verdict {
    let began = cluster.runs.began;
    let known = cluster.runs.bricks.entry(brick).or_default();
    let since = match known.rival {
        Some(rival) if rival.number == run.number => rival.since,
        _ => now,
    };
    let rival = Rival { number: run.number, since, heard: now };
    let disks = cluster.records.bricks.get(&brick).map(|record| &record.disks[..]);
    let before = cluster.records.runs.get(&brick);
    let has_ended = before.is_none_or(|record| record.place.ends_with(run.place));
    let is_quiet = now.since(known.heard.unwrap_or(began)) >= SILENCE;
    let is_ahead = before
        .is_some_and(|record| record.is_ahead_of(&run.journals) || record.knows_as_former(&run.journals));
    // As long as the run that counts is heard this is a late word of one that ended before it, and no rival.
    let may_be_before = before.is_some_and(|record| record.began_behind(&run.journals));
    let is_late = has_ended && is_ahead && may_be_before && !is_quiet;
    if !is_late {
        known.rival = Some(rival);
    }
    let is_contested = !has_ended && !is_quiet && rival.contests(now);
    let may_count = cluster.rules.may_count(cluster.leases.has_ended(now, brick));
    let is_free = !is_late && (has_ended || may_count && (is_quiet || is_contested));
    known.has_other_disks = !is_free && disks.is_some_and(|disks| has_other_disks(disks, &run.journals));
    if !is_free {
        return Verdict::Waits;
    }
    let is_old = is_contested || cluster.rules.is_old_disk(is_ahead);
    // The same disk elsewhere: it may be a copy. What is known of the earlier one's lease proves nothing: a directory that restarted does not
    // know of it, and without one writes are still taken.
    let is_elsewhere = before
        .is_some_and(|record| record.place.is_elsewhere(run.place) && record.has_a_disk_of(&run.journals));
    let is_suspect = !is_old && is_elsewhere || before.is_some_and(|record| record.is_suspect);
    if is_suspect {
        cluster.counters.count(Counter::BrickCameElsewhere);
    }
    let is_behind = is_old || before.is_some_and(|record| record.is_behind);
    let incarnation = run.incarnation.max(before.map_or(0, |record| record.incarnation) + 1);
    let behind = before.map_or_else(Vec::new, |record| record.still_behind(&run.journals));
    let former = before.map_or_else(Vec::new, |record| record.former_beside(&run.journals));
    let (number, place, journals) = (run.number, run.place, run.journals.clone());
    // Disks that are not entered yet as old know of groups what they knew when they came, whatever the brick has heard since.
    let pending = before.filter(|record| record.is_behind).map(|record| record.knew);
    let knew = pending.map_or(run.newest_known, |knew| knew.min(run.newest_known));
    let found_old = before.map_or(0, |record| record.found_old) + u64::from(is_old);
    let record = RunRecord {
        number,
        incarnation,
        journals,
        is_behind,
        behind,
        former,
        knew,
        found_old,
        place,
        is_suspect,
    };
    if is_contested {
        known.twice = Some((now, known.address.clone()));
        cluster.counters.count(Counter::BrickRanTwice);
    }
    if is_old {
        known.old = Some(now);
        cluster.counters.count(Counter::BrickCameWithAnOldDisk);
    }
    (known.heard, known.rival) = (Some(now), None);
    address.clone_into(&mut known.address);
    cluster.records.runs.insert(brick, record);
    let put = cluster.records.put_run(brick);
    cluster.put(vec![put], Vec::new(), fx);
    Verdict::Counts { incarnation }
}

fn has_other_disks(known: &[u64], journals: &[JournalReport]) -> bool {
    !known.is_empty() && !known.iter().eq(journals.iter().map(|journal| &journal.disk))
}

/// A run speaks although a later one counts.
fn on_ousted(
    cluster: &mut Cluster,
    now: Time,
    brick: BrickId,
    (run, address): (&Run, &str),
    fx: &mut Vec<DirectoryEffect>,
) -> Verdict {
    let Some(by) = cluster.records.runs.get(&brick).map(|record| record.incarnation) else {
        return Verdict::Waits;
    };
    let known = cluster.runs.bricks.entry(brick).or_default();
    if run.ousted_by == by {
        // It has heard that it does not count, so it runs now.
        if known.twice.is_none() {
            cluster.counters.count(Counter::BrickRanTwice);
        }
        known.twice = Some((now, address.to_owned()));
    }
    note_lag(cluster, now, brick, run, fx);
    Verdict::Ousted { by }
}

/// What another run took beyond what the one that counts found on its disks, that one lacks.
fn note_lag(cluster: &mut Cluster, now: Time, brick: BrickId, run: &Run, fx: &mut Vec<DirectoryEffect>) {
    let Some(record) = cluster.records.runs.get_mut(&brick) else { return };
    let known = cluster.runs.bricks.entry(brick).or_default();
    if !record.is_behind && cluster.rules.is_old_disk(record.found_less_than(&run.journals)) {
        record.is_behind = true;
        record.found_old += 1;
        // What it told is told no more: it must not count against the later run a second time.
        record.raise_found(&run.journals);
        known.old = Some(now);
        cluster.counters.count(Counter::BrickCameWithAnOldDisk);
        let put = cluster.records.put_run(brick);
        cluster.put(vec![put], Vec::new(), fx);
    }
}

/// Stores how far disks are, at intervals.
pub(super) fn keep(cluster: &mut Cluster, now: Time, fx: &mut Vec<DirectoryEffect>) {
    if cluster.runs.moved.is_empty() || now < cluster.runs.store_at {
        return;
    }
    cluster.runs.store_at = now + STORED_EVERY;
    let moved = core::mem::take(&mut cluster.runs.moved);
    let puts: Vec<Put> = moved.into_iter().map(|brick| cluster.records.put_run(brick)).collect();
    cluster.put(puts, Vec::new(), fx);
}

impl RunRecord {
    /// Takes in how far the disks are; whether any has moved.
    fn advance(&mut self, journals: &[JournalReport]) -> bool {
        let mut has_moved = false;
        for told in journals {
            match self.journals.iter_mut().find(|known| known.disk == told.disk) {
                Some(known) => {
                    has_moved |= told.durable > known.durable;
                    known.durable = known.durable.max(told.durable);
                }
                None => {
                    has_moved = true;
                    self.journals.push(*told);
                }
            }
        }
        has_moved
    }

    /// The groups of which disks have older blocks, if any of these disks is still there.
    fn still_behind(&self, journals: &[JournalReport]) -> Vec<GroupId> {
        if self.has_a_disk_of(journals) { self.behind.clone() } else { Vec::new() }
    }

    fn has_a_disk_of(&self, journals: &[JournalReport]) -> bool {
        pairs(&self.journals, journals).next().is_some()
    }

    /// Whether one of these disks was exchanged for another one, and is back.
    fn knows_as_former(&self, journals: &[JournalReport]) -> bool {
        journals.iter().any(|told| self.former.contains(&told.disk))
    }

    /// The disks that are gone for a run with these.
    fn former_beside(&self, journals: &[JournalReport]) -> Vec<u64> {
        let is_there = |disk: &u64| journals.iter().any(|told| told.disk == *disk);
        let gone = self.journals.iter().map(|known| known.disk);
        let mut former: Vec<u64> =
            self.former.iter().copied().chain(gone).filter(|of| !is_there(of)).collect();
        former.drain(..former.len().saturating_sub(FORMER_MAX));
        former
    }

    /// Whether a disk of another run begins before what was told of it.
    fn is_ahead_of(&self, journals: &[JournalReport]) -> bool {
        pairs(&self.journals, journals).any(|(known, told)| told.found < known.durable)
    }

    /// Whether this run found on its disks all that another one says of them, as one that came after it did.
    fn began_behind(&self, journals: &[JournalReport]) -> bool {
        pairs(&self.journals, journals).all(|(known, told)| told.durable <= known.found)
    }

    /// Whether an earlier run of the brick has taken more than what this one found.
    fn found_less_than(&self, journals: &[JournalReport]) -> bool {
        pairs(&self.journals, journals).any(|(known, told)| known.found < told.durable)
    }

    fn raise_found(&mut self, journals: &[JournalReport]) {
        for known in &mut self.journals {
            let told = journals.iter().filter(|told| told.disk == known.disk).map(|told| told.durable);
            known.found = told.fold(known.found, u64::max);
        }
    }
}

/// What two runs say of the same disks.
fn pairs<'a>(
    known: &'a [JournalReport],
    told: &'a [JournalReport],
) -> impl Iterator<Item = (&'a JournalReport, &'a JournalReport)> {
    known.iter().filter_map(|known| Some((known, told.iter().find(|told| told.disk == known.disk)?)))
}
