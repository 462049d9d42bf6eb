//! Everything at once.

use super::{Access, Place};
use base::Time;

/// Asks for everything at once, and calls off what is not needed: the *speculative* access of the RobuSTore paper.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Speculative;

impl Access for Speculative {
    fn begin(&mut self, _: Time, places: &[Place]) -> Vec<Place> {
        places.to_vec()
    }

    fn ended(&mut self, _: Time, _: Place, _: bool) -> Vec<Place> {
        Vec::new()
    }
}
