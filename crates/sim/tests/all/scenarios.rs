//! Text scenarios: `tests/scenarios/*.txt`, one for each mended bug that the torture found, and one for each preset
//! (`preset-*.txt`), which shows what sets that protocol apart.
//!
//! A file opens with the story. Then it says which run tells the story, and by what:
//!
//! - `seed` names the seed; `operations` bounds what its clients ask for, so that the run is short; `placement` is the only rule by
//!   which its volumes are placed, and `protocol` the only protocol that they have.
//! - `reach` names a rare state without which the run tells nothing of the story.
//! - `show` is a step of the story: an event of the trace whose text fits. ` .. ` stands for any text. A `$name` stands for a
//!   word or a number other than 0, and for the same one in all steps. The steps come in the order of the file.
//!
//! The first events that tell the story stand below the line `---`, one for each `show`. A scenario fails if its run does not
//! come to a `reach` or a `show`, tells the story by other events, or breaks a promise.
//!
//! `UPDATE_SCENARIOS=1 cargo test --profile ci -p brickwork-sim scenarios` writes the events anew; read the difference before
//! you commit it. For a seed that no longer tells its story `SCENARIO_SEEDS=2000` names those of the first 2000 that do; then
//! break the mend once, and see the scenario fail.

use sim::{Options, Outcome, run};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Of a longer text of an event only what its `show` names is kept.
const COLUMNS_MAX: usize = 110;
const RULE: &str = "---\n";

struct Scenario {
    path: PathBuf,
    /// The file down to its rule.
    head: String,
    expected: String,
    seed: u64,
    options: Options,
    shows: Vec<Pattern>,
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
    let number = |text: &str| text.parse().expect("seeds and operations are numbers");
    let (mut seed, mut options) = (None, Options::default());
    let (mut shows, mut reaches) = (Vec::new(), Vec::new());
    for line in head.lines() {
        match line.split_once(' ') {
            Some(("seed", rest)) => seed = Some(number(rest)),
            Some(("operations", rest)) => options.operations = Some(number(rest)),
            Some(("placement", rule)) => options.placements.push(rule.to_owned()),
            Some(("protocol", name)) => options.protocols.push(name.to_owned()),
            Some(("show", rest)) => shows.push(Pattern::parse(rest)),
            Some(("reach", state)) => reaches.push(state.to_owned()),
            _ => {}
        }
    }
    let seed = seed.unwrap_or_else(|| panic!("{}: names no seed", path.display()));
    let is_checked = !shows.is_empty() || !reaches.is_empty();
    assert!(is_checked, "{}: has neither `show` nor `reach`, and tells no story", path.display());
    Scenario { head: head.to_owned(), expected: expected.to_owned(), path, seed, options, shows, reaches }
}

/// What the names of a scenario stand for.
type Names = BTreeMap<String, String>;

#[derive(Clone, Debug)]
enum Part {
    Literal(String),
    Name(String),
    AnyText,
}

/// A `show`.
#[derive(Clone, Debug)]
struct Pattern {
    source: String,
    /// What comes before the first of them does not matter.
    parts: Vec<Part>,
}

impl Pattern {
    fn parse(source: &str) -> Pattern {
        let mut parts = vec![Part::AnyText];
        for (index, piece) in source.split(" .. ").enumerate() {
            if index > 0 {
                parts.push(Part::AnyText);
            }
            let mut chunks = piece.split('$');
            parts.extend(
                chunks.next().filter(|text| !text.is_empty()).map(|text| Part::Literal(text.to_owned())),
            );
            for chunk in chunks {
                let (name, rest) = chunk.split_at(word_len(chunk));
                parts.push(Part::Name(name.to_owned()));
                if !rest.is_empty() {
                    parts.push(Part::Literal(rest.to_owned()));
                }
            }
        }
        Pattern { source: source.to_owned(), parts }
    }

    /// What the names stand for if the text fits.
    fn fit(&self, text: &str) -> Option<Names> {
        // Most events lack some literal, which is found out fast.
        let has = |part: &Part| !matches!(part, Part::Literal(literal) if !text.contains(literal));
        let mut names = Names::new();
        (self.parts.iter().all(has) && fits(&self.parts, text, 0, &mut names)).then_some(names)
    }

