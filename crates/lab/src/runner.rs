//! Runs points on all cores, each from its seed, and keeps what was computed so that an interrupted run goes on.
//!
//! What comes out does not depend on how many threads there are: each result has its place before it is computed.

use crate::error::LabError;
use crate::experiment::{Point, Sample};
use crate::requests::RequestsFile;
use outfile::Outfile;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// How points are run.
pub struct Runner<'a> {
    /// Threads; at least one.
    pub jobs: usize,
    /// Where samples are kept, if anywhere.
    pub kept_in: Option<PathBuf>,
    /// What names the program: samples of another one are not taken.
    pub build: String,
    /// Where each request is written. Samples that are kept have none, so all points are run.
    pub recorder: Option<&'a RequestsFile>,
    /// Called after each point.
    pub on_point: &'a (dyn Fn() + Sync),
}

impl Runner<'_> {
    /// The same for points whose requests are not wanted.
    pub(crate) fn without_recorder(&self) -> Runner<'_> {
        let (kept_in, build) = (self.kept_in.clone(), self.build.clone());
        Runner { jobs: self.jobs, kept_in, build, recorder: None, on_point: self.on_point }
    }

    /// Runs every point from every seed. Returns a list of samples for each seed, in the order of the points.
    ///
    /// # Errors
    /// The first point's that failed, by order of points. No new points are begun after one.
    pub fn run(&self, id: &str, points: &[Point], seeds: &[u64]) -> Result<Vec<Vec<Sample>>, LabError> {
        let total = points.len() * seeds.len();
        let results: Vec<Mutex<Option<Result<Sample, LabError>>>> =
            (0..total).map(|_| Mutex::new(None)).collect();
        let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let work = || {
            while !failed.load(Ordering::Relaxed) {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(place) = results.get(at) else { return };
                let (point, seed) = (&points[at % points.len()], seeds[at / points.len()]);
                let result = match self.recorder {
                    None => self.sample(id, point, seed),
                    Some(file) => self.recorded(id, (at, point, seed), file),
                };
                failed.fetch_or(result.is_err(), Ordering::Relaxed);
                *place.lock().expect("no holder panics") = Some(result);
                (self.on_point)();
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.jobs.min(total).max(1) {
                scope.spawn(work);
            }
            work();
        });
        collect(results, points.len())
    }

    fn sample(&self, id: &str, point: &Point, seed: u64) -> Result<Sample, LabError> {
        let path = self.kept_in.as_ref().map(|folder| folder.join(self.file_name(id, point, seed)));
        if let Some(sample) = path.as_deref().and_then(read_kept) {
            return Ok(sample);
        }
        let sample =
            point.job.run(seed).map_err(|why| LabError::Point { point: name(id, point, seed), why })?;
        if let Some(path) = path {
            keep(&path, &sample)?;
        }
        Ok(sample)
    }

    /// A run whose requests are written, too.
    fn recorded(
        &self,
        id: &str,
        (at, point, seed): (usize, &Point, u64),
        file: &RequestsFile,
    ) -> Result<Sample, LabError> {
        let failed = |why| LabError::Point { point: name(id, point, seed), why };
        let (sample, requests) = point.job.run_recorded(seed).map_err(failed)?;
        file.add(at, (&point.labels, seed), requests)?;
        if let Some(folder) = &self.kept_in {
            keep(&folder.join(self.file_name(id, point, seed)), &sample)?;
        }
        Ok(sample)
    }

    /// Names the point by all that decides its result.
    fn file_name(&self, id: &str, point: &Point, seed: u64) -> String {
        let text = format!("{}\n{}\n{seed}", self.build, point.job.describe());
        // Two checksums with different beginnings: 64 bits, so that no two points of a run share a file.
        let low = crc32c::crc32c(text.as_bytes());
        let high = crc32c::crc32c(format!("{low}\n{text}\n{}", text.len()).as_bytes());
        format!("{id}.{high:08x}{low:08x}.json")
    }
}

fn collect(
    results: Vec<Mutex<Option<Result<Sample, LabError>>>>,
    points: usize,
) -> Result<Vec<Vec<Sample>>, LabError> {
    let mut samples = Vec::with_capacity(results.len());
    for result in results {
        // Places behind a failed one may be empty, as nothing was begun after it.
        match result.into_inner().expect("no holder panics") {
            Some(Ok(sample)) => samples.push(sample),
            Some(Err(error)) => return Err(error),
            None => {}
        }
    }
    Ok(samples.chunks(points.max(1)).map(<[Sample]>::to_vec).collect())
}

