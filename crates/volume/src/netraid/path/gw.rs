//! The path through the gateway (`gw`): the gateway sends each member that takes part what that member keeps of a write.
//!
//! Each mirror gets the whole blocks. Of whole rows the gateway computes the parity, and sends to all members at once. Of a part of a row it writes the unit's
//! data brick first; that brick answers with the difference to what was there (*delta at the data brick*), and each parity
//! member gets its multiple of the difference. Where the data brick is not current, the gateway reconstructs what was there
//! and computes the difference itself; a data brick that joins then gets the blocks whole, beside the parity.
//!
//! Where the volume's protocol says `rmw`, and all bricks of the unit and its parity are current, the gateway reads what is there, the parity too, and
//! sends the new content and the new parity to all at once. Each parity brick takes it only over the stamps that were read.
//!
//! Members that take part are the view's *writers*: those that join must have the write like current ones.

use crate::netraid::context::views::Views;
use crate::netraid::members::is_mirrored;
use crate::netraid::outcome::{Fetched, OldRow};
use base::{GroupId, Payload, Stamp, VolumeId};
use code::{Code, Computation};
use rules::layout::Geometry;
use std::sync::Arc;
use wire::{Change, GroupView, Link, Scope, SmallWrites, Span, WriteId};

/// What a write puts there.
#[derive(Clone, Debug)]
pub enum Content {
    Zero,
    /// Blocks of one unit, or of mirrors.
    Blocks(Payload),
    /// Blocks of every data unit of whole rows, by data index.
    Rows(Vec<Payload>),
}

/// What goes to one member.
#[derive(Clone, Debug)]
pub(crate) struct Leg {
    pub(crate) change: Change,
    pub(crate) payload: Payload,
    /// The stamp that the block must have.
    pub(crate) base: Option<Stamp>,
    /// Whether the member is to answer with the difference to what was there.
    pub(crate) want_delta: bool,
}

/// Legs, each with its slot.
pub(crate) type Legs = Vec<(u8, Leg)>;

/// How a write begins.
pub(crate) enum Opening {
    /// With these members.
    Legs(Legs),
    /// By finding out what data unit `index` holds, since its member cannot tell.
    OldContent { index: u8, is_joining: bool },
    /// By reading what data unit `index` and its parity hold.
    OldRow { index: u8 },
}

/// Where a write goes, and with what.
#[derive(Clone)]
pub struct Path {
    group: GroupId,
    volume: VolumeId,
    /// Names the volume's branch as of the present attempt.
    span: Span,
    scope: Scope,
    content: Content,
    base: Option<Stamp>,
    /// The record that decides it with others.
    link: Option<Link>,
    /// The parity of whole rows, which is the same in each attempt.
    parity: Option<Vec<Payload>>,
    small_writes: SmallWrites,
}

impl Leg {
    fn new(change: Change, payload: Payload) -> Leg {
        Leg { change, payload, base: None, want_delta: false }
    }
}

impl Path {
    /// Of `content` to `span` of a volume on `group`.
    pub fn new(group: GroupId, span: Span, scope: Scope, content: Content) -> Path {
        Path {
            group,
            volume: span.volume,
            span,
            scope,
            content,
            base: None,
            link: None,
            parity: None,
            small_writes: SmallWrites::Delta,
        }
    }

    /// The write takes effect only where the block's stamp is `base`.
    ///
    /// `base` may have been read under an earlier view, and so from another branch: a block that a branch inherits has
    /// its parent's stamps, and a stamp names one content. If the branch was rolled back to another content, or anyone
    /// wrote in between, the stamps differ.
    #[must_use]
    pub fn only_over(self, base: Stamp) -> Path {
        Path { base: Some(base), ..self }
    }

    /// The same, with the parity of a small write computed there.
    #[must_use]
    pub fn by(self, small_writes: SmallWrites) -> Path {
        Path { small_writes, ..self }
    }

    /// The same, decided by a record.
    #[must_use]
    pub(crate) fn linked(self, link: Link) -> Path {
        Path { link: Some(link), ..self }
    }

    /// The way in which the old row is read did not do: the data brick is to tell the difference.
    pub(crate) fn falls_back(&mut self) {
        self.small_writes = SmallWrites::Delta;
    }

    pub fn group(&self) -> GroupId {
        self.group
    }

