//! From an address to a place on the platters: zones, surfaces, spares, slipped sectors, skews.

use super::DriveError;
use super::form::{DiskForm, Mapping, Source, Sparing, ZoneForm};
use super::revolution::Revolution;
use toml::Spanned;

/// Where a sector lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The zone, from the outermost.
    pub zone: u32,
    /// The cylinder, from the outermost.
    pub cylinder: u32,
    pub surface: u32,
    /// The sector on its track, spares and slipped ones counted.
    pub sector: u32,
    /// How many sectors the track has.
    pub sectors_per_track: u32,
    /// Where on the platter it begins, in 2^-64 turns.
    pub turn: u64,
}

/// Neighbouring sectors of one track.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// The first of them.
    pub(super) place: Place,
    pub(super) count: u32,
    /// How many sectors pass under the head, slipped ones between them counted.
    pub(super) passed: u32,
}

/// The table of hints has at most 2 to the power of this many entries.
const HINT_BITS: u32 = 12;
/// No disk has more zones; hints count them in 16 bits.
const ZONES_MAX: usize = 1 << 16;

/// The addresses of a disk.
#[derive(Clone, Debug)]
pub(super) struct Geometry {
    zones: Vec<Zone>,
    /// The zone of every 2^`hint_shift`th sector, from which a search is short.
    hints: Vec<u16>,
    hint_shift: u32,
    surfaces: u32,
    is_serpentine: bool,
    capacity: u64,
}

/// A zone, counted in slots: places for sectors in the order in which addresses wind.
#[derive(Clone, Debug)]
struct Zone {
    first_sector: u64,
    sectors: u32,
    first_cylinder: u32,
    sectors_per_track: u32,
    reserved: u32,
    /// Sectors with an address in each unit that has spares of its own.
    unit_sectors: u32,
    /// Slots in a unit; the whole zone where spares are the zone's.
    unit_slots: u32,
    /// Slots (or tracks) passed over, rising.
    slipped: Vec<u32>,
    is_slipped_by_track: bool,
    /// In 2^-64 turns.
    offset_turn: u64,
    surface_turn: u64,
    cylinder_turn: u64,
    sector_turn: u64,
}

impl Geometry {
    /// The geometry that the form states.
    pub(super) fn new(
        source: &Source<'_>,
        disk: &DiskForm,
        zones: &[Spanned<ZoneForm>],
        capacity: &Spanned<u64>,
    ) -> Result<Geometry, DriveError> {
        source.check(
            &disk.cylinders,
            "disk.cylinders",
            |n| (1..=1 << 24).contains(&n),
            "from 1 to 16777216",
        )?;
        let surfaces = source.check(
            &disk.surfaces,
            "disk.surfaces",
            |n| (1..=1 << 10).contains(&n),
            "from 1 to 1024",
        )?;
        if zones.is_empty() {
            let why = "is missing; a disk has at least one `[[zone]]`".to_owned();
            return Err(source.error(Some(disk.cylinders.span().start), "zone", why));
        }
        if zones.len() > ZONES_MAX {
            let why = format!("there are {}; a disk has at most {ZONES_MAX}", zones.len());
            return Err(source.error(Some(zones[ZONES_MAX].span().start), "zone", why));
        }
        let mut geometry = Geometry {
            zones: Vec::with_capacity(zones.len()),
            hints: Vec::new(),
            hint_shift: 0,
            surfaces,
            is_serpentine: disk.mapping == Mapping::Serpentine,
            capacity: *capacity.get_ref(),
        };
        let (mut sectors, mut free_cylinder) = (0, 0);
        for (index, form) in zones.iter().enumerate() {
            let checked = ZoneCheck { source, disk, form: form.get_ref(), index, at: form.span().start };
            let (zone, count) = checked.zone(sectors, free_cylinder)?;
            sectors += count;
            free_cylinder = *form.get_ref().last_cylinder.get_ref() + 1;
            geometry.zones.push(zone);
        }
        source.check(
            capacity,
            "capacity_sectors",
            |stated| (1..=sectors).contains(&stated),
            &format!("from 1 to {sectors}, for which the zones have room"),
        )?;
        geometry.hint();
        Ok(geometry)
    }

