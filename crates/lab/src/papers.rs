//! The papers, and what each leaves unsaid and is assumed; `world` stands for experiments of our own.

use crate::parameters::Parameters;

/// A paper whose experiments are run again, or `world`, which is none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paper {
    pub(crate) id: &'static str,
    /// Who wrote what, and where and when it was published as far as that is known; of `world` what it is.
    pub(crate) source: &'static str,
    /// Its parameter file: where it lies, and its text.
    pub(crate) place: &'static str,
    text: &'static str,
}

pub(crate) const PAPERS: &[Paper] = &[
    Paper {
        id: "d-sptf",
        source: "Lumb, Golding, Ganger: D-SPTF: Decentralized Request Distribution in Brick-based Storage Systems. ASPLOS 2004",
        place: "crates/lab/parameters/dsptf.toml",
        text: include_str!("../parameters/dsptf.toml"),
    },
    Paper {
        id: "dsfq",
        source: "Wang, Merchant: Proportional-Share Scheduling for Distributed Storage Systems. FAST 2007",
        place: "crates/lab/parameters/dsfq.toml",
        text: include_str!("../parameters/dsfq.toml"),
    },
    Paper {
        id: "continuous-retrieval",
        source: "Altiparmak, Tosun: Continuous Retrieval of Replicated Data from Heterogeneous Storage Arrays",
        place: "crates/lab/parameters/retrieval.toml",
        text: include_str!("../parameters/retrieval.toml"),
    },
    Paper {
        id: "network-raid",
        source: "Kenchammana-Hosekote, Golding, Fleiner, Zaki: The Design and Evaluation of Network RAID Protocols. IBM Research Report",
        place: "crates/lab/parameters/netraid.toml",
        text: include_str!("../parameters/netraid.toml"),
    },
    Paper {
        id: "robustore",
        source: "Xia, Chien: RobuSTore: A Distributed Storage Architecture with Robust and High Performance. SC 2007",
        place: "crates/lab/parameters/robustore.toml",
        text: include_str!("../parameters/robustore.toml"),
    },
    Paper {
        id: "world",
        source: "An experiment of Brickwork itself, of no paper",
        place: "crates/lab/parameters/world.toml",
        text: include_str!("../parameters/world.toml"),
    },
];

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
    let Paper { place, text, .. } = found.unwrap_or_else(|| panic!("no paper is named {paper}"));
    Parameters::parse(place, text).unwrap_or_else(|error| panic!("{error}"))
}
