//! `cargo xtask tidy`: what the sources must keep, beyond what the compiler and clippy check.
//!
//! Reading order: `arrows` (who may know whom), `circles` (of files), `sources` (lengths, words, paths, module docs), `links`.

mod arrows;
mod circles;
mod links;
mod sources;

use crate::workspace;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Prints every complaint; an error if there is one.
pub(crate) fn verb() -> Result<()> {
    let complaints = complaints()?;
    for complaint in &complaints {
        println!("{complaint}");
    }
    if complaints.is_empty() {
        println!("tidy: nothing to complain of");
        return Ok(());
    }
    bail!("tidy: {} complaints", complaints.len())
}

/// All complaints, each a line that names a file.
pub(crate) fn complaints() -> Result<Vec<String>> {
    let mut complaints = arrows::check(workspace::metadata()?);
    complaints.extend(ruled(workspace::root(), arrows::PURE, "pure-clippy.toml", "is pure"));
    complaints.extend(ruled(
        workspace::root(),
        &WRITING,
        "writing-clippy.toml",
        "writes files where users say",
    ));
    complaints.extend(documents_present(workspace::root()));
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(workspace::root().join(&path));
        text.ok().map(|text| (path, text))
    };
    let texts: Vec<(PathBuf, String)> = tracked_files()?.into_iter().filter_map(read).collect();
    for (path, text) in &texts {
        complaints.extend(sources::check(path, text));
        if path.extension().is_some_and(|extension| extension == "md") {
            complaints.extend(links::check(workspace::root(), path, text));
        }
    }
    complaints.extend(sources::check_long_functions(texts.iter().map(|(_, text)| text.as_str())));
    let rust = texts.iter().filter(|(path, _)| path.extension().is_some_and(|extension| extension == "rs"));
    complaints.extend(circles::check(rust.map(|(path, text)| (path.as_path(), text.as_str()))));
    Ok(complaints)
}

/// All files that belong to the repository: tracked ones and new ones that are not ignored.
fn tracked_files() -> Result<Vec<PathBuf>> {
    let mut command = Command::new("git");
    command.current_dir(workspace::root()).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]);
    let output = command.output().context("running git ls-files")?;
    if !output.status.success() {
        bail!("git ls-files: {}", String::from_utf8_lossy(&output.stderr));
    }
    let names = output.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(|name| PathBuf::from(String::from_utf8_lossy(name).into_owned())).collect())
}

/// Crates whose commands write files where their users say.
const WRITING: [&str; 2] = ["brickwork", "lab"];

/// The `clippy.toml` of each of these crates is the one that bans what they must not do.
fn ruled(root: &Path, crates: &[&str], rules: &str, why: &str) -> Vec<String> {
    let file = root.join("crates").join(rules).canonicalize();
    let is_linked = |name: &&&str| {
        let own = root.join("crates").join(name).join("clippy.toml").canonicalize();
        !matches!((&file, own), (Ok(rules), Ok(own)) if *rules == own)
    };
    let complain =
        |name: &&str| format!("crates/{name}/clippy.toml: must be a link to ../{rules}, as {name} {why}");
    crates.iter().filter(is_linked).map(complain).collect()
}

fn documents_present(root: &Path) -> Vec<String> {
    let wanted = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "LICENSE", ".ci/run"];
    let missing = wanted.iter().filter(|name| !root.join(name).is_file());
    missing.map(|name| format!("{name}: is missing")).collect()
}
