//! An open store: its parts, and the router that hands commands and answers of the disk to them.

use crate::blocks::{Blocks, Bounds};
use crate::config::{Limits, StoreConfig};
use crate::destage::Destage;
use crate::device::{Answer, Device, FlushPurpose, ReadPurpose, WritePurpose};
use crate::discard::Region;
use crate::event::{StoreEffect, StoreEvent};
use crate::group_commit::Log;
use crate::header::Header;
use crate::inventory::{allocation, stretches};
use crate::journal::Journal;
use crate::metadata::Key;
use crate::pace::{Pace, Room};
use crate::page_map::PageMap;
use crate::read::{Base, ReadOp, Reader, Reads, Wanted};
use crate::refusal::refusal;
use crate::stats::{PageStats, ReadStats, Space, Stats};
use crate::superblock::Superblock;
use crate::writing::NoRoom;
use base::{Depth, Time};
use bytes::Bytes;
use wire::disk::{Command, Contested, Reply, StoreError, Token};

/// Pages in memory below which one cycle could not hold those that it changes.
const PAGES_MIN: usize = 128;

/// An open store. From below to above: the device; where blocks are; the journal; the cycles that empty it; reads.
pub(crate) struct Running {
    pub(crate) device: Device,
    pub(crate) blocks: Blocks,
    pub(crate) log: Log,
    pub(crate) destage: Destage,
    pub(crate) reads: Reads,
    pub(crate) pace: Pace,
    /// How many metadata pages were read when the disk was opened, and whether the map said where the others are.
    pub(crate) pages_read: u32,
    pub(crate) is_mapped: bool,
}

impl Running {
    /// With nothing known yet but where things are.
    pub(crate) fn new(config: &StoreConfig, superblock: &Superblock, header: &Header) -> Running {
        let geometry = &superblock.geometry;
        let journal = Journal::new(geometry, header, header.tail);
        let map = PageMap::new(geometry, header.pages_high, header.map);
        let limits: Limits = config.limits;
        let bounds = bounds(config, &journal);
        Running {
            device: Device::new(superblock),
            blocks: Blocks::new(geometry, map.places(geometry), &bounds),
            log: Log::new(limits, journal),
            destage: Destage::new(limits, map),
            reads: Reads::new(limits.reads_max, config.sum_check),
            pace: Pace::default(),
            pages_read: 0,
            is_mapped: false,
        }
    }

    /// Blocks of which nothing is known yet.
    pub(crate) fn blank_blocks(&self, config: &StoreConfig) -> Blocks {
        let bounds = bounds(config, self.log.journal());
        Blocks::new(self.device.geometry(), self.blocks.pages.places().count(), &bounds)
    }

    /// What tells this disk from others.
    pub(crate) fn identity(&self) -> u64 {
        self.device.identity()
    }

    pub(crate) fn space(&self) -> Space {
        self.blocks.space()
    }

    pub(crate) fn stats(&self) -> Stats {
        let pages = &self.blocks.pages;
        Stats {
            disk: self.device.stats(),
            journal: self.log.stats(),
            reads: ReadStats { cache_bytes: self.blocks.cache.bytes() as u64, ..self.reads.stats() },
            destage: self.destage.stats(&self.blocks),
            pages: PageStats {
                count: pages.count() as u64,
                lost: pages.lost() as u64,
                read_at_open: u64::from(self.pages_read),
                is_mapped: self.is_mapped,
                rewritten: self.destage.pages_rewritten(),
            },
        }
    }

    pub(crate) fn step(&mut self, now: Time, event: StoreEvent, fx: &mut Vec<StoreEffect>) {
        self.device.begin(now);
        match event {
            StoreEvent::Command(command) if self.device.is_broken() => {
                refusal(&command, StoreError::Failed).into_iter().for_each(|reply| self.device.reply(reply));
            }
            StoreEvent::Command(command) => self.on_command(command),
            StoreEvent::Io(done) => match self.device.answered(done) {
                Ok(answer) => answer.into_iter().for_each(|answer| self.on_answer(answer)),
                Err(why) => self.fail(&why),
            },
        }
        self.device.end(fx);
    }

