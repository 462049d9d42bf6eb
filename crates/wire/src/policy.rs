//! The names of read policies, as operators and messages say them. What each does is in `proto::distribute`, where
//! `policies` lists them.

use crate::{DecodeError, Reader, Wire};
use core::fmt;
use core::str::FromStr;

/// Of each policy what it is, its variant and its name. The place of each, counted from 1, is its code in
/// records and messages, so that a new one goes to the end.
macro_rules! policies {
    ($($(#[$meta:meta])+ $variant:ident = $name:literal,)+) => {
        /// Who serves a read, among the members that could.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub enum ReadPolicy {
            $($(#[$meta])+ $variant,)+
        }

        impl ReadPolicy {
            pub const ALL: [ReadPolicy; [$($name),+].len()] = [$(ReadPolicy::$variant),+];

            /// Its name, as operators write it.
            pub fn name(self) -> &'static str {
                match self {
                    $(ReadPolicy::$variant => $name,)+
                }
            }
        }
    };
}

policies! {
    /// It waits at all of them, and the first that can claims it (D-SPTF).
    #[default]
    Claim = "claim",
    /// The one that a hash of the address picks.
    Hash = "hash",
    /// The same, but who answers faster gets more addresses.
    WeightedHash = "weighted-hash",
    /// The one that served this place before, while it is not overloaded and others are idle (LARD).
    Lard = "lard",
    /// The one with the fewest of the gateway's questions unanswered.
    ShortestQueue = "shortest-queue",
    /// One of them, and a second when the first takes longer than is usual.
    Hedged = "hedged",
    /// Two of them, of which the first to begin calls the other off.
    Tied = "tied",
    /// The better of a few, by their queues and latest answers.
    Probing = "probing",
    /// Any one, each as often as the others.
    Random = "random",
    /// Of two drawn at random the one with fewer of the gateway's questions unanswered.
    TwoChoices = "two-choices",
}

/// No policy has this name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{0}' is no read policy: there are {all}", all = ReadPolicy::ALL.map(|policy| policy.name()).join(", "))]
pub struct UnknownPolicy(String);

impl ReadPolicy {
    /// Its number in records, from 1.
    pub(crate) fn code(self) -> u8 {
        ReadPolicy::ALL.iter().position(|policy| *policy == self).map_or(0, |at| at as u8 + 1)
    }

    /// The policy of a number; 0, of records that name none, is the default.
    pub(crate) fn of_code(code: u8) -> Result<ReadPolicy, DecodeError> {
        match code.checked_sub(1) {
            None => Ok(ReadPolicy::default()),
            Some(at) => ReadPolicy::ALL
                .get(usize::from(at))
                .copied()
                .ok_or(DecodeError::UnknownTag { what: "read policy", tag: code }),
        }
    }
}

impl fmt::Display for ReadPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ReadPolicy {
    type Err = UnknownPolicy;
    fn from_str(name: &str) -> Result<ReadPolicy, UnknownPolicy> {
        let known = ReadPolicy::ALL.into_iter().find(|policy| policy.name() == name);
        known.ok_or_else(|| UnknownPolicy(name.to_owned()))
    }
}

impl Wire for ReadPolicy {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.code());
    }
    fn decode(reader: &mut Reader<'_>) -> Result<ReadPolicy, DecodeError> {
        ReadPolicy::of_code(u8::decode(reader)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_of_one_policy_each() {
        for policy in ReadPolicy::ALL {
            assert_eq!(policy.name().parse(), Ok(policy));
            assert_eq!(ReadPolicy::from_bytes(&policy.to_bytes()), Ok(policy));
        }
        assert_eq!(ReadPolicy::of_code(0), Ok(ReadPolicy::default()));
        assert!(ReadPolicy::of_code(ReadPolicy::ALL.len() as u8 + 1).is_err());
        let error = "claims".parse::<ReadPolicy>().expect_err("no such policy").to_string();
        assert!(error.contains("'claims'") && error.contains("claim, hash, weighted-hash"), "{error}");
    }
}
