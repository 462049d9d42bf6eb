//! The bricks, as the directory last said: where they are reached, and which of them take fragments of new versions.

use super::access::Place;
use base::{BrickId, NodeId, ObjectVersion, Time};
use core::time::Duration;
use rules::layout::placement::score;
use wire::object::Pack;
use wire::{BrickPlace, Message};

/// What the directory said is old after this time.
const FRESH: Duration = Duration::from_secs(5);
/// A question that was not answered is asked again after this time.
const AGAIN: Duration = Duration::from_millis(500);

#[derive(Debug, Default)]
pub(super) struct Bricks {
    places: Vec<BrickPlace>,
    /// When the directory was asked for what it said: it was so then, or later.
    since: Option<Time>,
    asked: Time,
    /// When it is asked again.
    again: Option<Time>,
    operation: u64,
}

impl Bricks {
    /// Whether what is known is of now; where it is not, the directory is asked.
    pub(super) fn are_fresh(&mut self, now: Time) -> bool {
        let fresh = self.since.is_some_and(|since| now.since(since) < FRESH);
        if !fresh && self.again.is_none() {
            self.again = Some(now);
        }
        fresh
    }

    /// Whether the directory has ever said which there are.
    pub(super) fn are_known(&self) -> bool {
        self.since.is_some()
    }

    /// Those that take fragments of new versions.
    pub(super) fn that_take_more(&self) -> Vec<BrickId> {
        self.places.iter().filter(|place| place.takes_more).map(|place| place.brick).collect()
    }

    /// The same, in an order that is drawn for a segment: who has more room comes first more often. Small fragments of neighbours, which lie
    /// together, go to the same bricks.
    pub(super) fn in_drawn_order(
        &self,
        (version, segment): (ObjectVersion, u32),
        symbol_blocks: u32,
    ) -> Vec<BrickId> {
        let of = Pack::neighbours(version, symbol_blocks);
        let score = |place: &BrickPlace| {
            let hash = drawn(of.0 ^ u64::from(segment).rotate_left(40), place.brick);
            score(hash, place.free_bytes.max(1))
        };
        let takers = self.places.iter().filter(|place| place.takes_more);
        let mut takers: Vec<(f64, BrickId)> = takers.map(|place| (score(place), place.brick)).collect();
        takers.sort_by(|(left, _), (right, _)| right.total_cmp(left));
        takers.into_iter().map(|(_, brick)| brick).collect()
    }

    /// Whether what this one has is to be kept elsewhere. One that nobody knows is lost.
    pub(super) fn is_lost(&self, brick: BrickId) -> bool {
        self.place(brick).is_none_or(|place| place.is_lost)
    }

    /// Whether this one is to be emptied.
    pub(super) fn is_evicted(&self, brick: BrickId) -> bool {
        self.place(brick).is_some_and(|place| place.is_evicted)
    }

    /// Whether the directory hears it.
    pub(super) fn is_heard(&self, brick: BrickId) -> bool {
        self.place(brick).is_some_and(|place| place.is_heard)
    }

    /// Another number when this one comes with other disks.
    pub(super) fn disks(&self, brick: BrickId) -> u64 {
        self.place(brick).map_or(0, |place| place.disks)
    }

    /// Whether nothing can be had from this one now.
    pub(super) fn is_away(&self, brick: BrickId) -> bool {
        self.is_lost(brick) || !self.is_heard(brick)
    }

    fn place(&self, brick: BrickId) -> Option<&BrickPlace> {
        self.places.iter().find(|place| place.brick == brick)
    }

    /// What is known of all bricks, for the brick `me`.
    pub(super) fn room(&self, me: BrickId) -> Room {
        let fills = Fills::of(&self.places);
        let of_me = self.place(me).filter(|place| place.capacity_bytes > 0);
        let excess = of_me.zip(fills).map(|(of_me, fills)| fills.excess(of_me) / capacity(of_me));
        let is_any_lost = self.places.iter().any(|place| place.is_lost);
        Room { fingerprint: self.fingerprint(), is_any_lost, excess, is_evicted: self.is_evicted(me) }
    }

    /// Who is to have what the brick `me` has of a segment that is at these places; none where it is to stay. `draw` is an even number for each segment.
    ///
    /// So many segments leave a brick that it becomes as full as all bricks are on average, and a brick gets the more of them, the less it has.
    /// Only a brick that has nothing of the segment gets any.
    pub(super) fn better_place(&self, me: BrickId, places: &[Place], draw: u64) -> Option<BrickId> {
        let fills = Fills::of(&self.places)?;
        let of_me = self.place(me).filter(|place| is_weighed(place))?;
        let share = fills.excess(of_me) / used(of_me).max(1.0);
        if draw as f64 / u64::MAX as f64 >= share {
            return None;
        }
        let has_none = |place: &&BrickPlace| places.iter().all(|(_, brick)| *brick != place.brick);
        let takes = |place: &&BrickPlace| place.takes_more && is_weighed(place);
        let takers = self.places.iter().filter(takes).filter(has_none);
        let room = |place: &BrickPlace| (-fills.excess(place)) as u64;
        let takers = takers.filter(|place| room(place) > 0);
        let scored = takers.map(|place| (score(drawn(draw, place.brick), room(place)), place.brick));
        scored.max_by(|(left, _), (right, _)| left.total_cmp(right)).map(|(_, brick)| brick)
    }