    pub(crate) fn volume(&self) -> VolumeId {
        self.volume
    }

    pub(crate) fn span(&self) -> Span {
        self.span
    }

    pub(crate) fn scope(&self) -> Scope {
        self.scope
    }

    /// The stamp that the block must have, if that matters.
    pub(crate) fn base(&self) -> Option<Stamp> {
        self.base
    }

    /// The data unit that is written and the stamp that its block must have, where that matters.
    pub(crate) fn unit_and_base(&self) -> Option<(u8, Stamp)> {
        Some((self.unit(), self.base?))
    }

    /// As the members know an attempt under `stamp`.
    pub(crate) fn id(&self, stamp: Stamp) -> WriteId {
        let Path { group, span, scope, link, .. } = *self;
        WriteId { group, span, stamp, scope, link }
    }

    /// Writes to `branch` from now on.
    pub(crate) fn turn_to(&mut self, branch: VolumeId) {
        self.span.volume = branch;
    }

    /// What has to be computed before the write can begin: the parity of whole rows, once.
    pub(crate) fn to_compute(&self, views: &Views) -> Option<Computation> {
        let (None, Content::Rows(rows)) = (&self.parity, &self.content) else { return None };
        let layout = views.geometry(self.group).layout();
        let code = Code::new(layout.data(), layout.parity());
        (layout.parity() > 0).then(|| Computation::Encode { code, data: rows.clone() })
    }

    /// What [`Path::to_compute`] asked for.
    pub(crate) fn keep_parity(&mut self, parity: Vec<Payload>) {
        self.parity = Some(parity);
    }

    /// Who is sent what at first, once everything is computed.
    pub(crate) fn opening(&self, views: &Views) -> Opening {
        let (view, geometry) = self.place(views);
        match self.scope {
            Scope::Row if is_mirrored(&geometry) => Opening::Legs(self.mirror_legs(&view)),
            Scope::Row => Opening::Legs(self.row_legs(&view, &geometry)),
            Scope::Unit { index } => self.unit_opening(&view, &geometry, index),
        }
    }

    /// What goes to the parity members, now that the data brick told the difference to what was there, and that content's
    /// stamps. `None` where what it told does not fit the write.
    pub(crate) fn after_delta(&self, views: &Views, delta: &Payload, previous: &[Stamp]) -> Option<Legs> {
        let fits = delta.len() == self.span.bytes() && previous.len() == self.span.count as usize;
        fits.then(|| {
            let (view, geometry) = self.place(views);
            self.parity_legs(&view, &geometry, delta, previous)
        })
    }

    /// What goes to whom, now that the unit's old content is known.
    pub(crate) fn after_old_content(&self, views: &Views, old: &Fetched) -> Legs {
        let (view, geometry) = self.place(views);
        let delta = self.difference(&old.content);
        let mut legs = self.parity_legs(&view, &geometry, &delta, &old.stamps);
        let slot = geometry.slot_of(self.span.lba, self.unit());
        if view.joining.has(slot) {
            legs.push((slot, self.joining_leg()));
        }
        legs
    }

    /// What goes to whom, now that the unit and its parity are known.
    pub(crate) fn after_old_row(&self, views: &Views, old: &OldRow) -> Legs {
        let (_, geometry) = self.place(views);
        let (layout, index, lba) = (geometry.layout(), self.unit(), self.span.lba);
        let code = Code::new(layout.data(), layout.parity());
        let delta = self.difference(&old.content);
        let leg = |(slot, parity): &(u8, Payload)| {
            let part = share(&code, geometry.shard_at(lba, *slot) - layout.data(), index, &delta);
            let change = Change::Replace { index, width: layout.data(), previous: old.vectors.clone() };
            (*slot, Leg::new(change, parity.xor(&part)))
        };
        let data = (geometry.slot_of(lba, index), self.data_leg(self.blocks(), false));
        old.parities.iter().map(leg).chain([data]).collect()
    }

    /// Between what the unit held and what it is to hold.
    fn difference(&self, old: &Payload) -> Payload {
        match &self.content {
            Content::Blocks(new) => new.xor(old),
            _ => old.clone(),
        }
    }

    fn place(&self, views: &Views) -> (Arc<GroupView>, Geometry) {
        (views.view(self.group), views.geometry(self.group))
    }

