//! What the loop of every daemon does, turn by turn: gather events, step the machine, hand out its effects.
//!
//! A turn makes one `epoll_wait`, one `readv` for each socket that has something (a short read is taken as the last),
//! one `io_uring_enter` when there are disk requests, and one `writev` for each socket that has output.

use crate::address::Address;
use crate::buffer::trim_pool;
use crate::clock::{Clock, Suspensions};
use crate::metrics::Meter;
use crate::refusals::refused;
use crate::transport::{self, PeerEvent, Peers};
use crate::{HostError, Shutdown, refusals};
use base::{Machine, Time};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Registry, Token};
use roles::admission::{self, admit_anyone};
use std::io;
use std::time::Duration;

/// The token of [`Shutdown`].
const SHUTDOWN: Token = Token(0);
/// The token of the disks.
pub(crate) const DISKS: Token = Token(1);
/// The token of the timer of emulated disks.
pub(crate) const EMULATION: Token = Token(2);
/// The token of [`crate::workers`].
pub(crate) const WORKERS: Token = Token(3);
/// Readiness events taken in one turn.
const EVENTS_MAX: usize = 256;
/// A second with fewer packets is a quiet one: heartbeats and the like.
const QUIET_PACKETS: u64 = 64;
/// How long an ordered end may take.
const FAREWELL_MAX: Duration = Duration::from_secs(3);

/// What makes a daemon differ from the others: its machine's events and effects, and what it has beside peers.
pub(crate) trait Role {
    type Machine: Machine;
    /// What the machine is to others.
    const ROLE: admission::Role;

    /// A peer's event as the machine's; `None` when the machine does not care.
    fn peer_event(event: PeerEvent) -> Option<Event<Self>>;

