//! A walk over the versions of objects that the brick's disks have, a page at a time: what stretches of which there are, and what is in packs.
//!
//! A pack is a stretch of many versions. Which of them are in it is looked up before it is passed on.

use super::context::Context;
use super::disks::{Effect, Walker};
use super::job::Stretch;
use base::{ObjectVersion, Time, VolumeId};
use core::time::Duration;
use rules::counters::Counter;
use std::collections::VecDeque;
use wire::disk::{Blocks, INVENTORY_MAX, StoreError};
use wire::object::{Pack, VERSIONS_MAX};
use wire::{FragmentId, Span};

#[derive(Debug)]
pub(super) struct Versions {
    of: Walker,
    disk: usize,
    /// Versions up to this one came.
    after: Stretch,
    is_listing: bool,
    state: State,
    /// Packs that came, and at which disk.
    packs: VecDeque<(usize, Pack)>,
    /// Of each block of the first of them, as far as they are looked up: whether it is there, or may be.
    known: Vec<bool>,
}

/// Whether the disk can say what it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Known,
    /// It was busy when it was asked last.
    Busy,
    /// It is asked again then.
    Again(Time),
}

/// A disk that was busy is asked again after this time.
const AGAIN: Duration = Duration::from_millis(500);

/// What a disk answered.
pub(super) enum Listed {
    Page(Result<Vec<Stretch>, StoreError>),
    /// Some blocks of a pack.
    Survey(Result<Blocks, StoreError>),
}

/// Some of a version that a disk has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Held {
    pub(super) version: ObjectVersion,
    disk: usize,
    place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// A stretch of the version's own.
    Alone(Stretch),
    /// A room in a pack.
    Packed(Span),
}

impl Held {
    /// Which segment it is of.
    pub(super) fn segment(&self) -> u32 {
        match self.place {
            Place::Alone((_, stretch)) => FragmentId::segment_of_stretch(stretch) as u32,
            Place::Packed(_) => 0,
        }
    }

    /// It is of no use here any more.
    pub(super) fn give_back(&self, cx: &mut Context) {
        let effect = match self.place {
            Place::Alone((branch, stretch)) => Effect::Discard { branch, stretch },
            Place::Packed(span) => {
                cx.count(Counter::SmallFragmentsErased);
                Effect::Erase { disk: self.disk, span }
            }
        };
        cx.disks().tell(effect);
    }
}

/// All that is held of a version is of no use here any more.
pub(super) fn give_back(cx: &mut Context, version: ObjectVersion, held: &[Held]) {
    let is_alone = |held: &&Held| held.version == version && matches!(held.place, Place::Alone(_));
    // All at once, where there are no packs of others in its volume.
    if !Pack::begins_with(version) && held.iter().any(|held| is_alone(&held)) {
        cx.disks().tell(Effect::DropVersion(version));
    }
    for held in held.iter().filter(|held| held.version == version) {
        if Pack::begins_with(version) || !is_alone(&held) {
            held.give_back(cx);
        }
    }
}

/// Before all versions: they come behind all volumes.
fn start() -> Stretch {
    (VolumeId(FragmentId::volume(ObjectVersion(0)).0 - 1), u64::MAX)
}

impl Versions {
    pub(super) fn of(walker: Walker) -> Versions {
        Versions {
            of: walker,
            disk: 0,
            after: start(),
            is_listing: false,
            state: State::Known,
            packs: VecDeque::new(),
            known: Vec::new(),
        }
    }

    /// Whether a disk is listing what it has.
    pub(super) fn is_listing(&self) -> bool {
        self.is_listing
    }

    /// Has the next page listed, or the next pack looked up, if none is. Whether there is another one.
    pub(super) fn list(&mut self, cx: &mut Context) -> bool {
        if self.packs.is_empty() && self.disk >= cx.disks().count() {
            return false;
        }
        match self.state {
            State::Known => {}
            State::Busy => self.state = State::Again(cx.now() + AGAIN),
            State::Again(then) if then <= cx.now() => self.state = State::Known,
            State::Again(_) => {}
        }
        if self.state == State::Known && !core::mem::replace(&mut self.is_listing, true) {
            match self.packs.front() {
                Some((disk, pack)) => cx.disks().survey(self.of, *disk, self.next_of(*pack)),
                None => cx.disks().list_versions(self.of, self.disk, self.after),
            }
        }
        true
    }

    /// When a disk that was busy is asked again.
    pub(super) fn again(&self) -> Option<Time> {
        match self.state {
            State::Again(then) => Some(then),
            State::Known | State::Busy => None,
        }
    }

    /// The next blocks of the first pack.
    fn next_of(&self, pack: Pack) -> Span {
        let (all, known) = (pack.span(), self.known.len() as u32);
        let count = (all.count - known).min(Span::BLOCKS_MAX);
        Span { lba: all.lba + u64::from(known), count, ..all }
    }

