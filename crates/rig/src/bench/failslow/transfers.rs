//! Load of objects: transfers through one gateway, so many begun at a time, whatever became of those before (an *open* loop).
//!
//! The gateway runs in this process ([`run_objects`]). Latency counts from the moment at which a transfer was due.

use super::load::Sample;
use anyhow::{Context, Result, bail};
use base::{BLOCK_U64, Payload};
use host::{AdminOptions, ObjectUser, Shutdown, Waker, run_objects};
use objects::object::{AccessStrategy, NewObject, ObjectNews, ObjectWish, WantedObject};
use rig::noise::Noise;
use std::collections::{BTreeMap, VecDeque};
use std::thread;
use std::time::{Duration, Instant};
use wire::ObjectName;

/// Of an object: sixteen blocks of 64 KiB, and what is stored beyond them.
pub(super) const OBJECT_BYTES: usize = 1 << 20;
/// Of a range, which begins at any multiple of 4 KiB, and so mostly lies in two blocks.
pub(super) const RANGE_BYTES: usize = 64 << 10;
/// Objects that are read, and as many others that are put again and again.
const NAMES: u64 = 64;

/// What a transfer does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum What {
    Put,
    Get,
    Range,
}

impl What {
    pub(super) const ALL: [What; 3] = [What::Put, What::Get, What::Range];

    /// Half of the transfers are ranges, and a quarter each are puts and gets.
    const TURNS: [What; 4] = [What::Put, What::Range, What::Get, What::Range];

    pub(super) fn name(self) -> &'static str {
        match self {
            What::Put => "put",
            What::Get => "get",
            What::Range => "range",
        }
    }
}

/// What a run of transfers showed.
#[derive(Default)]
pub(super) struct Ran {
    pub(super) samples: BTreeMap<What, Vec<Sample>>,
    /// The most transfers that were open at a time.
    pub(super) most_open: usize,
    pub(super) errors: BTreeMap<What, u64>,
    /// What the first one was.
    pub(super) error: Option<String>,
}

/// When transfers begin.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    /// So many at a time.
    pub(super) together: usize,
    /// So many a second.
    pub(super) rate: f64,
    /// For so long.
    pub(super) span: Duration,
}

impl Pace {
    /// Between two times at which some begin. One at a time begins by a Poisson process.
    fn gap(&self, noise: &mut Noise) -> Duration {
        let mean = Duration::from_secs_f64(self.together as f64 / self.rate);
        if self.together == 1 { noise.gap(mean) } else { mean }
    }

    /// When some begin first after this moment: of those that begin one at a time that is soon.
    pub(super) fn next_after(&self, moment: Duration) -> Duration {
        match self.together {
            1 => moment,
            _ => {
                let gap = self.together as f64 / self.rate;
                Duration::from_secs_f64((moment.as_secs_f64() / gap).ceil() * gap)
            }
        }
    }
}

/// Puts each object once, so that there is something to read.
pub(super) fn fill(admin: &AdminOptions) -> Result<()> {
    let mut load = Transfers::new(Instant::now());
    load.due =
        (0..2 * NAMES).map(|name| Due { at: Duration::ZERO, what: What::Put, name, from: 0 }).collect();
    load.run(admin)?;
    match load.ran.error {
        Some(error) => bail!("the first objects could not be put: {error}"),
        None => Ok(()),
    }
}

/// Runs transfers to their end. Each `run` asks for other objects at other moments.
pub(super) fn paced(admin: &AdminOptions, began: Instant, pace: Pace, run: u64) -> Result<Ran> {
    let mut load = Transfers::new(began);
    let mut noise = Noise::new(run + 1);
    let mut at = pace.gap(&mut noise);
    while at < pace.span {
        for _ in 0..pace.together {
            let what = What::TURNS[load.due.len() % What::TURNS.len()];
            let name = noise.below(NAMES) + if what == What::Put { NAMES } else { 0 };
            let from = noise.below((OBJECT_BYTES - RANGE_BYTES) as u64 / BLOCK_U64 + 1) * BLOCK_U64;
            load.due.push_back(Due { at, what, name, from });
        }
        at += pace.gap(&mut noise);
    }
    load.run(admin)?;
    Ok(load.ran)
}

/// A transfer that is to begin, this long after the beginning of all.
struct Due {
    at: Duration,
    what: What,
    name: u64,
    /// Where a range begins.
    from: u64,
}

/// Transfers that are to begin, those that are open, and what came of the others.
struct Transfers {
    began: Instant,
    due: VecDeque<Due>,
    open: BTreeMap<u64, Due>,
    last: u64,
    content: Payload,
    ran: Ran,
}

