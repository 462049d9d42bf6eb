//! The end of a run: is everything there that was acknowledged, and does the redundancy agree?

use crate::checkers::redundancy::{self, Held};
use crate::checkers::{Violation, durable, linearizable};
use crate::history::Operation;
use crate::world::{Question, SECOND, World};
use base::{BLOCK, BrickId, HashMap, NodeId};
use proto::layout::Geometry;
use std::collections::BTreeSet;
use wire::{GroupView, Message, Packet, ReadOutcome, Span, VolumeMap};

const PATIENCE_NS: u64 = 30 * SECOND;

/// One member's block to look at.
#[derive(Clone, Copy)]
struct Place {
    lba: u64,
    slot: u8,
    brick: BrickId,
}

impl World {
    /// Looks at every current member's blocks of every volume in use.
    pub(crate) fn audit_redundancy(&mut self) {
        for volume in 0..self.shape.volumes.len() {
            let verdict = self.audit_volume(volume);
            self.judge(verdict);
        }
    }

    /// Checks all registers' histories, and what was read last.
    pub(crate) fn audit_history(&mut self) {
        let by_register = self.workload.history.by_register();
        let verdict = self.audit_finals(&by_register);
        self.judge(verdict);
        let verdict = by_register.iter().try_for_each(|operations| linearizable::check(operations));
        self.judge(verdict);
    }

    fn audit_finals(&self, by_register: &[Vec<Operation>]) -> Result<(), Violation> {
        let index: HashMap<_, _> =
            by_register.iter().map(|operations| (operations[0].register, operations)).collect();
        let finals = &self.workload.finals;
        finals
            .iter()
            .try_for_each(|(register, value, asked_ns)| durable::check(index[register], *value, *asked_ns))
    }

    fn audit_volume(&mut self, volume: usize) -> Result<(), Violation> {
        let name = self.shape.volumes[volume].name.clone();
        let map = self.map_of(name).ok_or_else(|| Violation::new("live", "the directory answers no more"))?;
        let geometry = geometry(&map)?;
        let view = &map.groups[0];
        let blocks = self.shape.volumes[volume].blocks();
        let rows: BTreeSet<u64> = (0..blocks).map(|block| geometry.locate(block).lba).collect();
        let member = |lba: u64| view.current_bricks().map(move |(slot, brick)| Place { lba, slot, brick });
        let places: Vec<Place> = rows.iter().flat_map(|&lba| member(lba)).collect();
        let held = self.look(&geometry, view, &places)?;
        rows.iter().try_for_each(|&lba| {
            let here: Vec<Held> = places
                .iter()
                .zip(&held)
                .filter(|(place, _)| place.lba == lba)
                .filter_map(|(_, h)| h.clone())
                .collect();
            redundancy::check(&geometry, lba, &here)
        })
    }

    fn map_of(&mut self, name: String) -> Option<VolumeMap> {
        let question: Question =
            (NodeId::Directory, Box::new(move |operation| Message::OpenVolume { operation, name }));
        match self.ask(vec![question], PATIENCE_NS).pop()??.message {
            Message::VolumeOpened { map, .. } => map.ok(),
            _ => None,
        }
    }

    /// What is held at these places; `None` where a block is unreadable that was let rot.
    fn look(
        &mut self,
        geometry: &Geometry,
        view: &GroupView,
        places: &[Place],
    ) -> Result<Vec<Option<Held>>, Violation> {
        let mut held: Vec<Option<Option<Held>>> = vec![None; places.len()];
        let end_ns = self.now_ns + PATIENCE_NS;
        while let Some(open) = some_open(&held) {
            if self.violation.is_some() {
                return Ok(Vec::new());
            }
            if self.now_ns >= end_ns {
                let Place { lba, brick, .. } = places[open[0]];
                let what = format!("{brick} does not tell what it holds at block {lba} of {}", view.group);
                return Err(Violation::new("live", what));
            }
            let questions = open.iter().map(|&at| question(geometry, view, places[at])).collect();
            let answers = self.ask(questions, 3 * SECOND);
            for (at, answer) in open.into_iter().zip(answers) {
                held[at] = answer.map_or(Ok(None), |packet| self.judge_answer(places[at], packet))?;
            }
        }
        Ok(held.into_iter().flatten().collect())
    }

    fn judge_answer(&self, place: Place, packet: Packet) -> Result<Option<Option<Held>>, Violation> {
        let Message::ReadDone { outcome: ReadOutcome::Done { stamps, unreadable, .. }, .. } = packet.message
        else {
            return Ok(None);
        };
        if unreadable.is_empty() {
            return Ok(Some(Some(Held { slot: place.slot, stamps, content: packet.payload })));
        }
        if self.faults.rotten.contains(&place.brick) {
            return Ok(Some(None));
        }
        let what = format!("{} cannot read its block {}, which nobody let rot", place.brick, place.lba);
        Err(Violation::new("redundancy", what))
    }
}

fn some_open(held: &[Option<Option<Held>>]) -> Option<Vec<usize>> {
    let open: Vec<usize> = (0..held.len()).filter(|&at| held[at].is_none()).collect();
    (!open.is_empty()).then_some(open)
}

fn geometry(map: &VolumeMap) -> Result<Geometry, Violation> {
    let volume = &map.volume;
    let wrong = |what: String| Violation::new("redundancy", what);
    let layout =
        volume.layout.parse().map_err(|error: proto::layout::LayoutError| wrong(error.to_string()))?;
    Geometry::new(layout, volume.stripe_unit_blocks, volume.column_blocks)
        .map_err(|error| wrong(error.to_string()))
}

fn question(geometry: &Geometry, view: &GroupView, place: Place) -> Question {
    let (group, number) = (view.group, view.number);
    let span = Span { volume: view.volume, lba: place.lba, count: 1 };
    let data = geometry.layout().data();
    let parity = geometry.layout().parity() > 0 && geometry.shard_at(place.lba, place.slot) >= data;
    let width = if parity { data } else { 1 };
    let make = move |operation| Message::Read {
        operation,
        group,
        view: number,
        span,
        width,
        stamps: true,
        content: true,
    };
    debug_assert_eq!(span.bytes(), BLOCK);
    (NodeId::Brick(place.brick), Box::new(make))
}
