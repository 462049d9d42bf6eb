//! Names that operators give.

use wire::AdminError;

const NAME_MAX: usize = 63;

/// Whether something of this kind may have this name.
pub(super) fn check_name(name: &str, of: &str) -> Result<(), AdminError> {
    let first = name.chars().next();
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    if name.len() <= NAME_MAX && name.chars().all(allowed) && first.is_some_and(|c| c.is_ascii_alphanumeric())
    {
        return Ok(());
    }
    Err(AdminError::Invalid(format!(
        "'{name}' cannot be a {of}'s name: 1 to {NAME_MAX} of a-z 0-9 - _ . beginning with a letter or digit"
    )))
}
