//! Bricks whose disks are saturated: content waits there for room. Where all members of a group wait that is nobody's fault, and slows clients down
//! evenly. Where one brings content home several times more slowly than the others *do for the same work*, it is slow.
//!
//! *The rule.* A brick tells with each heartbeat how long its disk has lately worked to bring a block home, and for which part of the time content
//! waited for room there. It is saturated while that is [`HELD`] or more. In each of its groups its *peers* are the other members that have
//! brought something home lately. It is held for slow once it has been saturated and [`TIMES`] as slow as the (upper) median of its peers, in the
//! group where that is greatest, for [`LASTS`], looked at once a second. The greatest counts since groups have unlike loads, and
//! a block that is one of many in a row takes less: in the group that saturates it its peers have the same work. A brick that is less than that
//! slower keeps its place: its groups go at its pace, and `status` names it from [`NAMED`] on. One that is so slow that its peers have nothing to
//! bring home any more cannot be compared then: what was found last holds for [`HOLDS`], as long as it is saturated.
//!
//! What a brick tells of itself can only take its own place from it: of two peers the slower one counts, and one is not enough.

use super::cluster::Cluster;
use base::{BrickId, Time};
use core::time::Duration;
use rules::median::upper_median;
use std::collections::BTreeMap;
use wire::{GroupView, Health};

/// From this part of the time on, in thousandths, for which content waits a brick is saturated; and below that it is not any more.
const HELD: u32 = 500;
const HELD_NO_MORE: u32 = 250;
/// In tenths.
const TIMES: u32 = 30;
const NAMED: u32 = 15;
const LASTS: Duration = Duration::from_secs(4);
/// Peers that must be known in a group.
const PEERS_MIN: usize = 2;
/// How often a saturated brick is compared with its peers, which takes a look at all its groups.
const COMPARED_EVERY: Duration = Duration::from_secs(1);
/// For so long what was found holds where it cannot be looked again: longer than others bear with one that catches up.
const HOLDS: Duration = Duration::from_secs(15);

/// A saturated brick.
#[derive(Debug)]
struct Saturated {
    since: Time,
    /// When it was last looked how it stands beside its peers, and what was found.
    looked: Time,
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
        self.bricks.retain(|brick, _| is_held(cluster, now, *brick, HELD_NO_MORE));
        for brick in cluster.records.bricks.keys().filter(|brick| is_held(cluster, now, **brick, HELD)) {
            let first = Saturated { since: now, looked: now, compared: None, slow_since: None };
            self.bricks.entry(*brick).or_insert(first);
        }
        for (brick, seen) in &mut self.bricks {
            if seen.compared.is_some() && now.since(seen.looked) < COMPARED_EVERY {
                continue;
            }
            let compared = compare(cluster, now, *brick);
            let is_held = is_held(cluster, now, *brick, HELD);
            seen.looked = now;
            let holds = |before: Compared| before.peers_us > 0 && now.since(before.at) < HOLDS;
            if compared.peers_us == 0 && is_held && seen.compared.is_some_and(holds) {
                // Its peers bring nothing home, as all that they have waits for this one.
                continue;
            }
            seen.compared = Some(compared);
            let is_slow = compared.tenths() >= TIMES && is_held;
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

fn is_held(cluster: &Cluster, now: Time, brick: BrickId, permille: u32) -> bool {
    cluster.leases.is_alive(now, brick)
        && health(cluster, brick).is_some_and(|health| health.held_permille >= permille)
}

/// The brick beside the slowest of its groups: where they have unlike loads, that is the one with the same work.
fn compare(cluster: &Cluster, now: Time, brick: BrickId) -> Compared {
    let home_us = health(cluster, brick).map_or(0, |health| health.home_us);
    let mut compared = Compared { at: now, home_us, peers_us: 0 };
    let views = cluster.groups_of(brick).filter_map(|group| cluster.latest_view(group));
    for view in views.filter(|view| view.is_writer(brick)) {
        compared.peers_us = compared.peers_us.max(median_of_peers(cluster, now, (view, brick)).unwrap_or(0));
        if compared.peers_us > 0 && compared.tenths() < NAMED {
            // It is as fast as its peers in one group, whatever others are.
            break;
        }
    }
    compared
}

/// The upper median of what the brick's peers in a group take. None where fewer than two have brought something home lately: one alone could make a slow
/// brick of another by lying. (In a group of two nobody is left out for being slow.)
fn median_of_peers(cluster: &Cluster, now: Time, (view, brick): (&GroupView, BrickId)) -> Option<u32> {
    let is_peer =
        |peer: &&BrickId| **peer != brick && cluster.leases.is_alive(now, **peer) && !cluster.is_slow(**peer);
    let peers = view.members.iter().filter(is_peer);
    let homes: Vec<u32> = peers
        .filter_map(|peer| health(cluster, *peer))
        .map(|health| health.home_us)
        .filter(|us| *us > 0)
        .collect();
    let is_enough = homes.len() >= PEERS_MIN.min(view.members.len() - 1);
    upper_median(homes).filter(|_| is_enough)
}
