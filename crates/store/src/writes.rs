//! Writes between being asked for and their decision being journalled.

use crate::discard::Region;
use crate::overlay::{Need, Setting};
use crate::record::Extent;
use base::Stamp;
use std::collections::BTreeMap;
use wire::Completion;
use wire::disk::{Staged, Token};

/// A write that the journal does not know to be over.
#[derive(Debug)]
pub(crate) struct Write {
    staged: Staged,
    extents: Vec<Extent>,
    need: Need,
    cost: usize,
    state: WriteState,
}

/// How far a write is.
#[derive(Debug)]
enum WriteState {
    /// Not journalled; what is to be done once it is, and who waits for that.
    Queued {
        verdict: Option<Verdict>,
        tokens: Vec<Token>,
    },
    Staged,
    /// Being applied: its turn or its parity has to come. It is dropped after all if its blocks were given back.
    Applying {
        is_doomed: bool,
    },
    /// Applied; the journal does not know yet.
    Applied,
    /// Dropped; the journal does not know yet.
    Dropped,
}

/// What was decided of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Apply,
    Drop,
}

/// What a write is told that is staged again.
pub(crate) enum Again {
    /// Its answer comes when the journal has it.
    Waits,
    /// The journal has it.
    Done,
    /// It is being forgotten.
    Dropped,
}

impl Write {
    pub(crate) fn new(token: Token, staged: Staged, extents: Vec<Extent>, need: Need, cost: usize) -> Write {
        let state = WriteState::Queued { verdict: None, tokens: vec![token] };
        Write { staged, extents, need, cost, state }
    }

    /// As recovery finds it.
    pub(crate) fn recovered(staged: Staged, extents: Vec<Extent>, cost: usize) -> Write {
        Write { staged, extents, need: Need::default(), cost, state: WriteState::Staged }
    }

    pub(crate) fn staged(&self) -> &Staged {
        &self.staged
    }

    pub(crate) fn extents(&self) -> &[Extent] {
        &self.extents
    }

    pub(crate) fn extents_mut(&mut self) -> &mut [Extent] {
        &mut self.extents
    }

    /// The room that is set aside for it.
    pub(crate) fn need(&self) -> Need {
        self.need
    }

    pub(crate) fn set_need(&mut self, need: Need) {
        self.need = need;
    }

    /// The stamps that it sets.
    pub(crate) fn setting(&self) -> Setting<'static> {
        Setting::of(&self.staged.change, self.staged.write.stamp)
    }

    /// Whether it is to be dropped although it is being applied.
    pub(crate) fn is_doomed(&self) -> bool {
        matches!(self.state, WriteState::Applying { is_doomed: true })
    }

    /// Whether the journal has it.
    pub(crate) fn is_journalled(&self) -> bool {
        !matches!(self.state, WriteState::Queued { .. })
    }

    /// Whether it is decided, and its decision has no record in the queue yet.
    pub(crate) fn is_being_decided(&self) -> bool {
        matches!(self.state, WriteState::Queued { verdict: Some(_), .. } | WriteState::Applying { .. })
    }

    /// What a retry of its request has to know.
    pub(crate) fn completion(&self) -> Completion {
        Completion { request: self.staged.request, part: self.staged.part, stamp: self.staged.write.stamp }
    }

    /// It is staged once more.
    pub(crate) fn stage_again(&mut self, token: Token) -> Again {
        match &mut self.state {
            WriteState::Queued { tokens, .. } => {
                tokens.push(token);
                Again::Waits
            }
            WriteState::Dropped => Again::Dropped,
            _ => Again::Done,
        }
    }

    /// Decides it. True when that can be carried out now; a write that is not journalled waits for that.
    pub(crate) fn decide(&mut self, new: Verdict) -> bool {
        match &mut self.state {
            WriteState::Queued { verdict, .. } => {
                *verdict = Some(new);
                false
            }
            WriteState::Staged => {
                self.state = match new {
                    Verdict::Apply => WriteState::Applying { is_doomed: false },
                    Verdict::Drop => WriteState::Dropped,
                };
                true
            }
            _ => false,
        }
    }

    /// Its blocks are given back while it is being applied.
    pub(crate) fn doom(&mut self) {
        if let WriteState::Applying { is_doomed } = &mut self.state {
            *is_doomed = true;
        }
    }

    /// Its content is committed.
    pub(crate) fn set_applied(&mut self) {
        assert!(
            matches!(self.state, WriteState::Applying { .. }),
            "only what is being applied becomes applied"
        );
        self.state = WriteState::Applied;
    }

    /// It is dropped although its application had begun.
    pub(crate) fn set_dropped(&mut self) {
        assert!(matches!(self.state, WriteState::Applying { .. }), "only what is being applied is given up");
        self.state = WriteState::Dropped;
    }

    /// The journal has it. Gives back who waits for that and what is decided; nothing when it was journalled before.
    pub(crate) fn set_staged(&mut self) -> Option<(Option<Verdict>, Vec<Token>)> {
        if self.is_journalled() {
            return None;
        }
        match core::mem::replace(&mut self.state, WriteState::Staged) {
            WriteState::Queued { verdict, tokens } => Some((verdict, tokens)),
            _ => unreachable!("just seen"),
        }
    }

    /// Whoever waits for it to be journalled.
    pub(crate) fn take_tokens(&mut self) -> Vec<Token> {
        match &mut self.state {
            WriteState::Queued { tokens, .. } => core::mem::take(tokens),
            _ => Vec::new(),
        }
    }
}

