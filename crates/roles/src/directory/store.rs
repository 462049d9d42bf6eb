//! What is on its way to stable storage, in order, and what follows once it is there.
//!
//! The records in memory run ahead of the store by what is outstanding here. Nothing that rests on it leaves the
//! directory before: an answer, a question to members, a publication is an [`After`] of the write that it rests on.
//!
//! *Where the store fails*, nothing that was begun is given up: it may be stored in part, and memory has gone on. The
//! writes that failed, and those that come while the store fails, are joined into one, which is tried again after each
//! pause. As it is atomic and holds the latest value of each key, the store never shows a later change without an
//! earlier one, and what waits is bounded by the number of records. No further command is begun meanwhile.

use super::event::{DirectoryEffect, Put, StoreToken};
use super::news::News;
use base::{GatewayId, GroupId, Loan, NodeId, Time, ViewNumber};
use core::time::Duration;
use objects::index::BucketStreams;
use std::collections::{BTreeMap, VecDeque};
use wire::{AdminError, AdminReply, StoreFailure, StreamTable, VolumeInfo};

/// Between two tries of a store that fails: long enough that a full disk is not busied by it, short enough that an
/// operator who has freed space need not wait.
const PAUSE: Duration = Duration::from_secs(1);
/// For so long commands that were begun wait for a store that fails before they are told so: most disks that recover by
/// themselves have done so by then.
const PATIENCE: Duration = Duration::from_secs(3);

/// Who has asked for something, and under what number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asker {
    pub(super) node: NodeId,
    pub(super) operation: u64,
}

/// What follows when a change is on stable storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum After {
    Answer(Asker, Result<AdminReply, AdminError>),
    /// It is stored what is lent to a gateway, from this number on: tell it.
    Lent(GatewayId, u16, Loan),
    /// The view to come of a group is stored: make it.
    Change(GroupId, ViewNumber),
    /// It is stored that the view to come of a group is not revoked any more.
    Confirmed(GroupId, ViewNumber),
    /// The active view of a group is stored: publish it.
    Publish(GroupId),
    /// What is known of a volume is stored as it is here, and may be told.
    Settled(Box<VolumeInfo>),
    /// The streams are stored as they are here, and may be told.
    Streams(Box<StreamTable>),
    /// Buckets were given to these streams.
    Buckets(BucketStreams),
    /// What was done is a line in the log.
    Tell(News),
    /// The events up to this one are stored, and may be told.
    Noted(u64),
    /// Tell gateways of a volume that changed.
    Changed(base::VolumeId),
    /// Tell gateways of a volume that is gone.
    Deleted(base::VolumeId),
}

/// Changes that are stored together, and what follows.
#[derive(Debug, Default)]
pub(super) struct Write {
    puts: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// The map's version that this makes durable.
    version: u64,
    after: Vec<After>,
}

impl Write {
    pub(super) fn new(puts: Vec<Put>, version: u64, after: Vec<After>) -> Write {
        Write { puts: puts.into_iter().collect(), version, after }
    }

    /// `later` joins this one. What follows anyway does not follow twice.
    fn join(&mut self, later: Write) {
        self.puts.extend(later.puts);
        self.version = self.version.max(later.version);
        // Of these it is what holds at the end, whatever it was before.
        self.after.retain(|after| !later.after.iter().any(|later| later.replaces(after)));
        for after in later.after {
            if !self.after.contains(&after) {
                self.after.push(after);
            }
        }
    }

    fn effect(&self, token: StoreToken) -> DirectoryEffect {
        let puts = self.puts.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        DirectoryEffect::Store { token, puts }
    }
}

#[derive(Debug)]
struct Outstanding {
    token: StoreToken,
    write: Write,
}

/// A store that fails.
#[derive(Debug)]
struct Failing {
    why: String,
    since: Time,
    tries: u32,
    /// Of the first write that failed: under it all of it is tried again.
    token: StoreToken,
    /// All that is to be stored and is not being tried.
    waiting: Write,
    attempt: Attempt,
}

#[derive(Debug)]
enum Attempt {
    /// The next one is made then.
    At(Time),
    /// This is being tried.
    Asked(Write),
}

#[derive(Debug)]
enum State {
    Works(VecDeque<Outstanding>),
    Fails(Box<Failing>),
}

/// The directory's store, as its machine sees it.
#[derive(Debug)]
pub(super) struct Store {
    latest: StoreToken,
    durable: u64,
    state: State,
}

impl Store {
    /// A store that holds the map up to version `durable`.
    pub(super) fn new(durable: u64) -> Store {
        Store { latest: StoreToken(0), durable, state: State::Works(VecDeque::new()) }
    }

    /// The map's version that is on stable storage: bricks are told of nothing later.
    pub(super) fn durable(&self) -> u64 {
        self.durable
    }

