//! Destaging: journalled content is written to its final place, the metadata pages learn of it, and the journal's tail moves up.
//!
//! One cycle: a checkpoint frame that carries forward all that is undecided; the intent, which names the places of the pages that will be
//! written ([`crate::page_map`]); then all content journalled before is written to its final place, and what the map says of the pages; a
//! flush; a journal header with the checkpoint as the new tail. Only then are slots free that the cycle gave up, because until
//! then a crash brings the old journal back, and with it the old places.
//!
//! Content is written in turns of some blocks each ([`crate::turns`]), so that clients' requests need not wait for a whole cycle.

use crate::blocks::Blocks;
use crate::config::Limits;
use crate::device::{Device, FlushPurpose, Look, WritePurpose};
use crate::group_commit::Log;
use crate::heal::Damaged;
use crate::labour::Labour;
use crate::metadata::{Key, PAGE_BLOCKS, PAGE_SLOTS};
use crate::pace::{Home, Room};
use crate::page_map::PageMap;
use crate::queue::Item;
use crate::record::aligned_copy;
use crate::stats::DestageStats;
use crate::superblock::HEADERS_AT;
use crate::turns::Turns;
use crate::writing::{NoRoom, Todo, Writing, add_zeros};
use base::{BLOCK_U64, Payload, Time};
use bytes::Bytes;
use core::time::Duration;
use std::collections::{BTreeSet, VecDeque};
use wire::Span;
use wire::disk::Token;

/// Pages of discarded volumes that one cycle erases.
const ERASED_MAX: usize = 1024;
/// Groups in memory at which content is destaged, however few its bytes.
const GROUPS_MAX: usize = 4096;

/// What a cycle on an idle disk is for.
const BRING_HOME: &str = "bring blocks home";
pub(crate) const FIRST_ROUND: &str = "go on with the first round of the map of pages";

/// How far the cycle is.
enum Cycle {
    Idle,
    /// To be begun as soon as no group is in flight.
    Wanted,
    /// The checkpoint at this position is in flight.
    Sealing {
        tail: u64,
    },
    /// The intent is being written.
    Intending(Writing),
    /// Content and pages are being written, and then what the map says of the pages.
    Writing(Writing),
    /// They are being flushed.
    Flushing(Writing),
    /// The header is being written.
    Header(Writing),
}

/// The cycles, one after the other.
pub(crate) struct Destage {
    limits: Limits,
    cycle: Cycle,
    pub(crate) map: PageMap,
    turns: Turns,
    damaged: Damaged,
    labour: Labour,
    /// Where the journal ended when the last checkpoint was durable.
    sealed_at: u64,
    stats: DestageStats,
}

impl Destage {
    pub(crate) fn new(limits: Limits, map: PageMap) -> Destage {
        Destage {
            limits,
            cycle: Cycle::Idle,
            map,
            turns: Turns::default(),
            damaged: Damaged::default(),
            labour: Labour::default(),
            sealed_at: 0,
            stats: DestageStats::default(),
        }
    }

    pub(crate) fn stats(&self, blocks: &Blocks) -> DestageStats {
        let waiting_slots = (blocks.layers.durable().len() + blocks.layers.destaging().len()) as u64;
        let of_cycle = match &self.cycle {
            Cycle::Writing(writing) | Cycle::Flushing(writing) | Cycle::Header(writing) => {
                writing.written_blocks()
            }
            Cycle::Idle | Cycle::Wanted | Cycle::Sealing { .. } | Cycle::Intending(_) => 0,
        };
        DestageStats { blocks: self.stats.blocks + of_cycle, waiting_slots, ..self.stats }
    }

    /// How many pages were found damaged on the disk.
    pub(crate) fn pages_rewritten(&self) -> u64 {
        self.damaged.found()
    }

    /// Whether the next group is to be a cycle's checkpoint.
    pub(crate) fn is_wanted(&self) -> bool {
        matches!(self.cycle, Cycle::Wanted)
    }

    /// Asks for a cycle, unless one is under way.
    fn want(&mut self, reason: bool) {
        if reason && self.is_idle() {
            self.cycle = Cycle::Wanted;
        }
    }

