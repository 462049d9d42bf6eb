//! What a disk is made to look like. The file is TOML, and every key may be left out:
//!
//! ```toml
//! late_ms = 20                    # each access (read, write, flush) is answered so much later
//! dilate = 4                      # the drive's time passes so many times slower than the clock
//!
//! [drive]
//! model = "quantum-atlas-10k"     # one of the library's, or the path of a drive's file
//! heads = "sptf"                  # how the drive's queue is served: fcfs, sstf, clook or sptf
//! parts = "uncached"              # or "mechanics": seek, rotation and transfer only
//! slow_percent = 100              # 200: every time of the drive is twice as long
//! claim_one_way_us = 0            # a message's way between bricks, as claims of reads reckon with it, in the drive's time
//! nvram_bytes = 0                 # blocks on their way home are answered from a memory of this size, and destaged behind it
//! data_bytes = 134217728          # the first so many bytes of the blocks' area are spread over the drive; all without
//! ```
//!
//! An empty file emulates nothing.

use base::{BrickId, Time};
use model::drive::{self, Drive, DriveModel, DriveOptions};
use reads::distribute::claim::Config;
use reads::seat::heads::{Heads, Surroundings};
use rules::heads::Policy;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use store::Io;

/// Nobody means more, and a brick that waits longer for its disk than this is of no use to a test.
const LATE_MS_MAX: f64 = 60_000.0;
const DILATE_MAX: u32 = 1_000;
const SLOW_PERCENT_MIN: u32 = 1;
const SLOW_PERCENT_MAX: u32 = 10_000;

/// A file of settings that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("emulated disk '{}': {why}", path.display())]
pub struct SettingsError {
    pub path: PathBuf,
    /// Line, field, and what to do.
    pub why: String,
}

/// The emulation of the disks of a brick.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How much later than the real disk each access is answered.
    pub late: Duration,
    /// How many times slower than the clock the drives' time passes; at least 1.
    pub dilate: u32,
    /// The drive that each disk is to be.
    pub drive: Option<DriveSettings>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { late: Duration::ZERO, dilate: 1, drive: None }
    }
}

impl PartialEq for DriveSettings {
    fn eq(&self, other: &DriveSettings) -> bool {
        self.text == other.text
    }
}

