//! Asks before something is done that cannot be undone.

use anyhow::{Result, ensure};
use std::io::{IsTerminal, Write};

/// Lets a person repeat `name` before `what` (a sentence without its end) is done; without a terminal it is refused.
pub fn confirm(what: &str, name: &str) -> Result<()> {
    ensure!(std::io::stdin().is_terminal(), "{what}? There is no terminal to ask on: say --yes");
    eprint!("{what}? Write {name} to confirm: ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    ensure!(answer.trim() == name, "nothing was done: '{name}' was not repeated");
    Ok(())
}
