//! Read policies: who serves a read of a volume, among the members that could.

use crate::{DecodeError, Reader, Wire};
use core::fmt;
use core::str::FromStr;

/// Who serves a read, among the members that could.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum ReadPolicy {
    /// It waits at all of them, and the first that can claims it (D-SPTF).
    #[default]
    Claim,
    /// The one that a hash of the address picks.
    Hash,
    /// The same, but who answers faster gets more addresses.
    WeightedHash,
    /// The one that served this place before, while it is not overloaded and others are idle (LARD).
    Lard,
    /// The one with the fewest of the gateway's questions unanswered.
    ShortestQueue,
    /// One of them, and a second when the first takes longer than is usual.
    Hedged,
    /// Two of them, of which the first to begin calls the other off.
    Tied,
    /// The better of a few, by their queues and latest answers.
    Probing,
}

/// No policy has this name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{0}' is no read policy: there are {all}", all = ReadPolicy::ALL.map(|policy| policy.name()).join(", "))]
pub struct UnknownPolicy(String);

impl ReadPolicy {
    /// All of them. The place of each, counted from 1, is its code.
    pub const ALL: [ReadPolicy; 8] = [
        ReadPolicy::Claim,
        ReadPolicy::Hash,
        ReadPolicy::WeightedHash,
        ReadPolicy::Lard,
        ReadPolicy::ShortestQueue,
        ReadPolicy::Hedged,
        ReadPolicy::Tied,
        ReadPolicy::Probing,
    ];

    /// Its name, as operators write it.
    pub fn name(self) -> &'static str {
        match self {
            ReadPolicy::Claim => "claim",
            ReadPolicy::Hash => "hash",
            ReadPolicy::WeightedHash => "weighted-hash",
            ReadPolicy::Lard => "lard",
            ReadPolicy::ShortestQueue => "shortest-queue",
            ReadPolicy::Hedged => "hedged",
            ReadPolicy::Tied => "tied",
            ReadPolicy::Probing => "probing",
        }
    }

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
        assert!(ReadPolicy::of_code(9).is_err());
        let error = "claims".parse::<ReadPolicy>().expect_err("no such policy").to_string();
        assert!(error.contains("'claims'") && error.contains("claim, hash, weighted-hash"), "{error}");
    }
}
