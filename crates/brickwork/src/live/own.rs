//! `brickwork lab run mine.toml --live`: a user's own descriptions on real daemons, each beside its prediction.

use super::asked::OUTSTANDING_MOST;
use super::bed::{self, Folder};
use super::calibrate;
use super::described::{Described, Figures, Predicted, Times};
use super::load::{LATE, Lateness};
use anyhow::{Context, Result, ensure};
use lab::cell::{Cell, Row};
use lab::claim::{Claim, shape};
use lab::experiment::Scale;
use lab::outcome::{Effort, Extent, Outcome, Provenance, Subject};
use lab::own::{Curves, charts_over_time, series_name};
use lab::system::{System, over_time};
use model::host::Machine;
use sim::timed::Hosts;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Each figure, and how near its prediction must be.
const BOUNDS: [(&str, f64); 3] = [("requests a second", 0.05), ("median", 0.10), ("99th percentile", 0.25)];
/// As many of the descriptions must be predicted so well: ten of twelve.
const SHARE_LEAST: f64 = 10.0 / 12.0;

/// A description, what it should do and what it did.
struct Compared {
    labels: Row,
    predicted: Predicted,
    live: Figures,
    /// What became of the description on its way to daemons.
    notes: Vec<String>,
}

impl Compared {
    /// By how much of the live figure the predicted one is off.
    fn error(&self, figure: fn(&Figures) -> f64) -> f64 {
        figure(&self.predicted.figures) / figure(&self.live) - 1.0
    }

    fn title(&self) -> String {
        self.labels.get("what").map_or_else(String::new, Cell::text)
    }

    fn row(&self, world: &str, figures: &Figures) -> Row {
        self.labels
            .clone()
            .with("world", world)
            .with("requests_per_second", figures.requests_per_second)
            .with("p50_ms", figures.p50_ms)
            .with("p99_ms", figures.p99_ms)
            .with("processor_us", figures.spent.all())
    }

    /// By how much each figure is off, in the order of [`BOUNDS`].
    fn errors(&self) -> [f64; 3] {
        [
            self.error(|figures| figures.requests_per_second),
            self.error(|figures| figures.p50_ms),
            self.error(|figures| figures.p99_ms),
        ]
    }

    /// What is farther off than it may be, for people.
    fn misses(&self) -> Option<String> {
        let misses = BOUNDS.iter().zip(self.errors()).filter(|((_, most), error)| error.abs() > *most);
        let told: Vec<String> =
            misses.map(|((what, _), error)| format!("{what} {:+.0}%", error * 100.0)).collect();
        (!told.is_empty()).then(|| format!("Off for {}: {}.", series_name(&self.labels), told.join(", ")))
    }
}

/// Of more requests than this that are sent late the run says so: they would be most of those beyond the 99th percentile.
const LATE_SHARE: f64 = 0.01;

/// That clients could not ask when they were to, for people.
fn late_note(&Lateness { requests, late, most }: &Lateness) -> Option<String> {
    let share = late as f64 / requests.max(1) as f64;
    (share > LATE_SHARE).then(|| {
        format!(
            "Of the requests {:.0}% were sent more than {:.0} ms after they were due, the latest after {:.0} ms: no more than {OUTSTANDING_MOST} are \
             outstanding at a time, and clients share this machine. Their time counts from when they were due all the same.",
            share * 100.0,
            LATE.as_secs_f64() * 1e3,
            most.as_secs_f64() * 1e3
        )
    })
}

/// For each figure the share of the descriptions for which it is predicted as well as it must be.
fn claims(all: &[Compared]) -> Vec<Claim> {
    let share = |is_near: &dyn Fn(&Compared) -> bool| {
        all.iter().filter(|one| is_near(one)).count() as f64 / all.len().max(1) as f64
    };
    let of_figure = |(at, (what, most)): (usize, &(&str, f64))| {
        let near = share(&|one| one.errors()[at].abs() <= *most);
        let what = format!("share of descriptions whose {what} is predicted within {:.0}%", most * 100.0);
        shape(what, near, [SHARE_LEAST, 1.0])
    };
    BOUNDS.iter().enumerate().map(of_figure).collect()
}

/// What is to be run live.
pub struct Live {
    /// Users' files.
    pub files: Vec<PathBuf>,
    /// What work costs on this machine, in place of what the files say.
    pub machine: Option<Machine>,
    pub seed: u64,
    pub is_quick: bool,
}

