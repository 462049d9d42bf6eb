//! Files of a crate that import each other in a circle: none of them can be read or changed by itself. Circles that are still there are listed in
//! `circles.txt`; the list may only shrink.
//!
//! Imports are read as text: `use` and paths that begin with `crate`, `super`, `self` or a module's own child, each followed through `pub use` to the file
//! that has the name. What only tests use is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const KNOWN: &str = include_str!("circles.txt");

type Module = Vec<String>;

/// Complaints about circles that are not listed, and about listed files that are in none any more. Takes all Rust files with their text.
pub(super) fn check<'a>(files: impl Iterator<Item = (&'a Path, &'a str)>) -> Vec<String> {
    complaints(&found(files), KNOWN)
}

fn found<'a>(files: impl Iterator<Item = (&'a Path, &'a str)>) -> Vec<BTreeSet<String>> {
    let mut crates: BTreeMap<PathBuf, BTreeMap<Module, Source>> = BTreeMap::new();
    for (path, text) in files {
        let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
        let Some(at) = parts.iter().position(|part| *part == "src") else { continue };
        let module = module(&parts[at + 1..]);
        let source = Source::of(path, text, &module);
        crates.entry(parts[..at].iter().collect()).or_default().insert(module, source);
    }
    crates.into_values().flat_map(|modules| circles(&without_tests(modules))).collect()
}

fn complaints(found: &[BTreeSet<String>], known: &str) -> Vec<String> {
    let listed: Vec<BTreeSet<&str>> = known.split("\n\n").map(files_of).collect();
    let is_listed = |circle: &&BTreeSet<String>| {
        listed.iter().any(|known| circle.iter().all(|file| known.contains(file.as_str())))
    };
    let new = found.iter().filter(|circle| !is_listed(circle)).map(|circle| {
        let names: Vec<&str> = circle.iter().map(String::as_str).collect();
        format!("{}: a new circle of files that import each other: {}", names[0], names.join(" "))
    });
    let in_circle = |file: &&&str| found.iter().any(|circle| circle.contains(**file));
    let gone = listed.iter().flatten().filter(|file| !in_circle(file));
    let gone = gone
        .map(|file| format!("{file}: is in no circle any more; take it out of xtask/src/tidy/circles.txt"));
    new.chain(gone).collect()
}

fn files_of(block: &str) -> BTreeSet<&str> {
    block.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

/// The module of a file, by its path below `src`.
fn module(parts: &[&str]) -> Module {
    let mut module: Module = parts.iter().map(|part| part.trim_end_matches(".rs").to_owned()).collect();
    if module.last().is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main")) {
        module.pop();
    }
    module
}

/// What matters of one file.
struct Source {
    file: String,
    /// Modules that only tests have.
    tests: BTreeSet<String>,
    /// Absolute paths that it names: modules, and then one name.
    uses: Vec<Module>,
    /// What it hands on: a name, and the path behind it.
    hands_on: BTreeMap<String, Module>,
}