    /// The text of the pattern with what the names stand for.
    fn filled(&self, names: &Names) -> String {
        let text = |part: &Part| match part {
            Part::Literal(text) => text.clone(),
            Part::Name(name) => names[name].clone(),
            Part::AnyText => " .. ".to_owned(),
        };
        self.parts[1..].iter().map(text).collect()
    }
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '-' || letter == '_' || letter == '@'
}

fn word_len(text: &str) -> usize {
    text.find(|letter| !is_of_word(letter)).unwrap_or(text.len())
}

/// Whether the text from `at` on begins with these parts.
fn fits(parts: &[Part], text: &str, at: usize, names: &mut Names) -> bool {
    let Some((first, rest)) = parts.split_first() else { return true };
    match (first, rest.first()) {
        (Part::Literal(literal), _) => {
            text[at..].starts_with(literal) && fits(rest, text, at + literal.len(), names)
        }
        (Part::Name(name), _) => {
            let word = &text[at..at + word_len(&text[at..])];
            if word.is_empty() || word == "0" || names.get(name).is_some_and(|known| known != word) {
                return false;
            }
            let is_new = names.insert(name.clone(), word.to_owned()).is_none();
            let is_fit = fits(rest, text, at + word.len(), names);
            if is_new && !is_fit {
                names.remove(name);
            }
            is_fit
        }
        (Part::AnyText, Some(Part::Literal(literal))) => {
            text[at..].match_indices(literal).any(|(skipped, _)| fits(rest, text, at + skipped, names))
        }
        (Part::AnyText, _) => {
            let begins = |at: &usize| !text[..*at].ends_with(is_of_word);
            let starts = text[at..].char_indices().map(|(skipped, _)| at + skipped).filter(begins);
            starts.into_iter().any(|start| fits(rest, text, start, names))
        }
    }
}

/// The stories that a trace has begun to tell.
struct Telling {
    shows: Vec<Pattern>,
    /// By how many steps are told: what the names stand for, and the lines kept.
    begun: Vec<BTreeMap<Names, Vec<String>>>,
    /// Those that have gone on with nothing more to be named: they need not be begun again.
    over: Vec<BTreeSet<Names>>,
}

impl Telling {
    fn new(shows: Vec<Pattern>) -> Telling {
        let mut begun = vec![BTreeMap::new(); shows.len() + 1];
        begun[0].insert(Names::new(), Vec::new());
        Telling { over: vec![BTreeSet::new(); shows.len() + 1], shows, begun }
    }

    fn take(&mut self, step: &sim::trace::Step) {
        if self.told().is_some() {
            return;
        }
        let text = format!("{}: {}", step.node, step.what);
        for told in
            (0..self.shows.len()).rev().filter(|told| !self.begun[*told].is_empty()).collect::<Vec<_>>()
        {
            let Some(found) = self.shows[told].fit(&text) else { continue };
            let is_same = |names: &Names| {
                found.iter().all(|(name, word)| names.get(name).is_none_or(|known| known == word))
            };
            let fitting: Vec<Names> =
                self.begun[told].keys().filter(|names| is_same(names)).cloned().collect();
            fitting.into_iter().for_each(|names| self.go_on(told, names, &found, step, &text));
        }
    }

    fn go_on(&mut self, told: usize, names: Names, found: &Names, step: &sim::trace::Step, text: &str) {
        let mut lines = self.begun[told][&names].clone();
        let mut all = names.clone();
        all.extend(found.clone());
        if all == names {
            self.begun[told].remove(&names);
            self.over[told].insert(names);
        }
        if self.over[told + 1].contains(&all) {
            return;
        }
        let (seconds, millis) = (step.t / 1_000_000_000, step.t / 1_000_000 % 1000);
        let short = match text.chars().count() > COLUMNS_MAX {
            true => self.shows[told].filled(&all),
            false => text.to_owned(),
        };
        lines.push(format!("{seconds:>3}.{millis:03} {}", short.trim_end()));
        self.begun[told + 1].entry(all).or_insert(lines);
    }

