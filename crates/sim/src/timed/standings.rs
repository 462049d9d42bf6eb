//! How bricks stand: what the directory's status says of each, and when that changed.

use base::BrickId;
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
    /// In words; empty where it serves, and nothing is to be told of it.
    pub standing: String,
}

/// How bricks stand and stood, as far as somebody looked.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Standings {
    bricks: BTreeMap<BrickId, String>,
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
            let (brick, now) = (entry.id, standing(entry));
            let whose = format!(" of {brick} ");
            let named =
                status.warnings.iter().find(|warning| warning.contains(&whose) && warning.contains(NAMED));
            named.map(|warning| self.named.insert(brick, warning.clone()));
            let before = self.bricks.insert(brick, now.clone());
            if before.as_ref().map_or(!now.is_empty(), |before| *before != now) {
                let left_out = |standing: &str| standing.contains("left out");
                self.left += u32::from(left_out(&now) && !before.is_some_and(|before| left_out(&before)));
                self.changes.push(Change { after, brick, standing: now });
            }
        }
    }

    /// Whether nothing is to be told of any brick.
    pub fn all_serve(&self) -> bool {
        self.bricks.values().all(String::is_empty)
    }
}

fn standing(brick: &BrickEntry) -> String {
    let mut words = Vec::new();
    if !brick.alive {
        words.push("silent".to_owned());
    }
    if let Some(slow) = &brick.slow {
        words.push(format!("slow, {}: {}", if slow.is_out { "leaves" } else { "stays" }, slow.why));
    }
    if brick.stale_groups > brick.joining_groups {
        words.push(format!("left out of {}", brick.stale_groups - brick.joining_groups));
    }
    if brick.joining_groups > 0 {
        words.push(format!("catching up in {}", brick.joining_groups));
    }
    words.join(", ")
}
