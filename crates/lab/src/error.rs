//! What can go wrong, each with the thing and the place.

use std::path::PathBuf;

/// Why an experiment did not run.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// No experiment has this name.
    #[error("no experiment is named '{name}'{hint}; `brickwork lab list` names them all")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What may have been meant.
        hint: String,
    },
    /// A parameter file, or a value set on the command line, makes no sense.
    #[error("{place}: {why}")]
    Parameter {
        /// The file or flag, and the assumption.
        place: String,
        /// What is wrong and what would be right.
        why: String,
    },
    /// A user's experiment file makes no sense.
    #[error("{file}{}: {why}", line.map_or(String::new(), |line| format!(":{line}")))]
    Experiment {
        /// The file as it was named.
        file: String,
        /// The line, counted from 1.
        line: Option<usize>,
        /// The field, what is wrong with it and what would be right.
        why: String,
    },
    /// A point could not be run.
    #[error("{point}: {why}")]
    Point {
        /// The experiment and the point's labels.
        point: String,
        /// What the simulator said.
        why: String,
    },
    /// A file cannot be read or written.
    #[error("cannot {action} {}: {why}", path.display())]
    File { action: &'static str, path: PathBuf, why: std::io::Error },
    /// A picture cannot be drawn.
    #[error("the picture {name} cannot be drawn: {why}")]
    Picture { name: String, why: String },
}

impl LabError {
    /// For `map_err` on writing to `path`.
    pub(crate) fn writing(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> LabError {
        let path = path.to_owned();
        move |why| LabError::File { action: "write", path, why }
    }

    /// For `map_err` on reading from `path`.
    pub(crate) fn reading(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> LabError {
        let path = path.to_owned();
        move |why| LabError::File { action: "read", path, why }
    }
}
