//! From a command to stable storage: staging, deciding, mending, notes, discards; and what follows when the journal has them.
//!
//! A command is answered when the group that carries its record is on stable storage, never before.

use crate::discard::Region;
use crate::overlay::{Need, Setting};
use crate::queue::Item;
use crate::record::{Body, Extent, WIDTH_MAX};
use crate::running::Running;
use crate::split::{Cause, Portion, Way};
use crate::works::{Mend, WorkId, WorkKind};
use crate::writes::{Again, Verdict, Write};
use base::{BLOCK, Payload, Stamp, Time};
use wire::Completion;
use wire::disk::{Staged, StoreError, Token};
use wire::{Change, FragmentId, Span, Wire};

/// Batches of completions from elsewhere that wait for the journal.
const REMEMBER_MAX: usize = 64;

/// What a write asks for beside room for its content.
#[derive(Clone, Copy)]
struct Asks {
    cause: Cause,
    /// What its record takes beside its extents.
    record_bytes: usize,
    /// Room that is for others, and must be left over.
    kept_bytes: usize,
    /// Names the writes beside which it is decided: all of them have to find room at once.
    together: Stamp,
}

/// What a write would take, set aside.
struct Plan {
    extents: Vec<Extent>,
    need: Need,
    cost: usize,
}

impl Running {
    pub(crate) fn on_stage(&mut self, token: Token, staged: Staged, payload: &Payload, kept_bytes: usize) {
        let (stamp, span) = (staged.write.stamp, staged.write.span);
        if let Some(known) = self.log.writes.get_mut(stamp) {
            return match known.stage_again(token) {
                Again::Waits => {}
                Again::Done => self.device.staged(token, Ok(())),
                Again::Dropped => self.device.staged(token, Err(StoreError::Busy)),
            };
        }
        let is_whole = payload.len() == span.bytes();
        let sound = match &staged.change {
            Change::Zero => payload.is_empty(),
            Change::Xor { index, .. } | Change::Replace { index, .. } => *index < WIDTH_MAX && is_whole,
            Change::Parity { width } => (1..=WIDTH_MAX).contains(width) && is_whole,
            Change::Data => is_whole,
        };
        let direct = matches!(staged.change, Change::Data | Change::Parity { .. });
        let record_bytes = staged.to_bytes().len();
        let asks = Asks {
            cause: Cause::stage(direct),
            record_bytes,
            kept_bytes,
            together: staged.write.decided_by(),
        };
        let setting = Setting::of(&staged.change, stamp);
        let planned = if sound && span.is_valid() {
            self.plan(span, setting, payload, asks)
        } else {
            Err(StoreError::Failed)
        };
        match planned {
            Err(error) => self.device.staged(token, Err(error)),
            Ok(Plan { extents, need, cost }) => {
                self.log.writes.insert(Write::new(token, staged, extents, need, cost));
                self.enqueue(Item::Stage(stamp));
            }
        }
    }

    pub(crate) fn on_mend(
        &mut self,
        token: Token,
        span: Span,
        width: u8,
        stamps: Vec<Stamp>,
        payload: &Payload,
    ) {
        self.put_in_place(token, span, (width, stamps), payload, payload.is_empty());
    }

    pub(crate) fn on_erase(&mut self, token: Token, span: Span) {
        let stamps = vec![Stamp::ZERO; span.count.min(Span::BLOCKS_MAX) as usize];
        self.put_in_place(token, span, (1, stamps), &Payload::new(), false);
    }

    /// Puts content in place with given stamps; none are zeros, or content that `is_lost`.
    fn put_in_place(
        &mut self,
        token: Token,
        span: Span,
        (width, stamps): (u8, Vec<Stamp>),
        payload: &Payload,
        is_lost: bool,
    ) {
        let sound = span.is_valid()
            && (is_lost || !payload.is_empty() || FragmentId::version_of(span.volume).is_some())
            && (1..=WIDTH_MAX).contains(&width)
            && stamps.len() == span.count as usize * width as usize
            && (payload.is_empty() || payload.len() == span.bytes());
        let planned = if sound {
            let record_bytes = stamps.len() * 8 + 32;
            // A fragment of an object is new: what is kept for repairs is not for it.
            let is_new = FragmentId::version_of(span.volume).is_some();
            let cause = if is_new { Cause::Stage } else { Cause::Mend };
            let asks = Asks { cause, record_bytes, kept_bytes: 0, together: Stamp::ZERO };
            self.plan(span, Setting::Each(width, &stamps), payload, asks)
        } else {
            Err(StoreError::Failed)
        };
        match planned {
            Err(error) => self.device.staged(token, Err(error)),
            Ok(Plan { mut extents, need, cost }) => {
                if is_lost {
                    extents.iter_mut().for_each(|extent| extent.body = Body::Lost);
                }
                let mend = Mend { token, span, width, stamps, extents, need, cost };
                self.enlist(span, WorkKind::Mend(Box::new(mend)));
            }
        }
    }

