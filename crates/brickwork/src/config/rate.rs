//! Rates of service as people write them: `500`, `500iops`, `4500units`.

use std::fmt;
use std::str::FromStr;
use wire::StreamInfo;

/// Units of cost a second. Written as requests for 4 KiB a second, each of which costs 9 units, or as units; `none` is no rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rate {
    /// 0 for `none`.
    pub units: u64,
}

/// Why a rate could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "'{0}' is not a rate; write requests for 4 KiB a second (500 or 500iops), units of cost a second (4500units), or none"
)]
pub struct RateError(String);

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Rate, RateError> {
        let wrong = || RateError(text.to_owned());
        if text == "none" {
            return Ok(Rate::default());
        }
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let scale = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "iops" => StreamInfo::BLOCK_UNITS,
            "units" => 1,
            _ => return Err(wrong()),
        };
        let units = number.parse::<u64>().ok().and_then(|number| number.checked_mul(scale));
        units.map(|units| Rate { units }).ok_or_else(wrong)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.units {
            0 => f.write_str("none"),
            units if units.is_multiple_of(StreamInfo::BLOCK_UNITS) => {
                write!(f, "{}iops", units / StreamInfo::BLOCK_UNITS)
            }
            units => write!(f, "{units}units"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_and_written() {
        for (text, units, written) in [
            ("500", 4500, "500iops"),
            ("500iops", 4500, "500iops"),
            ("500 IOPS", 4500, "500iops"),
            ("100units", 100, "100units"),
            ("0", 0, "none"),
            ("none", 0, "none"),
        ] {
            let rate: Rate = text.parse().expect(text);
            assert_eq!((rate.units, rate.to_string().as_str()), (units, written), "{text}");
        }
        for text in ["", "iops", "many", "5MiB", "-3", "18446744073709551615"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }
}
