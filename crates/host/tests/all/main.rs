//! Daemons and disks for real. One program for all files: each further one would be linked and optimised by itself.

mod common;
mod daemons;
mod disk;
mod full_store;
mod transport;