    /// Sectors that can be addressed.
    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    fn hint(&mut self) {
        self.hint_shift = (self.capacity >> HINT_BITS).checked_ilog2().map_or(0, |bits| bits + 1);
        let count = ((self.capacity - 1) >> self.hint_shift) + 1;
        let zone = |hint: u64| {
            let sector = hint << self.hint_shift;
            (self.zones.partition_point(|zone| zone.first_sector <= sector) - 1) as u16
        };
        self.hints = (0..count).map(zone).collect();
    }

    /// How many surfaces there are.
    pub(super) fn surfaces(&self) -> u32 {
        self.surfaces
    }

    /// How many zones there are.
    pub(super) fn zones(&self) -> usize {
        self.zones.len()
    }

    /// Where `sector` lies, which the disk has.
    pub(super) fn place(&self, sector: u64) -> Place {
        let (index, slot) = self.slot(sector);
        self.place_of(index, slot)
    }

    /// The zone of `sector`, and its slot there.
    fn slot(&self, sector: u64) -> (usize, u32) {
        assert!(sector < self.capacity, "sector {sector} is beyond the {} of this drive", self.capacity);
        let mut index = usize::from(self.hints[(sector >> self.hint_shift) as usize]);
        while self.zones.get(index + 1).is_some_and(|next| next.first_sector <= sector) {
            index += 1;
        }
        let zone = &self.zones[index];
        // A zone has fewer than 2^32 slots, which is checked when it is read.
        (index, zone.slot((sector - zone.first_sector) as u32))
    }

    fn place_of(&self, index: usize, slot: u32) -> Place {
        let zone = &self.zones[index];
        let (track, sector) = (slot / zone.sectors_per_track, slot % zone.sectors_per_track);
        let (cylinder, order) = (track / self.surfaces, track % self.surfaces);
        let is_backwards = self.is_serpentine && cylinder % 2 == 1;
        let turn = zone
            .offset_turn
            .wrapping_add(zone.cylinder_turn.wrapping_mul(u64::from(cylinder)))
            .wrapping_add(zone.surface_turn.wrapping_mul(u64::from(order)))
            .wrapping_add(zone.sector_turn.wrapping_mul(u64::from(sector)));
        Place {
            zone: index as u32,
            cylinder: zone.first_cylinder + cylinder,
            surface: if is_backwards { self.surfaces - 1 - order } else { order },
            sector,
            sectors_per_track: zone.sectors_per_track,
            turn,
        }
    }

    /// The first and the last address on the track of `sector`, by the mapping: the drive may not offer all of them.
    pub(super) fn track(&self, sector: u64) -> (u64, u64) {
        let (index, slot) = self.slot(sector);
        let zone = &self.zones[index];
        let begin = slot - slot % zone.sectors_per_track;
        let (mut first, last) = ((sector - zone.first_sector) as u32, zone.sectors - 1);
        let mut end = (first + zone.sectors_per_track).min(last + 1);
        let mut low = first.saturating_sub(zone.sectors_per_track);
        while low < first {
            let middle = low.midpoint(first);
            if zone.slot(middle) >= begin { first = middle } else { low = middle + 1 }
        }
        let mut low = (sector - zone.first_sector) as u32;
        while low + 1 < end {
            let middle = low.midpoint(end);
            if zone.slot(middle) < begin + zone.sectors_per_track { low = middle } else { end = middle }
        }
        (zone.first_sector + u64::from(first), zone.first_sector + u64::from(low))
    }

    /// The sectors from `sector` on that lie on its track, `count` at most.
    pub(super) fn run(&self, sector: u64, count: u32) -> Run {
        let (index, slot) = self.slot(sector);
        let place = self.place_of(index, slot);
        let room = place.sectors_per_track - place.sector;
        let zone = &self.zones[index];
        let first = (sector - zone.first_sector) as u32;
        // Slots beyond the zone's last address are not on this track, or are spares that nobody asks for.
        let passed = |count: u32| zone.slot(first + count - 1) - slot + 1;
        let count = count.min(room).min(zone.sectors - first);
        if passed(count) <= room {
            return Run { place, count, passed: passed(count) };
        }
        // Slipped and spare sectors leave room for fewer; the first one is always there.
        let (mut there, mut beyond) = (1, count);
        while there + 1 < beyond {
            let middle = there.midpoint(beyond);
            if passed(middle) <= room { there = middle } else { beyond = middle }
        }
        Run { place, count: there, passed: passed(there) }
    }

