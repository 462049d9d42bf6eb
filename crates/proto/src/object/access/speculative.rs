//! Everything at once.

use super::{Access, Place};

/// Asks for everything at once, and calls off what is not needed: the *speculative* access of the RobuSTore paper.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Speculative;

impl Access for Speculative {
    fn begin(&mut self, places: &[Place]) -> Vec<Place> {
        places.to_vec()
    }

    fn ended(&mut self, _: Place, _: bool) -> Vec<Place> {
        Vec::new()
    }
}
