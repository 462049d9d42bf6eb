//! What is asked of the index of objects, again and again until it answers.

use base::{NodeId, Time};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use wire::{IndexError, IndexReply, IndexRequest, Message};

/// A question that was not answered is asked again after this time: it, or its answer, may be lost.
const AGAIN: Duration = Duration::from_millis(500);
/// An index that has too much to do is asked again after this time.
const BUSY: Duration = Duration::from_millis(100);
/// So long somebody waits for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// What became of a question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    Told(Result<IndexReply, IndexError>),
    /// Nobody answers, or not in time to say what became of it. It may have been done.
    Silence,
}

#[derive(Debug)]
struct Question {
    /// Who wants to know.
    tag: u64,
    request: IndexRequest,
    again: Time,
    until: Time,
    times: u32,
}

#[derive(Debug, Default)]
pub(super) struct Questions {
    open: BTreeMap<u64, Question>,
    due: BTreeSet<(Time, u64)>,
    last: u64,
    outbox: Vec<Message>,
}

impl Questions {
    pub(super) fn ask(&mut self, now: Time, tag: u64, request: IndexRequest) {
        self.last += 1;
        let question = Question { tag, request, again: now, until: now + PATIENCE, times: 0 };
        self.open.insert(self.last, question);
        self.send(now, self.last);
    }

    fn send(&mut self, now: Time, operation: u64) {
        let Some(question) = self.open.get_mut(&operation) else { return };
        self.due.remove(&(question.again, operation));
        question.again = now + AGAIN;
        question.times += 1;
        self.due.insert((question.again, operation));
        self.outbox.push(Message::Index { operation, request: Box::new(question.request.clone()) });
    }

    /// The index answers. Whom to tell what.
    pub(super) fn on_done(
        &mut self,
        now: Time,
        operation: u64,
        result: Result<IndexReply, IndexError>,
    ) -> Option<(u64, Answer)> {
        if matches!(result, Err(IndexError::Busy)) {
            let question = self.open.get_mut(&operation)?;
            self.due.remove(&(question.again, operation));
            question.again = now + BUSY;
            self.due.insert((question.again, operation));
            return None;
        }
        let question = self.open.remove(&operation)?;
        self.due.remove(&(question.again, operation));
        // It may have been done when it was asked for the first time, and what it did be over.
        let is_late = question.times > 1 && matches!(result, Err(IndexError::Expired));
        Some((question.tag, if is_late { Answer::Silence } else { Answer::Told(result) }))
    }

    /// The index can be reached again: all that is open is asked at once.
    pub(super) fn on_up(&mut self, now: Time) {
        for operation in self.open.keys().copied().collect::<Vec<_>>() {
            self.send(now, operation);
        }
    }

    /// Nobody waits for answers to this one any more.
    pub(super) fn call_off(&mut self, tag: u64) {
        for (operation, question) in self.open.extract_if(.., |_, question| question.tag == tag) {
            self.due.remove(&(question.again, operation));
        }
    }

    /// Asks again; whom to tell that nobody answers.
    pub(super) fn wake(&mut self, now: Time) -> Vec<(u64, Answer)> {
        let mut silent = Vec::new();
        while let Some((at, operation)) = self.due.first().copied().filter(|(at, _)| *at <= now) {
            let is_over = self.open.get(&operation).is_none_or(|question| question.until <= now);
            if !is_over {
                self.send(now, operation);
                continue;
            }
            self.due.remove(&(at, operation));
            silent.extend(self.open.remove(&operation).map(|question| (question.tag, Answer::Silence)));
        }
        silent
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.due.first().map(|(at, _)| *at)
    }

    /// What is to be sent, and to whom.
    pub(super) fn take_outbox(&mut self) -> impl Iterator<Item = (NodeId, Message)> {
        core::mem::take(&mut self.outbox).into_iter().map(|message| (NodeId::Directory, message))
    }
}
