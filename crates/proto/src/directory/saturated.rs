//! Bricks whose disks are saturated: content waits there for room. Where all members of a group wait that is nobody's fault, and slows clients down
//! evenly. Where one brings content home several times more slowly than the others *do for the same work*, it is slow.
//!
//! *The rule.* A brick tells with each heartbeat how long its disk takes to bring a block home while it works on that, and for which part of
//! the time content waited for room. It is saturated while that is [`HELD`] or more. Its *peers* are the other bricks in its groups that have
//! brought something home; they have the same writes to take. It is held for slow once it has been saturated and [`TIMES`] as slow as the (upper)
//! median of its peers for [`LASTS`]. A brick that is less than that slower keeps its place: its groups go at its pace, and `status` names it from
//! [`NAMED`] on.
//!
//! What a brick tells of itself can only take its own place from it: of what others tell the median counts, and of two the slower one.

use super::cluster::Cluster;
use base::{BrickId, Time};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use wire::Health;

/// From this part of the time on, in thousandths, for which content waits a brick is saturated; and below that it is not any more.
const HELD: u32 = 500;
const HELD_NO_MORE: u32 = 250;
/// In tenths.
const TIMES: u32 = 30;
const NAMED: u32 = 15;
const LASTS: Duration = Duration::from_secs(4);
/// How often a saturated brick is compared with its peers, which takes a look at all its groups.
const COMPARED_EVERY: Duration = Duration::from_secs(1);

/// A saturated brick.
#[derive(Debug)]
struct Saturated {
    since: Time,
    compared: Option<Compared>,
    /// Since when it has been slow beside its peers.
    slow_since: Option<Time>,
}

#[derive(Clone, Copy, Debug)]
struct Compared {
    at: Time,
    home_us: u32,
    /// The median of its peers; 0 where none has brought anything home.
    peers_us: u32,
}

impl Compared {
    /// How many times as slow as its peers it is, in tenths.
    fn tenths(&self) -> u32 {
        let tenths = u64::from(self.home_us) * 10 / u64::from(self.peers_us.max(1));
        if self.peers_us == 0 { 0 } else { u32::try_from(tenths).unwrap_or(u32::MAX) }
    }

    fn in_words(&self) -> String {
        let ms = |us: u32| f64::from(us) / 1000.0;
        let times = f64::from(self.tenths()) / 10.0;
        format!(
            "it brings a block home in {:.1} ms, {times:.1} times the median of its peers ({:.1} ms)",
            ms(self.home_us),
            ms(self.peers_us)
        )
    }
}

/// The bricks that are saturated.
#[derive(Debug, Default)]
pub(super) struct SaturatedBricks {
    bricks: BTreeMap<BrickId, Saturated>,
}

impl SaturatedBricks {
    /// Looks at what bricks have told.
    pub(super) fn keep(&mut self, cluster: &Cluster, now: Time) {
        self.bricks.retain(|brick, _| is_held(cluster, *brick, HELD_NO_MORE));
        for brick in cluster.records.bricks.keys().filter(|brick| is_held(cluster, **brick, HELD)) {
            let seen = self.bricks.entry(*brick).or_insert(Saturated {
                since: now,
                compared: None,
                slow_since: None,
            });
            if seen.compared.is_some_and(|compared| now.since(compared.at) < COMPARED_EVERY) {
                continue;
            }
            let compared = compare(cluster, now, *brick);
            seen.compared = Some(compared);
            let is_slow = compared.tenths() >= TIMES;
            seen.slow_since = if is_slow { seen.slow_since.or(Some(now)) } else { None };
        }
    }

    /// Why the brick is held for slow, if it is.
    pub(super) fn why_slow(&self, now: Time, brick: BrickId) -> Option<String> {
        let Saturated { compared, slow_since, .. } = self.bricks.get(&brick)?;
        let lasted = now.since((*slow_since)?);
        let words = compared.filter(|_| lasted >= LASTS)?.in_words();
        Some(format!("{words}, and content has waited for that for {} s", lasted.as_secs()))
    }

    /// What an operator should know.
    pub(super) fn warnings(&self, now: Time) -> Vec<String> {
        let lasting = self.bricks.iter().filter(|(_, seen)| now.since(seen.since) >= LASTS);
        lasting
            .map(|(brick, seen)| {
                let named = seen.compared.filter(|compared| compared.tenths() >= NAMED);
                let beside = named.map_or(String::new(), |compared| format!("; {}", compared.in_words()));
                format!(
                    "the disks of {brick} are saturated: writes wait for them, and take the longer the more are under way{beside}"
                )
            })
            .collect()
    }

    /// The brick is no more.
    pub(super) fn forget(&mut self, brick: BrickId) {
        self.bricks.remove(&brick);
    }
}

fn health(cluster: &Cluster, brick: BrickId) -> Option<&Health> {
    cluster.status(brick).map(|status| &status.health)
}

fn is_held(cluster: &Cluster, brick: BrickId, permille: u32) -> bool {
    health(cluster, brick).is_some_and(|health| health.held_permille >= permille)
}

fn compare(cluster: &Cluster, now: Time, brick: BrickId) -> Compared {
    let views = cluster.groups_of(brick).filter_map(|group| cluster.latest_view(group));
    let views = views.filter(|view| view.is_writer(brick));
    let peers: BTreeSet<BrickId> = views.flat_map(|view| view.members.iter().copied()).collect();
    let peers = peers.into_iter().filter(|peer| *peer != brick && !cluster.is_slow(*peer));
    let mut homes: Vec<u32> = peers
        .filter_map(|peer| health(cluster, peer))
        .map(|health| health.home_us)
        .filter(|us| *us > 0)
        .collect();
    homes.sort_unstable();
    let home_us = health(cluster, brick).map_or(0, |health| health.home_us);
    Compared { at: now, home_us, peers_us: homes.get(homes.len() / 2).copied().unwrap_or(0) }
}