    pub(crate) fn settle(&mut self, now: Time, fx: &mut Vec<StoreEffect>) {
        self.device.begin(now);
        if !self.device.is_broken() {
            let log = &mut self.log;
            log.barriers.enqueue(&log.writes, &mut log.queue, now);
            self.destage.consider(now, &self.blocks, &self.log);
            self.tell_room();
            self.start_group(now);
            // It may have to hurry from now on.
            self.go_on_destaging();
            self.blocks.pages.trim();
        }
        self.device.end(fx);
    }

    pub(crate) fn deadline(&self) -> Option<(Time, &'static str)> {
        if self.device.is_broken() || self.log.is_group_in_flight() {
            return None;
        }
        let lazy = self.log.due().map(|due| (due, "journal applied writes"));
        let idle = self.destage.due(&self.blocks);
        lazy.into_iter().chain(idle).min()
    }

    fn on_command(&mut self, command: Command) {
        match command {
            Command::Stage { token, staged, payload, kept_bytes } => {
                self.pace.take(payload.len());
                self.on_stage(token, staged, &payload, kept_bytes)
            }
            Command::Apply { stamp } => self.on_apply(stamp),
            Command::Drop { stamp } => self.on_drop(stamp),
            Command::Mend { token, span, width, stamps, payload } => {
                self.pace.take(payload.len());
                self.on_mend(token, span, width, stamps, &payload);
            }
            Command::Erase { token, span } => self.on_erase(token, span),
            Command::Read { token, span, width, content, contested } => {
                let wanted = if content { Wanted::Content } else { Wanted::Stamps };
                self.on_read(ReadOp::new(Reader::Participant(token), span, width, wanted), contested);
            }
            Command::Allocation { token, span } => {
                let result = Ok(allocation(&self.blocks, span));
                self.device.reply(Reply::Allocation { token, result });
            }
            Command::Note { token, key, value } => self.on_note(token, key, value),
            Command::Discard { volume, stretch } => self.on_discard(Region { volume, stretch }),
            Command::Verify { token, span, width } => {
                self.on_read(ReadOp::new(Reader::Participant(token), span, width, Wanted::Check), None);
            }
            Command::Inventory { token, after } => {
                let result = Ok(stretches(&self.blocks, after));
                self.device.reply(Reply::Inventory { token, result });
            }
            Command::Remember { token, completions } => self.on_remember(token, completions),
            Command::Refresh { completions } => self.on_refresh(completions),
            Command::Barrier { token } => self.log.barriers.push(token, &self.log.writes),
            Command::Forget { span } => self.blocks.forget_cached(span),
            Command::Destage { token, blocks } => self.on_turn((token, blocks)),
        }
    }

    fn on_answer(&mut self, answer: Answer) {
        match answer {
            Answer::Read(ReadPurpose::Page(key), bytes) => self.on_page(key, bytes.as_ref()),
            Answer::Read(ReadPurpose::Map, bytes) => {
                self.destage.map.on_read(bytes.as_ref(), &self.blocks, &self.device);
                self.go_on_destaging();
            }
            Answer::Read(ReadPurpose::Look(look), bytes) => {
                self.destage.on_looked(&look, bytes.as_ref(), &mut self.blocks, &self.device);
            }
            Answer::Read(ReadPurpose::Blocks(id, run), bytes) => {
                let base = self.reads.on_blocks(id, &run, bytes, &mut self.blocks, &mut self.device);
                self.go_on_with(base);
            }
            Answer::Left(ReadPurpose::Blocks(id, _)) => {
                self.reads.on_left(id, &mut self.blocks, &mut self.device);
            }
            // What a read needs to find its blocks no other brick can give.
            Answer::Left(ReadPurpose::Page(key)) => self.blocks.ask_page(key, None, &mut self.device),
            Answer::Left(purpose @ (ReadPurpose::Look(_) | ReadPurpose::Map)) => {
                unreachable!("nobody contends for {purpose:?}")
            }
            Answer::Written(WritePurpose::Group) => {
                let logged = self.log.on_part(&mut self.device);
                logged.into_iter().for_each(|items| self.on_group_durable(items));
            }
            Answer::Flushed(FlushPurpose::Group) => {
                let logged = self.log.on_durable();
                self.on_group_durable(logged);
            }
            Answer::Written(purpose @ (WritePurpose::Blocks(_) | WritePurpose::Page(_))) => {
                self.on_destaged(&purpose);
            }
            Answer::Written(WritePurpose::Map) => {
                let result = self.destage.on_map_written(&mut self.blocks, &self.log, &mut self.device);
                self.fail_without_room(result);
            }
            Answer::Flushed(FlushPurpose::Cycle) => {
                self.destage.on_flushed(&self.blocks, &self.log, &mut self.device);
            }
            Answer::Written(WritePurpose::Header) => {
                let now = self.device.now();
                self.destage.on_header_written(&mut self.blocks, &mut self.log, now);
            }
        }
    }

