//! How bricks stand: what the directory's status says of each, and when that changed.

use base::BrickId;
use core::fmt;
use core::time::Duration;
use std::collections::BTreeMap;
use wire::ClusterStatus;
use wire::directory::BrickEntry;

/// In the directory's words a brick whose disks are saturated is named as slower than its peers.
const NAMED: &str = "times the median of its peers";

/// A brick stands differently from a moment on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// Since the beginning of the load.
    pub after: Duration,
    pub brick: BrickId,
    pub standing: Standing,
}

/// How a brick stands. Where it serves, and nothing is to be told of it, this is the default; in words nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Standing {
    pub is_silent: bool,
    pub slow: Option<Slowness>,
    /// Groups that go on without it.
    pub left_out_of: u32,
    /// Groups in which it catches up.
    pub catches_up_in: u32,
}

/// That a brick is held for slow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slowness {
    /// Whether it leaves its groups; else they need it.
    pub leaves: bool,
    pub why: String,
}

/// How bricks stand and stood, as far as somebody looked.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Standings {
    bricks: BTreeMap<BrickId, Standing>,
    pub changes: Vec<Change>,
    /// How often a brick was left out of groups.
    pub left: u32,
    /// Bricks of which a warning said that they are saturated and slower than their peers, and what it said last.
    pub named: BTreeMap<BrickId, String>,
    /// Whether a volume lacked redundancy at the last look.
    pub lacks_redundancy: bool,
}

impl Standings {
    /// Takes in a summary of the directory's.
    pub fn look(&mut self, after: Duration, status: &ClusterStatus) {
        self.lacks_redundancy = status.counts.unwrap_or_default().unwell_volumes > 0;
        for entry in &status.bricks {
            let (brick, now) = (entry.id, Standing::of(entry));
            let whose = format!(" of {brick} ");
            let named =
                status.warnings.iter().find(|warning| warning.contains(&whose) && warning.contains(NAMED));
            named.map(|warning| self.named.insert(brick, warning.clone()));
            let before = self.bricks.insert(brick, now.clone()).unwrap_or_default();
            if before != now {
                self.left += u32::from(now.left_out_of > 0 && before.left_out_of == 0);
                self.changes.push(Change { after, brick, standing: now });
            }
        }
    }

    /// Whether nothing is to be told of any brick.
    pub fn all_serve(&self) -> bool {
        self.bricks.values().all(Standing::is_well)
    }
}

impl Standing {
    /// Whether it serves, and nothing is to be told of it.
    pub fn is_well(&self) -> bool {
        *self == Standing::default()
    }

    fn of(brick: &BrickEntry) -> Standing {
        let slow = brick.slow.as_ref();
        Standing {
            is_silent: !brick.alive,
            slow: slow.map(|slow| Slowness { leaves: slow.is_out, why: slow.why.clone() }),
            left_out_of: brick.stale_groups.saturating_sub(brick.joining_groups),
            catches_up_in: brick.joining_groups,
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = Vec::new();
        if self.is_silent {
            words.push("silent".to_owned());
        }
        if let Some(Slowness { leaves, why }) = &self.slow {
            words.push(format!("slow, {}: {why}", if *leaves { "leaves" } else { "stays" }));
        }
        if self.left_out_of > 0 {
            words.push(format!("left out of {}", self.left_out_of));
        }
        if self.catches_up_in > 0 {
            words.push(format!("catching up in {}", self.catches_up_in));
        }
        f.write_str(&words.join(", "))
    }
}
