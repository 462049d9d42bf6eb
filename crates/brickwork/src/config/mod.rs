//! Configuration: a TOML file, then the environment (`BRICKWORK_*`), then flags; the later wins.
//!
//! Reading order: [`keys`] (every key of every daemon), this file (how they are layered), [`bytes`], [`period`],
//! [`rate`], [`latency`], [`error`].
//! An unknown key is an error that names the file, the line, the key, and the nearest key that exists.

pub mod bytes;
pub mod error;
pub mod keys;
pub mod latency;
pub mod period;
pub mod rate;

pub use bytes::Bytes;
pub use error::ConfigError;
pub use keys::{BrickFile, ClientFile, DirectoryFile, DiskFile, GatewayFile, TlsFile};
pub use latency::Latency;
pub use period::Period;
pub use rate::Rate;

use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// What a kind of configuration knows of itself.
pub trait Configuration: DeserializeOwned {
    /// What it configures, for messages.
    const WHAT: &'static str;
    /// Keys that the environment may set: `listen` is `BRICKWORK_LISTEN`, `tls.ca` is `BRICKWORK_TLS_CA`.
    const ENVIRONMENT: &'static [&'static str];

    /// What no single key shows: keys that need or exclude one another.
    fn check(&self) -> Result<(), String>;

    /// Makes every path that is relative begin at `base`, the file's own directory.
    fn resolve(&mut self, base: &Path);
}

/// Reads `file` (if any), lays the environment and then `flags` over it, and checks the whole.
pub fn load<C: Configuration>(file: Option<&Path>, flags: Table) -> Result<C, ConfigError> {
    let text = match file {
        Some(path) => Some((path, read(path)?)),
        None => None,
    };
    let place = text.as_ref().map(|(path, text)| (*path, text.as_str()));
    layer(place, |name| std::env::var(name).ok(), flags)
}

/// [`load`] with the file's text and the environment given, so that it reads nothing by itself.
pub fn layer<C: Configuration>(
    file: Option<(&Path, &str)>,
    environment: impl Fn(&str) -> Option<String>,
    flags: Table,
) -> Result<C, ConfigError> {
    let mut table = match file {
        Some((path, text)) => parse::<C>(path, text)?,
        None => Table::new(),
    };
    for key in C::ENVIRONMENT {
        if let Some(text) = environment(&variable(key)) {
            put(&mut table, key, value_of(&text));
        }
    }
    merge(&mut table, flags);
    let place = file.map_or_else(|| PathBuf::from("the environment and flags"), |(path, _)| path.to_owned());
    finish(table, &place, file.map(|(path, _)| path))
}

/// The environment variable that sets `key`.
pub fn variable(key: &str) -> String {
    format!("BRICKWORK_{}", key.replace('.', "_").to_uppercase())
}

/// Sets `key` (`tls.ca` is a table's key) in `table`.
pub fn put(table: &mut Table, key: &str, value: Value) {
    match key.split_once('.') {
        None => {
            table.insert(key.to_owned(), value);
        }
        Some((outer, inner)) => {
            let entry = table.entry(outer).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(nested) = entry {
                put(nested, inner, value);
            }
        }
    }
}

fn read(path: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })
}

/// The file's table. It is also read as `C` once by itself: only then does an error know its line.
fn parse<C: Configuration>(path: &Path, text: &str) -> Result<Table, ConfigError> {
    let located = |error: &toml::de::Error| ConfigError::in_file(path, text, C::WHAT, error);
    toml::from_str::<C>(text).map_err(|error| located(&error))?;
    toml::from_str::<Table>(text).map_err(|error| located(&error))
}

/// A variable's text as TOML where it is TOML (`true`, `4096`, `["a", "b"]`), else as the text itself.
fn value_of(text: &str) -> Value {
    let parsed = toml::from_str::<Table>(&format!("value = {text}")).ok();
    parsed.and_then(|mut table| table.remove("value")).unwrap_or_else(|| Value::String(text.to_owned()))
}

fn merge(table: &mut Table, over: Table) {
    for (key, value) in over {
        match (table.get_mut(&key), value) {
            (Some(Value::Table(inner)), Value::Table(value)) => merge(inner, value),
            (_, value) => {
                table.insert(key, value);
            }
        }
    }
}

