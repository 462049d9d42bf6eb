//! Files that must be whole after a crash, and that only their owner may read.

use anyhow::{Context, Result};
use std::fs::{self, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Makes `dir` and its parents, for the owner only.
pub fn make_dir(dir: &Path) -> Result<()> {
    let make = || -> std::io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        // A power cut must not take the folder away under the files that are kept in it.
        sync_folder(parent_of(&std::path::absolute(dir)?))
    };
    make().with_context(|| {
        format!("cannot make the directory {}; check its parent's permissions", dir.display())
    })
}

/// Replaces `path` with `content`, or makes it, for the owner only: after a crash there is the old file or the new one.
pub fn replace(path: &Path, content: &[u8]) -> Result<()> {
    outfile::write_private(path, content)
        .with_context(|| format!("cannot write {}; check permissions and free space", path.display()))
}

fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn sync_folder(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Reads a text file.
pub fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
