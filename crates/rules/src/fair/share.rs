//! What streams are entitled to.

use base::StreamId;
use std::collections::BTreeMap;

/// What a stream is entitled to at a disk where others want service too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// Service is in proportion to weights; 1 at least.
    weight: u32,
    /// For so much the stream counts at each disk at least, whatever it is served elsewhere: its weight at the most. 0 for no minimum.
    minimum: u32,
    /// Service in units of cost a second that comes first, over all disks together; 0 for none.
    reservation: u64,
    /// The most service in units of cost a second, over all disks together; 0 for no limit.
    limit: u64,
}

impl Share {
    /// What a stream has of which nothing is said. Its minimum keeps a tenth of its share at each disk.
    pub const USUAL: Share = Share { weight: 100, minimum: 10, reservation: 0, limit: 0 };

    /// A share in proportion to `weight` (1 at least) and the total service that it gets anywhere: TOTAL-DSFQ.
    pub fn total(weight: u32) -> Share {
        Share { weight: weight.max(1), minimum: 0, reservation: 0, limit: 0 }
    }

    /// A share of each disk by itself: SFQ(D).
    pub fn single(weight: u32) -> Share {
        Share::total(weight).with_minimum(u32::MAX)
    }

    /// With a minimum at each disk, the weight at the most: HYBRID-DSFQ.
    #[must_use]
    pub fn with_minimum(self, minimum: u32) -> Share {
        Share { minimum: minimum.min(self.weight), ..self }
    }

    /// With so many units of cost a second that come first, and so many at the most; 0 for none.
    #[must_use]
    pub fn with_rates(self, reservation: u64, limit: u64) -> Share {
        Share { reservation, limit, ..self }
    }

    pub fn weight(&self) -> u32 {
        self.weight
    }

    pub fn minimum(&self) -> u32 {
        self.minimum
    }

    pub fn reservation(&self) -> u64 {
        self.reservation
    }

    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// How much of a delay a request of this cost applies at the most (formula 11 with the minimum as a weight).
    pub fn delay_max(&self, cost: u64) -> u64 {
        match self.minimum {
            0 => u64::MAX,
            minimum => {
                let more = u128::from(cost) * u128::from(self.weight - minimum) / u128::from(minimum);
                u64::try_from(more).unwrap_or(u64::MAX)
            }
        }
    }
}

/// The shares of all streams that were given one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Shares {
    given: BTreeMap<StreamId, Share>,
}

impl Shares {
    /// The share of a stream: the usual one where none was given.
    pub fn of(&self, stream: StreamId) -> Share {
        self.given.get(&stream).copied().unwrap_or(Share::USUAL)
    }

    pub fn give(&mut self, stream: StreamId, share: Share) {
        self.given.insert(stream, share);
    }
}

impl FromIterator<(StreamId, Share)> for Shares {
    fn from_iter<T: IntoIterator<Item = (StreamId, Share)>>(shares: T) -> Shares {
        Shares { given: shares.into_iter().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section 4.3: a share of a half and a minimum of a twelfth give ten times the cost.
    #[test]
    fn the_minimum_as_a_weight_is_formula_11() {
        for (share, minimum) in [(0.5f64, 1.0 / 12.0), (0.8, 0.1), (0.25, 0.25), (0.01, 0.001)] {
            let formula = (share / minimum - 1.0) / (1.0 - share);
            // Of others that have the rest of a million, a stream of this weight gets its minimum.
            let others = 1e6 * (1.0 - share);
            let weight = minimum * others / (1.0 - minimum);
            let stream = Share::total((1e6 * share) as u32).with_minimum(weight.round() as u32);
            let delay = stream.delay_max(1_000_000) as f64 / 1e6;
            assert!(
                (delay - formula).abs() <= formula * 1e-2 + 1e-6,
                "{share} {minimum}: {delay}, {formula}"
            );
        }
        assert_eq!(Share::single(7).delay_max(1000), 0);
        assert_eq!(Share::total(7).delay_max(1), u64::MAX);
    }
}
