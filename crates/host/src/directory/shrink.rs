//! Gives back what a shard's file has that its records do not need: they are copied into a new file, which takes the old one's place.
//!
//! The database uses freed pages again, but its file stays as long as it ever was. The copy goes on a slice at a time, between what is asked of the
//! shard. Until it is whole the old file is the store: each change goes there first, and to the copy too if its key lies before what is still to be
//! copied. Then the copy is on stable storage, closed, and renamed; whoever is interrupted before that finds the old file as it is, and whoever is
//! interrupted after it the new one. What is left of a copy that was not finished is removed when the store is opened.

use super::store::{Kind, StoreFile, count, create, slice, write};
use crate::full_file_system::free_bytes;
use redb::{Database, WriteTransaction};
use roles::directory::Put;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A file is copied if it has more than so many times what its records have, and so much more. One that is filled in no order has some two times as
/// much.
const TIMES: u64 = 4;
pub(super) const SPARE_BYTES: u64 = 64 << 20;
/// Copied at a time, records and bytes: some milliseconds. A record may have megabytes.
const SLICE: (usize, usize) = (1000, 1 << 20);
/// Copied in one transaction of the new database.
const TRANSACTION: (usize, usize) = (200_000, 64 << 20);

/// Where the copy of a store lies until it is whole.
fn copy_of(store: &Path) -> PathBuf {
    let mut name = store.file_name().unwrap_or_default().to_owned();
    name.push(".copy");
    store.with_file_name(name)
}

/// Removes what an interrupted copy left.
pub(super) fn clear(store: &Path) {
    let _ = std::fs::remove_file(copy_of(store));
}

/// A copy under way.
pub(super) struct Shrinking {
    store: PathBuf,
    file: StoreFile,
    database: Database,
    transaction: Option<WriteTransaction>,
    /// Records in the open transaction, and their bytes.
    written: (usize, usize),
    /// All before this key is copied.
    from: Vec<u8>,
    /// What the records have that are copied.
    bytes: u64,
    begun: Instant,
}

impl Shrinking {
    pub(super) fn begin(store: &Path) -> Result<Shrinking, String> {
        clear(store);
        let file = StoreFile::open_new(&copy_of(store))?;
        let database = create(file.clone(), Kind::Copy).map_err(|error| error.to_string())?;
        Ok(Shrinking {
            store: store.to_owned(),
            file,
            database,
            transaction: None,
            written: (0, 0),
            from: Vec::new(),
            bytes: 0,
            begun: Instant::now(),
        })
    }

    fn transaction(&mut self) -> Result<&WriteTransaction, String> {
        if self.transaction.is_none() {
            self.transaction = Some(self.database.begin_write().map_err(|error| error.to_string())?);
        }
        Ok(self.transaction.as_ref().expect("begun above"))
    }

    /// What was stored in the old file.
    pub(super) fn put(&mut self, puts: &[Put]) -> Result<(), String> {
        let copied: Vec<Put> = puts.iter().filter(|(key, _)| *key < self.from).cloned().collect();
        if copied.is_empty() {
            return Ok(());
        }
        self.write(&copied)
    }

