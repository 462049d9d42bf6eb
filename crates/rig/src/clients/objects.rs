//! Objects on real bricks: put, read whole and in parts, listed, replaced and removed, while bricks die and stand still.

use anyhow::{Context, Result, ensure};
use job::process::peak_bytes;
use rig::cluster::{Cluster, Spec, Storage, text};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const BRICKS: usize = 6;
/// Nothing, a byte, a block, a copy of some blocks, one segment in fragments, and two segments.
const SIZES: [usize; 6] = [0, 1, 4096, 300_001, 3_000_000, (32 << 20) + 12_345];
/// The one that takes longest to put and to read.
const LARGE: usize = 150 << 20;

/// All that is done with objects, and what is left of each afterwards.
pub(super) fn put_and_read(binary: &Path) -> Result<()> {
    let bed = Bed::start(binary)?;
    for bytes in SIZES {
        bed.put(bytes, bytes as u64)?;
        bed.reads(bytes, bytes as u64)?;
    }
    let file = bed.file("part");
    bed.object(&["get", "tests/3000000", text(&file)?, "--from", "1000001", "--bytes", "1000001"])?;
    ensure!(fs::read(&file)? == content(3_000_000, 3_000_000)[1_000_001..2_000_002], "a part differs");
    let listed: Vec<String> = bed.object(&["ls", "tests", "--json"])?.lines().map(str::to_owned).collect();
    ensure!(listed.len() == SIZES.len(), "{listed:?}");
    // Replaced on a condition, and not on one that does not hold.
    let version = bed.stat("tests/4096")?["version"].as_str().context("it has a version")?.to_owned();
    let source = bed.source(4096, 7)?;
    let source = text(&source)?;
    bed.object(&["put", source, "tests/4096", "--if-version", &version])?;
    let refused = bed.try_object(&["put", source, "tests/4096", "--if-version", &version])?;
    let why = String::from_utf8_lossy(&refused.stderr);
    ensure!(!refused.status.success() && why.contains("not as expected"), "{why}");
    bed.reads(4096, 7)?;
    bed.patches()?;
    bed.belongs_to_a_stream()?;
    bed.object(&["rm", "tests/4096"])?;
    let gone = bed.try_object(&["stat", "tests/4096"])?;
    let why = String::from_utf8_lossy(&gone.stderr);
    ensure!(!gone.status.success() && why.contains("no such object"), "{why}");
    Ok(())
}

/// A brick dies while an object is put, and another stands still while it is read.
pub(super) fn brick_killed_and_stopped(binary: &Path) -> Result<()> {
    let mut bed = Bed::start(binary)?;
    bed.put(SIZES[4], 1)?;
    bed.source(LARGE, 2)?;
    let put = bed.begin(&["put", text(&bed.file(&format!("source-{LARGE}")))?, &name(LARGE)])?;
    thread::sleep(Duration::from_millis(150));
    bed.cluster.bricks[0].kill()?;
    bed.end(put)?;
    bed.reads(SIZES[4], 1)?;
    bed.reads(LARGE, 2)?;
    bed.cluster.bricks[0].start_again()?;
    // Another one stands still while it is patched and read.
    let (from, change) = (100_000_000, content(20_000_000, 3));
    fs::write(bed.file("patch"), &change)?;
    bed.cluster.bricks[1].stand_still()?;
    let patched = bed.object(&["patch", text(&bed.file("patch"))?, &name(LARGE), "--at", &from.to_string()]);
    let file = bed.file("read");
    let read = bed.object(&["get", &name(LARGE), text(&file)?]);
    bed.cluster.bricks[1].go_on()?;
    patched.and(read)?;
    let mut expected = content(LARGE, 2);
    expected[from..from + change.len()].copy_from_slice(&change);
    ensure!(fs::read(&file)? == expected, "a patched object came back otherwise");
    fs::remove_file(&file)?;
    bed.object(&["verify", &name(LARGE), &name(SIZES[4])])?;
    // Who puts is killed in the middle: nothing is seen of it.
    let mut put = bed.begin(&["put", text(&bed.file(&format!("source-{LARGE}")))?, "tests/never"])?;
    thread::sleep(Duration::from_millis(150));
    put.kill()?;
    put.wait()?;
    ensure!(!bed.object(&["ls", "tests", "--json"])?.contains("never"), "half a put is seen");
    Ok(())
}

