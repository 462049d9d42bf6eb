//! Lengths of time as people write them: `90s`, `10m`, `12h`, `7d`.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;

/// A length of time in whole seconds, written with or without a unit; `off` is none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Period {
    /// How long, in seconds; 0 for `off`.
    pub seconds: u64,
}

/// Why a length of time could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "'{0}' is not a length of time; write seconds (600) or a number and a unit (90s, 10m, 12h, 7d), or off"
)]
pub struct PeriodError(String);

/// Units by name, the longer first.
const UNITS: [(&str, u64); 5] = [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1), ("", 1)];

impl FromStr for Period {
    type Err = PeriodError;

    fn from_str(text: &str) -> Result<Period, PeriodError> {
        let wrong = || PeriodError(text.to_owned());
        if text == "off" {
            return Ok(Period::default());
        }
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit.trim()).ok_or_else(wrong)?;
        let seconds = number.parse::<u64>().ok().and_then(|number| number.checked_mul(*scale));
        seconds.map(|seconds| Period { seconds }).ok_or_else(wrong)
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.seconds == 0 {
            return f.write_str("off");
        }
        let whole = |(_, scale): &&(&str, u64)| self.seconds.is_multiple_of(*scale);
        let (unit, scale) = UNITS[..4].iter().find(whole).unwrap_or(&("s", 1));
        write!(f, "{}{unit}", self.seconds / scale)
    }
}

impl Serialize for Period {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Period {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Period, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Period;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a length of time such as 600 or \"10m\"")
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Period, E> {
                let seconds =
                    u64::try_from(value).map_err(|_| E::custom("a length of time cannot be negative"))?;
                Ok(Period { seconds })
            }
            fn visit_u64<E: de::Error>(self, seconds: u64) -> Result<Period, E> {
                Ok(Period { seconds })
            }
            fn visit_str<E: de::Error>(self, value: &str) -> Result<Period, E> {
                value.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lengths_of_time_are_read_as_people_write_them() {
        for (text, seconds) in
            [("600", 600), ("90s", 90), ("10m", 600), ("12 h", 43_200), ("7d", 604_800), ("off", 0)]
        {
            assert_eq!(text.parse(), Ok(Period { seconds }), "{text}");
        }
        for text in ["", "m", "-1", "1.5h", "a while", "99999999999999999999d", "off "] {
            assert!(text.parse::<Period>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_written_is_read_back_or_refused(text in ".{0,12}", seconds in 0u64..10_000_000) {
            let _ = text.parse::<Period>();
            let period = Period { seconds };
            prop_assert_eq!(period.to_string().parse(), Ok(period));
        }
    }
}
