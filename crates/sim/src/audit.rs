//! The end of a run: is everything there that was acknowledged, and does the redundancy agree?

use crate::checkers::redundancy::{self, Held};
use crate::checkers::snapshot::{self, Snapshot};
use crate::checkers::{self, Violation, atomic, durable};
use crate::history::{Operation, Register};
use crate::options::VolumePlan;
use crate::units::SECOND;
use crate::workload::Final;
use crate::world::{Question, World};
use base::{BLOCK, BrickId, HashMap, NodeId, VolumeId};
use rules::layout::{Geometry, placement};
use std::collections::{BTreeMap, BTreeSet};
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
    /// Looks at every member's blocks of every volume in use, its snapshots and clones.
    pub(crate) fn audit_redundancy(&mut self) {
        let values = self.final_values();
        for volume in (0..self.workload.volumes()).filter(|volume| self.is_there(*volume)).collect::<Vec<_>>()
        {
            let verdict = self.audit_volume(volume, &values);
            self.judge(verdict);
        }
    }

    /// Checks all registers' histories, what was read last, and snapshots.
    pub(crate) fn audit_history(&mut self) {
        let values = self.final_values();
        self.record_restored(&values);
        let by_register = self.workload.history().by_register();
        let verdict = self.audit_finals(&by_register);
        self.judge(verdict);
        let verdict = by_register.iter().try_for_each(|operations| self.audit_order(operations));
        self.judge(verdict);
        let verdict = atomic::check(self.workload.history().operations(), &values, self);
        self.judge(verdict);
        let verdict = self.audit_snapshots(&by_register, &values);
        self.judge(verdict);
    }

    fn audit_order(&self, operations: &[Operation]) -> Result<(), Violation> {
        let plan = self.workload.plan(operations[0].register.volume());
        checkers::check_order(plan.protocol, operations)
    }

    /// What was read from each register at the end.
    fn final_values(&self) -> BTreeMap<Register, u64> {
        self.workload.finals().iter().map(|last| (last.register, last.value)).collect()
    }

    fn audit_finals(&self, by_register: &[Vec<Operation>]) -> Result<(), Violation> {
        let index: HashMap<_, _> =
            by_register.iter().map(|operations| (operations[0].register, operations)).collect();
        let check = |last: &Final| durable::check(index[&last.register], last.value, last.asked_ns);
        self.workload.finals().iter().try_for_each(check)
    }

    fn audit_snapshots(
        &self,
        by_register: &[Vec<Operation>],
        values: &BTreeMap<Register, u64>,
    ) -> Result<(), Violation> {
        let index: HashMap<Register, &[Operation]> =
            by_register.iter().map(|operations| (operations[0].register, &operations[..])).collect();
        let cuts = self.administrator.snapshots().iter().filter(|cut| self.is_there(cut.snapshot));
        cuts.map(|cut| Snapshot {
            name: self.workload.plan(cut.snapshot).name.clone(),
            asked_ns: cut.asked_ns,
            answered_ns: cut.answered_ns,
            reads_tell: self.workload.plan(cut.volume).protocol.atomicity.is_linearizable(),
            values: values
                .iter()
                .filter(|(register, _)| register.volume() == cut.snapshot)
                .map(|(register, value)| (register.of(cut.volume), *value))
                .collect(),
        })
        .try_for_each(|snapshot| snapshot::check(&snapshot, &index))
    }

    /// A view may change while its members are looked at: then all of the volume is looked at again.
    fn audit_volume(&mut self, volume: usize, values: &BTreeMap<Register, u64>) -> Result<(), Violation> {
        let end_ns = self.time.now_ns() + PATIENCE_NS;
        loop {
            match self.audit_views(volume, values, end_ns)? {
                Audited::All => return Ok(()),
                Audited::OldView => {}
            }
        }
    }

    fn audit_views(
        &mut self,
        volume: usize,
        values: &BTreeMap<Register, u64>,
        end_ns: u64,
    ) -> Result<Audited, Violation> {
        let plan = self.workload.plan(volume).clone();
        let name = plan.name.clone();
        let map = self.map_of(name).ok_or_else(|| Violation::new("live", "the directory answers no more"))?;
        let geometry = geometry(&map)?;
        let rows: BTreeSet<u64> = plan.blocks().map(|block| geometry.locate(block).lba).collect();
        for view in &map.groups {
            let branch = view.lineage.branch_of(map.volume.id);
            let rule = placement::rule(map.volume.placement);
            let group_of = |extent| &map.groups[rule.group_of(map.volume.family, extent, map.groups.len())];
            let here = rows.iter().filter(|lba| group_of(geometry.extent_of_lba(**lba)).group == view.group);
            let rows: Vec<u64> = here.copied().collect();
            let member =
                |lba: u64| view.current_bricks().map(move |(slot, brick)| Place { lba, slot, brick });
            let places: Vec<Place> = rows.iter().flat_map(|&lba| member(lba)).collect();
            let Some(held) = self.look(&geometry, (view, branch), &places, end_ns)? else {
                return Ok(Audited::OldView);
            };
            for lba in rows {
                let of_row = places.iter().zip(&held).filter(|(place, _)| place.lba == lba);
                let here: Vec<Held> = of_row.filter_map(|(_, held)| held.clone()).collect();
                redundancy::check(&geometry, lba, &here)?;
                here.iter()
                    .try_for_each(|held| check_content(&geometry, volume, &plan, lba, held, values))?;
            }
        }
        Ok(Audited::All)
    }

    /// What the directory says of a volume.
    pub(crate) fn map_of(&mut self, name: String) -> Option<VolumeMap> {
        let question: Question =
            (NodeId::Directory, Box::new(move |operation| Message::OpenVolume { operation, name }));
        match self.ask(vec![question], PATIENCE_NS).pop()??.message {
            Message::VolumeOpened { map, .. } => map.ok().map(|map| *map),
            _ => None,
        }
    }

    /// What is held at these places; `None` where a block is unreadable that was let rot. None at all when another view is in force.
    fn look(
        &mut self,
        geometry: &Geometry,
        (view, branch): (&GroupView, VolumeId),
        places: &[Place],
        end_ns: u64,
    ) -> Result<Option<Vec<Option<Held>>>, Violation> {
        let mut held: Vec<Option<Option<Held>>> = vec![None; places.len()];
        while let Some(open) = some_open(&held) {
            if !self.judges.are_content() {
                return Ok(Some(Vec::new()));
            }
            if self.time.now_ns() >= end_ns {
                let Place { lba, brick, .. } = places[open[0]];
                let what = format!("{brick} does not tell what it holds at block {lba} of {}", view.group);
                return Err(Violation::new("live", what));
            }
            let questions = open.iter().map(|&at| question(geometry, (view, branch), places[at])).collect();
            let answers = self.ask(questions, 3 * SECOND);
            if answers.iter().flatten().any(is_of_later_view) {
                return Ok(None);
            }
            for (at, answer) in open.into_iter().zip(answers) {
                held[at] = answer.map_or(Ok(None), |packet| self.judge_answer(places[at], packet))?;
            }
        }
        Ok(Some(held.into_iter().flatten().collect()))
    }

    fn judge_answer(&self, place: Place, packet: Packet) -> Result<Option<Option<Held>>, Violation> {
        let Message::ReadDone { outcome: ReadOutcome::Done { stamps, unreadable, .. }, .. } = packet.message
        else {
            return Ok(None);
        };
        if unreadable.is_empty() {
            return Ok(Some(Some(Held { slot: place.slot, stamps, content: packet.payload })));
        }
        if self.faults.may_be_rotten(place.brick) {
            return Ok(Some(None));
        }
        let what = format!("{} cannot read its block {}, which nobody let rot", place.brick, place.lba);
        Err(Violation::new("redundancy", what))
    }
}

