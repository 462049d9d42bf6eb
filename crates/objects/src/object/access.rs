//! Which fragments of a segment a reader asks for, at whom, and when.

mod adaptive;
mod claimed;
mod paced;
mod ranged;
mod speculative;

use adaptive::Adaptive;
use claimed::Claimed;
use paced::Paced;
use ranged::Ranged;
use speculative::Speculative;

use base::{BrickId, Time};
use core::fmt::Debug;
use core::ops::Range;
use core::time::Duration;

/// A symbol of a segment, and who has it.
pub type Place = (u32, BrickId);

/// Which of them: what somebody who wants a segment says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessStrategy {
    Speculative,
    Paced { window: usize },
    Adaptive { window: usize },
    Claimed { window: usize },
}

impl AccessStrategy {
    /// So many fragments are on their way from a brick at a time.
    const WINDOW: usize = 4;
    /// That of objects, unless whoever wants one says otherwise.
    pub const USUAL: AccessStrategy = AccessStrategy::Paced { window: AccessStrategy::WINDOW };
    /// Those that suit objects as they are kept, the usual one first, by the names that users give them.
    pub const NAMED: [(&str, AccessStrategy); 3] = [
        ("paced", AccessStrategy::USUAL),
        ("claimed", AccessStrategy::Claimed { window: AccessStrategy::WINDOW }),
        ("speculative", AccessStrategy::Speculative),
    ];

    /// That of this name.
    pub fn named(name: &str) -> Option<AccessStrategy> {
        AccessStrategy::NAMED.into_iter().find(|(known, _)| *known == name).map(|(_, access)| access)
    }

    /// Of a segment of so many blocks, of which these are wanted if not all are, and waited for so long before others are asked for.
    pub(super) fn access(
        self,
        blocks: u32,
        wanted: Option<(Range<u32>, Duration)>,
    ) -> Box<dyn Access + Send> {
        let whole: Box<dyn Access + Send> = match self {
            AccessStrategy::Speculative => Box::new(Speculative),
            AccessStrategy::Paced { window } => Box::new(Paced::new(window)),
            AccessStrategy::Adaptive { window } => Box::new(Adaptive::new(blocks, window)),
            AccessStrategy::Claimed { window } => Box::new(Claimed::new(blocks, window)),
        };
        match wanted {
            Some((wanted, patience)) => Box::new(Ranged::new(wanted, patience, whole)),
            None => whole,
        }
    }
}

/// How a segment is read: a file each. It is told what comes, and says what to ask for next. It need not know which symbols are enough: it
/// is asked no more when they are.
pub(super) trait Access: Debug {
    /// What to ask for at first.
    fn begin(&mut self, now: Time, places: &[Place]) -> Vec<Place>;
    /// What was asked for has come, or it will not come from there. What to ask for now.
    fn ended(&mut self, now: Time, place: Place, has_come: bool) -> Vec<Place>;
    /// What was asked for is late: it may come, and it may never come. What to ask for instead.
    fn late(&mut self, _now: Time, _place: Place) -> Vec<Place> {
        Vec::new()
    }
    /// When it is to be woken, if nothing ends before.
    fn deadline(&self) -> Option<Time> {
        None
    }
    /// The deadline has come: what to ask for now.
    fn wake(&mut self, _now: Time) -> Vec<Place> {
        Vec::new()
    }
    /// What was asked for and is to be called off, since the last call. It may be asked for again.
    fn unwanted(&mut self) -> Vec<Place> {
        Vec::new()
    }
}
