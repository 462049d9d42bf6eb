//! Single comparisons of a model with a file of reference data.

use super::map::turns;
use super::reference::Reference;
use anyhow::{Result, anyhow};
use model::drive::{Access, Drive, DriveModel, DriveOptions, Place};
use serde_json::{Value, json};
use sim::reference::{self, Compared, MeasuredComparison};
use std::sync::Arc;

/// Accesses on one track must agree as closely as this, whole turns forgiven.
const WITHIN_NS: u64 = 12_000;
/// And so many of them.
const SHARE_MIN: f64 = 0.995;
/// The reference counts angles in whole numbers, and is right to about this part of a turn.
const ANGLE_TURNS: f64 = 2e-7;

/// One comparison. `holds` is `None` where nothing is promised.
pub(super) struct Check {
    pub(super) what: &'static str,
    /// The file without its ending, or the curve.
    pub(super) of: String,
    pub(super) compared: u64,
    pub(super) found: String,
    pub(super) bound: String,
    pub(super) holds: Option<bool>,
    pub(super) details: Value,
}

impl Check {
    pub(super) fn json(&self) -> Value {
        json!({
            "what": self.what, "of": self.of, "compared": self.compared, "found": self.found, "bound": self.bound,
            "holds": self.holds, "details": self.details,
        })
    }
}

pub(super) fn address_map(model: &DriveModel, reference: &Reference) -> Result<Check> {
    let (mut compared, mut apart, mut worst_turns) = (0, 0, 0f64);
    for row in Rows::of(reference) {
        let sector = row.number::<u64>(0)?;
        let Some((place, track)) = find(model, sector) else {
            return Err(row.error(0, "is not a sector of this drive"));
        };
        let place_of = [place.cylinder, place.surface, place.sector, place.sectors_per_track].map(u64::from);
        let stated: [u64; 4] = [row.number(1)?, row.number(2)?, row.number(3)?, row.number(7)?];
        let is_same = place_of == stated && track == (row.number(5)?, row.number(6)?);
        let turns_apart = (turns(place) - row.number::<f64>(4)?).abs();
        worst_turns = worst_turns.max(turns_apart.min(1.0 - turns_apart));
        compared += 1;
        apart += u64::from(!is_same);
    }
    Ok(Check {
        what: "address map",
        of: reference.name(),
        compared,
        found: format!("{apart} differ"),
        bound: "0".to_owned(),
        holds: Some(apart == 0 && worst_turns <= ANGLE_TURNS && compared > 0),
        details: json!({ "differ": apart, "worst_turns": worst_turns }),
    })
}

fn find(model: &DriveModel, sector: u64) -> Option<(Place, (u64, u64))> {
    if sector >= model.capacity_sectors() {
        return None;
    }
    Some((model.place(sector)?, model.track(sector)?))
}

pub(super) fn seeks(model: &DriveModel, reference: &Reference) -> Result<Check> {
    let (mut compared, mut worst_ns) = (0, 0);
    for row in Rows::of(reference) {
        let cylinders = row.number::<u32>(0)?;
        let Some((read_ns, write_ns)) = model.seek_ns(cylinders) else {
            return Err(row.error(0, "is not a distance on this drive"));
        };
        let apart_ns = |ns: u64, stated_ps: u64| ns.abs_diff(stated_ps / 1_000);
        worst_ns = worst_ns.max(apart_ns(read_ns, row.number(1)?)).max(apart_ns(write_ns, row.number(2)?));
        compared += 1;
    }
    Ok(Check {
        what: "seek times",
        of: reference.name(),
        compared,
        found: format!("worst {worst_ns} ns"),
        bound: "1 ns".to_owned(),
        holds: Some(worst_ns <= 1 && compared > 0),
        details: json!({ "worst_ns": worst_ns }),
    })
}

