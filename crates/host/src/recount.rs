//! Makes a lost directory anew: listens where it did, asks the bricks that call what they know, and writes a new store.

use crate::directory::{event_of, store};
use crate::disk::file::sync_folder_of;
use crate::metrics::Meter;
use crate::transport::{PeerEvent, Peers};
use crate::turn::{Core, Driver, Role, World, draw_id};
use crate::{HostError, NodeOptions, Ready, Shutdown};
use base::{NodeId, Time};
use proto::directory::rebuild::Recount;
use proto::directory::{DirectoryEffect, DirectoryEvent, Put};
use std::path::Path;

/// Listens at `listen`, where the lost directory did, and asks every brick that calls what it knows. `is_enough` is asked
/// once a second, and ends it when it says so; it ends as well when the shutdown is requested.
///
/// # Errors
/// When an address, a certificate or a socket cannot be used: also when a directory still runs there.
pub fn run_recount(
    node: &NodeOptions,
    listen: &str,
    shutdown: &Shutdown,
    on_ready: impl FnOnce(&Ready),
    is_enough: impl FnMut(&Recount) -> bool,
) -> Result<(), HostError> {
    let core = Core::new(shutdown)?;
    let mut peers = Peers::new(NodeId::Directory, node.cluster, &node.security, core.registry(), draw_id())?;
    let bound = peers.listen(&listen.parse()?)?;
    let meter = Meter::new(node.metrics)?;
    on_ready(&Ready { name: "directory rebuild".to_owned(), addresses: vec![bound.to_string()] });
    let role = RecountRole { is_enough, shutdown: shutdown.clone() };
    Driver::new(core, peers, Recount::default(), role, meter).run()
}

/// Writes a new store of a directory, whole or not at all.
///
/// # Errors
/// [`HostError::Store`] when there is a store already, or it cannot be written.
pub fn write_store(path: &Path, puts: &[Put]) -> Result<(), HostError> {
    let failed = |why: String| HostError::Store { path: path.to_owned(), why };
    if path.exists() {
        let why =
            "is there; a directory that has its store needs no other: move the file away if it is damaged";
        return Err(failed(why.to_owned()));
    }
    // Under another name first, so that what stands under this one is always a whole store.
    let draft = path.with_extension("rebuilding");
    let system = |error: std::io::Error| failed(error.to_string());
    match std::fs::remove_file(&draft) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(system(error)),
        _ => {}
    }
    store::create_store(&draft, puts).map_err(failed)?;
    std::fs::rename(&draft, path).map_err(system)?;
    sync_folder_of(path).map_err(system)
}

struct RecountRole<F> {
    is_enough: F,
    shutdown: Shutdown,
}

impl<F: FnMut(&Recount) -> bool> Role for RecountRole<F> {
    type Machine = Recount;

    fn peer_event(event: PeerEvent) -> Option<DirectoryEvent> {
        event_of(event)
    }

    fn effect(&mut self, effect: DirectoryEffect, world: &mut World<'_, Self>) -> Result<(), HostError> {
        match effect {
            DirectoryEffect::Send { to, packet } => world.peers.send(to, &packet),
            DirectoryEffect::Store { .. } => unreachable!("what is asked for is stored in the end, at once"),
        }
        Ok(())
    }

    fn measure(&mut self, machine: &Recount, _now: Time, _meter: &mut Meter) {
        if (self.is_enough)(machine) {
            self.shutdown.request();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_written_once_and_never_over_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("directory.db");
        std::fs::write(path.with_extension("rebuilding"), "cut short").unwrap();
        let puts = [(b"k".to_vec(), Some(b"v".to_vec()))];
        write_store(&path, &puts).unwrap();
        assert_eq!(store::Store::open(&path).unwrap().contents().unwrap(), [(b"k".to_vec(), b"v".to_vec())]);
        let error = write_store(&path, &[]).unwrap_err().to_string();
        assert!(error.contains("directory.db") && error.contains("move the file away"), "{error}");
        assert_eq!(store::Store::open(&path).unwrap().contents().unwrap().len(), 1);
    }
}
