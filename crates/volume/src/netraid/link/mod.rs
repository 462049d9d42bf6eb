//! A request whose parts are several writes, all of which take effect or none (`link`): the paper's *recording span* of arbitrary blocks
//! (Kenchammana-Hosekote et al., section 2.2.2), with linkage records.
//!
//! Each part is a write of its own, prepared at its members like any other, and names its *record* ([`wire::Link`]). The record is a write
//! as well: of a block beyond the volume's end, in the group with the lowest number among those of the parts. It is made when all
//! members have all parts, and not before; and no part is decided by itself any more. So all takes effect when the record is prepared at all its members, and
//! what becomes of a part that is left in doubt is what becomes of its record: [`super::settle`] asks for that one, and so does the directory when it makes a
//! view (`directory::change`). Both rest on what is shown of single writes, as the record is one: it is decided once, by any
//! settler or by its own group's change of view, and stands on all members like other content.
//!
//! A part that meets another write is refused and waits for nothing (order `ts`), and then all parts begin anew: two requests that each hold what the other one
//! wants come back at different times, and never wait for each other.
//!
//! Addresses of records are used again: [`super::context::links`].

mod decided;
mod inspect;
mod release;

use super::atomicity::two_phase::round::Origin;
use super::context::gates::Leaving;
use super::context::links::{Address, Kept, Records};
use super::context::stamps::LOAN_AGAIN;
use super::context::views::UNKNOWN_VOLUME;
use super::members::is_mirrored;
use super::operate::{Context, Operate};
use super::order::Manner;
use super::order::writer::spread;
use super::outcome::{Child, Held, Lack, OperationId, Outcome, Progress, Settled, Written};
use super::path::gw::{Content, Path};
use super::repair::RepairOperation;
use super::settle::SettleOperation;
use super::write::WriteOperation;
use crate::netraid::answer::NoAnswer;
use base::{BLOCK, GroupId, Payload, RequestId, Stamp, VolumeId};
use core::time::Duration;
use inspect::InspectOperation;
use release::ReleaseOperation;
use rules::counters::Counter;
use rules::layout::Geometry;
use wire::{IoError, Link, Order, Scope, Span, Wire, WriteId};

/// The most parts that are decided together: the record of so many fits into a block.
pub const PARTS_MAX: usize = 64;

/// The first address of records: no volume is as large.
pub const RECORDS: u64 = 1 << 43;

/// How many of those addresses each writer has for itself: of the numbers that the directory gives out there are 16,384.
pub const WRITER: u64 = 1 << 27;

/// How parts and records go to members: they wait for nobody.
const MANNER: Manner = Manner { members: Order::Ts, first_alone: false, refusals_max: Some(1) };

/// The record that decides a write, as its group knows it.
pub fn record_of(geometry: &Geometry, volume: VolumeId, link: Link) -> WriteId {
    let span = Span { volume, lba: link.lba(), count: 1 };
    // On all members where there are copies or parity; there is nothing to be gained from more than one brick otherwise.
    let is_redundant = is_mirrored(geometry) || geometry.layout().parity() > 0;
    let scope = if is_redundant { Scope::Row } else { Scope::Unit { index: 0 } };
    WriteId { group: link.group, span, stamp: link.stamp, scope, link: None }
}

/// How far the attempt is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Parts are being prepared; so many have not ended.
    Collecting { left: usize },
    /// All members have all parts, and the record is being made.
    Recording,
    /// It is being found out what became of the record.
    Asking,
}

/// What else than being held came of parts, and of the record.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Otherwise {
    /// One was refused.
    refused: bool,
    /// Some took effect before, in an attempt of which nothing else is known.
    had_taken_effect: Vec<u64>,
    /// Members have to be repaired.
    lacks: Vec<Lack>,
    error: Option<IoError>,
}

/// How often parts find current members that have to be repaired, before the request fails.
const REPAIRS_MAX: u32 = 20;

/// How long the parts have to be prepared, doubled with each attempt: one group that cannot be reached is not to keep others' blocks for long.
const COLLECTING: Duration = Duration::from_secs(2);
const COLLECTING_DOUBLINGS: u32 = 5;

struct Attempt {
    link: Link,
    /// What is at the record's address before.
    over: Stamp,
    branch: VolumeId,
    held: Vec<Held>,
    otherwise: Otherwise,
    stage: Stage,
}

/// Writes parts, and decides them together.
pub struct LinkOperation {
    parts: Vec<(Path, Origin)>,
    records: Records,
    refusals: u32,
    /// How often no address for the record was free.
    waits: u32,
    repairs: u32,
    /// Members that are being repaired, between two attempts.
    repairing: usize,
    attempt: Option<Attempt>,
}

