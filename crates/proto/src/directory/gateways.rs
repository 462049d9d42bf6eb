//! Gateways that are known to live, and the runs of writer numbers by which their stamps differ. Commands on objects register
//! too, as gateways that write no volume: they take no number.

use super::names::check_name;
use super::table::{Index, Table};
use base::{BrickId, GatewayId, StampClock, Time};
use core::time::Duration;
use std::collections::BTreeSet;
use wire::{GatewayStatus, OpenCount, Version};

/// A gateway that did not register again for this long is forgotten.
const SILENCE: Duration = Duration::from_secs(10);
/// The most numbers that one gateway gets.
const WRITERS_MAX: u16 = 64;

#[derive(Debug)]
struct Entry {
    address: String,
    beside: Option<BrickId>,
    /// None where it writes no volume.
    first_writer: Option<u16>,
    heard: Time,
    /// Whether it is stored that nobody else gets its numbers: before that it must not use them.
    is_durable: bool,
    speaks: Version,
    /// When it sent what was heard, by its own clock; zero where it does not say.
    sent: Time,
    name: String,
    opened: Vec<OpenCount>,
    /// Its connection is gone: it is shown no more, and keeps its numbers until it has been silent for long.
    is_down: bool,
}

impl Entry {
    fn new(now: Time, said: Registration, first_writer: Option<u16>, is_durable: bool) -> Entry {
        let Registration { address, beside, speaks, sent, name, mut opened, .. } = said;
        opened.truncate(OpenCount::MAX);
        let (heard, is_down) = (now, false);
        Entry { address, beside, first_writer, heard, is_durable, speaks, sent, name, opened, is_down }
    }

    /// What operators call it. A name that no volume could have may be meant to deceive whoever reads it.
    fn name(&self) -> String {
        match (check_name(&self.name, "gateway"), self.first_writer) {
            (Ok(()), _) => self.name.clone(),
            (Err(_), Some(first_writer)) => format!("gateway-{first_writer}"),
            (Err(_), None) => "a command on objects".to_owned(),
        }
    }
}

/// What a gateway says when it registers.
#[derive(Clone, Debug)]
pub(super) struct Registration {
    pub(super) gateway: GatewayId,
    pub(super) address: String,
    /// How many numbers it wants.
    pub(super) writers: u16,
    /// The first of those that it has already, from before the directory restarted.
    pub(super) held: Option<u16>,
    /// The brick on its machine.
    pub(super) beside: Option<BrickId>,
    /// The newest version that it speaks.
    pub(super) speaks: Version,
    /// When it sent this, by its own clock; zero where it does not say.
    pub(super) sent: Time,
    /// What it wants to be called, if it says so.
    pub(super) name: String,
    /// The volumes that clients have open there.
    pub(super) opened: Vec<OpenCount>,
}

/// What is to be done about a gateway that registers.
pub(super) enum Heard {
    /// It has its numbers, from this one on, or wants none.
    Known(Option<u16>),
    /// Its numbers are being stored.
    Waits,
    /// It is new and has none yet.
    New(Registration),
}

/// A run of numbers that is given to a new gateway.
pub(super) struct Run {
    /// The first number that the next one may get: to be stored before the run is told.
    pub(super) next_writer: u16,
}

/// The first numbers of all runs that are given, and to whom: a run that a gateway held when the directory restarted may be given twice.
#[derive(Debug, Default, PartialEq)]
struct Given(BTreeSet<(u16, GatewayId)>);

impl Index for Given {
    type Key = GatewayId;
    type Record = Entry;

    fn enter(&mut self, gateway: GatewayId, entry: &Entry) {
        self.0.extend(entry.first_writer.map(|first_writer| (first_writer, gateway)));
    }

