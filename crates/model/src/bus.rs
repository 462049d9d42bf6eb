//! What carries one transfer after another at a rate: a bus, a network card, a port of a switch.

/// It may be infinitely fast.
#[derive(Clone, Debug)]
pub struct Bus {
    bytes_per_second: Option<u64>,
    free_ns: u64,
}

impl Bus {
    /// `None` takes no time.
    pub fn new(bytes_per_second: Option<u64>) -> Bus {
        Bus { bytes_per_second, free_ns: 0 }
    }

    /// When so many bytes are across that are there at `from_ns`, behind all that came before.
    pub fn carry(&mut self, from_ns: u64, bytes: u64) -> u64 {
        let Some(per_second) = self.bytes_per_second else { return from_ns };
        let takes_ns = u128::from(bytes) * 1_000_000_000 / u128::from(per_second.max(1));
        let takes_ns = u64::try_from(takes_ns).unwrap_or(u64::MAX);
        self.free_ns = self.free_ns.max(from_ns).saturating_add(takes_ns);
        self.free_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_without_a_rate_takes_no_time() {
        let mut bus = Bus::new(None);
        assert_eq!((bus.carry(7, u64::MAX), bus.carry(5, 1)), (7, 5));
    }

    proptest! {
        /// Transfers follow one another, none is faster than the rate, and it is never idle while one waits.
        #[test]
        fn transfers_take_their_time_one_after_another(gaps in prop::collection::vec((0u64..5_000, 1u64..9_000), 1..60)) {
            let mut bus = Bus::new(Some(1_000_000_000));
            let (mut now, mut busy_until, mut bytes_in_a_row, mut row_began) = (0, 0, 0, 0);
            for (gap, bytes) in gaps {
                now += gap;
                if now >= busy_until {
                    (row_began, bytes_in_a_row) = (now, 0);
                }
                bytes_in_a_row += bytes;
                busy_until = bus.carry(now, bytes);
                prop_assert_eq!(busy_until, row_began + bytes_in_a_row);
            }
        }
    }
}
