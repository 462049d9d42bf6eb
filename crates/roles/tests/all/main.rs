//! Machines on a perfect network, and the properties of their parts. One program for all files: each further one would be linked and optimised by itself.

mod amnesia;
mod bare;
mod branches;
mod cluster;
mod common;
mod fair;
mod heal;
mod leaseless;
mod slow;
mod stand_ins;
mod starved;
mod streams;
mod unaligned;
