//! The way to the disk's store: each question has a token, and its answer goes to whoever asked.
//!
//! A question and its answer are a pair by type: what is staged or mended is a [`Staging`], what is looked up a
//! [`Looking`], what is noted a [`Noting`]. An answer that nobody asked for breaks an invariant.

use super::arrivals::MergeJob;
use super::branches::{Descents, Found, Look, Step, Wanted};
use super::contests::Begun;
use super::context::{Asker, Context, FragmentTold, ReadRequest, RepairRequest, RepairTold};
use crate::netraid::pending::{Undecided, WriteKey};
use base::{GroupId, HashMap, NodeId, Stamp, Time, VolumeId};
use core::time::Duration;
use wire::disk::{Blocks, Command, Contested, StoreError, Token};
use wire::{Completion, Span, WriteId};

/// Who waits for a write to the disk.
#[derive(Debug)]
pub(super) enum Staging {
    /// A write that is prepared.
    Stage(WriteKey),
    /// A parity delta, for the inherited blocks that it changes.
    CopyUp(WriteKey),
    Mend {
        key: WriteKey,
        told: RepairTold,
    },
    /// A merge, for what it copies up.
    Merge(WriteKey),
    Fragment(FragmentTold),
}

/// Who waits for blocks.
#[derive(Debug)]
pub(super) enum Looking {
    /// A write that is checked, and how many copies up were made before.
    Check {
        key: WriteKey,
        copy_ups: u64,
    },
    Read {
        request: ReadRequest,
        leased: bool,
        begun: Begun,
        /// What it sees that is not decided.
        undecided: Option<Box<Undecided>>,
    },
    /// A question for a write's fate.
    Fate {
        asker: Asker,
        write: WriteId,
        width: u8,
    },
    /// A repair, to see whether it fits.
    Repair {
        key: WriteKey,
        request: Box<RepairRequest>,
    },
    Own {
        job: u64,
    },
    /// A merge, to see what it has to copy up.
    Merge(MergeRequest),
    Fragment(FragmentTold),
}

/// A merge that has its turn: its blocks are held until it ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct MergeRequest {
    pub(super) job: MergeJob,
    pub(super) key: WriteKey,
}

/// Who waits for a note.
#[derive(Debug)]
pub(super) enum Noting {
    /// A question for a fate, until the refusal is final.
    Seal {
        asker: Asker,
    },
    /// Nobody: a seal was dropped, and the floor raised instead.
    SealDropped,
    /// Completions from elsewhere: this brick says first up to which stamp it has no say.
    Horizon {
        job: u64,
        latest: Stamp,
        completions: Vec<Completion>,
    },
    Remember {
        job: u64,
        completions: Vec<Completion>,
    },
    /// The brick itself, for all that it asked before.
    Settle {
        job: u64,
    },
}

/// A question which blocks hold data.
#[derive(Debug)]
pub(super) struct Allocating {
    pub(super) from: NodeId,
    pub(super) operation: u64,
    pub(super) group: GroupId,
    pub(super) span: Span,
    /// What is known from the branches above.
    pub(super) above: Option<Vec<bool>>,
}

/// Questions of one kind that the store has not answered, and when each was asked.
#[derive(Debug)]
struct Asked<Q> {
    by_token: HashMap<Token, (Q, Time)>,
}

impl<Q> Default for Asked<Q> {
    fn default() -> Asked<Q> {
        Asked { by_token: HashMap::default() }
    }
}

impl<Q> Asked<Q> {
    fn ask(&mut self, now: Time, token: Token, question: Q) {
        let before = self.by_token.insert(token, (question, now));
        assert!(before.is_none(), "a token names one question");
    }

    /// The question, and how long the disk took for it.
    fn answered(&mut self, now: Time, token: Token) -> (Q, Duration) {
        let asked = self.by_token.remove(&token);
        let (question, since) = asked.expect("a store answers what it was asked, once and in kind");
        (question, now.since(since))
    }
}

