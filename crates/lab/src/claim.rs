//! Claims: what a paper says, what was measured, and the band within which the two agree.

use crate::statistics::estimate;
use serde::Serialize;

/// One claim. The band is chosen when the experiment is written, from the paper; it is never widened to hold.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Claim {
    /// What is claimed, with units where it has some.
    pub what: String,
    /// The paper's number; `None` where the paper states only a shape or an order.
    pub paper: Option<f64>,
    /// Our number: the mean over all seeds.
    pub measured: f64,
    /// Half the width of its 95% confidence interval, with several seeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_ci95: Option<f64>,
    /// The least that agrees.
    pub low: f64,
    /// The most that agrees.
    pub high: f64,
    pub holds: bool,
}

/// A claim with the paper's number.
pub fn claim(what: impl Into<String>, paper: f64, measured: f64, band: [f64; 2]) -> Claim {
    new(what.into(), Some(paper), measured, band)
}

/// A claim about a shape: the paper gives no number, the band says what it means.
pub fn shape(what: impl Into<String>, measured: f64, band: [f64; 2]) -> Claim {
    new(what.into(), None, measured, band)
}

fn new(what: String, paper: Option<f64>, measured: f64, [low, high]: [f64; 2]) -> Claim {
    let holds = (low..=high).contains(&measured);
    Claim { what, paper, measured, measured_ci95: None, low, high, holds }
}

/// One claim from the same claim of several seeds: it holds if the mean does.
///
/// # Panics
/// If the claims are not the same one: the same experiment made them all.
pub fn merge(claims: &[&Claim]) -> Claim {
    let first = claims[0];
    assert!(
        claims.iter().all(|claim| claim.what == first.what),
        "each seed makes the same claims in the same order"
    );
    let values: Vec<f64> = claims.iter().map(|claim| claim.measured).collect();
    let estimate = estimate(&values);
    let merged = new(first.what.clone(), first.paper, estimate.mean, [first.low, first.high]);
    Claim { measured_ci95: estimate.half_width, ..merged }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_band_includes_its_ends_and_nothing_else() {
        assert!(claim("x", 1.4, 1.36, [1.36, 1.45]).holds);
        assert!(claim("x", 1.4, 1.45, [1.36, 1.45]).holds);
        assert!(!claim("x", 1.4, 1.4501, [1.36, 1.45]).holds);
        assert!(!shape("x", f64::NAN, [0.0, 1.0]).holds);
    }

    #[test]
    fn seeds_are_judged_by_their_mean() {
        let seeds = [claim("x", 1.0, 0.8, [0.9, 1.1]), claim("x", 1.0, 1.2, [0.9, 1.1])];
        let merged = merge(&seeds.iter().collect::<Vec<_>>());
        assert!(merged.holds && merged.measured_ci95.is_some());
    }
}
