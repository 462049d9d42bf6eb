//! In which order writes to the same block take effect: the protocol family's *serialization*.

pub mod ts_wait;
