//! `brickwork events`: what happened to bricks, as the directory remembers it.

use super::brick::parse_brick;
use super::client;
use crate::config::Period;
use crate::global::Global;
use crate::output;
use anyhow::{Result, bail};
use base::BrickId;
use host::HostError;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::str::FromStr;
use std::time::Duration;
use wire::{AdminError, AdminReply, AdminRequest, Event, Events};

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "\
One line an event, the oldest first: the time, ! where an operator may have to do something, the brick, what happened to it, and by what
the directory knows that. Events tell which bricks were admitted, evicted, readmitted or forgotten, came with other disks, were found to be slow
or well again, were left out of their groups and why, returned, have caught up, stood in for another brick (or do no more), or took another
brick's place.

The directory keeps the latest 1000 events in its store, so that they survive its restart. A directory that was rebuilt begins without any.
Times are in UTC, by the clock of the directory's machine as it stood when the directory started.

With --follow the command goes on and prints events as they happen, also after the directory was away: none twice, and none left out unless
more than 1000 happened meanwhile, which it says. With --json it prints one object with all events, and with --follow as well an object a line. The
keys of an event are number, time, brick, kind, cause, trouble and text. The kinds are admitted, came, evicted, readmitted, forgotten, other-disks,
held-for-slow, kept-though-slow, well-again, left-out, stays, returns, serves, stands-in,
stands-down, takes-over, does-not-answer. The causes of left-out are silent, disconnected,
disk-failed, evicted, slow, full, lost-its-blocks, no-answer.

Examples:
  brickwork events
  brickwork events --brick 3 --since 12h
  brickwork events --since 2026-11-30T08:00:00Z --last 20
  brickwork events --follow --last 0
  brickwork events --json --last 1000 | jq '.events[] | select(.trouble)'
  brickwork events --json --follow | jq -r 'select(.cause == \"slow\") | .text'")]
pub struct Args {
    /// Show so many events at most, the latest; without it 50, or all with --since
    #[arg(short = 'n', long, value_name = "N")]
    last: Option<usize>,
    /// Show events since then: a length of time ago (90s, 10m, 12h, 7d) or a time in UTC (2026-11-30, 2026-11-30T08:00:00Z)
    #[arg(long, value_name = "TIME")]
    since: Option<Since>,
    /// Show events of this brick: brick-3, or 3
    #[arg(long, value_name = "ID", value_parser = parse_brick)]
    brick: Option<BrickId>,
    /// Go on and print events as they happen, until Ctrl-C
    #[arg(short, long)]
    follow: bool,
}

/// So many are shown unless something else is asked for.
const SHOWN: usize = 50;
/// Between two looks: an event is soon seen, and a question costs the directory nothing that it would notice.
const AGAIN: Duration = Duration::from_secs(1);

/// Since when events are of interest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Since {
    Ago(Period),
    At(Timestamp),
}

impl FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Since, String> {
        if let Some(period) = text.parse::<Period>().ok().filter(|period| period.seconds > 0) {
            return Ok(Since::Ago(period));
        }
        let in_utc = |text: &str| {
            let stated = text.parse::<jiff::civil::DateTime>().ok()?;
            jiff::tz::TimeZone::UTC.to_timestamp(stated).ok()
        };
        let at = text.parse::<Timestamp>().ok().or_else(|| in_utc(text));
        at.map(Since::At).ok_or_else(|| {
            format!(
                "'{text}' is neither a length of time (90s, 10m, 12h, 7d) nor a time in UTC (2026-11-30, 2026-11-30T08:00:00Z)"
            )
        })
    }
}

impl Since {
    fn timestamp(self, now: Timestamp) -> Timestamp {
        match self {
            Since::Ago(period) => {
                let span = jiff::SignedDuration::from_secs(i64::try_from(period.seconds).unwrap_or(i64::MAX));
                now.checked_sub(span).unwrap_or(Timestamp::MIN)
            }
            Since::At(at) => at,
        }
    }
}

