//! What a disk is made to look like. The file is TOML:
//!
//! ```toml
//! late_ms = 20      # each access (read, write, flush) is answered so much later; fractions are allowed
//! ```
//!
//! An empty file emulates nothing.

use serde::Deserialize;
use std::path::PathBuf;
use std::time::Duration;

/// Nobody means more, and a brick that waits longer for its disk than this is of no use to a test.
const LATE_MS_MAX: f64 = 60_000.0;

/// A file of settings that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("emulated disk '{}': {why}", path.display())]
pub struct SettingsError {
    /// The file.
    pub path: PathBuf,
    /// Line, field, and what to do.
    pub why: String,
}

/// The emulation of the disks of a brick.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// How much later than the real disk each access is answered.
    pub late: Duration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SettingsFile {
    #[serde(default)]
    late_ms: f64,
}

impl Settings {
    /// The settings that `text` describes.
    ///
    /// # Errors
    /// What is wrong, with line and field, for people.
    pub fn parse(text: &str) -> Result<Settings, String> {
        let file: SettingsFile = toml::from_str(text).map_err(|error| located(text, &error))?;
        if !(0.0..=LATE_MS_MAX).contains(&file.late_ms) {
            return Err(format!("late_ms is {}; it must be between 0 and {LATE_MS_MAX}", file.late_ms));
        }
        Ok(Settings { late: Duration::from_secs_f64(file.late_ms * 1e-3) })
    }
}

fn located(text: &str, error: &toml::de::Error) -> String {
    let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    let message = error.message();
    line.map_or_else(|| message.to_owned(), |line| format!("line {line}: {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_read_in_milliseconds() {
        assert_eq!(Settings::parse("").expect("nothing"), Settings::default());
        let settings = Settings::parse("late_ms = 20").expect("whole");
        assert_eq!(settings.late, Duration::from_millis(20));
        let settings = Settings::parse("# slow\nlate_ms = 0.5\n").expect("a fraction");
        assert_eq!(settings.late, Duration::from_micros(500));
    }

    #[test]
    fn what_cannot_be_is_named() {
        for (text, named) in [
            ("late_ms = -1", "late_ms is -1"),
            ("late_ms = nan", "late_ms is NaN"),
            ("late_ms = 1e9", "between 0 and 60000"),
            ("\nlate_ms = \"x\"", "line 2"),
            ("late = 3", "late_ms"),
        ] {
            let why = Settings::parse(text).expect_err("refused");
            assert!(why.contains(named), "{text}: {why}");
        }
    }
}
