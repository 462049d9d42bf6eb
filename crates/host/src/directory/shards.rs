//! The stores of the index's shards: a database and a thread each, so that no lease waits for an object's name to be stored.
//!
//! A shard's database is a file beside the directory's own. It is made when the first object is asked for.

use super::store::{Kind, Store};
use crate::HostError;
use crate::error::system;
use crate::shutdown::{event_fd, signal_event};
use objects::index::{ShardEffect, ShardEvent};
use roles::directory::StoreToken;
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

type Answer = (u16, ShardEvent);

pub(crate) struct Shards {
    /// The directory's own store, whose name theirs begin with.
    store: PathBuf,
    asked: BTreeMap<u16, Sender<ShardEffect>>,
    answer: Sender<Answer>,
    answered: Receiver<Answer>,
    event: Arc<OwnedFd>,
    /// Each thread has one until it has closed its store.
    runs: Option<Sender<()>>,
    ended: Receiver<()>,
}

/// For so long a directory that ends waits for its shards to close their stores. What the kernel has cached of one that is not
/// closed is read anew when it is opened.
const CLOSING_MAX: Duration = Duration::from_secs(5);
/// Space is given back at least so often, some milliseconds at a time.
const SHRINKS_EVERY: Duration = Duration::from_millis(100);

impl Drop for Shards {
    fn drop(&mut self) {
        self.close(CLOSING_MAX);
    }
}

impl Shards {
    /// Shards that have stores already open them now: to make sure of a large one takes its time.
    pub(crate) fn new(store: &Path, count: u16) -> Result<Shards, HostError> {
        let event = Arc::new(event_fd().map_err(system("the index's stores"))?);
        let (answer, answered) = mpsc::channel();
        let (runs, ended) = mpsc::channel();
        let (store, asked, runs) = (store.to_owned(), BTreeMap::new(), Some(runs));
        let mut shards = Shards { store, asked, answer, answered, event, runs, ended };
        (0..count)
            .filter(|shard| Shards::path_of(&shards.store, *shard).exists())
            .collect::<Vec<_>>()
            .into_iter()
            .try_for_each(|shard| shards.start(shard))?;
        Ok(shards)
    }

    /// Is signalled when a store has answered.
    pub(crate) fn event_fd(&self) -> RawFd {
        self.event.as_raw_fd()
    }

    /// Hands over what a shard asks of its store.
    pub(crate) fn ask(&mut self, shard: u16, effect: ShardEffect) -> Result<(), HostError> {
        if !self.asked.contains_key(&shard) {
            self.start(shard)?;
        }
        let sent = self.asked[&shard].send(effect);
        assert!(sent.is_ok(), "the thread of shard {shard} has ended");
        Ok(())
    }

    fn start(&mut self, shard: u16) -> Result<(), HostError> {
        let (ask, asked) = mpsc::channel();
        let (path, answer, event) =
            (Shards::path_of(&self.store, shard), self.answer.clone(), Arc::clone(&self.event));
        let runs = self.runs.clone();
        thread::Builder::new()
            .name(format!("index-{shard}"))
            .spawn(move || {
                serve(shard, &path, &asked, &answer, &event);
                drop(runs);
            })
            .map_err(system("a thread for the index"))?;
        self.asked.insert(shard, ask);
        Ok(())
    }

    /// What stores have answered since the last call.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Answer> {
        self.answered.try_iter()
    }

    /// The next answer of a store, for whoever has nothing else to do; none if it does not come in time.
    pub(super) fn wait(&self, within: Duration) -> Option<Answer> {
        self.answered.recv_timeout(within).ok()
    }

    /// Has the stores closed, of which nothing is asked any more. Whether they are, within this time.
    pub(super) fn close(&mut self, within: Duration) -> bool {
        self.asked.clear();
        self.runs = None;
        // Nobody sends anything: it ends when the last thread does.
        self.ended.recv_timeout(within) == Err(RecvTimeoutError::Disconnected)
    }

    /// Where the file of a shard lies.
    pub(super) fn path_of(store: &Path, shard: u16) -> PathBuf {
        let (stem, extension) =
            (store.file_stem().unwrap_or_default(), store.extension().unwrap_or_default());
        let mut name = stem.to_owned();
        name.push(format!(".index-{shard}."));
        name.push(extension);
        store.with_file_name(name)
    }
}