    /// What came, of at most [`VERSIONS_MAX`] versions. The next page begins behind the last stretch, or behind its version if `skips`.
    pub(super) fn on_listed(&mut self, listed: Listed, skips: bool) -> Vec<Held> {
        self.is_listing = false;
        match listed {
            Listed::Page(Ok(page)) => self.on_page(page, skips),
            // One that fails has none.
            Listed::Page(Err(StoreError::Failed)) => self.on_page(Vec::new(), skips),
            Listed::Survey(Ok(blocks)) => self.on_survey(Ok(blocks)),
            Listed::Survey(Err(StoreError::Failed)) => self.on_survey(Err(StoreError::Failed)),
            // One that is busy may have some.
            Listed::Page(Err(_)) | Listed::Survey(Err(_)) => {
                self.state = State::Busy;
                Vec::new()
            }
        }
    }

    fn on_page(&mut self, mut page: Vec<Stretch>, skips: bool) -> Vec<Held> {
        let is_full = page.len() >= INVENTORY_MAX;
        page.retain(|(volume, _)| FragmentId::version_of(*volume).is_some());
        let mut count = 0;
        let mut last = None;
        let cut = page.iter().position(|(volume, _)| {
            count += usize::from(last.replace(*volume) != Some(*volume));
            count > VERSIONS_MAX
        });
        page.truncate(cut.unwrap_or(page.len()));
        let disk = self.disk;
        match page.last().copied() {
            Some((volume, stretch)) if (is_full || cut.is_some()) && skips => {
                // Behind its own stretches there may be packs.
                self.after = (volume, stretch.max(Pack::FIRST_STRETCH - 1));
            }
            Some(last) if is_full || cut.is_some() => self.after = last,
            _ => (self.disk, self.after) = (self.disk + 1, start()),
        }
        let mut held = Vec::new();
        for stretch in page {
            match Pack::of_stretch(stretch) {
                Some(pack) => self.packs.push_back((disk, pack)),
                None => held.extend(FragmentId::version_of(stretch.0).map(|version| Held {
                    version,
                    disk,
                    place: Place::Alone(stretch),
                })),
            }
        }
        held
    }

    fn on_survey(&mut self, blocks: Result<Blocks, StoreError>) -> Vec<Held> {
        let Some((disk, pack)) = self.packs.front().copied() else { return Vec::new() };
        let (known, all) = (self.known.len(), pack.span().count as usize);
        match blocks {
            Ok(Blocks { stamps, unreadable, .. }) => {
                self.known.extend(stamps.iter().map(|stamp| !stamp.is_zero()));
                unreadable.iter().for_each(|block| self.known[known + *block as usize] = true);
            }
            // All of them may be there.
            Err(_) => self.known.resize(all, true),
        }
        if self.known.len() < all {
            return Vec::new();
        }
        self.packs.pop_front();
        let known = core::mem::take(&mut self.known);
        let is_there = |room: &Span| known[(room.lba - pack.span().lba) as usize];
        let rooms = pack.versions().map(|version| (version, pack.room(version)));
        rooms
            .filter(|(_, room)| is_there(room))
            .map(|(version, room)| Held { version, disk, place: Place::Packed(room) })
            .collect()
    }
}