    /// Content waits for room, which a cycle gives if there is any to destage. One that has nothing to destage gives some, too, where the journal has
    /// grown since the last one: by writes that were dropped.
    pub(crate) fn make_room(&mut self, blocks: &Blocks, log: &Log) {
        self.hurry(!blocks.layers.durable().is_empty() || self.frees_journal(log));
    }

    /// Whether a cycle would free anything of the journal.
    pub(crate) fn frees_journal(&self, log: &Log) -> bool {
        log.journal().head() > self.sealed_at
    }

    /// Something waits for the room that a cycle gives: the one that is under way waits for no turn, nor does the one that begins now if
    /// there `is_more` to destage.
    pub(crate) fn hurry(&mut self, is_more: bool) {
        self.want(is_more);
        if !self.is_idle() {
            self.turns.hurry();
        }
    }

    /// Wants a cycle when enough has gathered, the journal fills up, or the disk is idle.
    pub(crate) fn consider(&mut self, now: Time, blocks: &Blocks, log: &Log) {
        self.want(blocks.pages.has_blank() || log.facts.notes.are_due(blocks.slots.available()));
        self.want(self.map.due(self.limits.idle_ns).is_some_and(|due| now >= due));
        let Some((due, _)) = self.due(blocks) else { return };
        let journal_max = (log.journal().capacity() / 3).min(self.limits.backlog_bytes as u64 * 2);
        let durable = blocks.layers.durable();
        let much = durable.bytes() >= self.limits.destage_bytes.min(Room::cycle_bytes(&self.limits))
            || durable.len() >= GROUPS_MAX;
        self.want(now >= due || much || log.journal().used() > journal_max);
    }

    /// Notes whether the journal, or the memory for what is in it, is so full that writes will soon have to wait for the cycle.
    fn look_at_room(&mut self, blocks: &Blocks, log: &Log) {
        let journal = log.journal();
        let is_memory_full = blocks.layers.journalled_bytes() > self.limits.backlog_bytes / 4 * 3;
        let is_full = is_memory_full || journal.used() > journal.capacity() / 2;
        if is_full && !self.is_idle() {
            self.turns.hurry();
        }
    }

    /// When a cycle begins on an idle disk, and what for: journalled content is written to its final place, or the map's first round goes on.
    pub(crate) fn due(&self, blocks: &Blocks) -> Option<(Time, &'static str)> {
        let since = blocks.layers.durable_since();
        let content = since.map(|since| (since + Duration::from_nanos(self.limits.idle_ns), BRING_HOME));
        let map = self.map.due(self.limits.idle_ns).map(|due| (due, FIRST_ROUND));
        content.into_iter().chain(map).min_by_key(|(due, _)| *due).filter(|_| self.is_idle())
    }

    /// The checkpoint begins at `tail`.
    pub(crate) fn seal(&mut self, tail: u64) {
        self.cycle = Cycle::Sealing { tail };
    }

    /// The checkpoint is durable: what is journalled before it can be written to its final place.
    pub(crate) fn on_sealed(
        &mut self,
        blocks: &mut Blocks,
        log: &Log,
        device: &mut Device,
    ) -> Result<(), NoRoom> {
        let Cycle::Sealing { tail } = self.cycle else { unreachable!("a checkpoint is part of a cycle") };
        self.sealed_at = log.journal().head();
        blocks.layers.begin_destaging();
        let blank = blocks.pages.take_blank();
        let mut todo = self.todo(blocks, blank);
        add_zeros(&mut todo, blocks);
        let writing = Writing::new(tail, todo);
        if self.map.begin_cycle(tail, writing.places(blocks), device) {
            self.cycle = Cycle::Intending(writing);
            return Ok(());
        }
        self.cycle = Cycle::Writing(writing);
        self.go_on(blocks, log, device)
    }

