//! What a disk holds, stretch by stretch: what another member has to compare itself with.

use crate::discard::Region;
use crate::machine::Running;
use crate::metadata::PAGE_BLOCKS;
use crate::superblock::SLOT_BLOCKS;
use base::VolumeId;
use wire::Span;
use wire::disk::{INVENTORY_MAX, Reply, Token};

/// A volume and the number of one of its stretches.
type Stretch = (VolumeId, u64);

impl Running {
    /// Answers with the stretches behind `after` that hold stamps, at home or not. A stretch of which a metadata page was
    /// lost as a whole may be missing: nobody knows any more that it was there.
    pub(crate) fn on_inventory(&mut self, token: Token, after: Option<Stretch>) {
        let mut found = Vec::new();
        let mut from = after.map_or(Some((VolumeId(0), 0)), following);
        while let Some(stretch) =
            from.filter(|_| found.len() < INVENTORY_MAX).and_then(|from| self.next(from))
        {
            let (volume, number) = stretch;
            if !self.discards.cover(volume, number.saturating_mul(Span::STRETCH_BLOCKS)) {
                found.push(stretch);
            }
            from = following(stretch);
        }
        self.reply(Reply::Inventory { token, result: Ok(found) });
    }

    /// The first stretch from `from` on of which there is a page, or a block that is not at home.
    fn next(&self, from: Stretch) -> Option<Stretch> {
        let begin = Region { volume: from.0, stretch: Some(from.1) };
        let page = self.pages.first_from(*begin.pages().start());
        let page = page.map(|key| (key.volume, key.page / (Span::STRETCH_BLOCKS / PAGE_BLOCKS)));
        let layers = [&self.fresh, &self.durable, &self.destaging].into_iter();
        let groups = layers.filter_map(|layer| layer.first_from(*begin.groups().start()));
        let groups = groups.map(|(volume, number)| (volume, number / (Span::STRETCH_BLOCKS / SLOT_BLOCKS)));
        groups.chain(page).min()
    }
}

/// The stretch behind this one, of this volume or the next.
fn following((volume, number): Stretch) -> Option<Stretch> {
    if number < u64::MAX / Span::STRETCH_BLOCKS {
        return Some((volume, number + 1));
    }
    volume.0.checked_add(1).map(|next| (VolumeId(next), 0))
}