    /// A number that is another one when a brick is lost, comes, or has other disks than before.
    fn fingerprint(&self) -> u64 {
        let mix = |all: u64, of: u64| (all.rotate_left(9) ^ of).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let of =
            |place: &BrickPlace| mix(mix(u64::from(place.brick.0), u64::from(place.is_lost)), place.disks);
        self.places.iter().map(of).fold(0, mix)
    }

    /// The directory says which there are. Those that are reached somewhere else than before.
    pub(super) fn on_bricks(&mut self, operation: u64, places: Vec<BrickPlace>) -> Vec<(NodeId, String)> {
        if operation != self.operation {
            return Vec::new();
        }
        let is_known = |place: &BrickPlace| {
            self.places.iter().any(|known| (known.brick, &known.address) == (place.brick, &place.address))
        };
        let moved = places.iter().filter(|place| !is_known(place));
        let moved = moved.map(|place| (NodeId::Brick(place.brick), place.address.clone())).collect();
        (self.places, self.since, self.again) = (places, Some(self.asked), None);
        moved
    }

    /// The directory can be reached again: it is asked at once, if it is to be asked.
    pub(super) fn on_up(&mut self, now: Time) {
        self.again = self.again.map(|_| now);
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.again
    }

    /// The question, where it is due.
    pub(super) fn wake(&mut self, now: Time) -> Option<Message> {
        if self.again.is_none_or(|again| again > now) {
            return None;
        }
        self.again = Some(now + AGAIN);
        self.operation += 1;
        self.asked = now;
        Some(Message::GetBricks { operation: self.operation })
    }
}

/// What is known of all bricks, for one of them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Room {
    /// Another number when a brick is lost, comes, or has other disks than before.
    pub fingerprint: u64,
    /// Whether what some brick has is to be kept elsewhere.
    pub is_any_lost: bool,
    /// By how much the brick is fuller than all bricks are on average, as a share of its capacity; negative where it is emptier. None where
    /// some daemon does not know that fragments can be moved.
    pub excess: Option<f64>,
    /// Whether the brick is to be emptied.
    pub is_evicted: bool,
}

/// How full bricks are.
struct Fills {
    /// Of all together, from 0 to 1.
    mean: f64,
}

impl Fills {
    /// None where nobody has said how large it is.
    fn of(places: &[BrickPlace]) -> Option<Fills> {
        let weighed = || places.iter().filter(|place| is_weighed(place));
        let all: f64 = weighed().map(capacity).sum();
        (all > 0.0).then(|| Fills { mean: weighed().map(used).sum::<f64>() / all })
    }

    /// So many bytes a brick has beyond what it would have if all were equally full.
    fn excess(&self, place: &BrickPlace) -> f64 {
        used(place) - self.mean * capacity(place)
    }
}

fn is_weighed(place: &BrickPlace) -> bool {
    place.capacity_bytes > 0 && place.is_heard && !place.is_lost && !place.is_evicted
}

fn capacity(place: &BrickPlace) -> f64 {
    place.capacity_bytes as f64
}

fn used(place: &BrickPlace) -> f64 {
    place.capacity_bytes.saturating_sub(place.free_bytes) as f64
}

/// A number that a brick draws for a version: the same wherever it is computed.
pub(super) fn drawn(of: u64, brick: BrickId) -> u64 {
    let mixed = (of ^ u64::from(brick.0).rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ mixed >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Found with a million small objects on three bricks: the first two had nearly all of them.
    #[test]
    fn who_has_more_room_gets_more_and_everybody_gets_some() {
        let place = |brick: u32, free_bytes: u64, takes_more: bool| BrickPlace {
            brick: BrickId(brick),
            address: String::new(),
            takes_more,
            free_bytes,
            is_heard: true,
            is_evicted: false,
            is_lost: false,
            disks: 0,
            capacity_bytes: 0,
        };
        let places = vec![
            place(1, 1 << 30, true),
            place(2, 1 << 30, true),
            place(3, 2 << 30, true),
            place(4, 9 << 30, false),
        ];
        let bricks = Bricks { places, ..Bricks::default() };
        let mut first = BTreeMap::new();
        let order = |version: u64, segment, blocks| {
            bricks.in_drawn_order((ObjectVersion(7 << 36 | version), segment), blocks)
        };
        for version in 0..4000 {
            for segment in 0..2 {
                let order = order(version, segment, 16);
                assert_eq!(order.len(), 3);
                *first.entry(order[0].0).or_insert(0) += 1;
            }
        }
        let expected = [(1, 2000), (2, 2000), (3, 4000)];
        assert!(expected.iter().all(|(brick, count)| i32::abs_diff(first[brick], *count) < 200), "{first:?}");
        for version in 0..4000 {
            assert_eq!(
                order(version, 0, 1),
                order(version - version % Pack::VERSIONS, 0, 1),
                "they lie together"
            );
        }
    }
}