    pub(super) fn put(&mut self, write: Write, fx: &mut Vec<DirectoryEffect>) {
        match &mut self.state {
            State::Fails(failing) => failing.waiting.join(write),
            State::Works(outstanding) => {
                self.latest.0 += 1;
                fx.push(write.effect(self.latest));
                outstanding.push_back(Outstanding { token: self.latest, write });
            }
        }
    }

    /// Puts what needs no write of its own: it goes with the latest one, if that has yet to be carried out.
    pub(super) fn put_along(&mut self, write: Write, fx: &mut Vec<DirectoryEffect>) {
        if let State::Works(outstanding) = &mut self.state
            && let Some(Outstanding { token, write: latest }) = outstanding.back_mut()
            && let Some(effect) = fx.iter_mut().rev().find(|effect| effect.stores(*token))
        {
            latest.join(write);
            *effect = latest.effect(*token);
            return;
        }
        self.put(write, fx);
    }

    /// Lets `after` follow when all that was put so far is stored; gives it back when it is already.
    pub(super) fn follow(&mut self, after: After) -> Option<After> {
        let latest = match &mut self.state {
            State::Works(outstanding) => outstanding.back_mut().map(|latest| &mut latest.write),
            State::Fails(failing) => Some(&mut failing.waiting),
        };
        match latest {
            None => Some(after),
            Some(write) => {
                write.join(Write { after: vec![after], ..Write::default() });
                None
            }
        }
    }

    /// A write was answered: what follows now.
    pub(super) fn on_stored(
        &mut self,
        now: Time,
        token: StoreToken,
        result: Result<(), String>,
        fx: &mut Vec<DirectoryEffect>,
    ) -> Vec<After> {
        match &mut self.state {
            State::Works(outstanding) => {
                let first = outstanding.pop_front().expect("an answer has its question");
                assert_eq!(first.token, token, "changes are stored in order");
                match result {
                    Ok(()) => return self.done(first.write),
                    Err(why) => self.fail(now, first, why),
                }
            }
            State::Fails(failing) if token == failing.token => match result {
                Ok(()) => return self.recover(fx),
                Err(why) => failing.fail_again(now, why),
            },
            State::Fails(_) => assert!(result.is_err(), "a change was stored ahead of one that failed"),
        }
        Vec::new()
    }

    fn done(&mut self, write: Write) -> Vec<After> {
        self.durable = self.durable.max(write.version);
        write.after
    }

    /// The first write has failed, and so will those that were asked behind it.
    fn fail(&mut self, now: Time, first: Outstanding, why: String) {
        let State::Works(behind) = &mut self.state else { unreachable!("a store fails once") };
        let mut waiting = first.write;
        behind.drain(..).for_each(|later| waiting.join(later.write));
        let attempt = Attempt::At(now + PAUSE);
        let failing = Failing { why, since: now, tries: 1, token: first.token, waiting, attempt };
        self.state = State::Fails(Box::new(failing));
    }

    /// All that was tried is stored. What has come since is put as usual.
    fn recover(&mut self, fx: &mut Vec<DirectoryEffect>) -> Vec<After> {
        let state = core::mem::replace(&mut self.state, State::Works(VecDeque::new()));
        let State::Fails(failing) = state else { unreachable!("only a store that fails recovers") };
        let Attempt::Asked(mut write) = failing.attempt else { unreachable!("an answer has its question") };
        match failing.waiting.puts.is_empty() {
            true => write.join(failing.waiting),
            false => self.put(failing.waiting, fx),
        }
        self.done(write)
    }

    /// Tries again once the pause is over.
    pub(super) fn retry(&mut self, now: Time, fx: &mut Vec<DirectoryEffect>) {
        let State::Fails(failing) = &mut self.state else { return };
        if matches!(failing.attempt, Attempt::At(at) if at <= now) {
            let write = core::mem::take(&mut failing.waiting);
            fx.push(write.effect(failing.token));
            failing.tries += 1;
            failing.attempt = Attempt::Asked(write);
        }
    }

    /// When to try again.
    pub(super) fn deadline(&self) -> Option<Time> {
        match &self.state {
            State::Fails(failing) => match failing.attempt {
                Attempt::At(at) => Some(at),
                Attempt::Asked(_) => None,
            },
            State::Works(_) => None,
        }
    }

    pub(super) fn is_failing(&self) -> bool {
        matches!(self.state, State::Fails(_))
    }

    /// Whether a change of this key is still to be stored.
    pub(super) fn is_changing(&self, key: &[u8]) -> bool {
        self.writes().any(|write| write.puts.contains_key(key))
    }

    /// Whether a command is answered once what it changed is stored.
    pub(super) fn will_answer(&self, asker: Asker) -> bool {
        self.writes().flat_map(|write| &write.after).any(|after| after.answers(asker))
    }

