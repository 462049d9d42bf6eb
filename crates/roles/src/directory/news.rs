//! What the directory's log and its [events](super::events) tell an operator: which brick left, came back, was admitted, evicted or forgotten, and by what
//! that is known.
//!
//! A change of views concerns one group, and a brick that dies is in hundreds. So [`Moves`] gathers what all changes of one
//! look at the groups do to a brick, and tells it in one line. Every change of a view passes [`super::views`], which notes it
//! here: no member goes or comes without a line.

use super::cluster::Cluster;
use super::members::{full, fullness};
use base::{BrickId, GroupId, NodeId, Time};
use core::fmt;
use core::time::Duration;
use std::collections::BTreeMap;
use wire::GroupView;

/// Something that happened to a brick, for the log and for `brickwork events`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// It got its id, and has not been heard yet.
    Admitted {
        brick: BrickId,
    },
    /// An admitted brick is heard for the first time.
    Came {
        brick: BrickId,
        address: String,
    },
    /// An operator takes it out of all groups; `by` is to get its places, if that was said.
    Evicted {
        brick: BrickId,
        by: Option<BrickId>,
        asked_by: NodeId,
    },
    Readmitted {
        brick: BrickId,
        asked_by: NodeId,
    },
    /// Its record is removed.
    Forgotten {
        brick: BrickId,
        asked_by: NodeId,
    },
    /// Other disks than before: what was on them counts as lost.
    OtherDisks {
        brick: BrickId,
        before: Vec<u64>,
        now: Vec<u64>,
        groups: usize,
    },
    /// It holds up writes and is to leave its groups; `why` says what was measured.
    HeldForSlow {
        brick: BrickId,
        why: String,
    },
    /// It holds up writes and stays, since this group would keep too little redundancy without it.
    KeptThoughSlow {
        brick: BrickId,
        why: String,
        group: GroupId,
    },
    /// It may write in its groups again.
    WellAgain {
        brick: BrickId,
        why: &'static str,
    },
    /// What changes of views do to a brick, in so many groups.
    Moved {
        brick: BrickId,
        groups: usize,
        how: Move,
    },
}

/// What a change of views does to a member.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Move {
    LeftOut(Cause),
    /// It was to be left out and stays: who was to remain did not promise.
    Stays,
    /// It takes writes again and catches up.
    Returns,
    /// It has caught up and serves.
    Serves,
    /// It gets the place of a brick that stays away.
    TakesOver(BrickId),
    /// It takes the new writes of another that is away.
    StandsIn(BrickId),
    /// The other one is back, or this one takes its place.
    StandsDown(BrickId, BrickId),
    /// It is heard, and does not answer what it is asked about the views: these groups serve nobody.
    DoesNotAnswer,
}

/// Why a member is left out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Nothing was heard of it for so long; of one that was never heard since the directory started that is not known.
    Silent(Option<Duration>),
    /// The connection to it has ended, and nothing was heard of it for so long.
    Disconnected(Duration),
    DiskFailed(String),
    Evicted,
    Slow(String),
    /// Its disk is so full, in percent, that it may not catch up.
    Full(u64),
    /// Its blocks were on disks that it has no more.
    LostItsBlocks,
    /// It was to catch up or to stand in, and does not answer.
    NoAnswer,
}

impl News {
    /// Whether an operator may have to do something.
    pub fn is_trouble(&self) -> bool {
        match self {
            News::HeldForSlow { .. } | News::KeptThoughSlow { .. } | News::OtherDisks { .. } => true,
            News::Moved { how: Move::DoesNotAnswer, .. } => true,
            News::Moved { how: Move::LeftOut(cause), .. } => *cause != Cause::Evicted,
            _ => false,
        }
    }

