//! RAID-5: RAID-4 with the parity on another slot in each stripe, so that no brick takes part in every write.

use super::rotation::{Rotation, Shape};
use super::{Family, Layout, Limit};

pub(super) static FAMILY: Family = Family {
    prefix: "raid5-",
    example: "raid5-4+1",
    first: Limit { what: "data bricks", min: 1, max: 16 },
    second: Some(Limit { what: "parity bricks", min: 1, max: 1 }),
    make: |data, _| Layout::Raid5 { data },
    shape: |data, parity| Shape { data, parity, copies: 1, rotation: Rotation::Left },
};
