//! Until when a brick may believe that its views are in force, and which bricks are taken for dead.
//!
//! A brick counts its lease from when it *sent* what asked for it, the directory from when it received that, and by a clock
//! that may run faster: so the brick's belief ends first. After a restart the directory takes it that every brick that it knows was
//! given the longest lease a moment ago.
//!
//! Leases are short, as nothing is written to a group of a dead brick before its lease has ended. Heartbeats, which say much, are too seldom for that:
//! between them a brick *renews* ([`wire::Message::Renew`]), which says nothing else.
//!
//! A brick is *dead* once two things are so: its lease has ended, and the directory has a reason to believe that it is gone. Either it has been silent
//! for [`SILENCE`], or the connection to it has ended and it has not been heard since: the kernel of a machine ends the connections of a process that was killed.
//! That proves nothing (a live brick may have ended its connection, or something between the two), and so takes nothing from a brick before its lease
//! has ended: until then it has the time to call again.
//!
//! A brick that is heard and is to leave (as it is slow, evicted or broken) is asked to give back what is left of its lease ([`wire::Message::Yield`]), and leaves as soon as
//! it says that it has none. Its word counts for the leases that were granted for what it had sent until then. If it says nothing the lease ends by itself.
//!
//! Both adapt to what is measured: a lease is as long as the brick has lately been irregularly heard (the mean
//! distance and eight times its mean deviation, after Jacobson's estimator for retransmission, SIGCOMM '88), within
//! the configured length and the longest one. So a brick on a bad link is not left out for its link, and one on a
//! good link is found dead quickly. A time in which the directory itself stood still is no brick's silence ([`Leases::forgive`]). The views that leave out the
//! dead are asked for in [`super::members`].

use super::event::DirectoryConfig;
use base::{BrickId, Time};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use wire::{BrickStatus, Version};

/// The longest lease where no longer one is configured, and twice the configured one otherwise.
const LONGEST: Duration = Duration::from_secs(4);
/// A lease of bricks of earlier releases, which do not renew between heartbeats, is no shorter.
const UNRENEWED: Duration = Duration::from_secs(2);
/// Who is silent for so long is gone; or for as long as its lease, where that is longer.
const SILENCE: Duration = Duration::from_millis(500);
/// Where more than half of the bricks fall silent at once the directory's own link is the likelier reason: all are waited for for so long.
const ALL_SILENT: Duration = Duration::from_secs(2);
/// A brick without a lease does not renew: it is heard with each heartbeat only.
const UNGRANTED_SILENCE: Duration = Duration::from_secs(1);
/// After a pause of the directory its connections break, too, and bricks call again within so long.
const AFTER_PAUSE: Duration = Duration::from_secs(1);
/// Who is heard at such distances at the most is regularly heard.
const REGULAR: Duration = Duration::from_secs(2);
/// A brick renews so many times in the length of a lease, so that one that is lost costs nothing.
const RENEWALS: u64 = 3;

#[derive(Debug)]
pub(super) struct Lease {
    /// When the brick was heard last.
    pub(super) heard: Time,
    /// When it sent that, by its own clock.
    pub(super) sent: Time,
    /// For how long the directory had not listened then, all in all.
    deaf_then: Duration,
    /// The latest time until which it may believe.
    until: Time,
    /// The process that was granted a lease last, and the latest thing that it sent for which it was granted one.
    granted: (u64, Time),
    /// Whether it was asked to give back what it has.
    is_asked: bool,
    /// What it said last.
    pub(super) status: BrickStatus,
    /// The version of the map that it knows.
    pub(super) known: u64,
    /// Whether its last heartbeat was answered with a lease.
    pub(super) is_granted: bool,
    /// Whether it renews between heartbeats.
    renews: bool,
    /// Whether the connection to it has ended since it was heard.
    pub(super) is_down: bool,
    /// Mean distance at which it is heard, and the mean deviation from that.
    mean_ns: u64,
    deviation_ns: u64,
}