    /// What it is, in a word that stays: programs go by it.
    pub fn kind(&self) -> &'static str {
        match self {
            News::Admitted { .. } => "admitted",
            News::Came { .. } => "came",
            News::Evicted { .. } => "evicted",
            News::Readmitted { .. } => "readmitted",
            News::Forgotten { .. } => "forgotten",
            News::OtherDisks { .. } => "other-disks",
            News::HeldForSlow { .. } => "held-for-slow",
            News::KeptThoughSlow { .. } => "kept-though-slow",
            News::WellAgain { .. } => "well-again",
            News::Moved { how, .. } => match how {
                Move::LeftOut(_) => "left-out",
                Move::Stays => "stays",
                Move::Returns => "returns",
                Move::Serves => "serves",
                Move::TakesOver(_) => "takes-over",
                Move::StandsIn(_) => "stands-in",
                Move::StandsDown(..) => "stands-down",
                Move::DoesNotAnswer => "does-not-answer",
            },
        }
    }

    /// Why a member was left out, if it was.
    pub fn cause(&self) -> Option<&Cause> {
        match self {
            News::Moved { how: Move::LeftOut(cause), .. } => Some(cause),
            _ => None,
        }
    }

    /// Of whom it is.
    pub fn brick(&self) -> BrickId {
        match self {
            News::Admitted { brick }
            | News::Came { brick, .. }
            | News::Evicted { brick, .. }
            | News::Readmitted { brick, .. }
            | News::Forgotten { brick, .. }
            | News::OtherDisks { brick, .. }
            | News::HeldForSlow { brick, .. }
            | News::KeptThoughSlow { brick, .. }
            | News::WellAgain { brick, .. }
            | News::Moved { brick, .. } => *brick,
        }
    }
}

impl Cause {
    /// In a word that stays: programs go by it.
    pub fn name(&self) -> &'static str {
        match self {
            Cause::Silent(_) => "silent",
            Cause::Disconnected(_) => "disconnected",
            Cause::DiskFailed(_) => "disk-failed",
            Cause::Evicted => "evicted",
            Cause::Slow(_) => "slow",
            Cause::Full(_) => "full",
            Cause::LostItsBlocks => "lost-its-blocks",
            Cause::NoAnswer => "no-answer",
        }
    }
}

impl fmt::Display for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            News::Admitted { brick } => write!(f, "{brick} is admitted"),
            News::Came { brick, address } => write!(f, "{brick} is heard for the first time, at {address}"),
            News::Evicted { brick, by: None, asked_by } => {
                write!(f, "{brick} is evicted: {asked_by} asked for it")
            }
            News::Evicted { brick, by: Some(by), asked_by } => {
                write!(f, "{brick} is evicted and {by} is to get its places: {asked_by} asked for it")
            }
            News::Readmitted { brick, asked_by } => {
                write!(f, "{brick} is readmitted: {asked_by} asked for it")
            }
            News::Forgotten { brick, asked_by } => write!(f, "{brick} is forgotten: {asked_by} asked for it"),
            News::OtherDisks { brick, before, now, groups } => write!(
                f,
                "{brick} came with other disks ({now:x?}, before {before:x?}): its blocks of {} count as lost",
                of_groups(*groups)
            ),
            News::HeldForSlow { brick, why } => {
                write!(f, "{brick} is slow and leaves its groups once it has given back its lease: {why}")
            }
            News::KeptThoughSlow { brick, why, group } => write!(
                f,
                "{brick} is slow and stays in its groups, since {group} would have too little redundancy left \
                 without it: {why}"
            ),
            News::WellAgain { brick, why } => write!(f, "{brick} may return to its groups: {why}"),
            News::Moved { brick, groups, how } => {
                let groups = of_groups(*groups);
                match how {
                    Move::LeftOut(cause) => write!(f, "{brick} is left out of {groups}: {cause}"),
                    Move::Stays => write!(f, "{brick} stays in {groups} after all: others are lost there"),
                    Move::Returns => write!(f, "{brick} returns to {groups} and catches up"),
                    Move::Serves => write!(f, "{brick} has caught up in {groups} and serves there"),
                    Move::DoesNotAnswer => write!(
                        f,
                        "{brick} is up and does not answer about the views of {groups}, which serve nobody meanwhile: its disk may \
                         have lost what it had acknowledged"
                    ),
                    Move::StandsIn(from) => {
                        write!(f, "{brick} stands in for {from} in {groups}: it takes new writes")
                    }
                    Move::StandsDown(from, taker) if from == taker => {
                        write!(f, "{brick} stands in for {from} no more in {groups}: that one is back")
                    }
                    Move::StandsDown(from, taker) => {
                        write!(f, "{brick} stands in for {from} no more in {groups}: {taker} takes its place")
                    }
                    Move::TakesOver(from) => {
                        write!(f, "{brick} takes the place of {from} in {groups} and catches up")
                    }
                }
            }
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Silent(Some(span)) => write!(f, "nothing was heard of it for {:.1} s", span.as_secs_f64()),
            Cause::Disconnected(span) => {
                let seconds = span.as_secs_f64();
                write!(f, "the connection to it has ended, and nothing was heard of it for {seconds:.1} s")
            }
            Cause::Silent(None) => f.write_str("it was not heard since the directory started"),
            Cause::DiskFailed(why) => write!(f, "its disk failed: {why}"),
            Cause::Evicted => f.write_str("it is evicted"),
            Cause::Slow(why) => write!(f, "it is slow: {why}"),
            Cause::Full(percent) => write!(f, "it is {percent}% full, too full to catch up"),
            Cause::LostItsBlocks => f.write_str("it has lost its blocks"),
            Cause::NoAnswer => f.write_str("it was to catch up or to stand in, and does not answer"),
        }
    }
}

