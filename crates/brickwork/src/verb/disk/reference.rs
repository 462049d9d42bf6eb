//! Reference data of drives: which files are of which drive, and what kind each of them is.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

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
    /// The file's name without its directory and ending.
    pub(super) fn name(&self) -> String {
        self.path.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
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
    let bytes = std::fs::read(&path).with_context(|| format!("{} does not read", path.display()))?;
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
