//! Writes that have been in doubt for long: a brick asks a gateway to settle them, another gateway each time.

use base::{GatewayId, Time};
use core::time::Duration;
use std::collections::BTreeSet;
use wire::WriteId;

/// How long a write may be in doubt before a gateway is asked to settle it.
const PATIENCE: Duration = Duration::from_millis(1000);
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

    /// The gateway whose turn it is; none where no gateway is known.
    pub(super) fn gateway(&self, turn: u64) -> Option<GatewayId> {
        let count = self.gateways.len().max(1);
        self.gateways.iter().nth(turn as usize % count).copied()
    }
}