fn name(id: &str, point: &Point, seed: u64) -> String {
    let labels: Vec<String> =
        point.labels.cells().map(|(name, cell)| format!("{name} {}", cell.text())).collect();
    let labels = labels.into_iter().chain([format!("seed {seed}")]);
    format!("{id}, {}", labels.collect::<Vec<_>>().join(", "))
}

/// A file that cannot be read as a sample counts as absent: it is from an interrupted machine, and is computed again.
fn read_kept(path: &Path) -> Option<Sample> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

fn keep(path: &Path, sample: &Sample) -> Result<(), LabError> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(LabError::writing(folder))?;
    }
    let text = serde_json::to_vec(sample).expect("a sample is plain numbers");
    // There are thousands, and one that a power cut leaves empty is computed again.
    let write = || {
        let mut file = Outfile::create(path)?;
        file.write_all(&text)?;
        file.finish_unsynced()
    };
    write().map_err(LabError::writing(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Row;
    use crate::experiment::Job;
    use serde_json::json;
    use std::sync::Arc;

    /// Returns its seed times its factor, and counts how often it was run.
    struct Times(u64, Arc<AtomicUsize>);

    impl Job for Times {
        fn describe(&self) -> serde_json::Value {
            json!({ "times": self.0 })
        }
        fn run(&self, seed: u64) -> Result<Sample, String> {
            self.1.fetch_add(1, Ordering::Relaxed);
            if self.0 == 13 {
                return Err("unlucky".to_owned());
            }
            let values = [("product".to_owned(), (self.0 * seed) as f64 / 3.0)].into();
            Ok(Sample { values, events: self.0, ..Sample::default() })
        }
    }

    fn points(factors: &[u64], count: &Arc<AtomicUsize>) -> Vec<Point> {
        factors.iter().map(|factor| Point::new(Times(*factor, count.clone()))).collect()
    }

    fn runner(jobs: usize, kept_in: Option<&Path>, build: &str) -> Runner<'static> {
        let (kept_in, build) = (kept_in.map(Path::to_owned), build.to_owned());
        Runner { jobs, kept_in, build, recorder: None, on_point: &|| () }
    }

    #[test]
    fn one_thread_and_many_give_the_same() {
        let points = points(&[1, 2, 3, 4, 5], &Arc::default());
        let one = runner(1, None, "").run("x", &points, &[7, 8]).unwrap();
        assert_eq!(one, runner(8, None, "").run("x", &points, &[7, 8]).unwrap());
        assert_eq!(one.len(), 2);
        assert_eq!(one[1][2].value("product"), 8.0);
    }

    #[test]
    fn what_was_computed_is_taken_again_unless_anything_differs() {
        let folder = tempfile::tempdir().unwrap();
        let count = Arc::default();
        let points = points(&[1, 2, 3], &count);
        let first = runner(2, Some(folder.path()), "a").run("x", &points, &[7]).unwrap();
        assert_eq!(first, runner(2, Some(folder.path()), "a").run("x", &points, &[7]).unwrap());
        assert_eq!(count.load(Ordering::Relaxed), 3);
        runner(2, Some(folder.path()), "a").run("x", &points, &[8]).unwrap();
        runner(2, Some(folder.path()), "b").run("x", &points, &[7]).unwrap();
        assert_eq!(count.load(Ordering::Relaxed), 9);
    }

    #[test]
    fn a_kept_sample_is_the_same_to_the_last_bit() {
        let values =
            [0.1 + 0.2, 1.019_821_518_551_97, 9.676_984_950_532_04].map(|value| (value.to_string(), value));
        let sample = Sample { values: values.into(), ..Sample::default() };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.json");
        let mut random = fastrand::Rng::with_seed(1);
        let many = (0..1000).map(|at| (at.to_string(), random.f64() * 1e3)).collect();
        for sample in [sample, Sample { values: many, ..Sample::default() }] {
            keep(&path, &sample).unwrap();
            assert_eq!(read_kept(&path), Some(sample));
        }
    }

    #[test]
    fn a_file_that_was_cut_is_computed_again() {
        let folder = tempfile::tempdir().unwrap();
        let count = Arc::default();
        let points = points(&[2], &count);
        let first = runner(1, Some(folder.path()), "a").run("x", &points, &[7]).unwrap();
        let path = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        let text = std::fs::read(&path).unwrap();
        std::fs::write(&path, &text[..text.len() / 2]).unwrap();
        assert_eq!(first, runner(1, Some(folder.path()), "a").run("x", &points, &[7]).unwrap());
    }

    #[test]
    fn a_point_that_fails_is_named() {
        let mut points = points(&[1, 13, 2], &Arc::default());
        points[1].labels = Row::new().with("factor", 13u32);
        let error = runner(1, None, "").run("x", &points, &[7]).unwrap_err().to_string();
        assert_eq!(error, "x, factor 13, seed 7: unlucky");
    }
}
