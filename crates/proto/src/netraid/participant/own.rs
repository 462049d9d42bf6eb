//! What the brick itself asks of a disk, to catch up, to scrub, to merge and to answer other bricks: its own blocks, past
//! any reader; its stretches; the requests that took effect.

use super::branches::Wanted;
use super::{Context, HORIZON_KEY, Lookup, Participant, SETTLED_KEY};
use base::{GroupId, RequestId, Stamp, VolumeId};
use wire::disk::{Blocks, Command, StoreError};
use wire::{Completion, Span, Wire};

/// What was found, for the brick's own question of that number.
#[derive(Debug)]
pub enum Own {
    /// Blocks as they are here, what they inherit included.
    Blocks(Result<Blocks, StoreError>),
    /// The stretches that hold stamps at one disk.
    Stretches(Result<Vec<(VolumeId, u64)>, StoreError>),
    /// Whether effects of other members are on stable storage here.
    Remembered(bool),
    /// Whether a block is marked as lost.
    Lost(Span, bool),
    /// Blocks were copied up into a branch, but for those, from 0, that could not be read.
    CopiedUp(Span, Result<Vec<u32>, StoreError>),
}

impl Participant {
    /// Looks up the stamps of own blocks; with `verify` checks what is on the disk, too.
    pub fn examine(
        &mut self,
        cx: &mut Context<'_>,
        job: u64,
        group: GroupId,
        span: Span,
        width: u8,
        verify: bool,
    ) {
        if self.pending.in_doubt(span).next().is_some() {
            return self.own.push((job, Own::Blocks(Err(StoreError::Busy))));
        }
        let token = self.token();
        let wanted = if verify { Wanted::Check } else { Wanted::Stamps };
        self.descend_from(cx, token, group, span, width, wanted);
        let command = match verify {
            true => Command::Verify { token, span, width },
            false => Command::Read { token, span, width, content: false, contested: None },
        };
        self.ask(cx, token, Lookup::Own { job }, command);
    }

    /// Which stretches hold stamps on this disk?
    pub fn list_stretches(&mut self, cx: &mut Context<'_>, job: u64, after: Option<(VolumeId, u64)>) {
        let token = self.token();
        self.ask(cx, token, Lookup::Own { job }, Command::Inventory { token, after });
    }

    /// At most `max` of the parts of requests that took effect here after `after`, in order.
    pub fn list_completions(&self, after: Option<(RequestId, u64)>, max: usize) -> Vec<Completion> {
        self.completions.page(after, max)
    }

    /// Takes over which requests took effect at another member.
    ///
    /// The store forgets the effects with the earliest stamps first, and after a restart this member takes all that is
    /// later than the earliest it remembers for known. Effects of others may be earlier than some of its own that it
    /// forgot: so it durably notes first that it has no say about writes up to the latest of them.
    pub fn remember(&mut self, cx: &mut Context<'_>, job: u64, completions: Vec<Completion>) {
        let latest = completions.iter().map(|completion| completion.stamp).max().unwrap_or_default();
        if latest <= self.noted_horizon {
            return self.remember_noted(cx, job, completions);
        }
        let token = self.token();
        let (key, value) = (HORIZON_KEY.to_vec(), Some(latest.to_bytes()));
        self.ask(
            cx,
            token,
            Lookup::Horizon { job, latest, completions },
            Command::Note { token, key, value },
        );
    }

    pub(super) fn on_horizon(
        &mut self,
        cx: &mut Context<'_>,
        (job, latest, completions): (u64, Stamp, Vec<Completion>),
        durable: bool,
    ) {
        if !durable {
            return self.own.push((job, Own::Remembered(false)));
        }
        self.noted_horizon = self.noted_horizon.max(latest);
        self.remember_noted(cx, job, completions);
    }

    fn remember_noted(&mut self, cx: &mut Context<'_>, job: u64, completions: Vec<Completion>) {
        let token = self.token();
        self.ask(
            cx,
            token,
            Lookup::Remember { job, completions: completions.clone() },
            Command::Remember { token, completions },
        );
    }

    pub(super) fn on_remembered(&mut self, job: u64, completions: Vec<Completion>, durable: bool) {
        if durable {
            for completion in completions {
                self.completions.insert(completion);
                self.applied.insert(completion.stamp);
            }
        }
        self.own.push((job, Own::Remembered(durable)));
    }

    /// Gives a stretch of a branch back, once no write of it is under way.
    pub fn discard_stretch(&mut self, cx: &mut Context<'_>, volume: VolumeId, stretch: u64) {
        self.store(cx, Command::Discard { volume, stretch: Some(stretch) });
    }

    /// Says so once all that was asked of the disk so far is durable.
    pub fn settle(&mut self, cx: &mut Context<'_>, job: u64) {
        let token = self.token();
        let (key, value) = (SETTLED_KEY.to_vec(), Some(token.to_le_bytes().to_vec()));
        let completions = Vec::new();
        self.ask(cx, token, Lookup::Remember { job, completions }, Command::Note { token, key, value });
    }

    /// What was found since the last call.
    pub fn take_own(&mut self) -> Vec<(u64, Own)> {
        core::mem::take(&mut self.own)
    }

    /// Writes and reads that clients wait for here.
    pub fn load(&self) -> usize {
        self.pending.len() + self.waiting.len() + self.held.len()
    }
}
