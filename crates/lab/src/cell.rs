//! Rows: what an experiment's table holds.

use crate::statistics::{Estimate, estimate};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// What stands in a table.
#[derive(Clone, PartialEq, Debug)]
pub enum Cell {
    /// A name: a scheme, a trace.
    Text(String),
    /// A setting or a measured value; with the half width of its 95% confidence interval when there were several seeds.
    Number(f64, Option<f64>),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Cell {
        Cell::Number(number, None)
    }
}

impl From<u32> for Cell {
    fn from(number: u32) -> Cell {
        Cell::Number(f64::from(number), None)
    }
}

impl Cell {
    /// For people: four significant digits.
    pub fn text(&self) -> String {
        match self {
            Cell::Text(text) => text.clone(),
            Cell::Number(value, None) => number(*value),
            Cell::Number(value, Some(half)) => format!("{} ±{}", number(*value), number_like(*half, *value)),
        }
    }

    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Cell::Text(_) => None,
            Cell::Number(value, _) => Some(*value),
        }
    }
}

/// A line of a table: named cells in order.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Row(Vec<(String, Cell)>);

impl Row {
    pub fn new() -> Row {
        Row::default()
    }

    /// With one more cell; its name ends in the unit.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, cell: impl Into<Cell>) -> Row {
        self.0.push((name.into(), cell.into()));
        self
    }

    /// With another cell of that name.
    #[must_use]
    pub fn replaced(mut self, name: &str, cell: impl Into<Cell>) -> Row {
        if let Some((_, old)) = self.0.iter_mut().find(|(known, _)| known == name) {
            *old = cell.into();
        }
        self
    }

    /// All cells in order.
    pub fn cells(&self) -> impl Iterator<Item = (&str, &Cell)> {
        self.0.iter().map(|(name, cell)| (name.as_str(), cell))
    }

    /// The cell of this name.
    pub fn get(&self, name: &str) -> Option<&Cell> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, cell)| cell)
    }

    /// Whether the cell of this name says this.
    pub fn says(&self, name: &str, cell: &Cell) -> bool {
        self.get(name) == Some(cell)
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, cell) in &self.0 {
            match cell {
                Cell::Text(text) => map.serialize_entry(name, text)?,
                Cell::Number(value, half) => {
                    map.serialize_entry(name, value)?;
                    if let Some(half) = half {
                        map.serialize_entry(&format!("{name}_ci95"), half)?;
                    }
                }
            }
        }
        map.end()
    }
}

/// One row from the same row of several seeds: numbers become means with confidence intervals.
///
/// # Panics
/// If the rows do not have the same shape: the same experiment made them all.
pub fn merge(rows: &[&Row]) -> Row {
    let first = rows[0];
    let merged = first.0.iter().enumerate().map(|(at, (name, cell))| {
        // A figure that some seed has nothing for is that of the others.
        let values: Vec<f64> = rows.iter().filter_map(|row| row.0[at].1.number()).collect();
        (name.clone(), if values.is_empty() { cell.clone() } else { merged_number(&values) })
    });
    Row(merged.collect())
}

/// A setting is the same in every seed, and stays a plain number.
fn merged_number(values: &[f64]) -> Cell {
    if values.iter().all(|value| value == &values[0]) {
        return Cell::Number(values[0], None);
    }
    let Estimate { mean, half_width } = estimate(values);
    Cell::Number(mean, half_width)
}

/// Rows as comma-separated values, headings first: all columns of all rows, in the order in which they first appear.
pub fn csv(rows: &[Row]) -> String {
    let mut names: Vec<String> = Vec::new();
    for (name, cell) in rows.iter().flat_map(Row::cells) {
        let mut wanted = vec![name.to_owned()];
        if let Cell::Number(_, Some(_)) = cell {
            wanted.push(format!("{name}_ci95"));
        }
        wanted.retain(|name| !names.contains(name));
        names.extend(wanted);
    }
    let mut text = names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(",") + "\n";
    for row in rows {
        let cells = names.iter().map(|name| csv_cell(row, name)).collect::<Vec<_>>();
        text += &cells.join(",");
        text.push('\n');
    }
    text
}

fn csv_cell(row: &Row, name: &str) -> String {
    match row.get(name) {
        Some(Cell::Text(text)) => quoted(text),
        Some(Cell::Number(value, _)) => value.to_string(),
        None => match name.strip_suffix("_ci95").and_then(|plain| row.get(plain)) {
            Some(Cell::Number(_, Some(half))) => half.to_string(),
            _ => String::new(),
        },
    }
}

pub(crate) fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// A number with four significant digits, or all of them where it is whole.
pub fn number(value: f64) -> String {
    number_like(value, value)
}

/// A number with three significant digits, for where there is little room.
pub(crate) fn short(value: f64) -> String {
    let text = number_like(value, value * 10.0);
    if value == libm::trunc(value) { number(value) } else { text }
}

/// `value` with as many decimals as `scale` needs for four significant digits.
fn number_like(value: f64, scale: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    if value == libm::trunc(value) && value.abs() < 1e15 {
        return format!("{value:.0}");
    }
    if value.abs() < 5e-7 {
        return format!("{value:.0e}");
    }
    let magnitude = if scale == 0.0 { 0.0 } else { libm::floor(libm::log10(scale.abs())) };
    let decimals = (3.0 - magnitude).clamp(0.0, 6.0) as usize;
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_four_digits() {
        let shown: Vec<String> = [187.234, 0.0123456, 5.3, 16.0, 12345.6, 0.0, 2.2e-16].map(number).into();
        assert_eq!(shown, ["187.2", "0.01235", "5.300", "16", "12346", "0", "2e-16"]);
    }

    #[test]
    fn short_numbers_keep_three_digits() {
        assert_eq!([187.234, 0.0123456, 5.312, 16.0].map(short), ["187", "0.0123", "5.31", "16"]);
    }

    #[test]
    fn seeds_become_means_with_intervals_and_settings_stay() {
        let row = |value: f64| Row::new().with("scheme", "hash").with("replicas", 8u32).with("idle", value);
        let merged = merge(&[&row(0.1), &row(0.2), &row(0.3)]);
        assert_eq!(merged.get("replicas"), Some(&Cell::Number(8.0, None)));
        let Some(Cell::Number(mean, Some(half))) = merged.get("idle") else { panic!("no interval") };
        assert!((mean - 0.2).abs() < 1e-12 && (half - 0.248_414).abs() < 1e-4);
        let json = serde_json::to_value(&merged).unwrap();
        assert_eq!(json["scheme"], "hash");
        assert!(json["idle_ci95"].is_number());
    }

    #[test]
    fn csv_has_every_column_and_quotes_what_needs_it() {
        let rows = [Row::new().with("a", "x, \"y\""), Row::new().with("a", "z").with("b", 1.5)];
        assert_eq!(csv(&rows), "a,b\n\"x, \"\"y\"\"\",\nz,1.5\n");
    }
}
