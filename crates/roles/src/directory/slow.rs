//! Members that hold up the writes of their groups: who is left out for being slow, and when it may return.
//!
//! *Leaving.* Gateways tell how long each brick takes to prepare beside the others ([`volume::netraid::lateness`]). A
//! brick is held for slow when most of the gateways that lately used it say so, or one does and the brick's own
//! measurements agree: one gateway with a bad link to a brick does not take it from all. Of a brick that is too full to
//! return its own measurements must agree in any case: a full disk makes writes wait while it looks for room, and no gateway
//! can tell that from slowness. Nor is it the brick that is slow where writes waited because the directory gave it no lease: what gateways say of
//! the time in which a process of it waited to count ([`super::runs`]) is not believed. It is left out only where every group bears that beside those that are away and survives one
//! failure more without it: a group does not give its last redundancy for speed. A brick that *stands still* is as good as
//! dead, and is left out wherever the others can serve without it. It gives its lease back when asked, and a view leaves it out like
//! an evicted brick when it has none ([`super::members`]). What waits for room at a disk is no part of what gateways see; a disk that
//! is slow there is known by its own measurements beside those of its peers ([`super::saturated`]).
//!
//! *Falling silent.* A brick that is left out as silent returns as soon as it is heard. One that falls silent again and again makes writes wait each time:
//! from the third time within an hour on it is held for slow when it returns, if its groups can do without it. Who was started again meanwhile did not fall silent.
//!
//! *Returning.* What the gateways see ends with the brick's part in writes; so it is judged by what it measures of
//! itself (its disk, its process, its way to the directory) and by how regular its heartbeats are. Being well must
//! last, twice as long each time that it was left out again; an hour of good conduct forgets that. It returns before
//! that where another loss makes its groups need it. Records are durable, so a restart begins the wait again at most.

use super::cluster::{Cluster, TICK};
use super::event::{DirectoryEffect, Put};
use super::members::{full, fullness};
use super::news::News;
use super::records::SlowRecord;
use super::saturated::SaturatedBricks;
use base::{BrickId, GatewayId, GroupId, Time};
use core::time::Duration;
use rules::counters::Counter;
use rules::median::upper_median;
use std::collections::{BTreeMap, VecDeque};
use wire::{GroupView, Health, Observed, SlowEntry};

/// What a gateway said counts for so long.
const OBSERVED_FOR: Duration = Duration::from_secs(3);
/// A gateway that writes much says so within this time: a window in which it looks, and the way.
const FIRST_WORD: Duration = Duration::from_millis(640);
/// The most bricks of which one gateway is heard.
const OBSERVED_MAX: usize = 4096;
/// A brick that only catches up is slow because of that: so long it may be in all, if its link is not the reason.
const JOINING_PATIENCE: Duration = Duration::from_secs(10);
/// Of the time in which it is not slow one part in so many makes up for time in which it was.
const MAKES_UP: u32 = 4;
/// Time in which a brick is not well counts against its being well so many times: who is not for a tenth of the time
/// never returns, and a hiccup costs seconds.
const ILL_TICKS: u32 = 10;
/// So often within the time of [`GOOD_CONDUCT`] a brick may fall silent, and return at once.
const SILENCES: usize = 2;
/// For so long a brick must have stayed before its former slowness is forgotten.
const GOOD_CONDUCT: Duration = Duration::from_secs(3600);
/// Within these, in microseconds, a brick is well whatever others measure; beyond, if it is not [`TIMES`] as slow.
const WRITE_WELL_US: u32 = 8_000;
const ROUND_TRIP_WELL_US: u32 = 50_000;
const LATE_WELL_US: u32 = 100_000;
const TIMES: u32 = 3;
/// A brick whose writes take so long stands still. One that is silent is left out sooner; who is heard may come to itself.
const STANDS_STILL: Duration = Duration::from_secs(2);
/// Who says nothing for so long is about to be taken for dead: it is left out for that, and not for being slow.
const SILENT: Duration = Duration::from_millis(200);

