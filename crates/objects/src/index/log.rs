//! Changes of a shard on their way to stable storage: those that come while others are being stored go together after them.
//!
//! A batch that cannot be stored is tried again as it was until it is: it may be there already.

use super::{Put, StoreToken};
use base::Time;
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

/// A batch that has so much takes no more: what is stored at once is to fit into memory, and to take moments.
const BATCH_BYTES: usize = 4 << 20;
/// Between two tries of a store that fails.
const PAUSE: Duration = Duration::from_secs(1);

/// Changes, and what follows from each once it is stored.
#[derive(Debug)]
struct Batch<A> {
    puts: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    after: Vec<A>,
    /// Of all that was put, also of what was put again.
    bytes: usize,
}

#[derive(Debug)]
enum State<A> {
    Idle,
    Asked(Batch<A>),
    /// It failed, and is tried again at that time.
    Failed {
        batch: Batch<A>,
        again: Time,
        why: String,
    },
}

#[derive(Debug)]
pub(super) struct Log<A> {
    /// In the order in which they are stored.
    waiting: VecDeque<Batch<A>>,
    state: State<A>,
    token: StoreToken,
}

impl<A> Batch<A> {
    fn new() -> Batch<A> {
        Batch { puts: BTreeMap::new(), after: Vec::new(), bytes: 0 }
    }

    fn puts(&self) -> Vec<Put> {
        self.puts.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

impl<A> Log<A> {
    pub(super) fn new() -> Log<A> {
        Log { waiting: VecDeque::new(), state: State::Idle, token: StoreToken(0) }
    }

    /// All of these are stored together, and then `after` follows.
    pub(super) fn put(&mut self, puts: impl IntoIterator<Item = Put>, after: A) {
        if self.waiting.back().is_none_or(|batch| batch.bytes >= BATCH_BYTES) {
            self.waiting.push_back(Batch::new());
        }
        let batch = self.waiting.back_mut().expect("there is one");
        for (key, value) in puts {
            batch.bytes += key.len() + value.as_ref().map_or(0, Vec::len);
            batch.puts.insert(key, value);
        }
        batch.after.push(after);
    }

    /// What is to be stored now, if nothing is being stored.
    pub(super) fn take(&mut self) -> Option<(StoreToken, Vec<Put>)> {
        if !matches!(self.state, State::Idle) {
            return None;
        }
        let batch = self.waiting.pop_front()?;
        self.token.0 += 1;
        let puts = batch.puts();
        self.state = State::Asked(batch);
        Some((self.token, puts))
    }

    /// What is to be tried again now.
    pub(super) fn take_again(&mut self, now: Time) -> Option<(StoreToken, Vec<Put>)> {
        if !matches!(&self.state, State::Failed { again, .. } if *again <= now) {
            return None;
        }
        let State::Failed { batch, .. } = core::mem::replace(&mut self.state, State::Idle) else {
            return None;
        };
        let puts = batch.puts();
        self.state = State::Asked(batch);
        Some((self.token, puts))
    }

    /// What follows from what was stored.
    pub(super) fn on_stored(&mut self, now: Time, token: StoreToken, result: Result<(), String>) -> Vec<A> {
        let State::Asked(batch) = core::mem::replace(&mut self.state, State::Idle) else {
            panic!("an answer has its question");
        };
        assert_eq!(token, self.token, "one batch is stored at a time");
        match result {
            Ok(()) => batch.after,
            Err(why) => {
                self.state = State::Failed { batch, again: now + PAUSE, why };
                Vec::new()
            }
        }
    }

    /// Why nothing can be stored, if so.
    pub(super) fn failure(&self) -> Option<&str> {
        match &self.state {
            State::Failed { why, .. } => Some(why),
            State::Idle | State::Asked(_) => None,
        }
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        match &self.state {
            State::Failed { again, .. } => Some(*again),
            State::Idle | State::Asked(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_at_once_is_bounded_and_keeps_its_order() {
        let mut log = Log::new();
        let count = 64_u8;
        for number in 0..count {
            log.put([(vec![number], Some(vec![number; 1 << 20]))], number);
            // The same key in each batch.
            log.put([(b"last".to_vec(), Some(vec![number]))], number);
        }
        let (mut after, mut last) = (Vec::new(), None);
        while let Some((token, puts)) = log.take() {
            let bytes: usize = puts.iter().map(|(_, value)| value.as_ref().map_or(0, Vec::len)).sum();
            assert!(bytes <= BATCH_BYTES + (1 << 20), "{bytes} bytes");
            assert_eq!(log.take(), None, "one batch is stored at a time");
            last = puts.into_iter().find(|(key, _)| key == b"last").or(last);
            after.extend(log.on_stored(Time(0), token, Ok(())));
        }
        assert_eq!(after, (0..count).flat_map(|number| [number, number]).collect::<Vec<_>>());
        assert_eq!(last, Some((b"last".to_vec(), Some(vec![count - 1]))));
    }
}
