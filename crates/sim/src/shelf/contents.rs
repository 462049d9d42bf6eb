//! What a disk holds: blocks with their stamps, writes in doubt, notes, and which requests took effect.

use base::{BLOCK, ClientId, HashMap, Payload, Stamp, VolumeId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wire::disk::{CLIENT_COMPLETIONS_MAX, INVENTORY_MAX, Recovered, Staged};
use wire::{Change, Completion, Span};

/// Blocks that are kept together: a study may write millions of them.
const PAGE_BLOCKS: u64 = 8;

/// A block's stamps; none where it was never written. Data has one, and needs no memory of its own for it.
#[derive(Clone, Debug, Default)]
enum Stamps {
    #[default]
    None,
    One(Stamp),
    Many(Box<[Stamp]>),
}

impl Stamps {
    fn of(stamps: &[Stamp]) -> Stamps {
        match stamps {
            [] => Stamps::None,
            [stamp] => Stamps::One(*stamp),
            many => Stamps::Many(many.into()),
        }
    }

    fn all(&self) -> &[Stamp] {
        match self {
            Stamps::None => &[],
            Stamps::One(stamp) => core::slice::from_ref(stamp),
            Stamps::Many(stamps) => stamps,
        }
    }
}

/// Blocks that follow one another. Those that were never written hold zeros, and all do where no content is kept.
#[derive(Debug, Default)]
struct Page {
    stamps: [Stamps; PAGE_BLOCKS as usize],
    content: Option<Box<[Payload; PAGE_BLOCKS as usize]>>,
}

impl Page {
    fn holds(&self, at: usize) -> bool {
        self.content.as_ref().is_some_and(|content| !content[at].is_empty())
    }

    fn content(&self, at: usize) -> Payload {
        self.content.as_ref().map_or_else(Payload::new, |content| content[at].clone())
    }

    fn set_content(&mut self, at: usize, content: Payload) {
        if self.content.is_some() || !content.is_empty() {
            self.content.get_or_insert_default()[at] = content;
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Contents {
    identity: u64,
    volumes: Vec<VolumeId>,
    /// Whether it says that it is full, whatever it holds: volumes are to be put elsewhere.
    pub(crate) is_closed: bool,
    /// Whether blocks hold what was written, and not zeros.
    keeps_content: bool,
    /// By volume, and the number of the page in it.
    pages: HashMap<(VolumeId, u64), Page>,
    staged: BTreeMap<Stamp, (Staged, Payload)>,
    notes: BTreeMap<Vec<u8>, Vec<u8>>,
    completions: BTreeMap<ClientId, VecDeque<Completion>>,
}

impl Contents {
    /// An empty disk that this tells from all others.
    pub(crate) fn new(identity: u64, keeps_content: bool) -> Contents {
        Contents { identity, keeps_content, ..Contents::default() }
    }

    /// The page of a block, and its place there.
    fn page(&mut self, volume: VolumeId, lba: u64) -> (&mut Page, usize) {
        let page = self.pages.entry((volume, lba / PAGE_BLOCKS)).or_default();
        (page, (lba % PAGE_BLOCKS) as usize)
    }

    pub(super) fn identity(&self) -> u64 {
        self.identity
    }

    /// Which of the volumes on this disk this is, in the order in which they came.
    pub(crate) fn number_of(&mut self, volume: VolumeId) -> u64 {
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
            completions_max: usize::MAX,
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
            let keeps_content = self.keeps_content;
            let (page, at) = self.page(span.volume, lba);
            if let Change::Xor { index: moved, .. } | Change::Replace { index: moved, .. } = &staged.change {
                let mut stamps = page.stamps[at].all().to_vec();
                stamps.resize(width, Stamp::default());
                stamps[usize::from(*moved)] = stamp;
                page.stamps[at] = Stamps::of(&stamps);
                let is_sum = matches!(staged.change, Change::Xor { .. });
                if keeps_content {
                    let new = payload.block(index);
                    page.set_content(at, if is_sum { sum(&page.content(at), &new) } else { new });
                }
                continue;
            }
            page.stamps[at] = match width {
                1 => Stamps::One(stamp),
                width => Stamps::of(&vec![stamp; width]),
            };
            match &staged.change {
                Change::Data | Change::Parity { .. } if keeps_content => {
                    page.set_content(at, payload.block(index));
                }
                _ => page.set_content(at, Payload::new()),
            }
        }
        let (request, part) = (staged.request, staged.part);
        self.remember(vec![Completion { request, part, stamp }]);
    }

    /// Content with these stamps is in place.
    pub(crate) fn put(&mut self, span: Span, stamps: &[Stamp], width: usize, payload: &Payload) {
        for (index, lba) in (span.lba..span.end()).enumerate() {
            let has_content = self.keeps_content && !payload.is_empty();
            let content = if has_content { payload.block(index) } else { Payload::new() };
            let (page, at) = self.page(span.volume, lba);
            page.stamps[at] = Stamps::of(&stamps[index * width..(index + 1) * width]);
            page.set_content(at, content);
        }
    }

    /// Stamps, `width` a block, and content if it is wanted.
    pub(super) fn get(&self, span: Span, width: usize, content: bool) -> (Vec<Stamp>, Payload) {
        let mut stamps = Vec::with_capacity(span.count as usize * width);
        let mut bytes = Payload::new();
        for lba in span.lba..span.end() {
            let (page, place) =
                (self.pages.get(&(span.volume, lba / PAGE_BLOCKS)), (lba % PAGE_BLOCKS) as usize);
            let known = page.map_or(&[][..], |page| page.stamps[place].all());
            stamps.extend((0..width).map(|at| known.get(at).copied().unwrap_or_default()));
            if content && self.keeps_content {
                match page.filter(|page| page.holds(place)) {
                    Some(page) => bytes.append(&page.content(place)),
                    None => bytes.append(&Payload::zeros(BLOCK)),
                }
            }
        }
        if content && !self.keeps_content {
            bytes = Payload::zeros(span.bytes());
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
            let page = self.pages.get(&(span.volume, lba / PAGE_BLOCKS));
            let holds = page.is_some_and(|page| page.holds((lba % PAGE_BLOCKS) as usize));
            match runs.last_mut() {
                Some((count, same)) if *same == holds => *count += 1,
                _ => runs.push((1, holds)),
            }
        }
        runs
    }

    /// Stretches that hold stamps, after this one, in order.
    pub(super) fn stretches(&self, after: Option<(VolumeId, u64)>) -> Vec<(VolumeId, u64)> {
        let stretch = |(volume, page): &(VolumeId, u64)| (*volume, page * PAGE_BLOCKS / Span::STRETCH_BLOCKS);
        let all: BTreeSet<(VolumeId, u64)> = self.pages.keys().map(stretch).collect();
        all.into_iter()
            .filter(|stretch| after.is_none_or(|after| *stretch > after))
            .take(INVENTORY_MAX)
            .collect()
    }

    /// These blocks are as if they were never written.
    pub(super) fn erase(&mut self, span: Span) {
        self.put(span, &vec![Stamp::ZERO; span.count as usize], 1, &Payload::new());
        let is_blank = |page: &Page| page.stamps.iter().flat_map(Stamps::all).all(|stamp| stamp.is_zero());
        for number in span.lba / PAGE_BLOCKS..=(span.end() - 1) / PAGE_BLOCKS {
            let key = (span.volume, number);
            if self.pages.get(&key).is_some_and(is_blank) {
                self.pages.remove(&key);
            }
        }
    }

    /// A volume, or one stretch of it, is given back.
    pub(super) fn discard(&mut self, volume: VolumeId, stretch: Option<u64>) {
        let is_meant = |(of, page): &(VolumeId, u64)| {
            let is_in = |stretch| page * PAGE_BLOCKS / Span::STRETCH_BLOCKS == stretch;
            *of == volume && stretch.is_none_or(is_in)
        };
        self.pages.retain(|key, _| !is_meant(key));
    }
}

fn sum(base: &Payload, delta: &Payload) -> Payload {
    if base.is_empty() { delta.clone() } else { Payload::from(base.xor(delta).to_vec()) }
}
