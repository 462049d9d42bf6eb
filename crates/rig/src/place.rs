//! Where things are: the binary that is tested, the workspace it was built from.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// The folder of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("rig lies in crates/ of the workspace")
}

/// The binary that was given, or the one that was built beside this program.
pub(crate) fn binary(given: Option<&Path>) -> Result<PathBuf> {
    let path = match given {
        Some(path) => path.to_owned(),
        None => std::env::current_exe()?.with_file_name("brickwork"),
    };
    path.canonicalize().with_context(|| format!("no binary {}", path.display()))
}