pub(super) fn log(model: &Arc<DriveModel>, reference: &Reference) -> Result<Check> {
    let is_mechanical = reference.name().contains("mech");
    let options = if is_mechanical { DriveOptions::MECHANICS } else { DriveOptions::UNCACHED };
    let log = reference::parse_log(&reference.text)?;
    check_inside(model, log.iter().map(|entry| entry.access))?;
    let found = reference::compare_log(&mut Drive::with_options(model.clone(), options), &log, WITHIN_NS);
    let (single, crossing) = (found.single, found.crossing);
    Ok(Check {
        what: if is_mechanical { "within 0.012 ms, mechanics" } else { "within 0.012 ms, uncached" },
        of: reference.name(),
        compared: single.accesses,
        found: format!("{:.2}%", 100.0 * single.share()),
        bound: format!("{:.1}%", 100.0 * SHARE_MIN),
        holds: Some(single.accesses > 0 && single.share() >= SHARE_MIN),
        details: json!({
            "share": single.share(), "worst_ms": single.worst_ns as f64 / 1e6, "turns_apart": single.turns_apart,
            "crossing": {
                "compared": crossing.accesses, "share": crossing.share(),
                "worst_ms": crossing.worst_ns as f64 / 1e6, "turns_apart": crossing.turns_apart,
            },
        }),
    })
}

/// With the drive's own bound, unless another one is said; nothing is promised where there is neither. First all accesses, then classes of them.
pub(super) fn measured(
    model: &Arc<DriveModel>,
    reference: &Reference,
    demerit_max: Option<f64>,
) -> Result<Vec<Check>> {
    let demerit_max = demerit_max.or(model.demerit_max_ms());
    let trace = reference::parse_measured(&reference.text)?;
    check_inside(model, trace.iter().map(|entry| entry.access))?;
    let mut drive = Drive::with_options(model.clone(), DriveOptions::FULL);
    let MeasuredComparison { all, classes } = reference::replay_measured(&mut drive, &trace);
    let check = |what, of: &Compared, max: Option<f64>| Check {
        what,
        of: reference.name(),
        compared: of.accesses,
        found: format!("{:.3} ms", of.demerit_ms),
        bound: max.map_or("-".to_owned(), |max| format!("{max} ms")),
        holds: max.map(|max| of.accesses > 0 && of.demerit_ms <= max),
        details: json!({ "demerit_ms": of.demerit_ms, "real_ms": of.real_ms, "model_ms": of.model_ms }),
    };
    let classes = classes.iter().map(|(class, of)| check(class.name(), of, None));
    Ok([check("demerit", &all, demerit_max)].into_iter().chain(classes).collect())
}

pub(super) fn check_inside(model: &DriveModel, mut accesses: impl Iterator<Item = Access>) -> Result<()> {
    let capacity = model.capacity_sectors();
    let beyond = accesses.find(|access| access.sector.saturating_add(u64::from(access.count)) > capacity);
    beyond.map_or(Ok(()), |access| {
        Err(anyhow!("lbn: {} and {} blocks go beyond the drive's {capacity}", access.sector, access.count))
    })
}

/// A line of a map or of seek times, cut at commas.
struct Row<'a> {
    line: usize,
    headings: &'a str,
    cells: Vec<&'a str>,
}

/// Lines below the headings.
struct Rows;

impl Rows {
    fn of(reference: &Reference) -> impl Iterator<Item = Row<'_>> {
        let headings = reference.text.lines().next().unwrap_or("");
        let lines = reference.text.lines().enumerate().skip(1).filter(|(_, line)| !line.trim().is_empty());
        lines.map(move |(index, line)| Row { line: index + 1, headings, cells: line.split(',').collect() })
    }
}

impl Row<'_> {
    fn number<T: std::str::FromStr>(&self, column: usize) -> Result<T> {
        let cell = self.cells.get(column).map_or("", |cell| cell.trim());
        cell.parse().map_err(|_| self.error(column, &format!("is `{cell}`; it must be a number")))
    }

    fn error(&self, column: usize, why: &str) -> anyhow::Error {
        let field = self.headings.split(',').nth(column).unwrap_or("");
        anyhow!("line {}: {field}: {why}", self.line)
    }
}