    /// A write of the map is done.
    pub(crate) fn on_map_written(
        &mut self,
        blocks: &mut Blocks,
        log: &Log,
        device: &mut Device,
    ) -> Result<(), NoRoom> {
        if self.map.on_written() {
            let Cycle::Intending(writing) = core::mem::replace(&mut self.cycle, Cycle::Idle) else {
                unreachable!("an intent stands before the pages")
            };
            self.cycle = Cycle::Writing(writing);
        }
        self.go_on(blocks, log, device)
    }

    /// A turn to write about so many blocks.
    pub(crate) fn on_turn(
        &mut self,
        (token, max_blocks): (Token, u32),
        blocks: &mut Blocks,
        log: &Log,
        device: &mut Device,
    ) -> Result<(), NoRoom> {
        self.turns.begin(token, max_blocks);
        if !matches!(self.cycle, Cycle::Writing(_)) {
            self.turns.end(device);
        }
        self.go_on(blocks, log, device)
    }

    /// Goes on writing as far as this turn allows, and flushes when everything is written.
    pub(crate) fn go_on(
        &mut self,
        blocks: &mut Blocks,
        log: &Log,
        device: &mut Device,
    ) -> Result<(), NoRoom> {
        self.look_at_room(blocks, log);
        let Cycle::Writing(writing) = &mut self.cycle else { return Ok(()) };
        let written = writing.go_on(self.turns.blocks_max(), blocks, log, device)?;
        self.turns.spend(written);
        if !writing.is_under_way() && (self.turns.is_spent() || !writing.has_more()) {
            self.turns.end(device);
        }
        if writing.has_more() {
            self.turns.ask(writing.blocks_left(blocks), device);
        }
        if writing.is_done() && self.map.finish(writing.said(), blocks, device) {
            let Cycle::Writing(writing) = core::mem::replace(&mut self.cycle, Cycle::Idle) else {
                unreachable!("just seen")
            };
            self.cycle = Cycle::Flushing(writing);
            device.flush(FlushPurpose::Cycle);
        }
        self.note_labour(device);
        Ok(())
    }

    /// Whether the disk works on what is brought home, from now on: a disk with a cache of its own does most of that when it flushes.
    fn note_labour(&mut self, device: &mut Device) {
        let is_at_work = match &self.cycle {
            Cycle::Writing(writing) => writing.is_under_way(),
            Cycle::Flushing(_) => true,
            _ => false,
        };
        let is_over = !matches!(self.cycle, Cycle::Writing(_) | Cycle::Flushing(_));
        self.labour.note(device.now(), is_at_work);
        self.labour.tell(device.now(), is_over).into_iter().for_each(|told| device.reply(told));
    }

    /// A write is done.
    pub(crate) fn on_written(
        &mut self,
        purpose: &WritePurpose,
        blocks: &mut Blocks,
        log: &Log,
        device: &mut Device,
    ) -> Result<(), NoRoom> {
        let Cycle::Writing(writing) = &mut self.cycle else {
            unreachable!("content is written within a cycle")
        };
        writing.on_written(purpose, blocks);
        if let WritePurpose::Blocks(count) = purpose {
            self.labour.brought(*count);
        }
        self.go_on(blocks, log, device)
    }

    /// What was written is on stable storage: the tail may move.
    pub(crate) fn on_flushed(&mut self, blocks: &Blocks, log: &Log, device: &mut Device) {
        let Cycle::Flushing(writing) = core::mem::replace(&mut self.cycle, Cycle::Idle) else {
            unreachable!("a cycle flushes once")
        };
        let (header, place) =
            log.journal().next_header(writing.tail(), blocks.pages.high(), self.map.for_header());
        let sector = Payload::from(aligned_copy(&header.encode_sector(device.seed())));
        self.cycle = Cycle::Header(writing);
        device.write(WritePurpose::Header, HEADERS_AT + place * BLOCK_U64, sector, true);
        self.note_labour(device);
    }

    /// The tail has moved, durably: what the cycle gave up is free.
    pub(crate) fn on_header_written(&mut self, blocks: &mut Blocks, log: &mut Log, now: Time) {
        let Cycle::Header(writing) = core::mem::replace(&mut self.cycle, Cycle::Idle) else {
            unreachable!("a cycle writes one header")
        };
        log.move_tail(writing.tail());
        self.map.end_cycle(now);
        let left = blocks.layers.end_destaging();
        blocks.release(left);
        self.stats.blocks += writing.written_blocks();
        writing.free(blocks);
        log.facts.notes.take_retired().into_iter().for_each(|slot| blocks.slots.free(slot));
        self.turns.calm_down();
        self.stats.cycles += 1;
        self.forget_discarded(blocks, log, now);
    }

