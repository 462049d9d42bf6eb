//! Traces: what of them is shown, and what is said when a run goes another way.

use sim::replay::{Filter, Header, ReplayError, write_trace};
use sim::{Options, Replay, run_seed};
use std::cell::RefCell;
use std::io::{self, Cursor, Write};
use std::rc::Rc;

#[derive(Clone, Default)]
struct Sink(Rc<RefCell<Vec<u8>>>);

impl Sink {
    fn text(&self) -> String {
        String::from_utf8(self.0.borrow().clone()).unwrap()
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn options() -> Options {
    Options { simulated_s: Some(1), operations: Some(50), ..Options::default() }
}

fn trace() -> String {
    let sink = Sink::default();
    let outcome = write_trace(&Header::new(3, &options(), None), Box::new(sink.clone())).unwrap();
    assert_eq!(outcome.trace_hash, run_seed(3, &options()).trace_hash, "writing a trace changes nothing");
    sink.text()
}

/// How many events agreed, and what was shown.
fn replay(trace: &str, filter: Filter) -> (Result<u64, ReplayError>, String) {
    let sink = Sink::default();
    let replay =
        Replay::open(Box::new(Cursor::new(trace.to_owned())), filter, Box::new(sink.clone())).unwrap();
    replay.run();
    (replay.finish(), sink.text())
}

#[test]
fn each_event_is_one_line_however_long() {
    let trace = trace();
    let (agreed, shown) = replay(&trace, Filter::default());
    let events = trace.lines().count() - 1;
    assert_eq!((agreed.unwrap() as usize, shown.lines().count()), (events, events));
    assert!(shown.lines().any(|line| line.len() > 200), "some are long");
    let numbers = shown.lines().map(|line| line.split_whitespace().next().unwrap().parse::<usize>().unwrap());
    assert!(numbers.eq(1..=events));
}

#[test]
fn only_what_passes_all_filters_is_shown() {
    let trace = trace();
    let show = |filter: Filter| {
        let (agreed, shown) = replay(&trace, filter);
        (agreed.unwrap(), shown.lines().map(ToOwned::to_owned).collect::<Vec<_>>())
    };
    let (_, all) = show(Filter::default());
    let place = |text: &str| Some(text.parse().unwrap());
    let (agreed, shown) = show(Filter { from: place("100"), until: place("139"), ..Filter::default() });
    assert_eq!((agreed, &shown[..]), (139, &all[99..139]));

    let (_, shown) = show(Filter { from: place("0.9s"), until: place("1100ms"), ..Filter::default() });
    let is_within = |line: &&String| (0.9..=1.1).contains(&seconds(line));
    assert!(!shown.is_empty() && shown.iter().eq(all.iter().filter(is_within)));

    let (nodes, from) = (vec!["brick-2".to_owned()], place("200"));
    let (_, at_brick) = show(Filter { nodes: nodes.clone(), ..Filter::default() });
    let is_at = |line: &&String| line.contains(" brick-2: ");
    assert!(at_brick.len() > 20 && at_brick.iter().eq(all.iter().filter(is_at)), "{}", at_brick.len());

    let asked = all.iter().find_map(|line| line.split_once(": #")).expect("a client asks for something").1;
    let number: u64 = asked.split(' ').next().unwrap().parse().unwrap();
    let (_, about) = show(Filter { operations: vec![number], ..Filter::default() });
    assert!(about.iter().any(|line| line.contains(asked)), "{about:?}");
    let (_, both) = show(Filter { from, nodes, operations: vec![number], ..Filter::default() });
    assert!(both.iter().eq(all[199..].iter().filter(|line| is_at(line) && about.contains(line))));
}

fn seconds(line: &str) -> f64 {
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn places_are_events_or_times() {
    for wrong in ["", "s", "-1s", "12.5", "1h", "1e30s"] {
        assert!(wrong.parse::<sim::replay::Place>().is_err(), "{wrong}");
    }
}

#[test]
fn where_run_and_trace_differ_both_events_are_told() {
    let trace = trace();
    let line = trace.lines().nth(60).unwrap();
    let changed = trace.replace(line, &line.replacen(r#""what":""#, r#""what":"perhaps "#, 1));
    let (result, shown) = replay(&changed, Filter::default());
    let message = result.unwrap_err().to_string();
    assert_eq!(shown.lines().count(), 59, "{message}");
    let (recorded, replayed) = (message.lines().nth(1).unwrap(), message.lines().nth(2).unwrap());
    assert!(recorded.contains("recorded:      60 ") && recorded.contains("perhaps "), "{message}");
    assert_eq!(recorded.replace("perhaps ", "").replace("recorded", "replayed"), replayed);

    let longer = format!("{trace}{}\n", trace.lines().last().unwrap());
    let message = replay(&longer, Filter::default()).0.unwrap_err().to_string();
    assert!(message.contains("replayed: nothing: the run has ended"), "{message}");

    let shorter: Vec<&str> = trace.lines().take(101).collect();
    assert_eq!(replay(&shorter.join("\n"), Filter::default()).0.unwrap(), 100, "a trace may lack its end");
}