/// What is known of slow bricks beside the records.
#[derive(Debug, Default)]
pub(super) struct Slow {
    /// What gateways said last, and when.
    observed: BTreeMap<GatewayId, (Time, BTreeMap<BrickId, Observed>)>,
    /// Since when gateways have said anything of each brick.
    used: BTreeMap<BrickId, Time>,
    /// Bricks that are held for slow and not left out (yet), since when, and why.
    suspects: BTreeMap<BrickId, Suspect>,
    /// Bricks that only catch up and were slow meanwhile.
    burdens: BTreeMap<BrickId, Burden>,
    /// Since when bricks that are left out have been well, as it were: see [`ILL_TICKS`].
    well: BTreeMap<BrickId, Time>,
    /// When bricks were last without a lease because a process of theirs waited to count.
    waited: BTreeMap<BrickId, Time>,
    /// Bricks that fell silent lately.
    silences: BTreeMap<BrickId, Silences>,
    /// Bricks where content waits for room.
    saturated: SaturatedBricks,
}

/// That a brick was left out as silent, and came back as the same process.
#[derive(Debug, Default)]
struct Silences {
    /// Since when it has been silent, and which process then counted.
    under_way: Option<(Time, u64)>,
    /// When it came back lately.
    ended: VecDeque<Time>,
}

/// For how long a brick that only catches up has been slow, less what makes up for it: see [`MAKES_UP`].
#[derive(Debug)]
struct Burden {
    slow_for: Duration,
    looked: Time,
}

#[derive(Debug)]
struct Suspect {
    since: Time,
    verdict: Verdict,
    /// A group that could not bear its absence, which keeps it in all its groups.
    needed_by: Option<GroupId>,
}

/// That a brick holds up writes.
#[derive(Clone, Debug)]
struct Verdict {
    /// By what that is known.
    why: String,
    stands_still: bool,
}

impl Slow {
    /// What a gateway saw; whether it holds a brick for slow that it did not before.
    pub(super) fn on_observed(&mut self, now: Time, gateway: GatewayId, members: Vec<Observed>) -> bool {
        let members = members.into_iter().take(OBSERVED_MAX).map(|member| (member.brick, member));
        let members: BTreeMap<BrickId, Observed> = members.collect();
        let before = self.observed.remove(&gateway).map(|(_, members)| members).unwrap_or_default();
        let was_slow = |brick| before.get(brick).is_some_and(|member| member.is_slow);
        let is_news = members.iter().any(|(brick, member)| member.is_slow && !was_slow(brick));
        for brick in members.keys() {
            self.used.entry(*brick).or_insert(now);
        }
        self.observed.insert(gateway, (now, members));
        is_news
    }

    /// Gateways that hold the brick for slow, all that lately used it, and the worst that one saw.
    fn votes(&self, brick: BrickId) -> (usize, usize, Option<&Observed>) {
        let all = || self.observed.values().filter_map(move |(_, members)| members.get(&brick));
        let slow = || all().filter(|member| member.is_slow);
        (slow().count(), all().count(), slow().max_by_key(|member| member.prepare_us))
    }

    /// Looks at who is slow, and who is not any more.
    pub(super) fn keep(&mut self, cluster: &mut Cluster, now: Time, fx: &mut Vec<DirectoryEffect>) {
        self.observed.retain(|_, (heard, _)| now.since(*heard) < OBSERVED_FOR);
        let observed = &self.observed;
        self.used.retain(|brick, _| observed.values().any(|(_, members)| members.contains_key(brick)));
        self.waited.retain(|_, at| now.since(*at) < OBSERVED_FOR);
        let bricks = cluster.records.bricks.keys();
        let waiting = bricks.filter(|brick| cluster.runs.is_about_to_count(now, **brick));
        self.waited.extend(waiting.map(|brick| (*brick, now)));
        self.saturated.keep(cluster, now);
        for brick in cluster.records.bricks.keys().copied().collect::<Vec<_>>() {
            self.look_at_silence(cluster, now, brick, fx);
            match cluster.is_slow(brick) {
                true => self.look_at_slow(cluster, now, brick, fx),
                false => self.look_for_slow(cluster, now, brick, fx),
            }
        }
    }

