//! On which way the blocks of a write reach the members, and who computes parity: the protocol family's *data path*.

pub mod gw;
