//! Which brick takes which symbol of a put.

use base::{BrickId, Payload};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// What decides that.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Placing {
    /// Whoever has room takes the next one, so that a fast brick gets more: the *speculative* write of the RobuSTore paper.
    ByPace,
    /// It is planned, a brick for each symbol. The put waits for the slowest brick, and fails with any: stripes, and copies of them.
    Planned(Arc<[BrickId]>),
}

/// Symbols that are made and wait for a brick.
#[derive(Debug)]
pub(super) enum Ready {
    ForAny(VecDeque<Symbol>),
    Planned { plan: Arc<[BrickId]>, of: BTreeMap<BrickId, VecDeque<Symbol>> },
}

/// Its number and its content.
pub(super) type Symbol = (u32, Payload);

impl Ready {
    pub(super) fn new(placing: &Placing) -> Ready {
        match placing {
            Placing::ByPace => Ready::ForAny(VecDeque::new()),
            Placing::Planned(plan) => Ready::Planned { plan: Arc::clone(plan), of: BTreeMap::new() },
        }
    }

    /// The symbols that wait where this one does.
    fn queue(&mut self, symbol: u32) -> &mut VecDeque<Symbol> {
        match self {
            Ready::ForAny(queue) => queue,
            Ready::Planned { plan, of } => of.entry(plan[symbol as usize]).or_default(),
        }
    }

    /// These were made.
    pub(super) fn extend(&mut self, symbols: impl IntoIterator<Item = Symbol>) {
        symbols.into_iter().for_each(|symbol| self.queue(symbol.0).push_back(symbol));
    }

    /// A brick did not take it.
    pub(super) fn give_back(&mut self, symbol: Symbol) {
        self.queue(symbol.0).push_front(symbol);
    }

    /// What a brick is to take next, of what it may take.
    pub(super) fn take(&mut self, brick: BrickId, may_take: impl Fn(u32) -> bool) -> Option<Symbol> {
        let queue = match self {
            Ready::ForAny(queue) => queue,
            Ready::Planned { of, .. } => of.get_mut(&brick)?,
        };
        let at = queue.iter().position(|(symbol, _)| may_take(*symbol))?;
        queue.remove(at)
    }

    /// Whether a brick with room may find no symbol: its own queue is empty, or the common one is shorter than all windows.
    pub(super) fn runs_short(&self, windows: usize, mut bricks: impl Iterator<Item = BrickId>) -> bool {
        match self {
            Ready::ForAny(queue) => queue.len() < windows,
            Ready::Planned { of, .. } => bricks.any(|brick| of.get(&brick).is_none_or(VecDeque::is_empty)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: BrickId = BrickId(1);
    const B: BrickId = BrickId(2);

    fn symbols(ready: &mut Ready, of: [BrickId; 4]) -> [Option<u32>; 4] {
        of.map(|brick| ready.take(brick, |_| true).map(|(symbol, _)| symbol))
    }

    #[test]
    fn whoever_has_room_takes_the_next_one() {
        let mut ready = Ready::new(&Placing::ByPace);
        ready.extend((0..3).map(|symbol| (symbol, Payload::new())));
        assert!(ready.runs_short(4, [A, B].into_iter()) && !ready.runs_short(3, [A, B].into_iter()));
        let (second, _) = ready.take(A, |symbol| symbol > 0).expect("two that it may take");
        assert_eq!(second, 1);
        ready.give_back((second, Payload::new()));
        assert_eq!(symbols(&mut ready, [A, A, B, B]), [Some(1), Some(0), Some(2), None]);
    }

    #[test]
    fn each_brick_takes_its_own() {
        let mut ready = Ready::new(&Placing::Planned(Arc::new([A, A, B, A])));
        ready.extend((0..4).map(|symbol| (symbol, Payload::new())));
        assert!(!ready.runs_short(8, [A, B].into_iter()));
        assert_eq!(symbols(&mut ready, [B, B, A, A]), [Some(2), None, Some(0), Some(1)]);
        assert!(ready.runs_short(8, [A, B].into_iter()) && !ready.runs_short(8, [A].into_iter()));
        ready.give_back((1, Payload::new()));
        assert_eq!(symbols(&mut ready, [B, A, A, A]), [None, Some(1), Some(3), None]);
    }
}