impl Lease {
    /// It was heard `gap_ns` after the time before.
    fn observe(&mut self, gap_ns: u64) {
        if self.mean_ns == 0 {
            (self.mean_ns, self.deviation_ns) = (gap_ns, 0);
            return;
        }
        let error = self.mean_ns.abs_diff(gap_ns);
        self.deviation_ns = self.deviation_ns - self.deviation_ns / 4 + error / 4;
        self.mean_ns = self.mean_ns - self.mean_ns / 8 + gap_ns / 8;
    }

    fn wanted_ns(&self) -> u64 {
        self.mean_ns + 8 * self.deviation_ns
    }

    /// Whether it is heard so regularly that nothing is to be said against its link.
    pub(super) fn is_regular(&self) -> bool {
        self.wanted_ns() <= REGULAR.as_nanos() as u64
    }
}

#[derive(Debug)]
pub(super) struct Leases {
    lease_ns: u64,
    longest_ns: u64,
    drift_ppm: u64,
    /// Until when bricks not heard since the start may believe.
    grace: Time,
    /// For how long the directory has not listened, all in all.
    deaf: Duration,
    /// Until when the end of a connection says nothing.
    calls_until: Time,
    bricks: BTreeMap<BrickId, Lease>,
}

impl Leases {
    /// Of a directory that knows bricks, or of one that has given nobody a lease yet.
    pub(super) fn new(config: &DirectoryConfig, now: Time, knows_bricks: bool) -> Leases {
        let (lease_ns, drift_ppm) = (config.lease_ns, u64::from(config.drift_ppm));
        let longest_ns = (LONGEST.as_nanos() as u64).max(2 * lease_ns);
        let mut leases = Leases {
            lease_ns,
            longest_ns,
            drift_ppm,
            grace: now,
            deaf: Duration::ZERO,
            calls_until: now,
            bricks: BTreeMap::new(),
        };
        if knows_bricks {
            leases.grace = now + leases.with_drift(longest_ns);
        }
        leases
    }

    /// How long a brick's lease is now.
    pub(super) fn length_ns(&self, brick: BrickId) -> u64 {
        let lease = self.bricks.get(&brick);
        let renews = lease.is_some_and(|lease| lease.renews);
        let shortest_ns = if renews { self.lease_ns } else { self.lease_ns.max(UNRENEWED.as_nanos() as u64) };
        lease.map_or(0, Lease::wanted_ns).clamp(shortest_ns, self.longest_ns)
    }

    /// After how long a brick of this version is to renew its lease; zero if its heartbeats are enough.
    pub(super) fn renew_ns(&self, speaks: Version) -> u64 {
        if speaks >= Version::RENEWS { self.lease_ns / RENEWALS } else { 0 }
    }

    /// A lease as it may look to a clock that runs differently.
    fn with_drift(&self, lease_ns: u64) -> Duration {
        Duration::from_nanos(lease_ns + lease_ns / 1_000_000 * self.drift_ppm)
    }

    /// For how long the brick may be silent.
    fn patience(&self, brick: BrickId) -> Duration {
        let is_granted = self.bricks.get(&brick).is_some_and(|lease| lease.is_granted);
        let least = if is_granted { SILENCE } else { UNGRANTED_SILENCE };
        self.with_drift(self.length_ns(brick)).max(least)
    }

    /// Something was heard of the brick itself.
    fn hear(&mut self, (now, sent): (Time, Time), brick: BrickId) -> &mut Lease {
        let (grace, longest_ns, deaf) = (self.grace, self.longest_ns, self.deaf);
        let lease = self.bricks.entry(brick).or_insert_with(|| Lease {
            heard: now,
            sent,
            deaf_then: deaf,
            until: grace,
            granted: (0, Time::ZERO),
            is_asked: false,
            status: BrickStatus::default(),
            known: 0,
            is_granted: false,
            renews: false,
            is_down: false,
            mean_ns: 0,
            deviation_ns: 0,
        });
        let gap_ns = silence(now, deaf, lease).as_nanos() as u64;
        // Neither a longer one nor the absence of one that began anew says anything about the link.
        if !lease.is_down && (1..longest_ns).contains(&gap_ns) {
            lease.observe(gap_ns);
        }
        (lease.heard, lease.sent, lease.deaf_then, lease.is_down) = (now, sent, deaf, false);
        lease
    }