fn of_groups(groups: usize) -> String {
    if groups == 1 { "1 group".to_owned() } else { format!("{groups} groups") }
}

/// What changes of views did to bricks since it was told last, and in how many groups.
#[derive(Debug, Default)]
pub(super) struct Moves(BTreeMap<(BrickId, Move), usize>);

impl Moves {
    /// The view `next` is to follow on `before`; `revoked` was to, and does not. How many members are left out for being slow.
    pub(super) fn note(
        &mut self,
        cluster: &Cluster,
        now: Time,
        before: &GroupView,
        next: &GroupView,
        revoked: Option<&GroupView>,
    ) -> usize {
        let mut slow = 0;
        // One that was to stand in has said nothing, and is in no view before.
        let asked = revoked.into_iter().flat_map(GroupView::joining_bricks);
        let asked = asked.filter(|(_, brick)| !before.is_writer(*brick));
        for (slot, brick) in before.writing_bricks().chain(asked).filter(|(_, brick)| !next.is_writer(*brick))
        {
            let taker = next.members.get(usize::from(slot)).filter(|_| next.writers().has(slot));
            // A change that begins again has told it.
            if revoked.is_some_and(|revoked| !revoked.is_writer(brick)) && before.is_writer(brick) {
                continue;
            }
            if let (Some(member), Some(taker)) = (before.sealed_at(slot), taker)
                && !next.sealed.iter().any(|(of, _)| *of == slot)
            {
                self.add(brick, Move::StandsDown(member, *taker));
                continue;
            }
            let cause = cause(cluster, now, brick, before.is_current(brick) && before.current.has(slot));
            slow += usize::from(matches!(cause, Cause::Slow(_)));
            self.add(brick, Move::LeftOut(cause));
        }
        for (slot, brick) in next.writing_bricks() {
            let former = before.members.get(usize::from(slot)).filter(|former| **former != brick);
            match former {
                Some(_) if revoked.is_some_and(|revoked| revoked.stands_in_at(slot) == Some(brick)) => {}
                Some(former) if next.stands_in(brick) => {
                    self.add(brick, Move::StandsIn(next.sealed_at(slot).unwrap_or(*former)));
                }
                Some(_) if before.sealed_at(slot) == Some(brick) => self.add(brick, Move::Returns),
                Some(former) => {
                    self.add(brick, Move::TakesOver(before.sealed_at(slot).unwrap_or(*former)));
                }
                None if before.stands_in(brick) && !next.stands_in(brick) => {
                    before
                        .sealed_at(slot)
                        .into_iter()
                        .for_each(|member| self.add(brick, Move::TakesOver(member)));
                }
                None if !before.is_writer(brick) => self.add(brick, Move::Returns),
                None if next.is_current(brick) && !before.is_current(brick) => self.add(brick, Move::Serves),
                None if revoked.is_some_and(|revoked| !revoked.is_writer(brick)) => {
                    self.add(brick, Move::Stays)
                }
                None => {}
            }
        }
        slow
    }

