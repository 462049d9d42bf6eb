//! What ails one brick.

use anyhow::Result;
use job::process::send;
use rig::cluster::Cluster;
use rustix::process::Signal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The brick that ails, counted from 1.
pub(super) const BRICK: usize = 1;
/// A stopped brick stands still for so long, and runs for as long.
const STOP: Duration = Duration::from_millis(200);

/// A state of the brick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Healthy,
    /// Its disk is so many milliseconds late on each access.
    Late(u64),
    /// Its process stands still for 200 of every 400 ms.
    Stopped,
    /// Its process is killed.
    Dead,
    /// Its process stands still, and its connections stay.
    Silent,
}

impl State {
    /// All that are measured.
    pub(super) const ALL: [State; 6] =
        [State::Healthy, State::Late(20), State::Late(50), State::Stopped, State::Dead, State::Silent];

    /// Whether the brick is slow and alive.
    pub(super) fn is_slow(self) -> bool {
        matches!(self, State::Late(_) | State::Stopped)
    }

    pub(super) const NAMES: [&str; 6] = ["healthy", "late-20", "late-50", "stopped", "dead", "silent"];

    pub(super) fn name(self) -> String {
        match self {
            State::Healthy => "healthy".to_owned(),
            State::Late(ms) => format!("late {ms} ms"),
            State::Stopped => "stopped".to_owned(),
            State::Dead => "dead".to_owned(),
            State::Silent => "silent".to_owned(),
        }
    }

    /// As in [`State::NAMES`].
    pub(super) fn option(self) -> String {
        self.name().trim_end_matches(" ms").replace(' ', "-")
    }

    pub(super) fn begin(self, cluster: &mut impl Ailing) -> Result<Trouble> {
        let mut trouble = Trouble { state: self, stops: None };
        match self {
            State::Healthy => {}
            State::Late(ms) => cluster.set_late(ms)?,
            State::Stopped => trouble.stops = Some(Stops::begin(cluster.pid()?)),
            State::Dead => cluster.kill()?,
            State::Silent => send(cluster.pid()?, Signal::STOP)?,
        }
        Ok(trouble)
    }
}

/// A cluster of which one server ails: ours, or a peer's.
pub(super) trait Ailing {
    /// Of the server that ails.
    fn pid(&self) -> Result<u32>;

    /// Makes its disk late on each access, by 0 ms if it is well again.
    fn set_late(&mut self, ms: u64) -> Result<()>;

    fn kill(&mut self) -> Result<()>;

    /// Starts it after a kill.
    fn restart(&mut self) -> Result<()>;
}

impl Ailing for Cluster {
    fn pid(&self) -> Result<u32> {
        Ok(self.bricks[BRICK - 1].pid())
    }

    fn set_late(&mut self, ms: u64) -> Result<()> {
        Cluster::set_late(self, BRICK, ms)
    }

    fn kill(&mut self) -> Result<()> {
        self.bricks[BRICK - 1].kill()
    }

    fn restart(&mut self) -> Result<()> {
        self.bricks[BRICK - 1].restart()
    }
}

/// A state that lasts.
pub(super) struct Trouble {
    state: State,
    stops: Option<Stops>,
}

impl Trouble {
    /// The brick is well again.
    pub(super) fn end(mut self, cluster: &mut impl Ailing) -> Result<()> {
        drop(self.stops.take());
        match self.state {
            State::Late(_) => cluster.set_late(0),
            State::Dead => cluster.restart(),
            State::Silent => send(cluster.pid()?, Signal::CONT),
            State::Healthy | State::Stopped => Ok(()),
        }
    }
}

/// A process that is stopped and goes on in turn, until this is dropped.
struct Stops {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Stops {
    fn begin(pid: u32) -> Stops {
        let over = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&over);
        let turns = move || {
            while !flag.load(Ordering::Relaxed) {
                let _ = send(pid, Signal::STOP);
                thread::sleep(STOP);
                let _ = send(pid, Signal::CONT);
                thread::sleep(STOP);
            }
        };
        Stops { over, thread: Some(thread::spawn(turns)) }
    }
}

impl Drop for Stops {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_its_name() {
        assert_eq!(State::ALL.map(State::option).as_slice(), State::NAMES);
    }
}
