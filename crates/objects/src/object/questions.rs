//! What is asked of the index of objects, again and again until it answers.

use super::first_of_run;
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
    /// Of the versions that were to be held on these are known to be gone. Where nobody answers it is none.
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
    fn give_up(self) -> (u64, Answer) {
        let answer = match (self.request, self.trouble) {
            (IndexRequest::Hold { .. }, _) => Answer::Gone(Vec::new()),
            (IndexRequest::Commit { .. } | IndexRequest::Patch { .. } | IndexRequest::Remove { .. }, _)
            | (_, None) => Answer::Silence,
            (_, Some(trouble)) => Answer::Told(Err(trouble)),
        };
        (self.tag, answer)
    }
}

#[derive(Debug)]
pub(super) struct Questions {
    open: BTreeMap<u64, Question>,
    due: BTreeSet<(Time, u64)>,
    last: u64,
    outbox: Vec<Message>,
}

impl Default for Questions {
    fn default() -> Questions {
        Questions::of_run(0)
    }
}

impl Questions {
    /// What the index is asked and does not answer, for people.
    pub(super) fn describe(&self) -> impl Iterator<Item = String> {
        self.open.iter().map(|(operation, Question { request, times, trouble, .. })| {
            let why = trouble.as_ref().map(|trouble| format!("; it refused: {trouble}")).unwrap_or_default();
            format!("asks directory {request:?} (operation {operation}), {times} times so far{why}")
        })
    }

    /// See [`Objects::of_run`](super::Objects::of_run).
    pub(super) fn of_run(run: u64) -> Questions {
        let last = first_of_run(run);
        Questions { open: BTreeMap::new(), due: BTreeSet::new(), last, outbox: Vec::new() }
    }

