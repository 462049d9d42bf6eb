//! Views of the cluster: what a brick holds of its groups' views ([`views`]) and families ([`families`]), how the
//! directory makes a new view ([`change`]), and how a brick looks after its blocks ([`care`]).

pub mod care;
pub mod change;
pub mod families;
pub mod views;
