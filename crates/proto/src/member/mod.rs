//! How the directory makes a new view of a group: [`change`].

pub mod change;