    /// Sectors of a track in the innermost zone, which has the fewest, and in the outermost.
    pub(super) fn sectors_per_track(&self) -> (u32, u32) {
        let counts = || self.zones.iter().map(|zone| zone.sectors_per_track);
        (counts().min().unwrap_or(0), counts().max().unwrap_or(0))
    }
}

impl Zone {
    /// The slot of the zone's `sector`th address.
    fn slot(&self, sector: u32) -> u32 {
        let sector = sector + self.reserved;
        if self.slipped.is_empty() && self.unit_sectors == self.unit_slots {
            return sector;
        }
        if self.is_slipped_by_track {
            let (track, rest) = (sector / self.sectors_per_track, sector % self.sectors_per_track);
            return skip(&self.slipped, track) * self.sectors_per_track + rest;
        }
        if sector < self.unit_sectors {
            return skip(&self.slipped, sector);
        }
        let (unit, rest) = (sector / self.unit_sectors, sector % self.unit_sectors);
        let base = unit * self.unit_slots;
        let slipped = &self.slipped[self.slipped.partition_point(|&slot| slot < base)..];
        skip(slipped, base + rest)
    }
}

/// `at`, moved on by all the `slipped` that it passes. Slot `slipped[i]` is passed by whoever would lie at least `i` before
/// it, so that the number passed can be searched for.
fn skip(slipped: &[u32], at: u32) -> u32 {
    let (mut passed, mut end) = (0, slipped.len());
    while passed < end {
        let middle = passed.midpoint(end);
        if u64::from(slipped[middle]) <= u64::from(at) + middle as u64 {
            passed = middle + 1
        } else {
            end = middle
        }
    }
    at + passed as u32
}

/// A zone's form on its way to a [`Zone`].
struct ZoneCheck<'a> {
    source: &'a Source<'a>,
    disk: &'a DiskForm,
    form: &'a ZoneForm,
    index: usize,
    at: usize,
}

