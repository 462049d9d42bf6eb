//! Reads: served from blocks without a write in doubt. Where there is one they are held back, or (by their sight) shown or told of it.

use super::branches::{Look, Wanted};
use super::contests::{Begun, Contests, DiskEnd, Entry, answer};
use super::context::{Context, ReadRequest};
use super::disk::{Disk, Looking};
use crate::netraid::order::waiting::QUEUE_MAX;
use crate::netraid::pending::{PendingTable, Undecided};
use base::{BrickId, GroupId, NodeId, Payload, StreamId, Time};
use core::time::Duration;
use reads::distribute::claim::{Attempt, Counts, Holders};
use rules::counters::Counter;
use rules::fair::Unserved;
use std::collections::BTreeMap;
use wire::disk::{Blocks, Contested, StoreError};
use wire::{Claim, GroupView, ReadOutcome, Sight, Span, WriteId};

/// How long a read waits for a decision before it says that it is in doubt.
pub const READ_PATIENCE: Duration = Duration::from_millis(200);

/// A read that waits until the writes that touch it are decided.
#[derive(Debug)]
struct Held {
    since: Time,
    read: ReadRequest,
}

/// The reads of a disk. Which writes are in doubt is for the writes to say: each step is given them.
pub(super) struct Reads {
    /// By the order in which they came.
    held: BTreeMap<u64, Held>,
    /// Those that other members were asked for, too.
    contests: Contests,
}

impl Reads {
    pub(super) fn new(contests: Contests) -> Reads {
        Reads { held: BTreeMap::new(), contests }
    }

    /// A gateway asks for blocks.
    pub(super) fn on_read(
        &mut self,
        cx: &mut Context<'_>,
        disk: &mut Disk,
        undecided: &PendingTable,
        read: ReadRequest,
    ) {
        let id = disk.draw();
        if !read.span.is_valid() || !(1..=32).contains(&read.width) {
            return answer(cx, &read, ReadOutcome::Failed, Payload::new());
        }
        if !read.content && !read.stamps {
            return bear_witness(cx, &read);
        }
        let since = cx.now;
        self.admit(cx, disk, undecided, (id, Held { since, read }));
    }

    fn admit(
        &mut self,
        cx: &mut Context<'_>,
        disk: &mut Disk,
        undecided: &PendingTable,
        (id, Held { since, read }): (u64, Held),
    ) {
        if let Err(view) = admits(cx, &read) {
            if view.is_some() {
                cx.counters.count(Counter::RequestUnderAnOldViewRefused);
            }
            return answer(cx, &read, ReadOutcome::Stale { view }, Payload::new());
        }
        let seen = match look(cx, undecided, &read) {
            Ok(seen) => seen,
            Err(Waits) => return hold(&mut self.held, cx, id, Held { since, read }),
        };
        if read.contest.is_none() {
            return serve(&mut self.contests, cx, disk, (read, seen), Service::OWN);
        }
        match self.contests.enter(cx, read) {
            Entry::Alone(read) => serve(&mut self.contests, cx, disk, (read, seen), Service::OWN),
            Entry::AtDisk(read, contested) => {
                let service = Service { claimed: false, contested: Some(contested) };
                serve(&mut self.contests, cx, disk, (read, seen), service);
            }
            Entry::Taken => {}
        }
    }

