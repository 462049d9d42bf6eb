//! The performance of a cluster of bricks: modelled disks, journals, caches and messages, and the very machines that
//! distribute reads on real bricks. It answers how fast, not how safe: data have addresses and no content.
//!
//! A run is a [`Cluster`], a [`Workload`] and a [`Length`]; it gives back what was [`Measured`]. The same three give the
//! same result, to the last event.
//!
//! Reading order: [`cluster`] (what can be set), [`workload`], [`measured`]; then `run` (the loop), `client`, `reads`,
//! `writes`, `brick`, `device`, `cache`.
//!
//! Deliberately absent: failures, views, stamps (the rest of this crate has them).

mod asker;
mod brick;
pub(crate) mod cache;
mod client;
pub mod cluster;
pub(crate) mod device;
pub mod measured;
mod reads;
mod request;
mod run;
pub(crate) mod source;
#[cfg(test)]
mod tests;
pub mod workload;
mod writes;

pub use cluster::{BrickSpec, ClaimOptions, Cluster, ClusterError, Groups, Network, Scheme, WriteRelease};
pub use measured::{BrickMeasured, Contention, Interval, Measured, Message, Traffic};
pub use workload::{Arrival, Arrivals, Length, Locality, Mix, Sizes, Workload};

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
