//! `linearizable`: each register behaves as if every operation took effect at one moment between question and answer.
//!
//! Just-in-time linearization: the checker walks through a register's calls and answers in the order of time and keeps
//! all *states* that the register may be in. An operation is ordered only when its answer comes, together with those
//! open writes that must go before it. Because values are unique (all but 0), three rules keep the states few:
//! an open read is ordered as soon as its value is there; a write that nobody reads hides right before the next write
//! that is ordered; an unanswered write that nobody reads never happened.

use super::Violation;
use crate::history::{Kind, Operation};
use base::{HashMap, HashSet};

const NAME: &str = "linearizable";
/// More states than this, and the checker gives up on a register (which no run should reach).
const STATES_MAX: usize = 100_000;
/// Operations open at a time.
const SLOTS: usize = 128;

/// Checks the operations of one register, which begins with the value 0.
pub fn check(operations: &[Operation]) -> Result<(), Violation> {
    let search = Search::new(operations);
    search.run().map_err(|stuck| {
        let why = match stuck {
            Stuck::NoOrder(at) => format!("no order explains {}", operations[at].to_json()),
            Stuck::TooMany => "too many possible orders to check".to_owned(),
        };
        Violation::new(NAME, format!("{why}\n{}", around(operations, &stuck)))
    })
}

/// The operations that overlap with or precede the one that cannot be explained.
fn around(operations: &[Operation], stuck: &Stuck) -> String {
    let Stuck::NoOrder(at) = *stuck else { return String::new() };
    let until = operations[at].answered_ns.unwrap_or(u64::MAX);
    let mut before: Vec<&Operation> = operations.iter().filter(|op| op.asked_ns <= until).collect();
    before.sort_by_key(|op| op.answered_ns.unwrap_or(u64::MAX).min(until));
    let first = before.len().saturating_sub(16);
    before[first..].iter().map(|op| format!("  {}\n", op.to_json())).collect()
}

enum Stuck {
    NoOrder(usize),
    TooMany,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct State {
    /// The open operations that are ordered, by slot.
    ordered: u128,
    value: u64,
}

struct Search<'a> {
    operations: &'a [Operation],
    /// Which operation is open at each slot.
    open: Vec<Option<usize>>,
    slot_of: HashMap<usize, usize>,
    /// Answered reads by value, not yet answered at this point of the walk.
    reads_left: HashMap<u64, u32>,
    read_ever: HashSet<u64>,
    /// Unanswered zero writes so far.
    zeros: u32,
    /// Each state, and how many of the unanswered zero writes it has used: fewer is better.
    states: HashMap<State, u32>,
}