impl Transfers {
    fn new(began: Instant) -> Transfers {
        let content = Payload::from(Noise::new(1).bytes(OBJECT_BYTES));
        Transfers {
            began,
            due: VecDeque::new(),
            open: BTreeMap::new(),
            last: 0,
            content,
            ran: Ran::default(),
        }
    }

    fn run(&mut self, admin: &AdminOptions) -> Result<()> {
        let shutdown = Shutdown::on_signals().context("cannot watch for signals")?;
        Ok(run_objects(&admin.node, &admin.directory, &shutdown, self)?)
    }

    fn begin_one(&mut self, due: Due) -> Vec<(u64, ObjectWish)> {
        let name = ObjectName { bucket: "bench".to_owned(), key: due.name.to_string() };
        let range = (due.what == What::Range).then_some((due.from, RANGE_BYTES as u64));
        self.last += 1;
        let wishes = match due.what {
            What::Put => vec![ObjectWish::Put(NewObject::usual(name))],
            What::Get | What::Range => {
                let access = AccessStrategy::USUAL;
                vec![ObjectWish::Get(WantedObject { name, range, access }), ObjectWish::More]
            }
        };
        self.open.insert(self.last, due);
        self.ran.most_open = self.ran.most_open.max(self.open.len());
        wishes.into_iter().map(|wish| (self.last, wish)).collect()
    }

    /// A transfer has ended: why it failed, if it did.
    fn end(&mut self, tag: u64, error: Option<String>) {
        let Some(due) = self.open.remove(&tag) else { return };
        let took = self.began.elapsed().saturating_sub(due.at);
        let sample = Sample { at: due.at, took, overslept: Duration::ZERO };
        self.ran.samples.entry(due.what).or_default().push(sample);
        if let Some(error) = error {
            *self.ran.errors.entry(due.what).or_default() += 1;
            self.ran.error.get_or_insert(format!("{}: {error}", due.what.name()));
        }
    }

    /// What is to come of a get.
    fn expected(&self, due: &Due) -> Payload {
        match due.what {
            What::Put | What::Get => self.content.clone(),
            What::Range => self.content.slice(due.from as usize, RANGE_BYTES),
        }
    }
}

impl ObjectUser for Transfers {
    fn begin(&mut self, waker: &Waker) -> Vec<(u64, ObjectWish)> {
        let (waker, began) = (waker.clone(), self.began);
        let moments: Vec<Duration> = self.due.iter().map(|due| due.at).collect();
        thread::spawn(move || {
            for at in moments {
                thread::sleep((began + at).saturating_duration_since(Instant::now()));
                waker.wake();
            }
        });
        Vec::new()
    }

    fn gather(&mut self) -> Vec<(u64, ObjectWish)> {
        let mut wishes = Vec::new();
        let now = self.began.elapsed();
        while let Some(due) = self.due.pop_front_if(|due| due.at <= now) {
            wishes.extend(self.begin_one(due));
        }
        wishes
    }

    fn told(&mut self, tag: u64, news: ObjectNews) -> Vec<(u64, ObjectWish)> {
        match news {
            ObjectNews::WantsContent { .. } => {
                let content = self.content.clone();
                return vec![(tag, ObjectWish::Content { content, is_last: true })];
            }
            ObjectNews::Begun(_) => {}
            ObjectNews::Content(content) => {
                if self.open.get(&tag).is_some_and(|due| self.expected(due) != content) {
                    self.end(tag, Some("other content came than was put".to_owned()));
                }
            }
            ObjectNews::Put(Ok(_)) | ObjectNews::Got(Ok(())) => self.end(tag, None),
            ObjectNews::Put(Err(error)) | ObjectNews::Got(Err(error)) => {
                self.end(tag, Some(error.to_string()))
            }
            other => self.end(tag, Some(format!("{other:?}"))),
        }
        Vec::new()
    }

    fn is_done(&self) -> bool {
        self.due.is_empty() && self.open.is_empty()
    }

    fn interrupt(&mut self) -> Vec<(u64, ObjectWish)> {
        self.due.clear();
        std::mem::take(&mut self.open).into_keys().map(|tag| (tag, ObjectWish::CallOff)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_begins_with_a_hundred_transfers_that_begin() {
        let pace = Pace { together: 100, rate: 200.0, span: Duration::from_secs(4) };
        assert_eq!(pace.next_after(Duration::from_millis(1100)), Duration::from_millis(1500));
        assert_eq!(pace.gap(&mut Noise::new(1)), Duration::from_millis(500));
    }
}