    /// Cuts a write into extents and sets room aside for it.
    fn plan(
        &mut self,
        span: Span,
        setting: Setting<'_>,
        payload: &Payload,
        asks: Asks,
    ) -> Result<Plan, StoreError> {
        let portions = self.blocks.split(span, payload.is_empty(), asks.cause);
        let inline: u32 =
            portions.iter().filter(|portion| portion.way == Way::Inline).map(|portion| portion.count).sum();
        let cost =
            inline as usize * BLOCK + asks.record_bytes + portions.len() * 32 + span.count as usize * 28 + 96;
        self.log.check_size(cost)?;
        let need = self.admit(span, setting, &portions, asks, cost).map_err(|error| {
            // What is journalled may leave room when it is in its final place.
            self.destage.hurry(!self.blocks.layers.durable().is_empty());
            match error {
                StoreError::NoRoomYet => self.log.check_together(cost, asks.together).err().unwrap_or(error),
                error => error,
            }
        })?;
        let extents = portions.into_iter().map(|portion| self.extent(payload, portion)).collect();
        Ok(Plan { extents, need, cost })
    }

    fn admit(
        &mut self,
        span: Span,
        setting: Setting<'_>,
        portions: &[Portion],
        asks: Asks,
        cost: usize,
    ) -> Result<Need, StoreError> {
        self.log.admit(cost + asks.kept_bytes, self.blocks.layers.journalled_bytes())?;
        if self.blocks.discards.cover_span(&span) {
            return Err(StoreError::Busy);
        }
        let need = self.blocks.need(span, setting, portions);
        self.blocks.admit(span, asks.cause, portions, need, asks.kept_bytes)?;
        Ok(need)
    }

    fn extent(&mut self, payload: &Payload, Portion { offset, count, way }: Portion) -> Extent {
        if way == Way::Zero {
            return Extent { offset, count, sums: Vec::new(), body: Body::Zero };
        }
        let content = payload.slice(offset as usize * BLOCK, count as usize * BLOCK);
        let sums = (0..count as usize).map(|i| content.block(i).checksum()).collect();
        if way == Way::Inline {
            return Extent { offset, count, sums, body: Body::Inline(content) };
        }
        let slot = self.blocks.direct_slot();
        self.log.bring(slot, content);
        Extent { offset, count, sums, body: Body::Slot(slot) }
    }

    pub(crate) fn on_apply(&mut self, stamp: Stamp) {
        let Some(write) = self.log.writes.get_mut(stamp) else { return };
        if write.decide(Verdict::Apply) {
            let span = write.staged().write.span;
            self.enlist(span, WorkKind::Apply(stamp));
        }
    }

    pub(crate) fn on_drop(&mut self, stamp: Stamp) {
        let Some(write) = self.log.writes.get_mut(stamp) else { return };
        if write.decide(Verdict::Drop) {
            self.enqueue(Item::Drop(stamp));
        }
    }

    pub(crate) fn on_note(&mut self, token: Token, key: Vec<u8>, value: Option<Vec<u8>>) {
        let admitted = self.log.facts.notes.check_size(&key, value.as_deref());
        let is_busy = self.log.is_queue_full();
        if let Err(error) = admitted.and(if is_busy { Err(StoreError::Busy) } else { Ok(()) }) {
            return self.device.noted(token, Err(error));
        }
        self.enqueue(Item::Note { token, key, value });
    }

    /// Takes over what took effect elsewhere. Of more than would be remembered the latest are taken.
    pub(crate) fn on_remember(&mut self, token: Token, completions: Vec<Completion>) {
        if self.log.queue.remembers() >= REMEMBER_MAX || self.log.is_queue_full() {
            return self.device.noted(token, Err(StoreError::Busy));
        }
        let completions = self.log.facts.latest(completions);
        self.enqueue(Item::Remember(token, completions));
    }

    /// Takes over what is still of interest, with the next group. A store that is busy leaves it: it is told again in time.
    pub(crate) fn on_refresh(&mut self, completions: Vec<Completion>) {
        if !self.log.is_queue_full() {
            self.enqueue(Item::Refresh(completions));
        }
    }

