//! The simulator as its users drive it: seeds, scenarios, checkers. One program for all files: each further one would be linked and optimised by itself.

mod buses;
mod checkers;
mod crossings;
mod drive_reference;
mod hostile;
mod hosts;
mod linearizable;
mod measured;
mod objects;
mod overload;
mod replay;
mod scenarios;
mod seeds;
#[path = "../../../model/tests/all/shared/mod.rs"]
mod shared;
mod sharing;
mod shrink;
mod spread;
mod theorems;
mod timed;
