//! How much of the hop through a gateway a protocol saves: a place between the path `gw` (0) and the path `direct` (1).

use super::outcome::Outcome;
use serde_json::{Value, json};
use wire::{DataPath, Protocol};

/// By how many standard errors both ends must differ, so that there is a way between them.
const ERRORS_APART: f64 = 2.0;
/// The least way there is, as a part of the latency through a gateway: less than two turns of the same differ by.
const WAY_MIN: f64 = 0.05;

/// Both ends of the way, under one workload.
#[derive(Clone, Copy)]
pub(super) struct Ends<'a> {
    gateway: &'a Outcome,
    direct: &'a Outcome,
}

impl<'a> Ends<'a> {
    /// For a protocol the two that differ from each other by the path alone, and from the protocol by as little as can be; of several such the first.
    pub(super) fn of(outcome: &Outcome, all: &[&'a Outcome]) -> Option<Ends<'a>> {
        let with = |path| all.iter().copied().filter(move |other| other.protocol.path == path);
        let direct_of = |gateway: &'a Outcome| {
            let wanted = Protocol { path: DataPath::Direct, ..gateway.protocol };
            with(DataPath::Direct)
                .find(|direct| direct.protocol == wanted)
                .map(|direct| Ends { gateway, direct })
        };
        let nearness = |ends: &Ends<'_>| nearness(ends.gateway.protocol, outcome.protocol);
        let better =
            |best: Ends<'a>, next: Ends<'a>| if nearness(&next) > nearness(&best) { next } else { best };
        with(DataPath::Gateway).filter_map(direct_of).reduce(better)
    }

    /// How much of the way a protocol's mean latency goes; `None` where there is none to speak of.
    pub(super) fn of_latency(self, outcome: &Outcome) -> Option<f64> {
        let (gateway, direct) = (self.gateway.mean_us_of_turns(), self.direct.mean_us_of_turns());
        let error = gateway.error.hypot(direct.error);
        // Of a single turn there is no error.
        let error = if error.is_nan() { 0.0 } else { error };
        place(outcome.mean_us(), (self.gateway.mean_us(), self.direct.mean_us()), ERRORS_APART * error)
    }

    /// The same of the processor time of all for a request.
    fn of_processor(self, outcome: &Outcome) -> Option<f64> {
        let [of, gateway, direct] = [outcome, self.gateway, self.direct].map(|of| of.cost().total_us());
        place(of, (gateway, direct), 0.0)
    }

    pub(super) fn json(self, outcome: &Outcome) -> Value {
        json!({
            "from": self.gateway.protocol.to_string(), "to": self.direct.protocol.to_string(),
            "latency": self.of_latency(outcome), "processor": self.of_processor(outcome),
        })
    }
}

/// Where `of` lies between both ends, if these are apart by more than `least`.
fn place(of: f64, (from, to): (f64, f64), least: f64) -> Option<f64> {
    (from - to > least.max(WAY_MIN * from)).then(|| (from - of) / (from - to))
}

/// How alike two protocols are but for their paths: what counts more comes first.
fn nearness(one: Protocol, other: Protocol) -> [bool; 4] {
    let is_none = |protocol: Protocol| !protocol.atomicity.is_linearizable();
    [
        one.order == other.order,
        one.atomicity == other.atomicity,
        is_none(one) == is_none(other),
        one.small_writes == other.small_writes,
    ]
}

#[cfg(test)]
mod tests {
    use super::super::load::{Seen, Work, Workload};
    use super::super::outcome::{Spent, Turn};
    use super::*;
    use wire::known::EVALUATED;

    fn outcome(protocol: &str, turns_us: &[f64]) -> Outcome {
        let mut outcome =
            Outcome::new(Workload { work: Work::Write, clients: 1 }, protocol.parse().expect("a protocol"));
        let turn = |us: &f64| Turn {
            seen: Seen { requests: 10, mean_us: *us, ..Seen::default() },
            spent: Spent::default(),
        };
        outcome.turns = turns_us.iter().map(turn).collect();
        outcome
    }

    fn compared(protocol: &str, measured: &[&str]) -> Option<String> {
        let measured: Vec<Outcome> = measured.iter().map(|name| outcome(name, &[])).collect();
        let all: Vec<&Outcome> = measured.iter().collect();
        Ends::of(&outcome(protocol, &[]), &all).map(|ends| ends.gateway.protocol.to_string())
    }

    #[test]
    fn a_protocol_is_compared_with_those_nearest_to_it() {
        let nearest = |protocol| compared(protocol, &EVALUATED).expect("both ends are evaluated");
        let (locks, stamps) = ("gw,slock,none", "gw,ts,2pcw");
        assert_eq!(["amongst,slock,none", "coord,seq,none", "direct,none,none"].map(nearest), [locks; 3]);
        assert_eq!(["amongst,ts,2pcw", "direct,ts,2pcw", "gw,ts-wait,2pcw+read"].map(nearest), [stamps; 3]);
        assert_eq!(compared("amongst,ts,2pcw", &["gw,ts,2pcw", "direct,none,none"]), None);
    }

    #[test]
    fn the_hop_is_told_where_there_is_one() {
        let saved = |gateway: &[f64], of: &[f64], direct: &[f64]| {
            let (gateway, direct) = (outcome("gw,ts,2pcw", gateway), outcome("direct,ts,2pcw", direct));
            Ends { gateway: &gateway, direct: &direct }.of_latency(&outcome("amongst,ts,2pcw", of))
        };
        assert_eq!(saved(&[200.0], &[150.0], &[100.0]), Some(0.5));
        assert_eq!(saved(&[200.0], &[250.0], &[100.0]), Some(-0.5), "slower than through a gateway");
        assert_eq!(saved(&[100.0], &[150.0], &[96.0]), None);
        assert_eq!(saved(&[100.0, 300.0], &[150.0], &[100.0, 101.0]), None, "turns do not agree");
    }
}
