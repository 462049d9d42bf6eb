//! What an operator reads when a configuration is wrong: where, what, and what would be right.

use std::path::{Path, PathBuf};

/// Why a configuration was refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {}: {source}; name the right file with --config", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    /// A line of the file makes no sense.
    #[error("{}:{line}: {what}", path.display())]
    Line {
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// What is wrong, and what would be right.
        what: String,
    },
    /// A value of the environment or of a flag makes no sense, or a key is missing.
    #[error("{}: {what}", place.display())]
    Layered {
        /// The file over which they were laid.
        place: PathBuf,
        what: String,
    },
    /// Keys that do not go together.
    #[error("{}: this {kind} cannot run: {what}", place.display())]
    Wrong { place: PathBuf, kind: &'static str, what: String },
}

impl ConfigError {
    /// An error of the parser in `text`, the content of `path`, which is to be the configuration of a `kind`.
    pub fn in_file(path: &Path, text: &str, kind: &str, error: &toml::de::Error) -> ConfigError {
        let at = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = text.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count() + 1;
        ConfigError::Line { path: path.to_owned(), line, what: explain(error.message(), kind) }
    }

    /// An error in the values laid over the file.
    pub fn layered(place: &Path, kind: &str, error: &toml::de::Error) -> ConfigError {
        ConfigError::Layered { place: place.to_owned(), what: explain(error.message(), kind) }
    }
}

/// Adds the nearest valid key to serde's message about an unknown one, and to that about a missing one whose it is: the file may be of another kind.
fn explain(message: &str, kind: &str) -> String {
    if let Some(missing) = message.strip_prefix("missing field ") {
        return format!(
            "a {kind}'s configuration needs the key {}, which is not there",
            missing.replace('`', "'")
        );
    }
    let Some(rest) = message.strip_prefix("unknown field ") else {
        return message.replace('`', "'");
    };
    let mut names = rest.split('`').skip(1).step_by(2);
    let unknown = names.next().unwrap_or_default();
    let valid: Vec<&str> = names.collect();
    match nearest(unknown, &valid) {
        Some(near) => format!("unknown key '{unknown}'; did you mean '{near}'?"),
        None => format!("unknown key '{unknown}'; valid keys are {}", valid.join(", ")),
    }
}

/// The name that was meant, if one is like it.
pub(crate) fn nearest<'a>(unknown: &str, valid: &[&'a str]) -> Option<&'a str> {
    let distance = |name: &str| strsim::damerau_levenshtein(unknown, name);
    let near = valid.iter().copied().min_by_key(|name| distance(name))?;
    (distance(near) <= 1 + near.len() / 3).then_some(near)
}
