//! How many blocks a symbol adds up.

use super::draw::Draw;

/// A distribution of degrees, as thresholds of a 32-bit draw. They are integers, so that every machine draws the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Degrees {
    /// Below the `i`-th threshold, the degree is at most `i + 1`.
    thresholds: Vec<u32>,
}

/// Where the robust soliton's spike lies. The texts say "k/R", which is no whole number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spike {
    Floor,
    /// What meets the paper's "about five" and its overhead.
    Round,
}

impl Degrees {
    /// The robust soliton distribution for `k` blocks (Luby, "LT Codes", FOCS 2002): `rho(d) + tau(d)`, normalised, where
    /// `R = c ln(k / delta) sqrt(k)`. Panics where `k` is 0 or the parameters are not positive.
    pub fn robust_soliton(k: u32, c: f64, delta: f64, spike: Spike) -> Degrees {
        assert!(k > 0 && c > 0.0 && delta > 0.0, "a soliton of {k} blocks with c = {c}, delta = {delta}");
        let blocks = f64::from(k);
        let ripple = c * libm::log(blocks / delta) * libm::sqrt(blocks);
        let place = match spike {
            Spike::Floor => libm::floor(blocks / ripple),
            Spike::Round => libm::round(blocks / ripple),
        };
        let place = (place.max(1.0) as u32).min(k);
        let weight = |degree: u32| {
            let d = f64::from(degree);
            let rho = if degree == 1 { 1.0 / blocks } else { 1.0 / (d * (d - 1.0)) };
            let tau = match degree.cmp(&place) {
                std::cmp::Ordering::Less => ripple / (d * blocks),
                std::cmp::Ordering::Equal => ripple * libm::log(ripple / delta).max(0.0) / blocks,
                std::cmp::Ordering::Greater => 0.0,
            };
            rho + tau
        };
        Degrees::from_weights((1..=k).map(weight).collect())
    }

    /// The ideal soliton up to degree `most`, at which all of its tail lies, with a share of `single` of degree one: what
    /// suits a precode, which finds the blocks that no symbol covers (Shokrollahi, "Raptor Codes", 2006).
    pub fn truncated_soliton(single: f64, most: u32) -> Degrees {
        let weight = |degree: u32| {
            let d = f64::from(degree);
            match degree {
                1 => single,
                _ if degree == most => (1.0 - single) / (d - 1.0),
                _ => (1.0 - single) / (d * (d - 1.0)),
            }
        };
        Degrees::from_weights((1..=most).map(weight).collect())
    }

    fn from_weights(weights: Vec<f64>) -> Degrees {
        let whole: f64 = weights.iter().sum();
        let mut below = 0.0;
        let mut thresholds: Vec<u32> = weights
            .iter()
            .map(|weight| {
                below += weight;
                (below / whole * 4_294_967_296.0).min(4_294_967_295.0) as u32
            })
            .collect();
        if let Some(last) = thresholds.last_mut() {
            *last = u32::MAX;
        }
        Degrees { thresholds }
    }

    /// The mean degree.
    pub fn mean(&self) -> f64 {
        let above = self.thresholds.iter().map(|t| 1.0 - f64::from(*t) / 4_294_967_296.0);
        1.0 + above.sum::<f64>()
    }

    pub(super) fn draw(&self, draw: &mut Draw) -> u32 {
        let point = (draw.next() >> 32) as u32;
        (self.thresholds.partition_point(|threshold| *threshold <= point) as u32 + 1)
            .min(self.thresholds.len() as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper says "about five": `k = 1024`, `c = 1.1`, `delta = 0.5` have a mean degree of 4.27 with the spike at 3, 4.76 at 4.
    #[test]
    fn mean_degrees_are_those_of_the_paper() {
        let mean = |spike| Degrees::robust_soliton(1024, 1.1, 0.5, spike).mean();
        assert!((mean(Spike::Floor) - 4.27).abs() < 0.01, "{}", mean(Spike::Floor));
        assert!((mean(Spike::Round) - 4.76).abs() < 0.01, "{}", mean(Spike::Round));
    }

    #[test]
    fn draws_have_the_mean_and_stay_within_the_degrees() {
        let degrees = Degrees::truncated_soliton(0.005, 30);
        let drawn: Vec<u32> = (0..100_000).map(|index| degrees.draw(&mut Draw::new(1, index))).collect();
        assert!(drawn.iter().all(|degree| (1..=30).contains(degree)));
        let mean = drawn.iter().map(|degree| f64::from(*degree)).sum::<f64>() / 100_000.0;
        assert!((mean / degrees.mean() - 1.0).abs() < 0.02, "{mean} of {}", degrees.mean());
        assert_eq!(Degrees::robust_soliton(1, 1.1, 0.5, Spike::Round).draw(&mut Draw::new(1, 1)), 1);
    }
}