/// The questions to a disk.
#[derive(Debug, Default)]
pub(super) struct Disk {
    serial: u64,
    stagings: Asked<Staging>,
    /// Fragments that are given back. Nobody waits for that.
    erasures: Asked<()>,
    lookups: Asked<Looking>,
    notings: Asked<Noting>,
    allocations: Asked<Allocating>,
    /// The brick's own jobs that ask for stretches.
    inventories: Asked<u64>,
    /// Turns of the store to destage.
    destagings: Asked<()>,
    descents: Descents,
    repairing_bytes: usize,
    /// Bytes of content that were staged or mended so far.
    brought: u64,
    /// How many more were to come when the disk told it last, and what had been brought by then.
    room: Option<(u64, u64)>,
}

fn repairing(looking: &Looking) -> usize {
    if let Looking::Repair { request, .. } = looking { request.content.len() } else { 0 }
}

impl Disk {
    /// A number that was not drawn before: tokens, and the order of what has none.
    pub(super) fn draw(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// Asks for what [`wire::disk::Reply::Staged`] answers.
    pub(super) fn stage(
        &mut self,
        cx: &mut Context<'_>,
        staging: Staging,
        command: impl FnOnce(Token) -> Command,
    ) {
        let token = Token(self.draw());
        self.stagings.ask(cx.now, token, staging);
        let command = command(token);
        if let Command::Stage { payload, .. } | Command::Mend { payload, .. } = &command {
            self.brought += payload.len() as u64;
        }
        cx.store(command);
    }

    /// The disk has told how much more content may come.
    pub(super) fn set_room(&mut self, bytes: u64) {
        self.room = Some((bytes, self.brought)).filter(|_| bytes != u64::MAX);
    }

    /// Content of repairs whose blocks are being looked up: it comes next, if it is wanted.
    pub(super) fn repairing_bytes(&self) -> usize {
        self.repairing_bytes
    }

    /// How much more content may come, of what the disk has told; none where it takes all.
    pub(super) fn room(&self) -> Option<u64> {
        self.room.map(|(bytes, before)| bytes.saturating_sub(self.brought - before))
    }

    /// Gives the blocks of a fragment back.
    pub(super) fn erase(&mut self, cx: &mut Context<'_>, span: Span) {
        let token = Token(self.draw());
        self.erasures.ask(cx.now, token, ());
        cx.store(Command::Erase { token, span });
    }

    /// Looks blocks up, and what they inherit.
    pub(super) fn look(&mut self, cx: &mut Context<'_>, look: Look, looking: Looking) -> Token {
        self.look_contested(cx, look, None, looking)
    }

    /// The same, where other bricks may claim it before this disk comes to it.
    pub(super) fn look_contested(
        &mut self,
        cx: &mut Context<'_>,
        look: Look,
        contested: Option<Contested>,
        looking: Looking,
    ) -> Token {
        let token = Token(self.draw());
        self.repairing_bytes += repairing(&looking);
        self.descents.begin(cx, token, look);
        self.lookups.ask(cx.now, token, looking);
        let Look { span, width, wanted, .. } = look;
        cx.store(match wanted {
            Wanted::Check => Command::Verify { token, span, width },
            _ => Command::Read { token, span, width, content: wanted == Wanted::Content, contested },
        });
        token
    }

    /// Looks up one branch, without what it inherits.
    pub(super) fn look_here(
        &mut self,
        cx: &mut Context<'_>,
        (span, width): (Span, u8),
        content: bool,
        looking: Looking,
    ) {
        let token = Token(self.draw());
        self.lookups.ask(cx.now, token, looking);
        cx.store(Command::Read { token, span, width, content, contested: None });
    }

    /// Puts a note on stable storage.
    pub(super) fn note(
        &mut self,
        cx: &mut Context<'_>,
        (key, value): (Vec<u8>, Option<Vec<u8>>),
        noting: Noting,
    ) {
        let token = Token(self.draw());
        self.notings.ask(cx.now, token, noting);
        cx.store(Command::Note { token, key, value });
    }

    /// Puts a note of this name on stable storage that is different each time: its answer says that all that was asked
    /// before is durable, too.
    pub(super) fn note_serial(&mut self, cx: &mut Context<'_>, key: &[u8], noting: Noting) {
        let token = Token(self.draw());
        self.notings.ask(cx.now, token, noting);
        cx.store(Command::Note { token, key: key.to_vec(), value: Some(token.0.to_le_bytes().to_vec()) });
    }

    /// Puts completions of other members on stable storage.
    pub(super) fn remember(&mut self, cx: &mut Context<'_>, job: u64, completions: Vec<Completion>) {
        let token = Token(self.draw());
        self.notings.ask(cx.now, token, Noting::Remember { job, completions: completions.clone() });
        cx.store(Command::Remember { token, completions });
    }

    /// Has the store remember completions anew that it would forget soon.
    pub(super) fn refresh(cx: &mut Context<'_>, completions: Vec<Completion>) {
        cx.store(Command::Refresh { completions });
    }

    /// Asks which blocks hold data.
    pub(super) fn allocation(&mut self, cx: &mut Context<'_>, allocating: Allocating) {
        let (token, span) = (Token(self.draw()), allocating.span);
        self.allocations.ask(cx.now, token, allocating);
        cx.store(Command::Allocation { token, span });
    }

    /// Asks which stretches hold stamps.
    pub(super) fn inventory(&mut self, cx: &mut Context<'_>, job: u64, after: Option<(VolumeId, u64)>) {
        let token = Token(self.draw());
        self.inventories.ask(cx.now, token, job);
        cx.store(Command::Inventory { token, after });
    }

    /// Lets the store write about so many journalled blocks to their final places.
    pub(super) fn destage(&mut self, cx: &mut Context<'_>, blocks: u32) {
        let token = Token(self.draw());
        self.destagings.ask(cx.now, token, ());
        cx.store(Command::Destage { token, blocks });
    }

    /// They are there.
    pub(super) fn destaged(&mut self, now: Time, token: Token) {
        self.destagings.answered(now, token);
    }

    /// Gives a stretch of a merged branch back once no read that began before now can come to it.
    pub(super) fn discard_merged(
        &mut self,
        cx: &mut Context<'_>,
        job: u64,
        volume: VolumeId,
        stretch: u64,
    ) -> Vec<u64> {
        self.descents.discard_late(Token(self.serial), job, volume, stretch);
        self.discard_due(cx)
    }

    /// Gives back what no read can come to any more, and names the jobs that asked for it.
    pub(super) fn discard_due(&mut self, cx: &mut Context<'_>) -> Vec<u64> {
        self.descents.discard_due(cx)
    }

    /// Who wanted something on stable storage, and how long that took; none where nobody waits.
    pub(super) fn staged(&mut self, now: Time, token: Token) -> Option<(Staging, Duration)> {
        // What could not be erased is found with the next look for garbage.
        if self.erasures.by_token.remove(&token).is_some() {
            return None;
        }
        Some(self.stagings.answered(now, token))
    }

    /// Requests, and what the brick does of its own, that the disk works for. (Notes and lists are none.)
    pub(super) fn at_work(&self) -> usize {
        self.stagings.by_token.len() + self.lookups.by_token.len() + self.destagings.by_token.len()
    }

    /// The store has looked: who wanted to know, how long it took, and what was found, once nothing more is inherited.
    pub(super) fn found(
        &mut self,
        cx: &mut Context<'_>,
        token: Token,
        result: Result<Blocks, StoreError>,
    ) -> Option<((Looking, Duration), Result<Found, StoreError>)> {
        match self.descents.on_blocks(cx, token, result) {
            Step::Down(command) => {
                cx.store(command);
                None
            }
            Step::End(found) => {
                let answered = self.lookups.answered(cx.now, token);
                self.repairing_bytes -= repairing(&answered.0);
                Some((answered, found))
            }
        }
    }

    pub(super) fn noted(&mut self, now: Time, token: Token) -> Noting {
        self.notings.answered(now, token).0
    }

    pub(super) fn allocated(&mut self, now: Time, token: Token) -> Allocating {
        self.allocations.answered(now, token).0
    }

    pub(super) fn listed(&mut self, now: Time, token: Token) -> u64 {
        self.inventories.answered(now, token).0
    }
}
