//! How a member orders the writes that want the same block: the protocol family's *serialization*.

pub mod ts_wait;
