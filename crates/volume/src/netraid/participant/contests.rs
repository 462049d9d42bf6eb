//! Reads that other members were asked for as well: one of them claims each, by the rules of
//! [`reads::distribute::claim`], and the others drop it.
//!
//! A claim says who does the work, and nothing about who may answer: that is decided when the read is served, as for any
//! other read. So a claim that is lost, late or a lie costs a second service, or the asker's patience, and no more.

use super::context::{Context, Effect, ReadRequest};
use crate::netraid::order::waiting::QUEUE_MAX;
use base::{
    BrickId, Depth, GatewayId, GroupId, HashMap, Machine, NodeId, Payload, StreamId, Time, ViewNumber,
    VolumeId,
};
use reads::distribute::claim::{
    Attempt, Claims, Config, Counts, Dropped, Effect as ClaimEffect, Event, Holders, ReadId,
    estimate::{Calibration, Estimate},
};
use rules::counters::Counter;
use rules::fair::Unserved;
use std::collections::VecDeque;
use wire::disk::{Command, Contested};
use wire::{Claim, Message, ReadOutcome, Slots};

/// The time that messages between bricks are reckoned with at least; what is measured is added to it.
const ONE_WAY_NS: u64 = 100_000;
/// Accesses that a disk is given at a time: the others wait where another member can still claim them.
const DEPTH: u32 = 32;
const EARLY_MAX: usize = 64;
/// Reads of so many blocks are left to one member, where bids are alike: 64 KiB.
const SPREAD_BLOCKS: u64 = 16;

/// A read that the store works on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    at: Time,
    /// Reads under way with it; 0 for one that the disk need not be asked for.
    depth: u32,
    blocks: u32,
    /// Whether it counts among those that [`Claims`] has issued.
    claimed: bool,
}

/// What becomes of a contested read that comes.
pub(super) enum Entry {
    /// It makes no sense as such: it is served like any other.
    Alone(ReadRequest),
    /// The disk finds out who serves it.
    AtDisk(ReadRequest, Contested),
    /// It waits to be claimed, or was dropped.
    Taken,
}

/// A contested read at a disk whose head is seen.
#[derive(Clone, Copy, Debug)]
struct AtDisk {
    /// The block that it begins with.
    volume: VolumeId,
    lba: u64,
    /// Whether the disk has claimed it.
    is_claimed: bool,
}

/// How a contested read ended at a disk whose head is seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DiskEnd {
    /// Another member serves it.
    Left,
    Served,
    /// There is no content to answer with: others may have it.
    Refused,
}

/// Who was asked, as the gateway names them.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Asked {
    group: GroupId,
    view: ViewNumber,
    slots: Slots,
}

/// Contested reads at one disk.
pub(super) struct Contests {
    me: BrickId,
    claims: Claims<Estimate, ReadRequest>,
    calibration: Calibration,
    out: Vec<(BrickId, Claim)>,
    fx: Vec<ClaimEffect<ReadRequest>>,
    /// Claims that came without their read, the latest ones.
    early: VecDeque<(NodeId, u64)>,
    /// Whether the disk shows its head, and chooses among contested reads itself.
    heads_seen: bool,
    /// Contested reads at such a disk or in the memory before it.
    at_disk: HashMap<ReadId, AtDisk>,
    /// Those who were asked last: most reads that follow each other are asked of the same.
    holders: Option<(Asked, Holders)>,
    /// Reads that had their turn and are not served here: of which stream, of how many blocks, and why.
    unserved: Vec<(StreamId, u32, Unserved)>,
}

impl Contests {
    pub(super) fn new(me: BrickId, calibration: Calibration) -> Contests {
        Contests {
            me,
            claims: Claims::new(
                Config { waiting_max: QUEUE_MAX, ..Config::flash(me, ONE_WAY_NS, DEPTH) },
                Estimate::new(calibration.access_ns),
            ),
            calibration,
            out: Vec::new(),
            fx: Vec::new(),
            early: VecDeque::new(),
            heads_seen: false,
            at_disk: HashMap::default(),
            holders: None,
            unserved: Vec::new(),
        }
    }

