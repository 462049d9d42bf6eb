//! RAID-1: every brick of the group has every block, at the same address.

use super::rotation::{Rotation, Shape};
use super::{Family, Layout, Limit};

pub(super) static FAMILY: Family = Family {
    prefix: "raid1x",
    example: "raid1x3",
    first: Limit { what: "copies", min: 1, max: 8 },
    second: None,
    make: |copies, _| Layout::Raid1 { copies },
    shape: |copies, _| Shape { data: 1, parity: 0, copies, rotation: Rotation::None },
};
