//! Threads that compute what would keep a daemon's loop from everything else.
//!
//! What is small is computed by the loop itself: waking a thread takes longer. A computation that is handed out costs
//! one message each way and at most one wake-up of each side; no content is copied.

use crate::HostError;
use crate::error::system;
use crate::shutdown::{event_fd, signal_event};
use code::{Computation, Computed};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// One processor is the loop's; more than these are of no use to one gateway.
const THREADS_MAX: usize = 4;

pub(crate) struct Workers {
    /// None where the loop has the only processor.
    asked: Option<Sender<Asked>>,
    answered: Receiver<Answered>,
    threads: Vec<JoinHandle<()>>,
    event: Arc<OwnedFd>,
    /// Computed by the loop.
    at_once: Vec<(u64, Computed)>,
    under_way: usize,
}

struct Asked {
    number: u64,
    computation: Computation,
}

struct Answered {
    number: u64,
    made: Computed,
    /// Let go of by the loop's thread, so that buffers return to its pool.
    _computation: Computation,
}

/// Wakes the loop when it goes, also when its thread panics.
struct Signal(Arc<OwnedFd>);

impl Drop for Signal {
    fn drop(&mut self) {
        signal_event(self.0.as_raw_fd());
    }
}

impl Workers {
    /// As many threads as there are processors beside the loop's.
    pub(crate) fn start() -> Result<Workers, HostError> {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Workers::of((processors - 1).min(THREADS_MAX)).map_err(system("worker threads"))
    }

    fn of(threads: usize) -> io::Result<Workers> {
        let event = Arc::new(event_fd()?);
        let ((ask, asked), (answer, answered)) = (mpsc::channel(), mpsc::channel());
        let asked = Arc::new(Mutex::new(asked));
        let start = |number| {
            let (asked, answer, event) = (Arc::clone(&asked), answer.clone(), Arc::clone(&event));
            thread::Builder::new()
                .name(format!("compute-{number}"))
                .spawn(move || work(&asked, &answer, &event))
        };
        let threads = (0..threads).map(start).collect::<io::Result<Vec<_>>>()?;
        let asked = (!threads.is_empty()).then_some(ask);
        Ok(Workers { asked, answered, threads, event, at_once: Vec::new(), under_way: 0 })
    }

    /// Is signalled when something is computed.
    pub(crate) fn event_fd(&self) -> RawFd {
        self.event.as_raw_fd()
    }

    /// Has something computed; [`Workers::take`] gives what came of it.
    pub(crate) fn compute(&mut self, number: u64, computation: Computation) {
        match &self.asked {
            Some(asked) if computation.is_large() => {
                let sent = asked.send(Asked { number, computation });
                assert!(sent.is_ok(), "no worker is left: all have panicked");
                self.under_way += 1;
            }
            _ => self.at_once.push((number, computation.run())),
        }
    }

    /// What is computed since the last call, by its number. Panics when a worker has: what it computed would be waited for for ever.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = (u64, Computed)> {
        let mut made = std::mem::take(&mut self.at_once);
        while self.under_way > 0
            && let Ok(Answered { number, made: content, .. }) = self.answered.try_recv()
        {
            self.under_way -= 1;
            made.push((number, content));
        }
        let is_whole = self.under_way == 0 || !self.threads.iter().any(JoinHandle::is_finished);
        assert!(is_whole, "a worker panicked");
        made.into_iter()
    }

    /// Whether something was computed by the loop that nobody has taken.
    pub(crate) fn has_more(&self) -> bool {
        !self.at_once.is_empty()
    }
}

fn work(asked: &Mutex<Receiver<Asked>>, answer: &Sender<Answered>, event: &Arc<OwnedFd>) {
    loop {
        let next = asked.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Asked { number, computation }) = next else { return };
        let _signal = Signal(Arc::clone(event));
        let made = computation.run();
        if answer.send(Answered { number, made, _computation: computation }).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Payload;
    use code::Code;
    use mio::unix::SourceFd;
    use mio::{Events, Interest, Poll, Token};

    /// The parity of four units of so many bytes.
    fn encode(bytes: usize) -> Computation {
        let data = (1..=4).map(|byte| Payload::from(vec![byte; bytes])).collect();
        Computation::Encode { code: Code::new(4, 2), data }
    }

    #[test]
    fn what_is_large_is_computed_by_threads_which_wake_the_loop() {
        let mut workers = Workers::of(2).expect("threads");
        let (mut poll, mut events) = (Poll::new().expect("epoll"), Events::with_capacity(4));
        let fd = workers.event_fd();
        poll.registry().register(&mut SourceFd(&fd), Token(1), Interest::READABLE).expect("registered");
        let large = encode(1 << 20);
        (0..20).for_each(|number| workers.compute(number, large.clone()));
        assert!(!workers.has_more(), "nothing was computed here");
        let mut made = Vec::new();
        while made.len() < 20 {
            poll.poll(&mut events, None).expect("woken");
            made.extend(workers.take());
        }
        made.sort_by_key(|(number, _)| *number);
        let expected = large.run();
        assert!(
            made.iter().enumerate().all(|(at, (number, made))| (at as u64, &expected) == (*number, made))
        );
    }

    #[test]
    fn what_is_small_or_has_no_thread_is_computed_at_once() {
        let (mut workers, mut alone) = (Workers::of(1).expect("a thread"), Workers::of(0).expect("none"));
        workers.compute(7, encode(512));
        alone.compute(8, encode(1 << 20));
        assert!(workers.has_more() && alone.has_more());
        assert_eq!(workers.take().collect::<Vec<_>>(), [(7, encode(512).run())]);
        assert_eq!(alone.take().map(|(number, _)| number).collect::<Vec<_>>(), [8]);
        assert!(!workers.has_more() && workers.take().next().is_none());
    }
}
