//! What the administrator does with streams: it makes, changes and deletes them, gives volumes and the bucket to them, and says how many requests disks have at
//! a time. All of that is drawn apart, so that nothing else of a run depends on it.

use super::OPEN_MAX;
use crate::faults::Incident;
use crate::objects::named::BUCKET;
use crate::schedule::By;
use crate::units::{MS, SECOND};
use crate::world::World;
use crate::world::event::Event;
use model::Draw;
use wire::{AdminError, AdminRequest, StreamInfo};

/// Streams that there are at a time.
const STREAMS_MAX: usize = 6;
/// Those that every cluster has: of the first all can be set, and only the weight of the others.
const BUILT_IN: [&str; 4] = ["default", "maintenance", "repair", "destage"];

/// The streams that it made, and what it draws from.
pub(super) struct Streams {
    draw: Draw,
    interval_ns: u64,
    /// Those that are there: made, and not told to go.
    there: Vec<String>,
    /// Those that were told to go and stayed, as they had volumes: a copy of the command that comes late may find none, and then they go.
    may_go: Vec<String>,
    made: u64,
}

/// What a stream is to be entitled to: anything goes, but for limits that would keep a run from ending.
struct Wanted {
    weight: u32,
    minimum: u32,
    reservation: u64,
    limit: u64,
    latency_us: u32,
}

impl Streams {
    pub(super) fn new(seed: u64) -> Streams {
        let mut draw = Draw::new(seed);
        let interval_ns = draw.between(200 * MS, 3 * SECOND);
        Streams { draw, interval_ns, there: Vec::new(), may_go: Vec::new(), made: 0 }
    }

    fn wanted(&mut self) -> Wanted {
        let weight = *self.draw.pick(&[1, 1, 10, 100, 100, 5_000, StreamInfo::WEIGHT_MAX]);
        let minimum = *self.draw.pick(&[0, weight.div_ceil(10), weight]);
        let reservation = if self.draw.percent(25) { self.draw.between(100, 20_000) } else { 0 };
        let limit = if self.draw.percent(25) { reservation + self.draw.between(2_000, 50_000) } else { 0 };
        let latency_us = *self.draw.pick(&[0, 0, 0, 500, 20_000]);
        Wanted { weight, minimum, reservation, limit, latency_us }
    }

    fn set(&mut self, name: String) -> AdminRequest {
        let Wanted { weight, minimum, reservation, limit, latency_us } = self.wanted();
        let is_background = BUILT_IN[1..].contains(&name.as_str());
        AdminRequest::SetStream {
            weight: Some(weight),
            minimum: (!is_background).then_some(minimum),
            reservation: (!is_background).then_some(reservation),
            limit: (!is_background).then_some(limit),
            latency_us: (!is_background).then_some(latency_us),
            name,
        }
    }

    fn make(&mut self) -> AdminRequest {
        let Wanted { weight, minimum, reservation, limit, latency_us } = self.wanted();
        self.made += 1;
        let (name, nonce) = (format!("t{}", self.made), self.draw.bits());
        let minimum = Some(minimum);
        AdminRequest::CreateStream { name, weight, minimum, reservation, limit, nonce, latency_us }
    }

    /// One of those that are there, or that every cluster has.
    fn some(&mut self, built_in: &[&str]) -> String {
        let all: Vec<&str> = built_in.iter().copied().chain(self.there.iter().map(String::as_str)).collect();
        (*self.draw.pick(&all)).to_owned()
    }
}

impl World {
    /// The administrator has its turn with streams.
    pub(crate) fn on_administer_streams(&mut self) {
        let is_mine = self.is_its_turn(By::Streams, Event::AdministerStreams, |of| {
            of.streams.as_mut().map(|of| (&mut of.draw, of.interval_ns))
        });
        if !is_mine {
            return;
        }
        let is_busy = self.administrator.open.len() >= OPEN_MAX;
        if !is_busy && let Some((request, volume)) = self.draw_for_streams() {
            self.command(request, volume);
        }
    }

