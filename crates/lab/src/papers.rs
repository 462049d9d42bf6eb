//! The papers, and what each leaves unsaid and is assumed; `world` stands for experiments of our own.

use crate::parameters::Parameters;

/// Each paper's parameter file.
pub(crate) const PAPERS: &[(&str, &str, &str)] = &[
    ("d-sptf", "crates/lab/parameters/dsptf.toml", include_str!("../parameters/dsptf.toml")),
    ("dsfq", "crates/lab/parameters/dsfq.toml", include_str!("../parameters/dsfq.toml")),
    (
        "continuous-retrieval",
        "crates/lab/parameters/retrieval.toml",
        include_str!("../parameters/retrieval.toml"),
    ),
    ("network-raid", "crates/lab/parameters/netraid.toml", include_str!("../parameters/netraid.toml")),
    ("robustore", "crates/lab/parameters/robustore.toml", include_str!("../parameters/robustore.toml")),
    ("world", "crates/lab/parameters/world.toml", include_str!("../parameters/world.toml")),
];

/// The assumptions of a paper, as its file in the repository states them.
///
/// # Panics
/// If there is no such paper, or its file is broken: a test reads them all.
pub fn parameters(paper: &str) -> Parameters {
    let found = PAPERS.iter().find(|(known, _, _)| *known == paper);
    let (_, place, text) = found.unwrap_or_else(|| panic!("no paper is named {paper}"));
    Parameters::parse(place, text).unwrap_or_else(|error| panic!("{error}"))
}