    /// A heartbeat was heard, which the brick sent at `sent` by its own clock.
    pub(super) fn on_heartbeat(
        &mut self,
        (now, sent): (Time, Time),
        (brick, speaks): (BrickId, Version),
        status: BrickStatus,
        grant: bool,
    ) {
        let lease = self.hear((now, sent), brick);
        let run = status.run.number;
        (lease.status, lease.is_granted) = (status, grant);
        lease.renews = speaks >= Version::RENEWS;
        if grant {
            self.grant((now, sent), (brick, run));
        }
    }

    /// A brick asked for more of its lease, which it has had since its last heartbeat: how long it is, if it may `trust` its views.
    pub(super) fn on_renewal(
        &mut self,
        (now, sent): (Time, Time),
        (brick, run): (BrickId, u64),
        trusts: bool,
    ) -> u64 {
        self.hear((now, sent), brick);
        if trusts { self.grant((now, sent), (brick, run)) } else { 0 }
    }

    fn grant(&mut self, (now, sent): (Time, Time), (brick, run): (BrickId, u64)) -> u64 {
        let length_ns = self.length_ns(brick);
        let until = now + self.with_drift(length_ns);
        if let Some(lease) = self.bricks.get_mut(&brick) {
            lease.until = lease.until.max(until);
            let before = if lease.granted.0 == run { lease.granted.1 } else { sent };
            (lease.granted, lease.is_asked) = ((run, sent.max(before)), false);
        }
        length_ns
    }

    /// The brick is to leave, and gets no more than it has: the process that is to be asked to give that back, if it was not asked yet. What a directory before this
    /// one granted nobody gives back: it is not known what that was.
    pub(super) fn take_back(&mut self, now: Time, brick: BrickId) -> Option<u64> {
        if self.has_ended(now, brick) || now <= self.grace {
            return None;
        }
        let is_asked = |lease: &&mut Lease| lease.renews && !lease.is_down && !lease.is_asked;
        let lease = self.bricks.get_mut(&brick).filter(is_asked)?;
        (lease.is_granted, lease.is_asked) = (false, true);
        Some(lease.granted.0)
    }

    /// A process of the brick has no lease any more that was granted for what it sent until `sent`. Whether it had one, and has none now.
    pub(super) fn on_yielded(&mut self, now: Time, brick: BrickId, (run, sent): (u64, Time)) -> bool {
        let has_all = |lease: &&mut Lease| lease.granted.0 == run && lease.granted.1 <= sent;
        let Some(lease) = self.bricks.get_mut(&brick).filter(has_all).filter(|lease| lease.until >= now)
        else {
            return false;
        };
        // It renews only once it was granted another one.
        (lease.until, lease.is_granted) = (Time::ZERO, false);
        true
    }

    /// The connection to the brick has ended.
    pub(super) fn on_down(&mut self, now: Time, brick: BrickId) {
        if let Some(lease) = self.bricks.get_mut(&brick).filter(|_| now >= self.calls_until) {
            lease.is_down = true;
        }
    }

    /// The brick gets no more than it has.
    pub(super) fn end(&mut self, brick: BrickId) {
        if let Some(lease) = self.bricks.get_mut(&brick) {
            lease.is_granted = false;
        }
    }

    /// A brick that was heard knows this version of the map.
    pub(super) fn knows(&mut self, brick: BrickId, known: u64) {
        if let Some(lease) = self.bricks.get_mut(&brick) {
            lease.known = known;
        }
    }

    /// Whether the brick cannot believe in its views any more.
    pub(super) fn has_ended(&self, now: Time, brick: BrickId) -> bool {
        now > self.bricks.get(&brick).map_or(self.grace, |lease| lease.until.max(self.grace))
    }

    pub(super) fn len(&self) -> usize {
        self.bricks.len()
    }

    /// The directory did not listen for so long: that was no brick's silence.
    pub(super) fn forgive(&mut self, deaf: Duration) {
        self.deaf += deaf;
    }

