//! Reed-Solomon: RAID-5 with up to four parities. The first is the exclusive or, so `rs-k+1` stores what `raid5-k+1`
//! does. `rotation` says which slot holds which data or parity, `code::erasure` how a parity is computed.

use super::rotation::{Rotation, Shape};
use super::{Family, Layout, Limit};

pub(super) static FAMILY: Family = Family {
    prefix: "rs-",
    example: "rs-4+2",
    first: Limit { what: "data bricks", min: 1, max: 16 },
    second: Some(Limit { what: "parity bricks", min: 1, max: 4 }),
    make: |data, parity| Layout::Rs { data, parity },
    shape: |data, parity| Shape { data, parity, copies: 1, rotation: Rotation::Left },
};
