//! Two-phase commit of writes (`2pcw`). Phase one is a [`round`]: each member puts the write on stable storage beside what
//! it had. Phase two is a decision, which members are told at leisure ([`super::super::context::decisions`]: the client is
//! answered before). Whoever meets a write in doubt may settle it ([`super::super::settle`]).

pub mod member;
pub mod round;
pub mod seals;
