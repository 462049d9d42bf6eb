//! Objects for a tool: a gateway within its process, which puts and reads what the tool wants, and ends with it.

use crate::error::system;
use crate::gateway::{System, event_of};
use crate::metrics::Meter;
use crate::shutdown::{event_fd, signal_event};
use crate::transport::PeerEvent;
use crate::turn::{Driver, Role, WORKERS, World};
use crate::workers::Workers;
use crate::{HostError, NodeOptions, Shutdown};
use base::Time;
use objects::object::{ObjectNews, ObjectWish};
use roles::gateway::{Gateway, GatewayConfig, GatewayEffect, GatewayEvent, Serves};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

/// Wakes the loop in which a user's objects are put and read, from any thread.
#[derive(Clone, Debug)]
pub struct Waker(Arc<OwnedFd>);

impl Waker {
    /// The user is asked what it wants now.
    pub fn wake(&self) {
        signal_event(self.0.as_raw_fd());
    }
}

/// Somebody who puts and reads objects. None of this may take long: the cluster waits meanwhile.
pub trait ObjectUser {
    /// What it wants at first, each under a tag of its own.
    fn begin(&mut self, waker: &Waker) -> Vec<(u64, ObjectWish)>;
    /// What it wants now, beside what follows from news. It is asked whenever something has happened.
    fn gather(&mut self) -> Vec<(u64, ObjectWish)> {
        Vec::new()
    }
    /// What is told of one of its wishes, and what it wants then.
    fn told(&mut self, tag: u64, news: ObjectNews) -> Vec<(u64, ObjectWish)>;
    /// Whether it wants nothing more.
    fn is_done(&self) -> bool;
    /// The end is asked for from outside: what is to be called off.
    fn interrupt(&mut self) -> Vec<(u64, ObjectWish)>;
}

/// Does what `user` wants, until it wants nothing more; when the shutdown is requested it is asked to end.
///
/// # Errors
/// When an address or a certificate cannot be used.
pub fn run_objects<U: ObjectUser>(
    node: &NodeOptions,
    directory: &str,
    shutdown: &Shutdown,
    user: &mut U,
) -> Result<(), HostError> {
    let System { core, id, peers, workers, now } = System::start(node, directory, shutdown)?;
    let config = GatewayConfig {
        id,
        name: String::new(),
        address: String::new(),
        serves: Serves::Nobody,
        beside: None,
    };
    let meter = Meter::new(node.metrics)?;
    let waker = Waker(Arc::new(event_fd().map_err(system("an event"))?));
    core.watch(waker.0.as_raw_fd(), WORKERS)?;
    let role = ObjectRole { user, workers, waker, wishes: Vec::new(), has_begun: false };
    Driver::new(core, peers, Gateway::new(config, now), role, meter).run()
}

struct ObjectRole<'a, U> {
    user: &'a mut U,
    workers: Workers,
    waker: Waker,
    /// What the user wants and the machine has not heard.
    wishes: Vec<(u64, ObjectWish)>,
    has_begun: bool,
}

impl<U: ObjectUser> Role for ObjectRole<'_, U> {
    type Machine = Gateway;
    const ROLE: roles::admission::Role = roles::admission::Role::Gateway;

    fn peer_event(event: PeerEvent) -> Option<GatewayEvent> {
        event_of(event)
    }

    fn effect(&mut self, effect: GatewayEffect, world: &mut World<'_, Self>) -> Result<(), HostError> {
        match effect {
            GatewayEffect::Send { to, packet } => world.peers.send(to, &packet),
            GatewayEffect::Compute { number, computation } => self.workers.compute(number, computation),
            GatewayEffect::Address { node, address } => world.learn(node, &address),
            GatewayEffect::Object { tag, news } => {
                self.wishes.extend(self.user.told(tag, news));
            }
            // It opens no volume.
            GatewayEffect::Opened { .. }
            | GatewayEffect::Listed { .. }
            | GatewayEffect::Reply { .. }
            | GatewayEffect::Segment { .. }
            | GatewayEffect::Changed { .. } => {}
        }
        Ok(())
    }

    fn gather(&mut self, world: &mut World<'_, Self>) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.wishes.extend(self.user.begin(&self.waker));
        }
        self.wishes.extend(self.user.gather());
        let wishes = self.wishes.drain(..);
        world.inbox.extend(wishes.map(|(tag, wish)| GatewayEvent::Object { tag, wish: Box::new(wish) }));
        world.inbox.extend(self.workers.take().map(|(number, made)| GatewayEvent::Computed { number, made }));
    }

    fn has_more(&self) -> bool {
        !self.wishes.is_empty() || self.workers.has_more()
    }

    fn deadline(&self) -> Time {
        // The first turn comes at once.
        if self.has_begun { Time::MAX } else { Time::ZERO }
    }

    fn is_done(&self) -> bool {
        self.user.is_done()
    }

    fn farewell(&mut self) -> bool {
        if !self.user.is_done() {
            self.wishes.extend(self.user.interrupt());
        }
        self.user.is_done()
    }
}
