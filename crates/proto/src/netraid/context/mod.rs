//! What operations share, in parts that own their fields. Knows no operation.
//!
//! | part | what it is |
//! |---|---|
//! | [`views`] | views and geometries, who can be reached, which groups are stale |
//! | [`calls`] | questions that are outstanding, and numbers |
//! | [`choice`] | how fast bricks are, and by which policy reads are served |

pub(crate) mod calls;
pub(crate) mod choice;
pub(crate) mod views;
