//! Large objects in the torture: [`segments`] puts and gets segments alone, [`named`] whole objects by their names.

pub(crate) mod named;
pub(crate) mod segments;

use crate::world::World;

impl World {
    pub(crate) fn start_objects(&mut self) {
        self.start_segments();
        self.start_named();
    }
}
