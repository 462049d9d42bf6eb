//! Disks that are taken out and exchanged for empty ones.

use super::{Cluster, of_brick, run, text};
use anyhow::{Context, Result};
use serde_json::Value;
use std::time::Duration;

impl Cluster {
    /// Gives a brick, counted from 0, an empty disk in place of the one that it refuses, starts it, and waits until there
    /// is something on it: then the directory has seen that it is another disk, and does not take it for the old one.
    pub fn give_empty_disk(&mut self, brick: usize) -> Result<()> {
        let id = self.brick_id(brick + 1)?;
        let disks = |status: &Value| of_brick(status, &id)["disks"].clone();
        let before = disks(&self.status()?);
        self.exchange_disk(brick)?;
        self.wait_for("the new disk is in use", Duration::from_secs(120), |status| {
            disks(status) != before && of_brick(status, &id)["used_bytes"].as_u64() > Some(0)
        })?;
        Ok(())
    }

    /// Gives a stopped brick, counted from 0, an empty disk, and starts it.
    pub fn exchange_disk(&mut self, brick: usize) -> Result<()> {
        let (disk, config) = (self.disk(brick + 1), self.brick_config(brick + 1));
        std::fs::remove_file(&disk)?;
        run(&self.binary, &["brick", "format", "--config", text(&config)?])
            .with_context(|| format!("formatting {} anew", disk.display()))?;
        self.bricks[brick].restart()
    }
}