    fn take_out(&mut self, gateway: GatewayId, entry: &Entry) {
        if let Some(first_writer) = entry.first_writer {
            self.0.remove(&(first_writer, gateway));
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Gateways {
    entries: Table<Given>,
}

impl Gateways {
    /// All of them: commands on objects, too, must hear where a brick is from now on.
    pub(super) fn ids(&self) -> impl Iterator<Item = GatewayId> {
        self.entries.keys().copied()
    }

    pub(super) fn hear(&mut self, now: Time, said: Registration) -> Heard {
        if let Some(Entry { first_writer, is_durable, .. }) = self.entries.get(&said.gateway) {
            let (first_writer, is_durable) = (*first_writer, *is_durable);
            self.entries.insert(said.gateway, Entry::new(now, said, first_writer, is_durable));
            return if is_durable { Heard::Known(first_writer) } else { Heard::Waits };
        }
        if said.held.is_none() && said.writers > 0 {
            return Heard::New(said);
        }
        // It registered before the directory restarted, and goes on under its numbers; or it wants none.
        let first_writer = said.held;
        self.entries.insert(said.gateway, Entry::new(now, said, first_writer, true));
        Heard::Known(first_writer)
    }

    /// Gives a new gateway the next run of numbers that no gateway known to live has. None where these have all: it asks again.
    pub(super) fn enter(&mut self, now: Time, said: Registration, next_writer: u16) -> Option<Run> {
        let count = said.writers.clamp(1, WRITERS_MAX);
        let first_writer = self.free_run(next_writer, count)?;
        self.entries.insert(said.gateway, Entry::new(now, said, Some(first_writer), false));
        Some(Run { next_writer: (first_writer + count) % StampClock::WRITERS })
    }

    fn free_run(&self, next_writer: u16, count: u16) -> Option<u16> {
        let Given(given) = self.entries.index();
        let runs = StampClock::WRITERS / count;
        let mut first = next_writer;
        // All runs there are from here on, and then from 0.
        for _ in 0..=runs {
            if first + count > StampClock::WRITERS {
                first = 0;
            }
            let of_run = (first, GatewayId(0))..(first + count, GatewayId(0));
            if given.range(of_run).next().is_none() {
                return Some(first);
            }
            first += count;
        }
        None
    }

    /// A gateway's numbers are stored: the first of them, if it is still there.
    pub(super) fn on_stored(&mut self, gateway: GatewayId) -> Option<u16> {
        self.entries.change(&gateway, |entry| {
            entry.is_durable = true;
            entry.first_writer
        })?
    }

    /// The newest version that each speaks.
    pub(super) fn speak(&self) -> impl Iterator<Item = (String, Version)> + '_ {
        self.entries.values().map(|entry| (entry.name(), entry.speaks))
    }

    /// The connection to a gateway is gone. It may have another one in a moment.
    pub(super) fn on_down(&mut self, gateway: GatewayId) {
        self.entries.change(&gateway, |entry| entry.is_down = true);
    }

    /// When each that says so sent what was heard last, by its own clock, and when that was heard.
    pub(super) fn clocks(&self) -> impl Iterator<Item = (GatewayId, Time, Time)> + '_ {
        let said = self.entries.iter().filter(|(_, entry)| entry.sent > Time::ZERO);
        said.map(|(id, entry)| (*id, entry.sent, entry.heard))
    }

    pub(super) fn forget_silent(&mut self, now: Time) {
        self.entries.retain(|_, entry| now.since(entry.heard) < SILENCE);
    }

    pub(super) fn status(&self, now: Time) -> Vec<GatewayStatus> {
        let status = |(id, entry): (&GatewayId, &Entry)| GatewayStatus {
            id: *id,
            address: entry.address.clone(),
            silent_ms: now.since(entry.heard).as_millis() as u64,
            beside: entry.beside,
            name: entry.name(),
            opened: entry.opened.clone(),
        };
        let is_shown = |(_, entry): &(&GatewayId, &Entry)| !entry.is_down && entry.first_writer.is_some();
        self.entries.iter().filter(is_shown).map(status).collect()
    }
}