    /// The brick is no more.
    pub(super) fn forget(&mut self, brick: BrickId) {
        self.suspects.remove(&brick);
        self.burdens.remove(&brick);
        self.well.remove(&brick);
        self.waited.remove(&brick);
        self.silences.remove(&brick);
        self.saturated.forget(brick);
    }

    // ---- leaving ----

    fn look_for_slow(
        &mut self,
        cluster: &mut Cluster,
        now: Time,
        brick: BrickId,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        let verdict = self.verdict(cluster, now, brick);
        let is_borne = self.is_borne(cluster, now, (brick, verdict.is_some()));
        let Some(verdict) = verdict else {
            self.suspects.remove(&brick);
            return self.forget_good_conduct(cluster, now, brick, fx);
        };
        let is_silent = self.is_silent(cluster, now, brick);
        let needed_by = self.needed_by(cluster, now, (brick, verdict.stands_still));
        let suspect = self.suspects.entry(brick).or_insert(Suspect {
            since: now,
            verdict: verdict.clone(),
            needed_by: None,
        });
        suspect.verdict = verdict.clone();
        if is_silent || is_borne {
            return;
        }
        let Some(suspect) = self.suspects.get_mut(&brick) else { return };
        let was_needed = core::mem::replace(&mut suspect.needed_by, needed_by).is_some();
        let Some(group) = needed_by else { return self.leaves(cluster, now, (brick, verdict), fx) };
        if !was_needed {
            cluster.counters.count(Counter::SlowMemberKeptWhereItsGroupsNeedIt);
            cluster.tell(now, vec![News::KeptThoughSlow { brick, why: verdict.why, group }], fx);
        }
    }

    /// Whether the brick only catches up, and others bear that it is slow meanwhile.
    fn is_borne(&mut self, cluster: &Cluster, now: Time, (brick, is_slow): (BrickId, bool)) -> bool {
        if !is_slow && !self.burdens.contains_key(&brick) {
            return false;
        }
        if !self.writing(cluster, brick).all(|view| view.is_catching_up(brick)) {
            self.burdens.remove(&brick);
            return false;
        }
        let burden = self.burdens.entry(brick).or_insert(Burden { slow_for: Duration::ZERO, looked: now });
        let passed = now.since(core::mem::replace(&mut burden.looked, now));
        burden.slow_for = match is_slow {
            // A directory that stood still knows no more than what it was told last.
            true => burden.slow_for + passed.min(OBSERVED_FOR),
            false => burden.slow_for.saturating_sub(passed / MAKES_UP),
        };
        let lasted = burden.slow_for;
        if lasted.is_zero() && !is_slow {
            self.burdens.remove(&brick);
        }
        let health = cluster.status(brick).map_or_else(Health::default, |status| status.health);
        lasted < JOINING_PATIENCE && self.has_good_link(cluster, brick, &health)
    }

    /// Whether it is back from a silence for which it was left out.
    fn look_at_silence(
        &mut self,
        cluster: &mut Cluster,
        now: Time,
        brick: BrickId,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        let (is_heard, run) = (cluster.leases.is_alive(now, brick), cluster.run_of(brick));
        if !is_heard {
            if cluster.leases.get(brick).is_some() {
                self.silences.entry(brick).or_default().under_way.get_or_insert((now, run));
            }
            return;
        }
        let Some(silences) = self.silences.get_mut(&brick) else { return };
        silences.ended.retain(|at| now.since(*at) < GOOD_CONDUCT);
        let was_left_out = cluster.records.groups.index().of_outsider(brick).next().is_some();
        if silences.under_way.take().is_none_or(|(_, of)| of != run) || !was_left_out {
            if silences.ended.is_empty() {
                self.silences.remove(&brick);
            }
            return;
        }
        silences.ended.push_back(now);
        let times = silences.ended.len();
        if times > SILENCES && !cluster.is_slow(brick) && !self.is_needed(cluster, now, brick) {
            let why = format!("it fell silent {times} times within an hour, and writes waited each time");
            self.leaves(cluster, now, (brick, Verdict { why, stands_still: false }), fx);
        }
    }

