//! Timestamp order, by waiting (`ts-wait`). The writer's side decides how a refused write comes back; the
//! member's side decides whose turn it is.

pub mod member;
pub(crate) mod writer;
