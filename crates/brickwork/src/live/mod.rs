//! `brickwork lab run --live` and `brickwork lab calibrate`: real daemons on this machine beside the simulation of the same.
//!
//! Reading order: [`bed`] (the cluster), [`asked`] (what clients ask for), [`load`] (the clients), then what is run on it: [`table1`] (D-SPTF's Table 1),
//! [`dsfq`] (figures of DSFQ), [`described`] (a description of the laboratory, predicted and measured), [`own`] (a user's file), [`calibrate`] (what work costs).

mod asked;
mod bed;
pub mod calibrate;
mod described;
pub mod dsfq;
mod load;
pub mod own;
pub mod table1;