    /// It is to leave its groups, as soon as its lease has ended.
    fn leaves(
        &mut self,
        cluster: &mut Cluster,
        now: Time,
        (brick, verdict): (BrickId, Verdict),
        fx: &mut Vec<DirectoryEffect>,
    ) {
        self.suspects.remove(&brick);
        self.burdens.remove(&brick);
        self.well.remove(&brick);
        cluster.counters.count(Counter::MemberHeldForSlow);
        let Verdict { why, stands_still } = verdict;
        let relapses = cluster.records.slow.get(&brick).map_or(0, |record| record.relapses.saturating_add(1));
        let news = News::HeldForSlow { brick, why: why.clone() };
        let record = SlowRecord { is_out: true, since: now, why, relapses, stands_still };
        let put = self.set_slow(cluster, brick, Some(record));
        cluster.leases.end(brick);
        cluster.put_news(now, vec![put], Vec::new(), news, fx);
    }

    /// Who says nothing is about to lose its lease: it is left out for that, and returns when it is heard again.
    fn is_silent(&self, cluster: &Cluster, now: Time, brick: BrickId) -> bool {
        cluster.leases.silence(now, brick).is_none_or(|silence| silence > SILENT)
    }

    /// Why the brick is held for slow, if it is: by what gateways see, or by how it brings content home beside its peers.
    fn verdict(&self, cluster: &Cluster, now: Time, brick: BrickId) -> Option<Verdict> {
        self.seen_by_gateways(cluster, now, brick).or_else(|| {
            let why =
                self.saturated.why_slow(now, brick).filter(|_| !self.is_full_but_well(cluster, brick))?;
            Some(Verdict { why, stands_still: false })
        })
    }

    fn seen_by_gateways(&self, cluster: &Cluster, now: Time, brick: BrickId) -> Option<Verdict> {
        let (slow, all, worst) = self.votes(brick);
        let worst = worst?;
        // A gateway tells at once of whom it holds for slow, and of the others with its next window: those that use the brick, too, have a say.
        self.used.get(&brick).filter(|since| now.since(**since) >= FIRST_WORD)?;
        if self.waited.contains_key(&brick) {
            return None;
        }
        let confirmed =
            cluster.status(brick).is_some_and(|status| !self.writes_well(cluster, brick, &status.health));
        let agreed = confirmed || (slow * 2 > all && !self.is_full_but_well(cluster, brick));
        let ms = |us: u32| f64::from(us) / 1000.0;
        let why = || {
            format!(
                "its writes take {:.1} ms, those of the others in its groups {:.1} ms (seen by {slow} of {all} gateways)",
                ms(worst.prepare_us),
                ms(worst.others_us)
            )
        };
        let own_us = cluster.status(brick).map_or(0, |status| status.health.write_us);
        let stands_still = Duration::from_micros(worst.prepare_us.max(own_us).into()) >= STANDS_STILL;
        agreed.then(|| Verdict { why: why(), stands_still })
    }

    /// Whether the brick could not return if it left, and may look slow only because its disk looks for room: the disk
    /// itself writes well. Such a brick is needed again as soon as it is held for slow ([`Slow::is_needed`]).
    fn is_full_but_well(&self, cluster: &Cluster, brick: BrickId) -> bool {
        cluster.status(brick).is_some_and(|status| {
            fullness(status) >= full::JOIN && self.writes_well(cluster, brick, &status.health)
        })
    }