    fn write(&mut self, puts: &[Put]) -> Result<(), String> {
        let more = write(self.transaction()?, puts).map_err(|error| error.to_string())?;
        self.bytes = self.bytes.saturating_add_signed(more);
        let bytes =
            puts.iter().map(|(key, value)| key.len() + value.as_ref().map_or(0, Vec::len)).sum::<usize>();
        self.written = (self.written.0 + puts.len(), self.written.1 + bytes);
        if self.written.0 >= TRANSACTION.0 || self.written.1 >= TRANSACTION.1 {
            self.commit()?;
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), String> {
        self.written = (0, 0);
        let Some(transaction) = self.transaction.take() else { return Ok(()) };
        transaction.commit().map_err(|error| error.to_string())
    }

    /// Copies some more. Whether all is copied.
    pub(super) fn go_on(&mut self, old: &Database) -> Result<bool, String> {
        let records = slice(old, &self.from, SLICE).map_err(|error| error.to_string())?;
        let Some((last, _)) = records.last() else { return Ok(true) };
        let mut from = last.clone();
        // The first key behind it.
        from.push(0);
        let puts: Vec<Put> = records.into_iter().map(|(key, value)| (key, Some(value))).collect();
        self.write(&puts)?;
        self.from = from;
        Ok(false)
    }

    /// The copy, which is whole, takes the place of the old file: the file that is the store from now on, and what its records have.
    ///
    /// Whether the new name would survive a power cut is not known yet: that is to be made sure of before anything is stored in it.
    pub(super) fn swap(mut self, old: &StoreFile) -> Result<(StoreFile, u64), String> {
        let bytes = self.bytes;
        count(self.transaction()?, bytes).map_err(|error| error.to_string())?;
        self.commit()?;
        let Shrinking { store, file, database, begun, .. } = self;
        // Closed, it is in order when it is opened.
        drop(database);
        let swapped = || -> io::Result<(u64, u64)> {
            file.sync()?;
            let lengths = (old.length()?, file.length()?);
            std::fs::rename(copy_of(&store), &store)?;
            Ok(lengths)
        };
        let (from_bytes, to_bytes) = swapped().map_err(|error| {
            clear(&store);
            format!("cannot put the copy into its place: {error}")
        })?;
        old.count_no_more();
        file.count_as(&store);
        tracing::info!(
            store = %store.display(), from_mib = from_bytes >> 20, to_mib = to_bytes >> 20, seconds = begun.elapsed().as_secs(),
            "a file of the index was copied without what it needs no more, which gives that space back"
        );
        Ok((file, bytes))
    }
}

/// The room that there is and that a copy may need, if that is more: it would take what the directory needs.
pub(super) fn lacks_room(store: &Path, records_bytes: Option<u64>, file_bytes: u64) -> Option<(u64, u64)> {
    let free = free_bytes(store)?;
    // A file that is written in order has less than twice what its records have.
    let needed = records_bytes.map_or(file_bytes, |bytes| 2 * bytes) + SPARE_BYTES;
    (free < needed).then_some((free, needed))
}

/// Whether the file has much more than its records need. `records_bytes` is not known of files of earlier releases: these are copied once.
pub(super) fn is_worth_it(records_bytes: Option<u64>, file_bytes: u64, spare_bytes: u64) -> bool {
    file_bytes > TIMES * records_bytes.unwrap_or_default() + spare_bytes
}

#[cfg(test)]
mod tests {
    use super::super::mark::{Left, Mark};
    use super::super::store::Store;
    use super::*;
    use proptest::prelude::*;
    use roles::directory::StoreToken;
    use std::collections::BTreeMap;
    use std::os::unix::fs::MetadataExt;

    struct Shop {
        folder: tempfile::TempDir,
        store: Option<Store>,
        model: BTreeMap<Vec<u8>, Vec<u8>>,
        token: u64,
    }

    impl Shop {
        fn new() -> Shop {
            let mut shop =
                Shop { folder: tempfile::tempdir().unwrap(), store: None, model: BTreeMap::new(), token: 0 };
            shop.open();
            shop
        }

        fn path(&self) -> PathBuf {
            self.folder.path().join("directory.index-0.redb")
        }

        fn open(&mut self) {
            self.store = None;
            // A process that another test begins has a copy of the lock until it is the program that it is to be.
            let busy =
                |opened: &Result<Store, String>| opened.as_ref().is_err_and(|why| why.contains("in use"));
            let mut opened = Store::open_synced(&self.path(), Kind::Index);
            let begun = Instant::now();
            while busy(&opened) && begun.elapsed().as_secs() < 10 {
                std::thread::yield_now();
                opened = Store::open_synced(&self.path(), Kind::Index);
            }
            let mut store = opened.unwrap();
            store.space.spare_bytes = 0;
            self.store = Some(store);
            assert!(!copy_of(&self.path()).exists());
        }

        fn put(&mut self, puts: Vec<Put>) {
            self.token += 1;
            for (key, value) in &puts {
                match value {
                    Some(value) => drop(self.model.insert(key.clone(), value.clone())),
                    None => drop(self.model.remove(key)),
                }
            }
            self.store.as_mut().unwrap().put(StoreToken(self.token), &puts).unwrap();
        }

        fn shrink(&mut self) -> bool {
            let store = self.store.as_mut().unwrap();
            store.space.look_at = Instant::now();
            store.shrink()
        }

        fn check(&self) {
            let contents = self.store.as_ref().unwrap().contents();
            let model: Vec<_> = self.model.clone().into_iter().collect();
            // Nothing is read in the moment after the files are exchanged.
            assert!(contents.is_err() || contents == Ok(model));
            let bytes: usize = self.model.iter().map(|(key, value)| key.len() + value.len()).sum();
            assert_eq!(self.store.as_ref().unwrap().space.records, Some(bytes as u64));
        }