/// Whether all of a volume was looked at.
enum Audited {
    All,
    OldView,
}

fn is_of_later_view(packet: &Packet) -> bool {
    matches!(packet.message, Message::ReadDone { outcome: ReadOutcome::Stale { view: Some(_) }, .. })
}

fn some_open(held: &[Option<Option<Held>>]) -> Option<Vec<usize>> {
    let open: Vec<usize> = (0..held.len()).filter(|&at| held[at].is_none()).collect();
    (!open.is_empty()).then_some(open)
}

impl atomic::Promise for World {
    fn is_one_write(&self, registers: &[Register]) -> bool {
        let (Some(first), [at, ..]) = (registers[0].block_number(), registers) else { return false };
        let plan = self.workload.plan(at.volume());
        let count = registers.len() as u64;
        let follow = registers.iter().zip(0..).all(|(register, nth)| {
            register.volume() == at.volume() && register.block_number() == Some(first + nth)
        });
        let geometry = Geometry::new(plan.layout, plan.unit_blocks, Geometry::COLUMN_BLOCKS);
        follow
            && geometry.is_ok_and(|geometry| {
                let are_linked =
                    || geometry.split_rows(first, count).len() <= volume::netraid::link::PARTS_MAX;
                geometry.is_one_write(first, count) || plan.links() && are_linked()
            })
    }

    fn are_read_together(&self, one: Register, other: Register) -> bool {
        let unit = u64::from(self.workload.plan(one.volume()).unit_blocks);
        let unit_of = |register: Register| register.block_number().map(|block| block / unit);
        one.volume() == other.volume() && unit_of(one).is_some() && unit_of(one) == unit_of(other)
    }
}

fn geometry(map: &VolumeMap) -> Result<Geometry, Violation> {
    let volume = &map.volume;
    let wrong = |what: String| Violation::new("redundancy", what);
    let layout =
        volume.layout.parse().map_err(|error: rules::layout::LayoutError| wrong(error.to_string()))?;
    Geometry::new(layout, volume.stripe_unit_blocks, volume.column_blocks)
        .map_err(|error| wrong(error.to_string()))
}

/// A data block holds what was read from it at the end.
fn check_content(
    geometry: &Geometry,
    volume: usize,
    plan: &VolumePlan,
    lba: u64,
    held: &Held,
    values: &BTreeMap<Register, u64>,
) -> Result<(), Violation> {
    let shard = geometry.shard_at(lba, held.slot);
    if shard >= geometry.layout().data() {
        return Ok(());
    }
    let registers = plan.registers(volume, geometry.volume_block(lba, shard));
    let wanted: Option<Vec<u64>> = registers.iter().map(|register| values.get(register).copied()).collect();
    // Blocks of the row that no client uses were never read.
    wanted.map_or(Ok(()), |wanted| redundancy::check_content(lba, held, &wanted))
}

fn question(geometry: &Geometry, (view, branch): (&GroupView, VolumeId), place: Place) -> Question {
    let (group, number) = (view.group, view.number);
    let span = Span { volume: branch, lba: place.lba, count: 1 };
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
        contest: None,
        service: wire::Service::default(),
        sight: wire::Sight::Decided,
    };
    debug_assert_eq!(span.bytes(), BLOCK);
    (NodeId::Brick(place.brick), Box::new(make))
}
