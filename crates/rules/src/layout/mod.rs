//! Where the blocks of a volume lie.
//!
//! A volume is cut into *extents*; an extent lies on one *group* of bricks, whose members have the *slots* 0 to
//! `width - 1`. The part of an extent on one member is a *column*, of a fixed number of *stripe units*. The units at
//! one height in all columns are a *stripe*; the blocks at one height are a *row*: the data of a row and its parity
//! belong together, and nothing else does. In a row, the *shards* are numbered data first, then parity.
//!
//! Reading order: [`Layout`] (which shards there are), one file a layout, `rotation` (which slot holds which data or parity
//! shard of a stripe), [`extent`] (block addresses), [`range`] (a request cut into pieces and rows), [`placement`] (which bricks
//! make a group, and which group gets an extent), [`declustering`] (where the copies of single buckets lie, without groups).
//!
//! A new layout is a file with a `Family`, a variant of [`Layout`], and a line in `FAMILIES` and `Layout::spelled`.

pub mod declustering;
pub mod extent;
mod lost;
pub mod placement;
mod raid0;
mod raid1;
mod raid4;
mod raid5;
pub mod range;
mod rotation;
mod rs;

pub use extent::{Geometry, GeometryError, Location};
pub use lost::lost_ranges;
pub use range::{Part, Piece};

use core::fmt;
use core::str::FromStr;
use rotation::Shape;
use thiserror::Error;

/// How an extent's blocks and their redundancy lie on a group of bricks. Written like `raid0x1`, `raid1x3`,
/// `raid4-4+1`, `raid5-4+1`, `rs-4+2`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layout {
    Raid0 {
        width: u8,
    },
    Raid1 {
        /// Bricks, each with all of it.
        copies: u8,
    },
    /// Striped, with the parity of all stripes on the last slot.
    Raid4 {
        /// Bricks' worth of data.
        data: u8,
    },
    /// Striped, with parity that rotates.
    Raid5 {
        /// Bricks' worth of data.
        data: u8,
    },
    /// Striped, with several Reed-Solomon parities that rotate.
    Rs {
        /// Bricks' worth of data.
        data: u8,
        /// Bricks' worth of parity.
        parity: u8,
    },
}

/// Why a layout is refused.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum LayoutError {
    /// It begins like none.
    #[error("no layout is called `{text}`; there are {}", examples())]
    Unknown { text: String },
    /// It begins like one, and goes on differently.
    #[error("`{text}` is not a layout; write it like {example}")]
    Malformed {
        text: String,
        /// A good one of this kind.
        example: &'static str,
    },
    /// A number in it is out of bounds.
    #[error("layout {text}: {value} {what} cannot be; {min} to {max} can")]
    Limit {
        text: String,
        what: &'static str,
        /// How many there are to be.
        value: u64,
        /// How many there must be.
        min: u8,
        /// How many there may be.
        max: u8,
    },
}

impl Layout {
    /// How many bricks a group has.
    pub fn width(self) -> u8 {
        self.shape().width()
    }

    /// How many data shards a row has: 1 when it is mirrored.
    pub fn data(self) -> u8 {
        self.shape().data
    }

    /// How many parity shards a row has: 0 when it is mirrored.
    pub fn parity(self) -> u8 {
        self.shape().parity
    }

    /// How many slots hold each data shard.
    pub fn copies(self) -> u8 {
        self.shape().copies
    }

    /// How many members of a group may fail before data are lost.
    pub fn tolerates(self) -> u8 {
        self.shape().parity + self.shape().copies - 1
    }

    /// Whether its numbers are within the limits, which a value made by hand may not be.
    pub fn check(self) -> Result<(), LayoutError> {
        let (family, first, second) = self.spelled();
        family.check(&self.to_string(), u64::from(first), u64::from(second))
    }

    fn shape(self) -> Shape {
        let (family, first, second) = self.spelled();
        (family.shape)(first, second)
    }

    /// Its family, and the numbers in its name.
    fn spelled(self) -> (&'static Family, u8, u8) {
        match self {
            Layout::Raid0 { width } => (&raid0::FAMILY, width, 0),
            Layout::Raid1 { copies } => (&raid1::FAMILY, copies, 0),
            Layout::Raid4 { data } => (&raid4::FAMILY, data, 1),
            Layout::Raid5 { data } => (&raid5::FAMILY, data, 1),
            Layout::Rs { data, parity } => (&rs::FAMILY, data, parity),
        }
    }
}

