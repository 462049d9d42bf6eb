//! What clients ask for: draws in a closed loop, which may have more or fewer threads as time goes on, or requests that are due at their times. The
//! simulator is asked for the same.
//!
//! Requests of an open loop, or of a trace, are drawn or read before anything runs. So both worlds get the very same ones, and what it
//! takes to make them is not measured.

use anyhow::{Error, Result, anyhow, bail, ensure};
use base::{BLOCK_U64, SECTOR_BYTES};
use lab::system::{Load, SeenByAll};
use model::Draw;
use sim::timed::workload::Shape;
use sim::timed::{Arrival, Arriving, Asks, Drawn, Sizes, Threads, Workload};
use std::sync::Arc;
use std::time::Duration;

/// What every NBD client may ask for at a time: 1 MiB.
const REQUEST_BLOCKS_MOST: u32 = 256;
const BLOCK_SECTORS: u32 = (BLOCK_U64 / SECTOR_BYTES) as u32;
/// An exponential size is larger than so many times its mean once in nine million requests.
const TAIL: f64 = 16.0;
/// Requests that are due are kept in memory, 32 bytes each.
const REQUESTS_MOST: usize = 4 << 20;
/// Requests of an open loop that are outstanding at a time, through all gateways: more than any NBD client keeps (Linux has 128 a
/// connection), and few enough for a gateway to hold.
pub(super) const OUTSTANDING_MOST: u32 = 1024;
/// Draws from which it is estimated how much rounding adds.
const SAMPLE: usize = 10_000;

/// What clients ask for.
#[derive(Clone, Debug)]
pub(super) enum Asked {
    Loop(Loop),
    List(List),
}

/// So many requests outstanding, through all gateways.
#[derive(Clone, Debug)]
pub(super) struct Loop {
    pub(super) threads: Threads,
    /// Of the volume.
    pub(super) sectors: u64,
    pub(super) seed: u64,
}

/// Requests for whole blocks, each at its time whatever became of those before.
#[derive(Clone, Debug)]
pub(super) struct List {
    /// By rising time.
    requests: Arc<[Arrival]>,
    /// How long they come.
    pub(super) length: Duration,
    notes: Vec<String>,
}

/// The requests of one of several clients.
pub(super) enum Part {
    Loop { drawn: Drawn, sectors: u64, count: Vec<(Duration, u32)> },
    List { requests: Arc<[Arrival]>, next: usize, step: usize },
}

impl Asked {
    /// What a load asks a volume of so many sectors for until `end`. `seed` is drawn from.
    ///
    /// # Errors
    /// When daemons cannot be asked for that, or a trace cannot be read.
    pub(super) fn new(load: &Load, sectors: u64, end: Duration, seed: u64) -> Result<Asked> {
        if let Load::Closed { mix, .. } | Load::Open { mix, .. } = load {
            check_sizes(mix.sizes, sectors)?;
        }
        match load {
            Load::Closed { outstanding, mix } => {
                let threads = Threads::constant(*mix, *outstanding);
                Ok(Asked::Loop(Loop { threads, sectors, seed }))
            }
            Load::Threads(threads) => {
                match threads.asks {
                    Asks::Mix(mix) => check_sizes(mix.sizes, sectors)?,
                    Asks::Postmark(postmark) => {
                        postmark.check(sectors).map_err(|nonsense| anyhow!("workload.postmark.{nonsense}"))?
                    }
                }
                Ok(Asked::Loop(Loop { threads: threads.clone(), sectors, seed }))
            }
            Load::Replayed { .. } => {
                bail!(
                    "--live takes a trace by its times, or by workload.rate: workload.outstanding is for the simulator alone"
                )
            }
            Load::Open { .. } | Load::Stream(_) => List::new(load, sectors, end, seed).map(Asked::List),
        }
    }

    /// The same for the simulator, whose [`are_blocks`](sim::timed::Conditions::are_blocks) rounds as is done here.
    pub(super) fn workload(&self) -> Workload {
        match self {
            Asked::Loop(asked) => match (asked.threads.asks, asked.is_steady()) {
                (Asks::Mix(mix), true) => Workload::Closed { outstanding: asked.threads.most(), mix },
                _ => Workload::Threads(vec![asked.threads.clone()]),
            },
            Asked::List(List { requests, .. }) => {
                let requests = requests.clone();
                Workload::Stream(Box::new((0..requests.len()).map(move |at| requests[at])))
            }
        }
    }