/// Predicts all that the files describe, then runs it. `say` is told what happens.
///
/// # Errors
/// When a file describes what daemons on this machine cannot be, or a request fails.
pub fn run(live: &Live, say: &dyn Fn(&str)) -> Result<Outcome> {
    let begin = Instant::now();
    let mut all = Vec::new();
    for path in &live.files {
        all.extend(described(path, live)?);
    }
    let times = times(live.is_quick);
    let mut compared = Vec::new();
    for (labels, described) in all {
        let name = series_name(&labels);
        let described = match live.machine {
            Some(machine) => {
                say(&format!("measuring how fast this machine is now, for {name}"));
                described.on(hosts(calibrate::now(machine)?))
            }
            None => described,
        };
        say(&format!("simulating {name}"));
        let predicted = described.predict(&times, live.seed).with_context(|| name.clone())?;
        say(&format!("running {name}"));
        let folder = Folder::make(&bed::folder())?;
        let mut notes = described.asked.notes();
        let live = described.measure(&times, &folder).with_context(|| {
            format!("{name} failed on daemons; their logs stay in {}", folder.logs().display())
        })?;
        folder.remove()?;
        notes.extend(late_note(&live.lateness));
        let notes = notes.iter().map(|note| format!("{name}: {note}")).collect();
        compared.push(Compared { labels, predicted, live, notes });
    }
    Ok(outcome(live, &compared, begin.elapsed()))
}

/// All that a file describes, each by its title and what is varied.
fn described(path: &Path, live: &Live) -> Result<Vec<(Row, Described)>> {
    let title = lab::own::read(path)?.title().to_owned();
    let scale = if live.is_quick { Scale::Quick } else { Scale::Full };
    let one = |(varied, system): (Row, System)| {
        let labels = varied
            .cells()
            .fold(Row::new().with("what", title.as_str()), |row, (name, cell)| row.with(name, cell.clone()));
        let described = Described::new(system, &times(live.is_quick), live.seed)
            .with_context(|| format!("{}", path.display()))?;
        let described = match live.machine {
            Some(machine) => described.on(hosts(machine)),
            None => described,
        };
        ensure!(
            described.has_processors(),
            "--live needs to know what work costs on this machine: run `brickwork lab calibrate`, and give its file with --costs"
        );
        Ok((labels, described))
    };
    lab::own::systems(path, scale)?.into_iter().map(one).collect()
}

/// One machine for all, as here.
fn hosts(Machine { processors, costs, .. }: Machine) -> Hosts {
    Hosts { costs, processors, is_shared: true }
}

/// How long runs are.
pub(super) fn times(is_quick: bool) -> Times {
    let part = if is_quick { 4 } else { 1 };
    Times { warm_up: Duration::from_secs(2) / part, measure: Duration::from_secs(10) / part }
}

