//! `brickwork disk`: models of drives, and how far they agree with the drives.
//!
//! Reading order: this file, [`show`], [`map`], [`validate`] and, below it, [`checks`], [`curves`] and [`reference`]
//! (the files it compares with), [`mod@probe`].

mod checks;
mod curves;
mod list;
mod map;
mod probe;
mod reference;
mod show;
mod validate;

use crate::config::error::nearest;
use crate::global::Global;
use anyhow::{Context, Result, bail};
use clap::Subcommand;
use model::drive::{self, DriveModel};
use std::io::ErrorKind;
use std::process::ExitCode;
use std::sync::Arc;

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "\
A drive is named by its id in the list, or by a file: TOML, as `brickwork disk show ID --toml` prints it. Sectors have
512 bytes.

Examples:
  brickwork disk list
  brickwork disk show quantum-atlas-10k
  brickwork disk show seagate-cheetah-9lp --toml > mine.toml     where to begin with one's own
  brickwork disk map quantum-atlas-10k 0 334 17938985
  brickwork disk validate quantum-atlas-10k reference/ atlas10k.trace")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the models of drives that come with Brickwork
    #[command(after_help = list::HELP)]
    List,
    /// Show one drive in numbers, or its file
    Show(show::Show),
    /// Show where sectors lie: cylinder, surface, track, angle
    Map(map::Map),
    /// Compare a drive's model with reference data of the drive
    Validate(validate::Validate),
    /// Measure a real device or file, and print a model of it
    Probe(probe::Probe),
}

/// Runs the verb.
pub fn run(global: &Global, args: Args) -> Result<ExitCode> {
    let done = |()| ExitCode::SUCCESS;
    match args.command {
        Command::List => list::list(global).map(done),
        Command::Show(args) => show::show(global, &args).map(done),
        Command::Map(args) => map::map(global, &args).map(done),
        Command::Validate(args) => validate::validate(global, &args),
        Command::Probe(args) => probe::probe(global, &args).map(done),
    }
}

/// The text of a drive's file: the library's, or the user's.
fn text_of(name: &str) -> Result<String> {
    if let Some(entry) = drive::find(name) {
        return Ok(entry.text.to_owned());
    }
    match std::fs::read_to_string(name) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let ids: Vec<&str> = drive::library().iter().map(|entry| entry.id).collect();
            match nearest(name, &ids) {
                Some(near) => bail!(
                    "there is no drive and no file {name}; did you mean {near}? `brickwork disk list` shows all drives"
                ),
                None => {
                    bail!("there is no drive and no file {name}; there are the drives {}", ids.join(", "))
                }
            }
        }
        read => read.with_context(|| format!("{name} does not read")),
    }
}

/// The model of a drive of the library, or of the user's file.
pub(super) fn model_of(name: &str) -> Result<Arc<DriveModel>> {
    let model = DriveModel::parse(name, &text_of(name)?)?;
    Ok(Arc::new(model))
}

/// Nanoseconds as milliseconds, for people.
fn ms(ns: u64) -> String {
    format!("{:.3}", ns as f64 / 1e6)
}
