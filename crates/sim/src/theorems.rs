//! The theorems of proportional sharing on bare queues: bricks that serve several requests at a time in any order, streams that keep so many
//! requests outstanding at each of their bricks, and no machines. `docs/fairness.md` derives the bounds.
//!
//! Reading order: [`System`] (what runs), [`drawn`] (a random one), [`Run`] (how it runs), [`measured`] (its unfairness beside its bounds),
//! [`too_weak`] (where the printed bound does not hold).

use base::{StreamId, Time};
use core::time::Duration;
use model::Draw;
use rules::fair::{Clock, Discipline, Entry, History, Ledger, Sfq, Share, Shares, Ticket};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use wire::Service;

/// Requests of one stream at one brick: so many outstanding, of costs in this range.
#[derive(Clone, Debug)]
pub struct Threads {
    pub brick: usize,
    pub count: u32,
    /// The least and the greatest, both included.
    pub costs: (u32, u32),
}

#[derive(Clone, Debug)]
pub struct Stream {
    pub share: Share,
    pub threads: Vec<Threads>,
    /// The gateways that its requests go through in turn.
    pub gateways: Vec<usize>,
}

/// A brick serves so many at a time, a unit of cost in so many nanoseconds; the speed of each request differs by up to a factor of three.
#[derive(Clone, Copy, Debug)]
pub struct Brick {
    pub places: usize,
    pub unit_ns: u64,
}

#[derive(Clone, Debug)]
pub struct System {
    pub bricks: Vec<Brick>,
    pub streams: Vec<Stream>,
    pub history: History,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    stream: usize,
    brick: usize,
    /// Which of the stream's threads.
    threads: usize,
    cost: u32,
}

/// What a stream had at a brick.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    waiting: u64,
    outstanding: u64,
    outstanding_max: u64,
    cost_max: u64,
    /// The most that was sent elsewhere between two requests through one gateway to this brick, with the latter.
    batch_max: u64,
}

/// A system while it runs.
pub struct Run {
    system: System,
    draw: Draw,
    now: Time,
    disciplines: Vec<Sfq>,
    at_disk: Vec<usize>,
    ledgers: Vec<Ledger<usize>>,
    /// By brick and ticket.
    waiting: BTreeMap<(usize, Ticket), Request>,
    done: BinaryHeap<Reverse<(Time, u64)>>,
    serving: BTreeMap<u64, Request>,
    last: u64,
    next_gateway: Vec<usize>,
    served: Vec<Vec<u64>>,
    seen: Vec<Vec<Seen>>,
}

impl Run {
    /// Nobody has asked yet.
    pub fn new(system: System, seed: u64) -> Run {
        let (bricks, streams) = (system.bricks.len(), system.streams.len());
        let gateways =
            system.streams.iter().flat_map(|stream| &stream.gateways).max().map_or(1, |most| most + 1);
        let shares: Shares = system
            .streams
            .iter()
            .enumerate()
            .map(|(id, stream)| (StreamId(id as u32), stream.share))
            .collect();
        let discipline = |_| {
            let mut sfq = Sfq::new(Clock::StartTime, system.history);
            sfq.set_shares(Time::ZERO, &shares);
            sfq
        };
        Run {
            draw: Draw::new(seed),
            now: Time::ZERO,
            disciplines: (0..bricks).map(discipline).collect(),
            at_disk: vec![0; bricks],
            ledgers: (0..gateways).map(|_| Ledger::default()).collect(),
            waiting: BTreeMap::new(),
            done: BinaryHeap::new(),
            serving: BTreeMap::new(),
            last: 0,
            next_gateway: vec![0; streams],
            served: vec![vec![0; bricks]; streams],
            seen: vec![vec![Seen::default(); bricks]; streams],
            system,
        }
    }

    pub fn system(&self) -> &System {
        &self.system
    }

    /// What each stream was served so far at each brick, in units of cost.
    pub fn served(&self) -> &[Vec<u64>] {
        &self.served
    }

    /// All threads ask, in any order.
    pub fn start(&mut self) {
        let mut asks = Vec::new();
        for (stream, of) in self.system.streams.iter().enumerate() {
            for (threads, Threads { brick, count, .. }) in of.threads.iter().enumerate() {
                let id = StreamId(stream as u32);
                of.gateways.iter().for_each(|gateway| self.ledgers[*gateway].introduce(id, *brick));
                asks.extend((0..*count).map(|_| (stream, threads)));
            }
        }
        while !asks.is_empty() {
            let (stream, threads) = asks.swap_remove(self.draw.index(asks.len()));
            self.ask(stream, threads);
        }
        (0..self.system.bricks.len()).for_each(|brick| self.dispatch(brick));
    }

