//! The directory's stores on disk, its own and those of its index: an embedded database (redb) in one file each.
//!
//! The database refuses all work after its first I/O error, so that it is opened anew before the next try. The file
//! itself stays open and locked all the time: no other directory can take it over in between, nor write what this one
//! does not know of.

use super::cached::drop_cached;
use super::mark::{Left, Mark};
use super::shrink::{self, Shrinking};
use crate::disk::file::sync_folder_of;
use objects::index::Page;
use redb::{
    Database, DatabaseError, Key, ReadOnlyTable, ReadTransaction, ReadableDatabase, StorageBackend,
    TableDefinition, Value, WriteTransaction,
};
use roles::directory::{Put, StoreToken};
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::ops::{Bound, Range};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// A key and its value.
pub(crate) type Pair = (Vec<u8>, Vec<u8>);

/// The machine's keys and values.
const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("directory");
/// How many bytes the keys and values have, of a shard of the index: under this name.
const SPACE: TableDefinition<'_, &str, u64> = TableDefinition::new("space");
const RECORDS: &str = "records";
/// A copy that failed is not begun again for so long.
const COPY_AGAIN: Duration = Duration::from_secs(600);
/// Whether a file is worth copying is looked at so often.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A store that goes on failing is logged so often: an operator sees that it lasts, and the log does not fill up.
const LOG_EVERY: Duration = Duration::from_secs(30);
/// A page of the kernel's cache, and the block of most file systems: it is lost, kept or allocated as a whole.
const PAGE_BYTES: usize = 4096;

/// The file, open and locked, and whether all that it reads as is on the disk. Clones share both.
#[derive(Clone, Debug)]
pub(crate) struct StoreFile(Arc<Opened>);

#[derive(Debug)]
struct Opened {
    file: File,
    doubt: AtomicU8,
    mark: OnceLock<Mark>,
}

/// What of a file may not be as it is read. A write or sync that failed leaves pages behind that the kernel takes for clean and that never reached
/// the disk; a later sync says nothing of them.
mod doubt {
    pub(super) const NOTHING: u8 = 0;
    /// Pages that the kernel has in its cache: the process before this one did not close the store, and has told of no error.
    pub(super) const CACHED: u8 = 1;
    /// All of it: of a file whose process before this one may have seen an error, and after an error of this one.
    pub(super) const ALL: u8 = 2;
}

/// The last who had it open is done with it, the database too.
impl Drop for Opened {
    fn drop(&mut self) {
        if let Some(mark) = self.mark.get().filter(|_| self.doubt.load(Ordering::Relaxed) == doubt::NOTHING) {
            mark.close(&self.file);
        }
    }
}

impl StoreFile {
    fn open(path: &Path, kind: Kind) -> Result<StoreFile, String> {
        let mut options = OpenOptions::new();
        // Who may read it learns every name there is, and who may write it owns the cluster.
        let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
        let file = locked(file)?;
        let mark = kind.is_marked().then(|| Mark::of(path));
        let doubt = match mark.as_ref().map_or(Left::Failed, |mark| mark.left(&file)) {
            Left::Closed => doubt::NOTHING,
            Left::Unsaid => doubt::CACHED,
            Left::Failed => doubt::ALL,
        };
        let mark = mark.map_or_else(OnceLock::new, OnceLock::from);
        let opened = StoreFile(Arc::new(Opened { file, doubt: AtomicU8::new(doubt), mark }));
        if doubt != doubt::ALL {
            opened.unmark().map_err(|error| error.to_string())?;
        }
        Ok(opened)
    }

    /// A file that was not there, and of which nothing is said as long as it does not [count](Self::count_as).
    pub(super) fn open_new(path: &Path) -> Result<StoreFile, String> {
        let mut options = OpenOptions::new();
        let file = locked(options.read(true).write(true).create_new(true).mode(0o600).open(path))?;
        Ok(StoreFile(Arc::new(Opened { file, doubt: AtomicU8::new(doubt::NOTHING), mark: OnceLock::new() })))
    }

