//! Who is cut off from whom in a round, what must then stand still, and what must go on: drawn as values.

use super::VOLUMES;
use rig::noise::Noise;
use std::fmt;

/// Bricks of the cluster.
pub(super) const BRICKS: usize = 6;
/// Gateways of the cluster.
pub(super) const GATEWAYS: usize = 2;

/// A gateway and a volume, both counted from 0.
pub(super) type Way = (usize, usize);

/// A kind of cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A gateway and some bricks on one side; the directory and all others on the other.
    Minority,
    GatewayAlone,
    DirectoryAlone,
    /// Some bricks, each of which reaches the others of them and nobody else.
    BricksAlone,
    /// Some bricks are heard by nobody, and hear everyone.
    Mute,
    /// Some bricks hear nobody, and are heard by everyone.
    Deaf,
    /// What one gateway sends to a brick is lost; nothing else is.
    OneWay,
    /// The directory and a gateway with so few bricks that no layout with parity can go on; a gateway and the other bricks.
    WithoutDirectory,
}

/// All kinds; the first round has the first.
pub(super) const KINDS: [Kind; 8] = [
    Kind::Minority,
    Kind::GatewayAlone,
    Kind::DirectoryAlone,
    Kind::BricksAlone,
    Kind::Mute,
    Kind::Deaf,
    Kind::OneWay,
    Kind::WithoutDirectory,
];

/// A cut, and what it must and must not stop.
pub(super) struct Cut {
    pub(super) kind: Kind,
    bricks: Vec<String>,
    gateway: usize,
    /// Sender and receiver of what is dropped.
    pub(super) pairs: Vec<(String, String)>,
    /// For how long it lasts at least, in milliseconds.
    pub(super) hold_ms: u64,
    /// Ways (gateway, volume) by which no write may be acknowledged.
    pub(super) refused: Vec<Way>,
    /// Ways by which writes must get on.
    pub(super) goes_on: Vec<Way>,
}

impl Cut {
    /// Draws a cut of a kind.
    pub(super) fn draw(kind: Kind, noise: &mut Noise) -> Cut {
        let gateway = noise.below(GATEWAYS as u64) as usize;
        let count = if kind == Kind::OneWay { 1 } else { 1 + noise.below(2) };
        let bricks = choose(count as usize, noise);
        let hold_ms = 4000 + noise.below(8000);
        let (refused, goes_on) = consequences(kind, gateway, bricks.len());
        let pairs = pairs(kind, gateway, &bricks);
        Cut { kind, bricks, gateway, pairs, hold_ms, refused, goes_on }
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bricks, gateway) = (self.bricks.join(" and "), gateway_name(self.gateway));
        match self.kind {
            Kind::Minority => write!(out, "{gateway} with {bricks} cut off"),
            Kind::GatewayAlone => write!(out, "{gateway} cut off"),
            Kind::DirectoryAlone => write!(out, "the directory cut off"),
            Kind::BricksAlone => write!(out, "{bricks} cut off"),
            Kind::Mute => write!(out, "{bricks} heard by nobody"),
            Kind::Deaf => write!(out, "{bricks} hearing nobody"),
            Kind::OneWay => write!(out, "{gateway} not heard by {bricks}"),
            Kind::WithoutDirectory => {
                write!(out, "{gateway} and all bricks but {bricks} cut off from the directory")
            }
        }
    }
}

/// The process of a gateway, counted from 0.
pub(super) fn gateway_name(number: usize) -> String {
    format!("gateway-{}", number + 1)
}

fn choose(count: usize, noise: &mut Noise) -> Vec<String> {
    let mut left: Vec<usize> = (1..=BRICKS).collect();
    let mut chosen: Vec<usize> =
        (0..count).map(|_| left.swap_remove(noise.below(left.len() as u64) as usize)).collect();
    chosen.sort_unstable();
    chosen.into_iter().map(|number| format!("brick-{number}")).collect()
}