    /// Requests that are outstanding at the most.
    pub(super) fn outstanding(&self) -> u32 {
        match self {
            Asked::Loop(asked) => asked.threads.most(),
            Asked::List(_) => OUTSTANDING_MOST,
        }
    }

    /// What the client at one of so many gateways asks for. Requests that are due take gateways in turn, as they do in the simulator.
    pub(super) fn part(&self, gateway: u32, gateways: u32) -> Part {
        match self {
            Asked::Loop(Loop { threads, sectors, seed }) => {
                let draw = Draw::new(seed ^ u64::from(gateway) << 32);
                let count = threads.count.iter();
                let count = count.map(|(at, count)| (*at, share(*count, gateway, gateways))).collect();
                Part::Loop { drawn: Drawn::new(threads.asks, draw), sectors: *sectors, count }
            }
            Asked::List(List { requests, .. }) => {
                let first = (gateway + gateways - 1) % gateways;
                Part::List { requests: requests.clone(), next: first as usize, step: gateways as usize }
            }
        }
    }

    /// What became of the description on its way to daemons, for people.
    pub(super) fn notes(&self) -> Vec<String> {
        match self {
            Asked::Loop(Loop { threads, sectors, seed }) => {
                let mut drawn = Drawn::new(threads.asks, Draw::new(*seed));
                let said: Vec<Shape> = (0..SAMPLE).map(|_| drawn.next(*sectors)).collect();
                rounding(&said).into_iter().collect()
            }
            Asked::List(list) => list.notes.clone(),
        }
    }
}

impl Loop {
    /// Whether it has as many threads all the time.
    pub(super) fn is_steady(&self) -> bool {
        matches!(self.threads.count.as_slice(), [(Duration::ZERO, _)])
    }
}

/// Of so many threads those of one of several gateways.
pub(super) fn share(count: u32, gateway: u32, gateways: u32) -> u32 {
    (count + gateways - 1 - gateway) / gateways
}

impl List {
    fn new(load: &Load, sectors: u64, end: Duration, seed: u64) -> Result<List> {
        let seen = SeenByAll::default();
        let mut arriving = Arriving::new(load.open(1, seed, &seen).map_err(Error::msg)?, sectors, seed);
        let end_s = end.as_secs_f64();
        let mut told: Vec<Arrival> = Vec::new();
        let mut length = None;
        for arrival in arriving.by_ref() {
            if Duration::from_nanos(arrival.at.0) >= end {
                length = Some(end);
                break;
            }
            ensure!(
                told.len() < REQUESTS_MOST,
                "--live has {REQUESTS_MOST} requests at the most, and there are more in {end_s:.0} s: lower workload.per_second or \
                 workload.speed_up"
            );
            // What is told too late comes together with what was told before.
            let at = told.last().map_or(arrival.at, |last| arrival.at.max(last.at));
            told.push(Arrival { at, ..arrival });
        }
        let wrapped = arriving.wrapped();
        drop(arriving);
        let mut seen = seen.take();
        if let Some(why) = seen.failure {
            return Err(Error::msg(why));
        }
        ensure!(!told.is_empty(), "[workload] has no request in {end_s:.0} s");
        let shapes: Vec<Shape> = told.iter().map(shape).collect();
        let long = shapes.iter().filter(|said| said.in_blocks().count > asked(**said).count).count();
        if long > 0 {
            let most = u64::from(REQUEST_BLOCKS_MOST) * BLOCK_U64;
            seen.notes.push(format!(
                "Requests of more than {most} bytes are cut to that, in both worlds: {long} of {}.",
                told.len()
            ));
        }
        seen.notes.extend(load.beyond(wrapped).map_err(Error::msg)?);
        seen.notes.extend(rounding(&shapes));
        if let (Some(_), Load::Stream(_)) = (length, load) {
            seen.notes.push(format!(
                "[workload] goes on after {end_s:.0} s: both worlds have the {} requests until then.",
                told.len()
            ));
        }
        let last = told.last().map_or(Duration::ZERO, |last| Duration::from_nanos(last.at.0));
        let in_blocks = |(told, said): (&Arrival, &Shape)| {
            let Shape { sector, count, is_write } = asked(*said);
            Arrival { at: told.at, sector, count, is_write }
        };
        let requests = told.iter().zip(&shapes).map(in_blocks).collect();
        Ok(List { requests, length: length.unwrap_or(last), notes: seen.notes })
    }
}