    /// It is the store of this name.
    pub(super) fn count_as(&self, path: &Path) {
        let _ = self.0.mark.set(Mark::of(path));
    }

    /// Another file has its name: nothing is said of it.
    pub(super) fn count_no_more(&self) {
        self.0.doubt.store(doubt::ALL, Ordering::Relaxed);
    }

    pub(super) fn length(&self) -> io::Result<u64> {
        Ok(self.0.file.metadata()?.len())
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.noting(self.0.file.sync_all())
    }

    /// Nothing that was said of how it was left counts any more.
    fn unmark(&self) -> io::Result<()> {
        let Some(mark) = self.0.mark.get() else { return Ok(()) };
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot remove what says how it was closed: {error}"))
        };
        mark.open().map_err(named)
    }

    /// Opens the database in the file. What the kernel may have lost of it is written again first.
    fn database(&self, kind: Kind) -> Result<Database, String> {
        self.settle_doubts().map_err(|error| error.to_string())?;
        create(self.clone(), kind).map_err(|error| error.to_string())
    }

    /// Writes again what is in doubt. Holes stay holes: a directory starts on a full file system too.
    fn settle_doubts(&self) -> io::Result<()> {
        let all = 0..self.0.file.metadata()?.len();
        let in_doubt = match self.0.doubt.load(Ordering::Relaxed) {
            doubt::NOTHING => return Ok(()),
            doubt::CACHED => drop_cached(&self.0.file).unwrap_or_else(|_| vec![all]),
            _ => vec![all],
        };
        in_doubt.into_iter().try_for_each(|range| self.write_again(range))?;
        self.0.file.sync_data()?;
        self.unmark()?;
        self.0.doubt.store(doubt::NOTHING, Ordering::Relaxed);
        Ok(())
    }

    fn write_again(&self, range: Range<u64>) -> io::Result<()> {
        let mut offset = range.start;
        let mut page = vec![0; PAGE_BYTES];
        while offset < range.end {
            let count = usize::try_from(range.end - offset).unwrap_or(PAGE_BYTES).min(PAGE_BYTES);
            let page = &mut page[..count];
            self.0.file.read_exact_at(page, offset)?;
            // What was lost of a hole's page is there to be read, and not only zeros.
            if page.iter().any(|byte| *byte != 0) || !self.is_hole(offset, offset + count as u64) {
                self.0.file.write_all_at(page, offset)?;
            }
            offset += count as u64;
        }
        Ok(())
    }

    /// Whether nothing is allocated from `start` to `end`. False where the file system does not say.
    fn is_hole(&self, start: u64, end: u64) -> bool {
        // SAFETY: an open descriptor. Nothing depends on its position, which this moves.
        let data = unsafe { libc::lseek(self.0.file.as_raw_fd(), start as libc::off_t, libc::SEEK_DATA) };
        match u64::try_from(data) {
            Ok(data) => data >= end,
            Err(_) => io::Error::last_os_error().raw_os_error() == Some(libc::ENXIO),
        }
    }

    fn noting<T>(&self, result: io::Result<T>) -> io::Result<T> {
        if result.is_err() && self.0.doubt.swap(doubt::ALL, Ordering::Relaxed) != doubt::ALL {
            self.0.mark.get().into_iter().for_each(Mark::fail);
        }
        result
    }
}

/// A file that nobody else has.
fn locked(file: io::Result<File>) -> Result<File, String> {
    let file = file.map_err(|error| error.to_string())?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let why = "is in use by another directory; stop that one, or give this one a store of its own";
            Err(why.to_owned())
        }
        Err(TryLockError::Error(error)) => Err(error.to_string()),
    }
}

