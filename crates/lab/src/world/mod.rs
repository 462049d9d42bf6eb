//! What whole clusters do in the timed world: experiments of our own, of no paper. A file each.
//!
//! What is assumed of hardware and load is in `parameters/world.toml`.

mod detection;
mod flapping;
mod kill;
mod overload;

use crate::experiment::{Experiment, Sample};
use crate::parameters::Parameters;
use crate::system::over_time;
use model::drive::{DriveModel, find};
use rules::layout::Layout;
use sim::timed::standings::Change;
use sim::timed::{Lived, Network, Spread};
use std::sync::Arc;

/// Of an extent of a volume, at each data brick.
const EXTENT_BYTES: u64 = 4 << 20;

/// All of them.
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    vec![
        Box::new(kill::Kill),
        Box::new(overload::Overload),
        Box::new(flapping::Flapping),
        Box::new(detection::Detection),
    ]
}

/// The model of the drive that an assumption names.
fn drive(parameters: &Parameters, assumption: &str) -> Arc<DriveModel> {
    let id = parameters.text(assumption);
    let entry = find(id).unwrap_or_else(|| panic!("the parameter file names an unknown drive {id}"));
    Arc::new(DriveModel::parse(id, entry.text).unwrap_or_else(|error| panic!("{error}")))
}

fn layout(name: &str) -> Layout {
    name.parse().unwrap_or_else(|error| panic!("{error}"))
}

/// One volume over all bricks, in as many groups as give each brick so many. They are as even as groups can be: whoever is in more of them than others is the
/// bottleneck.
fn spread(layout: Layout, bricks: u32, groups_a_brick: u32, extents: u64) -> Spread {
    Spread {
        groups: groups_a_brick * bricks / u32::from(layout.width()),
        placement: "periodic".parse().unwrap_or_else(|error| panic!("{error}")),
        extents,
        piece_bytes: EXTENT_BYTES * u64::from(layout.data()),
    }
}

/// What came of a run, with the first brick that was held for slow: one that returns is left out for the same reason again.
fn sample(lived: &Lived, figures: &[(&str, f64)], notes: impl Iterator<Item = String>) -> Sample {
    let Lived { measured, windows, standings, .. } = lived;
    let leaves = |change: &&Change| change.standing.slow.as_ref().is_some_and(|slow| slow.leaves);
    let left = standings.changes.iter().find(leaves);
    let left = left.map(|Change { after, brick, standing }| {
        format!("At {:.1} s {brick} was held for {standing}.", after.as_secs_f64())
    });
    Sample {
        values: figures.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
        series: over_time(windows).into(),
        simulated_ns: (measured.simulated_s * 1e9) as u64,
        events: measured.events,
        notes: left.into_iter().chain(notes).collect(),
    }
}

/// All ways as long as is assumed.
fn network(parameters: &Parameters) -> Network {
    let one_way_ns = (parameters.number("network_one_way_us") * 1e3) as u64;
    Network { one_way_ns, client_one_way_ns: one_way_ns, ..Network::default() }
}
