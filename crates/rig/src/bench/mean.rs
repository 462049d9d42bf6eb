//! What several runs measured: their mean, and how well it is known.

/// The mean of several runs.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub(super) struct Mean {
    pub(super) mean: f64,
    /// The standard error of the mean; not a number of a single run.
    pub(super) error: f64,
    pub(super) runs: usize,
}

impl Mean {
    pub(super) fn of(runs: &[f64]) -> Mean {
        let count = runs.len() as f64;
        let mean = runs.iter().sum::<f64>() / count;
        let variance = runs.iter().map(|run| (run - mean).powi(2)).sum::<f64>() / (count - 1.0);
        Mean { mean, error: (variance / count).sqrt(), runs: runs.len() }
    }

    /// How many times as much this is, and the standard error of that.
    pub(super) fn over(self, other: Mean) -> (f64, f64) {
        let ratio = self.mean / other.mean;
        (ratio, ratio * (self.error / self.mean).hypot(other.error / other.mean))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_is_known_as_well_as_its_runs_agree() {
        let mean = Mean::of(&[8.0, 12.0, 10.0, 10.0]);
        assert_eq!((mean.mean, mean.runs), (10.0, 4));
        assert!((mean.error - (8.0f64 / 3.0 / 4.0).sqrt()).abs() < 1e-12, "{mean:?}");
        let (ratio, error) = mean.over(Mean { mean: 20.0, error: 0.0, runs: 4 });
        assert!(ratio == 0.5 && (error - mean.error / 20.0).abs() < 1e-12, "{ratio} {error}");
        assert!(Mean::of(&[5.0]).error.is_nan(), "one run does not tell");
    }
}