        fn length(&self) -> u64 {
            std::fs::metadata(self.path()).unwrap().len()
        }
    }

    fn key(number: u32) -> Vec<u8> {
        number.wrapping_mul(0x9e37_79b9).to_be_bytes().to_vec()
    }

    fn filled(count: u32) -> Shop {
        let mut shop = Shop::new();
        for chunk in (0..count).collect::<Vec<_>>().chunks(1000) {
            shop.put(chunk.iter().map(|number| (key(*number), Some(vec![1; 100]))).collect());
        }
        shop
    }

    #[test]
    fn a_file_gets_as_short_as_its_records_need() {
        let mut shop = filled(60_000);
        let (full, inode) = (shop.length(), std::fs::metadata(shop.path()).unwrap().ino());
        assert!(!shop.shrink(), "it has what it needs");
        for chunk in (3000..60_000).collect::<Vec<u32>>().chunks(1000) {
            shop.put(chunk.iter().map(|number| (key(*number), None)).collect());
        }
        let emptied = shop.length();
        while shop.shrink() {}
        let shrunk = shop.length();
        assert!(shrunk < emptied / 4 && shrunk < full / 8, "{full} bytes, {emptied} emptied, {shrunk} now");
        assert_ne!(std::fs::metadata(shop.path()).unwrap().ino(), inode, "it is another file");
        shop.put(vec![(key(1), Some(vec![3; 9]))]);
        shop.check();
        shop.store = None;
        let file = std::fs::File::open(shop.path()).unwrap();
        assert_eq!(
            Mark::of(&shop.path()).left(&file),
            Left::Closed,
            "it is said of the file that has the name now"
        );
        shop.open();
        shop.check();
        assert!(!shop.shrink(), "that was all");
    }

    /// A file of an earlier release is copied once, and is counted from then on.
    #[test]
    fn a_file_whose_records_were_not_counted_is_copied_once() {
        let mut shop = filled(5000);
        shop.store.as_mut().unwrap().space.records = None;
        while shop.shrink() {}
        shop.put(vec![(key(1), None)]);
        shop.check();
        assert!(!shop.shrink());
    }

    #[test]
    fn a_copy_that_may_not_fit_is_not_begun() {
        let shop = filled(10);
        assert_eq!(lacks_room(&shop.path(), Some(1), 1 << 50), None, "what counts is what the records have");
        for (records, file) in [(Some(1 << 50), 1), (None, 1 << 50)] {
            let (free, needed) = lacks_room(&shop.path(), records, file).expect("no disk has so much room");
            assert!(free < needed && needed > 1 << 50);
        }
    }

    #[test]
    fn where_there_can_be_no_copy_the_store_goes_on() {
        let mut shop = filled(5000);
        shop.store.as_mut().unwrap().space.records = None;
        std::fs::create_dir(copy_of(&shop.path())).unwrap();
        assert!(!shop.shrink());
        shop.put(vec![(key(1), None)]);
        std::fs::remove_dir(copy_of(&shop.path())).unwrap();
        shop.store.as_mut().unwrap().space.records = Some(5000 * 104 - 104);
        shop.check();
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Whatever is stored while it is copied, and wherever that ends, nothing is missing and nothing comes back.
        #[test]
        fn what_is_stored_meanwhile_is_kept(
            steps in proptest::collection::vec((0..4_u8, proptest::collection::vec((0..4000_u32, any::<Option<u8>>()), 1..40)), 1..60),
        ) {
            let mut shop = filled(4000);
            shop.store.as_mut().unwrap().space.records = Some(1);
            let mut is_begun = false;
            for (what, puts) in steps {
                match what {
                    0 if is_begun => shop.open(),
                    1 | 2 => is_begun |= shop.shrink(),
                    _ => shop.put(puts.into_iter().map(|(number, value)| (key(number), value.map(|value| vec![value; 50]))).collect()),
                }
            }
            while shop.shrink() {}
            shop.put(vec![(key(1), None)]);
            let store = shop.store.as_ref().unwrap();
            let model: Vec<_> = shop.model.clone().into_iter().collect();
            prop_assert_eq!(store.contents(), Ok(model));
            shop.open();
            let model: Vec<_> = shop.model.clone().into_iter().collect();
            prop_assert_eq!(shop.store.as_ref().unwrap().contents(), Ok(model));
        }
    }
}
