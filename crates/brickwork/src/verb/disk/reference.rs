//! Reference data of drives: which files are of which drive, and what kind each of them is.

use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use trace::compress::{self, Compression};

/// What a file of reference data holds, told by its first line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// `lbn,cylinder,head,sector,angle_rev,track_first_lbn,track_last_lbn,sectors_on_track`.
    AddressMap,
    /// `distance_cylinders,read_seek_ps,write_seek_ps`.
    Seeks,
    /// `issue_ms,lbn,blocks,is_read,service_ms`.
    Log,
    /// `lbn,blocks,read_in_r90,read_in_r67`: the stream of the curves.
    Workload,
    /// `config,read_write,scheduler,...`.
    Curves,
    Measured,
}

/// A file of reference data.
pub(super) struct Reference {
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
    pub(super) text: String,
}

impl Reference {
    /// The file's name without its directory and endings.
    pub(super) fn name(&self) -> String {
        let name = self.path.to_string_lossy();
        let plain = match Compression::of_name(&name) {
            Compression::None => self.path.clone(),
            _ => self.path.with_extension(""),
        };
        plain.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }
}

/// Reads files of reference data, and of directories those files whose names hold the drive's id, with or without its
/// maker.
pub(super) fn read(id: &str, paths: &[PathBuf]) -> Result<Vec<Reference>> {
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            for path in files_of(id, path)? {
                found.extend(open(path)?);
            }
        } else {
            let shown = path.display().to_string();
            let Some(reference) = open(path.clone())? else {
                bail!(
                    "{shown} is not reference data of a kind that is known; `brickwork help disk validate` lists them"
                );
            };
            found.push(reference);
        }
    }
    if found.is_empty() {
        bail!(
            "there are no reference data of {id} there; files of a directory are known by the drive's id in their names"
        );
    }
    Ok(found)
}

fn files_of(id: &str, directory: &Path) -> Result<Vec<PathBuf>> {
    let context = || format!("{} does not read", directory.display());
    let entries = std::fs::read_dir(directory).with_context(context)?;
    let mut paths =
        entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>().with_context(context)?;
    let plain = |text: &str| text.to_lowercase().replace(['-', '_', '.', ' '], "");
    let with_maker = plain(id);
    let without = plain(id.split_once('-').map_or(id, |(_, rest)| rest));
    paths.retain(|path| {
        let name = path.file_name().map_or_else(String::new, |name| plain(&name.to_string_lossy()));
        path.is_file() && (name.starts_with(&with_maker) || name.starts_with(&without))
    });
    paths.sort();
    Ok(paths)
}

fn open(path: PathBuf) -> Result<Option<Reference>> {
    let context = || format!("{} does not read", path.display());
    let file = File::open(&path).with_context(context)?;
    let mut bytes = Vec::new();
    compress::plain(Box::new(file))
        .and_then(|mut plain| plain.read_to_end(&mut bytes))
        .with_context(context)?;
    let Ok(text) = String::from_utf8(bytes) else { return Ok(None) };
    Ok(kind_of(&text).map(|kind| Reference { path, kind, text }))
}

fn kind_of(text: &str) -> Option<Kind> {
    let first = text.lines().next()?;
    let cells: Vec<&str> = first.split(',').collect();
    match cells.as_slice() {
        ["lbn", "cylinder", "head", ..] => Some(Kind::AddressMap),
        ["distance_cylinders", "read_seek_ps", ..] => Some(Kind::Seeks),
        ["issue_ms", "lbn", "blocks", ..] => Some(Kind::Log),
        ["lbn", "blocks", "read_in_r90", ..] => Some(Kind::Workload),
        ["config", "read_write", "scheduler", ..] => Some(Kind::Curves),
        _ => {
            let words: Vec<&str> = first.split_whitespace().collect();
            (matches!(words.first(), Some(&"R" | &"W")) && words.len() == 6).then_some(Kind::Measured)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use trace::compress::Sink;

    #[test]
    fn a_file_is_read_compressed_or_not_and_has_the_same_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let line = "R Miss 5068 16 15680 63910\n";
        for (file, compression) in [
            ("drive.trace", Compression::None),
            ("drive.trace.gz", Compression::Gzip),
            ("drive.trace.xz", Compression::Xz),
        ] {
            let path = folder.path().join(file);
            let mut sink = Sink::new(File::create(&path).expect("a file"), compression).expect("an encoder");
            sink.write_all(line.as_bytes()).expect("it is written");
            sink.finish().expect("it ends");
            let found = read("drive", &[path]).expect("it is known");
            let [reference] = &found[..] else { panic!("one file") };
            assert_eq!((reference.kind, &reference.text[..]), (Kind::Measured, line));
            assert_eq!(reference.name(), "drive");
        }
        let cut = folder.path().join("cut.trace.gz");
        std::fs::write(&cut, [0x1f, 0x8b, 8, 0]).expect("a file");
        let why = format!("{:#}", read("cut", &[cut]).err().expect("it is cut"));
        assert!(why.contains("cut.trace.gz does not read"), "{why}");
    }
}