impl Part {
    /// How many requests may be outstanding so long after the beginning, and when that changes next.
    pub(super) fn threads(&self, after: Duration) -> (u32, Option<Duration>) {
        match self {
            Part::Loop { count, .. } => {
                let next = count.partition_point(|(at, _)| *at <= after);
                let now = next.checked_sub(1).map_or(0, |at| count[at].1);
                (now, count.get(next).map(|(at, _)| *at))
            }
            Part::List { .. } => (u32::MAX, None),
        }
    }
}

impl Iterator for Part {
    /// When it is due, after the beginning, and what it asks for: whole blocks. In a loop it is due at once.
    type Item = (Option<Duration>, Shape);

    fn next(&mut self) -> Option<(Option<Duration>, Shape)> {
        match self {
            Part::Loop { drawn, sectors, .. } => Some((None, asked(drawn.next(*sectors)))),
            Part::List { requests, next, step } => {
                let found = requests.get(*next)?;
                *next += *step;
                Some((Some(Duration::from_nanos(found.at.0)), shape(found)))
            }
        }
    }
}

fn shape(&Arrival { sector, count, is_write, .. }: &Arrival) -> Shape {
    Shape { sector, count, is_write }
}

/// A request as daemons are asked for it.
fn asked(said: Shape) -> Shape {
    let blocks = said.in_blocks();
    Shape { count: blocks.count.min(REQUEST_BLOCKS_MOST * BLOCK_SECTORS), ..blocks }
}

/// By how much requests grow to whole blocks, if they do.
fn rounding(said: &[Shape]) -> Option<String> {
    let sectors = |all: &mut dyn Iterator<Item = Shape>| all.map(|shape| f64::from(shape.count)).sum::<f64>();
    let (before, after) =
        (sectors(&mut said.iter().copied()), sectors(&mut said.iter().map(|said| said.in_blocks())));
    (after > before).then(|| {
        format!(
            "Requests are for all blocks of {BLOCK_U64} bytes that they touch, in both worlds, so that every block can be checked: {:.1} times the \
             bytes of the description.",
            after / before
        )
    })
}

