//! `few repeats`: a question of a view change that is not answered is repeated at ever longer intervals, so that a brick with thousands of
//! groups is not asked more than it can answer.

use super::Violation;
use base::{GroupId, NodeId, Time, ViewNumber};
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use wire::Message;

const NAME: &str = "few repeats";
/// Within this...
const WINDOW: Duration = Duration::from_secs(4);
/// ...one question is asked no more than so often: twice what a directory asks that does not restart.
const ASKED_MAX: usize = 12;

/// What is asked in a view change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    Fence,
    Resolve,
    Activate,
}

/// When each question of a view change was asked lately.
#[derive(Default)]
pub(crate) struct Repeats {
    asked: BTreeMap<(NodeId, GroupId, Kind), (ViewNumber, VecDeque<Time>)>,
}

impl Repeats {
    /// Looks at a message as it is sent.
    pub(crate) fn watch(&mut self, now: Time, to: NodeId, message: &Message) -> Result<(), Violation> {
        let (kind, group, number) = match message {
            Message::Fence { view, .. } => (Kind::Fence, view.group, view.number),
            Message::Activate { view, .. } => (Kind::Activate, view.group, view.number),
            Message::Resolve { group, number, .. } => (Kind::Resolve, *group, *number),
            _ => return Ok(()),
        };
        let (of, times) = self.asked.entry((to, group, kind)).or_insert((number, VecDeque::new()));
        if *of != number {
            (*of, *times) = (number, VecDeque::new());
        }
        times.push_back(now);
        while times.front().is_some_and(|at| now.since(*at) > WINDOW) {
            times.pop_front();
        }
        if times.len() <= ASKED_MAX {
            return Ok(());
        }
        let why = format!("{kind:?} of {number} of {group} to {to}: {} within {WINDOW:?}", times.len());
        Err(Violation::new(NAME, why))
    }

    /// A directory that starts asks anew.
    pub(crate) fn on_restart(&mut self) {
        self.asked.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::BrickId;

    fn asks(times_ms: impl Iterator<Item = u64>) -> Result<(), Violation> {
        let mut repeats = Repeats::default();
        let mut ask = |ms: u64| {
            let question =
                Message::Resolve { group: GroupId(1), number: ViewNumber(2), writes: Vec::new(), run: 0 };
            repeats.watch(Time::ZERO + Duration::from_millis(ms), NodeId::Brick(BrickId(3)), &question)
        };
        times_ms.into_iter().try_for_each(&mut ask)
    }

    #[test]
    fn what_is_asked_four_times_a_second_for_long_is_seen() {
        assert_eq!(asks((0..30).map(|second| second * 1000)), Ok(()));
        let why = asks((0..30).map(|quarter| quarter * 250)).unwrap_err();
        assert!(why.what.contains("Resolve of") && why.what.contains("13 within"), "{}", why.what);
    }
}
