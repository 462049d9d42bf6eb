//! Latencies as people write them: `500us`, `5ms`, `1s`.

use std::fmt;
use std::str::FromStr;

/// A length of time in whole microseconds, written with its unit; `none` is no target.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Latency {
    /// 0 for `none`; half a minute at the most.
    pub us: u32,
}

/// Why a latency could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{0}' is not a latency; write a number and a unit (500us, 5ms, 1s), 30s at the most, or none")]
pub struct LatencyError(String);

/// Units by name, in microseconds.
const UNITS: [(&str, u32); 3] = [("us", 1), ("ms", 1000), ("s", 1_000_000)];
/// A request that waits longer than this is given up.
const MAX_US: u32 = 30_000_000;

impl FromStr for Latency {
    type Err = LatencyError;

    fn from_str(text: &str) -> Result<Latency, LatencyError> {
        if text == "none" {
            return Ok(Latency::default());
        }
        let wrong = || LatencyError(text.to_owned());
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit.trim()).ok_or_else(wrong)?;
        let us = number.parse::<u32>().ok().and_then(|number| number.checked_mul(*scale));
        us.filter(|us| (1..=MAX_US).contains(us)).map(|us| Latency { us }).ok_or_else(wrong)
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = UNITS.iter().rev().find(|(_, scale)| self.us.is_multiple_of(*scale));
        match (self.us, unit) {
            (0, _) | (_, None) => f.write_str("none"),
            (us, Some((name, scale))) => write!(f, "{}{name}", us / scale),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_read_and_written() {
        for (text, us, written) in [
            ("500us", 500, "500us"),
            ("5ms", 5000, "5ms"),
            ("5000 us", 5000, "5ms"),
            ("1500us", 1500, "1500us"),
            ("1s", 1_000_000, "1s"),
            ("none", 0, "none"),
        ] {
            let latency: Latency = text.parse().expect(text);
            assert_eq!((latency.us, latency.to_string().as_str()), (us, written), "{text}");
        }
        for text in ["", "5", "ms", "0ms", "-5ms", "5m", "31s", "4294967296us", "5000s"] {
            assert!(text.parse::<Latency>().is_err(), "{text}");
        }
    }
}
