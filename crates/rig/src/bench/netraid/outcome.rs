//! What was measured of a protocol under a workload, over all turns.

use super::super::mean::Mean;
use super::hop::Ends;
use super::load::{Latencies, Seen, Workload};
use serde_json::{Value, json};
use wire::Protocol;

/// Processor time by who took it.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Spent {
    /// Processes `attach`.
    pub(super) clients_us: u64,
    pub(super) gateways_us: u64,
    pub(super) bricks_us: u64,
}

/// One measurement.
pub(super) struct Turn {
    pub(super) seen: Seen,
    pub(super) spent: Spent,
}

pub(super) struct Outcome {
    pub(super) workload: Workload,
    pub(super) protocol: Protocol,
    pub(super) turns: Vec<Turn>,
}

/// Microseconds of processor for each request.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Cost {
    pub(super) client_us: f64,
    pub(super) gateway_us: f64,
    pub(super) brick_us: f64,
}

impl Spent {
    pub(super) fn since(self, before: &Spent) -> Spent {
        Spent {
            clients_us: self.clients_us - before.clients_us,
            gateways_us: self.gateways_us - before.gateways_us,
            bricks_us: self.bricks_us - before.bricks_us,
        }
    }

    fn for_each_of(self, requests: u64) -> Cost {
        let each = |us: u64| us as f64 / requests.max(1) as f64;
        Cost {
            client_us: each(self.clients_us),
            gateway_us: each(self.gateways_us),
            brick_us: each(self.bricks_us),
        }
    }
}

impl Cost {
    pub(super) fn total_us(&self) -> f64 {
        self.client_us + self.gateway_us + self.brick_us
    }

    fn json(&self) -> Value {
        json!({"client": self.client_us, "gateways": self.gateway_us, "bricks": self.brick_us, "total": self.total_us()})
    }
}

impl Outcome {
    pub(super) fn new(workload: Workload, protocol: Protocol) -> Outcome {
        Outcome { workload, protocol, turns: Vec::new() }
    }

    /// Requests a second.
    pub(super) fn iops(&self) -> Mean {
        self.over_turns(|turn| turn.seen.iops)
    }

    /// The mean latency of each turn in microseconds, and how well the turns agree.
    pub(super) fn mean_us_of_turns(&self) -> Mean {
        self.over_turns(|turn| turn.seen.mean_us)
    }

    fn over_turns(&self, figure: impl Fn(&Turn) -> f64) -> Mean {
        Mean::of(&self.turns.iter().map(figure).collect::<Vec<_>>())
    }

    fn requests(&self) -> u64 {
        self.turns.iter().map(|turn| turn.seen.requests).sum()
    }

    /// Of all requests of all turns.
    pub(super) fn mean_us(&self) -> f64 {
        let all = self.turns.iter().map(|turn| turn.seen.mean_us * turn.seen.requests as f64);
        all.sum::<f64>() / self.requests().max(1) as f64
    }

    pub(super) fn percentile_us(&self, share: f64) -> f64 {
        let mut all = Latencies::default();
        self.turns.iter().for_each(|turn| all.add(&turn.seen.latencies));
        all.percentile_us(share)
    }

    pub(super) fn cost(&self) -> Cost {
        let add = |sum: Spent, turn: &Turn| Spent {
            clients_us: sum.clients_us + turn.spent.clients_us,
            gateways_us: sum.gateways_us + turn.spent.gateways_us,
            bricks_us: sum.bricks_us + turn.spent.bricks_us,
        };
        self.turns.iter().fold(Spent::default(), add).for_each_of(self.requests())
    }

    /// The last turn as a line, for who watches.
    pub(super) fn last_turn(&self) -> String {
        let (workload, protocol) = (self.workload.name(), self.protocol);
        let told = self.turns.last().map(|Turn { seen, spent }| {
            let Cost { client_us, gateway_us, brick_us } = spent.for_each_of(seen.requests);
            let (iops, mean_us) = (seen.iops, seen.mean_us);
            format!("{iops:.0} a second, {mean_us:.0} us; processor us {client_us:.0}, {gateway_us:.0}, {brick_us:.0}")
        });
        format!("{workload}, {protocol}: {}", told.unwrap_or_default())
    }

    pub(super) fn json(&self, ends: Option<Ends>) -> Value {
        let (iops, mean_us) = (self.iops(), self.mean_us_of_turns());
        let turn = |turn: &Turn| {
            json!({
                "requests": turn.seen.requests, "iops": turn.seen.iops, "mean_us": turn.seen.mean_us,
                "p99_us": turn.seen.latencies.percentile_us(0.99),
                "processor_us": turn.spent.for_each_of(turn.seen.requests).json(),
            })
        };
        json!({
            "workload": self.workload.work.name(), "clients": self.workload.clients, "protocol": self.protocol.to_string(),
            "requests": self.requests(), "iops": iops.mean, "iops_error": iops.error,
            "mean_us": self.mean_us(), "mean_us_error": mean_us.error,
            "p50_us": self.percentile_us(0.5), "p99_us": self.percentile_us(0.99),
            "processor_us": self.cost().json(),
            "hop": ends.map(|ends| ends.json(self)),
            "turns": self.turns.iter().map(turn).collect::<Vec<_>>(),
        })
    }
}
