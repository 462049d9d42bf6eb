//! How much new content the disk takes: as much as goes home, once much of what came before is not there yet.
//!
//! What bounds a store is freed a whole cycle at a time: memory, and the journal's ring, when the header is written that ends it. Writes that come
//! faster than the disk takes them home would all wait for that, and then come in one burst. So [`Pace`] counts what is *away*: journalled content
//! that is not written home yet. Beyond [`AWAY_SHARE`] of either bound new content waits, and each block that comes home lets one in. A cycle
//! begins with what is away, and while it lasts about as much comes in: some twice the share is in use at the most, which is below the bound. What
//! is left up to the bound is for writes that are not decided, for what was told before the journal filled with other records, and for who brings more
//! than was told: the bound itself is kept by refusing ([`StoreError::NoRoomYet`](wire::disk::StoreError::NoRoomYet)).
//!
//! Writes that are not decided count as if they were away, but for half of the share at the most. How long they last is up to others, who may wait for
//! room at another disk. As long as something is held back here something is on its way home, or a cycle would free a part of the journal; where neither
//! is so, nothing is held back ([`Room::of`]). So nobody waits for ever.
//!
//! Whoever has the store keeps the content that waits ([`Reply::Room`]): a write that has begun does not wait here.
//!
//! [`Pace`], [`Room`] and [`Bound`] know nothing of this store: the simulator's modelled disks go by them, too.

use crate::blocks::Blocks;
use crate::config::Limits;
use crate::destage::Destage;
use crate::group_commit::Log;
use base::BLOCK_U64;
use wire::disk::Reply;

/// Of each bound, how much may be away: so many in eight parts.
const AWAY_SHARE: u64 = 3;
/// What a byte of content takes in the journal at the most: a block in a frame of its own takes two.
const RECORD_SHARE: u64 = 2;
/// Less than so much is told when all of what was told before is used up, and more when there is so much more.
const TOLD_AT: u64 = 16 * BLOCK_U64;

/// What a disk has told of its room.
#[derive(Debug)]
pub struct Pace {
    /// Of what was told, what did not come yet; [`u64::MAX`] as long as nothing is held back.
    left: u64,
}

impl Default for Pace {
    /// Nothing is held back.
    fn default() -> Pace {
        Pace { left: u64::MAX }
    }
}

impl Pace {
    /// Content of so many bytes came.
    pub fn take(&mut self, bytes: usize) {
        if self.left != u64::MAX {
            self.left = self.left.saturating_sub(bytes as u64);
        }
    }

    /// Whether nothing is left of what was told: somebody may wait.
    pub fn is_used_up(&self) -> bool {
        self.left == 0
    }

    /// What is to be told now, if anything.
    pub fn tell(&mut self, room: Room) -> Option<Reply> {
        let bytes = match room {
            Room::Plenty => u64::MAX,
            // Nothing is held back, and need not be.
            Room::Enough(_) if self.left == u64::MAX => return None,
            Room::Enough(bytes) | Room::Scarce(bytes) => bytes,
        };
        let is_less = bytes < self.left && self.left == u64::MAX;
        let is_more = bytes > self.left && (self.left == 0 || bytes - self.left >= TOLD_AT);
        (is_less || is_more).then(|| {
            self.left = bytes;
            Reply::Room { bytes }
        })
    }

    /// The disk failed: whoever waits for it is to hear that.
    pub(crate) fn open(&mut self) -> Option<Reply> {
        self.tell(Room::Plenty)
    }
}

/// How much new content may come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// So little is away that nothing need be held back, whatever was before.
    Plenty,
    /// So much; not so little that content begins to be held back for it.
    Enough(u64),
    /// So much.
    Scarce(u64),
}

impl Room {
    /// Within these bounds together.
    pub fn within(bounds: &[Bound]) -> Room {
        let left = bounds.iter().map(Bound::left).min().unwrap_or(u64::MAX);
        match bounds.iter().map(Bound::used_parts).max().unwrap_or(0) {
            0 => Room::Plenty,
            1 => Room::Enough(left),
            _ => Room::Scarce(left),
        }
    }

    /// With so much content a cycle begins: before any is held back.
    pub(crate) fn cycle_bytes(limits: &Limits) -> usize {
        share_of(limits.backlog_bytes as u64) as usize / 4 * 3
    }