impl ZoneCheck<'_> {
    /// The zone, and how many addresses it has.
    fn zone(&self, first_sector: u64, free_cylinder: u32) -> Result<(Zone, u64), DriveError> {
        let form = self.form;
        let cylinders = self.cylinders(free_cylinder)?;
        let per_track = self.check(
            &form.sectors_per_track,
            "sectors_per_track",
            |n| (1..=1 << 20).contains(&n),
            "from 1 to 1048576",
        )?;
        let slots = u64::from(cylinders) * u64::from(*self.disk.surfaces.get_ref()) * u64::from(per_track);
        let slots = u32::try_from(slots)
            .map_err(|_| self.error("sectors_per_track", "makes more than 2^32 sectors"))?;
        let (unit_sectors, unit_slots) = self.unit(per_track, slots)?;
        let units = slots.div_ceil(unit_slots);
        let slipped = self.slipped(slots, per_track, unit_slots)?;
        let lost = if self.disk.sparing == Sparing::DiskEnd { slipped.len() as u64 } else { 0 };
        let spared = u64::from(units) * u64::from(unit_slots - unit_sectors);
        let addressed = u64::from(slots).saturating_sub(spared + lost);
        if addressed <= u64::from(form.reserved) {
            return Err(self.error("reserved", "leaves no sector with an address"));
        }
        let turns = |skew: &Spanned<f64>, name| {
            let skew =
                self.check(skew, name, |skew| skew.is_finite() && skew >= 0.0, "finite and not negative")?;
            Ok(turn(skew, per_track))
        };
        let surface_turn = turns(&form.track_skew, "track_skew")?;
        let last_surface = u64::from(*self.disk.surfaces.get_ref() - 1);
        let sectors = (addressed - u64::from(form.reserved)) as u32;
        let zone = Zone {
            first_sector,
            sectors,
            first_cylinder: *form.first_cylinder.get_ref(),
            sectors_per_track: per_track,
            reserved: form.reserved,
            unit_sectors,
            unit_slots,
            slipped,
            is_slipped_by_track: self.disk.sparing == Sparing::ZoneTracks,
            offset_turn: form.first_offset.as_ref().map_or(Ok(0), |offset| turns(offset, "first_offset"))?,
            cylinder_turn: surface_turn
                .wrapping_mul(last_surface)
                .wrapping_add(turns(&form.cylinder_skew, "cylinder_skew")?),
            surface_turn,
            sector_turn: ((1u128 << 64) / u128::from(per_track.max(2))) as u64,
        };
        Ok((zone, u64::from(sectors)))
    }

    fn cylinders(&self, free_cylinder: u32) -> Result<u32, DriveError> {
        let (form, cylinders) = (self.form, *self.disk.cylinders.get_ref());
        let must = format!("at least {free_cylinder}, or the zone overlaps the one before it");
        let first =
            self.check(&form.first_cylinder, "first_cylinder", |first| first >= free_cylinder, &must)?;
        let must = format!("from {first}, the zone's first, to {}, the disk's last", cylinders - 1);
        let last = self.check(
            &form.last_cylinder,
            "last_cylinder",
            |last| (first..cylinders).contains(&last),
            &must,
        )?;
        Ok(last - first + 1)
    }

    /// Addresses and slots in each unit with spares of its own.
    fn unit(&self, per_track: u32, slots: u32) -> Result<(u32, u32), DriveError> {
        let spares = self.form.spares.as_ref().map_or(0, |spares| *spares.get_ref());
        let (spare_slots, unit_slots) = match self.disk.sparing {
            Sparing::ZoneEnd => (Some(spares), slots),
            Sparing::DiskEnd => (Some(0), slots),
            Sparing::ZoneTracks => (spares.checked_mul(per_track), slots),
            Sparing::TrackEnd => (Some(spares), per_track),
            Sparing::RangeEnd => (Some(spares), self.range()?.saturating_mul(per_track).min(slots)),
        };
        match spare_slots {
            None => Err(self.error("spares", "are more tracks than a zone can have")),
            Some(spare_slots) if spare_slots < unit_slots => Ok((unit_slots - spare_slots, unit_slots)),
            _ => Err(self.error("spares", &format!("is {spares}, as much as it is spared from, or more"))),
        }
    }

    /// Tracks that share spares.
    fn range(&self) -> Result<u32, DriveError> {
        let Some(cylinders) = &self.disk.sparing_cylinders else {
            return Err(self.error("spares", "are for ranges of cylinders; state `disk.sparing_cylinders`"));
        };
        let cylinders = self.source.check(cylinders, "disk.sparing_cylinders", |n| n > 0, "at least 1")?;
        Ok(cylinders.saturating_mul(*self.disk.surfaces.get_ref()))
    }

    fn slipped(&self, slots: u32, per_track: u32, unit_slots: u32) -> Result<Vec<u32>, DriveError> {
        let end = if self.disk.sparing == Sparing::ZoneTracks { slots / per_track } else { slots };
        let mut least = 0;
        let must = format!("below {end}, the zone's end, and behind the one before it");
        let check = |slot: &Spanned<u64>| {
            let is_right = |slot| (least..u64::from(end)).contains(&slot);
            let slot = self.check(slot, "slipped", is_right, &must)?;
            least = slot + 1;
            Ok(slot as u32)
        };
        let slipped: Vec<u32> = self.form.slipped.iter().map(check).collect::<Result<_, _>>()?;
        let spares = self.form.spares.as_ref().map_or(0, |spares| *spares.get_ref()) as usize;
        let is_over = |(first, last): (&u32, &u32)| first / unit_slots == last / unit_slots;
        if self.disk.sparing != Sparing::DiskEnd
            && slipped.iter().zip(slipped.iter().skip(spares)).any(is_over)
        {
            return Err(self.error("slipped", "lists more than there are spares for"));
        }
        Ok(slipped)
    }

    fn check<T: Copy + std::fmt::Debug>(
        &self,
        value: &Spanned<T>,
        field: &str,
        is_right: impl Fn(T) -> bool,
        must: &str,
    ) -> Result<T, DriveError> {
        self.source.check(value, &format!("zone[{}].{field}", self.index), is_right, must)
    }

    fn error(&self, field: &str, why: &str) -> DriveError {
        self.source.error(Some(self.at), &format!("zone[{}].{field}", self.index), why.to_owned())
    }
}

/// So many sectors of a track, in 2^-64 turns; whole turns fall off.
fn turn(sectors: f64, per_track: u32) -> u64 {
    let turns = sectors / f64::from(per_track);
    ((turns - turns.floor()) * 18_446_744_073_709_551_616.0) as u64
}

impl Place {
    /// When in a turn the sector comes by.
    pub(super) fn angle_ns(&self, revolution: &Revolution) -> u64 {
        revolution.turn_ns(self.turn)
    }
}
