//! What an operation of a protocol costs where nothing fails and nothing meets: messages, rounds and flushes.

use super::order::{Gate, rule};
use rules::layout::Layout;
use wire::{Protocol, SmallWrites};

/// What one operation costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cost {
    /// Questions to bricks and their answers. Decisions of writes ride along with other messages, or cost one more message for each
    /// brick where there is nothing to ride along with. That a lock is given back is one more message, too, for which nobody waits.
    pub messages: u32,
    /// Questions that wait for the answers of earlier ones count once more.
    pub rounds: u32,
    /// Writes to a journal that an answer waits for.
    pub flushes: u32,
}

impl Cost {
    fn of(questions: u32, rounds: u32, flushes: u32) -> Cost {
        Cost { messages: 2 * questions, rounds, flushes }
    }
}

/// An operation, as the paper counts them (section 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Of blocks of one unit, answered under a lease, by a read policy that asks one brick.
    Read,
    /// Of blocks of one unit; of mirrors any write.
    SmallWrite,
    /// Of whole rows.
    FullStripe,
    /// What a write of several parts costs beside these, where they are decided together.
    Record,
}

/// What an operation costs on a layout, under a protocol.
pub fn cost(protocol: Protocol, layout: Layout, operation: Operation) -> Cost {
    if operation == Operation::Record {
        // A part of no request: it passes no gate.
        return unordered(layout, operation);
    }
    let rule = rule(protocol.order);
    let (mut cost, is_write) = (unordered(layout, operation), operation != Operation::Read);
    let is_small = operation == Operation::SmallWrite && layout.parity() > 0;
    let is_rmw = protocol.small_writes == SmallWrites::ReadModifyWrite;
    if is_small && is_rmw {
        // All are asked what is there, and all are then prepared.
        cost.messages *= 2;
    }
    if is_write && rule.gate() == Gate::Server {
        cost.messages += 2;
        cost.rounds += 1;
    }
    // One that knows all stamps of the blocks is asked; nobody does of rows without parity.
    let is_told = is_small || operation == Operation::SmallWrite || layout.parity() > 0 || layout.data() == 1;
    if is_write && rule.gate() == Gate::Time && is_told {
        cost.messages += 2;
        cost.rounds += 1;
    }
    // A write of which the data brick tells the difference begins there in any case.
    let asks_all_at_once = if is_small { is_rmw } else { cost.messages > 2 };
    if is_write && rule.manner(false).first_alone && asks_all_at_once {
        cost.rounds += 1;
    }
    cost
}

fn unordered(layout: Layout, operation: Operation) -> Cost {
    let (width, parity) = (u32::from(layout.width()), u32::from(layout.parity()));
    match operation {
        Operation::Read => Cost::of(1, 1, 0),
        // The parity bricks are asked when the data brick has told the difference.
        Operation::SmallWrite if parity > 0 => Cost::of(1 + parity, 2, 1 + parity),
        Operation::SmallWrite if layout.data() > 1 => Cost::of(1, 1, 1),
        Operation::Record if parity == 0 && layout.data() > 1 => Cost::of(1, 1, 1),
        Operation::SmallWrite | Operation::FullStripe | Operation::Record => Cost::of(width, 1, width),
    }
}
