//! Who is inside a door, and who goes when it is full: a pure value, the same for peers, NBD, joining machines and metrics.
//!
//! Whoever calls is a stranger until it has said who it is. Strangers, clients and members of the cluster have places of their
//! own, so that no number of the one keeps the others out. Each kind has places in all, and places for one address.
//!
//! A newcomer at a full door is let in, and somebody goes in its place: of the address that holds the most places, the caller
//! that was silent for longest. So an address that holds few places never loses one to an address that holds many, and a flood
//! from one address fights with itself. A door that must not send its clients away refuses the newcomer instead.

use base::Time;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

/// How long a caller has to say who it is, with the TLS handshake: several round trips around the world, some lost.
pub const HELLO_MAX: Duration = Duration::from_secs(5);

/// Where a caller comes from, as limits count it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Origin {
    /// This machine, by loopback or a unix socket: many programs share this one origin, so that no limit of an address holds.
    Here,
    /// An IPv4 address, or the network of an IPv6 address: whoever has one address of those 64 bits has them all.
    There(IpAddr),
}

impl From<IpAddr> for Origin {
    fn from(address: IpAddr) -> Origin {
        match address.to_canonical() {
            address if address.is_loopback() => Origin::Here,
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Origin::There(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into())
            }
            address => Origin::There(address),
        }
    }
}

/// What is known of a caller.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Standing {
    /// It has not said who it is.
    Stranger,
    /// A client or operator.
    Client,
    /// A brick, a gateway or the directory.
    Member,
}

/// The places for one standing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bound {
    pub in_all: usize,
    /// For one address, unless it is this machine.
    pub per_origin: usize,
    /// Whether one that is inside goes for a newcomer; otherwise the newcomer is refused.
    pub gives_way: bool,
}

/// The places behind a door.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    pub strangers: Bound,
    pub clients: Bound,
    pub members: Bound,
}

impl Bounds {
    /// The same, or less where the process may have few descriptors: one room never takes them all.
    #[must_use]
    pub fn within(self, descriptors: usize) -> Bounds {
        let at_most = |bound: Bound, part: usize| Bound {
            in_all: bound.in_all.min(descriptors / part).max(1),
            per_origin: bound.per_origin.min(descriptors / part).max(1),
            ..bound
        };
        Bounds {
            strangers: at_most(self.strangers, 8),
            clients: at_most(self.clients, 4),
            members: at_most(self.members, 2),
        }
    }

    fn of(&self, standing: Standing) -> Bound {
        match standing {
            Standing::Stranger => self.strangers,
            Standing::Client => self.clients,
            Standing::Member => self.members,
        }
    }
}

/// Whether there is a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry<K> {
    Free,
    /// This caller is inside no more, so that there is one: close its connection.
    Instead(K),
    Refused,
}

#[derive(Clone, Copy, Debug)]
struct Guest {
    origin: Origin,
    standing: Standing,
    has_spoken: bool,
    /// When it came or, once it is known, was last of use.
    since: Time,
}

/// Who is inside. `K` names a connection.
#[derive(Debug)]
pub struct Room<K> {
    bounds: Bounds,
    guests: BTreeMap<K, Guest>,
}

impl<K: Copy + Ord> Room<K> {
    pub fn new(bounds: Bounds) -> Room<K> {
        Room { bounds, guests: BTreeMap::new() }
    }

    /// Somebody calls: makes a place, for [`Room::enter`].
    pub fn knock(&mut self, origin: Origin) -> Entry<K> {
        self.make_place(Standing::Stranger, origin)
    }

    /// A caller for which there is a place has come in.
    pub fn enter(&mut self, key: K, origin: Origin, now: Time) {
        let guest = Guest { origin, standing: Standing::Stranger, has_spoken: false, since: now };
        self.guests.insert(key, guest);
    }

    /// It said something, who it is not yet: those who say nothing at all go before it.
    pub fn has_spoken(&mut self, key: K) {
        self.guests.entry(key).and_modify(|guest| guest.has_spoken = true);
    }

    /// It is known now. Where it is refused, it is inside no more.
    pub fn rise(&mut self, key: K, standing: Standing, now: Time) -> Entry<K> {
        let Some(guest) = self.guests.remove(&key) else { return Entry::Refused };
        let entry = self.make_place(standing, guest.origin);
        if entry != Entry::Refused {
            self.guests.insert(key, Guest { standing, since: now, has_spoken: true, ..guest });
        }
        entry
    }

    /// A known caller did something of use.
    pub fn is_used(&mut self, key: K, now: Time) {
        let known = |guest: &mut Guest| match guest.standing {
            Standing::Stranger => {}
            Standing::Client | Standing::Member => guest.since = now,
        };
        self.guests.entry(key).and_modify(known);
    }

    /// Its connection is closed.
    pub fn leave(&mut self, key: K) {
        self.guests.remove(&key);
    }

