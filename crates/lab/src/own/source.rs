//! A user's file as the source of mistakes: each is named with its file, its line and its field.

use crate::error::LabError;

/// A file and what it says, for errors.
pub(super) struct Source {
    pub(super) file: String,
    pub(super) text: String,
}

impl Source {
    /// A mistake in the value of `field`, a path such as `cluster.policy`.
    pub(super) fn wrong(&self, field: &str, why: impl std::fmt::Display) -> LabError {
        let line = super::place::line_of(&self.text, field);
        LabError::Experiment { file: self.file.clone(), line, why: format!("{field}: {why}") }
    }
}

/// The number, if it lies within its bounds.
pub(super) fn number(
    source: &Source,
    field: &str,
    value: f64,
    [least, most]: [f64; 2],
) -> Result<f64, LabError> {
    let is_inside = (least..=most).contains(&value);
    is_inside
        .then_some(value)
        .ok_or_else(|| source.wrong(field, format!("{value} is not between {least} and {most}")))
}
