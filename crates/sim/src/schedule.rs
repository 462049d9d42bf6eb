//! What clients, faults and the administrator do in a run, as a list of turns.
//!
//! A seed draws these turns one after the other, and each depends on what the run has come to. Recorded, they are data: the
//! moment of a turn, and the state of the draws that decide what is done in it. A run that follows a [`Schedule`] takes its
//! turns and no others. If the schedule has all turns of a seed, the run is that of the seed, event for event. If some are left
//! out, the others come at their moments and are about the same blocks and nodes.

use model::Draw;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

/// Whose turn it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// A client of a volume: it reads or writes.
    Client,
    /// Something goes wrong.
    Fault,
    /// The administrator gives a command.
    Administrator,
    /// The administrator gives a command that is about streams.
    Streams,
    /// The administrator gives a command that is about a volume which nobody opens.
    Churn,
    /// A client puts or gets a segment of an object.
    Segment,
    /// A client puts, patches, reads, removes or lists objects.
    Object,
}

/// One thing that is done in a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Turn {
    pub by: By,
    /// Which of them.
    pub actor: usize,
    /// When, in nanoseconds since clients began. A client that is still busy then takes its turn as soon as it is free.
    pub at_ns: u64,
    /// The state of the draws that decide what is done.
    pub draws: u64,
}

/// The turns of a run, and on what it runs.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Schedule {
    /// Those of each actor in the order of time.
    pub turns: Vec<Turn>,
    /// Faults end so long after clients began; `None` for what the seed draws.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub safety_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Changes::is_none")]
    pub changes: Changes,
}

/// How the cluster is simpler than the one that the seed draws.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Changes {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bricks: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateways: Option<u32>,
    /// Client machines that volumes are attached to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// Each brick has one disk.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub one_disk: bool,
    /// Volumes of the shape, by their numbers, that are not made.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub without_volumes: BTreeSet<usize>,
    /// All clocks agree.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub exact_clocks: bool,
    /// No gateway lies about delays.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub no_lies: bool,
}

impl Changes {
    fn is_none(&self) -> bool {
        *self == Changes::default()
    }
}

/// By what a run goes.
#[derive(Clone, Default)]
pub enum Course {
    /// Its seed draws one turn after the other.
    #[default]
    Drawn,
    /// The same, and they are written down.
    Recorded(Recording),
    Scheduled(Schedule),
}

/// The turns that a run has drawn so far. Whoever started the run keeps a copy, so that the turns are known even if a machine
/// panics.
#[derive(Clone, Default)]
pub struct Recording(Rc<RefCell<Vec<Turn>>>);

impl Recording {
    pub fn schedule(&self) -> Schedule {
        Schedule { turns: self.0.borrow().clone(), ..Schedule::default() }
    }
}

/// Hands out turns during a run.
#[derive(Default)]
pub(crate) struct Turns {
    /// When clients began.
    start_ns: u64,
    source: Source,
}

#[derive(Default)]
enum Source {
    #[default]
    Drawn,
    Recorded(Recording),
    Scheduled(BTreeMap<(By, usize), VecDeque<Turn>>),
}

/// Whether an actor takes its turn.
pub(crate) enum Whether {
    Now,
    /// After this delay.
    In(u64),
    /// It has none left.
    Never,
}

impl Turns {
    pub(crate) fn new(course: &Course) -> Turns {
        let source = match course {
            Course::Drawn => Source::Drawn,
            Course::Recorded(recording) => Source::Recorded(recording.clone()),
            Course::Scheduled(schedule) => {
                let mut agenda: BTreeMap<_, VecDeque<Turn>> = BTreeMap::new();
                for turn in &schedule.turns {
                    agenda.entry((turn.by, turn.actor)).or_default().push_back(*turn);
                }
                Source::Scheduled(agenda)
            }
        };
        Turns { start_ns: 0, source }
    }

    /// Clients begin now.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        self.start_ns = now_ns;
    }

    /// An actor could take a turn now, drawing from `draw`.
    pub(crate) fn take(&mut self, by: By, actor: usize, now_ns: u64, draw: &mut Draw) -> Whether {
        match &mut self.source {
            Source::Drawn => {}
            Source::Recorded(recording) => {
                let at_ns = now_ns - self.start_ns;
                recording.0.borrow_mut().push(Turn { by, actor, at_ns, draws: draw.state() });
            }
            Source::Scheduled(agenda) => {
                let Some(turns) = agenda.get_mut(&(by, actor)) else { return Whether::Never };
                let Some(turn) = turns.front() else { return Whether::Never };
                if self.start_ns + turn.at_ns > now_ns {
                    return Whether::In(self.start_ns + turn.at_ns - now_ns);
                }
                *draw = Draw::new(turn.draws);
                turns.pop_front();
            }
        }
        Whether::Now
    }

    /// How long an actor pauses before its next turn, for which `drawn_ns` was drawn.
    pub(crate) fn pause_ns(&self, by: By, actor: usize, now_ns: u64, drawn_ns: u64) -> u64 {
        match &self.source {
            Source::Scheduled(agenda) => {
                let next = agenda.get(&(by, actor)).and_then(VecDeque::front);
                next.map_or(drawn_ns, |turn| (self.start_ns + turn.at_ns).saturating_sub(now_ns))
            }
            Source::Drawn | Source::Recorded(_) => drawn_ns,
        }
    }

    /// Whether an actor has no turn any more.
    pub(crate) fn are_over(&self, by: By, actor: usize) -> bool {
        match &self.source {
            Source::Scheduled(agenda) => agenda.get(&(by, actor)).is_none_or(VecDeque::is_empty),
            Source::Drawn | Source::Recorded(_) => false,
        }
    }
}
