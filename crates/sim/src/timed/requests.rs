//! Requests that are not over: not answered yet, or written and not on all disks yet.

use super::cluster::WriteRelease;
use super::conditions::Seen;
use super::grain::Grain;
use super::load::Port;
use super::workload::Shape;
use base::{HashMap, Time};
use std::collections::VecDeque;

/// A request that is not over.
#[derive(Clone, Copy, Debug)]
struct Asked {
    born: Time,
    group: u32,
    /// The node that was asked.
    node: usize,
    /// The blocks in the group's volume: the first, and how many.
    block: u64,
    blocks: u64,
    is_write: bool,
    is_answered: bool,
    is_released: bool,
    /// How many bricks hold each block, and disks that have what was written.
    holders: u32,
    written: u32,
}

/// A request that was just answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    pub(super) group: u32,
    pub(super) bytes: u64,
    pub(super) is_write: bool,
    pub(super) response_ns: u64,
    /// The group in which a slot of a closed loop is free with it.
    pub(super) free: Option<u32>,
}

pub(super) struct Requests {
    release: WriteRelease,
    /// Whether a write is open until all disks have it, whenever its slot is free.
    lasts_to_disks: bool,
    grain: Grain,
    open: HashMap<u64, Asked>,
    /// Writes that are not on all disks yet, by group and block, in the order in which they were asked.
    writing: HashMap<(u32, u64), VecDeque<u64>>,
    last_tag: u64,
    /// Whose clients died before the answer.
    lost: Vec<Seen>,
}

impl Requests {
    pub(super) fn new(release: WriteRelease, grain: Grain) -> Requests {
        let (open, writing) = (HashMap::default(), HashMap::default());
        let lasts_to_disks = release != WriteRelease::Nvram;
        Requests { release, lasts_to_disks, grain, open, writing, last_tag: 0, lost: Vec::new() }
    }

    /// From now on writes are open until all disks have them.
    pub(super) fn last_to_disks(&mut self) {
        self.lasts_to_disks = true;
    }

    /// How many are open.
    pub(super) fn outstanding(&self) -> usize {
        self.open.len()
    }

    /// Whether none is open.
    pub(super) fn are_over(&self) -> bool {
        self.open.is_empty()
    }

    /// How many are not answered, and the oldest of them, for people.
    pub(super) fn describe(&self) -> Option<String> {
        let unanswered = || self.open.iter().filter(|(_, asked)| !asked.is_answered);
        let oldest = unanswered().min_by_key(|(tag, _)| **tag)?.1;
        Some(format!("{} are open, the oldest is {oldest:?}", unanswered().count()))
    }

    /// The tag of the request that is taken up next.
    pub(super) fn next_tag(&self) -> u64 {
        self.last_tag + 1
    }

    /// Takes a request up that goes there: its tag.
    pub(super) fn ask(&mut self, now: Time, (group, port): (u32, Port), shape: Shape) -> u64 {
        self.last_tag = self.next_tag();
        let Port { node, holders, .. } = port;
        let asked = Asked {
            born: now,
            group,
            node,
            block: shape.sector / self.grain.block_sectors(),
            blocks: u64::from(shape.count).div_ceil(self.grain.block_sectors()),
            is_write: shape.is_write,
            is_answered: false,
            is_released: false,
            holders,
            written: 0,
        };
        if asked.is_write && self.lasts_to_disks {
            self.writing.entry((group, asked.block)).or_default().push_back(self.last_tag);
        }
        self.open.insert(self.last_tag, asked);
        self.last_tag
    }

    /// A request as checkers see it.
    pub(super) fn seen(&self, tag: u64) -> Option<Seen> {
        let Asked { born, group, block, blocks, is_write, .. } = *self.open.get(&tag)?;
        Some(Seen { tag, group, block, blocks, is_write, born })
    }

    /// All that are not answered: those that are lost, and the others in the order in which they were asked.
    pub(super) fn unanswered(&self) -> Vec<Seen> {
        self.lost.iter().copied().chain(self.waiting(|_| true)).collect()
    }

    /// Those that were asked at this node and are not answered will not be. The group of each.
    pub(super) fn lose(&mut self, node: usize) -> Vec<u32> {
        let lost = self.waiting(|asked| asked.node == node);
        lost.iter().for_each(|seen| _ = self.open.remove(&seen.tag));
        let groups = lost.iter().map(|seen| seen.group).collect();
        self.lost.extend(lost);
        groups
    }

    /// How many are lost.
    pub(super) fn lost(&self) -> u64 {
        self.lost.len() as u64
    }

    fn waiting(&self, is_meant: impl Fn(&Asked) -> bool) -> Vec<Seen> {
        let unanswered = self.open.iter().filter(|(_, asked)| !asked.is_answered && is_meant(asked));
        let mut tags: Vec<u64> = unanswered.map(|(tag, _)| *tag).collect();
        tags.sort_unstable();
        tags.into_iter().filter_map(|tag| self.seen(tag)).collect()
    }

    /// A request is answered. None where it was before.
    pub(super) fn on_answer(&mut self, now: Time, tag: u64) -> Option<Answered> {
        let asked = self.open.get_mut(&tag).filter(|asked| !asked.is_answered)?;
        asked.is_answered = true;
        let Asked { born, group, blocks, is_write, .. } = *asked;
        let free = if is_write && self.lasts_to_disks {
            self.release_written(tag)
        } else {
            self.open.remove(&tag);
            Some(group)
        };
        let bytes = blocks * self.grain.block_bytes();
        Some(Answered { group, bytes, is_write, response_ns: now.0 - born.0, free })
    }

    /// A disk has written a block of a group. The group, where a slot is free with it.
    pub(super) fn on_written(&mut self, group: u32, block: u64) -> Option<u32> {
        let Requests { writing, open, .. } = self;
        let tags = writing.get(&(group, block))?;
        let is_missing = |tag: &&u64| open.get(*tag).is_some_and(|asked| asked.written < asked.holders);
        let tag = *tags.iter().find(is_missing)?;
        open.get_mut(&tag)?.written += 1;
        self.release_written(tag)
    }

    /// Frees the slot of a write when it is acknowledged and on as many disks as is asked for; forgets it when it is on all.
    fn release_written(&mut self, tag: u64) -> Option<u32> {
        let asked = self.open.get_mut(&tag).filter(|asked| asked.is_answered)?;
        let is_enough = asked.written >= self.release.needed(asked.holders as usize);
        let is_due = is_enough && !asked.is_released;
        asked.is_released = is_enough;
        let Asked { group, block, holders, written, .. } = *asked;
        if written >= holders {
            self.open.remove(&tag);
            if let Some(tags) = self.writing.get_mut(&(group, block)) {
                tags.retain(|other| *other != tag);
                if tags.is_empty() {
                    self.writing.remove(&(group, block));
                }
            }
        }
        is_due.then_some(group)
    }
}