/// Prints them.
pub fn run(global: &Global, args: Args) -> Result<()> {
    let known = fetch(global, 0)?;
    let since = args.since.map(|since| since.timestamp(Timestamp::now()));
    let shown = select(&known.events, &args, since);
    if global.json && !args.follow {
        output::print_json(&json!({
            "events": shown.iter().copied().map(event_json).collect::<Vec<Value>>(),
            "oldest": known.oldest, "newest": known.newest,
        }));
        return Ok(());
    }
    if let Some(line) = gone(&known.events, since) {
        eprintln!("{line}");
    }
    shown.iter().for_each(|event| print(global, event));
    if args.follow {
        return follow(global, args.brick, known.newest);
    }
    if shown.is_empty() {
        println!("{}", none(&known.events));
    }
    Ok(())
}

/// Prints what happens to the brick, or to all, after this event, until nobody reads it any more.
fn follow(global: &Global, brick: Option<BrickId>, after: u64) -> Result<()> {
    let mut place = Place { after };
    let mut is_away = false;
    while output::is_complete() {
        std::thread::sleep(AGAIN);
        match fetch(global, place.after) {
            Ok(page) => {
                is_away = false;
                if let Some(why) = place.take(&page) {
                    eprintln!("brickwork: {why}");
                }
                let of_brick = |event: &&Event| brick.is_none_or(|brick| event.brick == brick);
                page.events.iter().filter(of_brick).for_each(|event| print(global, event));
            }
            Err(error) if !may_come_back(&error) => return Err(error),
            Err(_) if is_away => {}
            Err(error) => {
                is_away = true;
                eprintln!("brickwork: {error:#}; asking again until it answers");
            }
        }
    }
    Ok(())
}

/// All events after this one that the directory remembers.
fn fetch(global: &Global, after: u64) -> Result<Events> {
    let mut all = Events::default();
    loop {
        let after = all.events.last().map_or(after, |last| last.number);
        let request = AdminRequest::ListEvents { after, most: Events::KEPT as u32 };
        let AdminReply::Events(page) = client::call(global, request)? else {
            bail!("the directory answered something else; it is of another version");
        };
        (all.oldest, all.newest) = (page.oldest, page.newest);
        let is_last = page.events.last().is_none_or(|last| last.number >= page.newest);
        all.events.extend(page.events);
        if is_last {
            return Ok(all);
        }
    }
}

/// Whether the directory may answer later: it is away, or starts.
fn may_come_back(error: &anyhow::Error) -> bool {
    match error.downcast_ref() {
        Some(HostError::Timeout { .. }) => true,
        Some(HostError::Admin(why)) => !matches!(why, AdminError::Invalid(_)),
        _ => false,
    }
}

/// How far somebody has read who goes on reading.
#[derive(Debug)]
struct Place {
    /// The number of the last event that was seen.
    after: u64,
}

impl Place {
    /// What has happened since is read. If that is not all that has happened, why.
    fn take(&mut self, page: &Events) -> Option<String> {
        let before = self.after;
        if page.newest < before {
            self.after = 0;
            return Some("the directory's store was replaced: these are all events that it has".to_owned());
        }
        self.after = page.newest;
        let is_missing = before > 0 && page.oldest > before + 1;
        is_missing.then(|| {
            format!(
                "events are missing here: the directory keeps the latest {}, and was rebuilt or has seen more since it was last heard",
                Events::KEPT
            )
        })
    }
}

/// Those that are asked for, the oldest first.
fn select<'a>(known: &'a [Event], args: &Args, since: Option<Timestamp>) -> Vec<&'a Event> {
    let is_wanted = |event: &&Event| {
        args.brick.is_none_or(|brick| event.brick == brick) && since.is_none_or(|since| time(event) >= since)
    };
    let wanted: Vec<&Event> = known.iter().filter(is_wanted).collect();
    let most = args.last.unwrap_or(if since.is_some() { Events::KEPT } else { SHOWN });
    wanted[wanted.len().saturating_sub(most)..].to_vec()
}

/// What is said where earlier events were asked for than are kept.
fn gone(known: &[Event], since: Option<Timestamp>) -> Option<String> {
    let first = known.first().filter(|_| known.len() >= Events::KEPT)?;
    let is_gone = since.is_some_and(|since| since < time(first));
    is_gone.then(|| {
        format!(
            "The directory keeps the latest {} events: none is from before {}.",
            Events::KEPT,
            stamp(first)
        )
    })
}