    /// Carries out an effect.
    fn effect(&mut self, effect: Effect<Self>, world: &mut World<'_, Self>) -> Result<(), HostError>;

    /// Takes a readiness event that is not a peer's.
    fn ready(&mut self, _event: &mio::event::Event, _world: &mut World<'_, Self>) {}

    /// Gathers what has come without a readiness event; called in every turn before the machine's steps.
    fn gather(&mut self, _world: &mut World<'_, Self>) {}

    /// Ends a turn: submits and sends what the effects have queued.
    fn flush(&mut self, _world: &mut World<'_, Self>) {}

    /// Whether there is something to gather at once.
    fn has_more(&self) -> bool {
        false
    }

    /// When it wants a turn at the latest.
    fn deadline(&self) -> Time {
        Time::MAX
    }

    /// The loop waits now until something happens, or until then in whole milliseconds. A role that must be woken more exactly
    /// arms a timer of its own.
    fn sleep(&mut self, _until: Time) {}

    /// The end is asked for; called in each turn from then on, until it says that it is ready for it.
    fn farewell(&mut self) -> bool {
        true
    }

    /// Whether all is done for which the loop was begun.
    fn is_done(&self) -> bool {
        false
    }

    /// Why the loop ends before it is asked to, if it does.
    fn breaks_off(&mut self, _now: Time) -> Option<HostError> {
        None
    }

    /// Publishes its figures, once a second.
    fn measure(&mut self, _machine: &Self::Machine, _now: Time, _meter: &mut Meter) {}
}

pub(crate) type Event<R> = <<R as Role>::Machine as Machine>::Event;
pub(crate) type Effect<R> = <<R as Role>::Machine as Machine>::Effect;

/// What a role works with.
pub(crate) struct World<'a, R: Role + ?Sized> {
    pub(crate) now: Time,
    pub(crate) peers: &'a mut Peers,
    /// Events for the machine's next turn (this one, before its steps).
    pub(crate) inbox: &'a mut Vec<Event<R>>,
}

impl<R: Role> World<'_, R> {
    /// Calls `node` from now on.
    pub(crate) fn learn(&mut self, node: base::NodeId, address: &str) {
        match address.parse() {
            Ok(address) => self.learn_at(node, &address),
            Err(error) => tracing::warn!(%node, %error, "a peer's address cannot be used"),
        }
    }

    /// Calls `node` from now on whenever there is something to say to it.
    pub(crate) fn learn_on_demand(&mut self, node: base::NodeId, address: &str) {
        let inbox = &mut *self.inbox;
        match address.parse() {
            Ok(address) => {
                self.peers.learn_on_demand(node, &address, self.now, &mut |event| {
                    inbox.extend(R::peer_event(event));
                });
            }
            Err(error) => tracing::warn!(%node, %error, "a peer's address cannot be used"),
        }
    }

    /// Calls `node` no more.
    pub(crate) fn forget(&mut self, node: base::NodeId) {
        let inbox = &mut *self.inbox;
        self.peers.forget(node, self.now, &mut |event| inbox.extend(R::peer_event(event)));
    }

    /// As [`World::learn`], of an address that was read before.
    pub(crate) fn learn_at(&mut self, node: base::NodeId, address: &Address) {
        let inbox = &mut *self.inbox;
        self.peers.learn(node, address, self.now, &mut |event| inbox.extend(looked_at::<R>(event)));
    }
}

/// The system side of a loop, made first.
pub(crate) struct Core {
    pub(crate) poll: Poll,
    pub(crate) clock: Clock,
    shutdown: Shutdown,
}

impl Core {
    pub(crate) fn new(shutdown: &Shutdown) -> Result<Core, HostError> {
        let poll = Poll::new().map_err(crate::error::system("epoll"))?;
        let core = Core { poll, clock: Clock::start(), shutdown: shutdown.clone() };
        core.watch(shutdown.fd(), SHUTDOWN)?;
        Ok(core)
    }

    pub(crate) fn registry(&self) -> &Registry {
        self.poll.registry()
    }

    /// Wakes the loop whenever `fd` is signalled.
    pub(crate) fn watch(&self, fd: std::os::fd::RawFd, token: Token) -> Result<(), HostError> {
        let registered = self.registry().register(&mut SourceFd(&fd), token, Interest::READABLE);
        registered.map_err(crate::error::system("epoll"))
    }
}

pub(crate) struct Driver<R: Role> {
    core: Core,
    peers: Peers,
    machine: R::Machine,
    role: R,
    meter: Meter,
    suspensions: Suspensions,
    /// Packets received by the last second.
    received: u64,
    was_busy: bool,
}

impl<R: Role> Driver<R> {
    pub(crate) fn new(core: Core, peers: Peers, machine: R::Machine, role: R, meter: Meter) -> Driver<R> {
        let suspensions = Suspensions::new();
        Driver { core, peers, machine, role, meter, suspensions, received: 0, was_busy: true }
    }

    /// Turns until all is done, the shutdown is requested, or an effect fails.
    pub(crate) fn run(mut self) -> Result<(), HostError> {
        let (mut events, mut inbox, mut fx) = (Events::with_capacity(EVENTS_MAX), Vec::new(), Vec::new());
        let mut stop_by: Option<Time> = None;
        loop {
            self.wait(&mut events, &inbox, stop_by)?;
            let now = self.core.clock.now();
            if self.gather(&events, now, &mut inbox) {
                stop_by = Some(now + FAREWELL_MAX);
            }
            // Read anew: a lease is judged by a moment after the questions came, however long the process was stopped.
            let now = self.core.clock.now();
            self.step(now, &mut inbox, &mut fx);
            self.hand_out(now, &mut inbox, &mut fx)?;
            if self.meter.is_due(now) {
                self.rest();
                if let Some(pause) = self.suspensions.take() {
                    tracing::warn!(
                        seconds = pause.as_secs_f64(),
                        "the machine was suspended; leases have ended with that time"
                    );
                }
                refusals::report();
                self.meter.transport(self.peers.counters(), self.peers.peers_up());
                self.role.measure(&self.machine, now, &mut self.meter);
            }
            if let Some(error) = self.role.breaks_off(now) {
                return Err(error);
            }
            if self.role.is_done() || stop_by.is_some_and(|limit| self.role.farewell() || now >= limit) {
                return Ok(());
            }
        }
    }

    /// Gives memory back in the first quiet second after a busy one.
    fn rest(&mut self) {
        let received = self.peers.counters().received;
        let is_busy = received - self.received > QUIET_PACKETS;
        if self.was_busy && !is_busy {
            trim_pool();
        }
        (self.received, self.was_busy) = (received, is_busy);
    }

    /// Sleeps until something happens, or is due.
    fn wait(
        &mut self,
        events: &mut Events,
        inbox: &[Event<R>],
        stop_by: Option<Time>,
    ) -> Result<(), HostError> {
        let at_once = !inbox.is_empty() || self.peers.has_unread() || self.role.has_more();
        let timeout = if at_once {
            Duration::ZERO
        } else {
            let until = self.next_deadline(stop_by);
            self.role.sleep(until);
            until.since(self.core.clock.now())
        };
        match self.core.poll.poll(events, Some(timeout)) {
            // io_uring interrupts the wait to complete requests.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => events.clear(),
            Err(error) => return Err(crate::error::system("epoll")(error)),
            Ok(()) => {}
        }
        Ok(())
    }

    fn next_deadline(&self, stop_by: Option<Time>) -> Time {
        let machine = self.machine.deadline().map_or(Time::MAX, |(time, _)| time);
        machine
            .min(self.peers.deadline())
            .min(self.role.deadline())
            .min(self.meter.due())
            .min(stop_by.unwrap_or(Time::MAX))
    }

    /// Collects events for the machine. `true` when the shutdown is requested.
    fn gather(&mut self, events: &Events, now: Time, inbox: &mut Vec<Event<R>>) -> bool {
        let mut is_shutdown = false;
        for event in events {
            match event.token() {
                SHUTDOWN => is_shutdown = self.core.shutdown.is_requested(),
                // It wakes the loop; every turn takes what was computed.
                WORKERS => {}
                Token(number) if number / transport::TOKENS == 1 => {
                    self.peers.ready(event, now, &mut |event| inbox.extend(looked_at::<R>(event)));
                }
                _ => self.role.ready(event, &mut World { now, peers: &mut self.peers, inbox }),
            }
        }
        self.peers.read_on(now, &mut |event| inbox.extend(looked_at::<R>(event)));
        self.peers.tick(now, &mut |event| inbox.extend(looked_at::<R>(event)));
        self.role.gather(&mut World { now, peers: &mut self.peers, inbox });
        is_shutdown
    }

    fn step(&mut self, now: Time, inbox: &mut Vec<Event<R>>, fx: &mut Vec<Effect<R>>) {
        for event in inbox.drain(..) {
            self.machine.step(now, event, fx);
        }
        if self.machine.deadline().is_some_and(|(time, _)| time <= now) {
            self.machine.wake(now, fx);
        }
        self.machine.settle(now, fx);
    }

    fn hand_out(
        &mut self,
        now: Time,
        inbox: &mut Vec<Event<R>>,
        fx: &mut Vec<Effect<R>>,
    ) -> Result<(), HostError> {
        let mut world = World { now, peers: &mut self.peers, inbox };
        for effect in fx.drain(..) {
            self.role.effect(effect, &mut world)?;
        }
        self.role.flush(&mut world);
        self.peers.flush(now, &mut |event| inbox.extend(looked_at::<R>(event)));
        Ok(())
    }
}

/// What a machine is told. It refuses by itself what nobody may say to it (`roles::admission`), and the log says so here.
fn looked_at<R: Role>(event: PeerEvent) -> Option<Event<R>> {
    if let PeerEvent::Packet { from, packet } = &event
        && let Err(why) = admit_anyone(R::ROLE, *from, &packet.message)
    {
        refused(|| tracing::warn!(%from, "a message was not looked at: {why}"));
    }
    R::peer_event(event)
}

/// A number that no other run draws.
pub(crate) fn draw_id() -> u64 {
    let mut bytes = [0; 8];
    // SAFETY: eight valid bytes. The call fails only on kernels without it.
    let count = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    assert_eq!(count, 8, "the kernel has no random numbers");
    u64::from_le_bytes(bytes)
}