type Linking = Progress<Result<Written, IoError>>;

impl LinkOperation {
    /// Of these parts, of which one at least is in the records' group.
    pub fn new(parts: Vec<(Path, Origin)>, records: Records) -> LinkOperation {
        debug_assert!(
            parts.len() <= PARTS_MAX && parts.iter().all(|(path, _)| path.group() >= records.group)
        );
        LinkOperation { parts, records, refusals: 0, waits: 0, repairs: 0, repairing: 0, attempt: None }
    }

    fn attempt(&mut self) -> &mut Attempt {
        self.attempt.as_mut().expect("what it began ends before the attempt does")
    }

    /// What parts were written where, for a gateway that finds the record.
    fn content(&self) -> Payload {
        let held = self.attempt.iter().flat_map(|attempt| &attempt.held);
        let mut block = held.map(|held| WriteId { link: None, ..held.write }).collect::<Vec<_>>().to_bytes();
        block.resize(BLOCK, 0);
        Payload::from(block)
    }

    /// All parts are prepared: the record is made.
    fn record(&mut self, cx: &mut Context<'_>) -> Linking {
        let block = self.content();
        let geometry = cx.views.geometry(self.records.group);
        let attempt = self.attempt();
        attempt.stage = Stage::Recording;
        let (link, branch, over) = (attempt.link, attempt.branch, attempt.over);
        let WriteId { group, span, scope, .. } = record_of(&geometry, self.records.volume, link);
        let content = match scope {
            Scope::Row if !is_mirrored(&geometry) => {
                let others = (1..geometry.layout().data()).map(|_| Payload::zeros(BLOCK));
                Content::Rows(core::iter::once(block).chain(others).collect())
            }
            _ => Content::Blocks(block),
        };
        // Of no request: who asks for the parts again learns from them that they took effect.
        let origin = Origin { request: RequestId::default(), floor: 0, part: link.stamp.0 };
        let path = Path::new(group, span, scope, content).only_over(over);
        cx.begin(WriteOperation::new(path, origin).in_manner(MANNER).once(link.stamp, branch));
        Progress::Sleeps
    }

    /// The record is in doubt.
    fn ask(&mut self, cx: &mut Context<'_>) -> Linking {
        let geometry = cx.views.geometry(self.records.group);
        let attempt = self.attempt.as_mut().expect("only its record is in doubt");
        attempt.stage = Stage::Asking;
        cx.begin(SettleOperation::record(record_of(&geometry, attempt.branch, attempt.link)));
        Progress::Sleeps
    }

    /// A part ended.
    fn on_part(&mut self, cx: &mut Context<'_>, part: Result<Written, IoError>) -> Linking {
        let attempt = self.attempt();
        let Stage::Collecting { left } = &mut attempt.stage else {
            unreachable!("parts end before the record begins")
        };
        *left -= 1;
        let is_last = *left == 0;
        match part {
            Ok(Written::Held(held)) => attempt.held.push(held),
            Ok(Written::HadTakenEffect { part }) => attempt.otherwise.had_taken_effect.push(part),
            Ok(Written::Lacks(lack)) => attempt.otherwise.lacks.push(lack),
            Ok(Written::Done | Written::Refused | Written::Changed) => attempt.otherwise.refused = true,
            Err(error) => attempt.otherwise.error = Some(error),
        }
        if !is_last {
            return Progress::Waits;
        }
        let is_on_branch = |held: &Held| held.write.span.volume == attempt.branch;
        let is_whole = attempt.held.iter().all(is_on_branch) && !attempt.otherwise.refused;
        let Otherwise { had_taken_effect, lacks, error, .. } = core::mem::take(&mut attempt.otherwise);
        if let Some(error) = error {
            self.give_up(cx);
            return Progress::Ended(Err(error));
        }
        // The others are in doubt still, and will be found to have taken effect; or the earlier attempt was of a gateway that knows no records.
        self.parts.retain(|(_, origin)| !had_taken_effect.contains(&origin.part));
        if self.parts.is_empty() {
            self.give_up(cx);
            return Progress::Ended(Ok(Written::Done));
        }
        match (had_taken_effect.is_empty(), lacks.is_empty()) {
            (_, false) => self.repair(cx, lacks),
            (true, true) if is_whole => self.record(cx),
            _ => self.again(cx),
        }
    }

    /// Members have to be repaired. They can be once no part is in doubt.
    fn repair(&mut self, cx: &mut Context<'_>, lacks: Vec<Lack>) -> Linking {
        self.give_up(cx);
        let is_current =
            |lack: &Lack| cx.views.known(lack.group).is_some_and(|view| view.current.has(lack.slot));
        self.repairs += u32::from(lacks.iter().any(is_current));
        if self.repairs > REPAIRS_MAX {
            return Progress::Ended(Err(IoError::Unreadable));
        }
        self.repairing = lacks.len();
        for Lack { group, slot, span } in lacks {
            cx.begin(RepairOperation::from_row(group, slot, span).patient());
        }
        Progress::Sleeps
    }

