//! Three greedy streams, 1:2:4, whose data lie on different bricks and which come through different gateways.

use super::Times;
use super::bed::{Bed, Disk};
use super::load::{Client, share_error};
use anyhow::Result;
use rig::load::steady::Arrivals;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;

const BRICKS: usize = 3;

/// A stream, and where it asks.
struct Tenant {
    name: &'static str,
    weight: u32,
    /// Requests that each of its clients has under way.
    depth: usize,
    /// A client each: the brick (counted from 1) and the gateway (from 0).
    clients: &'static [(usize, usize)],
}

/// The less a stream is entitled to the more it asks, and none is on all bricks: small has brick 1; medium 1 and 2, each through a gateway of its
/// own; large 2 and 3. With shares of all that is served large has brick 3 and five sevenths of brick 2, medium the rest of that and four sevenths of brick 1.
const TENANTS: [Tenant; 3] = [
    Tenant { name: "small", weight: 100, depth: 64, clients: &[(1, 0)] },
    Tenant { name: "medium", weight: 200, depth: 16, clients: &[(1, 0), (2, 1)] },
    Tenant { name: "large", weight: 400, depth: 4, clients: &[(2, 0), (3, 1)] },
];

/// What streams got.
pub(super) struct Shares {
    pub(super) disk: Disk,
    /// Whether disks were shared by streams, with so many places.
    pub(super) places: Option<u32>,
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
            "disk": self.disk.name(), "places": self.places, "error": self.error(),
            "streams": self.got.iter().map(got).collect::<Vec<_>>(),
        })
    }
}

/// Without streams, and then with them, on the same cluster.
pub(super) fn measure(binary: &Path, disk: Disk, places: u32, times: &Times) -> Result<[Shares; 2]> {
    let mut bed = Bed::start(binary, disk, BRICKS)?;
    let volume = |tenant: &Tenant, brick: usize| format!("{}-{brick}", tenant.name);
    for tenant in &TENANTS {
        tenant.clients.iter().try_for_each(|(brick, _)| bed.volume_on(&volume(tenant, *brick), *brick))?;
    }
    bed.ready()?;
    let without = run(&bed, None, disk, times)?;
    for tenant in &TENANTS {
        bed.stream(tenant.name, tenant.weight, &[])?;
        tenant.clients.iter().try_for_each(|(brick, _)| bed.give(&volume(tenant, *brick), tenant.name))?;
    }
    bed.places(places)?;
    let with = run(&bed, Some(places), disk, times)?;
    Ok([without, with])
}

fn run(bed: &Bed, places: Option<u32>, disk: Disk, times: &Times) -> Result<Shares> {
    let mut clients = Vec::new();
    for tenant in &TENANTS {
        clients.extend(tenant.clients.iter().map(|(brick, gateway)| {
            let volume = format!("{}-{brick}", tenant.name);
            Client::reads(&volume, *gateway, Arrivals::Closed(tenant.depth))
        }));
    }
    let epoch = Instant::now();
    let load = bed.load(&clients, epoch)?;
    load.run(times.warm_up + times.measure);
    let mut seen = load.finish()?.into_iter();
    let (from, until) = (times.warm_up, times.warm_up + times.measure);
    let got = TENANTS.iter().map(|tenant| {
        let of_it: Vec<_> = seen.by_ref().take(tenant.clients.len()).collect();
        let p50_ms = of_it.iter().map(|seen| seen.percentile_ms(0.5, from, until)).fold(0.0, f64::max);
        let rate = of_it.iter().map(|seen| seen.rate(from, until)).sum();
        Got { name: tenant.name, weight: tenant.weight, depth: tenant.depth, rate, p50_ms }
    });
    Ok(Shares { disk, places, got: got.collect() })
}
