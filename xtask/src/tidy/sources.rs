//! One file at a time: how long it is, what it must not say, whether it says what it is for.

use std::path::Path;

const LINES_MAX: usize = 900;

/// Words of unfinished work. Each is cut in two here so that this file does not contain it.
const WORDS: &[&str] = &[
    concat!("to", "do!("),
    concat!("unimple", "mented!("),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("#[ig", "nore"),
];

/// Beginnings of paths that exist on one machine only.
const PATHS: &[&str] =
    &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];

/// How many functions may be longer than `clippy.toml` says. Only less from here on.
const LONG_FUNCTIONS: usize = 13;

/// A complaint if more functions are long than were, or fewer than is said above.
pub(super) fn check_long_functions<'a>(texts: impl Iterator<Item = &'a str>) -> Option<String> {
    let long = texts.flat_map(str::lines).filter(|line| line.trim_start().starts_with(EXPECTED_LONG)).count();
    let what = "functions are let off with `expect(clippy::too_many_lines)`";
    (long != LONG_FUNCTIONS).then(|| {
        format!("xtask/src/tidy/sources.rs: {long} {what}, {LONG_FUNCTIONS} are allowed: cut new ones up, or say how few are left")
    })
}

const EXPECTED_LONG: &str = "#[expect(clippy::too_many_lines";

/// Complaints about one file.
pub(super) fn check(path: &Path, text: &str) -> Vec<String> {
    let name = path.display();
    let mut complaints = Vec::new();
    if is_generated(path) {
        return complaints;
    }
    let lines = text.lines().count();
    if lines > LINES_MAX && is_rust(path) {
        complaints.push(format!("{name}: {lines} lines; cut it, {LINES_MAX} is the most"));
    }
    for (number, line) in text.lines().enumerate() {
        let number = number + 1;
        let found = WORDS.iter().chain(PATHS).filter(|word| line.contains(**word));
        complaints.extend(found.map(|word| format!("{name}:{number}: says `{word}`")));
    }
    if is_rust(path) && is_module(path) && !text.starts_with("//!") {
        complaints.push(format!("{name}: begins without a `//!` that says what it is for"));
    }
    complaints
}

fn is_rust(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs")
}

fn is_module(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "src")
}

fn is_generated(path: &Path) -> bool {
    path.ends_with("Cargo.lock") || path.components().any(|part| part.as_os_str() == "corpus")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complains_of_each_kind() {
        let path = Path::new("crates/x/src/lib.rs");
        assert!(check(path, "//! Good.\nfn f() {}\n").is_empty());
        assert_eq!(check(path, "fn f() {}\n").len(), 1);
        assert_eq!(check(path, concat!("//! Bad.\nfn f() { to", "do!() }\n")).len(), 1);
        assert_eq!(check(path, concat!("//! Bad.\nconst P: &str = \"/ro", "ot/x\";\n")).len(), 1);
        assert_eq!(check(path, &format!("//! Long.\n{}", "\n".repeat(LINES_MAX))).len(), 1);
    }

    #[test]
    fn the_place_of_a_word_is_named() {
        let complaints = check(Path::new("a.md"), concat!("one\ntwo FIX", "ME\n"));
        assert!(complaints[0].starts_with("a.md:2:"), "{complaints:?}");
    }
}
