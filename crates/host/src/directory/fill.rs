//! Fills the index of a directory that does not run, for measurements that need more names than come through the network in an hour.
//!
//! What objects are to the index says the index's own machine ([`Filling`]), and the stores of its shards put that into files as they do all else ([`Shards`]):
//! so records and ids are those of a put, and files and marks those of a directory. Two things are left out: questions and answers, and the many small commits. A
//! shard's records are gathered until they are worth a large one. Whoever is killed meanwhile leaves an index that lacks objects, and has to begin anew.

use super::shards::Shards;
use super::store::{Kind, Store};
use crate::HostError;
use crate::turn::draw_id;
use objects::index::{EmptyObject, Filling, IndexConfig, ShardEffect, ShardEvent, StoreToken};
use roles::directory::Put;
use std::path::Path;
use std::time::Duration;
use wire::ObjectName;

/// A shard's records are stored once they have so many bytes, those of some hundred thousand objects: in memory they take four times as much, once
/// while they are gathered and once while they are stored.
const COMMIT_BYTES: usize = 8 << 20;
/// A commit, or closing a store, takes moments. A disk that takes so long has failed.
const PATIENCE: Duration = Duration::from_secs(600);
/// It is told after so many objects how many there are.
const TOLD_EVERY: u64 = 4096;

/// Makes the index of a directory that does not run and has no index yet, with these objects in it. Their names have to come in order: then each is
/// another one, and a file is written from its beginning to its end. `told` hears now and then how many there are. Returns how many there are.
///
/// # Errors
/// When the directory runs, has an index, or cannot store something; when names come in no order, or are none.
pub fn fill_index(
    store: &Path,
    config: &IndexConfig,
    objects: impl IntoIterator<Item = EmptyObject>,
    mut told: impl FnMut(u64),
) -> Result<u64, HostError> {
    let failed = |why: String| HostError::Store { path: store.to_owned(), why };
    // Its lock keeps a directory from starting meanwhile.
    let _own = Store::open_synced(store, Kind::Directory).map_err(failed)?;
    if (0..config.shards).any(|shard| Shards::path_of(store, shard).exists()) {
        let why = "it has an index already; a fill that was interrupted leaves one that lacks objects: begin with a new directory";
        return Err(failed(why.to_owned()));
    }
    let mut fill = Fill::new(store, config)?;
    let mut count = 0;
    for object in objects {
        fill.put(object).map_err(failed)?;
        count += 1;
        if count % TOLD_EVERY == 0 {
            told(count);
        }
    }
    fill.close().map_err(failed)?;
    Ok(count)
}

struct Fill {
    index: Filling,
    shards: Shards,
    gathers: Vec<Gather>,
    last: Option<ObjectName>,
}

/// What a shard is to store. Both are in the order of their keys.
#[derive(Default)]
struct Gather {
    names: Vec<Put>,
    manifests: Vec<Put>,
    bytes: usize,
    commits: u64,
    /// An earlier gather is being stored.
    is_storing: bool,
}

impl Fill {
    fn new(store: &Path, config: &IndexConfig) -> Result<Fill, HostError> {
        let config = IndexConfig { drawn: draw_id(), ..config.clone() };
        Ok(Fill {
            index: Filling::new(&config),
            shards: Shards::new(store, config.shards)?,
            gathers: (0..config.shards).map(|_| Gather::default()).collect(),
            last: None,
        })
    }

    fn put(&mut self, object: EmptyObject) -> Result<(), String> {
        if self.last.as_ref().is_some_and(|last| *last >= object.name) {
            return Err(format!("{} comes too late: names have to come in order", object.name));
        }
        let (shard, [name, manifest]) = self.index.put(&object)?;
        self.last = Some(object.name);
        let gather = &mut self.gathers[usize::from(shard)];
        let bytes = |(key, value): &Put| key.len() + value.as_ref().map_or(0, Vec::len);
        gather.bytes += bytes(&name) + bytes(&manifest);
        gather.names.push(name);
        gather.manifests.push(manifest);
        if gather.bytes >= COMMIT_BYTES { self.store(shard) } else { Ok(()) }
    }

