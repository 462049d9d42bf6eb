//! What is asked of the index of objects, again and again until it answers.

use base::{NodeId, ObjectVersion, Time};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use wire::{IndexError, IndexReply, IndexRequest, Message};

/// A question that was not answered is asked again after this time: it, or its answer, may be lost.
const AGAIN: Duration = Duration::from_millis(500);
/// An index that has too much to do, or cannot store anything, is asked again after this time.
const BUSY: Duration = Duration::from_millis(100);
/// So long somebody waits for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// What became of a question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    Told(Result<IndexReply, IndexError>),
    /// Of the versions that were to be held on these are gone. That others are held, or that nobody knows, is told to nobody: it is asked
    /// again in a while.
    Gone(Vec<ObjectVersion>),
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
    /// Why the index could not do it, the last time.
    trouble: Option<IndexError>,
}

impl Question {
    /// It was asked for long enough. Whom to tell what.
    fn give_up(self) -> Option<(u64, Answer)> {
        let answer = match (self.request, self.trouble) {
            (IndexRequest::Hold { .. }, _) => return None,
            (IndexRequest::Commit { .. } | IndexRequest::Remove { .. }, _) | (_, None) => Answer::Silence,
            (_, Some(trouble)) => Answer::Told(Err(trouble)),
        };
        Some((self.tag, answer))
    }
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
        let question = Question { tag, request, again: now, until: now + PATIENCE, times: 0, trouble: None };
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
        // A store that fails is tried again by the index: it may well have done it when it is asked again.
        if let Err(error @ (IndexError::Busy | IndexError::Storage(_))) = result {
            let question = self.open.get_mut(&operation)?;
            self.due.remove(&(question.again, operation));
            question.again = now + BUSY;
            question.trouble = Some(error);
            self.due.insert((question.again, operation));
            return None;
        }
        let question = self.open.remove(&operation)?;
        self.due.remove(&(question.again, operation));
        let answer = match (&question.request, result) {
            (IndexRequest::Hold { .. }, Ok(IndexReply::Held { gone })) => Answer::Gone(gone),
            (IndexRequest::Hold { .. }, _) => return None,
            // It may have been done when it was asked for the first time, and what it did be over.
            (IndexRequest::Commit { .. }, Err(IndexError::Expired)) if question.times > 1 => Answer::Silence,
            (_, result) => Answer::Told(result),
        };
        Some((question.tag, answer))
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
            silent.extend(self.open.remove(&operation).and_then(Question::give_up));
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
