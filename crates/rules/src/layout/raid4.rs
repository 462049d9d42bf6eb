//! RAID-4: the exclusive or of the data of each row, always on the last slot.

use super::rotation::{Rotation, Shape};
use super::{Family, Layout, Limit};

pub(super) static FAMILY: Family = Family {
    prefix: "raid4-",
    example: "raid4-4+1",
    first: Limit { what: "data bricks", min: 1, max: 16 },
    second: Some(Limit { what: "parity bricks", min: 1, max: 1 }),
    make: |data, _| Layout::Raid4 { data },
    shape: |data, parity| Shape { data, parity, copies: 1, rotation: Rotation::None },
};
