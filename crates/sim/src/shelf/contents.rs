//! What a disk holds: blocks with their stamps, writes in doubt, notes, and which requests took effect.

use base::{BLOCK, ClientId, HashMap, Payload, Stamp, VolumeId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wire::disk::{CLIENT_COMPLETIONS_MAX, INVENTORY_MAX, Recovered, Staged};
use wire::{Change, Completion, Span};

/// One block. A block that was never written has no stamps, and holds zeros.
#[derive(Clone, Debug, Default)]
struct Block {
    stamps: Vec<Stamp>,
    content: Payload,
}

#[derive(Debug, Default)]
pub(crate) struct Contents {
    identity: u64,
    volumes: Vec<VolumeId>,
    blocks: HashMap<(VolumeId, u64), Block>,
    staged: BTreeMap<Stamp, (Staged, Payload)>,
    notes: BTreeMap<Vec<u8>, Vec<u8>>,
    completions: BTreeMap<ClientId, VecDeque<Completion>>,
}

impl Contents {
    /// An empty disk that this tells from all others.
    pub(crate) fn new(identity: u64) -> Contents {
        Contents { identity, ..Contents::default() }
    }

    pub(super) fn identity(&self) -> u64 {
        self.identity
    }

    /// Which of the volumes on this disk this is, in the order in which they came.
    pub(super) fn number_of(&mut self, volume: VolumeId) -> u64 {
        let known = self.volumes.iter().position(|other| *other == volume);
        known.unwrap_or_else(|| {
            self.volumes.push(volume);
            self.volumes.len() - 1
        }) as u64
    }

    /// How many volumes there are on this disk.
    pub(super) fn volumes(&self) -> u64 {
        self.volumes.len() as u64
    }

    /// The volume of this number.
    pub(crate) fn volume(&self, number: u64) -> Option<VolumeId> {
        self.volumes.get(usize::try_from(number).ok()?).copied()
    }

    pub(super) fn recovered(&self) -> Recovered {
        Recovered {
            staged: self.staged.values().map(|(staged, _)| staged.clone()).collect(),
            completions: self.completions.values().flatten().cloned().collect(),
            notes: self.notes.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
        }
    }

    pub(super) fn staged(&self) -> impl Iterator<Item = &(Staged, Payload)> {
        self.staged.values()
    }

    pub(super) fn stage(&mut self, staged: Staged, payload: Payload) {
        self.staged.insert(staged.write.stamp, (staged, payload));
    }

    pub(super) fn take_staged(&mut self, stamp: Stamp) -> Option<(Staged, Payload)> {
        self.staged.remove(&stamp)
    }

    /// A write takes effect.
    pub(super) fn apply(&mut self, staged: &Staged, payload: &Payload) {
        let (span, stamp) = (staged.write.span, staged.write.stamp);
        let width = usize::from(staged.change.width());
        for (index, lba) in (span.lba..span.end()).enumerate() {
            let block = self.blocks.entry((span.volume, lba)).or_default();
            block.stamps.resize(width, Stamp::default());
            match &staged.change {
                Change::Data => block.content = payload.block(index),
                Change::Zero => block.content = Payload::new(),
                Change::Xor { index: moved, .. } => {
                    block.content = sum(&block.content, &payload.block(index));
                    block.stamps[usize::from(*moved)] = stamp;
                    continue;
                }
                Change::Parity { .. } => block.content = payload.block(index),
            }
            block.stamps.fill(stamp);
        }
        let (request, part) = (staged.request, staged.part);
        self.remember(vec![Completion { request, part, stamp }]);
    }

    /// Content with these stamps is in place.
    pub(super) fn put(&mut self, span: Span, stamps: &[Stamp], width: usize, payload: &Payload) {
        for (index, lba) in (span.lba..span.end()).enumerate() {
            let stamps = stamps[index * width..(index + 1) * width].to_vec();
            let content = if payload.is_empty() { Payload::new() } else { payload.block(index) };
            self.blocks.insert((span.volume, lba), Block { stamps, content });
        }
    }

    /// Stamps, `width` a block, and content if it is wanted.
    pub(super) fn get(&self, span: Span, width: usize, content: bool) -> (Vec<Stamp>, Payload) {
        let mut stamps = Vec::with_capacity(span.count as usize * width);
        let mut bytes = Payload::new();
        for lba in span.lba..span.end() {
            let block = self.blocks.get(&(span.volume, lba));
            let known = block.map_or(&[][..], |block| &block.stamps);
            stamps.extend((0..width).map(|at| known.get(at).copied().unwrap_or_default()));
            if content {
                match block.filter(|block| !block.content.is_empty()) {
                    Some(block) => bytes.append(&block.content),
                    None => bytes.append(&Payload::zeros(BLOCK)),
                }
            }
        }
        (stamps, bytes)
    }

    pub(super) fn note(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        match value {
            Some(value) => drop(self.notes.insert(key, value)),
            None => drop(self.notes.remove(&key)),
        }
    }

    pub(super) fn remember(&mut self, completions: Vec<Completion>) {
        for completion in completions {
            let of_client = self.completions.entry(completion.request.client).or_default();
            if of_client.len() >= CLIENT_COMPLETIONS_MAX {
                of_client.pop_front();
            }
            of_client.push_back(completion);
        }
    }

    /// Which blocks hold data, in runs.
    pub(super) fn allocation(&self, span: Span) -> Vec<(u32, bool)> {
        let mut runs: Vec<(u32, bool)> = Vec::new();
        for lba in span.lba..span.end() {
            let holds = self.blocks.get(&(span.volume, lba)).is_some_and(|block| !block.content.is_empty());
            match runs.last_mut() {
                Some((count, same)) if *same == holds => *count += 1,
                _ => runs.push((1, holds)),
            }
        }
        runs
    }

    /// Stretches that hold stamps, after this one, in order.
    pub(super) fn stretches(&self, after: Option<(VolumeId, u64)>) -> Vec<(VolumeId, u64)> {
        let stretch = |(volume, lba): &(VolumeId, u64)| (*volume, lba / Span::STRETCH_BLOCKS);
        let all: BTreeSet<(VolumeId, u64)> = self.blocks.keys().map(stretch).collect();
        all.into_iter()
            .filter(|stretch| after.is_none_or(|after| *stretch > after))
            .take(INVENTORY_MAX)
            .collect()
    }

    /// A volume, or one stretch of it, is given back.
    pub(super) fn discard(&mut self, volume: VolumeId, stretch: Option<u64>) {
        let is_meant = |(of, lba): &(VolumeId, u64)| {
            *of == volume && stretch.is_none_or(|stretch| lba / Span::STRETCH_BLOCKS == stretch)
        };
        self.blocks.retain(|key, _| !is_meant(key));
    }
}

fn sum(base: &Payload, delta: &Payload) -> Payload {
    if base.is_empty() { delta.clone() } else { Payload::from(base.xor(delta).to_vec()) }
}
