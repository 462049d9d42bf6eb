//! An index that is made with objects in it: what its shards would have stored if each object had been put, one after the other, while nobody did anything
//! else. For measurements that need more objects than are put in an hour.
//!
//! It is made of what shards are made of: ids are given out as they give them out, and a version that is visible has the records that it has there. The record of
//! a version that is being put is left out, as it goes when the version becomes visible.

use super::ids::Ids;
use super::keys::{self, NameRecord};
use super::{IndexConfig, Put, shard, shard_of_name};
use crate::object::Manifest;
use wire::{ObjectName, Wire};

/// An object without content, of which no brick has anything.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EmptyObject {
    pub name: ObjectName,
    /// As many bricks may be lost as it was put to survive.
    pub losses: u32,
    /// By the putter's clock, in milliseconds since 1970.
    pub put_ms: u64,
}

/// An index in the making.
#[derive(Debug)]
pub struct Filling {
    shards: Vec<Ids>,
}

impl Filling {
    /// Nothing is in it yet.
    pub fn new(config: &IndexConfig) -> Filling {
        let ids = |shard| Ids::start(shard, config.drawn, None, None).expect("nothing is there to be read");
        Filling { shards: (0..config.count()).map(ids).collect() }
    }

    /// Which shard has the object, and what is kept of it: under its name, and then under its version. Keys of later versions come later. Nothing of
    /// this name may be there yet.
    ///
    /// # Errors
    /// What is wrong with its name.
    pub fn put(&mut self, object: &EmptyObject) -> Result<(u16, [Put; 2]), String> {
        let EmptyObject { ref name, losses, put_ms } = *object;
        name.check()?;
        let shard = shard_of_name(&keys::name(name), self.shards.len());
        let (version, _) = self.shards[shard].take();
        let manifest = Manifest { segments: Vec::new(), losses };
        let record = NameRecord { info: manifest.info(version, put_ms), shares: Vec::new() };
        Ok((shard as u16, shard::visible(name, &record, manifest.to_bytes())))
    }

    /// What a shard keeps of the ids that it has given out: goes with the objects that have them, ahead of them in the order of keys.
    pub fn given_out(&mut self, shard: u16) -> [Put; 2] {
        let ids = &mut self.shards[usize::from(shard)];
        let counts = ids.counts().to_bytes();
        [(keys::COUNTS.to_vec(), Some(counts)), (keys::LIVES.to_vec(), Some(ids.lives().to_bytes()))]
    }
}