    pub(super) fn counts(&self) -> Counts {
        self.claims.counts()
    }

    /// Reads that wait to be claimed.
    pub(super) fn waiting(&self) -> usize {
        self.claims.waiting()
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.claims.deadline().map(|(at, _)| at)
    }

    /// A read of so many blocks goes to the store.
    pub(super) fn begin(&mut self, now: Time, claimed: bool, content: bool, blocks: u32) -> Begun {
        let depth = if content { self.claims.device_mut().begin() } else { 0 };
        Begun { at: now, depth, blocks, claimed }
    }

    pub(super) fn check(&self, deep: bool) {
        assert!(self.claims.waiting() <= QUEUE_MAX, "contested reads are bounded");
        self.claims.check(if deep { Depth::Deep } else { Depth::Cheap });
    }

    /// A read that had its turn is not served here. Always true.
    pub(super) fn note_unserved(&mut self, read: &ReadRequest, why: Unserved) -> bool {
        self.unserved.push((read.service.stream, read.span.count, why));
        true
    }

    /// Reads that had their turn and are not served here: of which stream, of how many blocks, and why.
    pub(super) fn take_unserved(&mut self) -> Vec<(StreamId, u32, Unserved)> {
        core::mem::take(&mut self.unserved)
    }

    /// Remembers what is to be told to other members.
    fn note_claims(&mut self, fx: &[ClaimEffect<ReadRequest>]) {
        for (at, effect) in fx.iter().enumerate() {
            let ClaimEffect::Claim { attempt, bid_ns, holders } = effect else { continue };
            // What is issued with its claim has left the queue already.
            let issued = fx[at..].iter().find_map(|effect| match effect {
                ClaimEffect::Issue { item } if is_of(item, attempt.read) => Some(item),
                _ => None,
            });
            let Some(read) = issued.or_else(|| self.claims.get(attempt.read)) else { continue };
            let (volume, lba) = (read.span.volume, read.span.lba);
            let ReadId { asker, sequence: number } = attempt.read;
            let claim = Claim { gateway: GatewayId(asker), number, volume, lba, bid_ns: *bid_ns };
            let others = holders.iter().filter(|brick| **brick != self.me);
            self.out.extend(others.map(|brick| (*brick, claim)));
        }
    }

    fn count_drop(&mut self, cx: &mut Context<'_>, read: &ReadRequest, why: Dropped) {
        let number = read.contest.map_or(0, |contest| contest.number);
        cx.counters.count(match why {
            Dropped::Claimed(_) => Counter::ReadLeftToAnotherMember,
            Dropped::Squashed if self.was_claimed(read.from, number) => Counter::ClaimOvertookItsRead,
            Dropped::Squashed => Counter::ContestedReadCameTwice,
            Dropped::Full => Counter::ContestedReadFoundTheQueueFull,
            Dropped::Cancelled => Counter::ContestedReadCancelled,
        });
    }

    /// A claim came of a read that is not here: it may be on its way.
    fn note_early(&mut self, asker: NodeId, claim: &Claim) {
        if self.early.len() >= EARLY_MAX {
            self.early.pop_front();
        }
        self.early.push_back((asker, claim.number));
    }

    /// Whether a claim of this read came without it, lately.
    pub(super) fn was_claimed(&self, asker: NodeId, number: u64) -> bool {
        self.early.contains(&(asker, number))
    }

    /// Who was asked, if that makes sense: this brick and others.
    fn holders(&mut self, cx: &Context<'_>, read: &ReadRequest, slots: Slots) -> Option<Holders> {
        let key = Asked { group: read.group, view: read.view, slots };
        if let Some((known, holders)) = &self.holders
            && *known == key
        {
            return Some(holders.clone());
        }
        let view = cx.groups.active(read.group)?;
        let bricks = slots.iter().map(|slot| view.members.get(usize::from(slot)).copied());
        let holders: Holders = bricks.collect::<Option<Vec<BrickId>>>()?.into();
        if holders.len() < 2 || !holders.contains(&self.me) {
            return None;
        }
        self.holders = Some((key, holders.clone()));
        Some(holders)
    }

