//! Reading a unit by way of the code: from the other units of its rows and their parity.
//!
//! Where all writers answer, for content, for stamps alone or (those that join) just as witnesses, no lease is needed;
//! where one cannot be reached the others must hold theirs (see [`super::read`] for both). So a read need not wait until
//! a dead brick is left out. The answers fit together when the parity's stamps name just the versions of the data that
//! was read; otherwise writes are under way, and all is asked again. A member answers without a write in doubt, or (under `log`)
//! with what is decided beside it, so what fits is decided.
//!
//! Where more members are left than are needed, content comes from those that are not much slower than enough others: a slow member
//! that its groups need has no part in it, and gives its stamps alone.

use super::answer::ReadAnswer;
use super::atomicity::log::{GoesBack, Looks, ROUNDS_MAX};
use super::atomicity::read::agreed_stamps;
use super::operate::{BlocksWanted, Context, Operate, retry_delay};
use super::outcome::{Child, Fetched, Looked, Outcome, Progress, Settled};
use super::settle::settle_foreign;
use base::{GroupId, Payload, Stamp};
use code::{Code, Computation, Computed};
use core::time::Duration;
use reads::distribute::pace::Kind;
use reads::distribute::rescue;
use reads::distribute::row::Row as WholeRow;
use rules::counters::Counter;
use rules::layout::Geometry;
use std::collections::{BTreeMap, BTreeSet};
use wire::{GroupView, IoError, ReadOutcome, Scope, Sight, Slots, Span, WriteId};

const SOON: Duration = Duration::from_millis(10);
/// When a member without a lease is asked again, where only one with a lease will do.
const LEASE_AGAIN: Duration = Duration::from_millis(100);

type Reconstructing = Progress<Result<Fetched, IoError>>;

struct Shard {
    stamps: Vec<Stamp>,
    content: Option<Payload>,
    leased: bool,
}

/// The members of the row that are asked, and what they said.
#[derive(Default)]
struct Row {
    shards: BTreeMap<u8, Shard>,
    asked: Slots,
    /// Of these whose content is used: as many as there are data units, data before parity.
    sources: Slots,
    /// Writes beside which members answered: they are not decided there.
    newer: BTreeSet<WriteId>,
}

/// What a shard is made of, and its stamps.
struct Parts {
    shards: Vec<(u8, Payload)>,
    stamps: Vec<Stamp>,
}

enum State {
    /// For the time to ask.
    Waiting,
    Asking(Row),
    /// Newer writes are being looked at. Where the answers fit together, what they come to.
    GoingBack {
        parts: Option<Parts>,
        looks: Looks,
    },
    /// The answers fit together; their stamps, and the shard is being made.
    Computing(Vec<Stamp>),
}

/// Reconstructs one shard of the rows of a span. Ends with [`Fetched`]; its stamps are those of the shard:
/// one a block for data, one a data unit and block for parity.
pub(super) struct ReconstructOperation {
    group: GroupId,
    span: Span,
    wanted: u8,
    excluded: Slots,
    state: State,
    /// Whether every writer is to answer, as leases are not in force.
    ask_all: bool,
    /// Writes in doubt that are being settled; when all are, it asks anew.
    settling: usize,
    attempt: u32,
    sight: Sight,
    /// Whether it waits for no decision, however long it takes to do without: for who holds up the decisions itself.
    never_waits: bool,
    /// How often it looked at newer writes in vain.
    rounds: u32,
}

impl ReconstructOperation {
    /// Of shard `wanted` (data units first, then parity), without the help of the members at `excluded`.
    pub(super) fn new(group: GroupId, span: Span, wanted: u8, excluded: Slots) -> ReconstructOperation {
        ReconstructOperation {
            group,
            span,
            wanted,
            excluded,
            state: State::Waiting,
            ask_all: false,
            settling: 0,
            attempt: 0,
            sight: Sight::Decided,
            never_waits: false,
            rounds: 0,
        }
    }

    /// For a reader of a data unit who has this sight of writes that are not decided. What is merely staged is never used to make out a unit.
    #[must_use]
    pub(super) fn seeing(self, sight: Sight) -> ReconstructOperation {
        let sight = if sight == Sight::Committed { sight } else { Sight::Decided };
        ReconstructOperation { sight, ..self }
    }

    /// For a write that is decided with others, which may be in the same rows and wait for this one. It goes by what is decided beside them, and beside all
    /// else that is not: two such requests could wait for each other.
    #[must_use]
    pub(super) fn beside_undecided(self) -> ReconstructOperation {
        ReconstructOperation { sight: Sight::Committed, never_waits: true, ..self }
    }