/// All writes that are not over.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    by_stamp: BTreeMap<Stamp, Write>,
    /// What a frame that carries all of them forward takes at most.
    cost: usize,
}

impl Writes {
    pub(crate) fn is_empty(&self) -> bool {
        self.by_stamp.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_stamp.len()
    }

    /// What a frame that carries all of them forward takes at most, in bytes.
    pub(crate) fn cost(&self) -> usize {
        self.cost
    }

    /// The same of those that are decided together.
    pub(crate) fn cost_together(&self, together: Stamp) -> usize {
        let those = self.by_stamp.values().filter(|write| write.staged.write.decided_by() == together);
        those.map(|write| write.cost).sum()
    }

    pub(crate) fn insert(&mut self, write: Write) {
        self.cost += write.cost;
        let known = self.by_stamp.insert(write.staged.write.stamp, write);
        assert!(known.is_none(), "a write is staged once");
    }

    pub(crate) fn remove(&mut self, stamp: Stamp) -> Option<Write> {
        let write = self.by_stamp.remove(&stamp)?;
        self.cost -= write.cost;
        Some(write)
    }

    pub(crate) fn get(&self, stamp: Stamp) -> Option<&Write> {
        self.by_stamp.get(&stamp)
    }

    pub(crate) fn get_mut(&mut self, stamp: Stamp) -> Option<&mut Write> {
        self.by_stamp.get_mut(&stamp)
    }

    /// One that a record or a work names.
    pub(crate) fn known(&self, stamp: Stamp) -> &Write {
        self.by_stamp.get(&stamp).expect("a write in flight is known")
    }

    /// One that a record or a work names.
    pub(crate) fn known_mut(&mut self, stamp: Stamp) -> &mut Write {
        self.by_stamp.get_mut(&stamp).expect("a write in flight is known")
    }

    /// All of them, by stamp.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Stamp, &Write)> {
        self.by_stamp.iter().map(|(&stamp, write)| (stamp, write))
    }

    /// Those of a region.
    pub(crate) fn of(&self, region: Region) -> Vec<Stamp> {
        let inside = self.iter().filter(|(_, write)| region.holds_span(&write.staged.write.span));
        inside.map(|(stamp, _)| stamp).collect()
    }

    pub(crate) fn check(&self) {
        let cost: usize = self.by_stamp.values().map(|write| write.cost).sum();
        assert_eq!(cost, self.cost, "the accounts of writes");
    }
}