    /// Claims to be told, and whom.
    pub(super) fn take_claims(&mut self) -> impl Iterator<Item = (BrickId, Claim)> + use<> {
        core::mem::take(&mut self.out).into_iter()
    }

    /// Another member serves a read.
    pub(super) fn on_claim(&mut self, cx: &mut Context<'_>, from: BrickId, claim: Claim) {
        let attempt = attempt(claim.gateway.0, claim.number);
        if self.heads_seen {
            if !self.at_disk.contains_key(&attempt.read) {
                self.note_early(NodeId::Gateway(claim.gateway), &claim);
            }
            return cx.fx.push(Effect::Claimed { attempt, bid_ns: claim.bid_ns, brick: from });
        }
        if self.claims.get(attempt.read).is_none() {
            self.note_early(NodeId::Gateway(claim.gateway), &claim);
        }
        self.step(cx, Event::Claim { attempt, bid_ns: claim.bid_ns, brick: from });
    }

    /// A read that others were asked for, too, of blocks without a write in doubt.
    pub(super) fn enter(&mut self, cx: &mut Context<'_>, read: ReadRequest) -> Entry {
        let (NodeId::Gateway(gateway), Some(contest)) = (read.from, read.contest) else {
            return Entry::Alone(read);
        };
        let Some(holders) = self.holders(cx, &read, contest.holders) else {
            cx.counters.count(Counter::ContestedReadThatMakesNoSenseServedAlone);
            return Entry::Alone(read);
        };
        if self.at_disk.len() >= QUEUE_MAX {
            answer(cx, &read, ReadOutcome::Busy, Payload::new());
            return Entry::Taken;
        }
        let attempt = attempt(gateway.0, contest.number);
        if self.heads_seen && read.content {
            let (volume, lba) = (read.span.volume, read.span.lba);
            self.at_disk.insert(attempt.read, AtDisk { volume, lba, is_claimed: false });
            return Entry::AtDisk(read, Contested { attempt, holders });
        }
        // There is no arm whose way would depend on the sector.
        let (sector, data) =
            (read.span.lba * 8, (read.span.volume.0 << 24) ^ (read.span.lba / SPREAD_BLOCKS));
        self.step(
            cx,
            match contest.tied {
                true => Event::Tied { attempt, sector, holders, item: read },
                false => Event::Read { attempt, data, sector, holders, item: read },
            },
        );
        Entry::Taken
    }

    /// From now on the disk shows its head, or does not.
    pub(super) fn see_heads(&mut self, seen: bool) {
        self.heads_seen = seen;
    }

    /// The disk is about to serve a contested read.
    pub(super) fn on_disk_claims(&mut self, attempt: Attempt, bid_ns: u64, holders: &Holders) {
        let Some(at_disk) = self.at_disk.get_mut(&attempt.read) else { return };
        at_disk.is_claimed = true;
        let AtDisk { volume, lba, .. } = *at_disk;
        self.tell_others(attempt, (volume, lba), bid_ns, holders);
    }

    fn tell_others(
        &mut self,
        attempt: Attempt,
        (volume, lba): (VolumeId, u64),
        bid_ns: u64,
        holders: &Holders,
    ) {
        let (gateway, number) = (GatewayId(attempt.read.asker), attempt.read.sequence);
        let claim = Claim { gateway, number, volume, lba, bid_ns };
        let others = holders.iter().filter(|brick| **brick != self.me);
        self.out.extend(others.map(|brick| (*brick, claim)));
    }

