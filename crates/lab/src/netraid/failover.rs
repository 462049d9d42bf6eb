//! Beyond the paper, which measured no failures: who coordinates dies under load, and its clients go on without it.

use super::driven::{self, Driven};
use super::setup::{self, Bed, Topology};
use crate::cell::Row;
use crate::claim::Claim;
use crate::error::LabError;
use crate::experiment::{Experiment, Point, Runs, Scale, Table};
use crate::killing::{self, Killed, Killing, NOTE};
use crate::parameters::Parameters;
use crate::plot::Chart;
use sim::timed::Through;

pub(super) struct Failover;

/// One for each way in which a client finds who coordinates.
const PROTOCOLS: &[&str] =
    &["gw,ts-wait,2pcw+read", "coord,seq,none", "amongst,ts,2pcw", "direct,slock,none"];
/// The extents that two clients share which coordinate by themselves: 1 MiB, so that one often needs a lock that the other one has.
const SHARED_EXTENTS: u64 = 4;

impl Experiment for Failover {
    fn id(&self) -> &str {
        "netraid.failover"
    }

    fn paper(&self) -> &str {
        "network-raid"
    }

    fn title(&self) -> &str {
        "The gateway that coordinates is killed at 10 s"
    }

    fn assumptions(&self) -> Vec<&str> {
        [setup::ASSUMED, setup::ROTATING, driven::ASSUMED, &["extents", "crash_per_second"]].concat()
    }

    fn points(&self, parameters: &Parameters, scale: Scale) -> Result<Vec<Point>, LabError> {
        let bed = Bed { parameters };
        let point = |protocol: &'static str| {
            let topology = Topology::of(protocol);
            let mut driven = Driven::failing(bed, protocol, scale);
            if topology == Topology::Direct {
                (driven.clients, driven.extents) = (2, SHARED_EXTENTS);
            }
            let mut system = driven.system(bed, scale);
            if topology == Topology::Gateway {
                system.cluster.machines.through = Through::One;
            }
            Point::new(Killing { system, killed: Killed::Gateway(0) }).with("protocol", protocol)
        };
        Ok(PROTOCOLS.iter().map(|protocol| point(protocol)).collect())
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        runs.rows(&[killing::FIGURES, &["lost"]].concat())
    }

    fn claims(&self, table: &Table) -> Vec<Claim> {
        killing::claims("protocol", PROTOCOLS, table)
    }

    fn charts(&self, _: &Table, runs: &[Runs]) -> Vec<Chart> {
        killing::charts((self.id(), "the gateway dies at 10 s"), "protocol", runs)
    }

    fn notes(&self) -> Vec<String> {
        vec![
            format!(
                "Under gw the client asks through the gateway that dies. Under coord and amongst that gateway is beside the first brick, which coordinates \
             one group in eight, or the small writes and reads of its own units. Under direct two clients share 1 MiB, and one of them dies with \
             its coordinator and its locks: what it had asked is lost, and the other one asks in its place from then on. {}",
                driven::JUDGED
            ),
            NOTE.to_owned(),
        ]
    }
}
