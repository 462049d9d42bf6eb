//! Means and confidence intervals of a few independent runs.

/// A mean and how far it may be off.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// The mean of all runs.
    pub mean: f64,
    /// Half the width of the 95% confidence interval; `None` from a single run, which says nothing about it.
    pub half_width: Option<f64>,
}

/// The mean of independent runs with its 95% confidence interval after Student's t.
///
/// # Panics
/// Without a single value.
pub fn estimate(values: &[f64]) -> Estimate {
    assert!(!values.is_empty(), "an estimate needs at least one value");
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    if values.len() == 1 {
        return Estimate { mean, half_width: None };
    }
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    let deviation = libm::sqrt(squares / (count - 1.0));
    Estimate { mean, half_width: Some(student_t(values.len() - 1) * deviation / libm::sqrt(count)) }
}

/// The quantiles of Student's t for 97.5%, by degrees of freedom from 1, where the series below is not good enough.
const FEW: [f64; 10] = [
    12.706_205, 4.302_653, 3.182_446, 2.776_445, 2.570_582, 2.446_912, 2.364_624, 2.306_004, 2.262_157,
    2.228_139,
];

/// The 97.5% quantile of Student's t: the factor for a two-sided interval of 95%.
fn student_t(degrees: usize) -> f64 {
    if let Some(value) = FEW.get(degrees - 1) {
        return *value;
    }
    // Cornish and Fisher's expansion about the normal quantile; good to 0.001 from 11 degrees on.
    let (z, n) = (1.959_964, degrees as f64);
    let (z3, z5, z7) = (z * z * z, z * z * z * z * z, z * z * z * z * z * z * z);
    z + (z3 + z) / (4.0 * n)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * n * n)
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * n * n * n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (degrees, expected) in
            [(1, 12.706), (6, 2.447), (7, 2.365), (11, 2.201), (30, 2.042), (120, 1.980)]
        {
            assert!((student_t(degrees) - expected).abs() < 0.001, "{degrees}: {}", student_t(degrees));
        }
    }

    #[test]
    fn a_known_sample() {
        let estimate = estimate(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(estimate.mean, 3.0);
        assert!((estimate.half_width.unwrap() - 1.963_243).abs() < 1e-5);
    }

    proptest! {
        /// Shifting all values shifts the mean and leaves the width.
        #[test]
        fn shifting_moves_only_the_mean(values in prop::collection::vec(-100.0..100.0f64, 2..20), shift in -50.0..50.0f64) {
            let before = estimate(&values);
            let after = estimate(&values.iter().map(|value| value + shift).collect::<Vec<_>>());
            prop_assert!((after.mean - before.mean - shift).abs() < 1e-9);
            prop_assert!((after.half_width.unwrap() - before.half_width.unwrap()).abs() < 1e-9);
        }
    }
}