    /// A read left the disk. Whether it was left to another member, so that nobody needs an answer from here.
    pub(super) fn left_disk(&mut self, cx: &mut Context<'_>, read: &ReadRequest, end: DiskEnd) -> bool {
        let (NodeId::Gateway(gateway), Some(contest)) = (read.from, read.contest) else { return false };
        let attempt = attempt(gateway.0, contest.number);
        let Some(AtDisk { volume, lba, is_claimed }) = self.at_disk.remove(&attempt.read) else {
            return false;
        };
        match end {
            DiskEnd::Left => {
                self.note_unserved(read, Unserved::ByAnother);
                cx.counters.count(Counter::ReadLeftAtItsDisk);
                cx.counters.count(Counter::ReadLeftToAnotherMember);
            }
            // From memory, which costs nothing: nobody else need read it (D-SPTF, section 3).
            DiskEnd::Served if !is_claimed => {
                if let Some(holders) = self.holders(cx, read, contest.holders) {
                    self.tell_others(attempt, (volume, lba), 0, &holders);
                }
            }
            DiskEnd::Served | DiskEnd::Refused => {}
        }
        end == DiskEnd::Left
    }

    /// The store has answered.
    pub(super) fn on_served(&mut self, cx: &mut Context<'_>, begun: Begun) {
        if begun.depth > 0 {
            let took_ns = u64::try_from(cx.now.since(begun.at).as_nanos()).unwrap_or(u64::MAX);
            let access_ns = self.calibration.access_of(begun.blocks, took_ns);
            self.claims.device_mut().end(begun.depth, access_ns);
        }
        if begun.claimed {
            self.step(cx, Event::Done);
        }
    }

    /// Whose turn it is after a batch: each read that is issued goes to `serve`, which says whether the disk has it.
    pub(super) fn settle(
        &mut self,
        cx: &mut Context<'_>,
        mut serve: impl FnMut(&mut Contests, &mut Context<'_>, ReadRequest) -> bool,
    ) {
        let mut fx = core::mem::take(&mut self.fx);
        self.claims.settle(cx.now, &mut fx);
        while !fx.is_empty() {
            self.note_claims(&fx);
            let mut returned = 0;
            for effect in fx.drain(..) {
                match effect {
                    ClaimEffect::Claim { .. } => {}
                    ClaimEffect::Issue { item } => returned += usize::from(!serve(self, cx, item)),
                    ClaimEffect::Drop { item, why } => self.drop_read(cx, &item, why),
                }
            }
            for _ in 0..returned {
                self.claims.step(cx.now, Event::Done, &mut fx);
            }
            self.claims.settle(cx.now, &mut fx);
        }
        self.fx = fx;
    }

    /// What a step leaves is dropped reads; claims and turns follow with the batch's end.
    fn step(&mut self, cx: &mut Context<'_>, event: Event<ReadRequest>) {
        let mut fx = core::mem::take(&mut self.fx);
        self.claims.step(cx.now, event, &mut fx);
        for effect in fx.drain(..) {
            if let ClaimEffect::Drop { item, why } = effect {
                self.drop_read(cx, &item, why);
            }
        }
        self.fx = fx;
    }

    fn drop_read(&mut self, cx: &mut Context<'_>, read: &ReadRequest, why: Dropped) {
        self.count_drop(cx, read, why);
        let is_claimed = matches!(why, Dropped::Claimed(_));
        self.note_unserved(read, if is_claimed { Unserved::ByAnother } else { Unserved::Dropped });
        match why {
            Dropped::Full => answer(cx, read, ReadOutcome::Busy, Payload::new()),
            // The claimer has the blocks in memory from now on.
            Dropped::Claimed(_) => cx.store(Command::Forget { span: read.span }),
            Dropped::Squashed | Dropped::Cancelled => {}
        }
    }
}

pub(super) fn answer(cx: &mut Context<'_>, read: &ReadRequest, outcome: ReadOutcome, content: Payload) {
    let message = Message::ReadDone { operation: read.operation, outcome, wait: read.stay.wait(cx.now) };
    cx.answer(read.from, (read.service, read.stay), message, content);
}

fn is_of(read: &ReadRequest, id: ReadId) -> bool {
    read.from == NodeId::Gateway(GatewayId(id.asker)) && read.contest.is_some_and(|c| c.number == id.sequence)
}

fn attempt(gateway: u64, number: u64) -> Attempt {
    // Whoever asks again does so under another number, or without a contest.
    Attempt { read: ReadId { asker: gateway, sequence: number }, number: 0 }
}