/// The versions that something is of, each once.
pub(super) fn versions_of(held: &[Held]) -> Vec<ObjectVersion> {
    let mut versions: Vec<ObjectVersion> = held.iter().map(|held| held.version).collect();
    versions.dedup();
    versions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretches(versions: core::ops::Range<u64>, of_each: u64) -> Vec<Stretch> {
        let of =
            |version| (0..of_each).map(move |stretch| (FragmentId::volume(ObjectVersion(version)), stretch));
        versions.flat_map(of).collect()
    }

    fn alone(stretches: &[Stretch]) -> Vec<Held> {
        let held = |stretch: &Stretch| {
            let version = FragmentId::version_of(stretch.0).expect("a version");
            Held { version, disk: 0, place: Place::Alone(*stretch) }
        };
        stretches.iter().map(held).collect()
    }

    fn list(versions: &mut Versions, page: Vec<Stretch>, skips: bool) -> Vec<Held> {
        versions.on_listed(Listed::Page(Ok(page)), skips)
    }

    #[test]
    fn the_next_page_begins_where_the_last_one_ends() {
        let begun = || Versions { is_listing: true, ..Versions::of(Walker::Garbage) };
        let mut versions = begun();
        assert_eq!(list(&mut versions, stretches(1..3, 9), false), alone(&stretches(1..3, 9)));
        assert_eq!((versions.disk, versions.after), (1, start()), "a page that is not full is a disk's last");
        let full = stretches(1..3, 3000);
        let last = full[INVENTORY_MAX - 1];
        for (skips, after) in [(false, last), (true, (last.0, Pack::FIRST_STRETCH - 1))] {
            let mut versions = begun();
            let page = list(&mut versions, full[..INVENTORY_MAX].to_vec(), skips);
            assert_eq!((page.len(), versions.disk, versions.after), (INVENTORY_MAX, 0, after));
        }
        let mut versions = begun();
        let page = list(&mut versions, stretches(0..VERSIONS_MAX as u64 + 1, 2), false);
        assert_eq!(versions_of(&page).len(), VERSIONS_MAX);
        assert_eq!((versions.disk, &page[page.len() - 1..]), (0, &alone(&[versions.after])[..]));
        assert_eq!(list(&mut versions, vec![(VolumeId(7), 1)], false), []);
        assert_eq!(versions.disk, 1);
    }

    /// A disk that was still opening counted as one that has nothing, and what others had lost of its versions was not looked for.
    #[test]
    fn a_disk_that_is_busy_is_asked_again_and_one_that_fails_has_nothing() {
        let (mut cx, second) = (Context::new(base::BrickId(1), 1, Time(0)), Duration::from_secs(1));
        let mut versions = Versions::of(Walker::Lost);
        for busy in [StoreError::Busy, StoreError::NoRoomYet] {
            assert!(versions.list(&mut cx));
            assert_eq!(cx.disks().take_effects().len(), 1);
            assert_eq!(versions.on_listed(Listed::Page(Err(busy)), true), []);
            assert!(versions.list(&mut cx), "it may have some");
            assert!(cx.disks().take_effects().is_empty(), "not at once");
            let then = versions.again().expect("it is asked again");
            cx.set_now(then + second);
        }
        assert!(versions.list(&mut cx));
        let page = stretches(1..3, 1);
        assert_eq!(list(&mut versions, page.clone(), true), alone(&page));
        let mut versions = Versions { is_listing: true, ..Versions::of(Walker::Lost) };
        versions.on_listed(Listed::Page(Err(StoreError::Failed)), true);
        assert!(!versions.list(&mut cx));
    }

    #[test]
    fn of_a_pack_those_versions_are_passed_on_that_are_in_it_or_may_be() {
        let mut cx = Context::new(base::BrickId(1), 2, base::Time(0));
        let fragment = |version| FragmentId { version: ObjectVersion(version), segment: 0, index: 1 };
        let at = |version| fragment(version).span(3);
        let stretch = (at(256).volume, at(256).lba / Span::STRETCH_BLOCKS);
        let pack = Pack::of_stretch(stretch).expect("a pack");
        assert_eq!(pack.room(ObjectVersion(300)).count, 4);
        let mut versions = Versions::of(Walker::Garbage);
        versions.list(&mut cx);
        let own = (FragmentId::volume(ObjectVersion(256)), 7);
        assert_eq!(list(&mut versions, vec![own, stretch], true), alone(&[own]));
        let mut held = Vec::new();
        for piece in 0..2 {
            assert!(held.is_empty() && versions.list(&mut cx));
            let effects = cx.disks().take_effects();
            let Some(Effect::Survey { disk: 0, span, .. }) = effects.last() else { panic!("{effects:?}") };
            assert_eq!((span.count, span.lba), (256, pack.span().lba + 256 * piece));
            let is_there = |lba| [300, 383].iter().any(|of| lba >= at(*of).lba && lba < at(*of).end());
            let stamp = |lba| base::Stamp(u64::from(is_there(lba)));
            let stamps = (span.lba..span.end()).map(stamp).collect();
            // The last version of the first piece.
            let unreadable = if piece == 0 { vec![252] } else { Vec::new() };
            let blocks = Blocks { stamps, content: base::Payload::new(), unreadable };
            held = versions.on_listed(Listed::Survey(Ok(blocks)), true);
        }
        assert_eq!(versions_of(&held), [300, 319, 383].map(ObjectVersion), "or may be in it");
        assert_eq!(held[0].segment(), 0);
        give_back(&mut cx, ObjectVersion(383), &held);
        let erase = Effect::Erase { disk: 0, span: pack.room(ObjectVersion(383)) };
        assert_eq!(cx.disks().take_effects(), [erase]);
        assert!(versions.list(&mut cx), "the other disk");
    }

    #[test]
    fn a_version_that_begins_packs_does_not_take_them_with_it() {
        let mut cx = Context::new(base::BrickId(1), 1, base::Time(0));
        let held = alone(&stretches(256..258, 2));
        give_back(&mut cx, ObjectVersion(257), &held);
        assert_eq!(cx.disks().take_effects(), [Effect::DropVersion(ObjectVersion(257))]);
        give_back(&mut cx, ObjectVersion(256), &held);
        let branch = FragmentId::volume(ObjectVersion(256));
        let each = [0, 1].map(|stretch| Effect::Discard { branch, stretch });
        assert_eq!(cx.disks().take_effects(), each);
    }
}
