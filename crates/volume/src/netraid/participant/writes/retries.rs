//! Who answers a retry: the member itself, by what it knows of the write. One that took effect takes none again; one that
//! is under way is answered when it would have been, to whoever asked last; one that was refused stays refused. A decision
//! that comes again finds nothing undecided, and is ignored (`on_decide`).

use super::{Around, State, Writes, answer, answer_prepared, look_of};
use crate::netraid::participant::branches::Wanted;
use crate::netraid::participant::disk::Looking;
use crate::netraid::pending::{Prepare, WriteKey};
use rules::counters::Counter;
use wire::PrepareOutcome;

impl Writes {
    /// Whether a prepare was here before: it is answered by what is known of it.
    pub(in crate::netraid::participant) fn knows(&self, prepare: &Prepare) -> bool {
        let key = prepare.key();
        self.undecided.get(&key).is_some()
            || self.waiting.has(&key)
            || self.outcomes.is_over(prepare.request, prepare.part)
            || self.fates.refuses(key.stamp).is_some()
    }

    /// Answers a prepare that was here before, or will when there is an answer. Gives back one that is new.
    pub(super) fn answer_retry(&mut self, at: &mut Around<'_, '_>, prepare: Prepare) -> Option<Prepare> {
        let key = prepare.key();
        if self.outcomes.is_over(prepare.request, prepare.part) {
            at.cx.counters.count(Counter::DuplicateRequestSuppressed);
            answer(at.cx, &prepare, PrepareOutcome::Duplicate);
        } else if let Some(newest) = self.fates.refuses(key.stamp) {
            answer(at.cx, &prepare, PrepareOutcome::Late { newest });
        } else if self.undecided.get(&key).is_some() {
            self.answer_undecided(at, key, prepare);
        } else if let Some(waiting) = self.waiting.get_mut(&key) {
            waiting.reply_to = prepare.reply_to;
        } else {
            return Some(prepare);
        }
        None
    }

    /// The same prepare came again: answers again if it was answered.
    fn answer_undecided(&mut self, at: &mut Around<'_, '_>, key: WriteKey, prepare: Prepare) {
        let pending = self.undecided.get_mut(&key).expect("looked up by the caller");
        pending.prepare.reply_to = prepare.reply_to;
        let State::Staged { old, looked_up, .. } = &mut pending.state else { return };
        if !prepare.want_delta || old.is_some() {
            return answer_prepared(at.cx, &pending.prepare, old.as_ref());
        }
        // Found again after a restart: the delta is computed anew from the committed content, still the old one.
        let look = look_of(&prepare, Wanted::Content);
        let looking = Looking::Check { key, copy_ups: self.copy_ups.made() };
        *looked_up = Some(at.disk.look(at.cx, look, looking));
        pending.prepare.want_delta = true;
        pending.prepare.payload = prepare.payload;
    }
}