fn outcome(live: &Live, all: &[Compared], wall: Duration) -> Outcome {
    let rows = all.iter().flat_map(|one| {
        [("live", &one.live), ("predicted", &one.predicted.figures)]
            .map(|(world, figures)| one.row(world, figures))
    });
    let stem = live.files.first().and_then(|path| path.file_stem()).unwrap_or_default();
    let id = format!("{}.live", stem.to_string_lossy());
    let title = match live.files.as_slice() {
        [_] => all.first().map_or_else(String::new, |one| one.title()),
        files => format!("{} descriptions, predicted and on real daemons", files.len()),
    };
    let over_time = all.iter().flat_map(|one| {
        let curves = |figures: &Figures| over_time(&figures.windows).into_iter().collect::<Curves>();
        let name = if all.len() > 1 { format!(", {}", series_name(&one.labels)) } else { String::new() };
        [("live", &one.live), ("predicted", &one.predicted.figures)]
            .map(|(world, figures)| (format!("{world}{name}"), curves(figures)))
    });
    let over_time: Vec<(String, Curves)> = over_time.collect();
    let has_windows = all.iter().any(|one| !one.live.windows.is_empty());
    let charts = if has_windows { charts_over_time(&id, &over_time) } else { Vec::new() };
    Outcome {
        subject: Subject { id, paper: "own".to_owned(), title },
        effort: Effort {
            seed: live.seed,
            wall_s: wall.as_secs_f64(),
            simulated_s: all.iter().map(|one| one.predicted.simulated_s).sum(),
            events: all.iter().map(|one| one.predicted.events).sum(),
        },
        assumptions: Vec::new(),
        rows: rows.collect(),
        claims: claims(all),
        extent: Extent { seeds: 1, quick: live.is_quick },
        sensitivity: Vec::new(),
        notes: all.iter().filter_map(Compared::misses).chain(all.iter().flat_map(|one| one.notes.clone())).chain([
            "Bricks, gateways, a directory and the clients are processes of their own on this machine, with their files in memory; \
             every block that was read was checked. Each prediction was made before its cluster was started."
                .to_owned(),
            "With a file of costs a known load is measured before each prediction, and costs are taken to be as much higher or lower as it costs \
             more or less than when they were measured."
                .to_owned(),
            "processor_us is what a request costs all processors together: those of clients, gateways and bricks.".to_owned(),
        ]).collect(),
        provenance: Provenance::default(),
        charts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(what: &str, live: [f64; 3], predicted: [f64; 3]) -> Compared {
        let figures = |[requests_per_second, p50_ms, p99_ms]: [f64; 3]| Figures {
            requests_per_second,
            p50_ms,
            p99_ms,
            ..Figures::default()
        };
        let predicted = Predicted { figures: figures(predicted), ..Predicted::default() };
        let labels = Row::new().with("what", what);
        Compared { labels, predicted, live: figures(live), notes: Vec::new() }
    }

    #[test]
    fn requests_that_are_sent_late_are_told_of_when_they_are_many() {
        let late = |late| late_note(&Lateness { requests: 1_000, late, most: Duration::from_millis(70) });
        assert_eq!(late(10), None);
        let said = late(20).expect("they are many");
        assert!(
            said.starts_with(
                "Of the requests 2% were sent more than 1 ms after they were due, the latest after 70 ms"
            ),
            "{said}"
        );
    }

    #[test]
    fn what_is_too_far_off_is_named_and_counted() {
        let near = compared("near", [1000.0, 1.0, 2.0], [1040.0, 0.91, 2.4]);
        let far = compared("far", [1000.0, 1.0, 2.0], [1060.0, 1.0, 1.0]);
        assert_eq!(near.misses(), None);
        let said = far.misses().expect("it is far off");
        assert_eq!(said, "Off for far: requests a second +6%, 99th percentile -50%.");
        let shares: Vec<(f64, bool)> =
            claims(&[near, far]).iter().map(|claim| (claim.measured, claim.holds)).collect();
        assert_eq!(shares, [(0.5, false), (1.0, true), (0.5, false)]);
    }

    /// The repository's descriptions can all run on daemons.
    #[test]
    fn the_descriptions_of_the_manual_can_run_live() {
        let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lab");
        let files = ["predictions", "open"].into_iter().flat_map(|folder| {
            let entries = std::fs::read_dir(manual.join(folder)).expect("the folder is there");
            entries.map(|entry| entry.expect("an entry").path())
        });
        let machine = Some(Machine { processors: 2, costs: Default::default(), reference_us: 70.0 });
        let live = Live { files: Vec::new(), machine, seed: 1, is_quick: true };
        let count =
            files.filter(|path| path.extension().is_some_and(|ending| ending == "toml")).map(|path| {
                let found =
                    described(&path, &live).unwrap_or_else(|error| panic!("{}: {error:#}", path.display()));
                assert_eq!(found.len(), 1, "{}", path.display());
            });
        assert_eq!(count.count(), 16);
    }

    #[test]
    fn what_daemons_here_cannot_be_is_refused_by_name() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("mine.toml");
        let live = Live { files: Vec::new(), machine: None, seed: 1, is_quick: true };
        let why = |workload: &str, rest: &str| {
            let text = format!("title = \"mine\"\n[workload]\n{workload}\n{rest}");
            std::fs::write(&path, text).expect("a file");
            format!("{:#}", described(&path, &live).map(drop).expect_err("refused"))
        };
        let closed = "kind = \"closed\"\noutstanding = 4";
        let blocks = format!("{closed}\nmix = {{ bytes = 8192 }}");
        assert!(why("kind = \"open\"\nper_second = 1e9", "").contains("requests at the most"));
        assert!(why(&format!("{closed}\nmix = {{ bytes = 1048577 }}"), "").contains("mix.bytes"));
        assert!(why(&format!("{closed}\nmix = {{ mean_bytes = 1e6 }}"), "").contains("mix.mean_bytes"));
        assert!(why("kind = \"open\"\nper_second = 1e-6", "").contains("has no request"));
        assert!(why(&blocks, "[cluster]\nbricks = 4\nreplicas = 2").contains("one group"));
        assert!(why(&blocks, "[cluster]\nwrite_release = \"half\"").contains("nvram"));
        assert!(why(&blocks, "[show]\nwindow_s = 1.0").contains("length.seconds"));
        assert!(
            why(&blocks, "[brick]\ndisk = \"ram-disk\"\n[[slow]]\nbrick = 0\npercent = 200")
                .contains("no time of its own")
        );
        assert!(why(&blocks, "").contains("lab calibrate"));
    }
}
