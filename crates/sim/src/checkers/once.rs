//! `effect once`: of all attempts of one part of a client's request, at most one is ever decided to take effect.
//!
//! Watches what goes over the wire: which stamps were drawn for which request, and which stamps were decided.

use super::Violation;
use base::{HashMap, RequestId, Stamp};
use wire::{Decision, Message};

const NAME: &str = "effect once";

/// One part of a client's request: the volume tells apart parts with one number.
type Part = (RequestId, u64, u64);

/// What was seen so far.
#[derive(Default)]
pub struct Once {
    attempts: HashMap<Stamp, Part>,
    decided: HashMap<Part, Stamp>,
    aborted: HashMap<Stamp, ()>,
}

impl Once {
    /// Looks at a message as it is sent.
    pub fn watch(&mut self, message: &Message) -> Result<(), Violation> {
        match message {
            Message::Prepare { write, request, part, .. } => {
                self.attempts.insert(write.stamp, (*request, write.span.volume.0, *part));
                Ok(())
            }
            Message::Decide { commits, aborts } | Message::Activate { commits, aborts, .. } => {
                aborts.iter().try_for_each(|decision| self.on_abort(decision))?;
                commits.iter().try_for_each(|decision| self.on_commit(decision))
            }
            _ => Ok(()),
        }
    }

    fn on_commit(&mut self, decision: &Decision) -> Result<(), Violation> {
        let stamp = decision.stamp;
        if self.aborted.contains_key(&stamp) {
            return Err(Violation::new(NAME, format!("the write {stamp:?} was given up and then decided")));
        }
        let Some(part) = self.attempts.get(&stamp) else { return Ok(()) };
        let first = *self.decided.entry(*part).or_insert(stamp);
        if first == stamp {
            return Ok(());
        }
        Err(Violation::new(NAME, format!("{part:?} took effect as {first:?} and again as {stamp:?}")))
    }

    fn on_abort(&mut self, decision: &Decision) -> Result<(), Violation> {
        let stamp = decision.stamp;
        self.aborted.insert(stamp, ());
        let decided = self.attempts.get(&stamp).and_then(|part| self.decided.get(part));
        if decided == Some(&stamp) {
            return Err(Violation::new(NAME, format!("the write {stamp:?} was decided and then given up")));
        }
        Ok(())
    }
}
