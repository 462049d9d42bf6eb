//! What one member has, page by page: the stretches of a group that hold stamps there, or the requests that took effect.

use super::coordinator::{Answer, Operate, Outcome, Shared};
use base::{GroupId, Payload, RequestId, VolumeId};
use core::time::Duration;
use wire::{IoError, Message};

/// What is asked for, from where on.
#[derive(Clone, Copy, Debug)]
pub enum Listed {
    /// Stretches.
    Stretches(Option<(VolumeId, u64)>),
    /// Parts of requests that took effect.
    Completions(Option<(RequestId, u64)>),
}

/// Asks for one page.
pub struct ListOperation {
    group: GroupId,
    slot: u8,
    listed: Listed,
    attempt: u32,
}

impl ListOperation {
    /// Of the member at `slot`.
    pub fn new(group: GroupId, slot: u8, listed: Listed) -> ListOperation {
        ListOperation { group, slot, listed, attempt: 0 }
    }
}

impl Operate for ListOperation {
    fn start(&mut self, shared: &mut Shared) -> Option<Outcome> {
        let (view, group) = (shared.view(self.group), self.group);
        if !view.writers().has(self.slot) {
            return Some(Outcome::Failed(IoError::Failed));
        }
        let (number, listed) = (view.number, self.listed);
        shared.call(&view, self.slot, Payload::new(), |operation| match listed {
            Listed::Stretches(after) => Message::Inventory { operation, group, view: number, after },
            Listed::Completions(after) => Message::GetCompletions { operation, group, view: number, after },
        });
        shared.wake_to_retry(self.attempt);
        None
    }

    fn on_answer(&mut self, shared: &mut Shared, _slot: u8, answer: Answer) -> Option<Outcome> {
        match answer {
            Answer::Stretches(Ok(inventory)) => Some(Outcome::Stretches(inventory)),
            Answer::Completions(Ok(completions)) => Some(Outcome::Completions(completions)),
            Answer::Stretches(Err(view)) | Answer::Completions(Err(view)) => {
                shared.on_stale(self.group, view);
                shared.wake_after(Duration::from_millis(20 << self.attempt.min(5)));
                None
            }
            _ => None,
        }
    }

    fn on_timer(&mut self, shared: &mut Shared) -> Option<Outcome> {
        self.attempt += 1;
        shared.forget_calls();
        self.start(shared)
    }

    fn group(&self) -> GroupId {
        self.group
    }
}