impl Source {
    fn of(path: &Path, text: &str, module: &Module) -> Source {
        let code = without_comments(text);
        let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let children = |code: &str| -> BTreeSet<String> {
            let declared = code.split("mod ").skip(1).filter_map(|after| after.split_once(';'));
            declared.map(|(name, _)| name.to_owned()).filter(|name| name.chars().all(is_word)).collect()
        };
        let of_tests = code.split("#[cfg(test)]\n").skip(1).filter_map(|after| after.lines().next());
        let tests: BTreeSet<String> = of_tests.flat_map(children).collect();
        let children = children(code);
        let absolute = |path: &[String]| absolute(path, module, &children);
        let (statements, rest) = statements(code);
        let (mut uses, mut hands_on) = (Vec::new(), BTreeMap::new());
        for statement in statements {
            for (path, name) in leaves(&statement.tree) {
                let Some(path) = absolute(&path) else { continue };
                let is_used = rest.split(|c: char| !is_word(c)).any(|word| word == name);
                if !statement.hands_on || is_used {
                    uses.push(path.clone());
                }
                if statement.hands_on {
                    hands_on.insert(name, path);
                }
            }
        }
        uses.extend(paths(&rest).iter().filter_map(|path| absolute(path)));
        Source { file: path.display().to_string(), tests, uses, hands_on }
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn without_comments(text: &str) -> String {
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.map(|line| line.trim_start().to_owned() + "\n").collect()
}

/// The absolute form of a path: none if it leads to another crate.
fn absolute(path: &[String], module: &Module, children: &BTreeSet<String>) -> Option<Module> {
    let (first, rest) = path.split_first()?;
    let mut base = match first.as_str() {
        "crate" => Module::new(),
        "self" => module.clone(),
        "super" => module[..module.len().checked_sub(1)?].to_vec(),
        child if children.contains(child) => [module.clone(), vec![child.to_owned()]].concat(),
        _ => return None,
    };
    for segment in rest {
        match segment.as_str() {
            "super" => drop(base.pop()?),
            "self" => {}
            _ => base.push(segment.clone()),
        }
    }
    Some(base)
}

struct Statement {
    hands_on: bool,
    tree: String,
}

/// The `use` statements of some code, and what is left without them.
fn statements(code: &str) -> (Vec<Statement>, String) {
    let (mut found, mut rest) = (Vec::new(), String::new());
    let mut open: Option<Statement> = None;
    let mut is_of_tests = false;
    for line in code.lines() {
        let begins = ["use ", "pub use ", "pub(crate) use ", "pub(super) use "];
        let begun = begins.iter().find_map(|begin| line.strip_prefix(begin));
        let before = std::mem::replace(&mut is_of_tests, line == "#[cfg(test)]");
        let mut statement = match (open.take(), begun) {
            (Some(open), _) => Statement { tree: open.tree + line, ..open },
            (None, Some(_)) if before && line.ends_with(';') => continue,
            (None, Some(tree)) => Statement { hands_on: line.starts_with("pub"), tree: tree.to_owned() },
            (None, None) => {
                rest += line;
                rest.push('\n');
                continue;
            }
        };
        match statement.tree.split_once(';').map(|(tree, _)| tree.to_owned()) {
            Some(tree) => {
                statement.tree = tree;
                found.push(statement);
            }
            None => open = Some(statement),
        }
    }
    (found, rest)
}

/// Each path of a tree as `a::{b, c::d as e}`, and the name by which it is known here.
fn leaves(tree: &str) -> Vec<(Vec<String>, String)> {
    let tree = tree.trim();
    let Some((before, after)) = tree.split_once('{') else {
        let (path, alias) = tree.split_once(" as ").unwrap_or((tree, ""));
        let path: Vec<String> = path.split("::").map(|part| part.trim().to_owned()).collect();
        let own = path.iter().rev().find(|part| *part != "self").cloned().unwrap_or_default();
        return vec![(path, if alias.is_empty() { own } else { alias.trim().to_owned() })];
    };
    let inside = after.strip_suffix('}').unwrap_or(after);
    let (mut depth, mut begun, mut branches) = (0_u32, 0, Vec::new());
    for (at, c) in inside.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                branches.push(&inside[begun..at]);
                begun = at + 1;
            }
            _ => {}
        }
    }
    branches.push(&inside[begun..]);
    let branches = branches.into_iter().filter(|branch| !branch.trim().is_empty());
    branches.flat_map(|branch| leaves(&format!("{before}{}", branch.trim()))).collect()
}

/// Paths in expressions and types.
fn paths(code: &str) -> Vec<Vec<String>> {
    let words = code.split(|c: char| !is_word(c) && c != ':').filter(|word| word.contains("::"));
    words.map(|word| word.split("::").map(str::to_owned).filter(|part| !part.is_empty()).collect()).collect()
}

