//! Metadata pages that a scrub finds damaged on the disk while they are whole in memory are written again.
//!
//! Between two cycles the pages in memory are those on the disk, so that one can be held against the other.

use crate::io::IoKind;
use crate::machine::{Purpose, Running};
use crate::metadata::{Key, Page};
use base::BLOCK;
use bytes::Bytes;
use wire::Span;

impl Running {
    /// Looks at the pages of these blocks on the disk; those that are not in memory a read looks at anyway.
    pub(crate) fn look_at_pages(&mut self, span: &Span, width: u8) {
        if !self.cycle.is_idle() {
            return;
        }
        for plane in 0..width {
            let key = Key::of(span.volume, span.lba, plane);
            let Some(home) = self.pages.home(key).filter(|_| self.pages.is_resident(key)) else { continue };
            let offset = self.geometry.page_offset(home.place);
            self.ask(Purpose::Look(key, self.stats.destages), IoKind::read(offset, BLOCK));
        }
    }

    /// Takes the page as the disk has it; `destages` tells whether a cycle has come in between.
    pub(crate) fn on_looked(&mut self, key: Key, destages: u64, bytes: Option<Bytes>) {
        let is_same_cycle = self.cycle.is_idle() && self.stats.destages == destages;
        let (Some(home), true) = (self.pages.home(key), is_same_cycle) else { return };
        let decoded = bytes.map(|b| Page::decode(&b, home.place, self.geometry.slot_count, self.seed));
        let Some(page) = self.pages.get(key) else { return };
        let is_good = decoded.is_some_and(|decoded| decoded.key == Some(key) && decoded.page == *page);
        if !is_good && self.rewrites.insert(key) {
            self.pages.pin(key);
            self.stats.rewritten_pages += 1;
            self.cycle.want(true);
        }
    }

    /// Writes a page again, within a cycle that does not change it.
    pub(crate) fn rewrite(&mut self, key: Key) {
        if self.pages.home(key).is_some() && self.pages.is_resident(key) {
            self.write_page(key);
            self.pages.unpin(key);
        }
    }
}
