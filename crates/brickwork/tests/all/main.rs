//! The binary as its users run it. One program for all files: each further one would be linked and optimised by itself.

// Tests write as they like; see clippy.toml.
#![allow(clippy::disallowed_methods)]

mod attach;
mod bricks;
mod certificates;
mod command_line;
mod common;
mod demo;
mod files;
mod fsck;
mod join;
mod lab;
mod listeners;
mod pages;
mod probe;
mod snapshots;
mod streams;
mod trace;
