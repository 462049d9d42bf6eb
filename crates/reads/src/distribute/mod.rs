//! Who serves a read, among the members that could. Each policy is a file.
//!
//! | policy | who decides | when |
//! |---|---|---|
//! | [`contest`] with [`claim`] | the bricks, by bids | when a disk is about to be free |
//! | [`hash`], [`weighted_hash`] | the asker, by the address | at once |
//! | [`lard`] | one front end, by the address and the loads that it sees | at once |
//! | [`shortest_queue`] | the asker, by its questions unanswered | at once |
//! | [`random`], [`two_choices`] | the asker, by draw | at once |
//! | [`probing`] | the asker, by what answers told | at once |
//! | [`hedged`] | as shortest queue, and a second holder | at once, and when it takes long |
//! | [`tied`] | two of the bricks | when a disk is free |
//! | [`quickest`] | the asker, by what answers told, and a second holder | at once, and when the first is late |
//! | [`planned`] (online, max flow) | the asker, for a request's reads together, by how busy and how fast disks are | at once |
//! | [`max_flow_adaptive`] | the asker, with reads of earlier requests that have not begun | at once, and again for later requests |
//! | [`usual`] | as contest or as quickest, by what the devices are | |
//!
//! Reading order: [`policy`] (what a policy is), a policy, [`policies`] (all that a gateway has). [`load`], [`pace`], [`disks`] and [`cached`] are
//! what an asker knows of bricks, [`rescue`] how long it waits, [`row`] what parity layouts do, where there is one holder only.
//!
//! A new policy is a file here (with its `mod` line), a line in [`policies::shipped`], and its name in [`wire::ReadPolicy`].

pub mod cached;
pub mod claim;
pub mod contest;
pub mod disks;
pub mod hash;
pub mod hedged;
pub mod lard;
pub mod load;
pub mod max_flow_adaptive;
pub mod pace;
pub mod planned;
pub mod policies;
pub mod policy;
pub mod probing;
pub mod quickest;
pub mod random;
pub mod rescue;
pub mod retrieval;
pub mod row;
pub mod shortest_queue;
pub mod tied;
pub mod two_choices;
pub mod usual;
pub mod weighted_hash;

pub use policies::{GRANULE_BYTES, LARD_SCALE, Policies, shipped};
