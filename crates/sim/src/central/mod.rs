//! Central SPTF: one queue over all disks of a group, and one cache (D-SPTF, section 4). It is an ideal, for it knows all
//! queues at once. No machines can be it, and what machines measure is compared with it.
//!
//! A read waits at all disks of its group, and the disk that begins it takes it from the others at once. A write goes into the
//! journals of all bricks of the group, is acknowledged after the last of them, and waits there for each disk; where bricks write through, it is
//! acknowledged after the last disk. A group of one brick without a network is a drive and its scheduler, alone. Messages take
//! their way, and are not counted.
//!
//! A run takes what [`crate::timed`] takes, and gives back the same. Reading order: `run` (clients, and the loop of events),
//! `disk`, `requests`.

mod disk;
mod requests;
mod run;
#[cfg(test)]
mod tests;

use crate::timed::{Cluster, ClusterError, Length, Measured, Workload};

/// Runs `workload` on `cluster`, whatever scheme it names, and measures. All draws are from `seed`.
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
    Ok(run::Run::new(cluster, workload, length, false, seed).run())
}

/// The same, with a record of each request in what was measured.
///
/// # Errors
/// As [`run`].
pub fn run_recorded(
    cluster: &Cluster,
    workload: Workload,
    length: Length,
    seed: u64,
) -> Result<Measured, ClusterError> {
    cluster.validate()?;
    Ok(run::Run::new(cluster, workload, length, true, seed).run())
}
