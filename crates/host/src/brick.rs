//! The brick daemon: its machine, peers, and disks.

use crate::address::Address;
use crate::disk::emulated::Emulation;
use crate::disk::{Completions, DiskEngine, DiskFile};
use crate::full_file_system::{Pauses, Wait};
use crate::metrics::Meter;
use crate::transport::{PeerEvent, Peers};
use crate::turn::{Core, DISKS, Driver, EMULATION, Role, WORKERS, World, draw_id};
use crate::workers::Workers;
use crate::{BrickOptions, HostError, OnReady, Ready, Shutdown};
use base::{BrickId, NodeId, Time};
use node::{BrickNode, Effect, Event};
use reads::seat::Turns;
use roles::brick::{Brick, BrickConfig};
use rules::fair::Shares;
use std::time::{Duration, Instant};
use store::{Limits, Stats, Store, StoreConfig};
use wire::{BrickStatus, CatchUp, Durability, Health, Standing};

/// Between two looks of a process that stands still at whether it is to end.
const LOOK: Duration = Duration::from_millis(200);
/// For so long a process that is ousted still tells the directory so: a few heartbeats.
const FAREWELL: Duration = Duration::from_secs(2);

/// Runs a brick until the shutdown is requested. It is ready when its disks are recovered. Where a disk's file system is full
/// it waits for room, and begins anew as after a restart.
///
/// # Errors
/// When an address, a certificate, a socket or a disk cannot be used; also when a disk is refused by the store.
pub fn run_brick(
    mut options: BrickOptions,
    shutdown: &Shutdown,
    on_ready: OnReady<'_>,
) -> Result<(), HostError> {
    let meter = Meter::new(options.node.metrics)?;
    let (mut on_ready, mut pauses) = (Some(on_ready), Pauses::new());
    loop {
        let began = Instant::now();
        let tell = |ready: &Ready| {
            if let Some(on_ready) = on_ready.take() {
                on_ready(ready);
            }
        };
        match run_once(&mut options, shutdown, pauses.next(), meter.clone(), Box::new(tell)) {
            Err(HostError::DiskFull { .. }) if !shutdown.is_requested() => pauses.ran(began.elapsed()),
            Err(HostError::DiskFull { .. }) => return Ok(()),
            Err(error @ HostError::Ousted { .. }) => return Err(stand_still(error, shutdown)),
            other => return other,
        }
    }
}

/// Waits until the shutdown is requested. Whoever supervises this process would start it anew, as the later one of the two, and the
/// two would oust each other for ever.
fn stand_still(error: HostError, shutdown: &Shutdown) -> HostError {
    tracing::error!("{error}");
    while !shutdown.is_requested() {
        std::thread::sleep(LOOK);
    }
    error
}

