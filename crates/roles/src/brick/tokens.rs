//! Whose question to a store a token names. Notes and barriers are asked for by four parts of a brick, and answered alike.

use wire::disk::Token;

/// Which part of a brick asked a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    /// The disk's participant. It draws its tokens itself, from 1 upward.
    Participant,
    /// [`super::vitals`], for a probe.
    Vitals,
    /// [`super::membership`], for a note of what it knows, or the barrier before it.
    Membership,
    /// [`super::decided`], for a barrier.
    Decided,
}

const VITALS: u64 = 1 << 62;
const MEMBERSHIP: u64 = 1 << 63;

impl Asker {
    /// The token of the asker's question of that number.
    pub(super) fn token(self, serial: u64) -> Token {
        Token(match self {
            Asker::Participant => serial,
            Asker::Vitals => VITALS | serial,
            Asker::Membership => MEMBERSHIP | serial,
            Asker::Decided => MEMBERSHIP | VITALS | serial,
        })
    }

    pub(super) fn of(token: Token) -> Asker {
        match (token.0 & MEMBERSHIP, token.0 & VITALS) {
            (0, 0) => Asker::Participant,
            (0, _) => Asker::Vitals,
            (_, 0) => Asker::Membership,
            _ => Asker::Decided,
        }
    }
}
