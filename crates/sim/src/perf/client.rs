//! Clients: what they ask for, whom they ask, and what they do with answers.

use super::measured::Message;
use super::request::{NOBODY, Ref, Request};
use super::run::{Chooser, Happening, Run};
use super::workload::{Arrival, Drawn, Moments, Shape, Workload};
use base::Time;
use core::time::Duration;
use model::Draw;

/// Sectors that lie together on one group when a stream's address space is cut among groups: 64 MiB.
const EXTENT_SECTORS: u64 = 1 << 17;

/// Where requests come from.
pub(super) enum Source {
    Closed { outstanding: u32, drawn: Drawn },
    Open { moments: Moments, drawn: Drawn },
    Stream { records: Box<dyn Iterator<Item = Arrival>>, next: Option<Arrival>, told: Told },
}

/// What a stream told of.
#[derive(Default)]
pub(super) struct Told {
    requests: u64,
    /// Those beyond the cluster's end.
    wrapped: u64,
}

impl Source {
    pub(super) fn new(workload: Workload, draw: &mut Draw) -> Source {
        match workload {
            Workload::Closed { outstanding, mix } => {
                Source::Closed { outstanding, drawn: Drawn::new(mix, draw.fork()) }
            }
            Workload::Open { per_second, arrivals, mix } => {
                let moments = Moments::new(arrivals, per_second, draw.fork());
                Source::Open { moments, drawn: Drawn::new(mix, draw.fork()) }
            }
            Workload::Stream(records) => Source::Stream { records, next: None, told: Told::default() },
        }
    }

    /// The share of a stream's requests that were beyond the cluster's end.
    pub(super) fn wrapped(&self) -> f64 {
        match self {
            Source::Stream { told, .. } => told.wrapped as f64 / told.requests.max(1) as f64,
            Source::Closed { .. } | Source::Open { .. } => 0.0,
        }
    }
}

