//! How long a read may take before somebody else is asked, and who that is. Policies and rows share these measures.

use super::load::Load;
use super::pace::Kind;
use super::policy::{Course, Next, Part};
use base::{BrickId, Time};
use core::time::Duration;

/// A second member is asked when a read lasts so many times as long as nearly all do at the fastest member,
const RESCUE_FACTOR: u32 = 3;
const RESCUE_MIN: Duration = Duration::from_millis(1);
const RESCUE_MAX: Duration = Duration::from_millis(100);
/// and after this while none was measured.
const RESCUE_UNKNOWN: Duration = Duration::from_millis(10);
/// All is asked anew when a read lasts so many times as long as nearly all do at the fastest member,
const PATIENCE_FACTOR: u32 = 6;
/// but for so long at most is that the measure.
const PATIENCE_MAX: Duration = Duration::from_secs(10);
/// So many answers tell how long nearly all take.
const MEASURED: u64 = 8;

/// How long an answer may take before another member is asked: a multiple of what nearly all answers take at the member
/// that is fastest, since what is slow must not set the measure.
pub fn delay(now: Time, kind: Kind, members: &[(u8, BrickId)], load: &Load) -> Duration {
    let high = nearly_all(now, kind, members, load);
    // Where nearly all take longer than the bound, asking again before they can answer would help nobody.
    let bound = RESCUE_MAX.max(high.unwrap_or_default() * 2);
    high.map_or(RESCUE_UNKNOWN, |high| high * RESCUE_FACTOR).clamp(RESCUE_MIN, bound)
}

/// How long answers may take before all is asked anew; `floor` at least. Where even the fastest holder takes long, asking
/// twice would only make it take longer.
pub fn patience(now: Time, part: &Part<'_>, load: &Load, floor: Duration) -> Duration {
    patient(nearly_all(now, part.kind, part.holders, load).unwrap_or_default(), floor)
}

/// The same of a row, which needs the content of each of these bricks: the slowest of them sets the measure.
pub fn row_patience(
    now: Time,
    kind: Kind,
    bricks: impl Iterator<Item = BrickId>,
    load: &Load,
    floor: Duration,
) -> Duration {
    let measures = bricks.filter_map(|brick| load.pace().measure(now, brick, kind));
    let high_ns = measures.filter(|measure| measure.weight >= MEASURED).map(|m| m.high_ns).max();
    patient(Duration::from_nanos(high_ns.unwrap_or_default()), floor)
}

/// The same of the first phase of a write at these bricks: all of them may be waiting for the gateway's own network card. It goes by
/// their answers alone, and so costs a write next to nothing.
pub fn prepare_patience(bricks: impl Iterator<Item = BrickId>, load: &Load, floor: Duration) -> Duration {
    let known = bricks.filter_map(|brick| load.pace().answered_high_ns(brick, Kind::Prepare, MEASURED));
    patient(known.min().map(Duration::from_nanos).unwrap_or_default(), floor)
}

fn patient(usual: Duration, floor: Duration) -> Duration {
    floor.max(usual.saturating_mul(PATIENCE_FACTOR).min(PATIENCE_MAX))
}

/// Asks the holder that is expected to answer soonest of those that were not asked to answer by themselves.
pub fn next(now: Time, part: &Part<'_>, course: &Course, load: &Load) -> Next {
    let ranked = ranked(now, part, course, load);
    let rescuer = ranked.into_iter().find(|(slot, _)| !course.direct.has(*slot));
    let wait = delay(now, part.kind, part.holders, load);
    rescuer.map_or(Next::Nothing, |(slot, _)| Next::Ask { slot, wait })
}

/// Holders, those first that are expected to answer soonest.
pub fn ranked(now: Time, part: &Part<'_>, course: &Course, load: &Load) -> Vec<(u8, BrickId)> {
    let mut ranked = part.holders.to_vec();
    ranked.sort_by_key(|(slot, brick)| {
        (load.pace().expected_ns(now, *brick, part.kind), course.direct.has(*slot), *slot)
    });
    ranked
}

/// In what time the fastest of `members` gives nearly all its answers; none where that was not measured.
fn nearly_all(now: Time, kind: Kind, members: &[(u8, BrickId)], load: &Load) -> Option<Duration> {
    let measures = members.iter().filter_map(|(_, brick)| load.pace().measure(now, *brick, kind));
    let high_ns = measures.filter(|measure| measure.weight >= MEASURED).map(|m| m.high_ns).min();
    high_ns.map(Duration::from_nanos)
}
