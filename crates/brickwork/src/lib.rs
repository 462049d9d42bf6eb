//! Brickwork's command line: a file a verb, wiring only. Protocols live in `rules` to `roles`, loops in `host`.
//!
//! Reading order: [`args`] (what can be asked, and who answers), [`verb`] (what is done about it), [`global`] and [`config`]
//! (what holds for every verb; files, environment, flags), [`security`] and [`join`] (certificates, tokens, how a machine
//! becomes part of a cluster). Real processes under verified load, for `demo` and `lab run --live`, are in `rig`.
//!
//! Deliberately absent: decisions about data. A verb that begins to think belongs in another crate.

// Tests write as they like; see clippy.toml.
#![cfg_attr(test, allow(clippy::disallowed_methods))]

// First: what it says of printing holds for all modules below.
#[macro_use]
pub mod output;

pub mod args;
pub mod config;
pub mod global;
pub mod join;
pub mod live;
pub mod security;
pub mod verb;
pub mod view;

use std::process::ExitCode;

/// The whole program: reads the command line, runs the verb, and says how it went. 0 is success, 1 is failure,
/// 2 is a command line that makes no sense.
pub fn run() -> ExitCode {
    let cli = args::parse();
    match args::run(cli) {
        Ok(_) if !output::is_complete() => {
            eprintln!(
                "brickwork: the verb has done its work, but its output could not be written; is there room for it?"
            );
            ExitCode::FAILURE
        }
        Ok(code) => code,
        Err(error) => {
            eprintln!("brickwork: {error:#}");
            ExitCode::FAILURE
        }
    }
}
