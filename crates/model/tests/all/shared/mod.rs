//! Reference data beside the repository, which is not part of it.

use std::path::PathBuf;

/// A file of reference data; `None`, said aloud, where it is absent.
pub(crate) fn text(path: &str) -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "a test may ask where its reference data lie")]
    let stated = std::env::var("BRICKWORK_SHARED").ok().map(PathBuf::from);
    let root =
        stated.unwrap_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")));
    let path = root.join(path);
    match std::fs::read_to_string(&path) {
        Ok(text) => Some(text),
        Err(error) => {
            eprintln!(
                "skipped: {}: {error}; BRICKWORK_SHARED names the directory of reference data",
                path.display()
            );
            None
        }
    }
}