    /// The lines of the story, if it is told.
    fn told(&self) -> Option<&Vec<String>> {
        self.begun[self.shows.len()].values().next()
    }

    /// How many steps are told at most.
    fn furthest(&self) -> usize {
        let is_reached = |told: &usize| !self.begun[*told].is_empty() || !self.over[*told].is_empty();
        (0..self.begun.len()).rev().find(is_reached).unwrap_or(0)
    }
}

/// Listens to a trace.
#[derive(Clone)]
struct Listener {
    telling: Rc<RefCell<Telling>>,
    /// The world writes a line in pieces.
    partial: Rc<RefCell<Vec<u8>>>,
}

impl Write for Listener {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut partial = self.partial.borrow_mut();
        partial.extend_from_slice(bytes);
        if partial.ends_with(b"\n") {
            self.telling.borrow_mut().take(&serde_json::from_slice(&partial)?);
            partial.clear();
        }
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The lines that tell the story when the seed runs, or why they do not.
fn tell(scenario: &Scenario, seed: u64) -> Result<String, String> {
    let telling = Rc::new(RefCell::new(Telling::new(scenario.shows.clone())));
    let listener = Listener { telling: Rc::clone(&telling), partial: Rc::default() };
    let (outcome, _) = run(seed, &scenario.options, Some(Box::new(listener)));
    check_reached(scenario, &outcome)?;
    let telling = telling.borrow();
    let Some(lines) = telling.told() else {
        let missing = &scenario.shows[telling.furthest()].source;
        return Err(format!("no event of seed {seed} fits `show {missing}` after the steps before it"));
    };
    let mut text = String::new();
    lines.iter().for_each(|line| writeln!(text, "{line}").unwrap());
    Ok(text)
}

fn check_reached(scenario: &Scenario, outcome: &Outcome) -> Result<(), String> {
    if let Some(violation) = &outcome.violation {
        return Err(format!("seed {} breaks a promise: {violation:?}", outcome.seed));
    }
    let is_reached = |state: &String| outcome.rare.get(state).is_some_and(|&count| count > 0);
    match scenario.reaches.iter().find(|state| !is_reached(state)) {
        None => Ok(()),
        Some(state) => {
            let reached: Vec<&String> = outcome.rare.keys().collect();
            Err(format!("seed {} does not reach '{state}', but {reached:?}", outcome.seed))
        }
    }
}

#[test]
fn stories_go_as_they_are_told() {
    let is_update = std::env::var_os("UPDATE_SCENARIOS").is_some();
    let mut wrong = Vec::new();
    for scenario in scenarios() {
        let path = scenario.path.display();
        match tell(&scenario, scenario.seed) {
            Err(why) => wrong.push(format!("{path}: {why}{}", others(&scenario))),
            Ok(found) if is_update => {
                std::fs::write(&scenario.path, format!("{}{RULE}{found}", scenario.head)).unwrap();
            }
            Ok(found) if found != scenario.expected => {
                wrong.push(format!("{path}: is told otherwise than the file says:\n{found}"));
            }
            Ok(_) => {}
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Which of the first seeds tell the story, as many as `SCENARIO_SEEDS` says: for a scenario whose own does so no more. With
/// `--nocapture` each is named when it is found.
fn others(scenario: &Scenario) -> String {
    let count = std::env::var_os("SCENARIO_SEEDS").map_or(0, |count| {
        count.to_str().and_then(|count| count.parse().ok()).expect("SCENARIO_SEEDS is a number of seeds")
    });
    let mut found = String::new();
    for seed in 1..=count {
        let (outcome, _) = run(seed, &scenario.options, None);
        if check_reached(scenario, &outcome).is_ok() && tell(scenario, seed).is_ok() {
            let does = format!("seed {seed} does, with {} events", outcome.events);
            eprintln!("{}: {does}", scenario.path.display());
            write!(found, "\n  {does}").unwrap();
        }
    }
    found
}