fn without_tests(modules: BTreeMap<Module, Source>) -> BTreeMap<Module, Source> {
    let tests = modules.iter().flat_map(|(module, source)| {
        source.tests.iter().map(|test| [module.clone(), vec![test.clone()]].concat())
    });
    let tests: Vec<Module> = tests.collect();
    let is_test = |module: &Module| tests.iter().any(|test| module.starts_with(test));
    modules.into_iter().filter(|(module, _)| !is_test(module)).collect()
}

/// The file in which the name at the end of a path is.
fn file_of<'a>(modules: &'a BTreeMap<Module, Source>, path: &Module) -> Option<&'a str> {
    let mut path = path.clone();
    // A name may be handed on by several modules in turn.
    for _ in 0..8 {
        let length = (0..=path.len()).rev().find(|length| modules.contains_key(&path[..*length]))?;
        let source = &modules[&path[..length]];
        match path.get(length).and_then(|name| source.hands_on.get(name)) {
            Some(behind) => path = [behind.clone(), path[length + 1..].to_vec()].concat(),
            None => return Some(&source.file),
        }
    }
    None
}

/// The strongly connected components of more than one file.
fn circles(modules: &BTreeMap<Module, Source>) -> Vec<BTreeSet<String>> {
    let arrows = modules.values().map(|source| {
        let others = source.uses.iter().filter_map(|path| file_of(modules, path));
        (source.file.as_str(), others.filter(|other| *other != source.file).collect::<BTreeSet<&str>>())
    });
    let arrows: BTreeMap<&str, BTreeSet<&str>> = arrows.collect();
    let reach = |from: &str| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from.to_owned()]);
        while let Some(file) = open.pop() {
            let next = arrows.get(file.as_str()).into_iter().flatten();
            open.extend(next.filter(|next| seen.insert((**next).to_owned())).map(|next| (*next).to_owned()));
        }
        seen
    };
    let reached: BTreeMap<&str, BTreeSet<String>> = arrows.keys().map(|file| (*file, reach(file))).collect();
    let circle_of = |file: &&str| -> BTreeSet<String> {
        let back = |other: &&String| reached[other.as_str()].contains(*file);
        reached[*file].iter().filter(back).cloned().collect()
    };
    let circles: BTreeSet<BTreeSet<String>> =
        arrows.keys().map(circle_of).filter(|circle| !circle.is_empty()).collect();
    circles.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles_of(files: &[(&str, &str)]) -> Vec<BTreeSet<String>> {
        found(files.iter().map(|(path, text)| (Path::new(*path), *text)))
    }

    #[test]
    fn finds_a_circle_through_what_is_handed_on_and_none_of_tests() {
        let circle = circles_of(&[
            ("x/src/lib.rs", "mod a;\nmod b;\npub use a::{self, A};\nmod c;\n"),
            ("x/src/a.rs", "use crate::b::deep::{B, C as D};\n"),
            ("x/src/b/mod.rs", "pub mod deep;\n#[cfg(test)]\nmod tests;\n"),
            ("x/src/b/deep.rs", "fn f(a: crate::A) {}\n"),
            ("x/src/b/tests.rs", "use crate::c::C;\n"),
            ("x/src/c.rs", "use crate::b::deep;\n#[cfg(test)]\nmod tests {\n use crate::b::tests;\n}\n"),
        ]);
        let names: Vec<Vec<&str>> =
            circle.iter().map(|circle| circle.iter().map(String::as_str).collect()).collect();
        assert_eq!(names, [["x/src/a.rs", "x/src/b/deep.rs"]]);
    }

    #[test]
    fn the_list_may_only_shrink() {
        let circle = BTreeSet::from(["a.rs".to_owned(), "b.rs".to_owned()]);
        assert!(complaints(std::slice::from_ref(&circle), "# why\na.rs\nb.rs\n").is_empty());
        assert_eq!(complaints(std::slice::from_ref(&circle), "a.rs\n").len(), 1);
        assert_eq!(complaints(std::slice::from_ref(&circle), "a.rs\nb.rs\nc.rs\n").len(), 1);
        assert_eq!(complaints(&[], "a.rs\nb.rs\n").len(), 2);
    }
}
