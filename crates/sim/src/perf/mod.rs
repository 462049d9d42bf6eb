//! The performance of a cluster of bricks: modelled disks, journals, caches and messages, and the very machines that
//! distribute reads on real bricks. It answers how fast, not how safe: data have addresses and no content.
//!
//! A run is a [`Cluster`], a [`Workload`] and a [`Length`]; it gives back what was [`Measured`]. The same three give the
//! same result, to the last event.
//!
//! What can be set and what is measured are [`crate::timed`]'s. Reading order: `run` (the loop), `client`, `reads`, `writes`, `brick`.
//!
//! Deliberately absent: failures, views, stamps (the rest of this crate has them).

mod asker;
mod brick;
mod client;
mod device;
mod reads;
mod request;
mod run;
#[cfg(test)]
mod tests;
mod writes;

use crate::timed::{Cluster, ClusterError, Length, Measured, Workload};

/// Runs `workload` on `cluster` and measures. All draws are from `seed`.
///
/// # Errors
/// When the cluster cannot be: a group without a brick, a brick that does not exist.
pub fn run(
    cluster: &Cluster,
    workload: Workload,
    length: Length,
    seed: u64,
) -> Result<Measured, ClusterError> {
    cluster.validate()?;
    Ok(run::Run::new(cluster, workload, length, seed).run())
}