    /// The directory did not run for long. What it hears of connections now is what became of them meanwhile, and bricks have yet to call again.
    pub(super) fn on_pause(&mut self, now: Time) {
        self.deaf += AFTER_PAUSE;
        self.calls_until = now + AFTER_PAUSE;
        self.bricks.values_mut().for_each(|lease| lease.is_down = false);
    }

    /// For how long a brick has been silent, not counting what the directory missed; none of one that was never heard.
    pub(super) fn silence(&self, now: Time, brick: BrickId) -> Option<Duration> {
        Some(silence(now, self.deaf, self.bricks.get(&brick)?))
    }

    /// Whether it is known if the brick is there: it was heard lately, or has been silent for longer than the directory may have been away.
    pub(super) fn is_settled(&self, now: Time, brick: BrickId) -> bool {
        now > self.grace || self.silence(now, brick).is_some_and(|silence| silence < self.patience(brick))
    }

    /// Bricks that were heard lately.
    pub(super) fn is_alive(&self, now: Time, brick: BrickId) -> bool {
        self.bricks.get(&brick).is_some_and(|lease| {
            !lease.is_down
                && silence(now, self.deaf, lease) < self.patience(brick)
                && lease.status.failed.is_none()
        })
    }

    /// The brick is no more.
    pub(super) fn forget(&mut self, brick: BrickId) {
        self.bricks.remove(&brick);
    }

    /// Bricks of `all` that are to be left out: gone, broken or `unwanted`, and without a lease.
    pub(super) fn dead(
        &self,
        now: Time,
        all: impl Iterator<Item = BrickId>,
        unwanted: impl Fn(BrickId) -> bool,
    ) -> BTreeSet<BrickId> {
        let are_all_silent = self.are_all_silent(now);
        let is_waited_for = |brick: &BrickId| {
            are_all_silent && self.bricks.get(brick).is_some_and(|lease| self.is_silent_lately(now, lease))
        };
        let is_gone = |brick: &BrickId| !self.is_alive(now, *brick) && !is_waited_for(brick);
        all.filter(|brick| (is_gone(brick) || unwanted(*brick)) && self.has_ended(now, *brick)).collect()
    }

    /// Whether more than half of the bricks that were heard lately have fallen silent, and more than one.
    fn are_all_silent(&self, now: Time) -> bool {
        let lately = self.bricks.iter().filter(|(_, lease)| silence(now, self.deaf, lease) < ALL_SILENT);
        let (silent, heard): (Vec<_>, Vec<_>) = lately
            .partition(|(brick, lease)| self.is_silent_lately(now, lease) && !self.is_alive(now, **brick));
        silent.len() > heard.len().max(1)
    }

    /// Whether nothing was heard of the brick, and nobody said why, for less long than where all are silent.
    fn is_silent_lately(&self, now: Time, lease: &Lease) -> bool {
        !lease.is_down && lease.status.failed.is_none() && silence(now, self.deaf, lease) < ALL_SILENT
    }

    /// When next a brick may be dead, or one that gets no lease has none any more, if nothing is heard of it.
    pub(super) fn next_end(&self, now: Time) -> Option<Time> {
        let end = |(brick, lease): (&BrickId, &Lease)| {
            let is_awaited = lease.is_granted && !lease.is_down;
            let silent = if is_awaited {
                lease.heard + (self.deaf - lease.deaf_then) + self.patience(*brick)
            } else {
                now
            };
            silent.max(lease.until.max(self.grace) + Duration::from_nanos(1))
        };
        self.bricks.iter().map(end).filter(|end| *end > now).min()
    }

    pub(super) fn get(&self, brick: BrickId) -> Option<&Lease> {
        self.bricks.get(&brick)
    }
}

/// For how long a brick has been silent where the directory has not listened for so long, all in all.
fn silence(now: Time, deaf: Duration, lease: &Lease) -> Duration {
    now.since(lease.heard).saturating_sub(deaf - lease.deaf_then)
}

#[cfg(test)]
mod tests {
    use super::*;
    use objects::index::IndexConfig;

