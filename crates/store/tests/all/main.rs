//! A disk under faults, crashes and what a checker finds. One program for all files: each further one would be linked and optimised by itself.

mod common;
mod crash;
mod erase;
mod faults;
mod fsck;
mod lost_pages;
mod pace;
mod page_map;
mod power_cut;
mod read;
mod scrub;
mod turns;
