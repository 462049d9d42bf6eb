//! `effect once`: of all attempts of one part of a client's request, at most one is ever decided to take effect.
//!
//! Watches what goes over the wire: which stamps were drawn for which request, and which stamps were decided. After a
//! later write of its blocks was decided, nobody holds a decided write any more, and to give it up does nothing. A view
//! change may decide a write that was given up while a member that refused it was still there, as long as its
//! request was not answered: then no other attempt and no later write of its blocks was decided. And a gateway that does
//! not know of the new view yet may give such a write up under the old one, where a member that was left out refuses it:
//! no member of the new view holds it any more.

use super::Violation;
use base::{GroupId, HashMap, HashSet, RequestId, Stamp, VolumeId};
use wire::{Decision, Message, Scope, WriteId};

const NAME: &str = "effect once";
/// Stands for all data indexes.
const ROW: u8 = 32;

/// One part of a client's request, in one group: it is the same one when the volume goes on in another branch.
type Part = (RequestId, GroupId, u64);

/// What was seen so far.
#[derive(Default)]
pub struct Once {
    attempts: HashMap<Stamp, (Part, WriteId)>,
    decided: HashMap<Part, Stamp>,
    given_up: HashSet<Stamp>,
    /// Decided by the making of a view.
    by_view: HashSet<Stamp>,
    /// The latest decided write of each member-local block, by data index; writes of whole rows under [`ROW`].
    latest: HashMap<(VolumeId, u64, u8), Stamp>,
}

impl Once {
    /// Looks at a message as it is sent.
    pub fn watch(&mut self, message: &Message) -> Result<(), Violation> {
        match message {
            Message::Prepare { write, request, part, .. } => {
                self.attempts.insert(write.stamp, ((*request, write.group, *part), *write));
                Ok(())
            }
            Message::Decide { commits, aborts } | Message::Activate { commits, aborts, .. } => {
                if matches!(message, Message::Activate { .. }) {
                    self.by_view.extend(commits.iter().map(|decision| decision.stamp));
                }
                aborts.iter().try_for_each(|decision| self.on_abort(decision))?;
                commits.iter().try_for_each(|decision| self.on_commit(decision))
            }
            _ => Ok(()),
        }
    }

    fn on_commit(&mut self, decision: &Decision) -> Result<(), Violation> {
        let stamp = decision.stamp;
        let Some((part, write)) = self.attempts.get(&stamp) else { return Ok(()) };
        if self.given_up.contains(&stamp) && !self.decided.contains_key(part) && self.is_past(write) {
            return Err(Violation::new(
                NAME,
                format!("{stamp:?} was given up, and decided after later writes"),
            ));
        }
        let lane = lane(write);
        for lba in write.span.lba..write.span.end() {
            let latest = self.latest.entry((write.span.volume, lba, lane)).or_default();
            *latest = stamp.max(*latest);
        }
        let first = *self.decided.entry(*part).or_insert(stamp);
        if first == stamp {
            return Ok(());
        }
        let (RequestId { client, sequence }, group, block) = part;
        let what = format!(
            "request {sequence} of {client}, in {group} from block {block} on, took effect as {first:?} and again as {stamp:?}"
        );
        Err(Violation::new(NAME, what))
    }

    fn on_abort(&mut self, decision: &Decision) -> Result<(), Violation> {
        let stamp = decision.stamp;
        self.given_up.insert(stamp);
        let Some((part, write)) = self.attempts.get(&stamp) else { return Ok(()) };
        if self.decided.get(part) == Some(&stamp) && !self.by_view.contains(&stamp) && !self.is_past(write) {
            return Err(Violation::new(NAME, format!("the write {stamp:?} was decided and then given up")));
        }
        Ok(())
    }

    /// Whether a later write of one of its blocks was decided.
    fn is_past(&self, write: &WriteId) -> bool {
        let lanes = match lane(write) {
            ROW => 0..=ROW,
            lane => lane..=lane,
        };
        let latest =
            |lba, lane| self.latest.get(&(write.span.volume, lba, lane)).copied().unwrap_or_default();
        let mut blocks = write.span.lba..write.span.end();
        blocks.any(|lba| {
            latest(lba, ROW) > write.stamp || lanes.clone().any(|lane| latest(lba, lane) > write.stamp)
        })
    }
}

/// Under which data index a write is kept.
fn lane(write: &WriteId) -> u8 {
    match write.scope {
        Scope::Unit { index } => index.min(ROW - 1),
        Scope::Row => ROW,
    }
}