    /// The record took effect.
    fn commit(&mut self, cx: &mut Context<'_>) -> Linking {
        let attempt = self.attempt.take().expect("its record took effect");
        cx.counters.count(Counter::PartsDecidedTogether);
        cx.links.keep(self.records, attempt.kept());
        attempt.tell(cx, true);
        self.release_records(cx);
        Progress::Ended(Ok(Written::Done))
    }

    /// The attempt ends without a record, or with one that never takes effect.
    fn give_up(&mut self, cx: &mut Context<'_>) {
        let Some(attempt) = self.attempt.take() else { return };
        cx.links.give_back(self.records, attempt.address());
        attempt.tell(cx, false);
    }

    fn again(&mut self, cx: &mut Context<'_>) -> Linking {
        let spread = self.attempt.as_ref().map_or(0, |attempt| spread(attempt.link.stamp));
        self.give_up(cx);
        cx.counters.count(Counter::PartsBeganAnewTogether);
        self.refusals += 1;
        let delay = Duration::from_micros((2000 + 500 * u64::from(spread)) << self.refusals.min(6));
        cx.again_after(delay)
    }

    /// The record's making ended otherwise than well.
    fn on_record(&mut self, cx: &mut Context<'_>, end: Result<Written, IoError>) -> Linking {
        let otherwise = &mut self.attempt().otherwise;
        match end {
            Err(error) => otherwise.error = Some(error),
            // A member that catches up lacks what it is written over.
            Ok(Written::Lacks(lack)) => otherwise.lacks.push(lack),
            Ok(Written::Changed) => cx.links.is_unknown(self.records),
            Ok(_) => {}
        }
        self.ask(cx)
    }

    /// The record never takes effect.
    fn on_no_record(&mut self, cx: &mut Context<'_>) -> Linking {
        match core::mem::take(&mut self.attempt().otherwise) {
            Otherwise { error: Some(error), .. } => {
                self.give_up(cx);
                Progress::Ended(Err(error))
            }
            Otherwise { lacks, .. } if !lacks.is_empty() => self.repair(cx, lacks),
            _ => self.again(cx),
        }
    }

    /// Sees to it that addresses of records become free again, where that is due.
    fn release_records(&self, cx: &mut Context<'_>) {
        if cx.links.is_release_due(self.records) {
            cx.begin_alone(ReleaseOperation::new(self.records));
        }
    }
}

impl Attempt {
    /// The record's address as it was before.
    fn address(&self) -> Address {
        Address { lba: self.link.lba(), stamp: self.over }
    }

    /// The record, for as long as one of the parts may be in doubt.
    fn kept(&self) -> Kept {
        let writes = self.held.iter().map(|held| held.write).collect();
        Kept { at: Address { lba: self.link.lba(), stamp: self.link.stamp }, writes }
    }

    /// Tells the members what became of the parts, of which nobody here is at work any more.
    fn tell(self, cx: &mut Context<'_>, commit: bool) {
        cx.stamps.end_write(self.link.stamp);
        for Held { write, slots } in self.held {
            cx.stamps.end_write(write.stamp);
            // Of a family that is forgotten others tell it.
            if let Some(view) = cx.views.known(write.group).cloned() {
                cx.decisions.decide(cx.now, &view, slots, &write, commit);
            }
        }
    }
}

/// What it begins: parts and the record, then the question of what became of the record.
pub enum LinkChild {
    Written(Result<Written, IoError>),
    Settled(Settled),
    /// However that ended, the parts begin anew.
    Repaired,
}

impl Child for LinkChild {
    fn from_outcome(outcome: Outcome) -> Option<LinkChild> {
        match outcome {
            Outcome::Written(written) => Some(LinkChild::Written(written)),
            Outcome::Settled(settled) => Some(LinkChild::Settled(settled)),
            Outcome::Repaired(_) => Some(LinkChild::Repaired),
            // The group of a part is not known here, or no more.
            Outcome::Gone(error) => Some(LinkChild::Written(Err(error))),
            _ => None,
        }
    }
}

impl Operate for LinkOperation {
    type Answer = NoAnswer;
    type Child = LinkChild;
    type Outcome = Result<Written, IoError>;

