//! A demand on what was measured, and whether it holds.

use serde_json::{Value, json};

/// What must hold of a figure.
#[derive(Clone, Debug)]
pub(super) struct Demand {
    pub(super) what: String,
    pub(super) measured: f64,
    /// The standard error of what was measured, where several runs tell it.
    pub(super) error: Option<f64>,
    pub(super) bound: f64,
    /// Whether the figure is to be as large as the bound, and not as small.
    pub(super) at_least: bool,
}

impl Demand {
    pub(super) fn at_most(what: impl Into<String>, measured: f64, bound: f64) -> Demand {
        Demand { what: what.into(), measured, error: None, bound, at_least: false }
    }

    pub(super) fn at_least(what: impl Into<String>, measured: f64, bound: f64) -> Demand {
        Demand { what: what.into(), measured, error: None, bound, at_least: true }
    }

    /// The same, of a figure that is known so well.
    pub(super) fn known_within(self, error: f64) -> Demand {
        Demand { error: Some(error), ..self }
    }

    pub(super) fn holds(&self) -> bool {
        if self.at_least { self.measured >= self.bound } else { self.measured <= self.bound }
    }

    /// Whether the measurement could as well have fallen on the other side.
    fn is_in_doubt(&self) -> bool {
        self.error.is_some_and(|error| error.is_nan() || (self.measured - self.bound).abs() < 2.0 * error)
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "claim": self.what, "measured": self.measured, "error": self.error, "bound": self.bound,
            "at_least": self.at_least, "holds": self.holds(), "in_doubt": self.is_in_doubt(),
        })
    }

    fn print(&self) {
        let sign = if self.at_least { '≥' } else { '≤' };
        let verdict = if self.holds() { "holds" } else { "SHORT" };
        let doubt = if self.is_in_doubt() { "?" } else { "" };
        println!("{:<54} {:>8.2} {sign} {:>5.2} {verdict}{doubt}", self.what, self.measured, self.bound);
    }
}

/// Prints each with its verdict, 80 columns wide.
pub(super) fn print(demands: &[Demand]) {
    if demands.is_empty() {
        return;
    }
    println!("\n{:<54} {:>8} {:>7} verdict", "must show", "measured", "bound");
    demands.iter().for_each(Demand::print);
    if demands.iter().any(Demand::is_in_doubt) {
        println!(
            "(\"?\": the bound is within two standard errors of what was measured; more --turns would tell.)"
        );
    }
}
