//! `brickwork lab list`.

use crate::global::Global;
use crate::output;
use anyhow::Result;
use lab::experiment::Experiment;
use lab::parameters::Assumption;
use serde_json::{Value, json};

/// `lab list`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  brickwork lab list                    every experiment, and how many points it takes
  brickwork lab list dsptf.table1       what it assumes, and why")]
pub(super) struct List {
    /// Show what this experiment assumes
    id: Option<String>,
}

pub(super) fn run(global: &Global, args: &List) -> Result<()> {
    match &args.id {
        None => list(global, &lab::catalogue::all()),
        Some(id) => {
            lab::catalogue::find(id)?.iter().try_for_each(|experiment| describe(global, experiment.as_ref()))
        }
    }
}

fn list(global: &Global, experiments: &[Box<dyn Experiment>]) -> Result<()> {
    let mut table = output::table(&["id", "shows", "points"]);
    output::align_right(&mut table, &[2]);
    let mut all = Vec::new();
    for experiment in experiments {
        let parameters = experiment.parameters();
        let points = experiment.points(&parameters, lab::experiment::Scale::Full)?.len();
        table.add_row([experiment.id(), experiment.title(), &points.to_string()]);
        all.push(json!({
            "id": experiment.id(), "paper": experiment.paper(), "title": experiment.title(), "points": points,
        }));
    }
    if global.json {
        output::print_json(&Value::Array(all));
        return Ok(());
    }
    println!("{}", output::render(&table));
    println!("\nA point is one run of the simulator. To run: brickwork lab run ID|PAPER|all");
    Ok(())
}

fn describe(global: &Global, experiment: &dyn Experiment) -> Result<()> {
    let parameters = experiment.parameters();
    let assumptions: Vec<&Assumption> =
        experiment.assumptions().into_iter().map(|name| parameters.get(name)).collect();
    if global.json {
        let one = |assumption: &&Assumption| {
            json!({
                "name": assumption.name, "value": assumption.value, "others": assumption.others,
                "why": assumption.why,
            })
        };
        output::print_json(&json!({
            "id": experiment.id(), "paper": experiment.paper(), "title": experiment.title(),
            "assumptions": assumptions.iter().map(one).collect::<Vec<_>>(), "notes": experiment.notes(),
        }));
        return Ok(());
    }
    println!("{}: {}", experiment.id(), experiment.title());
    for assumption in assumptions {
        println!("\n  {} = {}", assumption.name, assumption.value);
        output::print_marked("   ", &assumption.why);
        if !assumption.others.is_empty() {
            let others: Vec<String> = assumption.others.iter().map(ToString::to_string).collect();
            output::print_marked("   ", &format!("Claims are also measured with {}.", others.join(", ")));
        }
    }
    for note in experiment.notes() {
        println!();
        output::print_marked(" ", &note);
    }
    Ok(())
}