    /// Looks at the pages of these blocks on the disk, to see whether the disk has what memory has.
    pub(crate) fn look(&self, blocks: &Blocks, span: &Span, width: u8, device: &mut Device) {
        if self.is_idle() {
            Damaged::look(blocks, span, width, self.stats.cycles, device);
        }
    }

    /// Takes a page as the disk has it. A cycle in between may have changed it.
    pub(crate) fn on_looked(
        &mut self,
        look: &Look,
        bytes: Option<&Bytes>,
        blocks: &mut Blocks,
        device: &Device,
    ) {
        let is_same_cycle = self.is_idle() && self.stats.cycles == look.cycles;
        if is_same_cycle && self.damaged.take(look.key, bytes, blocks, device) {
            self.want(true);
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What the cycle under way has brought home so far, and what of the journal it gives back for that.
    pub(crate) fn home(&self, blocks: &Blocks, log: &Log) -> Home {
        let (Cycle::Writing(writing) | Cycle::Flushing(writing) | Cycle::Header(writing)) = &self.cycle
        else {
            return Home::default();
        };
        let all = blocks.layers.destaging().bytes() as u64;
        let content = (writing.home_blocks() * BLOCK_U64).min(all);
        let freed = log.journal().until(writing.tail());
        // In proportion; all of it when nothing is left to be written.
        let journal = match self.cycle {
            Cycle::Writing(_) => (u128::from(freed) * u128::from(content) / u128::from(all.max(1))) as u64,
            _ => freed,
        };
        Home { content, journal }
    }

    /// No turn comes to its end any more: the disk failed.
    pub(crate) fn refuse(&mut self, device: &mut Device) {
        self.turns.end(device);
    }

    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.cycle, Cycle::Idle)
    }

    fn todo(&mut self, blocks: &Blocks, blank: Vec<Key>) -> VecDeque<Todo> {
        let mut todo: VecDeque<Todo> = VecDeque::new();
        for (volume, number, group) in blocks.layers.destaging().groups() {
            let page = number / PAGE_SLOTS;
            let used = blocks.planes_of(volume, page, group);
            match todo.back_mut() {
                Some(Todo::Update { volume: v, page: p, planes }) if (*v, *p) == (volume, page) => {
                    planes.extend(used)
                }
                _ => todo.push_back(Todo::Update { volume, page, planes: used.collect() }),
            }
        }
        let is_changed = |key: &Key| blocks.layers.destaging().has_page(*key);
        for Key { volume, page, plane } in blank.into_iter().filter(|key| !is_changed(key)) {
            todo.push_back(Todo::Update { volume, page, planes: BTreeSet::from([plane]) });
        }
        let doomed = blocks.discards.logged().flat_map(|region| blocks.pages.of(region));
        todo.extend(doomed.take(ERASED_MAX).map(Todo::Erase));
        let changes = |key: &Key| {
            blocks.discards.cover(key.volume, key.page * PAGE_BLOCKS)
                || blocks.layers.destaging().has_page(*key)
        };
        let damaged = self.damaged.take_unchanged(changes);
        todo.extend(BTreeSet::into_iter(damaged).map(Todo::Rewrite));
        todo
    }

    /// Discards without pages are over; for the others another cycle follows.
    fn forget_discarded(&mut self, blocks: &mut Blocks, log: &mut Log, now: Time) {
        let pages = &blocks.pages;
        blocks.discards.end_logged(|region| pages.of(region).next().is_some());
        while let Some(region) = blocks.discards.next_waiting() {
            log.queue.push(Item::Discard(region), now);
        }
        self.damaged.forget_gone(blocks);
        self.want(blocks.discards.logged().next().is_some() || !self.damaged.is_empty());
    }
}