    pub(crate) fn on_discard(&mut self, region: Region) {
        if !region.is_sound() || !self.holds_any(region) {
            return;
        }
        let is_now = self.blocks.discards.add(region);
        for stamp in self.log.writes.of(region) {
            self.on_drop(stamp);
            self.log.writes.known_mut(stamp).doom();
        }
        self.refuse_mends(region);
        if is_now {
            self.enqueue(Item::Discard(region));
        }
    }

    /// Whether there is anything in a region to be given back.
    fn holds_any(&self, region: Region) -> bool {
        self.blocks.holds_any(region)
            || !self.log.writes.of(region).is_empty()
            || self.log.works.iter().any(|work| region.holds_span(&work.span()))
    }

    fn enqueue(&mut self, item: Item) {
        self.log.queue.push(item, self.device.now());
    }

    /// Begins the next group if there is reason to and none is in flight.
    pub(crate) fn start_group(&mut self, now: Time) {
        if self.log.is_group_in_flight() {
            return;
        }
        self.log.answer_barriers(&mut self.device);
        if self.destage.is_wanted() {
            return self.start_cycle();
        }
        if self.log.is_due(now) && !self.log.begin_group(&self.blocks, &mut self.device) {
            self.destage.hurry(true);
            if self.destage.is_wanted() {
                self.start_cycle();
            }
        }
    }

    /// Begins a cycle with its checkpoint.
    fn start_cycle(&mut self) {
        match self.log.begin_checkpoint(&mut self.blocks, &mut self.device) {
            Some(tail) => self.destage.seal(tail),
            None => self.fail("the journal holds more than this store can have written; replace the disk"),
        }
    }

    /// These records are on stable storage, and so is all that was answered before.
    pub(crate) fn on_group_durable(&mut self, items: Vec<Item>) {
        let is_checkpoint = matches!(items.last(), Some(Item::Checkpoint));
        items.into_iter().for_each(|item| self.on_logged(item));
        if is_checkpoint {
            let sealed = self.destage.on_sealed(&mut self.blocks, &self.log, &mut self.device);
            self.fail_without_room(sealed);
        }
        self.blocks.layers.note_durable(self.device.now());
    }

    fn on_logged(&mut self, item: Item) {
        match item {
            Item::Stage(stamp) => self.on_staged(stamp),
            Item::Apply(stamp) => self.on_applied(stamp, None),
            Item::Image(stamp, extents) => self.on_applied(stamp, Some(&extents)),
            Item::Drop(stamp) => {
                let write = self.log.writes.remove(stamp).expect("a write in flight is known");
                self.blocks.release(write.need());
                write.extents().iter().for_each(|extent| self.blocks.free_slot_of(extent));
            }
            Item::Mend(id) => self.on_mended(id),
            Item::Note { token, .. } | Item::Remember(token, _) => {
                self.log.settle_note(token, &self.blocks.discards, &mut self.device);
            }
            Item::Discard(region) => {
                self.blocks.log_discard(region);
                self.log.answer_notes(&self.blocks.discards, &mut self.device);
                self.destage.hurry(true);
            }
            Item::Barrier(token) => self.device.noted(token, Ok(())),
            Item::Refresh(_) | Item::Checkpoint => {}
        }
    }

    fn on_staged(&mut self, stamp: Stamp) {
        let Some((verdict, tokens)) = self.log.writes.known_mut(stamp).set_staged() else { return };
        tokens.into_iter().for_each(|token| self.device.staged(token, Ok(())));
        match verdict {
            Some(Verdict::Apply) => self.on_apply(stamp),
            Some(Verdict::Drop) => self.on_drop(stamp),
            None => {}
        }
    }

    fn on_applied(&mut self, stamp: Stamp, image: Option<&[Extent]>) {
        let write = self.log.writes.remove(stamp).expect("a write in flight is known");
        let (span, extents) = (write.staged().write.span, image.unwrap_or(write.extents()));
        self.blocks.layers.journal(span, stamp, write.setting(), extents);
        self.blocks.layers.take_over(write.need());
    }

    fn on_mended(&mut self, id: WorkId) {
        let mend = self.log.works.end_mend(id);
        self.blocks.layers.mend(mend.span, mend.setting(), &mend.extents);
        self.blocks.layers.take_over(mend.need);
        self.device.staged(mend.token, Ok(()));
        self.go_on();
    }
}
