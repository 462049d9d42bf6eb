//! The names of read policies, as operators and messages say them. What each does is in `reads::distribute`, where
//! `policies` lists them.

use crate::{Version, choices};

choices! {
    /// Who serves a read, among the members that could.
    ReadPolicy, "read policy";
    /// It waits at all of them, and the first that can claims it (D-SPTF).
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
    /// The one that is expected to be quickest, and another as soon as it is later than it usually is.
    Quickest = "quickest",
    /// By contest where a device's head decides how long an access takes, and the quickest where it does not.
    Usual = "usual",
    /// The one that is expected to answer first, by how busy and how fast disks are.
    Online = "online",
    /// The reads of a request together, so that the last is answered as early as can be.
    MaxFlowConservative = "max-flow-conservative",
    /// The same, and reads of earlier requests that have not begun are moved where that helps.
    MaxFlowAdaptive = "max-flow-adaptive",
    ; known_to known_to
}

impl ReadPolicy {
    /// What a new volume has unless its owner says otherwise. (The default is that of old records, which say nothing.)
    pub const FOR_NEW_VOLUMES: ReadPolicy = ReadPolicy::Usual;
}

/// The policy itself, or the nearest one that a reader of the release before knows.
pub(crate) fn known_to(version: Version, policy: ReadPolicy) -> ReadPolicy {
    match policy {
        ReadPolicy::Quickest | ReadPolicy::Usual if version < Version(4) => ReadPolicy::Claim,
        ReadPolicy::Online | ReadPolicy::MaxFlowConservative | ReadPolicy::MaxFlowAdaptive
            if version < Version(7) =>
        {
            if version >= Version(4) {
                ReadPolicy::Quickest
            } else {
                ReadPolicy::Claim
            }
        }
        known => known,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reader, Wire};

    /// Found by the fuzzer of messages: such a choice came back as another one.
    #[test]
    fn who_speaks_an_older_version_names_no_policy_that_it_does_not_know() {
        for version in [Version::OLDEST, Version(6), Version::CURRENT] {
            for policy in ReadPolicy::ALL {
                let decoded = ReadPolicy::decode(&mut Reader::of(version, &policy.to_bytes()));
                let is_known = known_to(version, policy) == policy;
                assert_eq!(decoded.ok(), is_known.then_some(policy), "{policy} in {version:?}");
            }
        }
    }

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