fn everyone() -> Vec<String> {
    let bricks = (1..=BRICKS).map(|number| format!("brick-{number}"));
    bricks.chain((0..GATEWAYS).map(gateway_name)).chain(["directory".to_owned()]).collect()
}

fn pairs(kind: Kind, gateway: usize, bricks: &[String]) -> Vec<(String, String)> {
    let gateway = gateway_name(gateway);
    let with_gateway = || bricks.iter().cloned().chain([gateway.clone()]).collect::<Vec<_>>();
    match kind {
        Kind::Minority => both_ways(&with_gateway()),
        Kind::GatewayAlone => both_ways(&[gateway]),
        Kind::DirectoryAlone => both_ways(&["directory".to_owned()]),
        Kind::BricksAlone => both_ways(bricks),
        Kind::Mute => to_others(bricks),
        Kind::Deaf => to_others(bricks).into_iter().map(|(from, to)| (to, from)).collect(),
        Kind::OneWay => bricks.iter().map(|brick| (gateway.clone(), brick.clone())).collect(),
        Kind::WithoutDirectory => {
            let side: Vec<String> = everyone()
                .into_iter()
                .filter(|name| *name == gateway || name.starts_with("brick") && !bricks.contains(name))
                .collect();
            both_ways(&side)
        }
    }
}

fn to_others(side: &[String]) -> Vec<(String, String)> {
    let others: Vec<String> = everyone().into_iter().filter(|name| !side.contains(name)).collect();
    side.iter().flat_map(|from| others.iter().map(|to| (from.clone(), to.clone()))).collect()
}

fn both_ways(side: &[String]) -> Vec<(String, String)> {
    to_others(side).into_iter().flat_map(|(from, to)| [(from.clone(), to.clone()), (to, from)]).collect()
}

/// What must stand still, and what must go on, when `lost` bricks are on the wrong side.
fn consequences(kind: Kind, gateway: usize, lost: usize) -> (Vec<Way>, Vec<Way>) {
    let ways = |gateway: usize, bricks: usize| {
        let volumes = VOLUMES.iter().enumerate().filter(move |(_, volume)| volume.tolerates >= bricks);
        volumes.map(move |(volume, _)| (gateway, volume)).collect::<Vec<_>>()
    };
    let other = (gateway + 1) % GATEWAYS;
    let all = |bricks: usize| [ways(gateway, bricks), ways(other, bricks)].concat();
    match kind {
        Kind::Minority => (ways(gateway, 0), ways(other, lost)),
        Kind::GatewayAlone => (ways(gateway, 0), ways(other, 0)),
        Kind::DirectoryAlone => (Vec::new(), all(0)),
        Kind::BricksAlone | Kind::Mute | Kind::Deaf => (Vec::new(), all(lost)),
        Kind::OneWay => (Vec::new(), ways(other, lost)),
        // The directory can make no view of a layout with parity out of two bricks. Of a mirror it can.
        Kind::WithoutDirectory => {
            let parity = ways(other, 0).into_iter().filter(|(_, volume)| VOLUMES[*volume].needs > 2);
            (parity.collect(), Vec::new())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_separates_two_sides_and_nothing_else() {
        let mut noise = Noise::new(3);
        for kind in KINDS.into_iter().cycle().take(200) {
            let cut = Cut::draw(kind, &mut noise);
            assert!(!cut.pairs.is_empty() && cut.pairs.iter().all(|(from, to)| from != to), "{cut}");
            let reversed = |pair: &(String, String)| cut.pairs.contains(&(pair.1.clone(), pair.0.clone()));
            let one_way = matches!(kind, Kind::Mute | Kind::Deaf | Kind::OneWay);
            assert!(cut.pairs.iter().all(|pair| reversed(pair) != one_way), "{cut}");
            assert!(cut.refused.iter().all(|way| !cut.goes_on.contains(way)), "{cut}");
            assert!(!cut.refused.is_empty() || !cut.goes_on.is_empty(), "{cut}");
        }
    }
}