    /// Hands over to its store what a shard has gathered.
    fn store(&mut self, shard: u16) -> Result<(), String> {
        self.wait(usize::from(shard))?;
        let gather = &mut self.gathers[usize::from(shard)];
        gather.commits += 1;
        (gather.is_storing, gather.bytes) = (true, 0);
        let (names, manifests) = (std::mem::take(&mut gather.names), std::mem::take(&mut gather.manifests));
        let puts = self.index.given_out(shard).into_iter().chain(names).chain(manifests).collect();
        let effect = ShardEffect::Store { token: StoreToken(gather.commits), puts };
        self.shards.ask(shard, effect).map_err(|error| error.to_string())
    }

    /// Waits until a shard's store has stored what was handed over to it.
    fn wait(&mut self, shard: usize) -> Result<(), String> {
        while self.gathers[shard].is_storing {
            match self.shards.wait(PATIENCE) {
                Some((stored, ShardEvent::Stored { result, .. })) => {
                    self.gathers[usize::from(stored)].is_storing = false;
                    result?;
                }
                Some((_, event)) => unreachable!("{event:?}, and nothing was to be read"),
                None => return Err(format!("a store of the index has not answered for {PATIENCE:?}")),
            }
        }
        Ok(())
    }

    fn close(mut self) -> Result<(), String> {
        for shard in 0..self.gathers.len() {
            if self.gathers[shard].bytes > 0 {
                self.store(shard as u16)?;
            }
        }
        (0..self.gathers.len()).try_for_each(|shard| self.wait(shard))?;
        match self.shards.close(PATIENCE) {
            true => Ok(()),
            false => Err(format!("the stores of the index are not closed after {PATIENCE:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        DirectoryOptions, NodeOptions, ObjectUser, Security, Shutdown, Waker, run_directory, run_objects,
    };
    use base::{ClusterId, ObjectVersion, Payload};
    use objects::object::{Manifest, NewObject, ObjectNews, ObjectWish};
    use roles::directory::DirectoryConfig;
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::mpsc;
    use std::thread::{self, JoinHandle};
    use wire::{Condition, ObjectInfo};

    const BUCKETS: [&str; 2] = ["bench", "bench.two"];
    /// Of each bucket.
    const OBJECTS: u64 = 300;

    fn node() -> NodeOptions {
        NodeOptions { cluster: ClusterId([4; 16]), security: Security::Plain, metrics: None }
    }

    fn object(bucket: &str, number: u64) -> NewObject {
        let name = ObjectName { bucket: bucket.to_owned(), key: format!("{number:05}") };
        NewObject { put_ms: 1000 + number, ..NewObject::usual(name) }
    }

    /// In the order of their names.
    fn objects() -> impl DoubleEndedIterator<Item = NewObject> {
        BUCKETS.into_iter().flat_map(|bucket| (0..OBJECTS).map(move |number| object(bucket, number)))
    }

    fn fill(folder: &Path, objects: impl Iterator<Item = NewObject>) -> Result<u64, HostError> {
        let empty = |NewObject { name, losses, put_ms, .. }| EmptyObject { name, losses, put_ms };
        fill_index(&store_in(folder), &IndexConfig::USUAL, objects.map(empty), |_| {})
    }

    fn store_in(folder: &Path) -> std::path::PathBuf {
        folder.join("directory.db")
    }

    /// A directory on a thread; it ends when this is dropped.
    struct Running {
        shutdown: Shutdown,
        address: String,
        thread: Option<JoinHandle<Result<(), HostError>>>,
    }

    impl Running {
        fn start(folder: &Path) -> Running {
            let options = DirectoryOptions {
                node: node(),
                listen: "127.0.0.1:0".to_owned(),
                store: store_in(folder),
                config: DirectoryConfig::default(),
            };
            let (shutdown, (ready, is_ready)) = (Shutdown::new().unwrap(), mpsc::channel());
            let thread = thread::spawn({
                let shutdown = shutdown.clone();
                move || {
                    run_directory(
                        options,
                        &shutdown,
                        Box::new(move |said| ready.send(said.addresses[0].clone()).unwrap()),
                    )
                }
            });
            let address = is_ready.recv_timeout(Duration::from_secs(60)).expect("it is ready in time");
            Running { shutdown, address, thread: Some(thread) }
        }

        /// What is told of each of these wishes in the end.
        fn ask(&self, wishes: Vec<ObjectWish>) -> Vec<ObjectNews> {
            let mut user = User { expected: wishes.len(), wishes, ended: BTreeMap::new() };
            run_objects(&node(), &self.address, &Shutdown::new().unwrap(), &mut user).unwrap();
            user.ended.into_values().collect()
        }

        fn put(&self, objects: impl IntoIterator<Item = NewObject>) -> Vec<ObjectVersion> {
            let told = self.ask(objects.into_iter().map(ObjectWish::Put).collect());
            let version = |news| match news {
                ObjectNews::Put(Ok(info)) => info.version,
                other => panic!("{other:?}"),
            };
            told.into_iter().map(version).collect()
        }

        /// All names of a bucket, as they are listed a page at a time.
        fn listed(&self, bucket: &str) -> Vec<(String, ObjectInfo)> {
            let (mut all, mut after) = (Vec::new(), None);
            loop {
                let (bucket, prefix) = (bucket.to_owned(), String::new());
                match self.ask(vec![ObjectWish::List { bucket, prefix, after, limit: 70 }]).remove(0) {
                    ObjectNews::Listed(Ok((objects, more))) => {
                        all.extend(objects);
                        if !more {
                            return all;
                        }
                    }
                    other => panic!("{other:?}"),
                }
                after = all.last().map(|(key, _): &(String, _)| key.clone());
            }
        }

        fn look(&self, names: Vec<ObjectName>) -> Vec<(ObjectInfo, Manifest)> {
            let told = self.ask(names.into_iter().map(|name| ObjectWish::Look { name }).collect());
            let found = |news| match news {
                ObjectNews::Looked(Ok(found)) => found,
                other => panic!("{other:?}"),
            };
            told.into_iter().map(found).collect()
        }

        /// All that a user sees of it, but for the versions: names in order, what is said of each, and where it is. Each has a version of its own.
        fn seen(&self) -> Vec<(ObjectName, ObjectInfo, Manifest)> {
            let (mut seen, mut versions) = (Vec::new(), BTreeSet::new());
            for bucket in BUCKETS {
                let listed = self.listed(bucket);
                let name = |key: &String| ObjectName { bucket: bucket.to_owned(), key: key.clone() };
                let looked = self.look(listed.iter().map(|(key, _)| name(key)).collect());
                for ((key, info), (found, manifest)) in listed.iter().zip(looked) {
                    assert_eq!(*info, found, "{key} is listed as it is looked up");
                    assert!(versions.insert(info.version), "{key} has a version of its own");
                    let info = ObjectInfo { version: ObjectVersion(0), ..*info };
                    seen.push((name(key), info, manifest));
                }
            }
            seen
        }
    }

    impl Drop for Running {
        fn drop(&mut self) {
            self.shutdown.request();
            let ended = self.thread.take().expect("joined once").join();
            if !thread::panicking() {
                ended.expect("no panic").expect("a clean end");
            }
        }
    }

    struct User {
        wishes: Vec<ObjectWish>,
        expected: usize,
        ended: BTreeMap<u64, ObjectNews>,
    }

    impl ObjectUser for User {
        fn begin(&mut self, _waker: &Waker) -> Vec<(u64, ObjectWish)> {
            (0..).zip(std::mem::take(&mut self.wishes)).collect()
        }
        fn told(&mut self, tag: u64, news: ObjectNews) -> Vec<(u64, ObjectWish)> {
            if let ObjectNews::WantsContent { .. } = news {
                return vec![(tag, ObjectWish::Content { content: Payload::new(), is_last: true })];
            }
            self.ended.insert(tag, news);
            Vec::new()
        }
        fn is_done(&self) -> bool {
            self.ended.len() == self.expected
        }
        fn interrupt(&mut self) -> Vec<(u64, ObjectWish)> {
            Vec::new()
        }
    }

    /// What the files of the shards have: how many records of each kind, their bytes, and their bytes as they were counted.
    fn files(folder: &Path) -> Vec<(BTreeMap<u8, usize>, u64, Option<u64>)> {
        let of_shard = |shard| {
            let path = Shards::path_of(&store_in(folder), shard);
            let mark = path.with_file_name(format!("{}.closed", path.file_name().unwrap().to_str().unwrap()));
            assert!(std::fs::read_to_string(mark).unwrap().starts_with("closed"), "shard {shard}");
            let store = Store::open_synced(&path, Kind::Index).unwrap();
            let (mut kinds, mut bytes) = (BTreeMap::new(), 0);
            for (key, value) in store.contents().unwrap() {
                *kinds.entry(key[0]).or_default() += 1;
                bytes += (key.len() + value.len()) as u64;
            }
            (kinds, bytes, store.space.records)
        };
        (0..IndexConfig::USUAL.shards).map(of_shard).collect()
    }

    #[test]
    fn an_index_that_is_filled_is_as_one_whose_objects_were_put() {
        let [filled, put] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        assert_eq!(fill(filled.path(), objects()).unwrap(), 2 * OBJECTS);
        let directory = Running::start(put.path());
        directory.put(objects().rev());
        let expected = directory.seen();
        assert_eq!(expected.len() as u64, 2 * OBJECTS);
        drop(directory);
        let files_of_filled = files(filled.path());
        assert_eq!(files_of_filled, files(put.path()));
        assert!(files_of_filled.iter().all(|(_, bytes, counted)| *counted == Some(*bytes)));

        let directory = Running::start(filled.path());
        assert_eq!(directory.seen(), expected);
        // It goes on as any other does.
        let names = [7, 8].map(|number| object(BUCKETS[0], number).name);
        let before = directory.look(names.to_vec());
        let replaces = NewObject { condition: Condition::Is(before[0].0.version), ..object(BUCKETS[0], 7) };
        let versions = directory.put([replaces, object(BUCKETS[0], OBJECTS)]);
        assert!(versions.iter().all(|version| before.iter().all(|(info, _)| *version > info.version)));
        let removed = directory.ask(vec![ObjectWish::Remove { name: names[1].clone() }]);
        assert_eq!(removed, [ObjectNews::Removed(Ok(()))]);
        let keys: Vec<String> = directory.listed(BUCKETS[0]).into_iter().map(|(key, _)| key).collect();
        let expected = (0..=OBJECTS).filter(|number| *number != 8).map(|number| format!("{number:05}"));
        assert_eq!(keys, expected.collect::<Vec<_>>());
    }

    #[test]
    fn only_a_new_index_is_filled_and_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let why = fill(folder.path(), objects().rev()).unwrap_err().to_string();
        assert!(why.contains("names have to come in order"), "{why}");
        let directory = Running::start(folder.path());
        let why = fill(folder.path(), objects()).unwrap_err().to_string();
        assert!(why.contains("in use by another directory"), "{why}");
        directory.put(objects().take(1));
        drop(directory);
        let why = fill(folder.path(), objects()).unwrap_err().to_string();
        assert!(why.contains("has an index already"), "{why}");
    }
}