    /// Whom to ask, where enough members can help.
    fn row(&self, cx: &Context<'_>, view: &GroupView, geometry: &Geometry) -> Option<Row> {
        let needed = geometry.layout().data();
        let own = Slots::one(geometry.slot_of_shard(self.span.lba, self.wanted));
        let helpers = Slots(view.current.0 & !self.excluded.0 & !own.0);
        let is_up = |slot: &u8| cx.views.is_up(view.members[usize::from(*slot)]);
        let reachable = helpers.iter().filter(is_up).fold(Slots::default(), Slots::with);
        let near = self.sources(geometry, self.quick(cx, view, reachable));
        let is_enough = near.len() == needed && !self.ask_all;
        let (helpers, sources) =
            if is_enough { (reachable, near) } else { (helpers, self.sources(geometry, helpers)) };
        let asked = if self.ask_all { view.writers() } else { helpers };
        (sources.len() == needed).then(|| Row { asked, sources, ..Row::default() })
    }

    /// The helpers without those that take much longer than enough others do.
    fn quick(&self, cx: &Context<'_>, view: &GroupView, helpers: Slots) -> Slots {
        let members = helpers.iter().map(|slot| (slot, view.members[usize::from(slot)])).collect();
        let needed = usize::from(cx.views.geometry(self.group).layout().data());
        let kind = Kind::of_read(self.span.count);
        let slow = WholeRow { members, needed }.slow_members(cx.now, kind, cx.choice.load());
        helpers.iter().filter(|slot| !slow.has(*slot)).fold(Slots::default(), Slots::with)
    }

    /// How long the answers may take before all is asked anew. All who are asked must answer, so the slowest sets the measure: asked twice, it
    /// would only take longer.
    fn patience(&self, cx: &Context<'_>, view: &GroupView, asked: Slots) -> Duration {
        let bricks = asked.iter().map(|slot| view.members[usize::from(slot)]);
        let kind = Kind::of_read(self.span.count);
        rescue::row_patience(cx.now, kind, bricks, cx.choice.load(), retry_delay(self.attempt))
    }

    fn sources(&self, geometry: &Geometry, helpers: Slots) -> Slots {
        let layout = geometry.layout();
        (0..layout.data() + layout.parity())
            .filter(|shard| *shard != self.wanted)
            .map(|shard| geometry.slot_of_shard(self.span.lba, shard))
            .filter(|slot| helpers.has(*slot))
            .take(usize::from(layout.data()))
            .fold(Slots::default(), Slots::with)
    }

    /// Answers so far are of no interest; asks anew after `delay`.
    fn again(&mut self, cx: &mut Context<'_>, delay: Duration) -> Reconstructing {
        self.state = State::Waiting;
        cx.again_after(delay)
    }

    fn on_shard(&mut self, cx: &mut Context<'_>, slot: u8, shard: Shard) -> Reconstructing {
        let State::Asking(row) = &mut self.state else {
            unreachable!("it asked nobody, and {slot} answered")
        };
        row.shards.insert(slot, shard);
        if row.asked.iter().all(|slot| row.shards.contains_key(&slot)) {
            return self.combine(cx);
        }
        Progress::Waits
    }

    fn combine(&mut self, cx: &mut Context<'_>) -> Reconstructing {
        let State::Asking(row) = &self.state else { unreachable!("all answered who were asked") };
        let geometry = cx.views.geometry(self.group);
        let writers = cx.views.view(self.group).writers();
        let all_answered = writers.and(row.asked) == writers;
        if !all_answered && row.shards.values().any(|shard| !shard.leased) {
            self.ask_all = true;
            return self.again(cx, SOON);
        }
        let stamps = row.shards.iter().map(|(slot, shard)| (*slot, &shard.stamps[..]));
        let Some(vectors) = agreed_stamps(&geometry, self.span, stamps) else {
            cx.counters.count(Counter::DegradedReadMetAWriteUnderWay);
            // Some may know of a decision that others wait for.
            let newer: Vec<WriteId> = row.newer.iter().copied().collect();
            return if newer.is_empty() { self.again(cx, SOON) } else { self.look_at(cx, newer, None) };
        };
        let layout = geometry.layout();
        let (data, lba) = (layout.data(), self.span.lba);
        let shards: Vec<(u8, Payload)> = row
            .shards
            .iter()
            .filter_map(|(slot, shard)| Some((geometry.shard_at(lba, *slot), shard.content.clone()?)))
            .collect();
        let width = usize::from(data);
        let stamps = match self.wanted < data {
            true => vectors.chunks(width).map(|vector| vector[usize::from(self.wanted)]).collect(),
            false => vectors,
        };
        // Writes of other units change nothing of this one, as long as the answers fit together.
        let touches = |write: &&WriteId| match write.scope {
            Scope::Row => true,
            Scope::Unit { index } => index == self.wanted,
        };
        // Who waits for no decision is refused by these, where it writes.
        let matters = |write: &&WriteId| !self.never_waits && touches(write);
        let newer: Vec<WriteId> = row.newer.iter().filter(matters).copied().collect();
        let parts = Parts { shards, stamps };
        if newer.is_empty() { self.compute(cx, parts) } else { self.look_at(cx, newer, Some(parts)) }
    }

