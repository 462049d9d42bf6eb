//! Load that checks every answer: a [`Workload`] says what to ask next and judges what came back; [`drive`] keeps a
//! connection full of its operations.
//!
//! Reading order: this file, [`verified`] (what `demo` runs), [`shared`] (what `soak` runs), [`stats`].

pub mod shared;
pub mod stats;
pub mod verified;

use crate::nbd::{Command, Receiver, Request, Sender};
use anyhow::{Context, Result};
use base::{BLOCK, BLOCK_U64};
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Instant;

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
    /// Nothing until something in flight is answered.
    Wait,
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
    /// An operation that began at `start` ended. `content` is what a read gave.
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
    let shared = Flight {
        state: Mutex::new(State { workload, ops: BTreeMap::new(), over: false }),
        changed: Condvar::new(),
    };
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
    changed: Condvar,
}

struct State<'a, W> {
    workload: &'a mut W,
    ops: BTreeMap<u64, (Operation, Instant)>,
    /// Nothing more will be sent.
    over: bool,
}

impl<'a, W> Flight<'a, W> {
    fn lock(&self) -> MutexGuard<'_, State<'a, W>> {
        self.state.lock().expect("nobody panics with it")
    }

    fn end(&self) {
        self.lock().over = true;
        self.changed.notify_all();
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

/// Waits for room, takes the next operation, and puts its content (of a write) into `buffer`.
fn take<W: Workload>(
    shared: &Flight<'_, W>,
    handle: u64,
    depth: usize,
    buffer: &mut Vec<u8>,
) -> Option<Operation> {
    let mut state = shared.lock();
    loop {
        if state.over {
            return None;
        }
        if state.ops.len() < depth {
            match state.workload.next() {
                Next::Finished => return None,
                Next::Wait => {}
                Next::Operation(operation) => {
                    buffer.clear();
                    if operation.command == Command::Write {
                        buffer.resize(operation.blocks as usize * BLOCK, 0);
                        state.workload.fill(&operation, buffer);
                    }
                    state.ops.insert(handle, (operation, Instant::now()));
                    shared.changed.notify_all();
                    return Some(operation);
                }
            }
        }
        state = shared.changed.wait(state).expect("nobody panics with it");
    }
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
