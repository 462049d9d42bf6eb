//! `brickwork disk list`: the models that come with Brickwork.

use super::ms;
use crate::global::Global;
use crate::output;
use anyhow::Result;
use model::drive::{DriveModel, Entry, Summary, library};

pub(super) const HELP: &str = "\
Seek is the mean over random pairs of cylinders. Drives without rpm have no arm: every access takes the same time.

Examples:
  brickwork disk list
  brickwork disk list --json | jq -r '.[] | select(.rpm > 10000) | .id'";

/// Prints all drives of the library.
pub(super) fn list(global: &Global) -> Result<()> {
    let parse = |entry: &Entry| Ok((entry.id, DriveModel::parse(entry.id, entry.text)?));
    let models = library().iter().map(parse).collect::<Result<Vec<_>>>()?;
    if global.json {
        output::print_json(&models.iter().map(|(id, model)| super::show::json_of(id, model)).collect());
        return Ok(());
    }
    let mut table = output::table(&["id", "GB", "rpm", "cylinders", "surfaces", "seek ms", "access ms"]);
    for (id, model) in &models {
        let gb = format!("{:.1}", model.capacity_bytes() as f64 / 1e9);
        let [rpm, cylinders, surfaces, seek, access] = match model.summary() {
            Summary::Disk { rpm, cylinders, surfaces, seek_ns, .. } => [
                format!("{rpm:.0}"),
                cylinders.to_string(),
                surfaces.to_string(),
                ms(seek_ns[1]),
                String::new(),
            ],
            Summary::Constant(access) => {
                [String::new(), String::new(), String::new(), String::new(), ms(access.read_ns)]
            }
        };
        table.add_row([(*id).to_owned(), gb, rpm, cylinders, surfaces, seek, access]);
    }
    output::align_right(&mut table, &[1, 2, 3, 4, 5, 6]);
    println!("{}", output::render(&table));
    Ok(())
}
