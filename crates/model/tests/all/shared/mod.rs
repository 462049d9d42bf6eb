//! Reference data beside the repository, which is not part of it.

use std::path::PathBuf;

/// A file of reference data; `None`, said aloud, where it is absent.
pub(crate) fn text(path: &str) -> Option<String> {
    bytes(path).map(|bytes| String::from_utf8(bytes).expect("reference data are text"))
}

/// The same, of whatever is in it.
pub(crate) fn bytes(path: &str) -> Option<Vec<u8>> {
    #[expect(clippy::disallowed_methods, reason = "a test may ask where its reference data lie")]
    let stated = std::env::var("BRICKWORK_SHARED").ok().map(PathBuf::from);
    let root =
        stated.unwrap_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")));
    let path = root.join(path);
    match std::fs::read(&path) {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            eprintln!(
                "skipped: {}: {error}; BRICKWORK_SHARED names the directory of reference data",
                path.display()
            );
            None
        }
    }
}