    fn on_read(&mut self, mut read: ReadOp, contested: Option<Contested>) {
        if !read.is_sound() || self.reads.is_full() {
            let error = if read.is_sound() { StoreError::Busy } else { StoreError::Failed };
            return read.refusal(error).into_iter().for_each(|reply| self.device.reply(reply));
        }
        if self.log.works.overlap(&read.span()) {
            return self.reads.hold(read);
        }
        if read.is_check() {
            self.destage.look(&self.blocks, &read.span(), read.width(), &mut self.device);
        }
        read.contest(contested);
        self.start_read(read);
    }

    /// Begins a read; goes on with what it was for if it is done at once.
    pub(crate) fn start_read(&mut self, read: ReadOp) {
        let base = self.reads.start(read, &mut self.blocks, &mut self.device);
        self.go_on_with(base);
    }

    fn on_page(&mut self, key: Key, bytes: Option<&Bytes>) {
        let Some(readers) = self.blocks.take_page(key, bytes, &self.device) else { return };
        for id in readers {
            let base = self.reads.on_page(id, key, &mut self.blocks, &mut self.device);
            self.go_on_with(base);
        }
        self.go_on_destaging();
    }

    fn on_turn(&mut self, turn: (Token, u32)) {
        let result = self.destage.on_turn(turn, &mut self.blocks, &self.log, &mut self.device);
        self.fail_without_room(result);
    }

    fn go_on_destaging(&mut self) {
        if self.device.is_broken() {
            return;
        }
        let result = self.destage.go_on(&mut self.blocks, &self.log, &mut self.device);
        self.fail_without_room(result);
    }

    fn on_destaged(&mut self, purpose: &WritePurpose) {
        let result = self.destage.on_written(purpose, &mut self.blocks, &self.log, &mut self.device);
        self.fail_without_room(result);
    }

    /// Tells how much new content may come, where that is bounded.
    fn tell_room(&mut self) {
        let room = Room::of(self.destage.limits(), &self.blocks, &self.log, &self.destage);
        self.pace.tell(room).into_iter().for_each(|reply| self.device.reply(reply));
        if self.pace.is_used_up() {
            self.destage.make_room(&self.blocks, &self.log);
        }
    }

    /// Goes on with the application that a read was for.
    fn go_on_with(&mut self, base: Option<Base>) {
        if let Some(Base { stamp, blocks }) = base {
            self.on_base(stamp, &blocks.content, &blocks.unreadable);
        }
    }

    pub(crate) fn fail_without_room(&mut self, result: Result<(), NoRoom>) {
        if let Err(NoRoom(why)) = result {
            self.fail(why);
        }
    }

    /// Ends all work: after a failed write or flush nobody knows what is on the disk.
    pub(crate) fn fail(&mut self, why: &str) {
        self.device.break_down(why);
        self.log.refuse().into_iter().for_each(|reply| self.device.reply(reply));
        self.reads.refuse().for_each(|reply| self.device.reply(reply));
        self.log.works.refuse().for_each(|reply| self.device.reply(reply));
        self.log.barriers.refuse().for_each(|reply| self.device.reply(reply));
        self.destage.refuse(&mut self.device);
        self.pace.open().into_iter().for_each(|reply| self.device.reply(reply));
    }

    pub(crate) fn check(&self, depth: Depth) {
        self.log.check();
        let is_broken = self.device.is_broken();
        let has_writes = !self.log.writes.is_empty();
        assert!(
            !self.blocks.layers.has_fresh() || has_writes || is_broken,
            "applied content without its write"
        );
        if depth == Depth::Deep && !is_broken {
            self.log.check_deep();
            self.blocks.check();
        }
    }
}

fn bounds(config: &StoreConfig, journal: &Journal) -> Bounds {
    Bounds {
        cache_bytes: config.cache_bytes,
        pages_max: config.limits.pages_max.max(PAGES_MIN),
        used_percent_max: config.limits.used_percent_max,
        journal_bytes: journal.capacity(),
    }
}
