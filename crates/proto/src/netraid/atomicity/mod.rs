//! What makes a write take effect at all its members or at none: the protocol family's *atomicity*.

pub mod seals;
pub mod two_phase;