    fn draw_for_streams(&mut self) -> Option<(AdminRequest, usize)> {
        let volumes: Vec<usize> =
            (0..self.workload.volumes()).filter(|volume| self.is_writable(*volume)).collect();
        let has_objects = self.named.is_some();
        let streams = self.administrator.streams.as_mut()?;
        let choice = streams.draw.below(100);
        if streams.made == 0 {
            return Some((streams.make(), 0));
        }
        Some(match choice {
            0..20 => (AdminRequest::SetPlaces { places: *streams.draw.pick(&[1, 1, 2, 4, 16]) }, 0),
            20..40 if streams.there.len() < STREAMS_MAX => (streams.make(), 0),
            40..65 => {
                let name = streams.some(&BUILT_IN);
                (streams.set(name), 0)
            }
            65..72 if has_objects => {
                let (bucket, stream) = (BUCKET.to_owned(), streams.some(&BUILT_IN[..1]));
                (AdminRequest::SetBucketStream { bucket, stream }, 0)
            }
            65..90 => {
                let volume = *streams.draw.pick(&volumes);
                let stream = streams.some(&BUILT_IN[..1]);
                let name = self.workload.plan(volume).name.clone();
                (AdminRequest::SetVolumeStream { volume: name, stream }, volume)
            }
            _ if streams.there.is_empty() => return None,
            _ => {
                let at = streams.draw.index(streams.there.len());
                let (name, nonce) = (streams.there.remove(at), streams.draw.bits());
                (AdminRequest::DeleteStream { name, nonce }, 0)
            }
        })
    }

    pub(super) fn on_streams_done(&mut self, request: AdminRequest) {
        let incident = match request {
            AdminRequest::CreateStream { name, .. } => {
                self.administrator.streams.iter_mut().for_each(|streams| streams.there.push(name.clone()));
                Incident::StreamsMade
            }
            AdminRequest::SetStream { .. } | AdminRequest::SetPlaces { .. } => Incident::StreamsChanged,
            AdminRequest::DeleteStream { .. } => Incident::StreamsDeleted,
            AdminRequest::SetVolumeStream { .. } => Incident::VolumesGivenToOtherStreams,
            AdminRequest::SetBucketStream { .. } => Incident::BucketsGivenToOtherStreams,
            _ => return,
        };
        self.faults.count(incident);
    }

    /// A stream is not deleted that has volumes.
    pub(super) fn on_streams_refused(&mut self, request: &AdminRequest, error: &AdminError) {
        if let (AdminRequest::DeleteStream { name, .. }, AdminError::NotNow(_) | AdminError::Busy) =
            (request, error)
            && let Some(streams) = &mut self.administrator.streams
        {
            streams.there.push(name.clone());
            streams.may_go.push(name.clone());
        }
    }

    /// Whether a refusal is true: the stream was told to go meanwhile, or the volume.
    pub(super) fn may_refuse(&self, request: &AdminRequest, error: &AdminError, volume: usize) -> bool {
        let is_gone = |name: &String| {
            let streams = self.administrator.streams.as_ref();
            let may_be = |streams: &Streams| !streams.there.contains(name) || streams.may_go.contains(name);
            streams.is_some_and(may_be) && !BUILT_IN.contains(&name.as_str())
        };
        let may_go = |name: &String| {
            let streams = self.administrator.streams.as_ref();
            streams.is_some_and(|streams| streams.may_go.contains(name))
        };
        match (request, error) {
            (AdminRequest::SetStream { name, .. }, AdminError::Invalid(_)) => is_gone(name),
            (AdminRequest::DeleteStream { name, .. }, AdminError::Invalid(_)) => may_go(name),
            (
                AdminRequest::SetVolumeStream { stream, .. } | AdminRequest::SetBucketStream { stream, .. },
                AdminError::Invalid(_),
            ) => is_gone(stream),
            (AdminRequest::SetVolumeStream { .. }, AdminError::NoVolume(_)) => !self.is_there(volume),
            _ => false,
        }
    }
}
