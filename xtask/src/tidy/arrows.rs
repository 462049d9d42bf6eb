//! Which crate may know which: arrows go one way, and the simulated and the real world never meet below the binary.

use serde_json::Value;

/// Crates that know no clock, randomness, thread or file.
pub(super) const PURE: &[&str] = &[
    "base", "code", "wire", "nbd", "model", "rules", "reads", "volume", "objects", "roles", "store", "node",
    "trace", "sim",
];

/// Each crate with all it may depend on.
const ARROWS: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("code", &["base"]),
    ("wire", &["base"]),
    ("nbd", &["base"]),
    ("model", &["base"]),
    ("trace", &["base"]),
    ("outfile", &[]),
    ("rules", &["base", "wire", "code"]),
    ("reads", &["base", "wire", "rules"]),
    ("volume", &["base", "wire", "code", "rules", "reads"]),
    ("objects", &["base", "wire", "code", "rules", "reads"]),
    ("roles", &["base", "wire", "code", "rules", "reads", "volume", "objects"]),
    ("store", &["base", "wire"]),
    ("node", &["base", "code", "wire", "rules", "reads", "volume", "objects", "roles", "store"]),
    (
        "sim",
        &[
            "base", "wire", "rules", "reads", "volume", "objects", "roles", "store", "node", "model", "code",
            "trace",
        ],
    ),
    ("simwasm", &["base", "sim"]),
    (
        "host",
        &[
            "base", "wire", "rules", "reads", "volume", "objects", "roles", "store", "node", "model", "code",
            "nbd",
        ],
    ),
    (
        "lab",
        &["base", "code", "rules", "reads", "volume", "objects", "roles", "model", "sim", "trace", "outfile"],
    ),
    ("job", &[]),
    ("rig", &["base", "wire", "rules", "reads", "volume", "objects", "roles", "store", "host", "sim", "job"]),
    (
        "brickwork",
        &[
            "base", "wire", "rules", "reads", "volume", "objects", "roles", "store", "node", "model", "code",
            "nbd", "sim", "host", "trace", "lab", "outfile", "rig",
        ],
    ),
    ("xtask", &["job"]),
];

/// A complaint for each arrow that is not allowed. Takes what `cargo metadata --no-deps` prints.
pub(super) fn check(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    packages.iter().flat_map(check_package).collect()
}

fn check_package(package: &Value) -> Vec<String> {
    let name = short(&package["name"]);
    let Some((_, allowed)) = ARROWS.iter().find(|(known, _)| *known == name) else {
        return vec![format!("crate {name}: has no place yet; give it one in xtask/src/tidy/arrows.rs")];
    };
    let dependencies = package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
    let own = dependencies.iter().filter(|dependency| dependency["path"].is_string());
    let wrong = own
        .map(|dependency| short(&dependency["name"]))
        .filter(|other| !allowed.contains(other) && *other != name);
    wrong
        .map(|other| format!("crate {name}: must not depend on {other} (allowed: {})", allowed.join(" ")))
        .collect()
}

fn short(name: &Value) -> &str {
    let name = name.as_str().unwrap_or_default();
    name.strip_prefix("brickwork-").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn package(name: &str, dependency: &str) -> Value {
        json!({"packages": [{"name": name, "dependencies": [{"name": dependency, "path": "x"}, {"name": "bytes"}]}]})
    }

    #[test]
    fn worlds_never_meet_below_the_binary() {
        assert_eq!(check(&package("brickwork-sim", "brickwork-host")).len(), 1);
        assert_eq!(check(&package("brickwork-host", "brickwork-sim")).len(), 1);
        assert_eq!(check(&package("brickwork-roles", "brickwork-sim")).len(), 1);
        assert!(check(&package("brickwork", "brickwork-host")).is_empty());
        assert!(check(&package("brickwork-store", "brickwork-wire")).is_empty());
    }

    #[test]
    fn an_unknown_crate_is_named() {
        assert!(check(&package("brickwork-novel", "brickwork-base"))[0].contains("novel"));
    }

    #[test]
    fn the_table_has_no_circle() {
        for (index, (name, allowed)) in ARROWS.iter().enumerate() {
            for other in *allowed {
                let place = ARROWS.iter().position(|(known, _)| known == other);
                assert!(place.is_some_and(|place| place < index), "{name} -> {other}");
            }
        }
    }
}