/// What is said where there is nothing to show.
fn none(known: &[Event]) -> String {
    let (count, Some(first)) = (known.len(), known.first()) else {
        return "The directory remembers no event: nothing has happened to a brick since it keeps them."
            .to_owned();
    };
    let (count, oldest) = (output::count(count as u64, "event"), stamp(first));
    format!("No event matches. The directory remembers {count}, the oldest of {oldest}.")
}

fn print(global: &Global, event: &Event) {
    match global.json {
        true => output::print_json(&event_json(event)),
        false => output::print_entry(&head(event), text(event)),
    }
}

/// The columns before the text.
fn head(event: &Event) -> String {
    let mark = if event.is_trouble { '!' } else { ' ' };
    format!("{} {mark} {:<8}", stamp(event), event.brick.to_string())
}

/// What happened, without the name of the brick, which has a column.
fn text(event: &Event) -> &str {
    let name = format!("{} ", event.brick);
    event.text.strip_prefix(&name).unwrap_or(&event.text)
}

fn time(event: &Event) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(event.at.0)).unwrap_or(Timestamp::MAX)
}

/// In UTC, to the second.
fn stamp(event: &Event) -> String {
    time(event).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn event_json(event: &Event) -> Value {
    json!({
        "number": event.number, "time": time(event).strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string(),
        "brick": event.brick.0, "kind": event.kind, "cause": Some(&event.cause).filter(|cause| !cause.is_empty()),
        "trouble": event.is_trouble, "text": event.text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Time;

    /// 2026-11-30T08:00:00Z.
    const EIGHT: u64 = 1_796_025_600;

    fn event(number: u64, brick: u32, at_s: u64) -> Event {
        Event {
            number,
            at: Time(at_s * 1_000_000_000 + 7_000_000),
            brick: BrickId(brick),
            kind: "left-out".to_owned(),
            cause: "silent".to_owned(),
            is_trouble: brick == 3,
            text: format!("brick-{brick} is left out of 12 groups: nothing was heard of it for 2.5 s"),
        }
    }

    fn args(last: Option<usize>, since: Option<&str>, brick: Option<u32>) -> Args {
        let since = since.map(|since| since.parse().expect("a time"));
        Args { last, since, brick: brick.map(BrickId), follow: false }
    }

    /// The numbers of those that are shown at eight, of as many as there are seconds before.
    fn shown(count: u64, args: &Args) -> Vec<u64> {
        let known: Vec<Event> =
            (1..=count).map(|n| event(n, 1 + (n % 3) as u32, EIGHT - count + n)).collect();
        let now = Timestamp::from_second(EIGHT as i64).expect("a time");
        let since = args.since.map(|since| since.timestamp(now));
        select(&known, args, since).iter().map(|event| event.number).collect()
    }

    #[test]
    fn the_latest_that_match_are_shown_in_their_order() {
        assert_eq!(shown(60, &args(None, None, None)), (11..=60).collect::<Vec<_>>());
        assert_eq!(shown(60, &args(Some(2), None, Some(1))), [57, 60]);
        assert_eq!(shown(600, &args(None, Some("500s"), None)).len(), 501);
        assert_eq!(shown(600, &args(Some(1), Some("500s"), None)), [600]);
        assert_eq!(shown(60, &args(None, Some("2026-11-30T07:59:58Z"), None)), [58, 59, 60]);
        assert_eq!(shown(60, &args(None, Some("2026-11-30 07:59:58"), None)), [58, 59, 60]);
        assert_eq!(shown(60, &args(None, Some("2026-11-30"), None)).len(), 60);
        assert_eq!(shown(60, &args(Some(0), None, None)), [0; 0]);
        for wrong in ["", "off", "yesterday", "2026-13-01", "-5m"] {
            assert!(wrong.parse::<Since>().unwrap_err().contains("2026-11-30T08:00:00Z"), "{wrong}");
        }
    }

    #[test]
    fn a_line_has_the_time_the_brick_and_what_happened() {
        let line = |event: &Event| format!("{} {}", head(event), text(event));
        let left = "is left out of 12 groups: nothing was heard of it for 2.5 s";
        assert_eq!(line(&event(1, 3, EIGHT)), format!("2026-11-30T08:00:00Z ! brick-3  {left}"));
        assert_eq!(line(&event(1, 1234, EIGHT)), format!("2026-11-30T08:00:00Z   brick-1234 {left}"));
        let value = event_json(&event(9, 3, EIGHT));
        assert_eq!((&value["number"], &value["time"]), (&json!(9), &json!("2026-11-30T08:00:00.007Z")));
        assert_eq!(value["cause"], "silent");
        assert_eq!(event_json(&Event { cause: String::new(), ..event(9, 3, EIGHT) })["cause"], Value::Null);
        event_json(&Event { at: Time::MAX, ..event(9, 3, EIGHT) });
    }

    #[test]
    fn where_there_is_nothing_to_show_it_is_said_why() {
        assert!(none(&[]).starts_with("The directory remembers no event"));
        let known = [event(1, 3, EIGHT)];
        assert_eq!(
            none(&known),
            "No event matches. The directory remembers 1 event, the oldest of 2026-11-30T08:00:00Z."
        );
        let long_ago = Some(Timestamp::UNIX_EPOCH);
        assert_eq!(gone(&known, long_ago), None);
        let many: Vec<Event> = (0..Events::KEPT as u64).map(|n| event(n, 3, EIGHT + n)).collect();
        assert!(gone(&many, long_ago).unwrap().ends_with("none is from before 2026-11-30T08:00:00Z."));
        assert_eq!(gone(&many, None), None);
    }

    #[test]
    fn who_follows_sees_each_event_once_and_is_told_what_is_missing() {
        let mut place = Place { after: 0 };
        let page = |oldest, newest| Events { events: Vec::new(), oldest, newest };
        assert_eq!((place.take(&page(0, 0)), place.after), (None, 0));
        assert_eq!((place.take(&page(1, 3)), place.after), (None, 3));
        assert_eq!((place.take(&page(4, 1003)), place.after), (None, 1003), "the next one is there yet");
        assert!(place.take(&page(1005, 2004)).expect("one is missing").contains("events are missing"));
        assert_eq!(place.after, 2004);
        assert!(place.take(&page(1, 5)).expect("another store").contains("was replaced"));
        assert_eq!((place.take(&page(1, 5)), place.after), (None, 5));
    }

    /// The help lists what programs may find.
    #[test]
    fn the_help_names_every_kind_and_cause() {
        use clap::Args as _;
        use roles::directory::{Cause, Move, News};
        let help =
            Args::augment_args(clap::Command::new("events")).get_after_help().expect("help").to_string();
        let brick = BrickId(1);
        let moved = |how| News::Moved { brick, groups: 1, how };
        let text = String::new;
        let causes = [
            Cause::Silent(None),
            Cause::DiskFailed(text()),
            Cause::Evicted,
            Cause::Slow(text()),
            Cause::Full(1),
            Cause::LostItsBlocks,
            Cause::NoAnswer,
        ];
        for cause in &causes {
            assert!(help.contains(cause.name()), "{}", cause.name());
        }
        let asked_by = base::NodeId::Directory;
        for news in [
            News::Admitted { brick },
            News::Came { brick, address: text() },
            News::Evicted { brick, by: None, asked_by },
            News::Readmitted { brick, asked_by },
            News::Forgotten { brick, asked_by },
            News::OtherDisks { brick, before: Vec::new(), now: Vec::new(), groups: 1 },
            News::HeldForSlow { brick, why: text() },
            News::KeptThoughSlow { brick, why: text(), group: base::GroupId(1) },
            News::WellAgain { brick, why: "" },
            moved(Move::LeftOut(Cause::Evicted)),
            moved(Move::Stays),
            moved(Move::Returns),
            moved(Move::Serves),
            moved(Move::TakesOver(brick)),
            moved(Move::StandsIn(brick)),
            moved(Move::StandsDown(brick, brick)),
            moved(Move::StandsDown(brick, base::BrickId(2))),
            moved(Move::DoesNotAnswer),
        ] {
            assert!(help.contains(news.kind()), "{}", news.kind());
            assert!(news.to_string().starts_with("brick-1 "), "the brick has a column of its own");
        }
    }
}
