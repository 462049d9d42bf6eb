//! `brickwork trace generate`.

use super::writing::{Writing, is_standard};
use crate::global::Global;
use crate::output;
use anyhow::{Context, Result, anyhow};
use serde_json::json;
use std::path::{Path, PathBuf};
use trace::Description;
use trace::generate::description::LIBRARY;

/// `trace generate`.
#[derive(clap::Args)]
#[command(after_help = "\
The same description and seed give the same trace, everywhere. Those built in stand for traces of the D-SPTF paper (its
Table 2) and of the continuous-retrieval paper; --show prints one with its assumptions, to begin one of your own from.

Examples:
  brickwork trace generate --list
  brickwork trace generate --show sap > mine.toml
  brickwork trace generate mine.toml mine.trace.zst --seed 7
  brickwork trace generate sap - --requests 100000 | brickwork trace info -")]
pub(super) struct Args {
    /// A description: one that is built in, or a TOML file
    #[arg(required_unless_present_any = ["list", "show"])]
    description: Option<String>,
    /// The file to write, `-` for standard output; .gz, .xz and .zst are compressed
    #[arg(required_unless_present_any = ["list", "show"])]
    out: Option<PathBuf>,
    #[command(flatten)]
    writing: Writing,
    /// The seed: another one is another trace of the same kind
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// So many requests instead, at the same rate
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// Stretch times: 2 comes half as fast
    #[arg(long, value_name = "FACTOR")]
    stretch: Option<f64>,
    /// List the descriptions that are built in
    #[arg(long, conflicts_with = "description")]
    list: bool,
    /// Print one of them
    #[arg(long, value_name = "NAME", conflicts_with = "description")]
    show: Option<String>,
}

/// Requests between two looks at the progress.
const LOOK: u64 = 1 << 16;

/// Runs the verb.
pub(super) fn run(global: &Global, args: &Args) -> Result<()> {
    if args.list {
        return list(global);
    }
    if let Some(name) = &args.show {
        let found = LIBRARY.iter().find(|(known, _)| known == name);
        print!("{}", found.ok_or_else(|| unknown(name))?.1);
        return Ok(());
    }
    let description = args.description()?;
    let out = args.out.as_ref().context("say where to write the trace: a file, or - for standard output")?;
    let mut written = args.writing.open(out)?;
    let bar = output::progress(description.requests, &format!("generating {}", description.name), false);
    for (number, record) in (0_u64..).zip(description.source(args.seed)) {
        if number.is_multiple_of(LOOK) {
            bar.set_position(number);
        }
        written.write(&record)?;
    }
    let requests = written.finish()?;
    bar.finish_and_clear();
    report(global, args.seed, out, &description, requests);
    Ok(())
}

fn report(global: &Global, seed: u64, path: &Path, description: &Description, requests: u64) {
    if is_standard(path) {
        return;
    }
    let name = &description.name;
    if global.json {
        output::print_json(&json!({ "description": name, "seed": seed, "requests": requests, "path": path }));
    } else {
        println!("{}: {} of {name}, seed {seed}", path.display(), output::count(requests, "request"));
    }
}

impl Args {
    fn description(&self) -> Result<Description> {
        let name = self.description.as_deref().unwrap_or_default();
        let mut description = match Description::find(name) {
            Some(description) => description,
            None if Path::new(name).exists() => {
                let text = std::fs::read_to_string(name)
                    .with_context(|| format!("reading the description {name}"))?;
                Description::parse(name, &text)?
            }
            None => return Err(unknown(name)),
        };
        if let Some(requests) = self.requests {
            description = description.with_requests(requests);
        }
        if let Some(factor) = self.stretch {
            description = description.stretched(factor);
        }
        description.check().map_err(|why| anyhow!("trace description {name}: {why}"))?;
        Ok(description)
    }
}

fn unknown(name: &str) -> anyhow::Error {
    let known: Vec<&str> = LIBRARY.iter().map(|(name, _)| *name).collect();
    anyhow!("'{name}' is neither a file nor a description that is built in; those are: {}", known.join(", "))
}

fn list(global: &Global) -> Result<()> {
    let all = LIBRARY.iter().map(|(name, text)| Description::parse(name, text));
    let all: Vec<Description> = all.collect::<Result<_, _>>()?;
    if global.json {
        let one = |of: &Description| json!({ "name": of.name, "title": of.title, "requests": of.requests, "duration_s": of.duration_s });
        output::print_json(&json!(all.iter().map(one).collect::<Vec<_>>()));
        return Ok(());
    }
    let mut table = output::table(&["name", "requests", "hours", "reads", "what"]);
    output::align_right(&mut table, &[1, 2, 3]);
    for of in &all {
        let (hours, reads) = (of.duration_s / 3600.0, 100.0 * of.read_share);
        table.add_row([
            of.name.clone(),
            of.requests.to_string(),
            format!("{hours:.1}"),
            format!("{reads:.0} %"),
            of.title.clone(),
        ]);
    }
    println!("{}", output::render(&table));
    Ok(())
}