impl Run<'_> {
    pub(super) fn begin_clients(&mut self) {
        if let Source::Closed { outstanding, .. } = &self.source {
            let outstanding = *outstanding;
            for group in 0..self.groups.len() as u32 {
                (0..outstanding).for_each(|_| self.at(Time::ZERO, Happening::Slot { group }));
            }
        } else {
            self.schedule_arrival();
        }
    }

    fn schedule_arrival(&mut self) {
        let at = match &mut self.source {
            Source::Closed { .. } => None,
            Source::Open { moments, .. } => Some(moments.next()),
            Source::Stream { records, next, .. } => {
                *next = records.next();
                next.map(|record| record.at)
            }
        };
        match at {
            Some(at) => self.at(at.max(self.now), Happening::Arrival),
            None => self.note_end(),
        }
    }

    pub(super) fn on_arrival(&mut self) {
        let groups = self.groups.len() as u64;
        let sectors = self.sectors;
        let (group, shape) = match &mut self.source {
            Source::Closed { .. } => return,
            Source::Open { drawn, .. } => (self.draw.below(groups) as u32, drawn.next(sectors)),
            Source::Stream { next, told, .. } => match next {
                Some(record) => told.place(record, groups, sectors),
                None => return,
            },
        };
        self.ask(group, shape);
        self.schedule_arrival();
    }

    pub(super) fn on_slot(&mut self, group: u32) {
        if let Source::Closed { drawn, .. } = &mut self.source {
            let shape = drawn.next(self.sectors);
            self.ask(group, shape);
        }
    }

    fn ask(&mut self, group: u32, shape: Shape) {
        let first = self.draw.index(self.groups[group as usize].bricks.len()) as u8;
        let request = self.requests.insert(Request {
            born: self.now,
            sector: shape.sector,
            count: shape.count,
            group,
            is_write: shape.is_write,
            is_answered: false,
            is_released: false,
            first,
            asked: [NOBODY; 2],
            claims: 0,
            journaled: 0,
            written: 0,
            service_ns: 0,
            queue: 0,
        });
        if shape.is_write {
            self.ask_member(request, first, Message::Write)
        } else {
            self.ask_to_read(request, first)
        }
    }

    /// Hashing and claims begin at any holder, LARD at its front end; the others know whom they want.
    fn ask_to_read(&mut self, request: Ref, first: u8) {
        match &self.chooser {
            Chooser::Claim { told_by_client: true } => self.ask_all(request),
            Chooser::Claim { .. } | Chooser::Central | Chooser::Hash | Chooser::WeightedHash(_) => {
                self.ask_member(request, first, Message::Read);
            }
            Chooser::Lard(_) => self.ask_member(request, 0, Message::Read),
            Chooser::Tied(_) => self.ask_two(request),
            Chooser::ShortestQueue(_) | Chooser::Probing(_) => {
                self.ask_best(request, 0);
            }
            Chooser::Hedged(_) => {
                self.ask_best(request, 0);
                self.schedule_hedge(request);
            }
        }
    }

    fn ask_member(&mut self, request: Ref, member: u8, kind: Message) {
        let Some(known) = self.requests.get_mut(request) else { return };
        known.first = member;
        let to = self.groups[known.group as usize].bricks[usize::from(member)];
        self.send(None, to, kind, request);
    }

    fn ask_all(&mut self, request: Ref) {
        let Some(known) = self.known(request) else { return };
        for member in 0..self.groups[known.group as usize].bricks.len() {
            let to = self.groups[known.group as usize].bricks[member];
            self.send(None, to, Message::Read, request);
        }
    }

    /// Asks the member that looks best of those not yet asked; `turn` is 1 for the second question.
    fn ask_best(&mut self, request: Ref, turn: usize) {
        let Some(known) = self.known(request) else { return };
        let group = &self.groups[known.group as usize];
        let others = group.candidates.iter().filter(|(slot, _)| *slot != known.asked[0]);
        let others: smallest::List = others.copied().collect();
        let address = key(&known);
        let member = match &self.chooser {
            Chooser::ShortestQueue(queues) => queues.choose(address, others.as_slice()),
            Chooser::Hedged(policy) => policy.choose(address, others.as_slice()),
            Chooser::Probing(policy) => policy.choose(others.as_slice()),
            _ => None,
        };
        if let Some(member) = member {
            self.asked(request, turn, member);
        }
    }

    fn ask_two(&mut self, request: Ref) {
        let Some(known) = self.known(request) else { return };
        let candidates = &self.groups[known.group as usize].candidates;
        let Chooser::Tied(policy) = &self.chooser else { return };
        let (first, second) = policy.choose(key(&known), candidates);
        // Both are known before either is asked, for the two are to know of one another.
        for (turn, member) in [first, second].into_iter().enumerate() {
            if let (Some(member), Some(known)) = (member, self.requests.get_mut(request)) {
                known.asked[turn] = member;
            }
        }
        first.into_iter().for_each(|member| self.asked(request, 0, member));
        if let Some(second) = second {
            self.count_asked(known.group, second);
            // A little later, so that an idle first holder has started and said so (the paper's own remedy).
            let way_ns = self.cluster.network.one_way_ns.max(self.cluster.network.client_one_way_ns);
            self.at(self.now + Duration::from_nanos(2 * way_ns), Happening::Hedge { request });
        }
    }

    fn asked(&mut self, request: Ref, turn: usize, member: u8) {
        let Some(known) = self.requests.get_mut(request) else { return };
        known.asked[turn] = member;
        let group = known.group;
        self.count_asked(group, member);
        self.send(None, self.groups[group as usize].bricks[usize::from(member)], Message::Read, request);
    }

    fn count_asked(&mut self, group: u32, member: u8) {
        let (_, brick) = self.groups[group as usize].candidates[usize::from(member)];
        match &mut self.chooser {
            Chooser::ShortestQueue(queues) => queues.begin(brick),
            Chooser::Hedged(policy) => policy.begin(brick),
            Chooser::Tied(policy) => policy.begin(brick),
            Chooser::Probing(policy) => policy.begin(brick),
            _ => {}
        }
    }

    fn schedule_hedge(&mut self, request: Ref) {
        if let Chooser::Hedged(policy) = &self.chooser
            && let Some(delay_ns) = policy.delay_ns()
        {
            self.at(self.now + Duration::from_nanos(delay_ns), Happening::Hedge { request });
        }
    }

    pub(super) fn on_hedge(&mut self, request: Ref) {
        let Some(known) = self.known(request).filter(|known| !known.is_answered) else { return };
        if matches!(self.chooser, Chooser::Tied(_)) {
            let second = self.groups[known.group as usize].bricks[usize::from(known.asked[1])];
            return self.send(None, second, Message::Read, request);
        }
        self.ask_best(request, 1);
    }

    /// A brick answers: the data, or that a write is safe.
    pub(super) fn on_told(&mut self, from: u32, request: Ref) {
        let Some(known) = self.requests.get_mut(request).filter(|known| !known.is_answered) else {
            self.meter.duplicates += 1;
            return;
        };
        known.is_answered = true;
        let known = *known;
        let response_ns = self.now.0 - known.born.0;
        self.meter.answered(self.now, known.is_write, response_ns);
        if known.is_write {
            self.release_written(request);
        } else {
            self.on_data(from, request, &known, response_ns);
            self.requests.remove(request);
            self.slot_free(known.group);
        }
        self.count_answer();
    }

    /// Both questions are settled; who was asked and did not answer is told that it need not.
    fn on_data(&mut self, from: u32, request: Ref, known: &Request, response_ns: u64) {
        if let Chooser::Hedged(policy) = &mut self.chooser {
            policy.answered(response_ns);
        }
        for member in known.asked.into_iter().filter(|member| *member != NOBODY) {
            let brick = self.groups[known.group as usize].bricks[usize::from(member)];
            let id = base::BrickId(brick);
            match &mut self.chooser {
                Chooser::ShortestQueue(queues) => queues.end(id),
                Chooser::Tied(policy) => policy.end(id),
                Chooser::Lard(lard) => lard.end(id),
                Chooser::Probing(policy) => {
                    policy.end(id);
                    policy.answered(id, response_ns, known.service_ns, known.queue);
                }
                Chooser::Hedged(policy) => {
                    policy.end(id);
                    if brick != from {
                        self.send(None, brick, Message::Cancel, request);
                    }
                }
                _ => {}
            }
        }
    }

    /// Frees a slot of the closed loop.
    pub(super) fn slot_free(&mut self, group: u32) {
        if matches!(self.source, Source::Closed { .. }) {
            self.on_slot(group);
        }
    }

    fn count_answer(&mut self) {
        self.answered += 1;
        if self.answered == self.length.warmup {
            self.warmed_up();
        }
        self.is_over |= self.answered >= self.length.warmup.saturating_add(self.length.requests);
        self.note_end();
    }

    /// A stream is over when its last request is.
    pub(super) fn note_end(&mut self) {
        self.is_over |= matches!(self.source, Source::Stream { next: None, .. }) && self.requests.len() == 0;
    }
}