    /// One more request of these threads of a stream comes to wait.
    pub fn ask(&mut self, stream: usize, threads: usize) {
        let Stream { threads: all, gateways, .. } = &self.system.streams[stream];
        let Threads { brick, costs: (least, most), .. } = all[threads];
        let cost = self.draw.between(u64::from(least), u64::from(most)) as u32;
        let gateway = gateways[self.next_gateway[stream] % gateways.len()];
        self.next_gateway[stream] += 1;
        let id = StreamId(stream as u32);
        let delay = self.ledgers[gateway].charge(id, brick, u64::from(cost));
        let seen = &mut self.seen[stream][brick];
        seen.waiting += 1;
        seen.outstanding += 1;
        seen.outstanding_max = seen.outstanding_max.max(seen.outstanding);
        seen.cost_max = seen.cost_max.max(u64::from(cost));
        seen.batch_max = seen.batch_max.max(delay + u64::from(cost));
        self.last += 1;
        let ticket = Ticket(self.last);
        let service = Service { stream: id, delay: u32::try_from(delay).expect("a short run") };
        self.disciplines[brick].push(self.now, Entry { ticket, service, cost });
        self.waiting.insert((brick, ticket), Request { stream, brick, threads, cost });
    }

    /// Whoever is next at a brick goes to its disk, as long as there is a place.
    pub fn dispatch(&mut self, brick: usize) {
        let Brick { places, unit_ns } = self.system.bricks[brick];
        while self.at_disk[brick] < places
            && let Some(ticket) = self.disciplines[brick].pop(self.now)
        {
            let request = self.waiting.remove(&(brick, ticket)).expect("it waits");
            self.seen[request.stream][brick].waiting -= 1;
            self.at_disk[brick] += 1;
            self.last += 1;
            let takes_ns = u64::from(request.cost) * unit_ns * self.draw.between(50, 150) / 100;
            self.done.push(Reverse((self.now + Duration::from_nanos(takes_ns.max(1)), self.last)));
            self.serving.insert(self.last, request);
        }
        let waits = self.waiting.range((brick, Ticket(0))..(brick + 1, Ticket(0))).next().is_some();
        assert!(self.at_disk[brick] == places || !waits, "work is conserved");
        self.disciplines[brick].check();
    }

    /// One request is done, and its thread asks for the next.
    pub fn step(&mut self) {
        let Reverse((at, number)) = self.done.pop().expect("threads never end");
        self.now = at;
        let Request { stream, brick, threads, cost } = self.serving.remove(&number).expect("it is served");
        self.at_disk[brick] -= 1;
        self.served[stream][brick] += u64::from(cost);
        self.seen[stream][brick].outstanding -= 1;
        self.ask(stream, threads);
        self.dispatch(brick);
    }

    /// What was sent elsewhere since the last request counts as well: who gets nothing at a brick sends it no further request.
    fn close_batches(&mut self) {
        for (stream, brick, unheard) in self.ledgers.iter().flat_map(Ledger::unheard) {
            let seen = &mut self.seen[stream.0 as usize][brick];
            seen.batch_max = seen.batch_max.max(unheard + seen.cost_max);
        }
    }

    fn weight(&self, stream: usize) -> f64 {
        f64::from(self.system.streams[stream].share.weight())
    }

    /// Streams 0 and 1: how far the first is ahead in service by weight, over all bricks.
    fn difference(&self) -> f64 {
        let normalized = |stream: usize| self.served[stream].iter().sum::<u64>() as f64 / self.weight(stream);
        normalized(0) - normalized(1)
    }

    /// The bound of theorem 1 for a stream at the first brick.
    fn of_one_brick(&self, stream: usize) -> f64 {
        let places = self.system.bricks[0].places as f64;
        self.seen[stream][0].cost_max as f64 * (places + 1.0) / self.weight(stream)
    }

    /// The bound of theorems 2 and 4 for a stream at the first brick, as it is corrected: what is outstanding of it at each of its bricks, with the
    /// greatest cost *there*; one more at this brick; and what this brick has not heard of, which is with requests that wait, and with *each*
    /// gateway.
    fn corrected(&self, stream: usize) -> f64 {
        let seen = &self.seen[stream];
        let outstanding: u64 = seen.iter().map(|seen| seen.outstanding_max * seen.cost_max).sum();
        let Seen { outstanding_max, cost_max, batch_max, .. } = seen[0];
        let gateways = self.system.streams[stream].gateways.len() as u64;
        let all = outstanding + cost_max + (outstanding_max + gateways) * batch_max;
        all as f64 / self.weight(stream)
    }

    /// The bound as it is printed (formula 8): all bricks have the queue, and requests the costs, of the first.
    fn printed(&self, stream: usize) -> f64 {
        let places = self.system.bricks[0].places as u64;
        let bricks = self.seen[stream].iter().filter(|seen| seen.cost_max > 0).count() as u64;
        let Seen { outstanding_max, cost_max, batch_max, .. } = self.seen[stream][0];
        let all = ((places + outstanding_max) * bricks + 1) * cost_max + (outstanding_max + 1) * batch_max;
        all as f64 / self.weight(stream)
    }

