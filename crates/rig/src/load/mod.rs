//! Load that checks every answer: a [`Workload`] says what to ask next and judges what came back; [`drive`] keeps a
//! connection full of its operations.
//!
//! Reading order: this file, [`verified`] (what `demo` runs), [`shared`] (what `soak` runs), [`steady`] (what measurements of shares run), [`stats`].

pub mod shared;
pub mod stats;
pub mod steady;
pub mod verified;

use crate::nbd::{Command, Receiver, Request, Sender};
use anyhow::{Context, Result};
use base::{BLOCK, BLOCK_U64};
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Whole blocks, to read or to write, or a flush (no blocks).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operation {
    pub command: Command,
    /// The first block.
    pub block: u64,
    /// How many blocks.
    pub blocks: u32,
    /// The value that a write writes into each of its blocks.
    pub value: u64,
}

pub enum Next {
    Operation(Operation),
    /// The same at this moment, or at once when it has passed. Its time counts from then, whenever it is sent.
    Due(Operation, Instant),
    /// Nothing until something in flight is answered.
    Wait,
    /// The same, or until this moment.
    Until(Instant),
    Finished,
}

/// How an operation ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Done,
    Failed(u32),
    /// The connection broke before it was answered.
    Lost,
}

/// A source of operations, and the judge of their results.
pub trait Workload: Send {
    /// What to ask next.
    fn next(&mut self) -> Next;
    /// The content of a write.
    fn fill(&self, operation: &Operation, out: &mut [u8]);
    /// An operation that was due is sent, so long after that moment.
    fn sent(&mut self, _late: Duration) {}
    /// An operation that began, or was due, at `start` ended. `content` is what a read gave.
    fn ended(&mut self, operation: &Operation, start: Instant, outcome: Outcome, content: &[u8]);
}

/// Runs `workload` on a connection, with at most `depth` operations in flight, until it has finished.
///
/// # Errors
/// When the connection breaks; all that was in flight has ended as [`Outcome::Lost`] by then.
pub fn drive<W: Workload>(
    mut sender: Sender,
    receiver: Receiver,
    depth: usize,
    workload: &mut W,
) -> Result<()> {
    let shared = Flight::new(workload);
    let result = std::thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            let result = receive_all(&shared, receiver);
            shared.end();
            result
        });
        let sent = send_all(&shared, &mut sender, depth);
        if sent.is_err() {
            sender.abort();
        }
        shared.end();
        let received = receiving.join().expect("the receiving half does not panic");
        received.and(sent)
    });
    let mut state = shared.state.into_inner().expect("nobody panicked with it");
    for (operation, start) in std::mem::take(&mut state.ops).into_values() {
        state.workload.ended(&operation, start, Outcome::Lost, &[]);
    }
    result?;
    sender.disconnect().context("the connection broke at its end")
}

/// What both halves share.
struct Flight<'a, W> {
    state: Mutex<State<'a, W>>,
    /// Something was sent, or answered.
    changed: Condvar,
    /// Nothing more will be sent. Answers do not wake who waits until something is due.
    ended: Condvar,
}

struct State<'a, W> {
    workload: &'a mut W,
    ops: BTreeMap<u64, (Operation, Instant)>,
    /// Nothing more will be sent.
    over: bool,
}