/// The lock is this file's own, held for as long as it is open.
impl StorageBackend for StoreFile {
    fn len(&self) -> io::Result<u64> {
        self.length()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.file.read_exact_at(out, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.noting(self.0.file.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.noting(self.0.file.sync_data())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.noting(self.0.file.write_all_at(data, offset))
    }
}

/// What a store is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// The directory's own.
    Directory,
    /// A shard of the index of objects.
    Index,
    /// A copy of such a shard, which is not the store yet.
    Copy,
}

impl Kind {
    /// Room of the database's own cache.
    fn cache_bytes(self) -> usize {
        match self {
            // The machine holds all of it in memory anyway.
            Kind::Directory => 1 << 20,
            Kind::Index => 32 << 20,
            Kind::Copy => 8 << 20,
        }
    }

    /// Whether a mark says if the file has to be written again when it is opened. The directory's own is small: it always is.
    fn is_marked(self) -> bool {
        self == Kind::Index
    }

    /// Whether each commit stores which pages are free, so that nobody has to walk through all of it after a power cut. It costs a second sync a
    /// commit, and 64 KiB for each GiB.
    fn repairs_quickly(self) -> bool {
        self == Kind::Index
    }

    /// What cannot be done while it fails.
    fn loss(self) -> &'static str {
        match self {
            Kind::Directory => {
                "nothing can be made or changed, and writes to groups of a brick that dies wait"
            }
            Kind::Index | Kind::Copy => "no object can be put or removed",
        }
    }
}

pub(super) fn create(backend: impl StorageBackend, kind: Kind) -> Result<Database, DatabaseError> {
    Database::builder().set_cache_size(kind.cache_bytes()).create_with_backend(backend)
}

/// Opens the database anew.
type Open = Box<dyn Fn() -> Result<Database, String>>;

/// A store that failed and has not worked since.
struct Trouble {
    /// The first change that failed: nothing behind it is stored ahead of it.
    first: StoreToken,
    since: Instant,
    logged: Instant,
    tries: u32,
}

/// The store, which is opened anew after an error.
pub(crate) struct Store {
    path: PathBuf,
    kind: Kind,
    open: Open,
    database: Option<Database>,
    trouble: Option<Trouble>,
    pub(super) space: Space,
}

/// What a shard's file has and needs.
pub(super) struct Space {
    /// None of stores that do not shrink.
    file: Option<StoreFile>,
    /// Bytes of the records, where they were counted from the first one on.
    pub(super) records: Option<u64>,
    /// More than so much may be too much.
    pub(super) spare_bytes: u64,
    pub(super) shrinking: Option<Shrinking>,
    pub(super) look_at: Instant,
}

impl Store {
    pub(crate) fn open(path: &Path) -> Result<Store, String> {
        Store::open_for(path, Kind::Directory)
    }

    fn open_for(path: &Path, kind: Kind) -> Result<Store, String> {
        let file = StoreFile::open(path, kind)?;
        let shrinks = (kind == Kind::Index).then(|| file.clone());
        let mut store = Store::with(path, kind, Box::new(move || file.database(kind)))?;
        if shrinks.is_some() {
            shrink::clear(path);
            store.space.file = shrinks;
            store.space.records =
                store.database.as_ref().and_then(|database| counted(database).ok().flatten());
        }
        Ok(store)
    }

    /// The store in this file, which is there from now on.
    pub(crate) fn open_synced(path: &Path, kind: Kind) -> Result<Store, String> {
        let store = Store::open_for(path, kind)?;
        // It syncs what it writes, but not the name of a file that it has made.
        sync_folder_of(path).map_err(|error| format!("cannot sync its folder: {error}"))?;
        Ok(store)
    }

    fn with(path: &Path, kind: Kind, open: Open) -> Result<Store, String> {
        let database = Some(open()?);
        let space = Space {
            file: None,
            records: None,
            spare_bytes: shrink::SPARE_BYTES,
            shrinking: None,
            look_at: Instant::now(),
        };
        Ok(Store { path: path.to_owned(), kind, open, database, trouble: None, space })
    }

    /// All that it holds.
    pub(crate) fn contents(&self) -> Result<Vec<Pair>, String> {
        let database = self.database.as_ref().ok_or("the store is not open")?;
        slice(database, &[], (usize::MAX, usize::MAX)).map_err(|error| error.to_string())
    }

