//! RAID-0: stripe units in turn on all bricks, and no redundancy.

use super::rotation::{Rotation, Shape};
use super::{Family, Layout, Limit};

pub(super) static FAMILY: Family = Family {
    prefix: "raid0x",
    example: "raid0x1",
    first: Limit { what: "bricks", min: 1, max: 16 },
    second: None,
    make: |width, _| Layout::Raid0 { width },
    shape: |width, _| Shape { data: width, parity: 0, copies: 1, rotation: Rotation::None },
};
