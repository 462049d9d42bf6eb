//! Which requests took effect at a member. By this a retry is known ([`super::writes`]: `retries`), and a settler learns what
//! took effect before later writes went over it.

use super::completions::{Applied, Completions};
use super::context::Context;
use super::disk::{Disk, Noting};
use base::{ClientId, RequestId, Stamp};
use rules::counters::Counter;
use wire::disk::{HORIZON_NOTE, Recovered};
use wire::{Completion, Wire};

/// What took effect here, or is known to have taken effect elsewhere.
#[derive(Debug)]
pub(super) struct Outcomes {
    completions: Completions,
    applied: Applied,
    /// About writes up to this it has no say after a restart, unless it remembers them.
    noted_horizon: Stamp,
}

impl Outcomes {
    /// What a store found again.
    pub(super) fn recover(recovered: &Recovered) -> Outcomes {
        let mut applied = Applied::recover(recovered);
        let note = recovered.notes.iter().find(|(key, _)| key == HORIZON_NOTE);
        let noted_horizon = note.and_then(|(_, value)| Stamp::from_bytes(value).ok()).unwrap_or_default();
        applied.raise_horizon(noted_horizon);
        Outcomes { completions: Completions::recover(recovered), applied, noted_horizon }
    }

    /// Whether a part of a request took effect, or its client never asks for it again.
    pub(super) fn is_over(&self, request: RequestId, part: u64) -> bool {
        self.completions.contains(request, part) || self.completions.is_past(request)
    }

    /// The client never asks again below `floor`.
    pub(super) fn raise_floor(&mut self, client: ClientId, floor: u64) {
        self.completions.raise_floor(client, floor);
    }

    /// A part of a request took effect, or all of a client's requests before one are over.
    pub(super) fn note(&mut self, completion: Completion) {
        if completion.as_floor().is_none() {
            self.applied.insert(completion.stamp);
        }
        self.completions.insert(completion);
    }

    /// Lets the store remember anew what it would forget soon although its client may still ask for it.
    pub(super) fn refresh(&mut self, cx: &mut Context<'_>) {
        let fading = self.completions.take_fading(cx.now);
        if !fading.is_empty() {
            cx.counters.count(Counter::CompletionRememberedAnew);
            Disk::refresh(cx, fading);
        }
    }

    /// Whether a write took effect here, as far as is known.
    pub(super) fn has_applied(&self, stamp: Stamp) -> bool {
        self.applied.contains(stamp)
    }

    /// Whether a write would be known if it had taken effect here.
    pub(super) fn covers(&self, stamp: Stamp) -> bool {
        self.applied.covers(stamp)
    }

    /// At most `max` of the parts of requests that took effect here after `after`, in order.
    pub(super) fn page(&self, after: Option<(RequestId, u64)>, max: usize) -> Vec<Completion> {
        self.completions.page(after, max)
    }

    /// Takes over which requests took effect at another member.
    ///
    /// After a restart this member takes all that is later than the earliest it remembers, and than the latest that the store
    /// says it forgot, for known. Completions of others may be earlier than some of its own that it
    /// forgot: so it durably notes first that it has no say about writes up to the latest of them.
    pub(super) fn remember(
        &self,
        cx: &mut Context<'_>,
        disk: &mut Disk,
        job: u64,
        mut completions: Vec<Completion>,
    ) {
        completions.retain(|completion| !cx.is_far_ahead(completion.stamp));
        let parts = completions.iter().filter(|completion| completion.as_floor().is_none());
        let latest = parts.map(|completion| completion.stamp).max().unwrap_or_default();
        if latest <= self.noted_horizon {
            return disk.remember(cx, job, completions);
        }
        let note = (HORIZON_NOTE.to_vec(), Some(latest.to_bytes()));
        disk.note(cx, note, Noting::Horizon { job, latest, completions });
    }

    /// About writes up to `latest` this member has durably no say any more.
    pub(super) fn raise_noted_horizon(&mut self, latest: Stamp) {
        self.noted_horizon = self.noted_horizon.max(latest);
    }
}
