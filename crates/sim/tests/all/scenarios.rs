//! Text scenarios: `tests/scenarios/*.txt`, one for each mended bug that the torture found.
//!
//! A file opens with the bug's story. Then it names the seed that found the bug. `reach` names a rare state without which the
//! run tells nothing of the story. `show` names words: the first events whose texts have all of them are the part of the trace
//! that is kept. The kept events stand below the line `---`. `UPDATE_SCENARIOS=1 cargo test -p brickwork-sim scenarios` writes it anew; read the difference before you
//! commit it: a seed that no longer reaches its story needs a new seed.

use sim::{Options, run};
use std::cell::RefCell;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// More lines than this tell no story.
const LINES_MAX: usize = 8;
/// Longer texts of events are cut.
const COLUMNS_MAX: usize = 110;
const RULE: &str = "---\n";

struct Scenario {
    path: PathBuf,
    /// The file down to its rule.
    head: String,
    expected: String,
    seed: u64,
    shows: Vec<Vec<String>>,
    reaches: Vec<String>,
}

fn scenarios() -> Vec<Scenario> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/scenarios");
    let files =
        std::fs::read_dir(folder).expect("the scenarios are there").map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = files.filter(|path| is_scenario(path)).collect();
    paths.sort();
    paths.into_iter().map(read).collect()
}

fn is_scenario(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "txt") && !path.ends_with("trace-hashes.txt")
}

fn read(path: PathBuf) -> Scenario {
    let text = std::fs::read_to_string(&path).expect("a scenario is text");
    let (head, expected) = text.split_once(RULE).unwrap_or((&text, ""));
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
    let mut seed = None;
    let (mut shows, mut reaches) = (Vec::new(), Vec::new());
    for line in head.lines() {
        match line.split_once(' ') {
            Some(("seed", number)) => seed = Some(number.parse().expect("a seed is a number")),
            Some(("show", rest)) => shows.push(words(rest)),
            Some(("reach", state)) => reaches.push(state.to_owned()),
            _ => {}
        }
    }
    let seed = seed.unwrap_or_else(|| panic!("{}: names no seed", path.display()));
    Scenario { head: head.to_owned(), expected: expected.to_owned(), path, seed, shows, reaches }
}

/// Keeps the events that a scenario shows.
#[derive(Clone)]
struct Kept {
    shows: Rc<Vec<Vec<String>>>,
    lines: Rc<RefCell<Vec<String>>>,
    /// The world writes a line in pieces.
    partial: Rc<RefCell<Vec<u8>>>,
}

impl Kept {
    fn take(&self, line: &[u8]) {
        let Ok(step) = serde_json::from_slice::<sim::trace::Step>(line) else { return };
        let text = format!("{}: {}", step.node, step.what);
        let is_shown = self.shows.iter().any(|words| words.iter().all(|word| text.contains(word.as_str())));
        if is_shown && self.lines.borrow().len() < LINES_MAX {
            let (seconds, millis) = (step.t / 1_000_000_000, step.t / 1_000_000 % 1000);
            let short: String = text.chars().take(COLUMNS_MAX).collect();
            self.lines.borrow_mut().push(format!("{seconds:>3}.{millis:03} {}", short.trim_end()));
        }
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut partial = self.partial.borrow_mut();
        partial.extend_from_slice(bytes);
        if partial.ends_with(b"\n") {
            self.take(&partial);
            partial.clear();
        }
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn trace_of(scenario: &Scenario) -> String {
    let kept = Kept { shows: Rc::new(scenario.shows.clone()), lines: Rc::default(), partial: Rc::default() };
    let (outcome, _) = run(scenario.seed, &Options::default(), Some(Box::new(kept.clone())));
    assert_eq!(outcome.violation, None, "{}: seed {}", scenario.path.display(), scenario.seed);
    for state in &scenario.reaches {
        let count = outcome.rare.get(state).copied().unwrap_or(0);
        let reached: Vec<&String> =
            outcome.rare.iter().filter(|(_, count)| **count > 0).map(|(name, _)| name).collect();
        let path = scenario.path.display();
        assert!(count > 0, "{path}: seed {} does not reach '{state}', but {reached:?}", scenario.seed);
    }
    let mut text = String::new();
    kept.lines.borrow().iter().for_each(|line| writeln!(text, "{line}").unwrap());
    text
}

#[test]
fn mended_bugs_stay_mended() {
    let is_update = std::env::var_os("UPDATE_SCENARIOS").is_some();
    let mut differing = Vec::new();
    for scenario in scenarios() {
        let found = trace_of(&scenario);
        if is_update {
            std::fs::write(&scenario.path, format!("{}{RULE}{found}", scenario.head)).unwrap();
        } else if found != scenario.expected {
            differing.push(format!("{}:\n{found}", scenario.path.display()));
        }
    }
    assert!(differing.is_empty(), "these go another way than their files say:\n{}", differing.join("\n"));
}