impl<'a, W> Flight<'a, W> {
    fn new(workload: &'a mut W) -> Flight<'a, W> {
        Flight {
            state: Mutex::new(State { workload, ops: BTreeMap::new(), over: false }),
            changed: Condvar::new(),
            ended: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<'a, W>> {
        self.state.lock().expect("nobody panics with it")
    }

    /// Waits until that moment, or until nothing more will be sent.
    fn wait_until<'b>(
        &'b self,
        mut state: MutexGuard<'b, State<'a, W>>,
        due: Instant,
    ) -> MutexGuard<'b, State<'a, W>> {
        while !state.over
            && let left = due.saturating_duration_since(Instant::now())
            && !left.is_zero()
        {
            state = self.ended.wait_timeout(state, left).expect("nobody panics with it").0;
        }
        state
    }

    fn end(&self) {
        self.lock().over = true;
        self.changed.notify_all();
        self.ended.notify_all();
    }
}

fn send_all<W: Workload>(shared: &Flight<'_, W>, sender: &mut Sender, depth: usize) -> Result<()> {
    let mut buffer = Vec::new();
    for handle in 1.. {
        let Some(operation) = take(shared, handle, depth, &mut buffer) else { break };
        let (offset, length) = (operation.block * BLOCK_U64, operation.blocks * BLOCK as u32);
        let request = Request { command: operation.command, handle, offset, length };
        sender.send(request, &buffer).context("the connection broke while sending")?;
    }
    Ok(())
}

/// Waits for room, takes the next operation, puts its content (of a write) into `buffer`, and waits until it is due.
fn take<W: Workload>(
    shared: &Flight<'_, W>,
    handle: u64,
    depth: usize,
    buffer: &mut Vec<u8>,
) -> Option<Operation> {
    let mut state = shared.lock();
    let (operation, due) = loop {
        if state.over {
            return None;
        }
        if state.ops.len() < depth {
            match state.workload.next() {
                Next::Finished => return None,
                Next::Wait => {}
                Next::Until(at) => {
                    let left = at.saturating_duration_since(Instant::now());
                    state = shared.changed.wait_timeout(state, left).expect("nobody panics with it").0;
                    continue;
                }
                Next::Operation(operation) => break (operation, None),
                Next::Due(operation, due) => break (operation, Some(due)),
            }
        }
        state = shared.changed.wait(state).expect("nobody panics with it");
    };
    buffer.clear();
    if operation.command == Command::Write {
        buffer.resize(operation.blocks as usize * BLOCK, 0);
        state.workload.fill(&operation, buffer);
    }
    if let Some(due) = due {
        state = shared.wait_until(state, due);
        state.workload.sent(due.elapsed());
    }
    state.ops.insert(handle, (operation, due.unwrap_or_else(Instant::now)));
    shared.changed.notify_all();
    Some(operation)
}

fn receive_all<W: Workload>(shared: &Flight<'_, W>, mut receiver: Receiver) -> Result<()> {
    let mut buffer = Vec::new();
    while wait_for_work(shared) {
        let reply = receiver.reply().context("the connection broke while waiting for an answer")?;
        let found = shared.lock().ops.get(&reply.handle).copied();
        let (operation, start) = found.context("the server answered a question that nobody asked")?;
        buffer.clear();
        if operation.command == Command::Read && reply.error == 0 {
            buffer.resize(operation.blocks as usize * BLOCK, 0);
            receiver.payload(&mut buffer).context("the connection broke in a payload")?;
        }
        let outcome = if reply.error == 0 { Outcome::Done } else { Outcome::Failed(reply.error) };
        let mut state = shared.lock();
        state.ops.remove(&reply.handle);
        state.workload.ended(&operation, start, outcome, &buffer);
        shared.changed.notify_all();
    }
    Ok(())
}

/// Waits until something is in flight; false when nothing will be any more.
fn wait_for_work<W>(shared: &Flight<'_, W>) -> bool {
    let mut state = shared.lock();
    while state.ops.is_empty() && !state.over {
        state = shared.changed.wait(state).expect("nobody panics with it");
    }
    !state.ops.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks for something when it is asked after a moment.
    struct Until(Instant, u32);

    impl Workload for Until {
        fn next(&mut self) -> Next {
            self.1 += 1;
            let read = Operation { command: Command::Read, block: 0, blocks: 1, value: 0 };
            if Instant::now() < self.0 { Next::Until(self.0) } else { Next::Operation(read) }
        }

        fn fill(&self, _: &Operation, _: &mut [u8]) {}

        fn ended(&mut self, _: &Operation, _: Instant, _: Outcome, _: &[u8]) {}
    }

    #[test]
    fn who_has_nothing_until_a_moment_is_asked_again_then() {
        let soon = Instant::now() + Duration::from_millis(10);
        let mut workload = Until(soon, 0);
        let shared = Flight::new(&mut workload);
        assert!(take(&shared, 1, 1, &mut Vec::new()).is_some());
        assert!(Instant::now() >= soon);
        assert!(workload.1 >= 2, "asked before and then");
    }

    /// Reads of the first block that are due at these moments.
    struct Due(Vec<Instant>, usize);

    impl Workload for Due {
        fn next(&mut self) -> Next {
            let read = Operation { command: Command::Read, block: 0, blocks: 1, value: 0 };
            self.0.pop().map_or(Next::Finished, |due| Next::Due(read, due))
        }

        fn fill(&self, _: &Operation, _: &mut [u8]) {}

        fn sent(&mut self, _late: Duration) {
            self.1 += 1;
        }

        fn ended(&mut self, _: &Operation, _: Instant, _: Outcome, _: &[u8]) {}
    }

    #[test]
    fn what_is_due_is_not_sent_before_and_its_time_counts_from_then() {
        let now = Instant::now();
        let (past, soon) = (now - Duration::from_millis(10), now + Duration::from_millis(10));
        let mut workload = Due(vec![soon, past], 0);
        let shared = Flight::new(&mut workload);
        assert!(take(&shared, 1, 2, &mut Vec::new()).is_some());
        assert!(take(&shared, 2, 2, &mut Vec::new()).is_some());
        assert!(Instant::now() >= soon);
        let starts: Vec<Instant> = shared.lock().ops.values().map(|(_, start)| *start).collect();
        assert_eq!(starts, [past, soon]);
        assert!(take(&shared, 3, 3, &mut Vec::new()).is_none(), "no more are due");
        assert_eq!(workload.1, 2, "both were sent");
    }
}
