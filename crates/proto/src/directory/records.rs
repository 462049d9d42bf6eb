//! What the directory keeps on stable storage: a record a brick, a volume and a group, and one of counters.
//!
//! Keys: `b` + brick, `v` + volume, `g` + group, `d` + version (a deleted volume), `m` (the counters).

use super::Put;
use base::{BrickId, GroupId, VolumeId};
use std::collections::BTreeMap;
use wire::{BrickStatus, GroupView, VolumeInfo, Wire, wire_struct};

/// A brick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BrickRecord {
    /// Of its admission.
    pub(super) nonce: u64,
    pub(super) address: String,
    pub(super) labels: Vec<(String, String)>,
}

/// A volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VolumeRecord {
    pub(super) info: VolumeInfo,
    pub(super) groups: Vec<GroupId>,
    /// Of its creation.
    pub(super) nonce: u64,
    /// All of its groups have begun their first view.
    pub(super) ready: bool,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GroupRecord {
    pub(super) volume: VolumeId,
    /// The view in force; `None` before the first.
    pub(super) active: Option<GroupView>,
    /// The view that is being made.
    pub(super) next: Option<GroupView>,
    /// The map's version at which `active` began.
    pub(super) changed: u64,
}

/// The counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    /// The map's version: grows with every change that bricks or gateways must learn of.
    pub(super) version: u64,
    pub(super) next_brick: u32,
    pub(super) next_volume: u64,
    pub(super) next_group: u64,
    pub(super) next_writer: u16,
}

wire_struct!(BrickRecord { nonce, address, labels });
wire_struct!(VolumeRecord { info, groups, nonce, ready });
wire_struct!(GroupRecord { volume, active, next, changed });
wire_struct!(Counts { version, next_brick, next_volume, next_group, next_writer });

impl BrickRecord {
    pub(super) fn fits(&self, status: &BrickStatus) -> bool {
        self.address == status.address && self.labels == status.labels
    }
}

/// All records.
#[derive(Debug)]
pub(super) struct Records {
    pub(super) bricks: BTreeMap<BrickId, BrickRecord>,
    pub(super) volumes: BTreeMap<VolumeId, VolumeRecord>,
    pub(super) groups: BTreeMap<GroupId, GroupRecord>,
    /// Deleted volumes, by the version at which they were.
    pub(super) deleted: BTreeMap<u64, VolumeId>,
    pub(super) counts: Counts,
}

const COUNTS_KEY: &[u8] = b"m";

fn key(prefix: u8, id: &impl Wire) -> Vec<u8> {
    let mut key = vec![prefix];
    id.encode(&mut key);
    key
}

impl Records {
    /// What the store holds.
    pub(super) fn load(contents: &[(Vec<u8>, Vec<u8>)]) -> Result<Records, String> {
        let counts = Counts { version: 1, next_brick: 1, next_volume: 1, next_group: 1, next_writer: 1 };
        let mut records = Records {
            bricks: BTreeMap::new(),
            volumes: BTreeMap::new(),
            groups: BTreeMap::new(),
            deleted: BTreeMap::new(),
            counts,
        };
        for (key, value) in contents {
            records
                .take_in(key, value)
                .map_err(|why| format!("the directory's record {key:02x?} is corrupt: {why}"))?;
        }
        Ok(records)
    }

    /// Volumes whose groups have all begun are ready. Those whose making stopped before all their groups were stored are
    /// forgotten: nobody was told that they exist.
    pub(super) fn finish_or_drop_volumes(&mut self) {
        let groups = &self.groups;
        for record in self.volumes.values_mut() {
            let has_begun = |group| groups.get(group).is_some_and(|record| record.active.is_some());
            record.ready |= record.groups.iter().all(has_begun);
        }
        self.volumes
            .retain(|_, record| record.ready || record.groups.iter().all(|group| groups.contains_key(group)));
        let volumes = &self.volumes;
        self.groups.retain(|_, record| volumes.contains_key(&record.volume));
    }

    fn take_in(&mut self, key: &[u8], value: &[u8]) -> Result<(), wire::DecodeError> {
        let Some((prefix, id)) = key.split_first() else { return Ok(()) };
        match prefix {
            b'b' => drop(self.bricks.insert(Wire::from_bytes(id)?, Wire::from_bytes(value)?)),
            b'v' => drop(self.volumes.insert(Wire::from_bytes(id)?, Wire::from_bytes(value)?)),
            b'g' => drop(self.groups.insert(Wire::from_bytes(id)?, Wire::from_bytes(value)?)),
            b'd' => drop(self.deleted.insert(Wire::from_bytes(id)?, Wire::from_bytes(value)?)),
            b'm' => self.counts = Wire::from_bytes(value)?,
            _ => return Err(wire::DecodeError::OutOfRange { what: "key of a record" }),
        }
        Ok(())
    }

    /// The put that makes a brick's record durable.
    pub(super) fn put_brick(&self, id: BrickId) -> Put {
        (key(b'b', &id), self.bricks.get(&id).map(Wire::to_bytes))
    }

    /// The put that makes a volume's record, or its absence, durable.
    pub(super) fn put_volume(&self, id: VolumeId) -> Put {
        (key(b'v', &id), self.volumes.get(&id).map(Wire::to_bytes))
    }

    /// The put that makes a group's record, or its absence, durable.
    pub(super) fn put_group(&self, id: GroupId) -> Put {
        (key(b'g', &id), self.groups.get(&id).map(Wire::to_bytes))
    }

    /// The put that makes a deletion durable.
    pub(super) fn put_deleted(&self, version: u64) -> Put {
        (key(b'd', &version), self.deleted.get(&version).map(Wire::to_bytes))
    }

    /// The put that makes the counters durable.
    pub(super) fn put_counts(&self) -> Put {
        (COUNTS_KEY.to_vec(), Some(self.counts.to_bytes()))
    }

    /// The next version of the map.
    pub(super) fn bump(&mut self) -> u64 {
        self.counts.version += 1;
        self.counts.version
    }

    pub(super) fn volume_named(&self, name: &str) -> Option<&VolumeRecord> {
        self.volumes.values().find(|volume| volume.info.name == name)
    }
}
