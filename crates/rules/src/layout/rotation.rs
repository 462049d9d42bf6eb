//! Which slot of a group holds which data or parity shard of a row: the column that a block of a row lies in.

/// What a row is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    pub(super) data: u8,
    pub(super) parity: u8,
    /// Slots that hold each shard. More than one only where a row has one shard.
    pub(super) copies: u8,
    pub(super) rotation: Rotation,
}

/// How shards move over the slots from stripe to stripe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rotation {
    /// Shard 0 is always on slot 0.
    None,
    /// Each stripe begins one slot further to the left. With one parity this is left-symmetric RAID-5: successive data
    /// units visit all slots in turn, so that sequential reads of `width` units load each brick alike.
    Left,
}

impl Shape {
    pub(super) fn width(&self) -> u8 {
        (self.data + self.parity) * self.copies
    }

    /// The slot that holds data or parity shard `shard` of a stripe.
    pub(super) fn slot(&self, stripe: u64, shard: u8) -> u8 {
        match self.rotation {
            Rotation::None => shard,
            Rotation::Left => (shard + self.width() - self.turn(stripe)) % self.width(),
        }
    }

    /// The shard that `slot` holds of a stripe.
    pub(super) fn shard(&self, stripe: u64, slot: u8) -> u8 {
        match self.rotation {
            Rotation::None if self.copies > 1 => 0,
            Rotation::None => slot,
            Rotation::Left => (slot + self.turn(stripe)) % self.width(),
        }
    }

    /// By how many slots a stripe is turned to the left.
    fn turn(&self, stripe: u64) -> u8 {
        (stripe % u64::from(self.width())) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::super::Layout;

    #[test]
    fn raid5_is_left_symmetric() {
        let shape = Layout::Raid5 { data: 4 }.shape();
        let slots = |stripe| (0..5).map(|shard| shape.slot(stripe, shard)).collect::<Vec<_>>();
        assert_eq!(slots(0), [0, 1, 2, 3, 4]);
        assert_eq!(slots(1), [4, 0, 1, 2, 3]);
        assert_eq!(slots(4), [1, 2, 3, 4, 0]);
        assert_eq!(slots(5), slots(0));
    }
}