/// Ends with [`HostError::DiskFull`] when a disk was full and has room again, `pause` later at the earliest.
fn run_once(
    options: &mut BrickOptions,
    shutdown: &Shutdown,
    pause: Duration,
    meter: Meter,
    on_ready: OnReady<'_>,
) -> Result<(), HostError> {
    let core = Core::new(shutdown)?;
    let (me, node) = (NodeId::Brick(options.id), &options.node);
    let disks = options.disks.iter().map(DiskFile::open).collect::<Result<Vec<_>, _>>()?;
    let stores = store_configs(options, &disks);
    let durability: Vec<Durability> = disks.iter().map(DiskFile::durability).collect();
    // The brick's notes are on the first one.
    let place = disks.first().map(DiskFile::place).unwrap_or_default();
    disks.iter().for_each(tell_of_disk);
    let emulation = emulation(options, disks.len(), &core)?;
    let engine = DiskEngine::new(options.io, disks)?;
    core.watch(engine.event_fd(), DISKS)?;
    let workers = Workers::start()?;
    core.watch(workers.event_fd(), WORKERS)?;
    let names = names(options);
    let mut peers = Peers::new(me, node.cluster, &node.security, core.registry(), draw_id())?;
    let bound = peers.listen(&options.listen.parse()?)?.to_string();
    // A port that was drawn stays the same when the brick begins anew.
    options.listen.clone_from(&bound);
    let directory: Address = options.directory.parse()?;
    let config = BrickConfig {
        id: options.id,
        address: options.advertise.clone().unwrap_or_else(|| bound.clone()),
        labels: options.labels.clone(),
        disks: options.calibrations.clone(),
        durability,
        turns: Turns::default(),
        shares: Shares::default(),
        garbage_every: BrickConfig::GARBAGE_EVERY,
        rebalance_above: BrickConfig::REBALANCE_ABOVE,
        page_bytes: BrickConfig::PAGE_BYTES,
        held_at_once: BrickConfig::HELD_AT_ONCE,
        packs: true,
        run: draw_id(),
        place,
    };
    let machine = BrickNode::open(config, stores);
    crate::clock::warn_of_a_virtual_machine();
    tracing::info!(brick = %options.id, engine = engine.name(), disks = options.disks.len(), "opening the disks");
    let ready = Ready { name: options.id.to_string(), addresses: vec![bound] };
    let full = Full { pause, wait: None };
    let role = BrickRole {
        engine,
        emulation,
        workers,
        done: Vec::new(),
        directory,
        names,
        on_ready: Some((on_ready, ready)),
        full,
        standing: Standing::Waits,
        ousted: None,
        id: options.id,
    };
    Driver::new(core, peers, machine, role, meter).run()
}

/// How a disk is used, for the log.
fn tell_of_disk(disk: &DiskFile) {
    tracing::info!(
        disk = %disk.path().display(),
        direct = disk.is_direct(),
        durable_writes = disk.durability().name(),
        "a disk is open"
    );
}

/// Which disk is which, for people.
fn names(options: &BrickOptions) -> String {
    let name =
        |(index, spec): (usize, &crate::DiskSpec)| format!("disk {index} is '{}'", spec.path.display());
    options.disks.iter().enumerate().map(name).collect::<Vec<_>>().join(", ")
}

/// The disks as somebody wants them to look.
fn emulation(options: &BrickOptions, disks: usize, core: &Core) -> Result<Option<Emulation>, HostError> {
    let Some(file) = &options.emulation else { return Ok(None) };
    let emulation = Emulation::new(options.id, file, disks, core.clock)?;
    core.watch(emulation.event_fd(), EMULATION)?;
    tracing::warn!(file = %file.display(), "the disks are emulated: they are slower than they could be");
    Ok(Some(emulation))
}

/// All disks share the cache's memory evenly.
fn store_configs(options: &BrickOptions, disks: &[DiskFile]) -> Vec<StoreConfig> {
    let share = options.cache_bytes as usize / disks.len().max(1);
    let mut limits = Limits::default();
    if let Some(bytes) = options.destage_bytes {
        limits.destage_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    }
    let config = |(index, disk): (usize, &DiskFile)| StoreConfig {
        cache_bytes: share,
        limits,
        ..StoreConfig::new(options.node.cluster, options.id, index as u16, disk.size_bytes())
    };
    disks.iter().enumerate().map(config).collect()
}

struct BrickRole<'a> {
    engine: DiskEngine,
    emulation: Option<Emulation>,
    workers: Workers,
    done: Completions,
    directory: Address,
    names: String,
    /// Whom to tell, and what, once the disks are recovered.
    on_ready: Option<(OnReady<'a>, Ready)>,
    full: Full,
    /// What the directory said of this run, as the log has it.
    standing: Standing,
    /// Since when it is known that this process does not count any more.
    ousted: Option<Time>,
    id: BrickId,
}