    fn compute(&mut self, cx: &mut Context<'_>, Parts { shards, stamps }: Parts) -> Reconstructing {
        let layout = cx.views.geometry(self.group).layout();
        let code = Code::new(layout.data(), layout.parity());
        self.state = State::Computing(stamps);
        cx.compute(Computation::Reconstruct { code, shards, wanted: self.wanted })
    }

    /// Asks whether newer writes are complete ([`super::atomicity::log`]).
    fn look_at(&mut self, cx: &mut Context<'_>, newer: Vec<WriteId>, parts: Option<Parts>) -> Reconstructing {
        cx.forget_calls();
        self.state = State::GoingBack { parts, looks: Looks::begin(cx, newer) };
        self.go_back(cx, None)
    }

    /// Newer writes were looked at, or one more.
    fn go_back(&mut self, cx: &mut Context<'_>, looked: Option<Looked>) -> Reconstructing {
        let State::GoingBack { parts, looks } = &mut self.state else { return Progress::Waits };
        looked.into_iter().for_each(|looked| looks.on_looked(looked));
        match looks.goes_back() {
            GoesBack::Waits => Progress::Sleeps,
            GoesBack::Yes if parts.is_some() => {
                cx.counters.count(Counter::DegradedReadWentBackToAnOlderVersion);
                let parts = parts.take().expect("looked at above");
                self.compute(cx, parts)
            }
            GoesBack::Yes | GoesBack::No => {
                self.rounds += 1;
                let is_early = self.rounds < ROUNDS_MAX;
                self.again(cx, if is_early { Duration::from_millis(1) } else { SOON })
            }
        }
    }

    /// What a member answered beside writes that are not decided there.
    fn on_older(
        &mut self,
        cx: &mut Context<'_>,
        slot: u8,
        shard: Shard,
        newer: Vec<WriteId>,
    ) -> Reconstructing {
        if self.sight() != Sight::Committed || !Looks::are_of(&newer, self.group, self.span) {
            self.excluded = self.excluded.with(slot);
            return self.again(cx, SOON);
        }
        if !shard.leased {
            return self.on_unleased(cx);
        }
        let State::Asking(row) = &mut self.state else {
            unreachable!("it asked nobody, and {slot} answered")
        };
        row.newer.extend(newer);
        self.on_shard(cx, slot, shard)
    }

    /// Without a lease a member cannot say that nothing was decided since.
    fn on_unleased(&mut self, cx: &mut Context<'_>) -> Reconstructing {
        self.rounds = ROUNDS_MAX;
        self.again(cx, if self.never_waits { LEASE_AGAIN } else { Duration::ZERO })
    }

    /// What it sees of writes that are not decided.
    fn sight(&self) -> Sight {
        if self.rounds < ROUNDS_MAX || self.never_waits { self.sight } else { Sight::Decided }
    }

    fn on_doubt(&mut self, cx: &mut Context<'_>, writes: Vec<WriteId>) -> Reconstructing {
        self.attempt += 1;
        if self.attempt > 1 {
            self.settling = settle_foreign(cx, self.group, self.span, writes);
        }
        if self.settling == 0 {
            return self.again(cx, SOON);
        }
        self.state = State::Waiting;
        cx.forget_calls();
        Progress::Waits
    }
}

/// What the operations that it begins end with.
pub(super) enum ReconstructChild {
    Settled,
    Looked(Looked),
}

impl Child for ReconstructChild {
    fn from_outcome(outcome: Outcome) -> Option<ReconstructChild> {
        match outcome {
            Outcome::Looked(looked) => Some(ReconstructChild::Looked(looked)),
            other => Settled::from_outcome(other).map(|_| ReconstructChild::Settled),
        }
    }
}