fn finish<C: Configuration>(table: Table, place: &Path, file: Option<&Path>) -> Result<C, ConfigError> {
    let mut config: C =
        table.try_into().map_err(|error: toml::de::Error| ConfigError::layered(place, C::WHAT, &error))?;
    config.check().map_err(|what| ConfigError::Wrong { place: place.to_owned(), kind: C::WHAT, what })?;
    if let Some(base) = file.and_then(Path::parent) {
        config.resolve(base);
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Others would be told to ask at an address that means every machine for itself.
    #[test]
    fn who_listens_at_every_address_says_where_others_reach_it() {
        let file = |listen: &str| GOOD.replace("listen = \"127.0.0.1:7003\"", listen);
        let read =
            |text: &str| layer::<BrickFile>(Some((Path::new("brick.toml"), text)), |_| None, Table::new());
        for every in ["0.0.0.0:7003", "[::]:7003"] {
            let said = read(&file(&format!("listen = \"{every}\""))).expect_err("it is refused").to_string();
            assert!(said.contains(every) && said.contains("--advertise HOST:PORT"), "{said}");
        }
        // That plain text is for loopback alone is said later.
        let said =
            read(&file("listen = \"0.0.0.0:7003\"\nadvertise = \"127.0.0.1:7003\"")).expect_err("plain");
        assert!(said.to_string().contains("plaintext"), "{said}");
    }

    const GOOD: &str = r#"
listen = "127.0.0.1:7003"
directory = "127.0.0.1:7000"
cluster = "000102030405060708090a0b0c0d0e0f"
id = 3
disks = [{ path = "disk0", size = "1GiB" }]
plaintext = true
"#;

    fn brick(text: &str, environment: &[(&str, &str)], flags: &str) -> Result<BrickFile, ConfigError> {
        let find = |name: &str| {
            environment.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        layer(
            Some((Path::new("/etc/brickwork/brick.toml"), text)),
            find,
            toml::from_str(flags).expect("flags"),
        )
    }

    #[test]
    fn the_model_of_a_disk_is_a_drive_of_the_list_or_a_file_beside_the_configuration() {
        let model = |name: &str| {
            let disk = format!(r#"disks = [{{ path = "disk0", size = "1GiB", model = "{name}" }}]"#);
            let text = GOOD.replace(r#"disks = [{ path = "disk0", size = "1GiB" }]"#, &disk);
            brick(&text, &[], "").expect("file").disks[0].model.clone()
        };
        assert_eq!(model("seagate-cheetah-9lp").as_deref(), Some("seagate-cheetah-9lp"));
        assert_eq!(model("probed.toml").as_deref(), Some("/etc/brickwork/probed.toml"));
        assert_eq!(brick(GOOD, &[], "").expect("file").disks[0].model, None);
    }

    #[test]
    fn flags_win_over_environment_over_file() {
        let file = brick(GOOD, &[], "").expect("file");
        assert_eq!(file.listen, "127.0.0.1:7003");
        assert_eq!(file.disks[0].size, Some(Bytes(1 << 30)));
        assert_eq!(file.disks[0].path, Path::new("/etc/brickwork/disk0"));
        let environment = [("BRICKWORK_LISTEN", "127.0.0.1:1"), ("BRICKWORK_CACHE_BYTES", "64MiB")];
        let over = brick(GOOD, &environment, "").expect("environment");
        assert_eq!((over.listen.as_str(), over.cache_bytes), ("127.0.0.1:1", Bytes(64 << 20)));
        let flags = brick(GOOD, &environment, "listen = '127.0.0.1:2'").expect("flags");
        assert_eq!(flags.listen, "127.0.0.1:2");
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line_and_its_neighbour() {
        let error = brick(&format!("{GOOD}cash_bytes = 1\n"), &[], "").expect_err("unknown key").to_string();
        assert!(error.contains("/etc/brickwork/brick.toml:8"), "{error}");
        assert!(error.contains("'cash_bytes'") && error.contains("did you mean 'cache_bytes'"), "{error}");
    }

    #[test]
    fn an_unknown_key_of_a_disk_is_named_too() {
        let error = brick(&GOOD.replace("size =", "sise ="), &[], "").expect_err("unknown key").to_string();
        assert!(error.contains(":6") && error.contains("did you mean 'size'"), "{error}");
    }

    #[test]
    fn plain_text_is_refused_beyond_loopback() {
        let error = brick(&GOOD.replace("127.0.0.1:7003", "0.0.0.0:7003"), &[], "").expect_err("plain text");
        assert!(error.to_string().contains("0.0.0.0:7003"), "{error}");
        assert!(brick(&GOOD.replace("127.0.0.1:7000", "[::1]:7000"), &[], "").is_ok());
    }

    #[test]
    fn a_missing_key_is_named() {
        let error =
            brick(&GOOD.replace("directory =", "# directory ="), &[], "").expect_err("missing").to_string();
        assert!(error.contains("a brick's configuration needs the key"), "{error}");
        assert!(error.contains("directory"), "{error}");
    }

    proptest! {
        #[test]
        fn no_file_panics(text in "[a-z_=\\[\\]{}\"0-9.\n ]{0,80}") {
            let _ = brick(&text, &[], "");
            let _ = layer::<GatewayFile>(Some((Path::new("g"), &text)), |_| None, Table::new());
            let _ = layer::<ClientFile>(Some((Path::new("c"), &text)), |_| None, Table::new());
        }
    }
}
