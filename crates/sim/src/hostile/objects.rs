//! Objects in the cluster of lies: the stores of the index, and what their records must be whatever is said.

use base::{ObjectVersion, Payload, checksum};
use objects::index::{IndexConfig, Page, Pair, Put, ShardEffect, ShardEvent};
use objects::object::{
    AccessStrategy, Manifest, NewObject, ObjectNews, ObjectWish, SegmentRecord, WantedObject,
};
use std::collections::BTreeMap;
use wire::{IndexRequest, Message, ObjectName};

type Store = BTreeMap<Vec<u8>, Vec<u8>>;

/// The keys of manifests begin with this byte, and the version follows.
const MANIFESTS: u8 = b'v';

pub(super) struct Objects {
    shards: Vec<Store>,
    /// What each version was when it became visible.
    first: BTreeMap<ObjectVersion, Manifest>,
    /// The content of puts that are under way.
    contents: BTreeMap<u64, Payload>,
    /// Objects that were put.
    pub(super) put: usize,
}

impl Objects {
    pub(super) fn new() -> Objects {
        let shards = vec![Store::new(); usize::from(IndexConfig::USUAL.shards)];
        Objects { shards, first: BTreeMap::new(), contents: BTreeMap::new(), put: 0 }
    }

    /// What a store of the index does, at once.
    pub(super) fn serve(&mut self, shard: u16, effect: ShardEffect) -> ShardEvent {
        let store = &mut self.shards[usize::from(shard)];
        match effect {
            ShardEffect::Read { token, pages } => {
                ShardEvent::Read { token, result: Ok(pages.iter().map(|page| read(store, page)).collect()) }
            }
            ShardEffect::Store { token, puts } => {
                puts.into_iter().for_each(|put| self.apply(shard, put));
                ShardEvent::Stored { token, result: Ok(()) }
            }
        }
    }

    fn apply(&mut self, shard: u16, (key, value): Put) {
        if let Some(version) = version_of(&key) {
            match &value {
                Some(value) => self.check(version, value),
                None => drop(self.first.remove(&version)),
            }
        }
        let store = &mut self.shards[usize::from(shard)];
        match value {
            Some(value) => drop(store.insert(key, value)),
            None => drop(store.remove(&key)),
        }
    }

    /// What is stored of a version is a manifest, and what the version holds never changes.
    fn check(&mut self, version: ObjectVersion, value: &[u8]) {
        let read = Manifest::read(value, version);
        let read =
            read.unwrap_or_else(|why| panic!("the index took a manifest of {version} that is none: {why}"));
        for segment in &read.segments {
            assert!(
                segment.coding.gives_its_blocks(),
                "{version} ends each brick that makes it again: {read:?}"
            );
        }
        match self.first.get(&version) {
            None => drop(self.first.insert(version, read)),
            Some(first) => {
                assert!(holds_the_same(first, &read), "{version} was another object: {first:?}, {read:?}")
            }
        }
    }

    /// What a brick might say that knows the record of an object: all but the manifest that takes its place.
    pub(super) fn amendment(&self, which: usize) -> Option<(ObjectVersion, u32, Vec<u8>)> {
        let records = self.shards.iter().flatten().filter_map(|(key, value)| Some((version_of(key)?, value)));
        let records: Vec<(ObjectVersion, &Vec<u8>)> = records.collect();
        let (version, manifest) = *records.get(which % records.len().max(1))?;
        Some((version, checksum(manifest), manifest.clone()))
    }

    pub(super) fn put(&mut self, tag: u64, key: usize, content: Payload) -> ObjectWish {
        self.contents.insert(tag, content);
        ObjectWish::Put(NewObject::usual(name(key)))
    }

    pub(super) fn get(key: usize) -> ObjectWish {
        ObjectWish::Get(WantedObject { name: name(key), range: None, access: AccessStrategy::USUAL })
    }

    /// What whoever puts or reads does next.
    pub(super) fn on_news(&mut self, tag: u64, news: &ObjectNews) -> Option<ObjectWish> {
        match news {
            ObjectNews::WantsContent { .. } => {
                let content = self.contents.remove(&tag)?;
                Some(ObjectWish::Content { content, is_last: true })
            }
            ObjectNews::Content(_) => Some(ObjectWish::More),
            ObjectNews::Put(result) => {
                self.put += usize::from(result.is_ok());
                self.contents.remove(&tag);
                None
            }
            _ => None,
        }
    }
}

/// The manifest that a message commits, if it does.
pub(super) fn committed(message: &mut Message) -> Option<&mut Vec<u8>> {
    let Message::Index { request, .. } = message else { return None };
    match &mut **request {
        IndexRequest::Commit { manifest, .. } => Some(manifest),
        _ => None,
    }
}

pub(super) fn amend((version, was, manifest): (ObjectVersion, u32, Vec<u8>)) -> IndexRequest {
    IndexRequest::Amend { version, was, manifest }
}

fn name(key: usize) -> ObjectName {
    ObjectName { bucket: "bucket".to_owned(), key: format!("k{}", key % 4) }
}

fn version_of(key: &[u8]) -> Option<ObjectVersion> {
    let (first, version) = key.split_first()?;
    let version = version.try_into().ok().filter(|_| *first == MANIFESTS)?;
    Some(ObjectVersion(u64::from_be_bytes(version)))
}

fn read(store: &Store, page: &Page) -> Vec<Pair> {
    let range = store.range(page.from.clone()..page.to.clone()).take(page.limit as usize);
    let value = |value: &Vec<u8>| if page.values { value.clone() } else { Vec::new() };
    range.map(|(key, of)| (key.clone(), value(of))).collect()
}

fn holds_the_same(first: &Manifest, now: &Manifest) -> bool {
    let content = |segment: &SegmentRecord| {
        let SegmentRecord { version, bytes, checksum, coding, symbol_blocks, .. } = *segment;
        (version, bytes, checksum, coding, symbol_blocks)
    };
    first.losses == now.losses && first.segments.iter().map(content).eq(now.segments.iter().map(content))
}
