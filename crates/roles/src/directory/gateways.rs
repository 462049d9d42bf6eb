//! Gateways that are known to live, and what was told to be lent to them of the [numbers](super::loans) by which their stamps differ. Commands on
//! objects register too, as gateways that write no volume: they take no number.

use super::names::check_name;
use base::{BrickId, GatewayId, Loan, Time};
use core::time::Duration;
use std::collections::BTreeMap;
use wire::{GatewayStatus, OpenCount, Version};

/// A gateway that did not register again for this long is forgotten.
const SILENCE: Duration = Duration::from_secs(10);

#[derive(Debug)]
struct Entry {
    address: String,
    beside: Option<BrickId>,
    /// What it was told to be lent to it, from which number on: it is stored. None where it writes no volume.
    lent: Option<(u16, Loan)>,
    /// Whether a loan is being stored.
    is_lending: bool,
    heard: Time,
    speaks: Version,
    /// When it sent what was heard, by its own clock; zero where it does not say.
    sent: Time,
    name: String,
    opened: Vec<OpenCount>,
    /// Its connection is gone: it is shown no more, and keeps its numbers until it has been silent for long.
    is_down: bool,
}

impl Entry {
    fn new(now: Time, said: Registration, lent: Option<(u16, Loan)>, is_lending: bool) -> Entry {
        let Registration { address, beside, speaks, sent, name, mut opened, .. } = said;
        opened.truncate(OpenCount::MAX);
        let (heard, is_down) = (now, false);
        Entry { address, beside, lent, is_lending, heard, speaks, sent, name, opened, is_down }
    }

    /// What operators call it. A name that no volume could have may be meant to deceive whoever reads it.
    fn name(&self) -> String {
        match (check_name(&self.name, "gateway"), self.lent) {
            (Ok(()), _) => self.name.clone(),
            (Err(_), Some((first, _))) => format!("gateway-{first}"),
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

#[derive(Debug, Default)]
pub(super) struct Gateways {
    entries: BTreeMap<GatewayId, Entry>,
}

impl Gateways {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// All of them: commands on objects, too, must hear where a brick is from now on.
    pub(super) fn ids(&self) -> impl Iterator<Item = GatewayId> {
        self.entries.keys().copied()
    }

    /// A gateway registers. Says what was told to be lent to it.
    pub(super) fn hear(&mut self, now: Time, said: &Registration) -> Option<(u16, Loan)> {
        let before = self.entries.get(&said.gateway);
        let (lent, is_lending) = before.map_or((None, false), |entry| (entry.lent, entry.is_lending));
        self.entries.insert(said.gateway, Entry::new(now, said.clone(), lent, is_lending));
        lent
    }

    /// Whether something is to be lent to it, by whether a loan is to be made longer.
    pub(super) fn is_loan_due(&self, gateway: GatewayId, is_due: impl Fn(Loan) -> bool) -> bool {
        let entry = self.entries.get(&gateway);
        entry.is_some_and(|entry| !entry.is_lending && entry.lent.is_none_or(|(_, loan)| is_due(loan)))
    }

    /// What is lent to it is being stored.
    pub(super) fn begin_lending(&mut self, gateway: GatewayId) {
        if let Some(entry) = self.entries.get_mut(&gateway) {
            entry.is_lending = true;
        }
    }

    /// It is stored what is lent to it. False where it is gone meanwhile.
    pub(super) fn on_stored(&mut self, gateway: GatewayId, lent: (u16, Loan)) -> bool {
        let entry = self.entries.get_mut(&gateway);
        entry.is_some_and(|entry| {
            (entry.lent, entry.is_lending) = (Some(lent), false);
            true
        })
    }

    /// The newest version that each speaks.
    pub(super) fn speak(&self) -> impl Iterator<Item = (String, Version)> + '_ {
        self.entries.values().map(|entry| (entry.name(), entry.speaks))
    }

    /// The connection to a gateway is gone. It may have another one in a moment.
    pub(super) fn on_down(&mut self, gateway: GatewayId) {
        if let Some(entry) = self.entries.get_mut(&gateway) {
            entry.is_down = true;
        }
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
        let is_shown = |(_, entry): &(&GatewayId, &Entry)| !entry.is_down && entry.lent.is_some();
        self.entries.iter().filter(is_shown).map(status).collect()
    }
}