/// Every request must fit into the volume and into one of NBD's.
fn check_sizes(sizes: Sizes, sectors: u64) -> Result<()> {
    let (field, blocks) = match sizes {
        Sizes::Blocks(blocks) | Sizes::Chunks(blocks) | Sizes::Spaced { blocks, .. } => {
            ("bytes is", f64::from(blocks))
        }
        // It may begin with the last sector of a block.
        Sizes::Fixed(count) => ("bytes is", f64::from((count + BLOCK_SECTORS - 1).div_ceil(BLOCK_SECTORS))),
        Sizes::Uniform { most, .. } => {
            ("bytes is", f64::from((most + BLOCK_SECTORS - 1).div_ceil(BLOCK_SECTORS)))
        }
        Sizes::Exponential(mean) => ("mean_bytes has sizes that are", mean * TAIL / BLOCK_U64 as f64),
    };
    let most = u64::from(REQUEST_BLOCKS_MOST).min(sectors / u64::from(BLOCK_SECTORS));
    ensure!(
        blocks <= most as f64,
        "workload.mix.{field} more than {} bytes, or than the volume has",
        u64::from(REQUEST_BLOCKS_MOST) * BLOCK_U64
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Time;
    use lab::system::Stream;
    use sim::timed::{Arrivals, Locality, Mix, Postmark};

    const SECTORS: u64 = 4096;
    const END: Duration = Duration::from_secs(1);

    /// These requests: milliseconds, first sector, sectors. All are reads.
    struct Told(Vec<(u64, u64, u32)>);

    impl Stream for Told {
        fn describe(&self) -> String {
            "told".to_owned()
        }

        fn open(&self, _: u64, _: &SeenByAll) -> Result<Box<dyn Iterator<Item = Arrival>>, String> {
            let arrival = |&(at_ms, sector, count): &(u64, u64, u32)| {
                let at = Time(at_ms * 1_000_000);
                Arrival { at, sector, count, is_write: false }
            };
            Ok(Box::new(self.0.iter().map(arrival).collect::<Vec<_>>().into_iter()))
        }

        fn may_wrap(&self) -> bool {
            self.0[0].0 == 0
        }
    }

    fn told(requests: &[(u64, u64, u32)]) -> Result<Asked> {
        Asked::new(&Load::Stream(Arc::new(Told(requests.to_vec()))), SECTORS, END, 1)
    }

    fn list(asked: &Asked) -> Vec<(u64, u64, u32)> {
        let millis = |at: Option<Duration>| at.expect("it is due").as_millis() as u64;
        asked.part(0, 1).map(|(at, shape)| (millis(at), shape.sector, shape.count)).collect()
    }

    #[test]
    fn a_trace_is_asked_for_in_blocks_of_the_volume_until_the_end() {
        let asked = told(&[(0, 9, 1), (5, SECTORS + 8, 8), (3, 0, 4000), (999, 7, 2), (1000, 0, 8)])
            .expect("daemons can do that");
        assert_eq!(list(&asked), [(0, 8, 8), (5, 8, 8), (5, 0, 2048), (999, 0, 16)]);
        let notes = asked.notes().join(" ");
        for note in ["20% of the requests lie beyond", "1 of 4", "both worlds have the 4 requests"] {
            assert!(notes.contains(note), "{note}: {notes}");
        }
        let Asked::List(all) = told(&[(0, 0, 8), (300, 8, 8)]).expect("daemons can do that") else {
            panic!("it is no loop")
        };
        assert_eq!((all.length, all.notes.len()), (Duration::from_millis(300), 0));
        let why = told(&[(1, SECTORS, 8)]).expect_err("it may not wrap").to_string();
        assert!(why.contains("beyond = \"wrap\""), "{why}");
    }

    /// Gateways take the requests in turn, the second of three the first one: as in the simulator.
    #[test]
    fn all_clients_together_ask_for_all() {
        let mix = Mix { reads: 0.5, sizes: Sizes::Exponential(5000.0), locality: Locality::Uniform };
        let load = Load::Open { per_second: 1000.0, arrivals: Arrivals::Poisson, mix };
        let asked = Asked::new(&load, SECTORS, END, 1).expect("daemons can do that");
        let all: Vec<_> = asked.part(0, 1).collect();
        assert!((800..1200).contains(&all.len()), "{}", all.len());
        assert!(all.is_sorted_by_key(|(at, _)| *at));
        assert!(all.iter().all(|(_, shape)| shape.in_blocks() == *shape), "whole blocks");
        let parts: Vec<Vec<_>> = (0..3).map(|gateway| asked.part(gateway, 3).collect()).collect();
        for (at, request) in all.iter().enumerate() {
            assert_eq!(&parts[(at + 1) % 3][at / 3], request);
        }
        assert_eq!(parts.iter().map(Vec::len).sum::<usize>(), all.len());
        assert!(asked.notes()[0].contains("times the bytes"), "{:?}", asked.notes());
    }

    /// Five threads through two gateways, and none from second to second.
    #[test]
    fn threads_are_divided_among_gateways_and_come_and_go() {
        let threads = Threads::on_off(Postmark::DSFQ, 5, END, 3 * END);
        let asked = Asked::new(&Load::Threads(threads), 1 << 18, END, 1).expect("daemons can do that");
        assert_eq!(asked.outstanding(), 5);
        assert!(matches!(asked.workload(), Workload::Threads(all) if all.len() == 1));
        let parts = [0, 1].map(|gateway| asked.part(gateway, 2));
        let at = |ms: u64| parts.each_ref().map(|part| part.threads(Duration::from_millis(ms)));
        assert_eq!(at(500), [(3, Some(END)), (2, Some(END))]);
        assert_eq!(at(1_000), [(0, Some(2 * END)), (0, Some(2 * END))]);
        assert_eq!(at(9_000), [(0, None), (0, None)]);
        for part in parts {
            let all: Vec<_> = part.take(100).collect();
            assert!(all.iter().all(|(at, shape)| at.is_none() && shape.in_blocks() == *shape));
        }
        let why = Asked::new(&Load::Threads(Threads::constant(Postmark::DSFQ, 5)), SECTORS, END, 1);
        let why = why.expect_err("the volume is too small").to_string();
        assert!(why.starts_with("workload.postmark.files: "), "{why}");
    }

    #[test]
    fn the_simulator_is_asked_for_the_same() {
        let asked = told(&[(0, 9, 1), (5, 16, 8)]).expect("daemons can do that");
        let same: Vec<(u64, u64, u32)> = Arriving::new(asked.workload(), SECTORS, 5)
            .map(|told| (told.at.0 / 1_000_000, told.sector, told.count))
            .collect();
        assert_eq!(same, list(&asked));
    }
}