    /// The store answers a read.
    pub(super) fn on_done(
        &mut self,
        cx: &mut Context<'_>,
        read: &ReadRequest,
        (leased, begun): (bool, Begun),
        (seen, undecided): (Option<&Undecided>, &PendingTable),
        disk: &mut Disk,
        result: Result<Blocks, StoreError>,
    ) {
        let mut result = result.map(|blocks| without_lost(cx, read, blocks));
        let is_over = seen.is_some_and(|seen| !seen.is_still_so(undecided));
        if let (Ok(blocks), Some(seen)) = (&mut result, seen) {
            seen.put_over(read.span, blocks);
        }
        self.contests.on_served(cx, begun);
        let end = match &result {
            Err(StoreError::Left) => DiskEnd::Left,
            Ok(_) if admits(cx, read).is_ok() => DiskEnd::Served,
            Ok(_) | Err(_) => DiskEnd::Refused,
        };
        match self.contests.left_disk(cx, read, end) {
            true => {}
            // It would show one write's block beside what a later one put over all of them.
            false if is_over => {
                cx.counters.count(Counter::ReadBeganAnewAsWhatItSawWasDecided);
                let (id, since) = (disk.draw(), cx.now);
                let read = ReadRequest { contest: None, ..read.clone() };
                self.admit(cx, disk, undecided, (id, Held { since, read }));
            }
            false => answer_done(cx, read, (leased, seen.and_then(Undecided::named)), result),
        }
    }

    /// Writes of these blocks were decided: what waited for that is tried again.
    pub(super) fn release(
        &mut self,
        cx: &mut Context<'_>,
        disk: &mut Disk,
        undecided: &PendingTable,
        span: Span,
    ) {
        for id in self.held_where(|read| read.span.overlaps(&span)) {
            let held = self.held.remove(&id).expect("listed");
            self.admit(cx, disk, undecided, (id, held));
        }
    }

    /// A view of the group ends: those that wait are refused.
    pub(super) fn refuse(&mut self, cx: &mut Context<'_>, group: GroupId) {
        for id in self.held_where(|read| read.group == group) {
            let Held { read, .. } = self.held.remove(&id).expect("listed");
            let view = cx.groups.serves(read.group, read.view).err().flatten();
            answer(cx, &read, ReadOutcome::Stale { view }, Payload::new());
        }
    }

    fn held_where(&self, is_it: impl Fn(&ReadRequest) -> bool) -> Vec<u64> {
        self.held.iter().filter(|(_, held)| is_it(&held.read)).map(|(id, _)| *id).collect()
    }

    /// A node cannot be reached: its reads that wait are forgotten.
    pub(super) fn forget_node(&mut self, node: NodeId) {
        self.held.retain(|_, held| held.read.from != node);
    }

    /// Another member serves a read.
    pub(super) fn on_claim(&mut self, cx: &mut Context<'_>, from: BrickId, claim: Claim) {
        let asker = NodeId::Gateway(claim.gateway);
        let is_it = |read: &ReadRequest| {
            read.from == asker && read.contest.is_some_and(|contest| contest.number == claim.number)
        };
        // Who waits for a decision may leave it to someone who does not.
        let Reads { held, contests } = self;
        held.retain(|_, held| {
            !(is_it(&held.read) && contests.note_unserved(&held.read, Unserved::ByAnother))
        });
        self.contests.on_claim(cx, from, claim);
    }

    /// Whether another member said lately that it serves a read.
    pub(super) fn was_claimed(&self, read: &ReadRequest) -> bool {
        read.contest.is_some_and(|contest| self.contests.was_claimed(read.from, contest.number))
    }

    /// Serves what is this brick's turn, and what those who were expected to be first let pass.
    pub(super) fn settle(&mut self, cx: &mut Context<'_>, disk: &mut Disk, undecided: &PendingTable) {
        let Reads { held, contests } = self;
        contests.settle(cx, |contests, cx, read| {
            // Things may have changed while it waited.
            if let Err(view) = admits(cx, &read) {
                answer(cx, &read, ReadOutcome::Stale { view }, Payload::new());
                return false;
            }
            if let Ok(seen) = look(cx, undecided, &read) {
                serve(contests, cx, disk, (read, seen), Service { claimed: true, contested: None });
                return true;
            }
            // The others have left it to this brick, so it does not leave it to them.
            let (id, since) = (disk.draw(), cx.now);
            hold(held, cx, id, Held { since, read: ReadRequest { contest: None, ..read } });
            false
        });
    }