    /// The records of each of these pages.
    pub(crate) fn pages(&mut self, pages: &[Page]) -> Result<Vec<Vec<Pair>>, String> {
        let database = match &mut self.database {
            Some(database) => database,
            closed => closed.insert((self.open)()?),
        };
        read(database, pages).map_err(|error| {
            // After an error it would refuse all further work.
            self.database = None;
            error.to_string()
        })
    }

    /// All changes on stable storage, or none. After an error only the change that failed is tried again.
    pub(crate) fn put(&mut self, token: StoreToken, puts: &[Put]) -> Result<(), String> {
        if self.trouble.as_ref().is_some_and(|trouble| trouble.first != token) {
            return Err("an earlier change is not stored yet".to_owned());
        }
        let result = self.attempt(puts);
        match &result {
            Ok(()) => self.on_success(),
            Err(why) => self.on_error(token, why),
        }
        result
    }

    /// The same for several, in their order: all on stable storage, or none. After an error the first is tried again, with all that the others have.
    pub(crate) fn put_all(
        &mut self,
        writes: Vec<(StoreToken, Vec<Put>)>,
    ) -> (Vec<StoreToken>, Result<(), String>) {
        let (tokens, puts): (Vec<StoreToken>, Vec<Vec<Put>>) = writes.into_iter().unzip();
        let puts: Vec<Put> = puts.into_iter().flatten().collect();
        let result = tokens.first().map_or(Ok(()), |first| self.put(*first, &puts));
        (tokens, result)
    }

    fn attempt(&mut self, puts: &[Put]) -> Result<(), String> {
        let database = match self.database.take() {
            Some(database) => database,
            None => (self.open)()?,
        };
        let more =
            commit(&database, self.kind, puts, self.space.records).map_err(|error| error.to_string())?;
        self.space.records = self.space.records.map(|bytes| bytes.saturating_add_signed(more));
        self.database = Some(database);
        let copied = self.space.shrinking.as_mut().map_or(Ok(()), |shrinking| shrinking.put(puts));
        copied.unwrap_or_else(|why| self.stop_shrinking(&why));
        Ok(())
    }

    /// Copies some of the store into a shorter file, if that is worth it. Whether there is more to do.
    pub(crate) fn shrink(&mut self) -> bool {
        if self.space.shrinking.is_none() {
            let now = Instant::now();
            if now < self.space.look_at {
                return false;
            }
            self.space.look_at = now + LOOK_EVERY;
            let length = self.space.file.as_ref().and_then(|file| file.length().ok()).unwrap_or_default();
            if !shrink::is_worth_it(self.space.records, length, self.space.spare_bytes) {
                return false;
            }
            if let Some((free, needed)) = shrink::lacks_room(&self.path, self.space.records, length) {
                self.stop_shrinking(&format!(
                    "its file system has {} MiB left, and the copy may need {}",
                    free >> 20,
                    needed >> 20
                ));
                return false;
            }
        }
        match self.copy_some() {
            Ok(is_whole) => !is_whole,
            Err(why) => {
                self.stop_shrinking(&why);
                false
            }
        }
    }

    fn copy_some(&mut self) -> Result<bool, String> {
        let (Some(old), Some(file)) = (&self.database, &self.space.file) else { return Ok(true) };
        let mut shrinking = match self.space.shrinking.take() {
            Some(shrinking) => shrinking,
            None => Shrinking::begin(&self.path)?,
        };
        if !shrinking.go_on(old)? {
            self.space.shrinking = Some(shrinking);
            return Ok(false);
        }
        let (file, records) = shrinking.swap(file)?;
        // The old one goes; the new one's name is made sure of before anything is stored.
        self.database = None;
        (self.space.file, self.space.records) = (Some(file.clone()), Some(records));
        let (path, kind) = (self.path.clone(), self.kind);
        self.open = Box::new(move || {
            sync_folder_of(&path).map_err(|error| format!("cannot sync its folder: {error}"))?;
            file.database(kind)
        });
        Ok(true)
    }

