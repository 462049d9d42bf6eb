//! Clients: what they ask for, whom they ask, and what they do with answers.

use super::asker::Consults;
use super::request::{Bound, NOBODY, Ref, Request};
use super::run::{Happening, Run};
use crate::timed::measured::Message;
use crate::timed::source::Source;
use crate::timed::workload::Shape;
use base::{BrickId, Time};
use core::time::Duration;
use proto::distribute::pace::QuestionId;
use proto::distribute::policy::{self, First, Next, Plan};

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
            asked_at: [Time::ZERO; 2],
            bound: Bound::Undecided,
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

    fn ask_to_read(&mut self, request: Ref, first: u8) {
        match self.asker.consults {
            Consults::AnyBrick => self.ask_member(request, first, Message::Read),
            Consults::FrontEnd => self.ask_member(request, 0, Message::Read),
            Consults::Client => self.ask_by_plan(request),
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

    fn ask_by_plan(&mut self, request: Ref) {
        let Some(known) = self.known(request) else { return };
        let holders = &self.groups[known.group as usize].candidates;
        let Some(Plan { first, wait }) = self.asker.plan(self.now, &known, holders) else { return };
        match first {
            First::One(member) => self.asked(request, 0, member),
            First::Contest { left_out, .. } if left_out.is_empty() => {
                self.bind(request, Bound::Contest);
                self.ask_all(request);
            }
            // A contest without the slow. Where two or more are left it is the quickest's alone here, and nobody is looked at.
            First::Contest { left_out, .. } => {
                let quick = holders.iter().map(|(slot, _)| *slot).find(|slot| !left_out.has(*slot));
                quick.into_iter().for_each(|slot| self.asked(request, 0, slot));
            }
            First::Tied { first, second } => {
                self.bind(request, Bound::Tied);
                // Both are known before either is asked, for the two are to know of one another.
                self.note_asked(request, 0, first);
                self.note_asked(request, 1, second);
                self.send(None, self.brick_at(known.group, first), Message::Read, request);
            }
        }
        self.schedule_next(request, wait);
    }

    pub(super) fn bind(&mut self, request: Ref, bound: Bound) {
        if let Some(known) = self.requests.get_mut(request) {
            known.bound = bound;
        }
    }

    fn brick_at(&self, group: u32, member: u8) -> u32 {
        self.groups[group as usize].bricks[usize::from(member)]
    }

    /// A member is asked to serve a read alone.
    fn asked(&mut self, request: Ref, turn: usize, member: u8) {
        self.bind(request, Bound::Alone);
        self.note_asked(request, turn, member);
        let Some(known) = self.known(request) else { return };
        self.send(None, self.brick_at(known.group, member), Message::Read, request);
    }

    /// The question counts at the member's brick.
    pub(super) fn note_asked(&mut self, request: Ref, turn: usize, member: u8) {
        let now = self.now;
        let Some(known) = self.requests.get_mut(request) else { return };
        (known.asked[turn], known.asked_at[turn]) = (member, now);
        let known = *known;
        let brick = BrickId(self.brick_at(known.group, member));
        self.asker.begin(now, brick, &known, question(request, turn));
    }

    fn schedule_next(&mut self, request: Ref, wait: Option<Duration>) {
        if let Some(wait) = wait {
            self.at(self.now + wait, Happening::Next { request });
        }
    }

    /// A read takes long.
    pub(super) fn on_next(&mut self, request: Ref) {
        let Some(known) = self.known(request).filter(|known| !known.is_answered) else { return };
        let holders = &self.groups[known.group as usize].candidates;
        match self.asker.next(self.now, &known, holders) {
            Next::Ask { slot, wait } if known.asked[1] == NOBODY => {
                self.asked(request, 1, slot);
                self.schedule_next(request, Some(wait));
            }
            Next::Second(member) => {
                self.send(None, self.brick_at(known.group, member), Message::Read, request);
            }
            // A request remembers two that were asked.
            Next::Ask { .. } | Next::Nothing => {}
        }
    }

    /// A brick answers: the data, or that a write is safe.
    pub(super) fn on_told(&mut self, from: u32, request: Ref) {
        let Some(known) = self.requests.get_mut(request).filter(|known| !known.is_answered) else {
            self.meter.contention.duplicates += 1;
            return;
        };
        known.is_answered = true;
        let known = *known;
        let response_ns = self.now.0 - known.born.0;
        self.meter.answered(self.now, known.is_write, response_ns);
        if known.is_write {
            self.release_written(request);
        } else {
            self.on_data(from, request, &known);
            self.requests.remove(request);
            self.slot_free(known.group);
        }
        self.count_answer();
    }

    /// All questions are settled; who was asked and did not answer is told that it need not.
    fn on_data(&mut self, from: u32, request: Ref, known: &Request) {
        for (turn, member) in known.asked.into_iter().enumerate().filter(|(_, member)| *member != NOBODY) {
            let brick = self.brick_at(known.group, member);
            let (id, since) = (BrickId(brick), known.asked_at[turn]);
            if brick == from {
                let response_ns = self.now.0 - since.0;
                let told = policy::Told {
                    brick: id,
                    response_ns,
                    service_ns: known.service_ns,
                    queue: known.queue,
                    device_ns: Some(known.service_ns).filter(|ns| *ns > 0),
                };
                self.asker.answered(self.now, &told, known, question(request, turn));
                continue;
            }
            self.asker.given_up(self.now, id, known, (question(request, turn), since));
            if known.bound == Bound::Alone {
                self.send(None, brick, Message::Cancel, request);
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
        if self.progress.count_answer() {
            self.warmed_up();
        }
        self.note_end();
    }

    /// A stream is over when its last request is.
    pub(super) fn note_end(&mut self) {
        if matches!(self.source, Source::Stream { next: None, .. }) && self.requests.len() == 0 {
            self.progress.end();
        }
    }
}

/// Names the question of a request to the member that was asked as the `turn`th.
fn question(request: Ref, turn: usize) -> QuestionId {
    QuestionId(request.number() << 1 | turn as u64)
}

/// What hashes are taken of: the request's block of 4 KiB, in its group.
pub(super) fn key(known: &Request) -> u64 {
    (u64::from(known.group) << 40) | (known.sector / 8)
}
