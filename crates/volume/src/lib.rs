//! Blocks of a volume: how a group's members agree on reads and writes.
//!
//! Reading order: [`view`] (who is a member, and since when), then [`netraid`] (operations at a gateway, participants at bricks).

pub mod netraid;
pub mod view;