/// What hashes are taken of: the request's block of 4 KiB, in its group.
pub(super) fn key(known: &Request) -> u64 {
    (u64::from(known.group) << 40) | (known.sector / 8)
}

impl Told {
    /// In which group a request is, and where. Beyond the end addresses begin anew; a request that crosses the end is
    /// moved back from it.
    fn place(&mut self, record: &Arrival, groups: u64, sectors: u64) -> (u32, Shape) {
        let extent = record.sector / EXTENT_SECTORS;
        let within = extent / groups * EXTENT_SECTORS + record.sector % EXTENT_SECTORS;
        let count = record.count.clamp(1, u32::try_from(sectors).unwrap_or(u32::MAX));
        let last = sectors - u64::from(count);
        self.requests += 1;
        self.wrapped += u64::from(within > last);
        let sector = (within % sectors).min(last);
        ((extent % groups) as u32, Shape { sector, count, is_write: record.is_write })
    }
}

/// A list of at most 64 candidates that needs no allocation.
mod smallest {
    use base::BrickId;

    pub(super) struct List {
        items: [(u8, BrickId); 64],
        length: usize,
    }

    impl List {
        pub(super) fn as_slice(&self) -> &[(u8, BrickId)] {
            &self.items[..self.length]
        }
    }

    impl FromIterator<(u8, BrickId)> for List {
        fn from_iter<I: IntoIterator<Item = (u8, BrickId)>>(iter: I) -> List {
            let mut list = List { items: [(0, BrickId(0)); 64], length: 0 };
            for item in iter.into_iter().take(64) {
                list.items[list.length] = item;
                list.length += 1;
            }
            list
        }
    }
}
