//! Who uses the index while it is measured: [`Work`] does the same with many names, [`Lister`] lists the first ones.

use super::names::{BUCKET, name};
use base::Payload;
use host::{ObjectUser, Waker};
use objects::object::{NewObject, ObjectError, ObjectNews, ObjectWish};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What an object is put to survive, and when it is said to have been put.
pub(super) const LOSSES: u32 = 1;
pub(super) const PUT_MS: u64 = 0;
/// Under way at a time.
const AT_A_TIME: u64 = 512;
/// How often it is told how far something is.
pub(super) const TOLD_EVERY: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Put,
    Look,
    Remove,
}

impl What {
    pub(super) fn name(self) -> &'static str {
        match self {
            What::Put => "a put",
            What::Look => "looking a name up",
            What::Remove => "a removal",
        }
    }
}

/// The same with many names.
pub(super) struct Work {
    what: What,
    numbers: Box<dyn Iterator<Item = u64> + Send>,
    content: Payload,
    /// Once it is set no other name is begun with.
    stop: Arc<AtomicBool>,
    /// Failures end it, unless a directory is killed meanwhile.
    endures: bool,
    under_way: u64,
    /// There is no other number.
    is_over: bool,
    is_interrupted: bool,
    told: Instant,
    pub(super) done: u64,
    /// Numbers of those that were done, of a work that endures.
    pub(super) acknowledged: Vec<u64>,
    pub(super) failures: u64,
    pub(super) failure: Option<ObjectError>,
}

impl Work {
    pub(super) fn new(
        what: What,
        numbers: impl Iterator<Item = u64> + Send + 'static,
        content: Payload,
    ) -> Work {
        Work {
            what,
            numbers: Box::new(numbers),
            content,
            stop: Arc::default(),
            endures: false,
            under_way: 0,
            is_over: false,
            is_interrupted: false,
            told: Instant::now(),
            done: 0,
            acknowledged: Vec::new(),
            failures: 0,
            failure: None,
        }
    }

    /// It goes on until `stop` is set, although some of it fails.
    pub(super) fn enduring(self, stop: &Arc<AtomicBool>) -> Work {
        Work { stop: Arc::clone(stop), endures: true, ..self }
    }

    fn next(&mut self) -> Option<(u64, ObjectWish)> {
        let next = if self.stop.load(Ordering::Relaxed) { None } else { self.numbers.next() };
        let Some(number) = next else {
            self.is_over = true;
            return None;
        };
        self.under_way += 1;
        let name = name(number);
        let wish = match self.what {
            What::Look => ObjectWish::Look { name },
            What::Remove => ObjectWish::Remove { name },
            What::Put => {
                ObjectWish::Put(NewObject { losses: LOSSES, put_ms: PUT_MS, ..NewObject::usual(name) })
            }
        };
        Some((number, wish))
    }
}

impl ObjectUser for Work {
    fn begin(&mut self, _waker: &Waker) -> Vec<(u64, ObjectWish)> {
        (0..AT_A_TIME).filter_map(|_| self.next()).collect()
    }

    fn told(&mut self, number: u64, news: ObjectNews) -> Vec<(u64, ObjectWish)> {
        let ended = match news {
            ObjectNews::WantsContent { .. } => {
                return vec![(number, ObjectWish::Content { content: self.content.clone(), is_last: true })];
            }
            ObjectNews::Put(ended) => ended.map(drop),
            ObjectNews::Looked(ended) => ended.map(drop),
            ObjectNews::Removed(ended) => ended,
            _ => return Vec::new(),
        };
        self.under_way -= 1;
        match ended {
            Ok(()) => {
                self.done += 1;
                self.acknowledged.extend(self.endures.then_some(number));
            }
            Err(error) => {
                self.failures += 1;
                self.failure = Some(error);
            }
        }
        if self.told.elapsed() > TOLD_EVERY {
            self.told = Instant::now();
            eprintln!("    {}: {} done", self.what.name(), self.done);
        }
        self.next().into_iter().collect()
    }

    fn is_done(&self) -> bool {
        let has_failed = self.failures > 0 && !self.endures;
        self.is_interrupted || has_failed || (self.is_over && self.under_way == 0)
    }

    fn interrupt(&mut self) -> Vec<(u64, ObjectWish)> {
        self.is_interrupted = true;
        Vec::new()
    }
}

/// Lists the first names, so often, one time after the other.
pub(super) struct Lister {
    left: usize,
    asked: Instant,
    pub(super) took: Vec<Duration>,
    pub(super) names: usize,
}

impl Lister {
    pub(super) fn new(times: usize) -> Lister {
        Lister { left: times, asked: Instant::now(), took: Vec::new(), names: 0 }
    }

    fn next(&mut self) -> Vec<(u64, ObjectWish)> {
        self.asked = Instant::now();
        let (bucket, prefix) = (BUCKET.to_owned(), String::new());
        vec![(self.left as u64, ObjectWish::List { bucket, prefix, after: None, limit: 1000 })]
    }
}

impl ObjectUser for Lister {
    fn begin(&mut self, _waker: &Waker) -> Vec<(u64, ObjectWish)> {
        self.next()
    }

    fn told(&mut self, _tag: u64, news: ObjectNews) -> Vec<(u64, ObjectWish)> {
        if let ObjectNews::Listed(Ok((objects, _))) = news {
            self.names = objects.len();
            self.took.push(self.asked.elapsed());
        }
        self.left -= 1;
        if self.left == 0 { Vec::new() } else { self.next() }
    }

    fn is_done(&self) -> bool {
        self.left == 0
    }

    fn interrupt(&mut self) -> Vec<(u64, ObjectWish)> {
        self.left = 0;
        Vec::new()
    }
}
