//! Versions of the protocol between daemons.
//!
//! A release speaks its own version and the one before, so that the daemons of a cluster can be replaced one by one. What came
//! with a version says so where its layout stands ([`crate::wire_enum`]): it is neither sent to nor read from a node that speaks an
//! earlier one.

use crate::{DecodeError, Reader, Wire, Writer};
use core::fmt;

/// Which messages there are, and which fields they have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Version(pub u32);

impl Version {
    /// The oldest that this release speaks.
    pub const OLDEST: Version = Version(3);
    /// The one of this release. 4 brought streams, what answers tell of their wait, and cancels; 5 what streams are entitled to;
    /// 6 what disks can serve, where streams lie, and latency targets; 7 rules of placement, and read policies that plan a request; 8 protocols;
    /// 9 locks of writers, reads of what is not decided, and gateways beside bricks; 10 reads that go back to an older version; 11 writes
    /// that are decided together; 12 fragments of objects; 13 their names and versions;
    /// 14 fragments that are made again; 15 versions of objects that share fragments; 16 puts that go on after
    /// an interruption; 17 fragments that are moved to bricks with more room; 18 streams of buckets;
    /// 19 patches that go on after an interruption; 20 the time of the cluster, how far the journals of a brick's
    /// disks are, and whether its run stands, fragments that are given back when their put is called off,
    /// ids of gateways and clients that follow from their certificates, bricks that are
    /// forgotten, and gateways with names; 21 where a brick's process runs; 22 the events that the
    /// directory remembers, and how fast bricks bring content home; 23 leases that bricks renew between heartbeats and give back when asked,
    /// and bricks that stand in for members of groups.
    pub const CURRENT: Version = Version(23);

    /// From this one on daemons tell the directory what they speak.
    pub const TOLD: Version = Version(11);

    /// From this one on bricks renew their leases between heartbeats, and give them back when asked.
    pub const RENEWS: Version = Version(23);

    /// Up to this one views know nothing of stand-ins.
    pub const BEFORE_STAND_INS: Version = Version(22);

    /// What two nodes speak with each other: the lower of their newest. `None` where one of them speaks it no more.
    pub fn agreed(ours: Spoken, theirs: Spoken) -> Option<Version> {
        let version = ours.newest.min(theirs.newest);
        (version >= ours.oldest.max(theirs.oldest)).then_some(version)
    }
}

impl Wire for Version {
    fn encode(&self, out: &mut Writer<'_>) {
        self.0.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Version, DecodeError> {
        Ok(Version(Wire::decode(reader)?))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The versions that a node speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spoken {
    pub oldest: Version,
    pub newest: Version,
}

impl Spoken {
    /// Those of this release.
    pub const OURS: Spoken = Spoken { oldest: Version::OLDEST, newest: Version::CURRENT };
}

impl fmt::Display for Spoken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.oldest == self.newest {
            true => write!(f, "protocol version {}", self.newest),
            false => write!(f, "protocol versions {} to {}", self.oldest, self.newest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spoken(oldest: u32, newest: u32) -> Spoken {
        Spoken { oldest: Version(oldest), newest: Version(newest) }
    }

    #[test]
    fn neighbours_agree_on_the_older_ones_newest() {
        let of = |ours, theirs| Version::agreed(ours, theirs).map(|version| version.0);
        assert_eq!(of(spoken(3, 4), spoken(3, 3)), Some(3));
        assert_eq!(of(spoken(3, 3), spoken(3, 4)), Some(3));
        assert_eq!(of(spoken(3, 4), spoken(4, 5)), Some(4));
        assert_eq!(of(spoken(4, 5), spoken(3, 3)), None);
        assert_eq!(of(spoken(3, 3), spoken(4, 5)), None);
    }
}
