//! A cluster that grows old: month after month things break and are healed, volumes come and go, a brick is replaced by a new one, the
//! directory moves, and the date goes on. At the end of each month all is redundant again, and what machines and disks keep of the past
//! is as little as in the months before.

use crate::checkers::Violation;
use crate::options::{Options, Shape};
use crate::schedule::Course;
use crate::torture::{Outcome, in_world};
use crate::units::{MS, SECOND};
use crate::world::World;
use base::{BrickId, NodeId};
use core::time::Duration;
use model::PowerCut;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use wire::{AdminError, AdminReply, AdminRequest, IoTimeout};

/// Bricks of the cluster.
const BRICKS: u32 = 12;
/// Of each month things break for so long; then they are healed, and the rest of the month passes at once.
const TROUBLE_NS: u64 = 40 * SECOND;
const MONTH: Duration = Duration::from_secs(30 * 24 * 3600);
/// A month's work of an operator is done within this time.
const DONE_NS: u64 = 120 * SECOND;
const AGAIN_NS: u64 = 500 * MS;
/// The directory moves to another machine every so many months.
const DIRECTORY_MOVES_EVERY: u32 = 4;
/// Clients issue so many operations a month.
const OPERATIONS: u64 = 400;
/// Months of which the tables are what a cluster of this kind has: the largest of them, twice, is the bound for all that follow.
const FIRST_MONTHS: usize = 6;

/// Of these the directory keeps the latest of a life, so that they go on to become more for years; they have a bound of their own.
const EVENTS: &str = "events";

/// What there is at the end of a month, by its name.
pub type Tables = BTreeMap<&'static str, u64>;

/// The end of a month.
#[derive(Clone, Debug, Serialize)]
pub struct Month {
    pub number: u32,
    pub simulated_ns: u64,
    /// Bricks that there ever were.
    pub bricks_ever: u64,
    pub tables: Tables,
}

/// Lives through `months` and tells of each; its events go to `lines`, where there are such.
pub fn run(
    seed: u64,
    options: &Options,
    months: u32,
    lines: Option<Box<dyn Write>>,
    tell: &mut dyn FnMut(&Month),
) -> Outcome {
    let mut shape = Shape::draw(seed, &Options { bricks: Some(BRICKS), ..options.clone() });
    shape.phases.safety_ns = u64::from(months) * TROUBLE_NS;
    shape.load.operations = u64::from(months) * OPERATIONS;
    // Of the same draws two commands would have one nonce.
    shape.intrigues.churn = Some(seed ^ 0x6368_726e);
    shape.intrigues.commands = Some(seed ^ 0x636f_6d6d);
    (shape.intrigues.old_disks, shape.intrigues.twins) = (true, true);
    let (outcome, _) = in_world(seed, shape, &Course::Drawn, lines, |world| world.grow_old(months, tell));
    outcome
}

impl World {
    fn grow_old(&mut self, months: u32, tell: &mut dyn FnMut(&Month)) -> Result<(), Violation> {
        self.administrator.goes_on_for_ever();
        // What is under way when a month passes has waited for a month.
        for volume in 0..self.workload.volumes() {
            let name = self.workload.plan(volume).name.clone();
            self.administer(vec![AdminRequest::SetIoTimeout { name, io_timeout: IoTimeout::Never }])?;
        }
        let (mut first, mut ever) = (Tables::new(), u64::from(BRICKS));
        for number in 1..=months {
            if !self.judges.are_content() {
                return Ok(());
            }
            self.start_faults(TROUBLE_NS);
            self.start_administrator();
            self.run_until(self.time.now_ns() + TROUBLE_NS);
            self.heal();
            self.converge()?;
            // Who replaces a brick takes redundancy away for a moment: what is rotten elsewhere then would be lost.
            self.scrub_clean()?;
            ever += self.renew_bricks()?;
            if number.is_multiple_of(DIRECTORY_MOVES_EVERY) {
                self.move_directory();
            }
            self.converge()?;
            self.a_month_passes();
            self.converge()?;
            self.deletions_are_known()?;
            let tables = self.tables();
            tell(&Month {
                number,
                simulated_ns: self.time.now_ns(),
                bricks_ever: ever,
                tables: tables.clone(),
            });
            if (number as usize) <= FIRST_MONTHS {
                tables.into_iter().for_each(|(name, size)| {
                    let largest = first.entry(name).or_default();
                    *largest = size.max(*largest);
                });
                continue;
            }
            let largest = |name: &str| first.get(name).copied().unwrap_or_default();
            let bound = |name: &str| match name {
                EVENTS => wire::Events::KEPT as u64,
                _ => 2 * largest(name).max(8),
            };
            let grown = tables.iter().find(|(name, size)| **size > bound(name));
            if let Some((name, size)) = grown {
                let what = format!(
                    "{name}: {size} in month {number}, {} at most in the first {FIRST_MONTHS}",
                    largest(name)
                );
                return Err(Violation::new("flat tables", what));
            }
        }
        Ok(())
    }