/// A brick is evicted: others come to have what it had, and it nothing. Then another one dies, and all is there.
pub(super) fn brick_evicted(binary: &Path) -> Result<()> {
    const SIZES: [usize; 3] = [300_001, 3_000_000, 40 << 20];
    let mut bed = Bed::start(binary)?;
    for bytes in SIZES {
        bed.put(bytes, bytes as u64)?;
    }
    bed.cluster.admin(&["brick", "evict", "1", "--yes"])?;
    let begun = Instant::now();
    let has_place = |stat: &Value| {
        let segments = stat["segments"].as_array().cloned().unwrap_or_default();
        let places =
            segments.iter().flat_map(|segment| segment["places"].as_array().cloned().unwrap_or_default());
        places.into_iter().any(|place| place[1] == 1)
    };
    for bytes in SIZES {
        while has_place(&bed.stat(&name(bytes))?) {
            ensure!(begun.elapsed() < RESTORED, "{} is still to be at brick-1", name(bytes));
            thread::sleep(Duration::from_millis(200));
        }
    }
    eprintln!("    what brick-1 had is elsewhere after {:.1} s", begun.elapsed().as_secs_f64());
    bed.cluster.bricks[0].kill()?;
    bed.cluster.bricks[1].kill()?;
    for bytes in SIZES {
        bed.reads(bytes, bytes as u64)?;
    }
    Ok(())
}