    /// Views, in force or to come, that the brick writes in.
    fn writing<'a>(
        &self,
        cluster: &'a Cluster,
        brick: BrickId,
    ) -> impl Iterator<Item = &'a GroupView> + use<'a> {
        let groups = cluster.records.groups.keys();
        groups.filter_map(|group| cluster.latest_view(*group)).filter(move |view| view.is_writer(brick))
    }

    /// A group of the brick that does not bear that it leaves, beside those that are or may be away.
    fn needed_by(
        &self,
        cluster: &Cluster,
        now: Time,
        (brick, stands_still): (BrickId, bool),
    ) -> Option<GroupId> {
        let stays = |of: BrickId| of != brick && cluster.leases.is_alive(now, of) && cluster.takes_groups(of);
        let needs = |view: &&GroupView| {
            let left = view.current.iter().filter(|slot| stays(view.members[usize::from(*slot)])).count();
            view.is_current(brick) && !self.bears(cluster, view, (left, stands_still))
        };
        self.writing(cluster, brick).find(needs).map(|view| view.group)
    }

    /// Whether a group may go on with so many current members although the one that it lacks is alive. For slowness alone no
    /// group is brought to where one failure more loses data.
    fn bears(&self, cluster: &Cluster, view: &GroupView, (left, stands_still): (usize, bool)) -> bool {
        let tolerates = cluster.geometry(view.volume).map_or(0, |geometry| geometry.layout().tolerates());
        let reserve = if stands_still { 0 } else { 1 };
        view.members.len() - left <= usize::from(tolerates.saturating_sub(reserve))
    }

    // ---- returning ----

    fn look_at_slow(
        &mut self,
        cluster: &mut Cluster,
        now: Time,
        brick: BrickId,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        if self.is_needed(cluster, now, brick) {
            cluster.counters.count(Counter::SlowMemberNeededAgain);
            return self.readmit_slow(cluster, now, (brick, "its groups need it"), fx);
        }
        let is_well = self.is_well(cluster, now, brick);
        let since = self.well.entry(brick).or_insert(now);
        if !is_well {
            *since = now.min(*since + TICK * ILL_TICKS);
        }
        // As long as it is a member it has not been left out yet.
        let lasted = now.since(*since);
        if is_well && lasted >= self.hold(cluster, brick) && self.writing(cluster, brick).next().is_none() {
            cluster.counters.count(Counter::SlowMemberCameBack);
            self.readmit_slow(cluster, now, (brick, "it has been well for long enough"), fx);
        }
    }

    fn readmit_slow(
        &mut self,
        cluster: &mut Cluster,
        now: Time,
        (brick, why): (BrickId, &'static str),
        fx: &mut Vec<DirectoryEffect>,
    ) {
        self.well.remove(&brick);
        let Some(record) = cluster.records.slow.get(&brick).cloned() else { return };
        let record = SlowRecord { is_out: false, since: now, ..record };
        let put = self.set_slow(cluster, brick, Some(record));
        cluster.put_news(now, vec![put], Vec::new(), News::WellAgain { brick, why }, fx);
    }

    /// For how long it must have been well.
    fn hold(&self, cluster: &Cluster, brick: BrickId) -> Duration {
        let relapses = cluster.records.slow.get(&brick).map_or(0, |record| record.relapses);
        let (least_ns, most_ns) = cluster.config.slow_hold_ns;
        Duration::from_nanos(least_ns.saturating_mul(1 << relapses.min(20)).clamp(least_ns, most_ns))
    }

    /// Whether a group cannot bear its absence any more. One that has it still cannot if it could not return either.
    fn is_needed(&self, cluster: &Cluster, now: Time, brick: BrickId) -> bool {
        let stands_still = cluster.records.slow.get(&brick).is_some_and(|record| record.stands_still);
        if self.writing(cluster, brick).any(|view| view.is_current(brick)) {
            return self.needed_by(cluster, now, (brick, stands_still)).is_some()
                || self.is_full_but_well(cluster, brick);
        }
        let missing = |view: &&GroupView| view.has_part(brick) && !view.is_writer(brick);
        cluster
            .views()
            .filter(missing)
            .any(|view| !self.bears(cluster, view, (usize::from(view.current.len()), stands_still)))
    }

    fn is_well(&self, cluster: &Cluster, now: Time, brick: BrickId) -> bool {
        let Some(lease) = cluster.leases.get(brick).filter(|_| cluster.leases.is_alive(now, brick)) else {
            return false;
        };
        let health = &lease.status.health;
        lease.is_regular()
            && self.writes_well(cluster, brick, health)
            && health.late_us <= LATE_WELL_US
            && self.has_good_link(cluster, brick, health)
    }

    /// Whether its way to the directory is about as short as others'.
    fn has_good_link(&self, cluster: &Cluster, brick: BrickId, health: &Health) -> bool {
        let of_others = self.median_of_others(cluster, brick, |health| health.round_trip_us);
        health.round_trip_us <= ROUND_TRIP_WELL_US.max(of_others.saturating_mul(TIMES))
    }

    /// Whether its disk writes about as fast as others'.
    fn writes_well(&self, cluster: &Cluster, brick: BrickId, health: &Health) -> bool {
        let of_others = self.median_of_others(cluster, brick, |health| health.write_us);
        health.write_us <= WRITE_WELL_US.max(of_others.saturating_mul(TIMES))
    }

    /// The upper median; 0 of none.
    fn median_of_others(&self, cluster: &Cluster, brick: BrickId, of: impl Fn(&Health) -> u32) -> u32 {
        let others =
            cluster.records.bricks.keys().filter(|other| **other != brick && !cluster.is_slow(**other));
        let values = others.filter_map(|other| cluster.status(*other)).map(|status| of(&status.health));
        upper_median(values).unwrap_or(0)
    }

    fn forget_good_conduct(
        &mut self,
        cluster: &mut Cluster,
        now: Time,
        brick: BrickId,
        fx: &mut Vec<DirectoryEffect>,
    ) {
        if cluster.records.slow.get(&brick).is_some_and(|record| now.since(record.since) > GOOD_CONDUCT) {
            let put = self.set_slow(cluster, brick, None);
            cluster.put(vec![put], Vec::new(), fx);
        }
    }

    fn set_slow(&mut self, cluster: &mut Cluster, brick: BrickId, record: Option<SlowRecord>) -> Put {
        match record {
            Some(record) => drop(cluster.records.slow.insert(brick, record)),
            None => drop(cluster.records.slow.remove(&brick)),
        }
        cluster.records.put_slow(brick)
    }

    // ---- telling ----

    pub(super) fn warnings(&self, now: Time) -> Vec<String> {
        self.saturated.warnings(now)
    }

    pub(super) fn entry(&self, cluster: &Cluster, now: Time, brick: BrickId) -> Option<SlowEntry> {
        let hold_s = self.hold(cluster, brick).as_secs();
        let record = cluster.records.slow.get(&brick);
        let relapses = record.map_or(0, |record| record.relapses);
        let millis = |since: Time| now.since(since).as_millis() as u64;
        if let Some(record) = record.filter(|record| record.is_out) {
            let well_ms = self.well.get(&brick).map(|since| millis(*since)).filter(|ms| *ms > 0);
            let (since_ms, why) = (millis(record.since), record.why.clone());
            return Some(SlowEntry {
                is_out: true,
                since_ms,
                why,
                relapses,
                hold_s,
                well_ms,
                needed_by: None,
            });
        }
        let Suspect { since, verdict, needed_by } = self.suspects.get(&brick)?;
        // Who catches up is slow because of that.
        self.writing(cluster, brick).find(|view| view.is_current(brick))?;
        let (since_ms, why, needed_by) = (millis(*since), verdict.why.clone(), *needed_by);
        Some(SlowEntry { is_out: false, since_ms, why, relapses, hold_s, well_ms: None, needed_by })
    }
}
