//! From figures to places on the page, and which figures to write beside an axis.

use super::chart::Begins;

/// An axis: figures from `low` to `high` lie between two places on the page.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    /// Of a logarithmic axis, powers of ten.
    low: f64,
    high: f64,
    begin: f64,
    end: f64,
    step: f64,
    is_logarithmic: bool,
}

impl Scale {
    /// An axis for `values`, widened to whole steps of about `steps` in number.
    pub(super) fn of(
        values: impl Iterator<Item = f64>,
        begins: Begins,
        steps: f64,
        place: [f64; 2],
    ) -> Scale {
        if begins == Begins::Logarithmic {
            return Scale::logarithmic(values, place);
        }
        let start = if begins == Begins::Zero { (0.0, 0.0) } else { (f64::INFINITY, f64::NEG_INFINITY) };
        let mut are_whole = true;
        let (low, high) = values
            .filter(|value| value.is_finite())
            .inspect(|value| are_whole &= *value == libm::floor(*value))
            .fold(start, |(low, high): (f64, f64), value| (low.min(value), high.max(value)));
        let (low, high) = if low < high { (low, high) } else { (low.min(0.0), low.max(0.0) + 1.0) };
        let step = round_step((high - low) / steps);
        // There is nothing between two whole figures, such as numbers of copies.
        let step = if are_whole { step.max(1.0) } else { step };
        let (low, high) = (libm::floor(low / step) * step, libm::ceil(high / step - 1e-9) * step);
        Scale { low, high, begin: place[0], end: place[1], step, is_logarithmic: false }
    }

    fn logarithmic(values: impl Iterator<Item = f64>, place: [f64; 2]) -> Scale {
        let powers = values.filter(|value| value.is_finite() && *value > 0.0).map(libm::log10);
        let (low, high) = powers
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), power| (low.min(power), high.max(power)));
        let (low, high) = if low <= high { (libm::floor(low), libm::ceil(high)) } else { (0.0, 1.0) };
        let high = if low < high { high } else { low + 1.0 };
        Scale { low, high, begin: place[0], end: place[1], step: 1.0, is_logarithmic: true }
    }

    pub(super) fn place(&self, value: f64) -> f64 {
        let value = match self.is_logarithmic {
            true if value > 0.0 => libm::log10(value).max(self.low),
            true => self.low,
            false => value,
        };
        self.at(value)
    }

    fn at(&self, value: f64) -> f64 {
        self.begin + (value - self.low) / (self.high - self.low) * (self.end - self.begin)
    }

    /// Each step with what is written beside it.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let count = libm::round((self.high - self.low) / self.step) as u32;
        let decimals = (-libm::floor(libm::log10(self.step))).clamp(0.0, 6.0) as usize;
        let value = |at: u32| self.low + f64::from(at) * self.step;
        let text = |value: f64| match self.is_logarithmic {
            true => with_decimals(libm::pow(10.0, value), (-value).clamp(0.0, 6.0) as usize),
            false => with_decimals(value, decimals),
        };
        (0..=count).map(|at| (self.at(value(at)), text(value(at)))).collect()
    }
}

fn with_decimals(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    // The step 0.5 needs one decimal, and its even multiples none; all keep one, so that they line up.
    if text.trim_start_matches(['-', '0', '.']).is_empty() {
        "0".to_owned()
    } else {
        text.replace('-', "−")
    }
}

/// 1, 2 or 5 times a power of ten, at least `rough`.
fn round_step(rough: f64) -> f64 {
    let power = libm::pow(10.0, libm::floor(libm::log10(rough)));
    let rounded = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= rough * 0.999_999);
    rounded.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ticks_are_round_numbers() {
        let scale = Scale::of([3.0, 187.0].into_iter(), Begins::Zero, 5.0, [0.0, 100.0]);
        let texts: Vec<String> = scale.ticks().into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["0", "50", "100", "150", "200"]);
        let scale = Scale::of([0.0, 0.0244].into_iter(), Begins::Zero, 5.0, [0.0, 100.0]);
        assert_eq!(scale.ticks()[1].1, "0.005");
        let copies = Scale::of([2.0, 3.0, 5.0].into_iter(), Begins::Least, 8.0, [0.0, 100.0]);
        let texts: Vec<String> = copies.ticks().into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["2", "3", "4", "5"]);
        let scale = Scale::of([0.0, 0.4, 1800.0].into_iter(), Begins::Logarithmic, 5.0, [0.0, 100.0]);
        let ticks: Vec<(f64, String)> = scale.ticks();
        let texts: Vec<&str> = ticks.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["0.1", "1", "10", "100", "1000", "10000"]);
        assert_eq!((scale.place(10.0), scale.place(0.0)), (40.0, 0.0));
    }

    proptest! {
        /// Whatever is shown lies inside the axis, and ticks stay few.
        #[test]
        fn figures_lie_inside(values in prop::collection::vec(-1e6..1e6, 1..9), zero: bool) {
            let begins = if zero { Begins::Zero } else { Begins::Least };
            let scale = Scale::of(values.iter().copied(), begins, 5.0, [10.0, 110.0]);
            for value in &values {
                prop_assert!((9.999..110.001).contains(&scale.place(*value)));
            }
            prop_assert!(scale.ticks().len() <= 9);
        }
    }
}
