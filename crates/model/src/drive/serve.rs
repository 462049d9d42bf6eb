//! An access from its command until its end: the platter, the cache, or both.

use super::cache::{Cache, CacheShape, Found};
use super::constant::AccessTime;
use super::disk::{Arm, DiskModel, Manner, Motion, bus_ns};
use super::model::Kind;
use super::{Access, DriveModel, DriveOptions, Service};
use base::Time;

/// What changes about a drive.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) arm: Arm,
    /// Until when the arm is at work behind a cache: writes are acknowledged before it is done.
    pub(super) arm_free: Time,
    pub(super) was_write: bool,
    cache: Cache,
}

/// A drive at work.
pub(super) struct Serving<'a> {
    pub(super) model: &'a DriveModel,
    pub(super) options: DriveOptions,
    pub(super) state: &'a mut State,
}

impl Serving<'_> {
    /// See [`super::Drive::serve`].
    pub(super) fn serve(&mut self, start: Time, access: Access) -> Service {
        let model = self.model;
        let mut service = match (&model.kind, &model.cache) {
            (Kind::Disk(disk), Some(shape)) if self.options.cache => {
                self.serve_cached(disk, shape, start, access)
            }
            (Kind::Disk(disk), _) => self.serve_from_platter(disk, start, access),
            (Kind::Constant(constant), _) => self.serve_constant(constant, start, access),
        };
        self.state.was_write = access.is_write;
        let completion_ns = model.controller.completion_ns(self.options, access.is_write);
        service.overhead_ns += completion_ns;
        service.done.0 += completion_ns;
        service
    }

    /// From a drive whose arm is free, as it is without a cache whenever an access begins.
    fn serve_from_platter(&mut self, disk: &DiskModel, start: Time, access: Access) -> Service {
        let command_ns = self.command_ns(access.is_write, false);
        let understood = Time(start.0 + command_ns);
        let manner = self.manner_of(access, understood);
        let motion = disk.run(&mut self.state.arm, understood, access, manner);
        Service::of(start, command_ns, &motion, access.is_write)
    }

    /// As before, by an arm that may still move earlier writes out.
    fn serve_past_cache(&mut self, disk: &DiskModel, start: Time, access: Access) -> Service {
        let command_ns = self.command_ns(access.is_write, false);
        let understood = Time(start.0 + command_ns);
        let begin = understood.max(self.state.arm_free);
        let manner = self.manner_of(access, understood);
        let motion = disk.run(&mut self.state.arm, begin, access, manner);
        self.state.arm_free = motion.done;
        let mut service = Service::of(start, command_ns, &motion, access.is_write);
        service.rotation_ns += begin.0 - understood.0;
        service
    }

    fn serve_constant(&mut self, constant: &AccessTime, start: Time, access: Access) -> Service {
        let overhead_ns = self.command_ns(access.is_write, false);
        let (seek_ns, transfer_ns) =
            (constant.access_ns(access.is_write), constant.transfer_ns(access.count));
        let bus_ns = bus_ns(access.count, self.bus_q16(access.is_write));
        let done = Time(start.0 + overhead_ns + seek_ns + transfer_ns + bus_ns);
        Service { overhead_ns, seek_ns, rotation_ns: 0, transfer_ns, bus_ns, done }
    }

    fn serve_cached(&mut self, disk: &DiskModel, shape: &CacheShape, start: Time, access: Access) -> Service {
        self.state.cache.catch_up(disk, &mut self.state.arm, start);
        if access.is_write {
            self.write_cached(disk, shape, start, access)
        } else {
            self.read_cached(disk, shape, start, access)
        }
    }

    fn read_cached(&mut self, disk: &DiskModel, shape: &CacheShape, start: Time, access: Access) -> Service {
        let end = access.sector + u64::from(access.count);
        match self.state.cache.find(start, access.sector, access.count) {
            Found::All => {
                self.state.cache.read_on_farther(shape, disk, end);
                self.over_bus(start, access)
            }
            Found::Part { count, at } => {
                let rest = Access {
                    sector: access.sector + u64::from(count),
                    count: access.count - count,
                    ..access
                };
                let begin = at.max(self.state.arm_free);
                let first = self.over_bus(start, Access { count, ..access });
                let manner = self.manner(false);
                let motion = disk.run_behind(&mut self.state.arm, begin, first.done, rest, manner);
                self.state.arm_free = motion.done;
                self.state.cache.extend(shape, disk, end, motion.done);
                let mut service = Service::of(begin, 0, &motion, false);
                service.fit(start);
                service
            }
            Found::Nothing => {
                self.state.cache.stop_reading();
                let service = self.serve_past_cache(disk, start, access);
                self.state.cache.fill(shape, disk, access.sector, end, self.state.arm_free);
                service
            }
        }
    }

    fn write_cached(&mut self, disk: &DiskModel, shape: &CacheShape, start: Time, access: Access) -> Service {
        let end = access.sector + u64::from(access.count);
        let is_sequential = self.state.cache.write(shape, access.sector, end);
        if !Cache::takes_writes(shape, is_sequential) {
            return self.serve_past_cache(disk, start, access);
        }
        let free = self.state.cache.free_for_write(shape, start);
        let mut service = self.over_bus(start, access);
        // The command is understood while an earlier write still holds the segment.
        let wait_ns = (free.0 - start.0).saturating_sub(service.overhead_ns);
        service.rotation_ns += wait_ns;
        service.done.0 += wait_ns;
        let first_come = service.done.0 - service.bus_ns + bus_ns(1, self.bus_q16(true));
        let begin = Time(first_come).max(self.state.arm_free);
        let manner = self.manner(true);
        let motion = disk.run(&mut self.state.arm, begin, access, manner);
        self.state.arm_free = motion.done;
        self.state.cache.destage(motion.done);
        service
    }

    /// What the cache takes or gives, without the platter.
    fn over_bus(&self, start: Time, access: Access) -> Service {
        let overhead_ns = self.command_ns(access.is_write, true);
        let bus_ns = bus_ns(access.count, self.bus_q16(access.is_write));
        let done = Time(start.0 + overhead_ns + bus_ns);
        Service { overhead_ns, seek_ns: 0, rotation_ns: 0, transfer_ns: 0, bus_ns, done }
    }

    fn manner(&self, is_write: bool) -> Manner {
        let controller = &self.model.controller;
        let can_begin_anywhere =
            if is_write { controller.zero_latency_write } else { controller.zero_latency_read };
        Manner {
            is_zero_latency: self.options.zero_latency && can_begin_anywhere,
            bus_q16: self.bus_q16(is_write),
            before_bus: 1,
            bus_begins: None,
        }
    }

    /// That of an access of the platter, whose command was understood then.
    fn manner_of(&self, access: Access, understood: Time) -> Manner {
        let (controller, manner) = (&self.model.controller, self.manner(access.is_write));
        match access.is_write {
            false => Manner { before_bus: controller.sectors_before_bus(access.count), ..manner },
            true => {
                let bus_begins = Time(understood.0 + controller.write_disconnect_ns(self.options));
                let keeps_ahead = controller.write_keeps_ahead && manner.bus_q16 > 0;
                Manner { bus_begins: keeps_ahead.then_some(bus_begins), ..manner }
            }
        }
    }

    fn bus_q16(&self, is_write: bool) -> u64 {
        if self.options.overheads { self.model.controller.bus_q16(is_write) } else { 0 }
    }

    /// Until the drive acts on a command that its cache can serve, or cannot.
    fn command_ns(&self, is_write: bool, is_hit: bool) -> u64 {
        self.model.controller.command_ns(self.options, is_write, is_hit, self.state.was_write)
    }
}

impl Service {
    fn of(start: Time, overhead_ns: u64, motion: &Motion, is_write: bool) -> Service {
        let done = if is_write { motion.done } else { motion.bus_done };
        debug_assert!(done >= start);
        Service {
            overhead_ns,
            seek_ns: motion.seek_ns,
            rotation_ns: motion.rotation_ns,
            transfer_ns: motion.transfer_ns,
            bus_ns: motion.wait_ns + done.0 - motion.done.0,
            done,
        }
    }

    /// Makes the parts add up from `start` on, for an arm that was on its way before, or sectors that were waited for.
    fn fit(&mut self, start: Time) {
        let parts_ns =
            [self.overhead_ns, self.seek_ns, self.rotation_ns, self.transfer_ns, self.bus_ns].iter().sum();
        let total_ns = self.done.0 - start.0;
        self.rotation_ns += total_ns.saturating_sub(parts_ns);
        let mut over_ns = parts_ns.saturating_sub(total_ns);
        for part in [&mut self.seek_ns, &mut self.rotation_ns, &mut self.transfer_ns, &mut self.bus_ns] {
            let shaved_ns = over_ns.min(*part);
            *part -= shaved_ns;
            over_ns -= shaved_ns;
        }
    }
}