    /// Of this store now.
    pub(crate) fn of(limits: &Limits, blocks: &Blocks, log: &Log, destage: &Destage) -> Room {
        let home = destage.home(blocks, log);
        let (content, undecided) = (blocks.layers.journalled_bytes() as u64, log.live_cost() as u64);
        if content == 0 && destage.is_idle() && !destage.frees_journal(log) {
            // No cycle would make more.
            return Room::Plenty;
        }
        let memory = Bound::new(
            share_of(limits.backlog_bytes as u64),
            content.saturating_sub(home.content),
            undecided,
        );
        // What is undecided is in the journal already.
        let journal = log.journal();
        let away = journal.used().saturating_sub(home.journal);
        let journal = Bound::new(share_of(journal.capacity()) / RECORD_SHARE, away.div_ceil(RECORD_SHARE), 0);
        Room::within(&[memory, journal])
    }
}

/// Of a bound that is freed a cycle at a time, how much may be away.
fn share_of(all: u64) -> u64 {
    all / 8 * AWAY_SHARE
}

/// Something that is freed as content comes home.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    most: u64,
    away: u64,
}

impl Bound {
    /// Bytes of content, of which `most` may be away, `away` are, and so many are not decided.
    pub fn new(most: u64, away: u64, undecided: u64) -> Bound {
        Bound { most, away: away + undecided.min(most / 2) }
    }

    fn left(&self) -> u64 {
        self.most.saturating_sub(self.away)
    }

    /// In thirds of what may be away.
    fn used_parts(&self) -> u64 {
        self.away * 3 / self.most.max(1)
    }
}

/// What the cycle under way has brought home so far, and gives back when it ends.
#[derive(Clone, Copy, Default)]
pub(crate) struct Home {
    /// Bytes of content.
    pub(crate) content: u64,
    /// Bytes of the journal.
    pub(crate) journal: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_held_back_late_and_let_in_as_it_goes_home() {
        let mut pace = Pace::default();
        let told = |pace: &mut Pace, room| match pace.tell(room) {
            Some(Reply::Room { bytes }) => Some(bytes),
            _ => None,
        };
        assert_eq!(told(&mut pace, Room::Enough(9)), None, "nothing was held back");
        assert_eq!(told(&mut pace, Room::Scarce(3 * TOLD_AT)), Some(3 * TOLD_AT));
        pace.take(TOLD_AT as usize);
        assert_eq!(told(&mut pace, Room::Scarce(2 * TOLD_AT)), None, "that much is known");
        assert_eq!(told(&mut pace, Room::Scarce(TOLD_AT)), None, "what was told is not taken back");
        assert_eq!(told(&mut pace, Room::Scarce(2 * TOLD_AT + 1)), None, "it can wait");
        assert_eq!(told(&mut pace, Room::Enough(3 * TOLD_AT)), Some(3 * TOLD_AT));
        pace.take(usize::MAX);
        assert!(pace.is_used_up());
        assert_eq!(told(&mut pace, Room::Scarce(0)), None);
        assert_eq!(told(&mut pace, Room::Scarce(1)), Some(1), "somebody may wait");
        assert_eq!(told(&mut pace, Room::Plenty), Some(u64::MAX));
        assert_eq!(told(&mut pace, Room::Plenty), None);
    }

    #[test]
    fn what_is_away_is_counted_in_thirds_of_its_share() {
        let room = |away| Room::within(&[Bound::new(300, away, 0)]);
        assert_eq!([0, 99].map(room), [Room::Plenty; 2]);
        assert_eq!([100, 199].map(room), [Room::Enough(200), Room::Enough(101)]);
        assert_eq!([200, 299, 301].map(room), [Room::Scarce(100), Room::Scarce(1), Room::Scarce(0)]);
        let fuller = Bound::new(30, 29, 0);
        assert_eq!(
            Room::within(&[Bound::new(300, 0, 0), fuller]),
            Room::Scarce(1),
            "the fuller bound counts"
        );
    }

    #[test]
    fn what_is_not_decided_holds_back_half_of_the_share_at_most() {
        let room = |undecided| Room::within(&[Bound::new(300, 60, undecided)]);
        assert_eq!([30, 140].map(room), [Room::Plenty, Room::Scarce(100)]);
        assert_eq!(room(u64::MAX), Room::Scarce(90));
    }
}
