//! Which members of a group a write concerns, and what each of them keeps.

use rules::layout::Geometry;
use wire::{Scope, Slots, WriteId};

/// Those `among` a group's members that take part in a write: of the writers of a view those that must have it, of the
/// current ones those that serve what it wrote. A write that a stranger made up has none.
pub fn participants(geometry: &Geometry, among: Slots, write: &WriteId) -> Slots {
    let slots = match write.scope {
        Scope::Row => among,
        Scope::Unit { index } if index >= geometry.layout().data() => Slots::default(),
        Scope::Unit { index } => geometry
            .parity_slots(write.span.lba)
            .fold(Slots::one(geometry.slot_of(write.span.lba, index)), |slots, (_, slot)| slots.with(slot)),
    };
    slots.and(among)
}

/// Stamps a block that the member at `slot` keeps for the row at `lba`.
pub fn width_at(geometry: &Geometry, lba: u64, slot: u8) -> u8 {
    match geometry.data_index_at(lba, slot) {
        Some(_) => 1,
        None => geometry.layout().data(),
    }
}

/// Whether each member has the whole content.
pub fn is_mirrored(geometry: &Geometry) -> bool {
    geometry.layout().copies() > 1
}