impl BrickRole<'_> {
    /// What the directory says of this process and its disks goes to the log when it changes.
    fn log_standing(&mut self, brick: &Brick, now: Time) {
        if *brick.standing() == self.standing {
            return;
        }
        self.standing = brick.standing().clone();
        match &self.standing {
            Standing::Untold | Standing::Waits => {}
            Standing::Stands { behind, .. } if behind.is_empty() => {}
            Standing::Stands { behind, .. } => tracing::error!(
                groups = behind.len(),
                "a disk is older than what this brick had told of it, so it is left out of its groups, and every block is compared before it returns \
                 ({})",
                self.names
            ),
            Standing::Ousted { by } => {
                tracing::error!(run = by, "another process runs under this brick's id, and counts instead");
                self.ousted.get_or_insert(now);
            }
        }
    }
}

/// What it does about a disk whose file system is full.
struct Full {
    /// How long it waits at least before it begins anew.
    pause: Duration,
    /// Since a write found no room.
    wait: Option<Wait>,
}

impl Role for BrickRole<'_> {
    type Machine = BrickNode;
    const ROLE: roles::admission::Role = roles::admission::Role::Brick;

    fn peer_event(event: PeerEvent) -> Option<Event> {
        Some(match event {
            PeerEvent::Packet { from, packet } => Event::Packet { from, packet },
            PeerEvent::Up(node) => Event::Up(node),
            PeerEvent::Down(node) => Event::Down(node),
            PeerEvent::Gone(_) | PeerEvent::Certified { .. } => return None,
        })
    }

    fn effect(&mut self, effect: Effect, world: &mut World<'_, Self>) -> Result<(), HostError> {
        match effect {
            Effect::Send { to, packet } => world.peers.send(to, &packet),
            Effect::Address { node, address } => world.learn_on_demand(node, &address),
            Effect::Compute { number, computation } => self.workers.compute(number, computation),
            Effect::Disk { disk, io, due } => {
                if let (Some(emulation), Some(due)) = (&mut self.emulation, due) {
                    emulation.asked(disk, io.token, due);
                }
                self.engine.push(disk, io);
            }
            Effect::Ready => {
                // Only now: a machine that still reads its disks would not hear that the directory is there.
                world.learn_at(NodeId::Directory, &self.directory);
                if let Some((on_ready, ready)) = self.on_ready.take() {
                    on_ready(&ready);
                }
            }
            // A disk that cannot be recovered for lack of room is tried again.
            Effect::Failed { .. } if self.full.wait.is_some() => {}
            Effect::Failed { why } => return Err(HostError::Failed(format!("{why} ({})", self.names))),
        }
        Ok(())
    }

    fn gather(&mut self, world: &mut World<'_, Self>) {
        // A look at shared memory, so that it is worth it in every turn, whatever has ended the wait.
        match &mut self.emulation {
            Some(emulation) => emulation.complete(&mut self.engine, world.now, &mut self.done),
            None => self.engine.complete(&mut self.done),
        }
        if self.full.wait.is_none()
            && let Some(disk) = self.engine.full_disk()
        {
            self.full.wait = Some(Wait::begin(world.now, self.full.pause, disk));
        }
        world.inbox.extend(self.done.drain(..).map(|(disk, done)| Event::Disk { disk, done }));
        let made = self.workers.take();
        world.inbox.extend(made.map(|(number, made)| Event::Computed { number, made }));
        let heads = self.emulation.as_mut().and_then(|emulation| emulation.take_heads(world.now));
        world.inbox.extend(heads.map(Event::Heads));
    }

    fn has_more(&self) -> bool {
        self.workers.has_more()
    }

    fn flush(&mut self, _world: &mut World<'_, Self>) {
        self.engine.submit();
    }

    fn sleep(&mut self, until: Time) {
        if let Some(emulation) = &mut self.emulation {
            emulation.arm(until);
        }
    }

    fn deadline(&self) -> Time {
        self.full.wait.as_ref().map_or(Time::MAX, Wait::next_look)
    }

    fn breaks_off(&mut self, now: Time) -> Option<HostError> {
        if self.ousted.is_some_and(|since| now > since + FAREWELL) {
            return Some(HostError::Ousted { brick: self.id });
        }
        let is_over = self.full.wait.as_mut().is_some_and(|wait| wait.is_over(now));
        let disk = self.engine.full_disk().filter(|_| is_over)?;
        Some(HostError::DiskFull { path: disk.path().to_owned() })
    }

    fn measure(&mut self, machine: &BrickNode, now: Time, meter: &mut Meter) {
        meter.gauge("brickwork_disk_requests_in_flight", self.engine.in_flight() as f64);
        meter.gauge("brickwork_disk_waits_for_room", f64::from(u8::from(self.full.wait.is_some())));
        if let Some(emulation) = &self.emulation {
            publish_emulation(emulation, meter);
            publish_heads(machine, now, meter);
        }
        if let Some(brick) = machine.brick() {
            self.log_standing(brick, now);
            meter.gauge("brickwork_lease_held", f64::from(u8::from(brick.is_leased(now))));
            meter.counters(brick.counters());
            publish_care(brick.status(), meter);
            publish_contests(brick.contested_reads(), meter);
            publish_health(&brick.status().health, meter);
            publish_streams(brick, meter);
            for (disk, places) in brick.places_used(now).into_iter().enumerate() {
                meter.disk("brickwork_disk_places", disk, places as f64);
            }
            meter.gauge("brickwork_capacity_units_per_second", brick.capacity() as f64);
        }
        publish(machine.stores(), meter);
    }
}

