//! The parts of the directory, side by side, for commands that need several of them.

use super::cluster::Cluster;
use super::members::Members;
use super::slow::Slow;
use super::views::Views;
use super::waiting::Waiting;

/// Each part owns its fields; commands ([`super::admin`]) and the router ([`super::Directory`]) bring them together.
pub(super) struct Desk {
    pub(super) cluster: Cluster,
    pub(super) views: Views,
    pub(super) members: Members,
    pub(super) slow: Slow,
    pub(super) waiting: Waiting,
}