    fn start(&mut self, cx: &mut Context<'_>) -> Linking {
        let view = cx.views.view(self.records.group);
        if view.current.is_empty() {
            return cx.again_after(Duration::from_millis(100));
        }
        let branch = cx.branch_of(&view, self.records.volume).filter(|branch| view.lineage.is_head(*branch));
        let Some(branch) = branch else {
            cx.views.is_stale(self.records.group);
            return cx.again_after(UNKNOWN_VOLUME);
        };
        if cx.links.is_to_be_looked_at(self.records) {
            cx.begin_alone(InspectOperation::new(self.records));
        }
        self.release_records(cx);
        let Some(Address { lba, stamp: over }) = cx.links.take(self.records) else {
            cx.counters.count(Counter::PartsWaitedForARecord);
            self.waits += 1;
            return cx.again_after(Duration::from_millis(5 << self.waits.min(6)));
        };
        self.waits = 0;
        let Some(stamp) = cx.stamps.begin_write(cx.now, Stamp::ZERO) else {
            cx.links.give_back(self.records, Address { lba, stamp: over });
            cx.counters.count(Counter::WriteWaitedForALoan);
            return cx.again_after(LOAN_AGAIN);
        };
        let link = Link::new(self.records.group, lba, stamp);
        for (path, origin) in &self.parts {
            let part = WriteOperation::new(path.clone().linked(link), *origin);
            cx.begin(part.in_manner(MANNER).until_held());
        }
        let stage = Stage::Collecting { left: self.parts.len() };
        let (held, otherwise) = (Vec::with_capacity(self.parts.len()), Otherwise::default());
        self.attempt = Some(Attempt { link, over, branch, held, otherwise, stage });
        Progress::WaitsFor(COLLECTING * (1 << self.refusals.min(COLLECTING_DOUBLINGS)))
    }

    fn on_answer(&mut self, _: &mut Context<'_>, _: u8, answer: NoAnswer) -> Linking {
        match answer {}
    }

    fn on_child(&mut self, cx: &mut Context<'_>, child: LinkChild) -> Linking {
        let Some(stage) = self.attempt.as_ref().map(|attempt| attempt.stage) else {
            self.repairing = self.repairing.saturating_sub(1);
            return if self.repairing == 0 { self.again(cx) } else { Progress::Waits };
        };
        match (stage, child) {
            (Stage::Collecting { .. }, LinkChild::Written(part)) => self.on_part(cx, part),
            (Stage::Recording, LinkChild::Written(Ok(Written::Done))) => self.commit(cx),
            (Stage::Recording, LinkChild::Written(end)) => self.on_record(cx, end),
            (Stage::Asking, LinkChild::Settled(Settled::Committed)) => self.commit(cx),
            (Stage::Asking, LinkChild::Settled(Settled::Aborted)) => self.on_no_record(cx),
            (Stage::Asking, _) => cx.again_after(Duration::from_millis(100)),
            (Stage::Collecting { .. } | Stage::Recording, LinkChild::Settled(_) | LinkChild::Repaired) => {
                unreachable!("nothing is asked before the record is in doubt, nor repaired under an attempt")
            }
        }
    }

    fn on_timer(&mut self, cx: &mut Context<'_>) -> Linking {
        match self.attempt.as_ref().map(|attempt| attempt.stage) {
            None if self.repairing > 0 => Progress::Sleeps,
            None => self.start(cx),
            Some(Stage::Collecting { .. }) => {
                // No record was begun: what was prepared never takes effect.
                cx.let_go();
                self.again(cx)
            }
            Some(Stage::Recording) => Progress::Sleeps,
            Some(Stage::Asking) => self.ask(cx),
        }
    }

    /// A view of the records' group began, and what was under way is ended. What parts were held is known; of the others nobody needs an answer, as
    /// no record of them was begun.
    fn on_view(&mut self, cx: &mut Context<'_>) -> Linking {
        match self.attempt.as_ref().map(|attempt| attempt.stage) {
            Some(Stage::Recording | Stage::Asking) => self.ask(cx),
            None | Some(Stage::Collecting { .. }) => {
                self.repairing = 0;
                self.give_up(cx);
                self.start(cx)
            }
        }
    }

    fn group(&self) -> GroupId {
        self.records.group
    }

    fn volume(&self) -> Option<VolumeId> {
        Some(self.records.volume)
    }

    /// Whoever meets its parts settles them.
    fn release(&self, _id: OperationId, left: &mut Leaving<'_>) {
        let Some(attempt) = &self.attempt else { return };
        left.stamps.end_write(attempt.link.stamp);
        attempt.held.iter().for_each(|held| left.stamps.end_write(held.write.stamp));
        match attempt.stage {
            Stage::Collecting { .. } => left.links.give_back(self.records, attempt.address()),
            Stage::Recording | Stage::Asking => left.links.keep(self.records, attempt.kept()),
        }
    }
}
