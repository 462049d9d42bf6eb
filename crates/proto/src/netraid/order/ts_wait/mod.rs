//! Timestamp order, by waiting (`ts-wait`). The writer's side draws stamps and decides how a refused write comes back; the
//! member's side decides whose turn it is.

pub mod member;
pub(crate) mod stamps;
pub(crate) mod writer;
