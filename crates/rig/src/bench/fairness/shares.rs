//! Three greedy streams, 1:2:4, whose data lie on different bricks and which come through different gateways.

use super::Times;
use super::bed::{Bed, Disk};
use super::load::{Client, Seen, share_error};
use anyhow::Result;
use rig::load::steady::Arrivals;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;

pub(super) const BRICKS: usize = 3;

/// A stream, and where it asks.
pub(super) struct Tenant {
    name: &'static str,
    weight: u32,
    /// Requests that each of its clients has under way.
    pub(super) depth: usize,
    /// A client each: the brick (counted from 1) and the gateway (from 0).
    pub(super) clients: &'static [(usize, usize)],
}

impl Tenant {
    /// The name of its volume on a brick.
    pub(super) fn volume(&self, brick: usize) -> String {
        format!("{}-{brick}", self.name)
    }
}

/// The less a stream is entitled to the more it asks, and none is on all bricks: small has brick 1; medium 1 and 2, each through a gateway of its
/// own; large 2 and 3. With shares of all that is served large has brick 3 and five sevenths of brick 2, medium the rest of that and four sevenths of brick 1.
pub(super) const TENANTS: [Tenant; 3] = [
    Tenant { name: "small", weight: 100, depth: 64, clients: &[(1, 0)] },
    Tenant { name: "medium", weight: 200, depth: 16, clients: &[(1, 0), (2, 1)] },
    Tenant { name: "large", weight: 400, depth: 4, clients: &[(2, 0), (3, 1)] },
];

/// Who serves the tenants.
pub(super) enum Server {
    /// Brickwork. Its disks are shared by streams if they have so many places.
    Brickwork { places: Option<u32> },
    /// Ceph of this version, which has no weights by client.
    Ceph { version: String },
}

impl Server {
    /// The places of a disk that streams share by weight.
    pub(super) fn places(&self) -> Option<u32> {
        match self {
            Server::Brickwork { places } => *places,
            Server::Ceph { .. } => None,
        }
    }

    fn name(&self) -> String {
        match self {
            Server::Brickwork { .. } => "brickwork".to_owned(),
            Server::Ceph { version } => format!("ceph {version}"),
        }
    }
}

/// What streams got.
pub(super) struct Shares {
    pub(super) disk: Disk,
    pub(super) server: Server,
    /// Of each stream, by rising weight: requests a second, and milliseconds.
    pub(super) got: Vec<Got>,
}

pub(super) struct Got {
    pub(super) name: &'static str,
    pub(super) weight: u32,
    pub(super) depth: usize,
    pub(super) rate: f64,
    pub(super) p50_ms: f64,
}

impl Shares {
    /// See [`share_error`].
    pub(super) fn error(&self) -> f64 {
        let (rates, weights): (Vec<f64>, Vec<f64>) =
            self.got.iter().map(|got| (got.rate, f64::from(got.weight))).unzip();
        share_error(&rates, &weights)
    }

    pub(super) fn all(&self) -> f64 {
        self.got.iter().map(|got| got.rate).sum()
    }

    pub(super) fn json(&self) -> Value {
        let got = |got: &Got| {
            json!({
                "stream": got.name, "weight": got.weight, "depth": got.depth, "requests_per_second": got.rate,
                "share": got.rate / self.all(), "p50_ms": got.p50_ms,
            })
        };
        json!({
            "disk": self.disk.name(), "server": self.server.name(), "places": self.server.places(),
            "error": self.error(),
            "streams": self.got.iter().map(got).collect::<Vec<_>>(),
        })
    }
}

/// Without streams, and then with them, on the same cluster.
pub(super) fn measure(binary: &Path, disk: Disk, places: u32, times: &Times) -> Result<[Shares; 2]> {
    let mut bed = Bed::start(binary, disk, BRICKS)?;
    for tenant in &TENANTS {
        tenant.clients.iter().try_for_each(|(brick, _)| bed.volume_on(&tenant.volume(*brick), *brick))?;
    }
    bed.ready()?;
    let without = run(&bed, None, disk, times)?;
    for tenant in &TENANTS {
        bed.stream(tenant.name, tenant.weight, &[])?;
        tenant.clients.iter().try_for_each(|(brick, _)| bed.give(&tenant.volume(*brick), tenant.name))?;
    }
    bed.places(places)?;
    let with = run(&bed, Some(places), disk, times)?;
    Ok([without, with])
}

fn run(bed: &Bed, places: Option<u32>, disk: Disk, times: &Times) -> Result<Shares> {
    let mut clients = Vec::new();
    for tenant in &TENANTS {
        clients.extend(tenant.clients.iter().map(|(brick, gateway)| {
            Client::reads(&tenant.volume(*brick), *gateway, Arrivals::Closed(tenant.depth))
        }));
    }
    let epoch = Instant::now();
    let load = bed.load(&clients, epoch)?;
    load.run(times.warm_up + times.measure);
    let (from, until) = (times.warm_up, times.warm_up + times.measure);
    let of_client =
        |seen: Seen| OfClient { rate: seen.rate(from, until), p50_ms: seen.percentile_ms(0.5, from, until) };
    let clients: Vec<OfClient> = load.finish()?.into_iter().map(of_client).collect();
    Ok(Shares { disk, server: Server::Brickwork { places }, got: by_tenant(&clients) })
}

/// What one client of a tenant got: requests a second, and milliseconds.
pub(super) struct OfClient {
    pub(super) rate: f64,
    pub(super) p50_ms: f64,
}

/// What tenants got, of what their clients got, in the order of [`TENANTS`]: the sum of the rates, and the slower client's median.
pub(super) fn by_tenant(clients: &[OfClient]) -> Vec<Got> {
    let mut clients = clients.iter();
    let got = TENANTS.iter().map(|tenant| {
        let of_it: Vec<&OfClient> = clients.by_ref().take(tenant.clients.len()).collect();
        let rate = of_it.iter().map(|client| client.rate).sum();
        let p50_ms = of_it.iter().map(|client| client.p50_ms).fold(0.0, f64::max);
        Got { name: tenant.name, weight: tenant.weight, depth: tenant.depth, rate, p50_ms }
    });
    got.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_has_the_sum_of_its_clients_rates_and_the_slower_median() {
        let clients = [(10.0, 1.0), (20.0, 3.0), (5.0, 2.0), (1.0, 4.0), (2.0, 5.0)];
        let clients = clients.map(|(rate, p50_ms)| OfClient { rate, p50_ms });
        let got: Vec<(&str, f64, f64)> =
            by_tenant(&clients).iter().map(|got| (got.name, got.rate, got.p50_ms)).collect();
        assert_eq!(got, [("small", 10.0, 1.0), ("medium", 25.0, 3.0), ("large", 3.0, 5.0)]);
    }
}
