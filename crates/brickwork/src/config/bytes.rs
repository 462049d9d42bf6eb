//! Sizes as people write them: `512MiB`, `10GiB`, `4096`.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;

/// A number of bytes, written with or without a unit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Bytes(pub u64);

/// Why a size could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "'{0}' is not a size; write bytes (4096) or a number and a unit (64KiB, 512MiB, 1.5GiB, 2TiB, 1PiB; KB, MB, GB, TB, PB are powers of 1000)"
)]
pub struct BytesError(String);

/// Units by name, the larger first within each family.
const UNITS: [(&str, u64); 17] = [
    ("PiB", 1 << 50),
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("PB", 1_000_000_000_000_000),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("P", 1 << 50),
    ("T", 1 << 40),
    ("G", 1 << 30),
    ("M", 1 << 20),
    ("K", 1 << 10),
    ("B", 1),
    ("", 1),
];

/// So many of them, at the beginning, are powers of 1024.
const BINARY: usize = 5;

impl FromStr for Bytes {
    type Err = BytesError;

    fn from_str(text: &str) -> Result<Bytes, BytesError> {
        let wrong = || BytesError(text.to_owned());
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let scale =
            UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit.trim())).ok_or_else(wrong)?.1;
        let number = number.replace('_', "");
        let bytes = match number.split_once('.') {
            None => number.parse::<u64>().ok().and_then(|n| n.checked_mul(scale)),
            Some((whole, fraction)) => fractional(whole, fraction, scale),
        };
        bytes.map(Bytes).ok_or_else(wrong)
    }
}

/// `whole.fraction * scale`, rounded down; exact, so that `1.5GiB` is what it says.
fn fractional(whole: &str, fraction: &str, scale: u64) -> Option<u64> {
    if fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    let part =
        u128::from(fraction.parse::<u64>().ok()?) * u128::from(scale) / 10u128.pow(fraction.len() as u32);
    whole.parse::<u64>().ok()?.checked_mul(scale)?.checked_add(u64::try_from(part).ok()?)
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, scale) =
            UNITS[..BINARY].iter().find(|(_, scale)| self.0 >= *scale).copied().unwrap_or(("B", 1));
        if self.0.is_multiple_of(scale) {
            write!(f, "{} {unit}", self.0 / scale)
        } else {
            write!(f, "{:.1} {unit}", self.0 as f64 / scale as f64)
        }
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Bytes;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size such as 4096 or \"64KiB\"")
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Bytes, E> {
                u64::try_from(value).map(Bytes).map_err(|_| E::custom("a size cannot be negative"))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Bytes, E> {
                Ok(Bytes(value))
            }
            fn visit_str<E: de::Error>(self, value: &str) -> Result<Bytes, E> {
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
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("4096", 4096),
            ("64KiB", 65536),
            ("1.5GiB", 3 << 29),
            ("2 TiB", 2 << 40),
            ("1PiB", 1 << 50),
            ("1 PB", 1_000_000_000_000_000),
            ("10g", 10 << 30),
            ("3MB", 3_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        for text in ["", "GiB", "-1", "1.", "12 parsecs", "99999999999TiB", "16384PiB", "1.5.5K"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_written_never_panics(text in ".{0,24}") {
            let _ = text.parse::<Bytes>();
        }

        #[test]
        fn multiples_print_and_read_back(count in 1u64..1000, unit in 0usize..BINARY) {
            let bytes = Bytes(count * UNITS[unit].1);
            prop_assert_eq!(bytes.to_string().parse(), Ok(bytes));
        }
    }
}