    /// Answers the reads that waited long enough.
    pub(super) fn wake(&mut self, cx: &mut Context<'_>, undecided: &PendingTable) {
        while let Some(first) = self.held.first_entry()
            && first.get().since + READ_PATIENCE <= cx.now
        {
            let read = first.remove().read;
            let writes: Vec<WriteId> = undecided.in_doubt(read.span).map(|p| p.prepare.write).collect();
            cx.counters.count(Counter::ReadInDoubt);
            answer(cx, &read, ReadOutcome::InDoubt { writes }, Payload::new());
        }
    }

    /// When the first waiting read loses its patience, or one that was left to another member is due here.
    pub(super) fn deadline(&self) -> Option<Time> {
        let held = self.held.values().next().map(|held| held.since + READ_PATIENCE);
        held.into_iter().chain(self.contests.deadline()).min()
    }

    /// A read that waits for a decision is of no interest any more. Whether it was here.
    pub(super) fn withdraw(&mut self, from: NodeId, operation: u64) -> bool {
        let Reads { held, contests } = self;
        let before = held.len();
        let is_it = |read: &ReadRequest| read.from == from && read.operation == operation;
        held.retain(|_, held| !(is_it(&held.read) && contests.note_unserved(&held.read, Unserved::Dropped)));
        held.len() < before
    }

    /// Reads that had their turn and are not served here: of which stream, of how many blocks, and why.
    pub(super) fn take_unserved(&mut self) -> Vec<(StreamId, u32, Unserved)> {
        self.contests.take_unserved()
    }

    /// How many wait to be claimed.
    pub(super) fn contested(&self) -> usize {
        self.contests.waiting()
    }

    /// How many wait for a decision.
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// Claims to be told, and whom.
    pub(super) fn take_claims(&mut self) -> impl Iterator<Item = (BrickId, Claim)> + use<> {
        self.contests.take_claims()
    }

    pub(super) fn contest_counts(&self) -> Counts {
        self.contests.counts()
    }

    pub(super) fn see_heads(&mut self, seen: bool) {
        self.contests.see_heads(seen);
    }

    pub(super) fn on_disk_claims(&mut self, attempt: Attempt, bid_ns: u64, holders: &Holders) {
        self.contests.on_disk_claims(attempt, bid_ns, holders);
    }

    /// Asserts what must hold.
    pub(super) fn check(&self, deep: bool) {
        assert!(self.held.len() <= QUEUE_MAX, "reads that wait are bounded");
        self.contests.check(deep);
    }
}

/// How a read came to be served here.
struct Service {
    /// Other members were asked as well, and leave it to this one.
    claimed: bool,
    /// The disk is to find out which of the members serves it.
    contested: Option<Contested>,
}

impl Service {
    /// Nobody else was asked.
    const OWN: Service = Service { claimed: false, contested: None };
}

/// A read waits for the decision of a write.
struct Waits;

/// What a read sees of writes that are not decided: nothing where there are none. One that does not wait sees all that are here now, or is
/// told of them: what was acknowledged before it came is among them, or decided.
fn look(
    cx: &mut Context<'_>,
    undecided: &PendingTable,
    read: &ReadRequest,
) -> Result<Option<Box<Undecided>>, Waits> {
    if undecided.in_doubt(read.span).next().is_none() {
        return Ok(None);
    }
    match read.sight {
        Sight::Decided => Err(Waits),
        Sight::Staged => {
            let seen = undecided.content_over(read.span).ok_or(Waits)?;
            cx.counters.count(Counter::ReadSawAWriteThatIsNotDecided);
            Ok(cx.groups.rules().shows_undecided().then(|| Box::new(seen)))
        }
        Sight::Committed => {
            cx.counters.count(Counter::ReadWasToldOfWritesThatAreNotDecided);
            let named = undecided.in_doubt(read.span).map(|pending| pending.prepare.write).collect();
            Ok(Some(Box::new(Undecided::Named(named))))
        }
    }
}

