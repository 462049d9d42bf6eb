//! What this coordinator asked for each stream, and which bricks have heard of it: the delays that its questions carry.

use super::calls::Call;
use super::views::Views;
use base::{BrickId, StreamId, Time, VolumeId};
use core::time::Duration;
use rules::fair::{Cost, Ledger};
use std::collections::{BTreeMap, BTreeSet};
use wire::{Message, Packet, Service};

/// How often bricks are told of service elsewhere of which no question told them.
pub(crate) const TELL_EVERY: Duration = Duration::from_millis(100);
/// Streams that one message names at the most.
const STREAMS_MAX: usize = wire::OPERATIONS_MAX;

/// What a question costs the stream for which it is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Charge {
    stream: StreamId,
    cost: u64,
    /// Others were asked the same, and one of them serves it: it is charged when it is known which.
    is_contested: bool,
}

#[derive(Default)]
pub(crate) struct Charges {
    cost: Cost,
    ledger: Ledger<BrickId>,
    /// The streams of volumes that are open and of requests for them, by family: bricks of their groups are told of them, also where nothing is asked
    /// of them here.
    open: BTreeMap<VolumeId, BTreeSet<StreamId>>,
    /// The bricks on which the directory says that volumes of these streams lie, here or elsewhere.
    bricks: BTreeMap<StreamId, Vec<BrickId>>,
    /// Whether these are different streams. Otherwise nobody need hear of anything that he is not asked for.
    is_shared: bool,
    tell_at: Option<Time>,
}

impl Charges {
    /// What requests cost in this cluster.
    pub(crate) fn set_cost(&mut self, cost: Cost) {
        self.cost = cost;
    }

    /// A volume of this family and stream is open, or requests of this stream come for one.
    pub(crate) fn open(&mut self, family: VolumeId, stream: StreamId) {
        self.open.entry(family).or_default().insert(stream);
        self.is_shared |= stream != StreamId::default();
    }

    /// Volumes of this stream lie on these bricks.
    pub(crate) fn lies_on(&mut self, stream: StreamId, bricks: Vec<BrickId>) {
        self.bricks.insert(stream, bricks);
    }

    /// No volume of this family is open any more.
    pub(crate) fn close(&mut self, family: VolumeId) {
        self.open.remove(&family);
        let is_open = |stream: &StreamId| self.open.values().any(|streams| streams.contains(stream));
        self.bricks.retain(|stream, _| is_open(stream));
        self.is_shared = self.open.values().flatten().any(|stream| *stream != StreamId::default());
    }

    /// A question goes to `brick`: it says what its stream was served elsewhere.
    pub(crate) fn ask(&mut self, now: Time, brick: BrickId, message: &mut Message) -> Option<Charge> {
        let (service, blocks, is_contested) = access(message)?;
        let (stream, cost) = (service.stream, u64::from(self.cost.of(blocks)));
        let delay = match is_contested {
            true => self.ledger.tell(stream, brick),
            false => self.ledger.charge(stream, brick, cost),
        };
        service.delay = u32::try_from(delay).unwrap_or(u32::MAX);
        if self.is_shared {
            self.tell_at.get_or_insert(now + TELL_EVERY);
        }
        Some(Charge { stream, cost, is_contested })
    }

    /// A question was answered, with what a disk was asked for or without.
    pub(crate) fn answered(&mut self, call: &Call, is_work: bool) {
        let Some(Charge { stream, cost, is_contested }) = call.charge else { return };
        match (is_contested, is_work) {
            (true, true) => self.ledger.served(stream, call.brick, cost),
            (false, false) => self.ledger.refund(stream, call.brick, cost),
            (true, false) | (false, true) => {}
        }
    }

    /// A question is of no interest any more, and was not answered.
    pub(crate) fn given_up(&mut self, call: &Call) {
        self.answered(call, false);
    }

    /// It was served all the same.
    pub(crate) fn served_late(&mut self, brick: BrickId, charge: Charge) {
        self.ledger.served(charge.stream, brick, charge.cost);
    }

    /// When bricks are to be told.
    pub(crate) fn due(&self) -> Option<Time> {
        self.tell_at
    }

    /// What bricks are to be told now of streams that were served elsewhere.
    pub(crate) fn take_told(&mut self, now: Time, views: &Views) -> Vec<(BrickId, Packet)> {
        if self.tell_at.take_if(|at| *at <= now).is_none() {
            return Vec::new();
        }
        self.introduce(views);
        let unheard: Vec<(StreamId, BrickId, u64)> = self.ledger.unheard().collect();
        let mut told: BTreeMap<BrickId, Vec<Service>> = BTreeMap::new();
        for (stream, brick, _) in unheard {
            let of = told.entry(brick).or_default();
            if of.len() < STREAMS_MAX {
                let delay = u32::try_from(self.ledger.tell(stream, brick)).unwrap_or(u32::MAX);
                of.push(Service { stream, delay });
            }
        }
        let packet = |(brick, of)| (brick, Packet::from(Message::Elsewhere { of }));
        told.into_iter().map(packet).collect()
    }
}

impl Charges {
    /// Each brick that holds data of a stream hears of it from now on.
    fn introduce(&mut self, views: &Views) {
        for (family, streams) in &self.open {
            let groups = views.groups_of(*family).into_iter().filter_map(|group| views.known(group));
            for brick in groups.flat_map(|view| &view.members) {
                streams.iter().for_each(|stream| self.ledger.introduce(*stream, *brick));
            }
        }
        for (stream, bricks) in &self.bricks {
            bricks.iter().for_each(|brick| self.ledger.introduce(*stream, *brick));
        }
    }
}

/// Whose access of a disk a question leads to, of how many blocks, and whether others were asked the same.
fn access(message: &mut Message) -> Option<(&mut Service, u32, bool)> {
    match message {
        Message::Read { service, span, stamps, content, contest, .. } => {
            (*stamps || *content).then_some((service, span.count, contest.is_some()))
        }
        Message::Prepare { service, write, .. } => Some((service, write.span.count, false)),
        Message::Repair { service, span, .. } => Some((service, span.count, false)),
        _ => None,
    }
}
