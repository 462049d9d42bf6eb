//! Which gateways a client knows. It knows those that the directory lists and those that it reaches; one that is neither is gone, and is
//! forgotten. So what a client keeps, and whom it calls, is bounded by what there is.

use base::{BrickId, GatewayId, Time};
use std::collections::BTreeMap;
use wire::GatewayStatus;

/// Another gateway than the client's own, to which requests of some blocks go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Nearer {
    /// It was asked to open the volume: by which question, and when.
    Asked(u64, Time),
    Open,
    /// It did not serve a request: it is asked nothing until then.
    Left(Time),
}

#[derive(Default, Debug)]
struct Known {
    /// Empty where the directory has not told it.
    address: String,
    is_listed: bool,
    is_up: bool,
    nearer: Option<Nearer>,
}

/// What a list of gateways has changed.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum News {
    Moved(GatewayId, String),
    Gone(GatewayId),
}

#[derive(Default, Debug)]
pub(super) struct Gateways {
    known: BTreeMap<GatewayId, Known>,
    /// Which gateway is beside which brick.
    beside: BTreeMap<BrickId, GatewayId>,
}

impl Gateways {
    /// The directory lists those that live.
    pub(super) fn on_listed(&mut self, listed: Vec<GatewayStatus>) -> Vec<News> {
        let listed = self.one_an_address(listed);
        self.known.values_mut().for_each(|known| known.is_listed = false);
        let mut news = Vec::new();
        for GatewayStatus { id, address, .. } in &listed {
            let known = self.known.entry(*id).or_default();
            known.is_listed = true;
            if known.address != *address {
                known.address.clone_from(address);
                news.push(News::Moved(*id, address.clone()));
            }
        }
        let gone = |known: &Known| !known.is_listed && !known.is_up;
        news.extend(self.known.iter().filter(|(_, known)| gone(known)).map(|(id, _)| News::Gone(*id)));
        self.known.retain(|_, known| !gone(known));
        // Where several say so, one that is reached.
        let (up, down): (Vec<_>, Vec<_>) = listed.iter().partition(|of| self.is_up(of.id));
        self.beside = down.into_iter().chain(up).filter_map(|of| Some((of.beside?, of.id))).collect();
        news
    }

    /// A gateway that is restarted draws a new id and keeps its address, and the directory lists the old one for some seconds: of those with
    /// one address the one heard last is there. Those without an address serve the client in their own process only.
    fn one_an_address(&self, mut listed: Vec<GatewayStatus>) -> Vec<GatewayStatus> {
        listed.retain(|of| !of.address.is_empty());
        listed.sort_by(|a, b| (&a.address, a.silent_ms).cmp(&(&b.address, b.silent_ms)));
        listed.dedup_by(|later, first| later.address == first.address);
        listed
    }

    pub(super) fn on_up(&mut self, gateway: GatewayId) {
        self.known.entry(gateway).or_default().is_up = true;
    }

    pub(super) fn on_down(&mut self, gateway: GatewayId) {
        if let Some(known) = self.known.get_mut(&gateway) {
            known.is_up = false;
        }
    }

    /// Somebody else answers at its address.
    pub(super) fn forget(&mut self, gateway: GatewayId) {
        self.known.remove(&gateway);
        self.beside.retain(|_, beside| *beside != gateway);
    }

    pub(super) fn is_up(&self, gateway: GatewayId) -> bool {
        self.known.get(&gateway).is_some_and(|known| known.is_up)
    }

    /// The next one to go to, in turn.
    pub(super) fn after(&self, gateway: Option<GatewayId>) -> Option<GatewayId> {
        let can_serve = |known: &Known| known.is_up && !known.address.is_empty();
        let mut candidates = self.known.iter().filter(|(_, known)| can_serve(known)).map(|(id, _)| *id);
        let first = candidates.clone().next();
        candidates.find(|id| Some(*id) > gateway).or(first)
    }

    /// The one beside a brick, if it is reached.
    pub(super) fn beside(&self, brick: BrickId) -> Option<GatewayId> {
        self.beside.get(&brick).copied().filter(|gateway| self.is_up(*gateway))
    }

    pub(super) fn nearer(&self, gateway: GatewayId) -> Option<Nearer> {
        self.known.get(&gateway)?.nearer
    }

    /// Returns what it was before.
    pub(super) fn set_nearer(&mut self, gateway: GatewayId, nearer: Nearer) -> Option<Nearer> {
        self.known.get_mut(&gateway)?.nearer.replace(nearer)
    }

    /// All that are known.
    pub(super) fn ids(&self) -> impl Iterator<Item = GatewayId> + '_ {
        self.known.keys().copied()
    }

    /// Asserts that nothing is kept of a gateway that is gone.
    pub(super) fn check(&self) {
        assert!(
            self.beside.values().all(|beside| self.known.contains_key(beside)),
            "one beside a brick is known"
        );
        let excess = self.known.values().filter(|known| !known.is_listed && !known.is_up).count();
        // Connections break between two lists of the directory.
        assert!(excess <= GONE_MAX, "{excess} gateways that are neither listed nor reached are known");
    }
}

/// Gateways that may die between two lists.
const GONE_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(id: u64, address: &str, silent_ms: u64) -> GatewayStatus {
        let (address, name, opened) = (address.to_owned(), String::new(), Vec::new());
        GatewayStatus { id: GatewayId(id), address, silent_ms, beside: Some(BrickId(1)), name, opened }
    }

    #[test]
    fn who_is_restarted_at_an_address_takes_it_over() {
        let mut gateways = Gateways::default();
        let moved = |id| News::Moved(GatewayId(id), "here".to_owned());
        assert_eq!(gateways.on_listed(vec![listed(7, "here", 100)]), [moved(7)]);
        gateways.on_up(GatewayId(7));
        gateways.on_down(GatewayId(7));
        let both = vec![listed(7, "here", 3_000), listed(3, "here", 50)];
        assert_eq!(gateways.on_listed(both), [moved(3), News::Gone(GatewayId(7))]);
        assert_eq!(gateways.ids().collect::<Vec<_>>(), [GatewayId(3)]);
        gateways.on_up(GatewayId(3));
        assert_eq!(gateways.beside(BrickId(1)), Some(GatewayId(3)));
    }

    #[test]
    fn who_is_reached_stays_though_the_directory_has_forgotten_it() {
        let mut gateways = Gateways::default();
        gateways.on_listed(vec![listed(7, "here", 0)]);
        gateways.on_up(GatewayId(7));
        assert_eq!(gateways.on_listed(Vec::new()), []);
        assert_eq!(gateways.after(None), Some(GatewayId(7)));
        gateways.on_down(GatewayId(7));
        assert_eq!(gateways.on_listed(Vec::new()), [News::Gone(GatewayId(7))]);
    }

    #[test]
    fn a_thousand_restarts_leave_one() {
        let mut gateways = Gateways::default();
        for id in 0..1_000 {
            // The one before is listed until it was silent for long.
            let before = (id > 0).then(|| listed(id - 1, "here", 4_000));
            gateways.on_listed(before.into_iter().chain([listed(id, "here", 10)]).collect());
            gateways.on_up(GatewayId(id));
            gateways.on_down(GatewayId(id));
            gateways.set_nearer(GatewayId(id), Nearer::Left(Time::ZERO));
            gateways.check();
            assert_eq!(gateways.ids().count(), 1);
        }
    }
}
