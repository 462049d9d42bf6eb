//! Which events of a trace are shown.

use crate::trace::Step;
use crate::units::{MS, SECOND};
use core::str::FromStr;

/// A place in a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The number of an event.
    Event(u64),
    /// Nanoseconds of the world.
    Time(u64),
}

impl Place {
    fn is_before(self, step: &Step) -> bool {
        match self {
            Place::Event(number) => number < step.n,
            Place::Time(at_ns) => at_ns < step.t,
        }
    }

    fn is_behind(self, step: &Step) -> bool {
        match self {
            Place::Event(number) => number > step.n,
            Place::Time(at_ns) => at_ns > step.t,
        }
    }
}

impl FromStr for Place {
    type Err = String;

    /// `500` is an event; `12.5s`, `300ms`, `20us` and `7ns` are times.
    fn from_str(text: &str) -> Result<Place, String> {
        if let Ok(number) = text.parse() {
            return Ok(Place::Event(number));
        }
        let units = [("ns", 1), ("us", MS / 1000), ("ms", MS), ("s", SECOND)];
        let parse = |(unit, ns): (&str, u64)| Some(text.strip_suffix(unit)?.parse::<f64>().ok()? * ns as f64);
        let at_ns = units.into_iter().find_map(parse).filter(|at_ns| *at_ns >= 0.0 && *at_ns < 1e18);
        at_ns.map(|at_ns| Place::Time(at_ns as u64)).ok_or_else(|| {
            format!("'{text}' is neither the number of an event, such as 500, nor a time, such as 12.5s")
        })
    }
}

/// Shows an event only if it passes each part that is given.
#[derive(Clone, Default, Debug)]
pub struct Filter {
    /// The first event.
    pub from: Option<Place>,
    /// The last event.
    pub until: Option<Place>,
    /// Nodes that events reach, or that sent what reaches another one; empty for all.
    pub nodes: Vec<String>,
    /// Operations that events are about; empty for all.
    pub operations: Vec<u64>,
}

impl Filter {
    pub(super) fn shows(&self, step: &Step) -> bool {
        let is_at = |name: &String| step.node == *name || step.sender() == Some(name);
        !self.from.is_some_and(|from| from.is_behind(step))
            && (self.nodes.is_empty() || self.nodes.iter().any(is_at))
            && (self.operations.is_empty() || self.operations.iter().any(|number| step.is_about(*number)))
    }

    /// Whether neither this event nor any later one is shown.
    pub(super) fn ends_before(&self, step: &Step) -> bool {
        self.until.is_some_and(|until| until.is_before(step))
    }
}

impl Step {
    /// Whose packet it is.
    fn sender(&self) -> Option<&str> {
        self.what.strip_prefix("from ")?.split_once(": ").map(|(sender, _)| sender)
    }

    /// Whether its text names this operation, as `#7` or as `operation: 7`.
    fn is_about(&self, operation: u64) -> bool {
        ["#", "operation: "].iter().any(|mark| {
            let mut rest = self.what.as_str();
            while let Some((_, behind)) = rest.split_once(mark) {
                let digits = behind.len() - behind.trim_start_matches(|c: char| c.is_ascii_digit()).len();
                if behind[..digits].parse() == Ok(operation) {
                    return true;
                }
                rest = behind;
            }
            false
        })
    }
}