    /// Who goes where the system has no descriptor left: a stranger, or else a client of a door that may send clients away.
    pub fn give_way(&mut self) -> Option<K> {
        let kinds = [Standing::Stranger, Standing::Client];
        let going = kinds.into_iter().filter(|standing| self.bounds.of(*standing).gives_way);
        let victim = going.filter_map(|standing| self.victim(standing)).next()?;
        self.guests.remove(&victim);
        Some(victim)
    }

    /// Strangers that have had their time.
    pub fn late(&self, now: Time) -> Vec<K> {
        let is_late =
            |guest: &Guest| guest.standing == Standing::Stranger && now.since(guest.since) > HELLO_MAX;
        self.guests.iter().filter(|(_, guest)| is_late(guest)).map(|(key, _)| *key).collect()
    }

    /// How many of that standing are inside.
    pub fn count(&self, standing: Standing) -> usize {
        self.guests.values().filter(|guest| guest.standing == standing).count()
    }

    fn make_place(&mut self, standing: Standing, origin: Origin) -> Entry<K> {
        let bound = self.bounds.of(standing);
        let is_own = |guest: &Guest| guest.standing == standing && guest.origin == origin;
        let own = self.guests.values().filter(|guest| is_own(guest)).count();
        let is_full_for_it = origin != Origin::Here && own >= bound.per_origin;
        if !is_full_for_it && self.count(standing) < bound.in_all {
            return Entry::Free;
        }
        if !bound.gives_way {
            return Entry::Refused;
        }
        let victim = if is_full_for_it { self.longest_silent(is_own) } else { self.victim(standing) };
        match victim {
            Some(key) => {
                self.guests.remove(&key);
                Entry::Instead(key)
            }
            None => Entry::Refused,
        }
    }

    /// Of the origin with the most of that standing, the one that was silent for longest.
    fn victim(&self, standing: Standing) -> Option<K> {
        let mut crowds: BTreeMap<Origin, usize> = BTreeMap::new();
        for guest in self.guests.values().filter(|guest| guest.standing == standing) {
            *crowds.entry(guest.origin).or_default() += 1;
        }
        let most = *crowds.values().max()?;
        self.longest_silent(|guest| guest.standing == standing && crowds[&guest.origin] == most)
    }

