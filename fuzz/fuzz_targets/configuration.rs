//! Configuration files, environment values, join tokens and sizes: whatever they hold, an error and never a panic.
#![no_main]

use brickwork_cli::config::{self, BrickFile, Bytes, ClientFile, Configuration, DirectoryFile, GatewayFile};
use brickwork_cli::security::Token;
use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|data: &[u8]| {
    let Some((&kind, rest)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    match kind % 6 {
        0 => read::<BrickFile>(text),
        1 => read::<GatewayFile>(text),
        2 => read::<DirectoryFile>(text),
        3 => read::<ClientFile>(text),
        4 => drop(text.parse::<Token>()),
        _ => drop(text.parse::<Bytes>()),
    }
});

/// The text as a file; what stands behind a NUL is the value of every environment variable.
fn read<C: Configuration>(text: &str) {
    let (file, value) = text.split_once('\0').unwrap_or((text, ""));
    let environment = |_: &str| (!value.is_empty()).then(|| value.to_owned());
    if let Err(error) = config::layer::<C>(Some((Path::new("fuzz.toml"), file)), environment, toml::Table::new()) {
        assert!(!error.to_string().is_empty(), "an error says something");
    }
}
