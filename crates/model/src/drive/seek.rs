//! How long the arm takes, by distance: a table of every distance, made from measured points.

use super::DriveError;
use super::form::{DiskForm, SeekEquation, Source};

/// Seek times by distance in cylinders.
#[derive(Clone, Debug)]
pub(super) struct SeekTable {
    /// Reads; the first is zero.
    read_ns: Vec<u32>,
    /// No access this far away or farther is reached sooner.
    floor_ns: Vec<u32>,
    head_switch_ns: u32,
    write_settle_ns: i64,
}

impl SeekTable {
    /// The table of a disk's points and equation, every time multiplied by `scale`.
    pub(super) fn new(source: &Source<'_>, disk: &DiskForm, scale: f64) -> Result<SeekTable, DriveError> {
        let is_time = |ms: f64| ms.is_finite() && (0.0..1e3).contains(&ms);
        let head_switch_ms =
            source.check(&disk.head_switch_ms, "disk.head_switch_ms", is_time, "a time from 0 to 1000")?;
        let settle_ms = source.check(
            &disk.write_settle_ms,
            "disk.write_settle_ms",
            |ms| ms.is_finite() && ms.abs() < 1e3,
            "finite and shorter than 1000",
        )?;
        check_points(source, disk)?;
        let cylinders = *disk.cylinders.get_ref();
        let mut read_ns = vec![0];
        for distance in 1..cylinders {
            read_ns.push(to_ns(seek_ms(source, disk, distance)?, scale));
        }
        let mut table = SeekTable {
            floor_ns: Vec::new(),
            read_ns,
            head_switch_ns: to_ns(head_switch_ms, scale),
            write_settle_ns: (settle_ms * scale * 1e6).round() as i64,
        };
        table.floor_ns = table.floors();
        Ok(table)
    }

    fn floors(&self) -> Vec<u32> {
        let settle_ns = self.write_settle_ns.min(0);
        let mut floors = self.read_ns.clone();
        let mut least = u32::MAX;
        for floor in floors.iter_mut().skip(1).rev() {
            least = least.min((i64::from(*floor) + settle_ns).max(0) as u32);
            *floor = least;
        }
        floors
    }

    /// How many cylinders there are.
    pub(super) fn cylinders(&self) -> u32 {
        self.read_ns.len() as u32
    }

    /// The mean over random pairs of cylinders, also of a cylinder with itself.
    pub(super) fn mean_ns(&self) -> u64 {
        let cylinders = self.read_ns.len() as u128;
        let sum = |(distance, &ns): (usize, &u32)| 2 * (cylinders - distance as u128) * u128::from(ns);
        (self.read_ns.iter().enumerate().map(sum).sum::<u128>() / (cylinders * cylinders)) as u64
    }

    /// To another cylinder, another surface or both. Head switches hide behind seeks.
    pub(super) fn move_ns(&self, cylinders: u32, is_other_surface: bool, is_write: bool) -> u64 {
        let switch_ns = if is_other_surface { self.head_switch_ns } else { 0 };
        let move_ns = i64::from(self.read_ns[cylinders as usize].max(switch_ns));
        let settle_ns = if is_write && move_ns > 0 { self.write_settle_ns } else { 0 };
        (move_ns + settle_ns).max(0) as u64
    }

    /// See [`base::Mechanics::seek_floor_ns`].
    pub(super) fn floor_ns(&self, cylinders: u32) -> u64 {
        let last = self.floor_ns.len() - 1;
        u64::from(self.floor_ns[(cylinders as usize).min(last)])
    }
}

fn to_ns(ms: f64, scale: f64) -> u32 {
    (ms * scale * 1e6).round() as u32
}

fn check_points(source: &Source<'_>, disk: &DiskForm) -> Result<(), DriveError> {
    if disk.seek_ms.is_empty() && disk.seek_equation.is_none() {
        let why =
            "is missing; give measured points, `[cylinders, milliseconds]`, or `seek_equation`".to_owned();
        return Err(source.error(Some(disk.cylinders.span().start), "disk.seek_ms", why));
    }
    let mut last = 0;
    for (index, point) in disk.seek_ms.iter().enumerate() {
        let field = format!("disk.seek_ms[{index}]");
        source.check(point, &field, |(_, ms)| ms.is_finite(), "finite")?;
        source.check(point, &field, |(_, ms)| (0.0..1e3).contains(&ms), "a time from 0 to 1000 ms")?;
        source.check(point, &field, |(distance, _)| distance > last, "farther than the point before it")?;
        last = point.get_ref().0;
    }
    let Some(equation) = &disk.seek_equation else { return Ok(()) };
    let SeekEquation { root_base_ms, root_ms, line_base_ms, line_ms, .. } = *equation.get_ref();
    let is_finite = [root_base_ms, root_ms, line_base_ms, line_ms].iter().all(|term| term.is_finite());
    source.check(equation, "disk.seek_equation", |_| is_finite, "finite in all its terms").map(|_| ())
}

/// A seek of `distance` from the points, the equation, or the points' last line prolonged.
fn seek_ms(source: &Source<'_>, disk: &DiskForm, distance: u32) -> Result<f64, DriveError> {
    let points = &disk.seek_ms;
    let last = points.last().map_or(0, |point| point.get_ref().0);
    let (at, field, ms) = match &disk.seek_equation {
        Some(equation) if distance > last => {
            (equation.span().start, "disk.seek_equation", by_equation(equation.get_ref(), distance))
        }
        _ => {
            let after = points.partition_point(|point| point.get_ref().0 < distance).min(points.len() - 1);
            let begin = if after == 0 { (0, 0.0) } else { *points[after - 1].get_ref() };
            (points[after].span().start, "disk.seek_ms", on_line(begin, *points[after].get_ref(), distance))
        }
    };
    if ms.is_finite() && (0.0..1e3).contains(&ms) {
        return Ok(ms);
    }
    let why = format!(
        "gives {ms} ms for a seek of {distance} cylinders; it must be from 0 to 1000 ms for all of them"
    );
    Err(source.error(Some(at), field, why))
}

fn on_line(begin: (u32, f64), end: (u32, f64), distance: u32) -> f64 {
    let slope = (end.1 - begin.1) / f64::from(end.0 - begin.0);
    begin.1 + slope * (f64::from(distance) - f64::from(begin.0))
}

fn by_equation(equation: &SeekEquation, distance: u32) -> f64 {
    let cylinders = f64::from(distance);
    if distance < equation.line_from {
        equation.root_base_ms + equation.root_ms * libm::sqrt(cylinders)
    } else {
        equation.line_base_ms + equation.line_ms * cylinders
    }
}
