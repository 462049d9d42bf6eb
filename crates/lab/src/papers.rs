//! The papers, and what each leaves unsaid and is assumed; `world` stands for experiments of our own.

use crate::parameters::Parameters;

/// A paper whose experiments are run again, or `world`, which is none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paper {
    pub(crate) id: &'static str,
    /// Who wrote what, and where and when it was published as far as that is known; of `world` what it is.
    source: &'static str,
    /// What its file of assumptions is called, and what is in it.
    file: &'static str,
    text: &'static str,
}

/// Papers by their ids, sources and files of assumptions.
macro_rules! papers {
    ($($id:literal in $file:literal: $source:literal;)*) => {
        &[$(Paper { id: $id, source: $source, file: $file, text: include_str!(concat!("../parameters/", $file)) }),*]
    };
}

pub(crate) const PAPERS: &[Paper] = papers! {
    "d-sptf" in "dsptf.toml":
        "Lumb, Golding, Ganger: D-SPTF: Decentralized Request Distribution in Brick-based Storage Systems. ASPLOS 2004";
    "dsfq" in "dsfq.toml":
        "Wang, Merchant: Proportional-Share Scheduling for Distributed Storage Systems. FAST 2007";
    "continuous-retrieval" in "retrieval.toml":
        "Altiparmak, Tosun: Continuous Retrieval of Replicated Data from Heterogeneous Storage Arrays";
    "network-raid" in "netraid.toml":
        "Kenchammana-Hosekote, Golding, Fleiner, Zaki: The Design and Evaluation of Network RAID Protocols. IBM Research Report";
    "robustore" in "robustore.toml":
        "Xia, Chien: RobuSTore: A Distributed Storage Architecture with Robust and High Performance. SC 2007";
    "world" in "world.toml": "An experiment of Brickwork itself, of no paper";
};

/// Where the experiments of a paper come from. What is of no paper that is known is somebody's own.
pub(crate) fn source(paper: &str) -> &'static str {
    let found = PAPERS.iter().find(|known| known.id == paper);
    found.map_or("An experiment of one's own, as its file describes it", |known| known.source)
}

/// The assumptions of a paper, as its file in the repository states them.
///
/// # Panics
/// If there is no such paper, or its file is broken: a test reads them all.
pub fn parameters(paper: &str) -> Parameters {
    let found = PAPERS.iter().find(|known| known.id == paper);
    let Paper { file, text, .. } = found.unwrap_or_else(|| panic!("no paper is named {paper}"));
    let place = format!("crates/lab/parameters/{file}");
    Parameters::parse(&place, text).unwrap_or_else(|error| panic!("{error}"))
}