static FAMILIES: [&Family; 5] = [&raid0::FAMILY, &raid1::FAMILY, &raid4::FAMILY, &raid5::FAMILY, &rs::FAMILY];

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (family, first, second) = self.spelled();
        write!(f, "{}{first}", family.prefix)?;
        if family.second.is_some() {
            write!(f, "+{second}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Layout {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Layout, LayoutError> {
        FAMILIES
            .iter()
            .find_map(|family| Some(family.parse(text, text.strip_prefix(family.prefix)?)))
            .unwrap_or_else(|| Err(LayoutError::Unknown { text: text.to_owned() }))
    }
}

fn examples() -> String {
    FAMILIES.map(|family| family.example).join(", ")
}

/// The layouts that differ only in their numbers.
struct Family {
    /// What their names begin with.
    prefix: &'static str,
    example: &'static str,
    first: Limit,
    /// For names like `4+1`.
    second: Option<Limit>,
    make: fn(u8, u8) -> Layout,
    shape: fn(u8, u8) -> Shape,
}

struct Limit {
    what: &'static str,
    min: u8,
    max: u8,
}

impl Family {
    /// Reads `numbers`, the part of `text` behind the prefix.
    fn parse(&self, text: &str, numbers: &str) -> Result<Layout, LayoutError> {
        let malformed = || LayoutError::Malformed { text: text.to_owned(), example: self.example };
        let number = |digits: &str| digits.parse::<u64>().map_err(|_| malformed());
        let (first, second) = match self.second {
            Some(_) => numbers.split_once('+').ok_or_else(malformed)?,
            None => (numbers, "0"),
        };
        let (first, second) = (number(first)?, number(second)?);
        self.check(text, first, second)?;
        // The limits are of type u8.
        let layout = (self.make)(first as u8, second as u8);
        // One layout has one name: no leading zeros or signs.
        if layout.to_string() == text { Ok(layout) } else { Err(malformed()) }
    }

    fn check(&self, text: &str, first: u64, second: u64) -> Result<(), LayoutError> {
        self.first.check(text, first)?;
        self.second.as_ref().map_or(Ok(()), |limit| limit.check(text, second))
    }
}

impl Limit {
    fn check(&self, text: &str, value: u64) -> Result<(), LayoutError> {
        let &Limit { what, min, max } = self;
        if (u64::from(min)..=u64::from(max)).contains(&value) {
            return Ok(());
        }
        Err(LayoutError::Limit { text: text.to_owned(), what, value, min, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        let facts = |name: &str| {
            let layout: Layout = name.parse().expect(name);
            assert_eq!((layout.to_string().as_str(), layout.check()), (name, Ok(())));
            (layout.width(), layout.data(), layout.parity(), layout.copies(), layout.tolerates())
        };
        assert_eq!(facts("raid0x1"), (1, 1, 0, 1, 0));
        assert_eq!(facts("raid0x16"), (16, 16, 0, 1, 0));
        assert_eq!(facts("raid1x3"), (3, 1, 0, 3, 2));
        assert_eq!(facts("raid4-4+1"), (5, 4, 1, 1, 1));
        assert_eq!(facts("raid5-4+1"), (5, 4, 1, 1, 1));
        assert_eq!(facts("rs-4+2"), (6, 4, 2, 1, 2));
    }

    #[test]
    fn refusals_say_what_to_write() {
        let refusal = |name: &str| name.parse::<Layout>().expect_err(name).to_string();
        for name in ["", "raid6-4+2", "RAID1x3", "rs"] {
            assert!(refusal(name).contains("there are raid0x1, raid1x3, raid4-4+1,"), "{}", refusal(name));
        }
        for name in
            ["raid1x", "raid1x03", "raid1x+3", "raid1x3 ", "raid5-4", "raid5-4+", "rs-4+2+1", "rs-4+-2"]
        {
            assert!(refusal(name).contains("write it like"), "{}", refusal(name));
        }
        assert_eq!(refusal("raid5-40+1"), "layout raid5-40+1: 40 data bricks cannot be; 1 to 16 can");
        assert_eq!(refusal("raid5-4+2"), "layout raid5-4+2: 2 parity bricks cannot be; 1 to 1 can");
        assert_eq!(refusal("rs-4+260"), "layout rs-4+260: 260 parity bricks cannot be; 1 to 4 can");
        assert_eq!(refusal("raid1x0"), "layout raid1x0: 0 copies cannot be; 1 to 8 can");
        assert!(Layout::Raid0 { width: 17 }.check().is_err());
    }
}