/// Bricks join: what is there is moved to them until all are about equally full, and all of it is there.
pub(super) fn brick_joins(binary: &Path) -> Result<()> {
    const SIZES: [usize; 4] = [300_001, 3_000_000, 500 << 20, 510 << 20];
    let spec =
        Spec { bricks: 4, storage: Storage { disk_bytes: 1 << 30, ..Storage::default() }, ..Spec::default() };
    let mut bed = Bed { cluster: Cluster::start(binary, &spec)? };
    for bytes in SIZES {
        bed.put(bytes, bytes as u64)?;
        fs::remove_file(bed.file(&format!("source-{bytes}")))?;
    }
    bed.cluster.add_brick(5, &spec)?;
    let begun = Instant::now();
    let fullness = |bed: &Bed| -> Result<Vec<f64>> {
        let status = bed.cluster.status()?;
        let bytes = |brick: &Value, of: &str| brick[of].as_u64().unwrap_or(0) as f64;
        let fill = |brick| bytes(brick, "used_bytes") / bytes(brick, "capacity_bytes").max(1.0);
        Ok(status["bricks"].as_array().context("a list of bricks")?.iter().map(fill).collect())
    };
    // By how much the fullest one is above the mean.
    let above =
        |all: &[f64]| all.iter().copied().fold(0.0, f64::max) - all.iter().sum::<f64>() / all.len() as f64;
    let mut all = fullness(&bed)?;
    while all.len() < 5 || above(&all) > 0.06 {
        ensure!(begun.elapsed() < 2 * RESTORED, "bricks are still as full as this: {all:.2?}");
        thread::sleep(Duration::from_millis(200));
        all = fullness(&bed)?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    eprintln!("    bricks are as full as this after {seconds:.1} s: {all:.2?}");
    for bytes in SIZES {
        bed.reads(bytes, bytes as u64)?;
    }
    bed.object(&["verify", &name(SIZES[2]), &name(SIZES[3])])?;
    bed.cluster.bricks[0].kill()?;
    for bytes in SIZES {
        bed.reads(bytes, bytes as u64)?;
    }
    Ok(())
}

/// Who puts is killed in the middle, and goes on later; meanwhile the directory started anew, a brick lost its disks, or the file was changed.
pub(super) fn put_resumed(binary: &Path) -> Result<()> {
    let mut bed = Bed::start(binary)?;
    let (source, object) = (bed.source(LARGE, 4)?, name(LARGE));
    let notes = bed.file("notes");
    let put = ["put", text(&source)?, &object, "--resume", text(&notes)?, "--json"];
    let stored_before = |output: &str| -> Result<u64> {
        let value: Value = serde_json::from_str(output)?;
        value["stored_before_bytes"].as_u64().context("it says how much was stored before")
    };
    bed.kill_put(&put, &notes)?;
    let old = fs::read(&notes)?;
    bed.cluster.directory.kill()?;
    bed.cluster.directory.start_again()?;
    let before = stored_before(&bed.object(&put)?)?;
    ensure!(before >= 32 << 20, "{before} bytes were stored before");
    ensure!(!notes.exists(), "the notes of a put that is done stay");
    bed.reads(LARGE, 4)?;
    // It ended after the object was stored, and before the notes were removed.
    fs::write(&notes, &old)?;
    let before = stored_before(&bed.object(&put)?)?;
    ensure!(before == 0, "{before} bytes of an object that is visible were gone on with");
    // Its second segment changes, and brick 1 comes back with nothing.
    bed.kill_put(&put, &notes)?;
    bed.cluster.bricks[0].kill()?;
    let mut expected = content(LARGE, 4);
    expected[40 << 20..50 << 20].copy_from_slice(&content(10 << 20, 5));
    fs::write(&source, &expected)?;
    bed.object(&put)?;
    bed.cluster.bricks[0].start_again()?;
    let file = bed.file("read");
    bed.object(&["get", &object, text(&file)?])?;
    ensure!(fs::read(&file)? == expected, "a file that was changed meanwhile came back otherwise");
    // Notes of another object, and damaged ones.
    bed.kill_put(&put, &notes)?;
    let other = bed.try_object(&["put", text(&source)?, "tests/other", "--resume", text(&notes)?])?;
    let why = String::from_utf8_lossy(&other.stderr);
    ensure!(
        !other.status.success() && why.contains(&format!("of a put with --survive 1 of {object}")),
        "{why}"
    );
    let mut damaged = fs::read(&notes)?;
    let last = damaged.len() - 5;
    damaged[last] ^= 1;
    fs::write(&notes, damaged)?;
    let refused = bed.try_object(&put)?;
    let why = String::from_utf8_lossy(&refused.stderr);
    ensure!(!refused.status.success() && why.contains("damaged"), "{why}");
    Ok(())
}

/// Who patches is killed in the middle, and goes on later; what is appended is not appended twice.
pub(super) fn patch_resumed(binary: &Path) -> Result<()> {
    const BEFORE: usize = 5_000_000;
    const AT: usize = 1_000_000;
    let bed = Bed::start(binary)?;
    bed.put(BEFORE, 6)?;
    let (source, object) = (bed.source(LARGE, 4)?, name(BEFORE));
    let (notes, file) = (bed.file("notes"), bed.file("read"));
    let notes_of = |ways: &[&str]| -> Result<Vec<String>> {
        let fixed = ["patch", text(&source)?, &object, "--resume", text(&notes)?, "--json"];
        Ok(fixed.iter().chain(ways).map(|word| (*word).to_owned()).collect())
    };
    let goes_on = |patch: &[&str], expected: &[u8]| -> Result<()> {
        let value: Value = serde_json::from_str(&bed.object(patch)?)?;
        let before = value["stored_before_bytes"].as_u64().context("it says how much was stored before")?;
        ensure!(before >= 32 << 20 && !notes.exists(), "{before} bytes were stored before");
        bed.object(&["get", &object, text(&file)?])?;
        ensure!(fs::read(&file)? == expected, "what was patched came back otherwise");
        bed.object(&["verify", &object]).map(drop)
    };
    let append = notes_of(&["--append"])?;
    let append: Vec<&str> = append.iter().map(String::as_str).collect();
    bed.kill_put(&append, &notes)?;
    let old = fs::read(&notes)?;
    let expected = [content(BEFORE, 6), content(LARGE, 4)].concat();
    goes_on(&append, &expected)?;
    // It ended after the object was patched, and before the notes were removed.
    fs::write(&notes, &old)?;
    let refused = bed.try_object(&append)?;
    let why = String::from_utf8_lossy(&refused.stderr);
    ensure!(!refused.status.success() && why.contains("may have been done"), "{why}");
    ensure!(notes.exists(), "its notes are gone, and the next try would append once more");
    let at = notes_of(&["--at", &AT.to_string()])?;
    let at: Vec<&str> = at.iter().map(String::as_str).collect();
    let refused = bed.try_object(&at)?;
    let why = String::from_utf8_lossy(&refused.stderr);
    ensure!(!refused.status.success() && why.contains("of a patch with --append"), "{why}");
    fs::remove_file(&notes)?;
    bed.kill_put(&at, &notes)?;
    let mut patched = expected;
    patched[AT..AT + LARGE].copy_from_slice(&content(LARGE, 4));
    goes_on(&at, &patched)
}

/// Bricks look every half minute whether one is lost, and try again after a minute.
const RESTORED: Duration = Duration::from_secs(300);

/// 5 GiB, put while a brick dies and read while another stands still, each by a process that stays small.
pub(super) fn five_gib(binary: &Path) -> Result<()> {
    const BYTES: u64 = 5 << 30;
    let spec =
        Spec { bricks: 8, storage: Storage { disk_bytes: 3 << 30, ..Storage::default() }, ..Spec::default() };
    let mut bed = Bed { cluster: Cluster::start(binary, &spec)? };
    let (source, copy) = (bed.file("source"), bed.file("copy"));
    write_pattern(&source, BYTES)?;
    let (source, copy) = (text(&source)?.to_owned(), text(&copy)?.to_owned());
    let put = bed.begin(&["put", &source, "tests/large"])?;
    let put = Watched::of(put, || thread::sleep(Duration::from_secs(2)));
    bed.cluster.bricks[0].kill()?;
    put.end("put")?;
    bed.cluster.bricks[0].start_again()?;
    let get = bed.begin(&["get", "tests/large", &copy])?;
    let get = Watched::of(get, || thread::sleep(Duration::from_secs(2)));
    bed.cluster.bricks[1].stand_still()?;
    let got = get.end("get");
    bed.cluster.bricks[1].go_on()?;
    got?;
    let compared = Command::new("cmp").args([&source, &copy]).output()?;
    ensure!(compared.status.success(), "{}", String::from_utf8_lossy(&compared.stdout));
    fs::remove_file(&copy)?;
    // 10 MiB of it are replaced while another brick stands still.
    let change = content(10 << 20, 5);
    fs::write(bed.file("patch"), &change)?;
    let patch = bed.begin(&["patch", text(&bed.file("patch"))?, "tests/large", "--at", "4GiB"])?;
    let patch = Watched::of(patch, || ());
    bed.cluster.bricks[2].stand_still()?;
    let patched = patch.end("patch");
    bed.cluster.bricks[2].go_on()?;
    patched?;
    bed.object(&["verify", "tests/large"])?;
    let part = bed.file("part");
    bed.object(&["get", "tests/large", text(&part)?, "--from", "4GiB", "--bytes", "100"])?;
    ensure!(fs::read(&part)? == change[..100], "a part differs");
    Ok(())
}

/// A process that is to stay below [`RESIDENT_MAX`].
struct Watched {
    child: std::process::Child,
    begun: Instant,
}

/// What a process may have resident that puts or reads an object, however large that is.
const RESIDENT_MAX: u64 = 256 << 20;

impl Watched {
    fn of(child: std::process::Child, meanwhile: impl FnOnce()) -> Watched {
        let begun = Instant::now();
        meanwhile();
        Watched { child, begun }
    }

    fn end(mut self, what: &str) -> Result<()> {
        let mut most = 0;
        let status = loop {
            most = peak_bytes(self.child.id()).unwrap_or(0).max(most);
            match self.child.try_wait()? {
                Some(status) => break status,
                None => thread::sleep(Duration::from_millis(50)),
            }
        };
        ensure!(
            status.success(),
            "{what}: {}",
            String::from_utf8_lossy(&self.child.wait_with_output()?.stderr)
        );
        let seconds = self.begun.elapsed().as_secs_f64();
        eprintln!("    {what} of 5 GiB: {seconds:.1} s, {} MiB resident at most", most >> 20);
        ensure!(most <= RESIDENT_MAX, "{what} had {} MiB resident", most >> 20);
        Ok(())
    }
}

fn write_pattern(file: &Path, bytes: u64) -> Result<()> {
    let mut file = std::io::BufWriter::new(fs::File::create(file)?);
    let mut block = content(1 << 20, 99);
    for number in 0..bytes >> 20 {
        block[..8].copy_from_slice(&number.to_le_bytes());
        file.write_all(&block)?;
    }
    Ok(file.flush()?)
}

struct Bed {
    cluster: Cluster,
}

impl Bed {
    fn start(binary: &Path) -> Result<Bed> {
        let spec = Spec {
            bricks: BRICKS,
            storage: Storage { disk_bytes: 1 << 30, ..Storage::default() },
            ..Spec::default()
        };
        Ok(Bed { cluster: Cluster::start(binary, &spec)? })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.cluster.dir.join(name)
    }

    fn command(&self, arguments: &[&str]) -> Result<Command> {
        let config = self.file("gateway-1/gateway.toml");
        let mut command = Command::new(self.cluster.binary());
        command.args(["--config", text(&config)?, "object"]).args(arguments);
        Ok(command)
    }

    fn try_object(&self, arguments: &[&str]) -> Result<Output> {
        Ok(self.command(arguments)?.output()?)
    }

    fn object(&self, arguments: &[&str]) -> Result<String> {
        succeeded(arguments, self.try_object(arguments)?)
    }

    fn begin(&self, arguments: &[&str]) -> Result<std::process::Child> {
        Ok(self.command(arguments)?.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)
    }

    /// Begins to put, and is killed when some of it is stored.
    fn kill_put(&self, arguments: &[&str], notes: &Path) -> Result<()> {
        let mut put = self.begin(arguments)?;
        let begun = Instant::now();
        while fs::metadata(notes).map_or(0, |file| file.len()) < 200 {
            ensure!(begun.elapsed() < RESTORED && put.try_wait()?.is_none(), "nothing is noted of a put");
            thread::sleep(Duration::from_millis(2));
        }
        put.kill()?;
        put.wait()?;
        Ok(())
    }

    fn end(&self, child: std::process::Child) -> Result<()> {
        succeeded(&["put"], child.wait_with_output()?).map(drop)
    }

    /// A file of so many bytes that no other seed gives.
    fn source(&self, bytes: usize, seed: u64) -> Result<PathBuf> {
        let file = self.file(&format!("source-{bytes}"));
        fs::write(&file, content(bytes, seed))?;
        Ok(file)
    }

    fn put(&self, bytes: usize, seed: u64) -> Result<()> {
        let source = self.source(bytes, seed)?;
        self.object(&["put", text(&source)?, &name(bytes)]).map(drop)
    }

    /// A bucket is given to a stream: what is put into it and read from it is served for that.
    fn belongs_to_a_stream(&self) -> Result<()> {
        let bytes = SIZES[4];
        self.cluster.admin(&["stream", "create", "gold", "--weight", "300"])?;
        self.cluster.admin(&["bucket", "set", "photos", "--stream", "gold"])?;
        let listed = self.cluster.admin(&["bucket", "list"])?;
        ensure!(listed.contains("photos") && listed.contains("gold"), "{listed}");
        let (source, read) = (self.source(bytes, 9)?, self.file("read"));
        // A unit for each 4 KiB, and some for each request.
        let least = (bytes / 4096) as u64;
        self.object(&["put", text(&source)?, "photos/a"])?;
        let put = self.served_for_gold(least)?;
        self.object(&["get", "photos/a", text(&read)?])?;
        self.served_for_gold(put + least)?;
        self.cluster.admin(&["bucket", "set", "photos", "--stream", "default"])?;
        self.cluster.admin(&["stream", "delete", "gold"]).map(drop)
    }

    /// What was served for the stream 'gold' once it is as much as this, and does not grow any more.
    fn served_for_gold(&self, least: u64) -> Result<u64> {
        let (begun, mut before) = (Instant::now(), None);
        loop {
            let all: Value = serde_json::from_str(&self.cluster.admin(&["stream", "list", "--json"])?)?;
            let streams = all["streams"].as_array().context("streams are listed")?;
            let gold = streams.iter().find(|stream| stream["name"] == "gold").context("it was made")?;
            ensure!(gold["buckets"] == serde_json::json!(["photos"]), "{gold}");
            let served = gold["served_units"].as_u64();
            if served == before && served >= Some(least) {
                return served.context("it is a number");
            }
            before = served;
            ensure!(begun.elapsed() < RESTORED, "{gold}: less than {least}");
            // Bricks tell of it a few times a second.
            thread::sleep(Duration::from_millis(1500));
        }
    }

    fn stat(&self, object: &str) -> Result<Value> {
        Ok(serde_json::from_str(&self.object(&["stat", object, "--json"])?)?)
    }

    /// What is patched is what it was, but for what was replaced or appended, and shares the segments that were left as they are.
    fn patches(&self) -> Result<()> {
        let (size, source) = (SIZES[5], self.file("patch"));
        let mut expected = content(size, size as u64);
        // A byte, what lies in two segments and goes beyond the end, the last ones of the first size, and more than a segment behind the end.
        let places = [Some(0), Some((32 << 20) - 70_000), Some(size - 5), None];
        for ((seed, at), bytes) in (1..).zip(places).zip([1, 100_000, 5, 40 << 20]) {
            let change = content(bytes, seed);
            fs::write(&source, &change)?;
            let place = at.map_or(vec!["--append".to_owned()], |at| vec!["--at".to_owned(), at.to_string()]);
            let mut arguments = vec!["patch", text(&source)?];
            let object = name(size);
            arguments.push(&object);
            arguments.extend(place.iter().map(String::as_str));
            self.object(&arguments)?;
            let at = at.unwrap_or(expected.len());
            expected.resize(expected.len().max(at + bytes), 0);
            expected[at..at + bytes].copy_from_slice(&change);
        }
        let stat = self.stat(&name(size))?;
        let segments = stat["segments"].as_array().cloned().unwrap_or_default();
        let versions: Vec<&Value> = segments.iter().map(|segment| &segment["version"]).collect();
        ensure!(
            versions.len() == 3 && versions[0] != versions[1] && versions[1] == versions[2],
            "{versions:?}"
        );
        ensure!(versions[2] == &stat["version"], "{stat}");
        let file = self.file("read");
        self.object(&["get", &name(size), text(&file)?])?;
        ensure!(fs::read(&file)? == expected, "a patched object came back otherwise");
        self.object(&["verify", &name(size)])?;
        fs::remove_file(&file)?;
        let behind = (expected.len() + 1).to_string();
        let refused = self.try_object(&["patch", text(&source)?, &name(size), "--at", &behind])?;
        let why = String::from_utf8_lossy(&refused.stderr);
        ensure!(!refused.status.success() && why.contains("behind the end"), "{why}");
        Ok(())
    }

    /// It comes back as it was put.
    fn reads(&self, bytes: usize, seed: u64) -> Result<()> {
        let file = self.file("read");
        self.object(&["get", &name(bytes), text(&file)?])?;
        ensure!(fs::read(&file)? == content(bytes, seed), "an object of {bytes} bytes came back otherwise");
        Ok(fs::remove_file(&file)?)
    }
}

fn name(bytes: usize) -> String {
    format!("tests/{bytes}")
}

fn content(bytes: usize, seed: u64) -> Vec<u8> {
    let mut content = vec![0; bytes];
    base::Rng::with_seed(seed).fill(&mut content);
    content
}

fn succeeded(arguments: &[&str], output: Output) -> Result<String> {
    let why = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "brickwork object {}: {why}", arguments.join(" "));
    Ok(String::from_utf8(output.stdout)?)
}