    fn writes(&self) -> impl Iterator<Item = &Write> {
        let (works, fails) = match &self.state {
            State::Works(outstanding) => (Some(outstanding), None),
            State::Fails(failing) => (None, Some(failing)),
        };
        let tried = fails.and_then(|failing| match &failing.attempt {
            Attempt::Asked(write) => Some(write),
            Attempt::At(_) => None,
        });
        let waiting = fails.map(|failing| &failing.waiting);
        works.into_iter().flatten().map(|outstanding| &outstanding.write).chain(tried).chain(waiting)
    }

    /// Why commands cannot be carried out, if so.
    pub(super) fn refusal(&self) -> Option<AdminError> {
        let State::Fails(failing) = &self.state else { return None };
        Some(AdminError::Storage(format!(
            "{}; it tries again every second, and keeps what was begun before",
            failing.why
        )))
    }

    /// Commands that were begun and have waited too long for a store that fails, once there are such: they are told so, and
    /// no more of them.
    pub(super) fn take_impatient(&mut self, now: Time) -> Option<Vec<Asker>> {
        let State::Fails(failing) = &mut self.state else { return None };
        if now.since(failing.since) < PATIENCE {
            return None;
        }
        let mut askers = Vec::new();
        failing.waiting.after.retain(|after| match after {
            After::Answer(asker, _) => {
                askers.push(*asker);
                false
            }
            _ => true,
        });
        Some(askers)
    }

    /// What an operator is to know of a store that fails.
    pub(super) fn failure(&self, now: Time) -> Option<StoreFailure> {
        let State::Fails(failing) = &self.state else { return None };
        let since_ms = now.since(failing.since).as_millis() as u64;
        let waiting = self.writes().map(|write| write.puts.len() as u32).sum();
        Some(StoreFailure { why: failing.why.clone(), since_ms, tries: failing.tries, waiting })
    }
}

impl Failing {
    fn fail_again(&mut self, now: Time, why: String) {
        let attempt = core::mem::replace(&mut self.attempt, Attempt::At(now + PAUSE));
        let Attempt::Asked(mut write) = attempt else { unreachable!("an answer has its question") };
        write.join(core::mem::take(&mut self.waiting));
        self.waiting = write;
        self.why = why;
    }
}

impl DirectoryEffect {
    fn stores(&self, what: StoreToken) -> bool {
        matches!(self, DirectoryEffect::Store { token, .. } if *token == what)
    }
}

impl After {
    fn replaces(&self, earlier: &After) -> bool {
        matches!((self, earlier), (After::Buckets(_), After::Buckets(_)) | (After::Noted(_), After::Noted(_)))
    }

    fn answers(&self, whom: Asker) -> bool {
        matches!(self, After::Answer(asker, _) if *asker == whom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::BrickId;

    #[test]
    fn what_needs_no_write_of_its_own_goes_with_one_that_is_not_carried_out() {
        let write = |key: u8| Write::new(vec![(vec![key], None)], 1, vec![After::Noted(u64::from(key))]);
        let (mut store, mut fx) = (Store::new(1), Vec::new());
        store.put(write(1), &mut fx);
        store.put(write(2), &mut fx);
        store.put_along(write(3), &mut fx);
        let keys = |fx: &mut Vec<DirectoryEffect>| {
            let of = |effect| match effect {
                DirectoryEffect::Store { token, puts } => {
                    (token.0, puts.into_iter().flat_map(|(key, _)| key).collect::<Vec<_>>())
                }
                other => panic!("{other:?}"),
            };
            fx.drain(..).map(of).collect::<Vec<_>>()
        };
        assert_eq!(keys(&mut fx), [(1, vec![1]), (2, vec![2, 3])]);
        store.put_along(write(4), &mut fx);
        assert_eq!(keys(&mut fx), [(3, vec![4])], "that one may be stored already");
        let mut stored = |token| store.on_stored(Time::ZERO, StoreToken(token), Ok(()), &mut Vec::new());
        assert_eq!([1, 2, 3].map(&mut stored), [1, 3, 4].map(|number| vec![After::Noted(number)]));
        store.put_along(write(5), &mut fx);
        assert_eq!(keys(&mut fx), [(4, vec![5])]);
    }

    /// What follows on a store that fails for long does not grow with how much happens.
    #[test]
    fn of_events_that_wait_together_only_the_last_is_noted() {
        let write = |number| {
            let news = News::Admitted { brick: BrickId(number) };
            Write::new(Vec::new(), 1, vec![After::Tell(news), After::Noted(u64::from(number))])
        };
        let mut joined = write(1);
        (2..=4).for_each(|number| joined.join(write(number)));
        assert_eq!(joined.after.len(), 5);
        assert_eq!(joined.after.last(), Some(&After::Noted(4)));
    }
}
