//! Which benches are asked for: `cargo bench -p brickwork-reads [NAME]...` hands its words to each of them.

/// Whether a bench of this name is to run: no name is given, or one that is part of its own. Options are for others.
pub(crate) fn is_asked_for(bench: &str) -> bool {
    let mut names = std::env::args().skip(1).filter(|word| !word.starts_with('-')).peekable();
    names.peek().is_none() || names.any(|name| bench.contains(&name))
}
