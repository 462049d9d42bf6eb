//! `brickwork lab calibrate`.

use crate::global::Global;
use crate::live::calibrate::{self, Calibrated, Checked};
use crate::output;
use anyhow::{Context, Result};
use serde_json::json;
use std::path::PathBuf;

/// `lab calibrate`.
#[derive(clap::Args)]
#[command(after_help = "\
Starts three bricks, a gateway and a directory on this machine, with their files in memory, and lets eight loads run on them, three
seconds each. The costs are fitted: with them the simulation of the same loads spends about the processor time that was measured. The table
shows how well that fits. Nothing else should run meanwhile.

An experiment of one's own takes the file, for processors that take time:

  [processors]
  costs = \"costs.toml\"

Examples:
  brickwork lab calibrate
  brickwork lab calibrate --out machines/old-server.toml
  brickwork lab run mine.toml --live --costs costs.toml")]
pub(super) struct Calibrate {
    /// The file
    #[arg(long, value_name = "FILE", default_value = "costs.toml")]
    out: PathBuf,
}

pub(super) fn run(global: &Global, args: &Calibrate) -> Result<()> {
    let calibrated = calibrate::run(&|what| eprintln!("{what}"))?;
    let text = format!(
        "# What work costs a processor of this machine, measured by `brickwork lab calibrate`.\n{}",
        calibrated.machine.text()
    );
    outfile::write(&args.out, text.as_bytes())
        .with_context(|| format!("cannot write the costs to {}", args.out.display()))?;
    if global.json {
        output::print_json(&as_json(&calibrated));
        return Ok(());
    }
    let mut table = output::table(&["load", "requests/s", "predicted", "processor us", "predicted"]);
    output::align_right(&mut table, &[1, 2, 3, 4]);
    for Checked { name, requests_per_second, processor_us } in &calibrated.loads {
        let [rate, rate_predicted] = requests_per_second.map(|rate| format!("{rate:.0}"));
        let [us, us_predicted] = processor_us.map(|us| format!("{us:.1}"));
        table.add_row([name.clone(), rate, rate_predicted, us, us_predicted]);
    }
    println!("{}\n\n{}", output::render(&table), calibrated.machine.text());
    println!("Wrote {}.", args.out.display());
    Ok(())
}

fn as_json(calibrated: &Calibrated) -> serde_json::Value {
    let costs = &calibrated.machine.costs;
    let mut all = serde_json::Map::new();
    all.insert("processors".to_owned(), calibrated.machine.processors.into());
    all.insert("sleep_ns".to_owned(), costs.sleep_ns.into());
    for (kind, name) in model::host::Kind::ALL {
        all.insert(name.to_owned(), costs.ns[kind as usize].into());
    }
    let load = |load: &Checked| {
        let ([rate, rate_predicted], [us, us_predicted]) = (load.requests_per_second, load.processor_us);
        json!({
            "load": load.name, "requests_per_second": rate, "requests_per_second_predicted": rate_predicted,
            "processor_us": us, "processor_us_predicted": us_predicted,
        })
    };
    let loads: Vec<_> = calibrated.loads.iter().map(load).collect();
    json!({ "costs": all, "loads": loads })
}
