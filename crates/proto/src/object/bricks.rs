//! The bricks, as the directory last said: where they are reached, and which of them take fragments of new versions.

use base::{BrickId, NodeId, Time};
use core::time::Duration;
use wire::{BrickPlace, Message};

/// What the directory said is old after this time.
const FRESH: Duration = Duration::from_secs(5);
/// A question that was not answered is asked again after this time.
const AGAIN: Duration = Duration::from_millis(500);

#[derive(Debug, Default)]
pub(super) struct Bricks {
    places: Vec<BrickPlace>,
    /// When the directory said so.
    since: Option<Time>,
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

    fn place(&self, brick: BrickId) -> Option<&BrickPlace> {
        self.places.iter().find(|place| place.brick == brick)
    }

    /// A number that is another one when a brick is lost, comes, or has other disks than before.
    pub(super) fn fingerprint(&self) -> u64 {
        let mix = |all: u64, of: u64| (all.rotate_left(9) ^ of).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let of =
            |place: &BrickPlace| mix(mix(u64::from(place.brick.0), u64::from(place.is_lost)), place.disks);
        self.places.iter().map(of).fold(0, mix)
    }

    /// The directory says which there are. Those that are reached somewhere else than before.
    pub(super) fn on_bricks(
        &mut self,
        now: Time,
        operation: u64,
        places: Vec<BrickPlace>,
    ) -> Vec<(NodeId, String)> {
        if operation != self.operation {
            return Vec::new();
        }
        let is_known = |place: &BrickPlace| {
            self.places.iter().any(|known| (known.brick, &known.address) == (place.brick, &place.address))
        };
        let moved = places.iter().filter(|place| !is_known(place));
        let moved = moved.map(|place| (NodeId::Brick(place.brick), place.address.clone())).collect();
        (self.places, self.since, self.again) = (places, Some(now), None);
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
        Some(Message::GetBricks { operation: self.operation })
    }
}
