//! `brickwork disk validate`: how far a model agrees with reference data of the drive.

use super::checks::{Check, address_map, log, measured, seeks};
use super::curves::{Compared, curve_checks, curves};
use super::reference::{Kind, read};
use crate::global::Global;
use crate::output;
use anyhow::{Context, Result, ensure};
use model::drive::DriveModel;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// `disk validate`.
#[derive(clap::Args)]
#[command(after_help = "\
Reference data are files, or directories of which those files are taken whose names begin with the drive's id, with or
without its maker; compressed or not. What a file holds is told by its first line:
  lbn,cylinder,head,sector,...         address map: every line must agree exactly, angles to 2e-7 of a turn
  distance_cylinders,read_seek_ps,...  seek times: every distance must agree to a nanosecond
  issue_ms,lbn,blocks,is_read,...      log of accesses: 99.5% of those on one track must agree within 0.012 ms, whole
                                       turns forgiven. mech in its name: without overheads and bus
  config,read_write,scheduler,...      curves of closed loops, with the stream of accesses (lbn,blocks,read_in_r90,...):
                                       A_nocache and B_mech must agree within 0.5%, C_stock (with the on-board cache)
                                       is shown. The depth is counted as DiskSim counts it: so many are outstanding,
                                       and the scheduler chooses among one less, as the replacement comes after
  R|W HIT LBN BLOCKS US THINK_US       a real drive's times: the RMS demerit of all accesses must be at most --demerit-max;
                                       those of reads and writes, sequential and other ones, are shown

The code is 1 when something does not agree.

Examples:
  brickwork disk validate quantum-atlas-10k reference/ atlas10k.trace
  brickwork disk validate seagate-cheetah-9lp reference/ --json | jq .checks
  brickwork disk validate mine.toml my_map.csv my_log.csv")]
pub(super) struct Validate {
    /// A drive of the list, or a file
    drive: String,
    /// Files of reference data, or directories of them
    #[arg(required = true, value_name = "PATH")]
    references: Vec<PathBuf>,
    /// The largest RMS demerit against a real drive's times, in milliseconds; the drive's own
    /// unless said (`demerit_max_ms` of its file); where there is none nothing is promised
    #[arg(long, value_name = "MS")]
    demerit_max: Option<f64>,
    /// Print every point of the curves, not only the worst of each
    #[arg(long)]
    points: bool,
}

/// Compares a model with reference data.
pub(super) fn validate(global: &Global, args: &Validate) -> Result<ExitCode> {
    let model = super::model_of(&args.drive)?;
    let references = read(&args.drive, &args.references)?;
    let mut checks = Vec::new();
    let mut points = Vec::new();
    for reference in &references {
        let check = match reference.kind {
            Kind::AddressMap => address_map(&model, reference),
            Kind::Seeks => seeks(&model, reference),
            Kind::Log => log(&model, reference),
            Kind::Measured => {
                let found = measured(&model, reference, args.demerit_max);
                checks.extend(found.with_context(|| format!("{}", reference.path.display()))?);
                continue;
            }
            Kind::Workload => continue,
            Kind::Curves => {
                let compared = curves(global, &model, reference, &references)?;
                checks.extend(curve_checks(&compared));
                points.extend(compared);
                continue;
            }
        };
        checks.push(check.with_context(|| format!("{}", reference.path.display()))?);
    }
    ensure!(
        !checks.is_empty(),
        "nothing there can be compared with {}; `brickwork help disk validate` lists what can",
        args.drive
    );
    let holds = checks.iter().all(|check| check.holds != Some(false));
    if global.json {
        let value = json!({
            "drive": args.drive, "name": model.name(), "holds": holds,
            "checks": checks.iter().map(Check::json).collect::<Vec<_>>(),
            "curves": points.iter().map(Compared::json).collect::<Vec<_>>(),
        });
        output::print_json(&value);
    } else {
        print_text(&model, &checks, if args.points { &points } else { &[] });
    }
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print_text(model: &DriveModel, checks: &[Check], points: &[Compared]) {
    println!("{}\n", model.name());
    let mut table = output::table(&["what", "compared", "found", "bound", "holds"]);
    for check in checks {
        let holds = check.holds.map_or("-", |holds| if holds { "yes" } else { "NO" });
        let what =
            if check.of.contains(' ') { check.of.clone() } else { format!("{}, {}", check.of, check.what) };
        table.add_row([&what, &check.compared.to_string(), &check.found, &check.bound, holds]);
    }
    output::align_right(&mut table, &[1, 2, 3]);
    println!("{}", output::render(&table));
    if points.is_empty() {
        return;
    }
    let mut table = output::table(&["curve", "depth", "chosen of", "reference IO/s", "IO/s", "apart"]);
    for compared in points {
        let point = &compared.point;
        table.add_row([
            format!("{} {} {}", point.configuration, point.mix, point.scheduler),
            point.depth.to_string(),
            point.depth.saturating_sub(1).max(1).to_string(),
            format!("{:.2}", point.iops),
            format!("{:.2}", compared.iops),
            format!("{:+.3}%", compared.percent_apart()),
        ]);
    }
    output::align_right(&mut table, &[1, 2, 3, 4, 5]);
    println!("\n{}", output::render(&table));
}
