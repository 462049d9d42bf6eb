//! The file of settings, looked at again and again: whoever writes it sees its effect within [`PERIOD`].

use super::settings::{Settings, SettingsError};
use crate::HostError;
use base::Time;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const PERIOD: Duration = Duration::from_millis(50);

/// The file, and as what it was read last.
#[derive(Debug)]
pub(super) struct Watched {
    path: PathBuf,
    seen: Option<Stamp>,
    next_look: Time,
}

/// What changes when a file does, or another takes its name.
type Stamp = (u64, u64, i64, i64);

impl Watched {
    pub(super) fn open(path: &Path, now: Time) -> Result<(Watched, Settings), HostError> {
        let stamp = stamp(path).ok();
        let settings = read(path)?;
        Ok((Watched { path: path.to_owned(), seen: stamp, next_look: now + PERIOD }, settings))
    }

    pub(super) fn next_look(&self) -> Time {
        self.next_look
    }

    /// The settings, when it is time to look and the file is not as it was. A file that cannot be used changes nothing,
    /// and is told of once.
    pub(super) fn changed(&mut self, now: Time) -> Option<Settings> {
        if now < self.next_look {
            return None;
        }
        self.next_look = now + PERIOD;
        let stamp = stamp(&self.path).ok();
        if stamp == self.seen {
            return None;
        }
        self.seen = stamp;
        match read(&self.path) {
            Ok(settings) => {
                tracing::info!(file = %self.path.display(), ?settings, "the emulation of the disks is changed");
                Some(settings)
            }
            Err(error) => {
                tracing::warn!(%error, "the emulation of the disks stays as it was");
                None
            }
        }
    }
}

fn stamp(path: &Path) -> io::Result<Stamp> {
    let metadata = fs::metadata(path)?;
    Ok((metadata.ino(), metadata.size(), metadata.mtime(), metadata.mtime_nsec()))
}

fn read(path: &Path) -> Result<Settings, SettingsError> {
    let failed = |why: String| SettingsError { path: path.to_owned(), why };
    let text = fs::read_to_string(path).map_err(|error| failed(format!("cannot read it: {error}")))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    Settings::parse(&text, folder).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_change_is_seen_and_a_mistake_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk.toml");
        let error = Watched::open(&path, Time(0)).unwrap_err().to_string();
        assert!(error.contains("disk.toml") && error.contains("cannot read it"), "{error}");
        fs::write(&path, "late_ms = 5").unwrap();
        let (mut file, settings) = Watched::open(&path, Time(0)).unwrap();
        assert_eq!(settings.late, Duration::from_millis(5));
        fs::write(&path, "late_ms = 50").unwrap();
        assert!(file.changed(Time(49 * MS)).is_none(), "it is not yet time to look");
        assert_eq!(file.changed(Time(50 * MS)).expect("changed").late, Duration::from_millis(50));
        assert!(file.changed(Time(100 * MS)).is_none());
        fs::write(&path, "late_ms = never").unwrap();
        assert!(file.changed(Time(150 * MS)).is_none());
        fs::remove_file(&path).unwrap();
        assert!(file.changed(Time(200 * MS)).is_none());
        fs::write(&path, "").unwrap();
        assert_eq!(file.changed(Time(250 * MS)).expect("changed").late, Duration::ZERO);
    }
}
