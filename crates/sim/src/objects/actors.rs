//! Those who put and read: each wants one thing at a time, of one gateway.

use crate::checkers::Violation;
use crate::units::{MS, SECOND};
use crate::world::World;

pub(super) struct Actors<W> {
    actors: Vec<Actor<W>>,
    /// The tag of what was wanted last.
    tag: u64,
}

struct Actor<W> {
    /// Of its turns only the last one that was made counts.
    turn: u64,
    pending: Option<Pending<W>>,
}

/// What one of them wants, and has not got.
pub(super) struct Pending<W> {
    pub(super) tag: u64,
    /// The gateway that was asked.
    pub(super) node: usize,
    pub(super) asked_ns: u64,
    /// Bricks may be away from whoever asks while the run goes on.
    pub(super) is_excused: bool,
    pub(super) what: W,
}

/// What was asked for first.
pub(super) struct Oldest {
    tag: u64,
    node: usize,
    asked_ns: u64,
}

impl<W> Actors<W> {
    /// So many, whose tags come behind this one.
    pub(super) fn new(count: usize, tag: u64) -> Actors<W> {
        Actors { actors: (0..count).map(|_| Actor { turn: 0, pending: None }).collect(), tag }
    }

    pub(super) fn count(&self) -> usize {
        self.actors.len()
    }

    /// The number of an actor's next turn.
    pub(super) fn next_turn(&mut self, actor: usize) -> u64 {
        self.actors[actor].turn += 1;
        self.actors[actor].turn
    }

    pub(super) fn is_turn(&self, actor: usize, turn: u64) -> bool {
        self.actors[actor].turn == turn
    }

    pub(super) fn next_tag(&mut self) -> u64 {
        self.tag += 1;
        self.tag
    }

    pub(super) fn begin(&mut self, actor: usize, pending: Pending<W>) {
        self.actors[actor].pending = Some(pending);
    }

    pub(super) fn pending(&mut self, actor: usize) -> Option<&mut Pending<W>> {
        self.actors[actor].pending.as_mut()
    }

    pub(super) fn is_waiting(&self, actor: usize) -> bool {
        self.actors[actor].pending.is_some()
    }

    pub(super) fn take(&mut self, actor: usize) -> Option<Pending<W>> {
        self.actors[actor].pending.take()
    }

    /// Who wants what has this tag.
    pub(super) fn with_tag(&self, tag: u64) -> Option<usize> {
        self.actors.iter().position(|actor| actor.pending.as_ref().is_some_and(|pending| pending.tag == tag))
    }

    /// What was asked of a gateway that is no more, and by whom.
    pub(super) fn take_of(&mut self, node: usize) -> Vec<(usize, Pending<W>)> {
        let of_node = |actor: &mut Actor<W>| actor.pending.take_if(|pending| pending.node == node);
        self.actors.iter_mut().enumerate().filter_map(|(at, actor)| Some((at, of_node(actor)?))).collect()
    }

    /// What was asked for first of all that has not ended.
    pub(super) fn oldest(&self) -> Option<Oldest> {
        let pending = self.actors.iter().filter_map(|actor| actor.pending.as_ref());
        let oldest = pending.min_by_key(|pending| pending.asked_ns)?;
        Some(Oldest { tag: oldest.tag, node: oldest.node, asked_ns: oldest.asked_ns })
    }
}

impl World {
    /// Runs until nothing of a kind is waited for; it may take so long.
    pub(super) fn await_ends(&mut self, kind: &str, oldest: impl Fn(&World) -> Option<Oldest>, live_ns: u64) {
        let end_ns = self.time.now_ns() + live_ns;
        while let Some(oldest) = oldest(self).filter(|_| self.judges.are_content()) {
            let now_ns = self.time.now_ns();
            if now_ns >= end_ns {
                let seconds = (now_ns - oldest.asked_ns) / SECOND;
                let what = format!("{kind}'s put or get has not ended after {seconds} s");
                let why = self.why_object_waits(oldest.tag, oldest.node);
                return self.judge(Err(Violation::new("live", what).with(&why)));
            }
            self.run_until(now_ns + 20 * MS);
        }
    }
}
