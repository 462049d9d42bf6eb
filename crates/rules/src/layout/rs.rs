//! Reed-Solomon: RAID-5 with up to four parities. The first is the exclusive or, so `rs-k+1` stores what `raid5-k+1`
//! does; data unit d enters parity p with the coefficient that `code::erasure` gives (`Code::coefficient`).
//!
//! Each stripe lies one column further to the left ([`super::rotation`], `Shape::slot`). Of `rs-4+2`, by slot:
//!
//! ```text
//! stripe   0   1   2   3   4   5
//!      0  d0  d1  d2  d3  p0  p1
//!      1  d1  d2  d3  p0  p1  d0
//!      2  d2  d3  p0  p1  d0  d1
//! ```

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

#[cfg(test)]
mod tests {
    use super::super::Layout;

    #[test]
    fn the_columns_are_as_drawn() {
        let shape = Layout::Rs { data: 4, parity: 2 }.shape();
        let drawn = [[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0], [2, 3, 4, 5, 0, 1]];
        for (stripe, shards) in drawn.into_iter().enumerate() {
            let found: Vec<u8> = (0..6).map(|slot| shape.shard(stripe as u64, slot)).collect();
            assert_eq!(found, shards, "stripe {stripe}");
        }
    }
}
