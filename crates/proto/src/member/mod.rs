//! Views of the cluster: what a brick holds of its groups' views ([`views`]), and how the directory makes a new one
//! ([`change`]).

pub mod change;
pub mod views;
