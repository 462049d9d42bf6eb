//! Writes that have been in doubt for long: a brick asks gateways to settle them. It asks all that it knows, since it cannot tell which of them
//! have the volume open: an `attach --direct` has one. Those that do settle, and come to the same result.

use base::{GatewayId, Time};
use core::time::Duration;
use std::collections::BTreeSet;
use wire::WriteId;

/// How long a write may be in doubt before a gateway is asked to settle it.
const PATIENCE: Duration = Duration::from_millis(1000);
/// How long one that goes by a record may be before the directory is asked as well: it may be that no gateway has the volume open.
pub(super) const LINKED_PATIENCE: Duration = Duration::from_secs(5);
/// The most doubts named in one message.
const NAMED_MAX: usize = 256;

/// Who may settle, and what has been reported.
#[derive(Debug)]
pub(super) struct Doubts {
    next_report: Time,
    /// How many doubts, by place, the reports of this round have named.
    reported: usize,
    gateways: BTreeSet<GatewayId>,
}

impl Doubts {
    pub(super) fn new(now: Time) -> Doubts {
        Doubts { next_report: now + PATIENCE, reported: 0, gateways: BTreeSet::new() }
    }

    pub(super) fn report_due(&self) -> Time {
        self.next_report
    }

    pub(super) fn on_gateway_up(&mut self, gateway: GatewayId) {
        self.gateways.insert(gateway);
    }

    pub(super) fn on_gateway_down(&mut self, gateway: GatewayId) {
        self.gateways.remove(&gateway);
    }

    /// What to name in the report that is due. `doubtful` lists writes in doubt since before the time that it is given. The
    /// next report goes on behind this one, so that none is hidden by others for ever.
    pub(super) fn name<I: Iterator<Item = WriteId>>(
        &mut self,
        now: Time,
        doubtful: impl Fn(Time) -> I,
    ) -> Vec<WriteId> {
        self.next_report = now + PATIENCE / 2;
        let before = now - PATIENCE;
        let mut named: Vec<WriteId> = doubtful(before).skip(self.reported).take(NAMED_MAX).collect();
        if named.is_empty() && self.reported > 0 {
            named = doubtful(before).take(NAMED_MAX).collect();
            self.reported = 0;
        }
        self.reported += named.len();
        named
    }

    /// Who may settle.
    pub(super) fn gateways(&self) -> impl Iterator<Item = GatewayId> {
        self.gateways.iter().copied()
    }
}
