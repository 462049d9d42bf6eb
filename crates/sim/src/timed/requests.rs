//! Requests that are not over: not answered yet, or written and not on all disks yet.

use super::cluster::WriteRelease;
use super::conditions::Seen;
use super::grain::Grain;
use super::load::Port;
use super::record::{DiskAccess, RequestRecord, ServedBy};
use super::workload::Shape;
use base::{HashMap, Time};
use std::collections::VecDeque;
use wire::Span;

/// A request that is not over.
#[derive(Clone, Copy, Debug)]
struct Asked {
    born: Time,
    group: u32,
    /// The node that was asked.
    node: usize,
    shape: Shape,
    is_answered: bool,
    is_released: bool,
    /// How many bricks hold each block, and disks that have what was written.
    holders: u32,
    written: u32,
}

/// A request that was just answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    /// In the world's time.
    pub(super) record: RequestRecord,
    /// The group in which a slot of a closed loop is free with it.
    pub(super) free: Option<u32>,
}

/// Requests that begin at the same block, and the accesses of disks there since the first of them was asked.
#[derive(Default)]
struct Unanswered {
    tags: Vec<u64>,
    accesses: Vec<DiskAccess>,
}

/// Which requests are one access of a disk that is seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sight {
    /// None: several make one.
    Nothing,
    /// Reads; writes are answered by a journal.
    Reads,
    All,
}

pub(super) struct Requests {
    release: WriteRelease,
    /// Whether a write is open until all disks have it, whenever its slot is free.
    lasts_to_disks: bool,
    grain: Grain,
    /// Which requests are seen to be one access of a disk.
    sight: Sight,
    open: HashMap<u64, Asked>,
    /// Requests that are not answered and are one access of a disk, by group, first block, and whether they are writes.
    unanswered: HashMap<(u32, u64, bool), Unanswered>,
    /// Writes that are not on all disks yet, by group and block, in the order in which they were asked.
    writing: HashMap<(u32, u64), VecDeque<u64>>,
    last_tag: u64,
    /// Whose clients died before the answer.
    lost: Vec<Seen>,
}

impl Requests {
    pub(super) fn new(release: WriteRelease, grain: Grain) -> Requests {
        Requests {
            release,
            lasts_to_disks: release != WriteRelease::Nvram,
            grain,
            sight: Sight::Nothing,
            open: HashMap::default(),
            unanswered: HashMap::default(),
            writing: HashMap::default(),
            last_tag: 0,
            lost: Vec::new(),
        }
    }

    /// From now on writes are open until all disks have them.
    pub(super) fn last_to_disks(&mut self) {
        self.lasts_to_disks = true;
    }

    /// Which requests are one access of a disk: answers tell which one.
    pub(super) fn see(&mut self, sight: Sight) {
        self.sight = sight;
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
            shape,
            is_answered: false,
            is_released: false,
            holders,
            written: 0,
        };
        let block = self.grain.block_of(shape.sector);
        if shape.is_write && self.lasts_to_disks {
            self.writing.entry((group, block)).or_default().push_back(self.last_tag);
        }
        if self.sees(shape) {
            self.unanswered.entry((group, block, shape.is_write)).or_default().tags.push(self.last_tag);
        }
        self.open.insert(self.last_tag, asked);
        self.last_tag
    }

    /// A request as checkers see it.
    pub(super) fn seen(&self, tag: u64) -> Option<Seen> {
        let Asked { born, group, shape: Shape { sector, count, is_write }, .. } = *self.open.get(&tag)?;
        let block = self.grain.block_of(sector);
        Some(Seen { tag, group, block, blocks: self.grain.blocks(count), is_write, born })
    }

    /// All that are not answered: those that are lost, and the others in the order in which they were asked.
    pub(super) fn unanswered(&self) -> Vec<Seen> {
        self.lost.iter().copied().chain(self.waiting(|_| true)).collect()
    }

    /// Those that were asked at this node and are not answered will not be. The group of each.
    pub(super) fn lose(&mut self, node: usize) -> Vec<u32> {
        let lost = self.waiting(|asked| asked.node == node);
        for seen in &lost {
            self.open.remove(&seen.tag);
            self.is_no_more_unanswered(
                seen.tag,
                (seen.group, seen.block, seen.is_write),
                seen.born,
                seen.born,
            );
        }
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
        let Asked { born, group, shape, .. } = *asked;
        let Shape { sector, count, is_write } = shape;
        let access =
            self.is_no_more_unanswered(tag, (group, self.grain.block_of(sector), is_write), born, now);
        let free = if is_write && self.lasts_to_disks {
            self.release_written(tag)
        } else {
            self.open.remove(&tag);
            Some(group)
        };
        let served_by = match access {
            Some(access) => ServedBy::Disk(access),
            None if self.sees(shape) || is_write && self.sight == Sight::Reads => ServedBy::Memory,
            None => ServedBy::Several,
        };
        let record = RequestRecord { asked: born, answered: now, group, sector, count, is_write, served_by };
        Some(Answered { record, free })
    }

    /// Whether a request is one access of a disk that is seen. Machines cut what is long, or crosses the end of a stretch.
    fn sees(&self, shape: Shape) -> bool {
        let (block, blocks) = (self.grain.block_of(shape.sector), self.grain.blocks(shape.count));
        let stretch = Span::STRETCH_BLOCKS;
        let is_cut = blocks > u64::from(Span::BLOCKS_MAX)
            || block / stretch != (block + blocks.saturating_sub(1)) / stretch;
        !is_cut && (self.sight == Sight::All || self.sight == Sight::Reads && !shape.is_write)
    }

    /// The access that answered it: the last one that was begun since it was asked, and is done.
    fn is_no_more_unanswered(
        &mut self,
        tag: u64,
        place: (u32, u64, bool),
        asked: Time,
        now: Time,
    ) -> Option<DiskAccess> {
        let Unanswered { tags, accesses } = self.unanswered.get_mut(&place)?;
        tags.retain(|other| *other != tag);
        let is_meant = |access: &&DiskAccess| access.begun >= asked && access.done <= now;
        let answer = accesses.iter().filter(is_meant).max_by_key(|access| access.done).copied();
        if tags.is_empty() {
            self.unanswered.remove(&place);
        }
        answer
    }

    /// A disk begins an access at a block of a group.
    pub(super) fn on_access(&mut self, place: (u32, u64, bool), access: DiskAccess) {
        if let Some(Unanswered { accesses, .. }) = self.unanswered.get_mut(&place) {
            accesses.push(access);
        }
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
        let Asked { group, shape, holders, written, .. } = *asked;
        if written >= holders {
            let block = self.grain.block_of(shape.sector);
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