    /// The number of the last question.
    #[cfg(test)]
    pub(super) fn last_asked(&self) -> u64 {
        self.last
    }

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
        let asked = &self.open.get(&operation)?.request;
        if matches!(&result, Ok(reply) if !is_answer(asked, reply)) {
            // Of another question: it is asked again.
            return None;
        }
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
            (IndexRequest::Hold { .. }, _) => Answer::Gone(Vec::new()),
            // It may have been done when it was asked for the first time, and what it did be over.
            (IndexRequest::Commit { .. } | IndexRequest::Patch { .. }, Err(IndexError::Expired))
                if question.times > 1 =>
            {
                Answer::Silence
            }
            // An index of before says nothing of versions that share fragments: it knows none.
            (
                IndexRequest::Manifest { version, .. },
                Ok(IndexReply::Manifest { manifest, of: ObjectVersion(0), is_held }),
            ) => Answer::Told(Ok(IndexReply::Manifest { manifest, of: *version, is_held })),
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
            silent.extend(self.open.remove(&operation).map(Question::give_up));
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

/// Whether a question may be answered so.
fn is_answer(asked: &IndexRequest, reply: &IndexReply) -> bool {
    match asked {
        IndexRequest::Open { .. } => matches!(reply, IndexReply::Opened { .. }),
        IndexRequest::Commit { .. } | IndexRequest::Patch { .. } => *reply == IndexReply::Committed,
        IndexRequest::Look { .. } => matches!(reply, IndexReply::Found { .. }),
        IndexRequest::Remove { .. } => *reply == IndexReply::Removed,
        IndexRequest::List { .. } => matches!(reply, IndexReply::Listed { .. }),
        IndexRequest::Hold { .. } => matches!(reply, IndexReply::Held { .. }),
        IndexRequest::Abandon { .. } => *reply == IndexReply::Abandoned,
        IndexRequest::Gone { .. } => matches!(reply, IndexReply::Gone { .. }),
        IndexRequest::Manifest { .. } => matches!(reply, IndexReply::Manifest { .. }),
        IndexRequest::Amend { .. } => *reply == IndexReply::Amended,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Condition, ObjectInfo, ObjectName};

    const V: ObjectVersion = ObjectVersion(7);

    fn commit() -> IndexRequest {
        let name = ObjectName { bucket: "abc".to_owned(), key: "k".to_owned() };
        let info = ObjectInfo { version: V, bytes: 0, checksum: 0, put_ms: 0 };
        IndexRequest::Commit {
            name,
            condition: Condition::Always,
            info,
            manifest: Vec::new(),
            parts: Vec::new(),
        }
    }

    /// Asked once for each of these answers but the last, and then answered with that.
    fn answers(request: IndexRequest, results: &[Result<IndexReply, IndexError>]) -> Option<Answer> {
        let (mut questions, mut now) = (Questions::default(), Time(1));
        questions.ask(now, 5, request);
        for result in results {
            if let Some((tag, answer)) = questions.on_done(now, first_of_run(0) + 1, result.clone()) {
                assert_eq!(tag, 5);
                return Some(answer);
            }
            now = questions.deadline()?;
            let silent = questions.wake(now);
            assert!(silent.is_empty());
        }
        None
    }

    #[test]
    fn what_a_store_could_not_do_is_asked_again() {
        let trouble = || Err(IndexError::Storage("full".to_owned()));
        let committed = Ok(IndexReply::Committed);
        let told = answers(commit(), &[trouble(), Err(IndexError::Busy), committed.clone()]);
        assert_eq!(told, Some(Answer::Told(committed)));
        // It may have been done before the store failed.
        assert_eq!(answers(commit(), &[trouble(), Err(IndexError::Expired)]), Some(Answer::Silence));
        let expired = Err(IndexError::Expired);
        assert_eq!(answers(commit(), std::slice::from_ref(&expired)), Some(Answer::Told(expired.clone())));
    }

    #[test]
    fn an_answer_to_another_question_is_none() {
        let committed = Ok(IndexReply::Committed);
        let told = answers(commit(), &[Ok(IndexReply::Removed), committed.clone()]);
        assert_eq!(told, Some(Answer::Told(committed)));
        assert_eq!(answers(commit(), &[Ok(IndexReply::Amended)]), None);
    }

    #[test]
    fn of_a_hold_only_what_is_gone_is_told() {
        let hold = || IndexRequest::Hold { versions: vec![V], only_open: false };
        let held = |gone: &[ObjectVersion]| Ok(IndexReply::Held { gone: gone.to_vec() });
        assert_eq!(answers(hold(), &[held(&[V])]), Some(Answer::Gone(vec![V])));
        assert_eq!(
            answers(hold(), &[Err(IndexError::Invalid("no".to_owned()))]),
            Some(Answer::Gone(Vec::new()))
        );
        let mut questions = Questions::default();
        questions.ask(Time(1), 5, hold());
        let mut now = Time(1);
        while let Some(due) = questions.deadline() {
            now = due;
            let silent = questions.wake(now);
            assert!(
                silent.is_empty() || silent == [(5, Answer::Gone(Vec::new()))],
                "nobody knows: {silent:?}"
            );
        }
        assert!(now.since(Time(1)) >= PATIENCE);
    }

    #[test]
    fn who_asks_in_vain_is_told_why_or_that_it_may_have_been_done() {
        let end = |request: IndexRequest| {
            let mut questions = Questions::default();
            questions.ask(Time(1), 5, request);
            loop {
                let now = questions.deadline().expect("it is asked until it is given up");
                if let Some((_, answer)) = questions.wake(now).pop() {
                    return answer;
                }
                questions.on_done(now, first_of_run(0) + 1, Err(IndexError::Storage("full".to_owned())));
            }
        };
        assert_eq!(end(commit()), Answer::Silence);
        let list =
            IndexRequest::List { bucket: "abc".to_owned(), prefix: String::new(), after: None, limit: 9 };
        assert_eq!(end(list), Answer::Told(Err(IndexError::Storage("full".to_owned()))));
    }
}