    fn stop_shrinking(&mut self, why: &str) {
        tracing::warn!(store = %self.path.display(), why, "cannot copy a file of the index to give space back; that is tried again in ten minutes");
        self.space.shrinking = None;
        self.space.look_at = Instant::now() + COPY_AGAIN;
        shrink::clear(&self.path);
    }

    fn on_success(&mut self) {
        let Some(trouble) = self.trouble.take() else { return };
        tracing::info!(
            store = %self.path.display(), tries = trouble.tries, seconds = trouble.since.elapsed().as_secs(),
            "the directory's store works again; all that waited is stored"
        );
    }

    fn on_error(&mut self, token: StoreToken, why: &str) {
        if self.space.shrinking.is_some() {
            // It may have what is lacking.
            self.stop_shrinking(why);
        }
        let now = Instant::now();
        let is_first = self.trouble.is_none();
        let trouble = self.trouble.get_or_insert(Trouble { first: token, since: now, logged: now, tries: 0 });
        trouble.tries += 1;
        if is_first || now - trouble.logged >= LOG_EVERY {
            trouble.logged = now;
            tracing::error!(
                store = %self.path.display(), why, tries = trouble.tries,
                "the directory cannot store changes: {}. Free space there, or mend its file system or disk: it tries again every second",
                self.kind.loss()
            );
        }
    }
}

/// A new store that holds `puts`, on stable storage.
pub(crate) fn create_store(path: &Path, puts: &[Put]) -> Result<(), String> {
    Store::open(path)?.attempt(puts)
}

