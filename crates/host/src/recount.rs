//! Makes a lost directory anew: listens where it did, asks the bricks that call what they know, and writes a new store.

use crate::directory::{event_of, store};
use crate::disk::file::sync_folder_of;
use crate::metrics::Meter;
use crate::transport::{PeerEvent, Peers};
use crate::turn::{Core, Driver, Role, World, draw_id};
use crate::{HostError, NodeOptions, Ready, Shutdown};
use base::{Depth, Machine, NodeId, Time, VolumeId};
use roles::directory::rebuild::Recount;
use roles::directory::{DirectoryEffect, DirectoryEvent, Put};
use std::collections::BTreeMap;
use std::path::Path;
use wire::{Family, Message};

/// What the bricks have told so far, of which some volumes are to be left out.
#[derive(Debug, Default)]
pub struct Told {
    recount: Recount,
    /// The latest word of each family of volumes that share groups.
    families: BTreeMap<VolumeId, Family>,
}

impl Told {
    fn leaving_out(volumes: &[String]) -> Told {
        let mut told = Told::default();
        volumes.iter().for_each(|volume| told.recount.forget(volume));
        told
    }

    /// Who has answered, and what a new store would hold.
    pub fn recount(&self) -> &Recount {
        &self.recount
    }

    /// The names of all volumes that the bricks describe, those too that are to be left out.
    pub fn volumes(&self) -> impl Iterator<Item = &str> {
        self.families.values().flat_map(names)
    }

    /// The names of a volume and of all that shares its groups: its snapshots and clones. Empty when no brick describes it.
    pub fn family_of(&self, volume: &str) -> Vec<&str> {
        let mut families = self.families.values();
        families
            .find(|family| names(family).any(|name| name == volume))
            .map_or_else(Vec::new, |family| names(family).collect())
    }

    fn hear(&mut self, families: &[Family]) {
        for family in families {
            let Some(first) = family.volumes.first() else { continue };
            let is_later = |known: &Family| family.number > known.number;
            if self.families.get(&first.family).is_none_or(is_later) {
                self.families.insert(first.family, family.clone());
            }
        }
    }
}

fn names(family: &Family) -> impl Iterator<Item = &str> {
    family.volumes.iter().map(|volume| volume.name.as_str())
}

impl Machine for Told {
    type Event = DirectoryEvent;
    type Effect = DirectoryEffect;

    fn step(&mut self, now: Time, event: DirectoryEvent, fx: &mut Vec<DirectoryEffect>) {
        if let DirectoryEvent::Packet { from: NodeId::Brick(id), packet } = &event
            && let Message::Recounted { brick, families, .. } = &packet.message
            && brick == id
        {
            self.hear(families);
        }
        self.recount.step(now, event, fx);
    }

    fn settle(&mut self, now: Time, fx: &mut Vec<DirectoryEffect>) {
        self.recount.settle(now, fx);
    }

    fn wake(&mut self, now: Time, fx: &mut Vec<DirectoryEffect>) {
        self.recount.wake(now, fx);
    }

    fn deadline(&self) -> Option<(Time, &'static str)> {
        self.recount.deadline()
    }

    fn check(&self, depth: Depth) {
        self.recount.check(depth);
    }
}

/// Listens at `listen`, where the lost directory did, and asks every brick that calls what it knows. Volumes of the names
/// `forgotten`, and all that shares their groups, are left out of the new store. `is_enough` is asked once a second, and ends
/// it when it says so; it ends as well when the shutdown is requested.
///
/// # Errors
/// When an address, a certificate or a socket cannot be used: also when a directory still runs there.
pub fn run_recount(
    node: &NodeOptions,
    listen: &str,
    forgotten: &[String],
    shutdown: &Shutdown,
    on_ready: impl FnOnce(&Ready),
    is_enough: impl FnMut(&Told) -> bool,
) -> Result<(), HostError> {
    let core = Core::new(shutdown)?;
    let mut peers = Peers::new(NodeId::Directory, node.cluster, &node.security, core.registry(), draw_id())?;
    let bound = peers.listen(&listen.parse()?)?;
    let meter = Meter::new(node.metrics)?;
    on_ready(&Ready { name: "directory rebuild".to_owned(), addresses: vec![bound.to_string()] });
    let role = RecountRole { is_enough, shutdown: shutdown.clone() };
    Driver::new(core, peers, Told::leaving_out(forgotten), role, meter).run()
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

impl<F: FnMut(&Told) -> bool> Role for RecountRole<F> {
    type Machine = Told;
    const ROLE: roles::admission::Role = roles::admission::Role::Directory;

    fn peer_event(event: PeerEvent) -> Option<DirectoryEvent> {
        event_of(event)
    }

    fn effect(&mut self, effect: DirectoryEffect, world: &mut World<'_, Self>) -> Result<(), HostError> {
        match effect {
            DirectoryEffect::Send { to, packet } => world.peers.send(to, &packet),
            DirectoryEffect::Tell(_) => unreachable!("no view is changed while bricks are counted"),
            DirectoryEffect::Shard { .. } => unreachable!("nobody asks for objects while bricks are counted"),
            DirectoryEffect::Store { .. } => unreachable!("what is asked for is stored in the end, at once"),
        }
        Ok(())
    }

    fn measure(&mut self, machine: &Told, _now: Time, _meter: &mut Meter) {
        if (self.is_enough)(machine) {
            self.shutdown.request();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::BrickId;
    use wire::VolumeInfo;

    fn family(number: u64, id: u64, volumes: &[&str]) -> Family {
        let info = |name: &&str| VolumeInfo {
            family: VolumeId(id),
            ..VolumeInfo::new(VolumeId(id), *name, 4096, "raid1x3")
        };
        Family { number, volumes: volumes.iter().map(info).collect(), groups: Vec::new() }
    }

    #[test]
    fn families_are_known_by_their_latest_word_also_when_they_are_left_out() {
        let mut told = Told::leaving_out(&["a".to_owned()]);
        for (brick, families) in [
            (1, vec![family(2, 1, &["a", "a@new"]), family(1, 2, &["b"])]),
            (2, vec![family(1, 1, &["a", "a@old"]), family(0, 3, &["c"])]),
        ] {
            let brick = BrickId(brick);
            let message = Message::Recounted {
                brick,
                known: 1,
                groups: Vec::new(),
                families,
                time: base::ClusterTime::FIRST,
                from: None,
                next: None,
            };
            let event = DirectoryEvent::Packet { from: NodeId::Brick(brick), packet: message.into() };
            told.step(Time::ZERO, event, &mut Vec::new());
        }
        assert_eq!(told.volumes().collect::<Vec<_>>(), ["a", "a@new", "b", "c"]);
        assert_eq!(told.family_of("a@new"), ["a", "a@new"]);
        assert!(told.family_of("a@old").is_empty() && told.family_of("d").is_empty());
        let rebuilt = told.recount().verdict(true).unwrap();
        let volumes: Vec<_> = rebuilt.volumes.iter().map(|volume| &volume.name[..]).collect();
        assert_eq!(volumes, ["b", "c"]);
    }

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
