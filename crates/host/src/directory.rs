//! The directory daemon: its machine, peers, and an embedded store (redb).

use crate::disk::file::sync_folder_of;
use crate::metrics::Meter;
use crate::transport::{PeerEvent, Peers};
use crate::turn::{Core, Driver, Role, World, draw_id};
use crate::{DirectoryOptions, HostError, Ready, Shutdown};
use base::{NodeId, Time};
use proto::directory::{Directory, DirectoryEffect, DirectoryEvent, Put};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use std::path::Path;
use wire::GroupView;

/// A key and its value.
type Pair = (Vec<u8>, Vec<u8>);

/// The machine's keys and values.
const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("directory");
/// Room of the store's own cache: the machine holds all of it in memory anyway.
const CACHE_BYTES: usize = 1 << 20;

/// Runs the directory until the shutdown is requested.
///
/// # Errors
/// When an address, a certificate, a socket or the store cannot be used.
pub fn run_directory(
    options: DirectoryOptions,
    shutdown: &Shutdown,
    on_ready: impl FnOnce(&Ready),
) -> Result<(), HostError> {
    let core = Core::new(shutdown)?;
    let node = &options.node;
    let failed = |why: String| HostError::Store { path: options.store.clone(), why };
    let database = open(&options.store).map_err(|error| failed(store_failed(&error)))?;
    // The store syncs what it writes (`fdatasync` at each commit), but not the name of a file that it has made.
    sync_folder_of(&options.store).map_err(|error| failed(format!("cannot sync its folder: {error}")))?;
    let contents = load(&database).map_err(|error| failed(error.to_string()))?;
    let machine = Directory::new(options.config.clone(), contents, core.clock.now()).map_err(failed)?;
    let mut peers = Peers::new(NodeId::Directory, node.cluster, &node.security, core.registry(), draw_id())?;
    let bound = peers.listen(&options.listen.parse()?)?;
    let meter = Meter::new(node.metrics)?;
    on_ready(&Ready { name: "directory".to_owned(), addresses: vec![bound.to_string()] });
    Driver::new(core, peers, machine, DirectoryRole { database, transactions: 0 }, meter).run()
}

struct DirectoryRole {
    database: Database,
    transactions: u64,
}

impl Role for DirectoryRole {
    type Machine = Directory;

    fn peer_event(event: PeerEvent) -> Option<DirectoryEvent> {
        match event {
            PeerEvent::Packet { from, packet } => Some(DirectoryEvent::Packet { from, packet }),
            PeerEvent::Down(node) => Some(DirectoryEvent::Down(node)),
            PeerEvent::Up(_) => None,
        }
    }

    fn effect(&mut self, effect: DirectoryEffect, world: &mut World<'_, Self>) -> Result<(), HostError> {
        match effect {
            DirectoryEffect::Send { to, packet } => world.peers.send(to, &packet),
            // Changes are rare and small: the loop waits for them, and no order can be lost.
            DirectoryEffect::Store { token, puts } => {
                let result = store(&self.database, &puts).map_err(|error| error.to_string());
                self.transactions += 1;
                world.inbox.push(DirectoryEvent::Stored { token, result });
            }
        }
        Ok(())
    }

    fn measure(&mut self, machine: &Directory, _now: Time, meter: &mut Meter) {
        meter.counter("brickwork_directory_transactions_total", self.transactions);
        meter.counters(machine.counters());
        let groups = |of: fn(&GroupView) -> bool| machine.views().filter(|view| of(view)).count() as f64;
        meter.gauge("brickwork_groups", groups(|_| true));
        meter
            .gauge("brickwork_groups_degraded", groups(|view| view.current.len() < view.members.len() as u8));
        meter.gauge("brickwork_groups_rebuilding", groups(|view| !view.joining.is_empty()));
        meter.gauge("brickwork_bricks_slow", machine.slow_bricks() as f64);
    }
}

/// A new store that holds `puts`, on stable storage.
pub(crate) fn create(path: &Path, puts: &[Put]) -> Result<(), String> {
    let database = open(path).map_err(|error| store_failed(&error))?;
    store(&database, puts).map_err(|error| error.to_string())
}

/// All that the store at `path` holds.
#[cfg(test)]
pub(crate) fn contents(path: &Path) -> Result<Vec<Pair>, String> {
    let database = open(path).map_err(|error| store_failed(&error))?;
    load(&database).map_err(|error| error.to_string())
}

fn open(path: &Path) -> Result<Database, redb::DatabaseError> {
    Database::builder().set_cache_size(CACHE_BYTES).create(path)
}

fn store_failed(error: &redb::DatabaseError) -> String {
    match error {
        redb::DatabaseError::DatabaseAlreadyOpen => {
            "is in use by another directory; stop that one, or give this one a store of its own".to_owned()
        }
        _ => error.to_string(),
    }
}

fn load(database: &Database) -> Result<Vec<Pair>, redb::Error> {
    let transaction = database.begin_read()?;
    let table = match transaction.open_table(TABLE) {
        Ok(table) => table,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut pairs = Vec::new();
    for entry in table.iter()? {
        let (key, value) = entry?;
        pairs.push((key.value().to_vec(), value.value().to_vec()));
    }
    Ok(pairs)
}

/// All changes on stable storage, or none.
fn store(database: &Database, puts: &[Put]) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut table = transaction.open_table(TABLE)?;
        for (key, value) in puts {
            match value {
                Some(value) => drop(table.insert(&key[..], &value[..])?),
                None => drop(table.remove(&key[..])?),
            }
        }
    }
    Ok(transaction.commit()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_keeps_what_it_acknowledged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("directory.redb");
        let put =
            |key: &str, value: Option<&str>| (key.as_bytes().to_vec(), value.map(|v| v.as_bytes().to_vec()));
        let database = open(&path).unwrap();
        assert_eq!(load(&database).unwrap(), vec![]);
        store(&database, &[put("b", Some("2")), put("a", Some("1")), put("c", Some("3"))]).unwrap();
        store(&database, &[put("b", None), put("a", Some("one"))]).unwrap();
        let second = store_failed(&open(&path).unwrap_err());
        assert!(second.contains("in use by another directory"), "{second}");
        drop(database);
        let contents = load(&open(&path).unwrap()).unwrap();
        let expected: Vec<_> = [("a", "one"), ("c", "3")].map(|(k, v)| (k.into(), v.into())).into();
        assert_eq!(contents, expected);
    }
}