    fn longest_silent(&self, of: impl Fn(&Guest) -> bool) -> Option<K> {
        let candidates = self.guests.iter().filter(|(_, guest)| of(guest));
        candidates.min_by_key(|(key, guest)| (guest.has_spoken, guest.since, **key)).map(|(key, _)| *key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOUNDS: Bounds = Bounds {
        strangers: Bound { in_all: 8, per_origin: 3, gives_way: true },
        clients: Bound { in_all: 6, per_origin: 4, gives_way: true },
        members: Bound { in_all: 4, per_origin: 4, gives_way: false },
    };

    fn origin(number: u8) -> Origin {
        if number == 0 { Origin::Here } else { IpAddr::from([10, 0, 0, number]).into() }
    }

    /// Lets somebody in, and says who went.
    fn come(room: &mut Room<u64>, key: u64, from: Origin) -> Option<u64> {
        let gone = match room.knock(from) {
            Entry::Free => None,
            Entry::Instead(gone) => Some(gone),
            Entry::Refused => panic!("strangers give way to strangers"),
        };
        room.enter(key, from, Time(key));
        gone
    }

    #[derive(Clone, Debug)]
    enum Act {
        Come(u8),
        Speak(u8),
        Rise(u8, Standing),
        Use(u8),
        Leave(u8),
        NoDescriptor,
    }

    fn act() -> impl Strategy<Value = Act> {
        let standing = prop_oneof![Just(Standing::Client), Just(Standing::Member)];
        prop_oneof![
            6 => (0u8..5).prop_map(Act::Come),
            2 => any::<u8>().prop_map(Act::Speak),
            3 => (any::<u8>(), standing).prop_map(|(who, standing)| Act::Rise(who, standing)),
            1 => any::<u8>().prop_map(Act::Use),
            2 => any::<u8>().prop_map(Act::Leave),
            1 => Just(Act::NoDescriptor),
        ]
    }

    fn crowd(room: &Room<u64>, standing: Standing, origin: Origin) -> usize {
        room.guests.values().filter(|guest| guest.standing == standing && guest.origin == origin).count()
    }

    fn check_bounds(room: &Room<u64>) {
        for standing in [Standing::Stranger, Standing::Client, Standing::Member] {
            let bound = room.bounds.of(standing);
            assert!(room.count(standing) <= bound.in_all);
            assert!((1..5).all(|number| crowd(room, standing, origin(number)) <= bound.per_origin));
        }
    }

    /// Nobody goes whose address holds fewer places than another, and nobody that spoke before one that did not.
    fn check_victim(before: &BTreeMap<u64, Guest>, gone: u64, newcomer: Origin) {
        let victim = before[&gone];
        let of = |origin| {
            before
                .values()
                .filter(|guest| (guest.standing, guest.origin) == (victim.standing, origin))
                .count()
        };
        let is_most = (0..5).all(|number| of(origin(number)) <= of(victim.origin));
        assert!(is_most || victim.origin == newcomer, "{victim:?} goes for {newcomer:?}: {before:?}");
        let mut beside = before
            .values()
            .filter(|guest| (guest.standing, guest.origin) == (victim.standing, victim.origin));
        assert!(!victim.has_spoken || beside.all(|guest| guest.has_spoken));
    }

    proptest! {
        #[test]
        fn bounds_hold_and_the_address_with_the_most_places_gives_way(acts in proptest::collection::vec(act(), 1..200)) {
            let mut room: Room<u64> = Room::new(BOUNDS);
            for (key, act) in acts.into_iter().enumerate() {
                let (key, before) = (key as u64, room.guests.clone());
                let pick = |who: u8| before.keys().nth(usize::from(who) % before.len().max(1)).copied();
                match act {
                    Act::Come(from) => {
                        if let Some(gone) = come(&mut room, key, origin(from)) {
                            check_victim(&before, gone, origin(from));
                        }
                        prop_assert!(room.guests.contains_key(&key));
                    }
                    Act::Rise(who, standing) => {
                        let Some(who) = pick(who) else { continue };
                        let from = before[&who].origin;
                        match room.rise(who, standing, Time(key)) {
                            Entry::Instead(gone) if before[&who].standing != standing => {
                                check_victim(&before, gone, from);
                            }
                            Entry::Instead(_) | Entry::Free => {}
                            Entry::Refused => prop_assert_eq!(standing, Standing::Member),
                        }
                    }
                    Act::Speak(who) => pick(who).map_or((), |who| room.has_spoken(who)),
                    Act::Use(who) => pick(who).map_or((), |who| room.is_used(who, Time(key))),
                    Act::Leave(who) => pick(who).map_or((), |who| room.leave(who)),
                    Act::NoDescriptor => {
                        let gone = room.give_way();
                        let is_some = before.values().any(|guest| guest.standing != Standing::Member);
                        prop_assert_eq!(gone.is_some(), is_some);
                        prop_assert!(gone.is_none_or(|gone| before[&gone].standing != Standing::Member));
                    }
                }
                check_bounds(&room);
            }
        }

        /// However many come from elsewhere, who keeps to a share that all could have is let alone.
        #[test]
        fn a_flood_of_others_pushes_nobody_out(flood in proptest::collection::vec(1u8..4, 0..300), honest in 0usize..300) {
            let mut room: Room<u64> = Room::new(BOUNDS);
            let honest = honest.min(flood.len());
            for (key, from) in flood.iter().enumerate() {
                if key == honest {
                    come(&mut room, 1_000_000, origin(4));
                }
                prop_assert_ne!(come(&mut room, key as u64, origin(*from)), Some(1_000_000));
            }
        }
    }

    #[test]
    fn strangers_have_seconds_and_the_known_have_not() {
        let mut room: Room<u64> = Room::new(BOUNDS);
        come(&mut room, 1, origin(1));
        come(&mut room, 2, origin(1));
        assert_eq!(room.rise(2, Standing::Client, Time(2)), Entry::Free);
        room.has_spoken(1);
        assert!(room.late(Time(1) + HELLO_MAX).is_empty());
        assert_eq!(room.late(Time(2) + HELLO_MAX), [1], "half a hello is none");
    }

    #[test]
    fn clients_that_do_nothing_make_room_for_an_operator() {
        let mut room: Room<u64> = Room::new(BOUNDS);
        for key in 0..6 {
            come(&mut room, key, Origin::Here);
            assert_eq!(room.rise(key, Standing::Client, Time(key)), Entry::Free);
        }
        room.is_used(0, Time(9));
        come(&mut room, 10, Origin::Here);
        assert_eq!(
            room.rise(10, Standing::Client, Time(10)),
            Entry::Instead(1),
            "the one unused for longest"
        );
    }

    #[test]
    fn addresses_count_as_the_networks_that_own_them() {
        let origin = |text: &str| Origin::from(text.parse::<IpAddr>().unwrap());
        assert_eq!([origin("127.0.0.9"), origin("::1"), origin("::ffff:127.0.0.1")], [Origin::Here; 3]);
        assert_eq!(origin("2001:db8::1"), origin("2001:db8::ffff:1"));
        assert_ne!(origin("2001:db8::1"), origin("2001:db8:0:1::1"));
        assert_eq!(origin("::ffff:10.0.0.1"), origin("10.0.0.1"));
    }

    #[test]
    fn few_descriptors_leave_every_kind_a_part() {
        let bounds = BOUNDS.within(16);
        let in_all = [bounds.strangers, bounds.clients, bounds.members].map(|bound| bound.in_all);
        assert_eq!(in_all, [2, 4, 4]);
        assert_eq!(BOUNDS.within(1 << 20), BOUNDS);
    }
}