/// A modelled drive, and what a brick puts around it.
#[derive(Debug, Clone)]
pub struct DriveSettings {
    /// All that the files say of it.
    text: String,
    pub model: Arc<DriveModel>,
    /// What of it is in force.
    pub options: DriveOptions,
    /// How what waits for the arm is chosen.
    pub heads: Policy,
    /// A message's way between bricks, as claims reckon with it, in nanoseconds of the drive's time.
    pub claim_one_way_ns: u64,
    /// Bytes of written blocks that are answered before the drive has them; 0 for none.
    pub nvram_bytes: u64,
    /// Bytes of the area of blocks that are spread over the drive; `None` for all.
    pub data_bytes: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SettingsFile {
    #[serde(default)]
    late_ms: f64,
    #[serde(default = "one")]
    dilate: u32,
    drive: Option<DriveFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DriveFile {
    model: String,
    #[serde(default)]
    heads: Choice,
    #[serde(default)]
    parts: Parts,
    #[serde(default = "hundred")]
    slow_percent: u32,
    #[serde(default)]
    claim_one_way_us: u32,
    #[serde(default)]
    nvram_bytes: u64,
    data_bytes: Option<u64>,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Choice {
    Fcfs,
    Sstf,
    Clook,
    #[default]
    Sptf,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Parts {
    #[default]
    Uncached,
    Mechanics,
}

fn one() -> u32 {
    1
}

fn hundred() -> u32 {
    100
}

impl Settings {
    /// The settings that `text` describes. A drive's file is sought from `folder`.
    ///
    /// # Errors
    /// What is wrong, with line and field, for people.
    pub fn parse(text: &str, folder: &Path) -> Result<Settings, String> {
        let file: SettingsFile = toml::from_str(text).map_err(|error| located(text, &error))?;
        if !(0.0..=LATE_MS_MAX).contains(&file.late_ms) {
            return Err(format!("late_ms is {}; it must be between 0 and {LATE_MS_MAX}", file.late_ms));
        }
        if !(1..=DILATE_MAX).contains(&file.dilate) {
            return Err(format!("dilate is {}; it must be between 1 and {DILATE_MAX}", file.dilate));
        }
        let drive = file.drive.map(|drive| DriveSettings::new(&drive, folder)).transpose()?;
        Ok(Settings { late: Duration::from_secs_f64(file.late_ms * 1e-3), dilate: file.dilate, drive })
    }
}

impl Settings {
    /// The heads of as many disks of `brick`, where they look like drives. Platters of all bricks of a machine turn together,
    /// as in a simulation that begins at zero.
    pub fn heads(&self, brick: BrickId, disks: usize, now: Time) -> Vec<Heads<Io>> {
        let Some(drive) = &self.drive else { return Vec::new() };
        let surroundings = Surroundings {
            claims: Config { policy: drive.heads, ..Config::disk(brick, drive.claim_one_way_ns) },
            dilate: self.dilate,
            nvram_bytes: drive.nvram_bytes,
            data_bytes: drive.data_bytes,
        };
        let device = || Box::new(Drive::with_options(drive.model.clone(), drive.options));
        (0..disks).map(|_| Heads::new(surroundings, device(), now)).collect()
    }
}

impl DriveSettings {
    fn new(file: &DriveFile, folder: &Path) -> Result<DriveSettings, String> {
        if !(SLOW_PERCENT_MIN..=SLOW_PERCENT_MAX).contains(&file.slow_percent) {
            let percent = file.slow_percent;
            return Err(format!(
                "drive.slow_percent is {percent}; it must be between {SLOW_PERCENT_MIN} and {SLOW_PERCENT_MAX}"
            ));
        }
        if file.data_bytes.is_some_and(|bytes| bytes < base::BLOCK_U64) {
            return Err("drive.data_bytes is less than a block of 4096 bytes".to_owned());
        }
        let heads = match file.heads {
            Choice::Fcfs => Policy::Fcfs,
            Choice::Sstf => Policy::Sstf,
            Choice::Clook => Policy::Clook,
            Choice::Sptf => Policy::Sptf,
        };
        let options = match file.parts {
            Parts::Uncached => DriveOptions::UNCACHED,
            Parts::Mechanics => DriveOptions::MECHANICS,
        };
        let model = load(&file.model, folder)?.slowed(file.slow_percent);
        let DriveFile { claim_one_way_us, nvram_bytes, data_bytes, .. } = file;
        let around = (claim_one_way_us, nvram_bytes, data_bytes);
        Ok(DriveSettings {
            text: format!("{model:?} {options:?} {heads:?} {around:?}"),
            model: Arc::new(model),
            options,
            heads,
            claim_one_way_ns: u64::from(file.claim_one_way_us) * 1_000,
            nvram_bytes: file.nvram_bytes,
            data_bytes: file.data_bytes,
        })
    }
}

/// A drive of the library, or of a file.
fn load(model: &str, folder: &Path) -> Result<DriveModel, String> {
    if let Some(entry) = drive::find(model) {
        return DriveModel::parse(entry.id, entry.text).map_err(|error| error.to_string());
    }
    let path = folder.join(model);
    let text = std::fs::read_to_string(&path).map_err(|error| {
        format!(
            "drive.model is '{model}', which is neither a drive that `brickwork disk list` knows nor a file that can be read: {error}"
        )
    })?;
    DriveModel::parse(&path.display().to_string(), &text).map_err(|error| error.to_string())
}

fn located(text: &str, error: &toml::de::Error) -> String {
    let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    let message = error.message();
    line.map_or_else(|| message.to_owned(), |line| format!("line {line}: {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Settings, String> {
        Settings::parse(text, Path::new("."))
    }

    #[test]
    fn lateness_is_read_in_milliseconds() {
        let settings = parse("").expect("nothing");
        assert_eq!((settings.late, settings.dilate, settings.drive.is_none()), (Duration::ZERO, 1, true));
        assert_eq!(parse("late_ms = 20").expect("whole").late, Duration::from_millis(20));
        assert_eq!(parse("# slow\nlate_ms = 0.5\n").expect("a fraction").late, Duration::from_micros(500));
    }

    #[test]
    fn a_drive_is_the_librarys_or_a_files() {
        let settings =
            parse("dilate = 4\n[drive]\nmodel = \"quantum-atlas-10k\"\nslow_percent = 200").expect("known");
        let drive = settings.drive.expect("a drive");
        assert_eq!((settings.dilate, drive.heads, drive.nvram_bytes), (4, Policy::Sptf, 0));
        assert_eq!(drive.model.revolution_ns().map(|ns| ns / 1_000), Some(2 * 5_985));
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("mine.toml"), drive::find("hp-c3323a").unwrap().text).unwrap();
        let text = "[drive]\nmodel = \"mine.toml\"\nheads = \"clook\"\nparts = \"mechanics\"";
        let drive = Settings::parse(text, folder.path()).expect("a file").drive.expect("a drive");
        assert_eq!((drive.heads, drive.options), (Policy::Clook, DriveOptions::MECHANICS));
    }

    #[test]
    fn what_cannot_be_is_named() {
        let drive = |rest: &str| format!("[drive]\nmodel = \"quantum-atlas-10k\"\n{rest}");
        for (text, named) in [
            ("late_ms = -1".to_owned(), "late_ms is -1"),
            ("late_ms = nan".to_owned(), "late_ms is NaN"),
            ("late_ms = 1e9".to_owned(), "between 0 and 60000"),
            ("\nlate_ms = \"x\"".to_owned(), "line 2"),
            ("late = 3".to_owned(), "late_ms"),
            ("dilate = 0".to_owned(), "dilate is 0"),
            (drive("slow_percent = 0"), "slow_percent is 0"),
            (drive("data_bytes = 1"), "data_bytes"),
            (drive("heads = \"best\""), "line 3"),
            ("[drive]\nmodel = \"no-such\"".to_owned(), "brickwork disk list"),
        ] {
            let why = parse(&text).expect_err("refused");
            assert!(why.contains(named), "{text}: {why}");
        }
    }
}