/// What each stream was served, and for how long its requests waited for their turn.
fn publish_streams(brick: &Brick, meter: &mut Meter) {
    for used in brick.stream_uses() {
        let name = brick.stream_name(used.stream).map_or_else(|| used.stream.to_string(), str::to_owned);
        meter.stream(&name, &used);
    }
}

/// Who served reads that several bricks were asked for.
fn publish_contests((claimed, left, taken_over): (u64, u64, u64), meter: &mut Meter) {
    meter.counter("brickwork_contested_reads_claimed_total", claimed);
    meter.counter("brickwork_contested_reads_left_total", left);
    meter.counter("brickwork_contested_reads_taken_over_total", taken_over);
}

/// What is emulated, and how late the emulation itself is.
fn publish_emulation(emulation: &Emulation, meter: &mut Meter) {
    let (timing, lateness) = (emulation.timing(), emulation.timing().lateness());
    meter.gauge("brickwork_emulated_disk_late_seconds", emulation.settings().late.as_secs_f64());
    meter.gauge("brickwork_emulated_disk_requests_held", timing.held() as f64);
    meter.gauge("brickwork_emulation_lateness_p99_seconds", lateness.quantile(0.99).as_secs_f64());
    meter.histogram("brickwork_emulation_lateness_seconds", lateness.cumulative(), lateness.sum());
}

/// What the drives have done whose heads are seen, together.
fn publish_heads(machine: &BrickNode, now: Time, meter: &mut Meter) {
    let served = machine.served();
    meter.counter("brickwork_emulated_drive_reads_total", served.reads);
    meter.counter("brickwork_emulated_drive_writes_total", served.writes);
    meter.counter("brickwork_emulated_drive_choices_total", served.choices);
    meter.counter("brickwork_emulated_drive_seen_total", served.seen);
    meter.counter("brickwork_emulated_drive_left_total", served.left);
    meter.counter("brickwork_emulated_drive_nvram_full_total", served.nvram_full);
    meter.gauge("brickwork_emulated_drive_busy_seconds", served.busy.as_secs_f64());
    // In seconds of the drives themselves, from a moment of no meaning: rates are differences of figures of one page.
    let clock = machine.heads().first().map_or(Duration::ZERO, |heads| heads.clock(now));
    meter.gauge("brickwork_emulated_drive_clock_seconds", clock.as_secs_f64());
}

