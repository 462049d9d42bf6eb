//! The command line, a word at a time. By hand, as a parser's crates would take longer to compile than all of xtask.

use anyhow::{Context, Result, bail};
use std::str::FromStr;

/// Words that are still to be read.
pub(crate) struct Words(std::vec::IntoIter<String>);

impl Words {
    /// All but the program's own name.
    pub(crate) fn of_this_process() -> Words {
        Words(std::env::args().skip(1).collect::<Vec<_>>().into_iter())
    }

    /// The value of the option that was read last.
    pub(crate) fn value<T: FromStr>(&mut self, option: &str) -> Result<T> {
        let word = self.next().with_context(|| format!("{option} wants a value"))?;
        word.parse().ok().with_context(|| format!("{option} cannot be `{word}`"))
    }

    /// These, before those that are left.
    pub(crate) fn with(self, first: &[String]) -> Words {
        Words(first.iter().cloned().chain(self).collect::<Vec<_>>().into_iter())
    }

    /// An error if a word is left.
    pub(crate) fn end(mut self) -> Result<()> {
        self.next().map_or(Ok(()), unknown)
    }
}

impl Iterator for Words {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        self.0.next()
    }
}

/// What to say of a word that means nothing here.
pub(crate) fn unknown<T>(word: String) -> Result<T> {
    bail!("`{word}` means nothing here; see `cargo xtask --help`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_wants_its_value_and_nothing_may_be_left() {
        let words = |line: &str| Words(line.split(' ').map(str::to_owned).collect::<Vec<_>>().into_iter());
        assert_eq!(words("7").value::<u64>("--seeds").ok(), Some(7));
        assert!(words("x").value::<u64>("--seeds").is_err());
        let mut two = words("--seeds 7");
        assert_eq!(two.next().as_deref(), Some("--seeds"));
        assert!(two.end().is_err());
    }
}
