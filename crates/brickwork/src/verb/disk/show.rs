//! `brickwork disk show`: one drive in numbers.

use super::ms;
use crate::global::Global;
use crate::output;
use anyhow::Result;
use model::drive::{DriveModel, Summary};
use serde_json::{Value, json};

/// `disk show`.
#[derive(clap::Args)]
#[command(after_help = "\
The file says where its numbers are from and what in it is assumed.

Examples:
  brickwork disk show quantum-atlas-10k
  brickwork disk show quantum-atlas-10k --json | jq .seek_ms
  brickwork disk show quantum-atlas-10k --toml > mine.toml
  brickwork disk show mine.toml                                whether a file of one's own makes sense")]
pub(super) struct Show {
    /// A drive of the list, or a file
    drive: String,
    /// Print its file instead
    #[arg(long)]
    toml: bool,
}

/// Prints a drive's numbers.
pub(super) fn show(global: &Global, args: &Show) -> Result<()> {
    let model = super::model_of(&args.drive)?;
    if args.toml {
        print!("{}", super::text_of(&args.drive)?);
    } else if global.json {
        output::print_json(&json_of(&args.drive, &model));
    } else {
        print_text(&model);
    }
    Ok(())
}

fn print_text(model: &DriveModel) {
    println!("{}", model.name());
    let size = format!("{} sectors, {:.3} GB", model.capacity_sectors(), model.capacity_bytes() as f64 / 1e9);
    print_line("capacity", &size);
    match model.summary() {
        Summary::Disk { rpm, cylinders, surfaces, zones, sectors_per_track, seek_ns, cache_sectors } => {
            let turn_ns = model.revolution_ns().unwrap_or(0);
            print_line("rotation", &format!("{rpm:.1} rpm, {} ms a turn", ms(turn_ns)));
            print_line("cylinders", &cylinders.to_string());
            print_line("surfaces", &surfaces.to_string());
            let (fewest, most) = sectors_per_track;
            print_line("zones", &format!("{zones}, {most} to {fewest} sectors a track"));
            let [one, mean, full] = seek_ns.map(ms);
            print_line("seek", &format!("{one} ms one cylinder, {mean} ms mean, {full} ms from end to end"));
            print_line("cache", &format!("{:.0} KiB", f64::from(cache_sectors) / 2.0));
            let rate = |sectors: u32| f64::from(sectors) * 512.0 / turn_ns.max(1) as f64 * 1e3;
            print_line("media", &format!("{:.1} to {:.1} MB/s", rate(most), rate(fewest)));
        }
        Summary::Constant(access) => {
            print_line("read", &format!("{} ms", ms(access.read_ns)));
            print_line("write", &format!("{} ms", ms(access.write_ns)));
            let rate = access.bytes_per_second;
            print_line(
                "transfer",
                &rate.map_or("not counted".to_owned(), |rate| format!("{:.0} MB/s", rate / 1e6)),
            );
        }
    }
}

fn print_line(what: &str, value: &str) {
    println!("  {what:<10} {value}");
}

/// A drive as JSON.
pub(super) fn json_of(id: &str, model: &DriveModel) -> Value {
    let mut value = json!({
        "id": id, "name": model.name(), "capacity_sectors": model.capacity_sectors(),
        "capacity_bytes": model.capacity_bytes(),
    });
    let more = match model.summary() {
        Summary::Disk { rpm, cylinders, surfaces, zones, sectors_per_track, seek_ns, cache_sectors } => {
            let [one, mean, full] = seek_ns.map(|ns| ns as f64 / 1e6);
            json!({
                "kind": "disk", "rpm": rpm, "revolution_ns": model.revolution_ns(), "cylinders": cylinders,
                "surfaces": surfaces, "zones": zones, "sectors_per_track": [sectors_per_track.0, sectors_per_track.1],
                "seek_ms": { "one_cylinder": one, "mean": mean, "full_stroke": full }, "cache_sectors": cache_sectors,
            })
        }
        Summary::Constant(access) => json!({
            "kind": "constant", "read_ms": access.read_ns as f64 / 1e6, "write_ms": access.write_ns as f64 / 1e6,
            "bytes_per_second": access.bytes_per_second,
        }),
    };
    if let (Value::Object(value), Value::Object(more)) = (&mut value, more) {
        value.extend(more);
    }
    value
}