/// How it finds itself: what the directory judges it by when it was left out for being slow.
fn publish_health(health: &Health, meter: &mut Meter) {
    let seconds = |us: u32| f64::from(us) / 1e6;
    meter.gauge("brickwork_own_write_seconds", seconds(health.write_us));
    meter.gauge("brickwork_own_read_seconds", seconds(health.read_us));
    meter.gauge("brickwork_own_lateness_seconds", seconds(health.late_us));
    meter.gauge("brickwork_directory_round_trip_seconds", seconds(health.round_trip_us));
    meter.gauge("brickwork_own_home_seconds", seconds(health.home_us));
    meter.gauge("brickwork_content_waits_ratio", f64::from(health.held_permille) / 1e3);
}

/// How it catches up, and what its scrub finds.
fn publish_care(status: &BrickStatus, meter: &mut Meter) {
    let sum = |value: fn(&CatchUp) -> u64| status.groups.catching_up.iter().map(value).sum::<u64>() as f64;
    meter.gauge("brickwork_catching_up_groups", status.groups.catching_up.len() as f64);
    meter.gauge("brickwork_catching_up_blocks", sum(|group| group.total_blocks));
    meter.gauge("brickwork_catching_up_compared_blocks", sum(|group| group.compared_blocks));
    meter.gauge("brickwork_catching_up_fetched_bytes", sum(|group| group.fetched_bytes));
    meter.gauge("brickwork_scrub_running", f64::from(u8::from(status.scrub.running)));
    meter.gauge("brickwork_scrub_blocks", status.scrub.total_blocks as f64);
    meter.gauge("brickwork_scrub_checked_blocks", status.scrub.checked_blocks as f64);
    meter.gauge("brickwork_scrub_found_blocks", status.scrub.found_blocks as f64);
    meter.counter("brickwork_scrubs_completed_total", status.scrub.completed);
    meter.counter("brickwork_repaired_blocks_total", status.rot.repaired_blocks);
    meter.gauge("brickwork_lost_blocks", status.rot.lost_blocks as f64);
    meter.gauge("brickwork_lost_groups", status.groups.bare.len() as f64);
    let synced = status.durability.iter().filter(|way| **way == Durability::WriteThenSync).count();
    meter.gauge("brickwork_disks_synced_after_write", synced as f64);
}

/// The stores' figures, summed over the disks.
fn publish(stores: &[Store], meter: &mut Meter) {
    let mut sum = |name, value: fn(&Stats) -> u64| {
        meter.counter(name, stores.iter().map(|store| value(&store.stats())).sum());
    };
    sum("brickwork_store_flushes_total", |stats| stats.disk.flushes);
    sum("brickwork_store_durable_writes_total", |stats| stats.disk.durable_writes);
    sum("brickwork_store_groups_total", |stats| stats.journal.groups);
    sum("brickwork_store_group_records_total", |stats| stats.journal.group_records);
    sum("brickwork_store_journal_bytes_written_total", |stats| stats.journal.written_bytes);
    sum("brickwork_store_direct_blocks_total", |stats| stats.journal.direct_blocks);
    sum("brickwork_store_destaged_blocks_total", |stats| stats.destage.blocks);
    sum("brickwork_store_cache_hits_total", |stats| stats.reads.cache_hits);
    sum("brickwork_store_cache_misses_total", |stats| stats.reads.cache_misses);
    sum("brickwork_store_unreadable_blocks_total", |stats| stats.reads.unreadable_blocks);
    let capacity: u64 = stores.iter().map(|store| store.space().capacity_bytes).sum();
    let used: u64 = stores.iter().map(|store| store.space().used_bytes).sum();
    meter.gauge("brickwork_store_capacity_bytes", capacity as f64);
    meter.gauge("brickwork_store_used_bytes", used as f64);
}
