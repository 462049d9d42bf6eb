//! Protocols that have a name: those that the paper evaluates (Kenchammana-Hosekote et al., Table 1), and what comes nearest to known
//! systems (Table 2).

use crate::{NoProtocol, Protocol};

/// The protocols of Table 1, and the lower bound of its figures. Where the paper's clients of `amongst` ask the lock server themselves
/// (`cli slock`), here as in its other variant the first brick does.
pub const EVALUATED: [&str; 8] = [
    "coord,seq,none",
    "direct,slock,none",
    "gw,slock,none",
    "amongst,slock,none",
    "direct,ts,2pcw",
    "gw,ts,2pcw",
    "amongst,ts,2pcw",
    "direct,none,none",
];

/// Others that have a part which none of those has.
pub const VARIANTS: [&str; 6] = [
    "gw,dlock,2pcw",
    "gw,hybrid,2pcw",
    "gw,version,log",
    "gw,ts-wait,2pcw+read,rmw",
    "coord,seq,none,rmw",
    "gw,ts-wait,2pcw+read+link",
];

/// A system, and the protocol that comes nearest to it.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// As operators write it.
    pub name: &'static str,
    pub system: &'static str,
    pub protocol: &'static str,
    /// What is different from the system.
    pub differs: &'static str,
}

/// After Table 2. For all of them: writes are acknowledged by all current members of the view, and undone where their writer dies; and a brick
/// fails by stopping or by what its checksums show, not by lying.
pub const PRESETS: [Preset; 8] = [
    Preset {
        name: "basic-raid",
        system: "Basic RAID",
        protocol: "coord,seq,none",
        differs: "another brick coordinates when the first is gone, where a controller has nobody",
    },
    Preset {
        name: "swift",
        system: "Swift/RAID",
        protocol: "direct,slock,none",
        differs: "the lock server is a brick, and its successor is the next one",
    },
    Preset {
        name: "zebra",
        system: "Zebra",
        protocol: "direct,slock,log",
        differs: "each brick keeps a journal of new versions, where each Zebra client writes a log of its own across bricks",
    },
    Preset {
        name: "tickertaip",
        system: "TickerTAIP",
        protocol: "amongst,seq,2pcw",
        differs: "requests of the same rows pass in the order in which they come, where TickerTAIP has a graph",
    },
    Preset {
        name: "petal",
        system: "Petal",
        protocol: "amongst,seq-opt,none",
        differs: "bricks keep each write until it is decided, where Petal marks blocks busy and stale",
    },
    Preset {
        name: "palladio",
        system: "Palladio",
        protocol: "direct,ts,2pcw",
        differs: "all current members acknowledge, where Palladio takes a majority",
    },
    Preset {
        name: "fab",
        system: "FAB",
        protocol: "gw,ts,2pcw+read",
        differs: "all current members acknowledge, where FAB takes a majority",
    },
    Preset {
        name: "pasis",
        system: "PASIS",
        protocol: "direct,version,log+read",
        differs: "a brick keeps two versions of a block, where PASIS keeps all; and no brick is expected to lie",
    },
];

impl Preset {
    /// What a volume with it has.
    ///
    /// # Panics
    /// Never: a test parses all.
    pub fn protocol(&self) -> Protocol {
        self.protocol.parse().expect("a protocol")
    }
}

/// The protocol that an operator names: by its parts, or by a system.
///
/// # Errors
/// When it is neither.
pub fn parse(name: &str) -> Result<Protocol, NoProtocol> {
    match PRESETS.iter().find(|preset| preset.name == name) {
        Some(preset) => Ok(preset.protocol()),
        None => name.parse(),
    }
}

/// All that stand here, each once, and the default one.
pub fn named() -> Vec<Protocol> {
    let by_name = EVALUATED.iter().chain(&VARIANTS);
    let mut named: Vec<Protocol> = by_name.map(|name| name.parse().expect("a protocol")).collect();
    named.extend(PRESETS.iter().map(Preset::protocol));
    named.push(Protocol::default());
    named.sort_unstable();
    named.dedup();
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_have_a_protocol() {
        assert_eq!(named().len(), 8 + 6 + 5 + 1, "three systems have one that is not evaluated");
        assert_eq!(parse("fab"), "gw,ts,2pcw+read".parse());
        assert_eq!(parse("gw,ts,2pcw"), "gw,ts,2pcw".parse());
        assert!(parse("raid").is_err());
    }
}