impl<'a> Search<'a> {
    fn new(operations: &'a [Operation]) -> Search<'a> {
        let mut reads_left: HashMap<u64, u32> = HashMap::default();
        let answered_reads = operations.iter().filter(|op| op.kind == Kind::Read && op.answered_ns.is_some());
        answered_reads.for_each(|op| *reads_left.entry(op.value).or_default() += 1);
        Search {
            operations,
            open: vec![None; SLOTS],
            slot_of: HashMap::default(),
            read_ever: reads_left.keys().copied().collect(),
            reads_left,
            zeros: 0,
            states: HashMap::from_iter([(State { ordered: 0, value: 0 }, 0)]),
        }
    }

    fn run(mut self) -> Result<(), Stuck> {
        for (_, is_answer, at) in self.moments() {
            if is_answer {
                self.on_answer(at)?;
            } else {
                self.on_call(at)?;
            }
        }
        Ok(())
    }

    /// Calls and answers in order of time; at one moment, calls first.
    fn moments(&self) -> Vec<(u64, bool, usize)> {
        let mut moments = Vec::with_capacity(2 * self.operations.len());
        for (at, op) in self.operations.iter().enumerate().filter(|(_, op)| self.matters(op)) {
            moments.push((op.asked_ns, false, at));
            moments.extend(op.answered_ns.map(|answered| (answered, true, at)));
        }
        moments.sort_unstable();
        moments
    }

    fn matters(&self, op: &Operation) -> bool {
        op.answered_ns.is_some()
            || op.kind == Kind::Write && (op.value == 0 || self.read_ever.contains(&op.value))
    }

    fn on_call(&mut self, at: usize) -> Result<(), Stuck> {
        let op = &self.operations[at];
        if op.kind == Kind::Write && op.answered_ns.is_none() {
            if op.value == 0 {
                self.zeros += 1;
                return Ok(());
            }
            if self.reads_left.get(&op.value).is_none_or(|&left| left == 0) {
                return Ok(());
            }
        }
        let slot = self.open.iter().position(Option::is_none).ok_or(Stuck::TooMany)?;
        self.open[slot] = Some(at);
        self.slot_of.insert(at, slot);
        if op.kind == Kind::Read {
            let states = core::mem::take(&mut self.states);
            for (mut state, zeros) in states {
                state.ordered |= u128::from(state.value == op.value) << slot;
                self.keep(state, zeros);
            }
        }
        Ok(())
    }

    fn on_answer(&mut self, at: usize) -> Result<(), Stuck> {
        let slot = self.slot_of[&at];
        let states = core::mem::take(&mut self.states);
        for (state, zeros) in states {
            self.order(state, zeros, slot);
            if self.states.len() > STATES_MAX {
                return Err(Stuck::TooMany);
            }
        }
        if self.states.is_empty() {
            return Err(Stuck::NoOrder(at));
        }
        self.close(at, slot);
        self.forget_read_out(self.operations[at]);
        Ok(())
    }

    /// Keeps every state that can follow `state` in which the operation at `slot` is just ordered.
    fn order(&mut self, state: State, zeros: u32, slot: usize) {
        let mut seen: HashMap<State, u32> = HashMap::default();
        let mut todo = vec![(state, zeros)];
        while let Some((state, zeros)) = todo.pop() {
            if state.ordered >> slot & 1 == 1 {
                self.keep(state, zeros);
                continue;
            }
            if seen.get(&state).is_some_and(|&used| used <= zeros) || seen.len() > STATES_MAX {
                continue;
            }
            seen.insert(state, zeros);
            self.successors(state, zeros, slot, &mut todo);
        }
    }

    fn successors(&self, state: State, zeros: u32, target: usize, todo: &mut Vec<(State, u32)>) {
        for (slot, at) in self.open.iter().enumerate().filter_map(|(slot, at)| Some((slot, (*at)?))) {
            let op = &self.operations[at];
            let hides = slot != target && !self.read_ever.contains(&op.value);
            if op.kind == Kind::Write && state.ordered >> slot & 1 == 0 && !hides {
                todo.push((self.write(state, op.value, slot), zeros));
            }
        }
        if zeros < self.zeros && state.value != 0 {
            todo.push((self.write(state, 0, SLOTS), zeros + 1));
        }
    }

    /// The state after a write of `value`, and after all that needs no choice then.
    fn write(&self, state: State, value: u64, slot: usize) -> State {
        let mut ordered = state.ordered;
        for (other, at) in self.open.iter().enumerate().filter_map(|(other, at)| Some((other, (*at)?))) {
            let op = &self.operations[at];
            let free = match op.kind {
                Kind::Read => op.value == value,
                Kind::Write => other == slot || !self.read_ever.contains(&op.value),
            };
            ordered |= u128::from(free) << other;
        }
        State { ordered, value }
    }

    fn keep(&mut self, state: State, zeros: u32) {
        self.states.entry(state).and_modify(|used| *used = zeros.min(*used)).or_insert(zeros);
    }

    fn close(&mut self, at: usize, slot: usize) {
        self.open[slot] = None;
        self.slot_of.remove(&at);
        let states = core::mem::take(&mut self.states);
        for (mut state, zeros) in states {
            state.ordered &= !(1 << slot);
            self.keep(state, zeros);
        }
    }

    /// After the last read of a value, its unanswered write is ordered in every state: its slot is free.
    fn forget_read_out(&mut self, op: Operation) {
        if op.kind != Kind::Read {
            return;
        }
        let left = self.reads_left.get_mut(&op.value).expect("a read that was counted");
        *left -= 1;
        if *left > 0 {
            return;
        }
        let pending = self.open.iter().enumerate().find_map(|(slot, at)| {
            let other = &self.operations[(*at)?];
            let same = other.kind == Kind::Write && other.value == op.value && other.answered_ns.is_none();
            same.then_some((slot, (*at)?))
        });
        if let Some((slot, at)) = pending {
            self.close(at, slot);
        }
    }
}