/// None where nothing was ever stored in it.
fn table<K: Key + 'static, V: Value + 'static>(
    transaction: &ReadTransaction,
    of: TableDefinition<'_, K, V>,
) -> Result<Option<ReadOnlyTable<K, V>>, redb::Error> {
    match transaction.open_table(of) {
        Ok(table) => Ok(Some(table)),
        Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Up to `limit` of the records with keys from `from` up to `to`, and none more once they have `bytes_max`.
fn records(
    transaction: &ReadTransaction,
    (from, to): (&[u8], Bound<&[u8]>),
    (limit, bytes_max): (usize, usize),
    with_values: bool,
) -> Result<Vec<Pair>, redb::Error> {
    let Some(table) = table(transaction, TABLE)? else { return Ok(Vec::new()) };
    let (mut pairs, mut bytes) = (Vec::new(), 0);
    for entry in table.range::<&[u8]>((Bound::Included(from), to))?.take(limit) {
        let (key, value) = entry?;
        let value = if with_values { value.value().to_vec() } else { Vec::new() };
        bytes += key.value().len() + value.len();
        pairs.push((key.value().to_vec(), value));
        if bytes >= bytes_max {
            break;
        }
    }
    Ok(pairs)
}

fn read(database: &Database, pages: &[Page]) -> Result<Vec<Vec<Pair>>, redb::Error> {
    let transaction = database.begin_read()?;
    let page = |page: &Page| {
        let range = (&page.from[..], Bound::Excluded(&page.to[..]));
        records(&transaction, range, (page.limit as usize, usize::MAX), page.values)
    };
    pages.iter().map(page).collect()
}

/// Up to so many records from a key on, and none more once they have so many bytes.
pub(super) fn slice(
    database: &Database,
    from: &[u8],
    (limit, bytes_max): (usize, usize),
) -> Result<Vec<Pair>, redb::Error> {
    records(&database.begin_read()?, (from, Bound::Unbounded), (limit, bytes_max), true)
}

/// What was counted of the records: none yet in a store that is new.
fn counted(database: &Database) -> Result<Option<u64>, redb::Error> {
    let transaction = database.begin_read()?;
    match table(&transaction, SPACE)? {
        Some(table) => Ok(table.get(RECORDS)?.map(|bytes| bytes.value())),
        None => Ok(table(&transaction, TABLE)?.is_none().then_some(0)),
    }
}

pub(super) fn count(transaction: &WriteTransaction, bytes: u64) -> Result<(), redb::Error> {
    transaction.open_table(SPACE)?.insert(RECORDS, bytes)?;
    Ok(())
}

/// By how many bytes the records became more.
pub(super) fn write(transaction: &WriteTransaction, puts: &[Put]) -> Result<i64, redb::Error> {
    let mut table = transaction.open_table(TABLE)?;
    let mut more = 0;
    for (key, value) in puts {
        let before = match value {
            Some(value) => table.insert(&key[..], &value[..])?,
            None => table.remove(&key[..])?,
        };
        let length = |value: usize| (key.len() + value) as i64;
        more += value.as_ref().map_or(0, |value| length(value.len()));
        more -= before.map_or(0, |before| length(before.value().len()));
    }
    Ok(more)
}

/// Stores changes, and what the records have if that was counted; returns by how much they became more.
fn commit(database: &Database, kind: Kind, puts: &[Put], records: Option<u64>) -> Result<i64, redb::Error> {
    let mut transaction = database.begin_write()?;
    transaction.set_quick_repair(kind.repairs_quickly());
    let more = write(&transaction, puts)?;
    if let Some(records) = records {
        count(&transaction, records.saturating_add_signed(more))?;
    }
    transaction.commit()?;
    Ok(more)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;
    use std::sync::atomic::AtomicI32;

    fn put(key: &str, value: Option<&str>) -> Put {
        (key.as_bytes().to_vec(), value.map(|v| v.as_bytes().to_vec()))
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<Pair> {
        pairs.iter().map(|(k, v)| (k.as_bytes().to_vec(), v.as_bytes().to_vec())).collect()
    }

    #[test]
    fn the_store_keeps_what_it_acknowledged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("directory.redb");
        let mut store = Store::open(&path).unwrap();
        assert_eq!(store.contents().unwrap(), vec![]);
        let first = [put("b", Some("2")), put("a", Some("1")), put("c", Some("3"))];
        store.put(StoreToken(1), &first).unwrap();
        store.put(StoreToken(2), &[put("b", None), put("a", Some("one"))]).unwrap();
        let second = Store::open(&path).err().unwrap();
        assert!(second.contains("in use by another directory"), "{second}");
        drop(store);
        assert_eq!(Store::open(&path).unwrap().contents().unwrap(), pairs(&[("a", "one"), ("c", "3")]));
    }

    #[test]
    fn several_changes_are_stored_in_their_order_and_all_or_none() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(&folder.path().join("directory.redb")).unwrap();
        let (one, two, three) = (StoreToken(1), StoreToken(2), StoreToken(3));
        let writes = vec![
            (one, vec![put("a", Some("1")), put("b", Some("1"))]),
            (two, vec![put("a", Some("2")), put("b", None)]),
            (three, vec![put("c", Some("3"))]),
        ];
        assert_eq!(store.put_all(writes.clone()), (vec![one, two, three], Ok(())));
        assert_eq!(store.contents().unwrap(), pairs(&[("a", "2"), ("c", "3")]));
        assert_eq!(store.put_all(Vec::new()), (Vec::new(), Ok(())));
        let now = Instant::now();
        store.trouble = Some(Trouble { first: StoreToken(9), since: now, logged: now, tries: 1 });
        let (tokens, result) = store.put_all(writes);
        assert!(tokens == [one, two, three] && result.is_err(), "an earlier one is not stored yet");
        assert_eq!(store.contents().unwrap(), pairs(&[("a", "2"), ("c", "3")]));
    }

    /// A record may have megabytes.
    #[test]
    fn a_slice_ends_with_so_many_records_or_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(&folder.path().join("directory.redb")).unwrap();
        let value = "v".repeat(99);
        let puts: Vec<Put> = ["a", "b", "c", "d"].map(|key| put(key, Some(&value))).to_vec();
        store.put(StoreToken(1), &puts).unwrap();
        let count = |bounds| slice(store.database.as_ref().unwrap(), b"b", bounds).unwrap().len();
        assert_eq!([(9, 900), (2, 900), (9, 1), (9, 100), (9, 101)].map(count), [3, 2, 1, 1, 2]);
    }

    #[test]
    fn a_store_is_its_owners_only() {
        let folder = tempfile::tempdir().unwrap();
        for kind in [Kind::Directory, Kind::Index] {
            let path = folder.path().join(format!("{kind:?}.db"));
            let store = Store::open_synced(&path, kind).unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600, "{kind:?}");
            drop(store);
        }
    }

    /// Bytes that this thread has written.
    fn written_bytes() -> u64 {
        let counters = std::fs::read_to_string("/proc/thread-self/io").unwrap();
        counters.lines().find_map(|line| line.strip_prefix("wchar: ")).unwrap().parse().unwrap()
    }

    /// The process that saw the sync fail was restarted: what it knew of lost pages went with it, the pages did not come
    /// back.
    #[test]
    fn a_store_is_written_again_when_it_is_opened_by_another_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("directory.redb");
        let value = "v".repeat(1 << 20);
        let mut store = Store::open(&path).unwrap();
        store.put(StoreToken(1), &[put("a", Some(&value))]).unwrap();
        drop(store);
        let before = written_bytes();
        let store = Store::open(&path).unwrap();
        let written = written_bytes() - before;
        assert!(written >= value.len() as u64, "only {written} bytes were written again");
        assert_eq!(store.contents().unwrap(), pairs(&[("a", &value)]));
    }

    /// One of the index may have gigabytes.
    #[test]
    fn a_store_of_the_index_is_written_again_only_after_who_saw_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("directory.index-0.redb");
        let value = "v".repeat(1 << 20);
        let mut store = Store::open_synced(&path, Kind::Index).unwrap();
        store.put(StoreToken(1), &[put("a", Some(&value))]).unwrap();
        drop(store);
        let written_at_open = || {
            let before = written_bytes();
            let store = Store::open_synced(&path, Kind::Index).unwrap();
            (store, written_bytes() - before)
        };
        let (store, written) = written_at_open();
        assert!(written < value.len() as u64 / 2, "{written} bytes were written again");
        assert_eq!(store.contents().unwrap(), pairs(&[("a", &value)]));
        drop(store);
        let mark = path.with_file_name("directory.index-0.redb.closed");
        std::fs::write(&mark, "failed\n").unwrap();
        let (store, written) = written_at_open();
        assert!(written >= value.len() as u64, "only {written} bytes were written again");
        assert!(!mark.exists(), "it is in order again");
        drop(store);
        // After a kill what the kernel holds of it goes, and what stays is written.
        std::fs::remove_file(&mark).unwrap();
        let held = drop_cached(&std::fs::File::open(&path).unwrap()).unwrap();
        let (store, written) = written_at_open();
        let held_bytes: u64 = held.iter().map(|range| range.end - range.start).sum();
        assert!(written < held_bytes + value.len() as u64 / 2, "{written} bytes, {held_bytes} held");
        assert_eq!(store.contents().unwrap(), pairs(&[("a", &value)]));
    }

    /// Whoever follows is to write all of it again.
    #[test]
    fn a_store_of_the_index_that_failed_is_not_marked_as_closed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("directory.index-0.redb");
        drop(Store::open_synced(&path, Kind::Index).unwrap());
        let mark = path.with_file_name("directory.index-0.redb.closed");
        assert!(std::fs::read_to_string(&mark).unwrap().starts_with("closed"));
        let file = StoreFile::open(&path, Kind::Index).unwrap();
        file.noting(Err::<(), _>(io::Error::from_raw_os_error(libc::EIO))).unwrap_err();
        drop(file);
        assert_eq!(std::fs::read_to_string(&mark).unwrap(), "failed\n");
    }

    /// A directory starts on a full file system too: nothing that is not there is allocated.
    #[test]
    fn holes_are_not_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sparse");
        let file = StoreFile::open(&path, Kind::Directory).unwrap();
        file.0.file.write_all_at(&[7; 100], 9 << 20).unwrap();
        file.0.file.set_len(64 << 20).unwrap();
        file.noting(Err::<(), _>(io::Error::from_raw_os_error(libc::EIO))).unwrap_err();
        file.settle_doubts().unwrap();
        let allocated = file.0.file.metadata().unwrap().blocks() * 512;
        assert!(allocated < 1 << 20, "{allocated} bytes are allocated");
        let mut page = [0; 101];
        file.read(9 << 20, &mut page).unwrap();
        assert_eq!((page[..100].to_vec(), page[100]), (vec![7; 100], 0));
    }

    /// A file whose writes or syncs fail with the error that is set, if any.
    #[derive(Clone, Debug)]
    struct Faulty {
        file: StoreFile,
        writes: Arc<AtomicI32>,
        syncs: Arc<AtomicI32>,
    }

    impl Faulty {
        fn fault(&self, of: &AtomicI32) -> io::Result<()> {
            match of.load(Ordering::Relaxed) {
                0 => Ok(()),
                error => self.file.noting(Err(io::Error::from_raw_os_error(error))),
            }
        }
    }

    impl StorageBackend for Faulty {
        fn len(&self) -> io::Result<u64> {
            self.file.len()
        }
        fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
            self.file.read(offset, out)
        }
        fn set_len(&self, len: u64) -> io::Result<()> {
            self.fault(&self.writes).and_then(|()| self.file.set_len(len))
        }
        fn sync_data(&self) -> io::Result<()> {
            self.fault(&self.syncs).and_then(|()| self.file.sync_data())
        }
        fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            self.fault(&self.writes).and_then(|()| self.file.write(offset, data))
        }
    }

    /// The disk is full, read-only, or broken, when it is written or when it is synced; then it works again.
    #[test]
    fn it_works_again_after_an_error_and_stores_nothing_out_of_order() {
        for error in [libc::ENOSPC, libc::EROFS, libc::EIO] {
            for syncs in [false, true] {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("directory.redb");
                let file = StoreFile::open(&path, Kind::Directory).unwrap();
                let (writes, sync) = (Arc::default(), Arc::default());
                let faulty =
                    Faulty { file: file.clone(), writes: Arc::clone(&writes), syncs: Arc::clone(&sync) };
                let open = move || {
                    faulty.file.settle_doubts().map_err(|error| error.to_string())?;
                    create(faulty.clone(), Kind::Directory).map_err(|error| error.to_string())
                };
                let mut store = Store::with(&path, Kind::Directory, Box::new(open)).unwrap();
                store.put(StoreToken(1), &[put("a", Some("1"))]).unwrap();
                if syncs { &sync } else { &writes }.store(error, Ordering::Relaxed);
                let why = store.put(StoreToken(2), &[put("a", Some("2"))]).unwrap_err();
                assert!(why.contains(&format!("os error {error}")), "{why}");
                store.put(StoreToken(2), &[put("a", Some("2"))]).unwrap_err();
                if syncs { &sync } else { &writes }.store(0, Ordering::Relaxed);
                store.put(StoreToken(3), &[put("b", Some("3"))]).unwrap_err();
                store.put(StoreToken(2), &[put("a", Some("2")), put("b", Some("3"))]).unwrap();
                store.put(StoreToken(4), &[put("c", Some("4"))]).unwrap();
                assert_eq!(
                    file.0.doubt.load(Ordering::Relaxed),
                    doubt::NOTHING,
                    "all of it was written again"
                );
                drop((store, file));
                let contents = Store::open(&path).unwrap().contents().unwrap();
                assert_eq!(contents, pairs(&[("a", "2"), ("b", "3"), ("c", "4")]));
            }
        }
    }
}