    /// The data unit that is written; whole rows need no difference.
    fn unit(&self) -> u8 {
        match self.scope {
            Scope::Unit { index } => index,
            Scope::Row => unreachable!("whole rows need no difference"),
        }
    }

    /// What one member's blocks become.
    fn data_leg(&self, payload: Option<Payload>, want_delta: bool) -> Leg {
        let change = if payload.is_some() { Change::Data } else { Change::Zero };
        let base = self.base;
        Leg { base, want_delta, ..Leg::new(change, payload.unwrap_or_default()) }
    }

    fn blocks(&self) -> Option<Payload> {
        match &self.content {
            Content::Blocks(payload) => Some(payload.clone()),
            _ => None,
        }
    }

    /// A data member that only joins cannot tell what was there, and need not: it takes the block whole. The base is
    /// compared at the current members, without which the write is not decided.
    fn joining_leg(&self) -> Leg {
        Leg { base: None, ..self.data_leg(self.blocks(), false) }
    }

    fn mirror_legs(&self, view: &GroupView) -> Legs {
        let leg = |slot| match view.joining.has(slot) {
            true => self.joining_leg(),
            false => self.data_leg(self.blocks(), false),
        };
        view.writers().iter().map(|slot| (slot, leg(slot))).collect()
    }

    fn row_legs(&self, view: &GroupView, geometry: &Geometry) -> Legs {
        let (layout, lba) = (geometry.layout(), self.span.lba);
        let leg = |slot: u8| match (geometry.data_index_at(lba, slot), &self.content) {
            (Some(index), Content::Rows(rows)) => self.data_leg(rows.get(usize::from(index)).cloned(), false),
            (Some(_), _) => self.data_leg(None, false),
            (None, _) => {
                let index = geometry.shard_at(lba, slot) - layout.data();
                let change = Change::Parity { width: layout.data() };
                Leg::new(change, self.row_parity(usize::from(index)))
            }
        };
        view.writers().iter().map(|slot| (slot, leg(slot))).collect()
    }

    fn row_parity(&self, index: usize) -> Payload {
        match (&self.content, &self.parity) {
            (Content::Rows(_), Some(parity)) => parity[index].clone(),
            (Content::Rows(_), None) => unreachable!("a write of rows begins with their parity"),
            _ => Payload::zeros(self.span.bytes()),
        }
    }

    /// A unit's member tells the delta for the parity, if it is current and there is parity to be told.
    fn unit_opening(&self, view: &GroupView, geometry: &Geometry, index: u8) -> Opening {
        let slot = geometry.slot_of(self.span.lba, index);
        if !view.current.has(slot) {
            return Opening::OldContent { index, is_joining: view.joining.has(slot) };
        }
        let has_parity = self.parity_slots(view, geometry).next().is_some();
        let are_all_current = || geometry.parity_slots(self.span.lba).all(|(_, slot)| view.current.has(slot));
        if has_parity && self.small_writes == SmallWrites::ReadModifyWrite && are_all_current() {
            return Opening::OldRow { index };
        }
        Opening::Legs(vec![(slot, self.data_leg(self.blocks(), has_parity))])
    }

    /// The parity units and the slots of those that take part.
    fn parity_slots<'a>(
        &self,
        view: &'a GroupView,
        geometry: &Geometry,
    ) -> impl Iterator<Item = (u8, u8)> + use<'a> {
        geometry.parity_slots(self.span.lba).filter(|(_, slot)| view.writers().has(*slot))
    }

    /// Each parity member gets its multiple of the difference.
    fn parity_legs(
        &self,
        view: &GroupView,
        geometry: &Geometry,
        delta: &Payload,
        previous: &[Stamp],
    ) -> Legs {
        let (layout, index) = (geometry.layout(), self.unit());
        let code = Code::new(layout.data(), layout.parity());
        let leg = |parity: u8| {
            let payload = share(&code, parity, index, delta);
            let change = Change::Xor { index, width: layout.data(), previous: previous.to_vec() };
            Leg::new(change, payload)
        };
        self.parity_slots(view, geometry).map(|(parity, slot)| (slot, leg(parity))).collect()
    }
}

/// What a difference in data unit `index` adds to a parity.
fn share(code: &Code, parity: u8, index: u8, delta: &Payload) -> Payload {
    match code.coefficient(parity, index) {
        1 => delta.clone(),
        factor => code::multiply(delta, factor),
    }
}
