//! What is wrong with a drive's file, and where.

/// A drive's file that no drive could have.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}{}: {field}: {why}", place(*.line))]
pub struct DriveError {
    /// The file, as it was named to the parser.
    pub file: String,
    /// The line, from 1, where it is known.
    pub line: Option<usize>,
    /// The field, with its table: `zone[3].sectors_per_track`.
    pub field: String,
    /// What is wrong with it, and what it has to be.
    pub why: String,
}

fn place(line: Option<usize>) -> String {
    line.map_or_else(String::new, |line| format!(":{line}"))
}