/// Looks the blocks up.
fn serve(
    contests: &mut Contests,
    cx: &mut Context<'_>,
    disk: &mut Disk,
    (read, undecided): (ReadRequest, Option<Box<Undecided>>),
    service: Service,
) {
    let begun = contests.begin(cx.now, service.claimed, read.content, read.span.count);
    let ReadRequest { group, span, width, content, .. } = read;
    let look = Look { group, span, width, wanted: Wanted::with(content) };
    let looking = Looking::Read { request: read, leased: cx.leased, begun, undecided };
    disk.look_contested(cx, look, service.contested, looking);
}

/// Until the writes that touch it are decided.
fn hold(queue: &mut BTreeMap<u64, Held>, cx: &mut Context<'_>, id: u64, held: Held) {
    if queue.len() >= QUEUE_MAX {
        return answer(cx, &held.read, ReadOutcome::Busy, Payload::new());
    }
    cx.counters.count(Counter::ReadWaitedForADecision);
    queue.insert(id, held);
}

fn answer_done(
    cx: &mut Context<'_>,
    read: &ReadRequest,
    (leased, newer): (bool, Option<&[WriteId]>),
    result: Result<Blocks, StoreError>,
) {
    // The group may have been left meanwhile, and its space given back.
    if let Err(view) = admits(cx, read) {
        return answer(cx, read, ReadOutcome::Stale { view }, Payload::new());
    }
    let blocks = match result {
        Ok(blocks) => blocks,
        // Left without a contest that knows of it: a packet came twice. It says nothing of the disk.
        Err(StoreError::Busy | StoreError::Left) => {
            return answer(cx, read, ReadOutcome::Busy, Payload::new());
        }
        Err(_) => return answer(cx, read, ReadOutcome::Failed, Payload::new()),
    };
    // The disk may have taken longer than the lease lasted.
    let leased = leased && cx.leased;
    if !leased {
        cx.counters.count(Counter::ReadAnsweredWithoutALease);
    }
    let stamps = if read.stamps { blocks.stamps } else { Vec::new() };
    let unreadable = blocks.unreadable;
    let outcome = match newer {
        None => ReadOutcome::Done { leased, stamps, unreadable },
        Some(newer) => ReadOutcome::Older { leased, stamps, unreadable, newer: newer.to_vec() },
    };
    answer(cx, read, outcome, blocks.content);
}

/// Where what was here before is lost, a block without a stamp is not zeros: nobody can read it before it is written.
fn without_lost(cx: &Context<'_>, read: &ReadRequest, mut blocks: Blocks) -> Blocks {
    if !cx.groups.is_bare(read.group) {
        return blocks;
    }
    let per_block = usize::from(read.width).max(1);
    let stamps = blocks.stamps.chunks(per_block).zip(0u32..);
    let lost = stamps.filter(|(stamps, _)| stamps.iter().all(|stamp| stamp.is_zero()));
    let lost: Vec<u32> =
        lost.map(|(_, block)| block).filter(|block| !blocks.unreadable.contains(block)).collect();
    blocks.unreadable.extend(lost);
    blocks.unreadable.sort_unstable();
    blocks
}

/// Whether a read is served here; if not, the view to tell the reader.
fn admits(cx: &Context<'_>, read: &ReadRequest) -> Result<(), Option<GroupView>> {
    // Its own questions, to catch up, ask for what is here.
    let admitted = match read.from == NodeId::Brick(cx.groups.me()) {
        true => cx.groups.takes(read.group, read.view),
        false => cx.groups.serves(read.group, read.view),
    };
    cx.groups.rules().serves_read(admitted, read.from, (cx.groups.active(read.group), cx.groups.me()))
}

/// Asked for neither content nor stamps: whether the view is in force here. A member that joins may say so too, as it needs
/// to know no write for that: a reader without a lease relies on it (`crate::netraid::read`).
fn bear_witness(cx: &mut Context<'_>, read: &ReadRequest) {
    let outcome = match cx.groups.takes(read.group, read.view) {
        Ok(()) => ReadOutcome::Done { leased: cx.leased, stamps: Vec::new(), unreadable: Vec::new() },
        Err(view) => ReadOutcome::Stale { view },
    };
    answer(cx, read, outcome, Payload::new());
}
