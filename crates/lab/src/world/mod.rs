//! What whole clusters do in the timed world: experiments of our own, of no paper. A file each.
//!
//! What is assumed of hardware and load is in `parameters/world.toml`.

mod flapping;
mod kill;
mod overload;

use crate::experiment::Experiment;
use crate::parameters::Parameters;
use model::drive::{DriveModel, find};
use sim::timed::Network;
use std::sync::Arc;

/// All of them.
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    vec![Box::new(kill::Kill), Box::new(overload::Overload), Box::new(flapping::Flapping)]
}

/// The model of the drive that an assumption names.
fn drive(parameters: &Parameters, assumption: &str) -> Arc<DriveModel> {
    let id = parameters.text(assumption);
    let entry = find(id).unwrap_or_else(|| panic!("the parameter file names an unknown drive {id}"));
    Arc::new(DriveModel::parse(id, entry.text).unwrap_or_else(|error| panic!("{error}")))
}

/// All ways as long as is assumed.
fn network(parameters: &Parameters) -> Network {
    let one_way_ns = (parameters.number("network_one_way_us") * 1e3) as u64;
    Network { one_way_ns, client_one_way_ns: one_way_ns, ..Network::default() }
}
