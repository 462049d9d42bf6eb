//! What fragments cost the streams for which they are moved: the delays that questions carry, as those about volumes do ([`rules::fair::Ledger`]).

use base::{BrickId, StreamId};
use rules::fair::{Cost, Ledger};
use std::collections::BTreeMap;
use wire::Service;

/// So many questions that were called off are remembered; of more, the oldest count as served: bricks that are gone never say.
const CALLED_OFF_MAX: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Charges {
    cost: Cost,
    ledger: Ledger<BrickId>,
    /// Questions that were called off: whether the brick has served them all the same is not known yet.
    called_off: BTreeMap<u64, Charge>,
}

#[derive(Debug)]
struct Charge {
    brick: BrickId,
    stream: StreamId,
    cost: u64,
}

impl Charges {
    /// What requests cost in this cluster.
    pub(super) fn set_cost(&mut self, cost: Cost) {
        self.cost = cost;
    }

    /// A question about a fragment of so many blocks goes to `brick`: what its stream was served elsewhere goes with it.
    pub(super) fn ask(&mut self, stream: StreamId, brick: BrickId, blocks: u32) -> Service {
        let delay = self.ledger.charge(stream, brick, u64::from(self.cost.of(blocks)));
        Service { stream, delay: u32::try_from(delay).unwrap_or(u32::MAX) }
    }

    /// A question is called off.
    pub(super) fn call_off(&mut self, operation: u64, stream: StreamId, brick: BrickId, blocks: u32) {
        let charge = Charge { brick, stream, cost: u64::from(self.cost.of(blocks)) };
        self.called_off.insert(operation, charge);
        if self.called_off.len() > CALLED_OFF_MAX {
            self.called_off.pop_first();
        }
    }

    /// The brick says which of the questions that were called off it has not served, and which it has.
    pub(super) fn cancelled(&mut self, brick: BrickId, withdrawn: &[u64], late: &[u64]) {
        let known = |charge: &mut Charge| charge.brick == brick;
        for operation in late {
            take_if(&mut self.called_off, *operation, known);
        }
        for operation in withdrawn {
            if let Some(charge) = take_if(&mut self.called_off, *operation, known) {
                self.ledger.refund(charge.stream, brick, charge.cost);
            }
        }
    }

    /// The way to the brick was broken: what it said of what was called off is lost. It counts as served.
    pub(super) fn on_up(&mut self, brick: BrickId) {
        self.called_off.retain(|_, charge| charge.brick != brick);
    }
}

fn take_if(
    of: &mut BTreeMap<u64, Charge>,
    operation: u64,
    is_meant: impl FnOnce(&mut Charge) -> bool,
) -> Option<Charge> {
    match of.get_mut(&operation).is_some_and(is_meant) {
        true => of.remove(&operation),
        false => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOLD: StreamId = StreamId(7);

    #[test]
    fn each_brick_hears_what_the_others_were_asked_but_for_what_they_withdrew() {
        let mut charges = Charges::default();
        let [one, two] = [BrickId(1), BrickId(2)];
        let cost = u64::from(Cost::default().of(16));
        let delay = |charges: &mut Charges, brick| u64::from(charges.ask(GOLD, brick, 16).delay);
        assert_eq!(delay(&mut charges, one), 0);
        assert_eq!(delay(&mut charges, two), 0, "each for the first time");
        assert_eq!(delay(&mut charges, two), 0);
        assert_eq!(delay(&mut charges, one), 2 * cost);
        // Two more at the second one, of which one is withdrawn.
        assert_eq!((delay(&mut charges, two), delay(&mut charges, two)), (cost, 0));
        charges.call_off(5, GOLD, two, 16);
        charges.call_off(6, GOLD, two, 16);
        charges.cancelled(one, &[5, 6], &[]);
        charges.cancelled(two, &[5], &[6]);
        charges.cancelled(two, &[5, 6], &[]);
        assert_eq!(delay(&mut charges, one), cost);
    }

    #[test]
    fn of_bricks_that_never_say_what_became_of_questions_few_are_remembered() {
        let mut charges = Charges::default();
        (0..2 * CALLED_OFF_MAX as u64).for_each(|operation| charges.call_off(operation, GOLD, BrickId(1), 1));
        assert_eq!(charges.called_off.len(), CALLED_OFF_MAX);
        assert_eq!(
            charges.called_off.first_key_value().map(|(first, _)| *first),
            Some(CALLED_OFF_MAX as u64)
        );
    }

    #[test]
    fn what_was_called_off_before_the_way_broke_counts_as_served() {
        let mut charges = Charges::default();
        let [one, two] = [BrickId(1), BrickId(2)];
        let ask = |charges: &mut Charges, brick| charges.ask(GOLD, brick, 1).delay;
        ask(&mut charges, one);
        ask(&mut charges, two);
        charges.call_off(2, GOLD, two, 1);
        charges.on_up(two);
        charges.cancelled(two, &[2], &[]);
        assert_eq!(ask(&mut charges, one), Cost::default().of(1));
    }
}