    fn bounds(&mut self) -> Bounds {
        self.close_batches();
        let both = |of: &dyn Fn(usize) -> f64| of(0) + of(1);
        Bounds {
            one_brick: both(&|stream| self.of_one_brick(stream)),
            printed: both(&|stream| self.printed(stream)),
            corrected: both(&|stream| self.corrected(stream)),
        }
    }
}

/// How unfair a run may have been to streams 0 and 1, in units of cost at a weight of 1.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bounds {
    /// Theorem 1, which holds where there is one brick.
    pub one_brick: f64,
    /// Theorems 2 and 4, as formula 8 has them.
    pub printed: f64,
    /// The same as `docs/fairness.md` has them.
    pub corrected: f64,
}

/// The greatest difference of two streams' services by weight over any interval: the range of their difference.
#[derive(Clone, Copy, Debug)]
struct Unfairness {
    least: f64,
    most: f64,
}

impl Unfairness {
    fn new() -> Unfairness {
        Unfairness { least: f64::INFINITY, most: f64::NEG_INFINITY }
    }

    fn see(&mut self, difference: f64) {
        (self.least, self.most) = (self.least.min(difference), self.most.max(difference));
    }

    fn range(&self) -> f64 {
        (self.most - self.least).max(0.0)
    }
}

/// Runs a system in which streams 0 and 1 wait at the first brick all the time, for so many requests: their unfairness, in units of cost at a
/// weight of 1, and what bounds it.
///
/// # Panics
/// If one of them does not wait, or a brick leaves a place unused while somebody waits.
pub fn measured(system: System, seed: u64, steps: u32) -> (f64, Bounds) {
    let (mut run, mut unfairness) = (Run::new(system, seed), Unfairness::new());
    run.start();
    for _ in 0..steps {
        run.step();
        assert!((0..2).all(|stream| run.seen[stream][0].waiting > 0), "both wait at the shared brick");
        unfairness.see(run.difference());
    }
    (unfairness.range(), run.bounds())
}

/// A system of up to so many bricks and gateways, and up to five streams, all of which share the first brick.
pub fn drawn(draw: &mut Draw, bricks_max: u64, gateways_max: u64) -> System {
    let bricks = (0..draw.between(1, bricks_max))
        .map(|_| Brick { places: draw.between(1, 8) as usize, unit_ns: draw.between(100, 1999) })
        .collect::<Vec<_>>();
    let gateways = draw.between(1, gateways_max);
    let stream = |draw: &mut Draw| {
        let mut threads = Vec::new();
        for (brick, of) in bricks.iter().enumerate() {
            if brick > 0 && draw.percent(50) {
                continue;
            }
            let least = draw.between(1, 19) as u32;
            // More than the disk takes, so that some always wait.
            let more = draw.between(1, 11) as u32;
            let count = if brick == 0 { of.places as u32 + more } else { more };
            threads.push(Threads { brick, count, costs: (least, least + draw.below(60) as u32) });
        }
        let uses = draw.between(1, gateways) as usize;
        let share = Share::total(draw.between(1, 19) as u32);
        Stream { share, threads, gateways: (0..uses).collect() }
    };
    let streams = (0..draw.between(2, 5)).map(|_| stream(draw)).collect();
    System { bricks, streams, history: History::Forget }
}

/// A run that exceeds the bound as it is printed: the printed premise counts what is outstanding elsewhere as if it were of the costs, and in the
/// queue, of the shared brick. Stream 0 adds a large request at a slow brick elsewhere each time that what it was charged for the last one is over, and
/// is so charged without end for what is not served.
pub fn too_weak() -> (f64, Bounds) {
    /// The cost of a large request; others cost 1.
    const LARGE: u32 = 400;
    let bricks = vec![Brick { places: 1, unit_ns: 100 }, Brick { places: 1, unit_ns: 10_000_000 }];
    let here = |count| Threads { brick: 0, count, costs: (1, 1) };
    let stream = |threads| Stream { share: Share::total(1), threads, gateways: vec![0] };
    let elsewhere = Threads { brick: 1, count: 0, costs: (LARGE, LARGE) };
    let streams = vec![stream(vec![here(2), elsewhere]), stream(vec![here(2)])];
    let mut run = Run::new(System { bricks, streams, history: History::Forget }, 1);
    run.start();
    let mut unfairness = Unfairness::new();
    for step in 0..40_000 {
        if step % (LARGE + 1) == 0 {
            run.ask(0, 1);
            run.dispatch(1);
        }
        run.step();
        unfairness.see(run.difference());
    }
    (unfairness.range(), run.bounds())
}
