//! A gateway that lies about delays: what it says of what streams were served elsewhere is drawn. No brick may be harmed by that, nor any other
//! stream's minimum.

use super::Faults;
use crate::rare::Seen;
use crate::world::World;
use base::{NodeId, StreamId};
use model::Draw;
use wire::{Message, Service};

/// Of a hundred requests to a brick so many are followed by what nobody asked for, about streams that the gateway may not even serve.
const SLANDER_PERCENT: u32 = 3;
/// Streams that it then speaks of, at the most.
const SLANDERED_MAX: u64 = 4;
/// Streams of volumes have the first numbers.
const NUMBERED: u64 = 12;

/// The gateway that lies, and how.
pub(super) struct Liar {
    draw: Draw,
    node: Option<usize>,
}

impl Liar {
    pub(super) fn new(seed: u64) -> Liar {
        Liar { draw: Draw::new(seed), node: None }
    }

    /// What it says in the place of the truth, which it says at times.
    fn delay(&mut self, truth: u32) -> u32 {
        match self.draw.below(5) {
            0 => truth,
            1 => 0,
            2 => u32::MAX,
            3 => self.draw.bits() as u32,
            _ => self.draw.below(10_000) as u32,
        }
    }

    /// Whether it says anything else than the truth.
    fn distort(&mut self, service: &mut Service) -> bool {
        let truth = service.delay;
        service.delay = self.delay(truth);
        service.delay != truth
    }

    fn slander(&mut self) -> Service {
        let own = [StreamId::MAINTENANCE, StreamId::REPAIR, StreamId::DESTAGE];
        let is_own = self.draw.percent(20);
        let stream = if is_own { *self.draw.pick(&own) } else { StreamId(self.draw.below(NUMBERED) as u32) };
        Service { stream, delay: self.delay(0) }
    }
}

impl Faults {
    /// A gateway is there: the first one lies, in runs in which one does.
    pub(crate) fn appoint_liar(&mut self, node: usize) {
        if let Some(liar) = &mut self.liar {
            liar.node.get_or_insert(node);
        }
    }

    /// Another gateway comes in the place of one that is gone.
    pub(super) fn pass_on_lies(&mut self, from: usize, to: usize) {
        if let Some(liar) = &mut self.liar
            && liar.node == Some(from)
        {
            liar.node = Some(to);
        }
    }
}

impl World {
    /// What leaves a gateway that lies, as it then is; and what else it says.
    pub(crate) fn lie(&mut self, from: usize, to: NodeId, message: &mut Message) -> Option<Message> {
        let liar = self.faults.liar.as_mut().filter(|liar| liar.node == Some(from))?;
        let (has_lied, more) = match message {
            Message::Prepare { service, .. }
            | Message::Read { service, .. }
            | Message::Repair { service, .. } => {
                let has_lied = liar.distort(service);
                let slanders = matches!(to, NodeId::Brick(_)) && liar.draw.percent(SLANDER_PERCENT);
                let count = if slanders { liar.draw.between(1, SLANDERED_MAX) } else { 0 };
                (has_lied, (0..count).map(|_| liar.slander()).collect())
            }
            Message::Elsewhere { of } => {
                (of.iter_mut().fold(false, |lied, service| liar.distort(service) | lied), Vec::new())
            }
            _ => return None,
        };
        if has_lied || !more.is_empty() {
            self.judges.count_rare(Seen::GatewayLiedAboutADelay);
        }
        (!more.is_empty()).then_some(Message::Elsewhere { of: more })
    }
}