    const CARE: wire::Care = wire::Care {
        rebuild_bytes_per_second: 1,
        scrub_bytes_per_second: 1,
        scrub_interval_s: 0,
        scrub: 0,
        rebuild_after_s: 0,
    };
    const CONFIG: DirectoryConfig = DirectoryConfig {
        lease_ns: 300_000_000,
        drift_ppm: 10_000,
        domains: Vec::new(),
        care: CARE,
        slow_hold_ns: (0, 0),
        stand_ins: true,
        index: IndexConfig::USUAL,
        first_time: base::ClusterTime::FIRST,
        page_bytes: DirectoryConfig::PAGE_BYTES,
        shortest_loan: DirectoryConfig::SHORTEST_LOAN,
        anyone_administers: false,
    };
    const BRICK: BrickId = BrickId(1);

    fn ms(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    fn heartbeat(leases: &mut Leases, at_ms: u64, speaks: Version, grant: bool) {
        leases.on_heartbeat((ms(at_ms), Time::ZERO), (BRICK, speaks), BrickStatus::default(), grant);
    }

    /// After a restart, when no lease of before counts any more: a brick that is heard every 100 ms until `until_ms`.
    fn heard_until(until_ms: u64) -> Leases {
        let mut leases = Leases::new(&CONFIG, Time::ZERO, true);
        heartbeat(&mut leases, until_ms % 100, Version::CURRENT, true);
        for at in (until_ms % 100..=until_ms).step_by(100).skip(1) {
            assert_eq!(leases.on_renewal((ms(at), Time::ZERO), (BRICK, 0), true), CONFIG.lease_ns);
        }
        leases
    }

    fn is_dead(leases: &Leases, now: Time) -> bool {
        leases.dead(now, core::iter::once(BRICK), |_| false).contains(&BRICK)
    }

    #[test]
    fn nobody_is_dead_before_its_lease_has_ended() {
        let mut leases = Leases::new(&CONFIG, Time::ZERO, true);
        assert!(!is_dead(&leases, ms(4000)), "after a restart all may have been given leases");
        assert!(is_dead(&leases, ms(4050)));
        heartbeat(&mut leases, 9000, Version::CURRENT, true);
        leases.on_down(ms(9001), BRICK);
        assert!(!leases.is_alive(ms(9001), BRICK));
        assert!(
            !is_dead(&leases, ms(9303)) && is_dead(&leases, ms(9304)),
            "a lease and a hundredth for its clock"
        );
    }

    #[test]
    fn a_lease_outlasts_silence_where_it_is_longer_and_silence_the_lease_where_that_is() {
        let leases = heard_until(9000);
        assert!(!is_dead(&leases, ms(9499)) && is_dead(&leases, ms(9500)));
        let mut old = Leases::new(&CONFIG, Time::ZERO, true);
        heartbeat(&mut old, 9000, Version(22), true);
        assert_eq!(old.renew_ns(Version(22)), 0);
        assert!(!is_dead(&old, ms(11_019)) && is_dead(&old, ms(11_021)), "it does not renew");
    }

    #[test]
    fn a_connection_that_has_ended_is_forgotten_with_the_next_word() {
        let mut leases = heard_until(9000);
        leases.on_down(ms(9001), BRICK);
        leases.on_renewal((ms(9100), Time::ZERO), (BRICK, 0), true);
        assert!(leases.is_alive(ms(9100), BRICK) && !is_dead(&leases, ms(9500)));
    }

    #[test]
    fn what_the_directory_missed_is_no_silence_and_no_lease() {
        let mut leases = heard_until(9000);
        leases.forgive(Duration::from_secs(2));
        assert!(leases.is_alive(ms(11_400), BRICK) && !is_dead(&leases, ms(11_400)));
        assert!(leases.has_ended(ms(11_400), BRICK), "its lease was no longer for that");
        assert_eq!(leases.next_end(ms(11_400)), Some(ms(11_500)));
        assert!(is_dead(&leases, ms(11_500)));
        leases.on_renewal((ms(12_000), Time::ZERO), (BRICK, 0), true);
        assert!(leases.length_ns(BRICK) > CONFIG.lease_ns, "it was silent for a second");
        let mut leases = heard_until(9000);
        leases.forgive(Duration::from_millis(1900));
        leases.on_renewal((ms(11_000), Time::ZERO), (BRICK, 0), true);
        assert_eq!(leases.length_ns(BRICK), CONFIG.lease_ns, "that was not irregular");
    }

    #[test]
    fn after_a_pause_of_the_directory_bricks_have_the_time_to_call_again_and_the_dead_stay_dead() {
        let pause = |heard_ms| {
            let mut leases = heard_until(heard_ms);
            leases.on_down(ms(60_010), BRICK);
            leases.forgive(Duration::from_millis(2900));
            leases.on_pause(ms(63_000));
            leases.on_down(ms(63_010), BRICK);
            leases
        };
        let leases = pause(60_000);
        assert!(leases.is_alive(ms(64_399), BRICK) && !is_dead(&leases, ms(64_399)));
        assert!(is_dead(&leases, ms(64_400)));
        let leases = pause(9000);
        assert!(!leases.is_alive(ms(63_000), BRICK) && is_dead(&leases, ms(63_000)));
    }

    #[test]
    fn a_process_that_began_anew_is_no_irregular_brick() {
        let mut leases = heard_until(9000);
        leases.on_down(ms(9010), BRICK);
        leases.on_renewal((ms(10_500), Time::ZERO), (BRICK, 0), true);
        assert_eq!(leases.length_ns(BRICK), CONFIG.lease_ns);
    }

    #[test]
    fn a_brick_without_a_lease_is_heard_less_often_and_waited_for_longer() {
        let mut leases = heard_until(9000);
        heartbeat(&mut leases, 9100, Version::CURRENT, false);
        assert!(leases.is_alive(ms(10_099), BRICK) && !leases.is_alive(ms(10_101), BRICK));
    }

    #[test]
    fn where_most_bricks_fall_silent_at_once_all_are_waited_for() {
        let all = [1, 2, 3].map(BrickId);
        let mut leases = Leases::new(&CONFIG, Time::ZERO, true);
        let beat = |leases: &mut Leases, at, brick| {
            leases.on_heartbeat(
                (ms(at), Time::ZERO),
                (brick, Version::CURRENT),
                BrickStatus::default(),
                true,
            );
        };
        for at in (8000..=9000).step_by(100) {
            all.iter().for_each(|brick| beat(&mut leases, at, *brick));
        }
        let dead = |leases: &Leases, at| leases.dead(ms(at), all.into_iter(), |_| false);
        beat(&mut leases, 9600, BrickId(3));
        assert!(dead(&leases, 9600).is_empty() && dead(&leases, 10_999).is_empty());
        assert_eq!(dead(&leases, 11_000), BTreeSet::from(all), "the third one for its own silence");
        leases.on_down(ms(9600), BrickId(1));
        assert_eq!(dead(&leases, 9600), BTreeSet::from([1, 2].map(BrickId)), "of one it is known why");
        leases.hear((ms(9000), Time::ZERO), BrickId(1));
        beat(&mut leases, 9650, BrickId(2));
        assert_eq!(dead(&leases, 9700), BTreeSet::from([BrickId(1)]), "one of three");
    }

    #[test]
    fn a_brick_that_is_not_wanted_stays_until_its_lease_has_ended() {
        let mut leases = heard_until(9000);
        assert_eq!(leases.on_renewal((ms(9100), Time::ZERO), (BRICK, 0), false), 0);
        let dead = |leases: &Leases, now| leases.dead(now, core::iter::once(BRICK), |_| true);
        assert!(dead(&leases, ms(9303)).is_empty() && !dead(&leases, ms(9304)).is_empty());
        heartbeat(&mut leases, 9310, Version::CURRENT, false);
        assert!(!dead(&leases, ms(9310)).is_empty());
    }

    #[test]
    fn a_lease_that_is_given_back_is_over_unless_another_one_was_granted_since() {
        let beat = |leases: &mut Leases, (at, sent): (u64, u64), run| {
            let status = BrickStatus {
                run: wire::Run { number: run, ..wire::Run::default() },
                ..BrickStatus::default()
            };
            leases.on_heartbeat((ms(at), ms(sent)), (BRICK, Version::CURRENT), status, true);
        };
        let mut leases = Leases::new(&CONFIG, Time::ZERO, true);
        beat(&mut leases, (4000, 10), 7);
        assert_eq!(
            leases.take_back(ms(4001), BRICK),
            None,
            "a directory before this one may have granted more"
        );
        beat(&mut leases, (9000, 5000), 7);
        // Heartbeats may overtake each other.
        beat(&mut leases, (9001, 4900), 7);
        assert_eq!(leases.take_back(ms(9010), BRICK), Some(7));
        assert_eq!(leases.take_back(ms(9020), BRICK), None, "it is asked once");
        assert!(!leases.get(BRICK).expect("heard").is_granted);
        assert!(!leases.on_yielded(ms(9020), BRICK, (6, ms(5010))), "another process");
        assert!(!leases.on_yielded(ms(9020), BRICK, (7, ms(4999))), "it has had more since");
        assert!(!leases.has_ended(ms(9020), BRICK));
        assert!(leases.on_yielded(ms(9020), BRICK, (7, ms(5010))) && leases.has_ended(ms(9020), BRICK));
        assert_eq!(leases.take_back(ms(9030), BRICK), None, "there is nothing to give back");
        // It has one again, and an old word takes nothing from it.
        beat(&mut leases, (9400, 5400), 7);
        assert!(!leases.on_yielded(ms(9020), BRICK, (7, ms(5010))) && !leases.has_ended(ms(9410), BRICK));
        assert_eq!(leases.take_back(ms(9410), BRICK), Some(7));
        // The next process counts its time anew.
        beat(&mut leases, (9500, 3), 8);
        assert_eq!(leases.take_back(ms(9510), BRICK), Some(8));
        assert!(leases.on_yielded(ms(9520), BRICK, (8, ms(4))));
    }

    #[test]
    fn a_brick_of_an_earlier_release_is_not_asked() {
        let mut old = Leases::new(&CONFIG, Time::ZERO, true);
        heartbeat(&mut old, 9000, Version(22), true);
        assert_eq!(old.take_back(ms(9010), BRICK), None);
        assert!(old.get(BRICK).expect("heard").is_granted);
    }

    #[test]
    fn leases_are_longer_where_a_brick_is_heard_irregularly() {
        let mut shaky = Leases::new(&CONFIG, Time::ZERO, true);
        (0..50).for_each(|n| heartbeat(&mut shaky, 400 * n + 300 * (n % 2), Version::CURRENT, true));
        assert!(shaky.length_ns(BRICK) > 2_500_000_000, "{}", shaky.length_ns(BRICK));
        assert!(!shaky.get(BRICK).expect("heard").is_regular());
        (100..200).for_each(|n| heartbeat(&mut shaky, 30_000 * n, Version::CURRENT, true));
        assert!(shaky.length_ns(BRICK) <= shaky.longest_ns);
        assert_eq!(heard_until(9000).length_ns(BRICK), CONFIG.lease_ns);
    }

    #[test]
    fn the_next_look_is_when_a_brick_dies_and_not_before() {
        let mut granted = heard_until(9000);
        let mut others = vec![granted, heard_until(9000), heard_until(9000)];
        others[1].on_down(ms(9050), BRICK);
        heartbeat(&mut others[2], 9050, Version::CURRENT, false);
        granted = others.remove(0);
        for (leases, unwanted) in [(granted, false), (others.remove(0), false), (others.remove(0), true)] {
            let dead = |at| !leases.dead(at, core::iter::once(BRICK), |_| unwanted).is_empty();
            let end = leases.next_end(ms(9060)).expect("it is heard");
            assert!(!dead(end - Duration::from_nanos(1)) && dead(end), "{end:?}");
            assert_eq!(leases.next_end(end), None);
        }
    }
}