    pub(super) fn add(&mut self, brick: BrickId, how: Move) {
        *self.0.entry((brick, how)).or_default() += 1;
    }

    /// A line a brick and move: who went and who came first, and then who does something for that.
    pub(super) fn take(&mut self) -> impl Iterator<Item = News> + use<> {
        let all = core::mem::take(&mut self.0).into_iter();
        let is_first =
            |((_, how), _): &((BrickId, Move), usize)| matches!(how, Move::LeftOut(_) | Move::Returns);
        let (first, then): (Vec<_>, Vec<_>) = all.partition(is_first);
        first.into_iter().chain(then).map(|((brick, how), groups)| News::Moved { brick, groups, how })
    }
}

/// How many stand in for others from `next` on, and how many members that were sealed take their slots again.
pub(super) fn named_and_relieved(before: &GroupView, next: &GroupView) -> (usize, usize) {
    let is_new = |(slot, _): &&(u8, BrickId)| before.stands_in_at(*slot) != next.stands_in_at(*slot);
    let is_back = |(slot, member): &&(u8, BrickId)| {
        next.writers().has(*slot) && next.members.get(usize::from(*slot)) == Some(member)
    };
    (next.sealed.iter().filter(is_new).count(), before.sealed.iter().filter(is_back).count())
}

/// Why a member is left out now.
fn cause(cluster: &Cluster, now: Time, brick: BrickId, was_current: bool) -> Cause {
    let lease = cluster.leases.get(brick);
    if let Some(why) = lease.and_then(|lease| lease.status.failed.clone()) {
        return Cause::DiskFailed(why);
    }
    if !cluster.leases.is_alive(now, brick) {
        let silence = lease.map(|lease| now.since(lease.heard));
        let is_down = lease.is_some_and(|lease| lease.is_down);
        return silence.filter(|_| is_down).map_or(Cause::Silent(silence), Cause::Disconnected);
    }
    if cluster.records.bricks.get(&brick).is_none_or(|record| record.evicted) {
        return Cause::Evicted;
    }
    if let Some(slow) = cluster.records.slow.get(&brick).filter(|slow| slow.is_out) {
        return Cause::Slow(slow.why.clone());
    }
    match lease.map_or(0, |lease| fullness(&lease.status)) {
        // A current member that is alive and wanted goes for nothing else.
        _ if was_current => Cause::LostItsBlocks,
        percent @ full::DROP.. => Cause::Full(percent),
        _ => Cause::NoAnswer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_who_what_and_by_what_that_is_known() {
        let brick = BrickId(3);
        let left_out = |cause, groups| News::Moved { brick, groups, how: Move::LeftOut(cause) };
        let silent = left_out(Cause::Silent(Some(Duration::from_millis(2450))), 12);
        assert_eq!(silent.to_string(), "brick-3 is left out of 12 groups: nothing was heard of it for 2.5 s");
        assert!(silent.is_trouble() && !left_out(Cause::Evicted, 1).is_trouble());
        let by = News::Evicted { brick, by: Some(BrickId(4)), asked_by: NodeId::Directory };
        assert_eq!(
            by.to_string(),
            "brick-3 is evicted and brick-4 is to get its places: directory asked for it"
        );
    }
}
