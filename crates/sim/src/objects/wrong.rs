//! A fragment that passes its checksums, and is of other content than was put: its object is read all the same, and it is replaced.

use super::named::NAMES;
use crate::world::World;
use crate::world::event::Input;
use base::{BLOCK, BrickId, Payload, StreamId};
use objects::object::{AccessStrategy, Coding, Expected, Get, Manifest, Placing, Put};
use wire::ObjectInfo;

/// So often an object is read: the wrong fragment need not be one of those that a reader asks for.
const READS: u32 = 4;

/// The first symbol of a segment, which is its first block.
struct First {
    number: u32,
    brick: BrickId,
    right: Expected,
}

impl World {
    /// Makes a fragment of each object wrong, and reads the object, which must come back as it was put. Whoever came across the fragment has replaced it.
    pub(super) fn audit_wrong_fragments(&mut self) {
        let lost = self.lost_of_objects();
        for name in 0..NAMES.len() {
            if self.shape.disks.are_small || !self.judges.are_content() {
                return;
            }
            let Some(Ok((info, manifest))) = self.look_at_object(name) else { continue };
            let losses = self.named.as_ref().and_then(|named| named.losses_of(&info, lost)).unwrap_or(0);
            let is_wrong = losses > 0 && self.make_wrong(&info, &manifest).unwrap_or(false);
            for _ in (0..READS).take_while(|_| is_wrong) {
                self.read_object(name);
                if self.is_right(name) == Some(true) {
                    self.named.iter_mut().for_each(|named| named.count("wrong fragments replaced"));
                    break;
                }
            }
        }
    }

    /// Whether the object's first symbol is what it is to be; none where that cannot be said.
    fn is_right(&mut self, name: usize) -> Option<bool> {
        let (info, manifest) = self.look_at_object(name)?.ok()?;
        let First { number, brick, right } = self.first_of(&info, &manifest)?;
        let segment = &manifest.segments[number as usize];
        let get = Get {
            version: segment.version,
            segment: number,
            coding: Coding::Copies { blocks: 1 },
            symbol_blocks: segment.symbol_blocks,
            places: vec![(0, brick)],
            wanted: None,
            expected: Some(right),
            strategy: AccessStrategy::Speculative,
            stream: StreamId::default(),
        };
        Some(self.probe(|tag| Input::Get { tag, get: Box::new(get) })?.is_ok())
    }

    /// Puts other content in place of the object's first symbol. Whether that was done.
    fn make_wrong(&mut self, info: &ObjectInfo, manifest: &Manifest) -> Option<bool> {
        let First { number, brick, .. } = self.first_of(info, manifest)?;
        let segment = &manifest.segments[number as usize];
        let put = Put {
            version: segment.version,
            segment: number,
            coding: Coding::Copies { blocks: 1 },
            blocks: vec![Payload::from(vec![0x5a; segment.symbol_blocks as usize * BLOCK])],
            symbols: 1,
            least: 1,
            bricks: vec![brick],
            placing: Placing::ByPace,
            losses: 0,
            window: 1,
            stream: StreamId::default(),
        };
        Some(self.probe(|tag| Input::Put { tag, put: Box::new(put) })?.is_ok())
    }

    /// Of the last segment that has it.
    fn first_of(&self, info: &ObjectInfo, manifest: &Manifest) -> Option<First> {
        let named = self.named.as_ref()?;
        let bytes = named.bytes_of(&named.content_of(info)?);
        let mut at = 0;
        let mut found = None;
        for (number, segment) in (0..).zip(&manifest.segments) {
            let symbol_bytes = segment.symbol_blocks as usize * BLOCK;
            let end = at + symbol_bytes.min(segment.bytes as usize);
            let mut block = bytes.get(at..end)?.to_vec();
            block.resize(symbol_bytes, 0);
            let right = Expected { bytes: symbol_bytes as u32, checksum: base::checksum(&block) };
            let place = segment.places.iter().find(|(symbol, _)| *symbol == 0);
            found = place.map(|(_, brick)| First { number, brick: *brick, right }).or(found);
            at += segment.bytes as usize;
        }
        found
    }
}