fn serve(shard: u16, path: &Path, asked: &Receiver<ShardEffect>, answer: &Sender<Answer>, event: &OwnedFd) {
    // Where that fails, it is tried again when something is asked.
    let mut store = if path.exists() { open(path).ok() } else { None };
    let (mut shrinks, mut may_shrink, mut shrunk) = (store.is_some(), true, Instant::now());
    loop {
        let effect = match next(asked, shrinks) {
            Ok(effect) => effect,
            Err(RecvTimeoutError::Disconnected) => return,
            // Between what is asked of it.
            Err(RecvTimeoutError::Timeout) => {
                shrinks = shrink(&mut store, &mut may_shrink);
                continue;
            }
        };
        let answered = match catch_unwind(AssertUnwindSafe(|| carry_out(&mut store, path, &effect))) {
            Ok(answered) => answered,
            Err(_) => {
                store = None;
                refused(&effect, format!("{}: its database gave up; it may be damaged", path.display()))
            }
        };
        let is_heard = answer.send((shard, answered)).is_ok();
        signal_event(event.as_raw_fd());
        if !is_heard {
            return;
        }
        // Also where something is asked all the time.
        if shrunk.elapsed() > SHRINKS_EVERY {
            shrinks = shrink(&mut store, &mut may_shrink);
            shrunk = Instant::now();
        }
    }
}

/// Gives some space back; whether there is more to do. A store whose database gives up meanwhile goes on without that.
fn shrink(store: &mut Option<Store>, may_shrink: &mut bool) -> bool {
    if !*may_shrink {
        return false;
    }
    catch_unwind(AssertUnwindSafe(|| store.as_mut().is_some_and(Store::shrink))).unwrap_or_else(|_| {
        *may_shrink = false;
        *store = None;
        false
    })
}

/// What is asked next; at once none, where there is something to do meanwhile.
fn next(asked: &Receiver<ShardEffect>, is_busy: bool) -> Result<ShardEffect, RecvTimeoutError> {
    if is_busy {
        asked.recv_timeout(Duration::ZERO)
    } else {
        asked.recv().map_err(|_| RecvTimeoutError::Disconnected)
    }
}

fn open(path: &Path) -> Result<Store, String> {
    Store::open_synced(path, Kind::Index)
}

fn refused(effect: &ShardEffect, why: String) -> ShardEvent {
    match effect {
        ShardEffect::Read { token, .. } => ShardEvent::Read { token: *token, result: Err(why) },
        ShardEffect::Store { token, .. } => ShardEvent::Stored { token: *token, result: Err(why) },
    }
}

fn carry_out(store: &mut Option<Store>, path: &Path, effect: &ShardEffect) -> ShardEvent {
    let opened = match store {
        Some(store) => Ok(store),
        None => open(path).map(|opened| store.insert(opened)),
    };
    let named = |why: String| format!("{}: {why}", path.display());
    let store = match opened {
        Ok(store) => store,
        Err(why) => return refused(effect, named(why)),
    };
    match effect {
        ShardEffect::Read { token, pages } => {
            ShardEvent::Read { token: *token, result: store.pages(pages).map_err(named) }
        }
        ShardEffect::Store { token, puts } => {
            ShardEvent::Stored { token: *token, result: store.put(StoreToken(token.0), puts).map_err(named) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use objects::index::{Page, ReadToken, StoreToken};

    fn await_answer(shards: &mut Shards) -> Answer {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(answer) = shards.take().next() {
                return answer;
            }
            assert!(Instant::now() < until, "no answer came");
            thread::yield_now();
        }
    }

    #[test]
    fn who_drops_the_shards_waits_until_their_stores_are_closed() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("directory.redb");
        let mut shards = Shards::new(&store, 4).unwrap();
        for shard in 0..4 {
            let puts = vec![(b"a".to_vec(), Some(vec![7; 100_000]))];
            shards.ask(shard, ShardEffect::Store { token: StoreToken(1), puts }).unwrap();
        }
        drop(shards);
        for shard in 0..4 {
            assert!(folder.path().join(format!("directory.index-{shard}.redb.closed")).exists());
        }
    }

    #[test]
    fn shards_have_files_of_their_own_and_read_pages() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("directory.redb");
        let mut shards = Shards::new(&store, 4).unwrap();
        let puts = ["a", "b", "c", "d"].map(|key| (key.as_bytes().to_vec(), Some(b"v".to_vec())));
        shards.ask(2, ShardEffect::Store { token: StoreToken(1), puts: puts.to_vec() }).unwrap();
        let stored = ShardEvent::Stored { token: StoreToken(1), result: Ok(()) };
        assert_eq!(await_answer(&mut shards), (2, stored));
        let page =
            |from: &str, to: &str, limit| Page { from: from.into(), to: to.into(), limit, values: true };
        let pages = vec![page("b", "d", 9), page("a", "z", 2), page("x", "z", 9)];
        shards.ask(2, ShardEffect::Read { token: ReadToken(1), pages }).unwrap();
        let (shard, ShardEvent::Read { result: Ok(pages), .. }) = await_answer(&mut shards) else { panic!() };
        let keys = |page: &Vec<(Vec<u8>, Vec<u8>)>| {
            page.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>().concat()
        };
        assert_eq!(
            (shard, pages.iter().map(keys).collect::<Vec<_>>()),
            (2, vec![b"bc".to_vec(), b"ab".to_vec(), vec![]])
        );
        assert!(folder.path().join("directory.index-2.redb").exists() && !store.exists());
    }
}
