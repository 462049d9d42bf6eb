//! `no wrong bytes`: a read returns, for each register, one value that was written to that very register, or zeros.

use super::Violation;
use crate::history::{History, Register};
use base::Payload;

const NAME: &str = "no wrong bytes";

/// The one value that fills all of `content` (as 8-byte words), or a violation when there are several.
pub fn value_of(content: &Payload, register: Register) -> Result<u64, Violation> {
    let mut value = None;
    let mut carry: Vec<u8> = Vec::new();
    for part in content.parts() {
        if !carry.is_empty() || part.len() % 8 != 0 {
            carry.extend_from_slice(part);
            continue;
        }
        same_words(part, &mut value, register)?;
    }
    same_words(&carry, &mut value, register)?;
    value.ok_or_else(|| Violation::new(NAME, format!("{register} was answered without content")))
}

fn same_words(bytes: &[u8], value: &mut Option<u64>, register: Register) -> Result<(), Violation> {
    for word in bytes.as_chunks::<8>().0 {
        let word = u64::from_le_bytes(*word);
        if word != *value.get_or_insert(word) {
            let first = value.unwrap_or(0);
            return Err(Violation::new(NAME, format!("{register} mixes the values {first} and {word}")));
        }
    }
    Ok(())
}

/// Whether `value` may be read from `register` at all.
pub fn check(history: &History, register: Register, value: u64) -> Result<(), Violation> {
    match history.written_to(value) {
        _ if value == 0 => Ok(()),
        Some(home) if history.may_hold(register, home) => Ok(()),
        Some(home) => Err(Violation::new(
            NAME,
            format!("{register} holds the value {value}, which was written to {home}"),
        )),
        None => Err(Violation::new(NAME, format!("{register} holds {value:#018x}, which nobody wrote"))),
    }
}