impl Operate for ReconstructOperation {
    type Answer = ReadAnswer;
    type Child = ReconstructChild;
    type Outcome = Result<Fetched, IoError>;

    fn start(&mut self, cx: &mut Context<'_>) -> Reconstructing {
        let (view, geometry) = (cx.views.view(self.group), cx.views.geometry(self.group));
        let Some(row) = self.row(cx, &view, &geometry) else {
            return match self.excluded.is_empty() {
                false => Progress::Ended(Err(IoError::Unreadable)),
                true => self.again(cx, Duration::from_millis(100)),
            };
        };
        let sight = self.sight();
        for slot in row.asked.iter() {
            let (stamps, content) = (view.current.has(slot), row.sources.has(slot));
            cx.read(&view, slot, BlocksWanted { sight, ..BlocksWanted::decided(self.span, stamps, content) });
        }
        let wait = self.patience(cx, &view, row.asked);
        self.state = State::Asking(row);
        Progress::WaitsFor(wait)
    }

    fn on_answer(&mut self, cx: &mut Context<'_>, slot: u8, answer: ReadAnswer) -> Reconstructing {
        let State::Asking(row) = &self.state else { unreachable!("it asked nobody, and {slot} answered") };
        match answer.outcome {
            ReadOutcome::Done { leased, mut stamps, unreadable }
                if unreadable.is_empty() || !row.sources.has(slot) =>
            {
                if !unreadable.is_empty() || !cx.views.view(self.group).current.has(slot) {
                    // It shows that no later view had begun, and has no say about the content.
                    stamps.clear();
                }
                let content = Some(answer.content).filter(|content| content.len() == self.span.bytes());
                self.on_shard(cx, slot, Shard { stamps, content, leased })
            }
            ReadOutcome::Done { .. } | ReadOutcome::Failed => {
                self.excluded = self.excluded.with(slot);
                self.again(cx, Duration::ZERO)
            }
            ReadOutcome::InDoubt { writes } => self.on_doubt(cx, writes),
            ReadOutcome::Stale { view } => {
                cx.on_stale(self.group, view);
                self.again(cx, SOON)
            }
            ReadOutcome::Older { leased, stamps, unreadable, newer } if unreadable.is_empty() => {
                let content = Some(answer.content).filter(|content| content.len() == self.span.bytes());
                self.on_older(cx, slot, Shard { stamps, content, leased }, newer)
            }
            ReadOutcome::Older { .. } if self.never_waits => {
                self.excluded = self.excluded.with(slot);
                self.again(cx, Duration::ZERO)
            }
            ReadOutcome::Older { .. } => {
                self.rounds = ROUNDS_MAX;
                self.again(cx, Duration::ZERO)
            }
            ReadOutcome::Busy => self.again(cx, SOON),
        }
    }

    fn on_child(&mut self, cx: &mut Context<'_>, child: ReconstructChild) -> Reconstructing {
        if let ReconstructChild::Looked(looked) = child {
            return self.go_back(cx, Some(looked));
        }
        self.settling = self.settling.saturating_sub(1);
        match self.state {
            State::Waiting if self.settling == 0 => self.again(cx, Duration::ZERO),
            // It was not asked for in vain, but the members have been asked again meanwhile.
            State::Waiting | State::Asking(_) | State::GoingBack { .. } | State::Computing(_) => {
                Progress::Waits
            }
        }
    }

    fn on_computed(&mut self, cx: &mut Context<'_>, made: Computed) -> Reconstructing {
        let State::Computing(stamps) = core::mem::replace(&mut self.state, State::Waiting) else {
            unreachable!("it had nothing computed")
        };
        let Some(content) = made.ok().and_then(|mut shards| shards.pop()) else {
            return Progress::Ended(Err(IoError::Unreadable));
        };
        cx.counters.count(Counter::UnitReconstructedFromItsRow);
        Progress::Ended(Ok(Fetched { content, stamps }))
    }

    fn on_timer(&mut self, cx: &mut Context<'_>) -> Reconstructing {
        self.attempt += 1;
        cx.forget_calls();
        self.start(cx)
    }

    fn group(&self) -> GroupId {
        self.group
    }

    fn on_view(&mut self, cx: &mut Context<'_>) -> Reconstructing {
        self.rounds = 0;
        cx.forget_calls();
        self.start(cx)
    }
}