    /// Bricks that were lost, and the oldest one, give way to new ones, and are forgotten. How many.
    fn renew_bricks(&mut self) -> Result<u64, Violation> {
        let mut bricks: Vec<BrickId> = self.nodes.iter().filter_map(|node| node.brick()).collect();
        bricks.sort_unstable();
        bricks.dedup();
        bricks.retain(|brick| {
            self.nodes.slot(NodeId::Brick(*brick)).is_some_and(|slot| !self.nodes[slot].is_forgotten())
        });
        let oldest = bricks.iter().copied().find(|brick| !self.faults.is_lost(*brick));
        let leaving: Vec<BrickId> =
            bricks.into_iter().filter(|brick| self.faults.is_lost(*brick)).chain(oldest).collect();
        for old in &leaving {
            let nonce = self.physics.draw().bits();
            self.add_bricks([nonce].into_iter())?;
            self.until_done(AdminRequest::ReplaceBrick { brick: *old, by: None })?;
            self.converge()?;
            // What it has of objects is made again elsewhere only from now on.
            self.until_done(AdminRequest::EvictBrick { brick: *old })?;
            let slot = self.nodes.slot(NodeId::Brick(*old)).expect("a brick that was there");
            self.crash(slot, PowerCut::ProcessOnly);
            self.nodes[slot].set_gone();
            self.until_done(AdminRequest::ForgetBrick { brick: *old })?;
            self.nodes[slot].set_forgotten();
            self.faults.forget(*old);
        }
        Ok(leaving.len() as u64)
    }

    /// Gives a command until it is carried out.
    pub(crate) fn until_done(&mut self, request: AdminRequest) -> Result<AdminReply, Violation> {
        let end_ns = self.time.now_ns() + DONE_NS;
        loop {
            match self.try_administer(request.clone())? {
                Ok(reply) => return Ok(reply),
                Err(
                    AdminError::NotNow(_)
                    | AdminError::Busy
                    | AdminError::Unknown(_)
                    | AdminError::TooFewBricks { .. },
                ) if self.time.now_ns() < end_ns && self.judges.are_content() => {
                    self.run_until(self.time.now_ns() + AGAIN_NS);
                }
                Err(error) => {
                    return Err(Violation::new("live", format!("{request:?} was answered with '{error}'")));
                }
            }
        }
    }

    /// The directory's machine is another one from now on, which has its store.
    fn move_directory(&mut self) {
        self.crash(0, PowerCut::ProcessOnly);
        self.note(0, "moves to another machine");
        self.run_until(self.time.now_ns() + 5 * SECOND);
        self.boot(0);
        self.run_until(self.time.now_ns() + 10 * SECOND);
    }

    /// All clocks go on by a month at one moment, as if all machines had been suspended.
    fn a_month_passes(&mut self) {
        for node in 0..self.nodes.len() {
            self.pass(node, MONTH);
        }
        self.run_until(self.time.now_ns() + 10 * SECOND);
    }

    /// How large things are.
    fn tables(&self) -> Tables {
        let mut tables = Tables::new();
        for (key, value) in self.store_contents() {
            let name = match key.first() {
                Some(b'b') => "bricks",
                Some(b'j') => "runs of bricks",
                Some(b'v') => "volumes",
                Some(b'f') => "families",
                Some(b'g') => "groups",
                Some(b'd') => "deletions",
                Some(b'l' | b'r' | b's') => "marks",
                Some(b't' | b'k') => "streams and buckets",
                Some(b'e') => EVENTS,
                _ => "other records",
            };
            *tables.entry(name).or_default() += 1;
            if name == EVENTS {
                continue;
            }
            *tables.entry("bytes of the store").or_default() += (key.len() + value.len()) as u64;
        }
        let mut highest = |name: &'static str, size: u64| {
            let entry = tables.entry(name).or_default();
            *entry = size.max(*entry);
        };
        for node in self.nodes.iter().filter_map(|node| node.machine()) {
            highest(
                "families of a brick",
                node.brick().map_or(0, |brick| brick.volumes_held().count() as u64),
            );
            for store in node.stores() {
                let stats = store.stats();
                highest("sheets of notes", stats.journal.sheets);
                highest("metadata pages", stats.pages.count);
            }
        }
        let directory = self.nodes[0].directory();
        highest("entries in memory", directory.map_or(0, |directory| directory.entries() as u64));
        tables
    }
}
