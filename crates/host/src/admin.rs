//! One command to the directory, for tools: connect, ask, wait.

use crate::address::Address;
use crate::clock::Clock;
use crate::transport::{PeerEvent, Peers};
use crate::turn::draw_id;
use crate::{AdminOptions, HostError, identity};
use base::{NodeId, Time};
use mio::{Events, Poll};
use std::io;
use std::time::Duration;
use wire::{AdminError, AdminReply, AdminRequest, Message};

/// An unanswered command is asked again after this time; commands are idempotent.
const AGAIN: Duration = Duration::from_millis(500);

/// Asks the directory, and waits for its answer.
///
/// # Errors
/// [`HostError::Admin`] when the directory refuses, or is of a release that does not know the command; [`HostError::Timeout`] when it does not answer.
pub fn admin_call(options: &AdminOptions, request: AdminRequest) -> Result<AdminReply, HostError> {
    Call::new(options, request)?.run(options)
}

struct Call {
    poll: Poll,
    peers: Peers,
    clock: Clock,
    operation: u64,
    request: AdminRequest,
    ask_at: Time,
    until: Time,
}

impl Call {
    fn new(options: &AdminOptions, request: AdminRequest) -> Result<Call, HostError> {
        let poll = Poll::new().map_err(crate::error::system("epoll"))?;
        let me = NodeId::Client(identity::of_command(&options.node.security, draw_id())?);
        let peers = Peers::new(me, options.node.cluster, &options.node.security, poll.registry(), draw_id())?;
        let clock = Clock::start();
        let start = clock.now();
        let (operation, until) = (draw_id(), start + options.timeout);
        Ok(Call { poll, peers, clock, operation, request, ask_at: start, until })
    }

    fn run(mut self, options: &AdminOptions) -> Result<AdminReply, HostError> {
        let address: Address = options.directory.parse()?;
        let (mut events, mut inbox) = (Events::with_capacity(16), Vec::new());
        self.peers.learn(NodeId::Directory, &address, self.clock.now(), &mut |event| inbox.push(event));
        while self.clock.now() < self.until {
            self.wait(&mut events)?;
            let now = self.clock.now();
            for event in &events {
                self.peers.ready(event, now, &mut |event| inbox.push(event));
            }
            self.peers.read_on(now, &mut |event| inbox.push(event));
            self.peers.tick(now, &mut |event| inbox.push(event));
            for event in inbox.drain(..) {
                if let Some(result) = self.take(now, event) {
                    return Ok(result?);
                }
            }
            if now >= self.ask_at && self.peers.is_up(NodeId::Directory) {
                self.ask(now);
                if self.peers.counters().unspoken > 0 {
                    return Err(unknown(options).into());
                }
            }
            self.peers.flush(now, &mut |event| inbox.push(event));
        }
        Err(self.timeout(options))
    }

    fn wait(&mut self, events: &mut Events) -> Result<(), HostError> {
        let timeout = self.peers.deadline().min(self.until).since(self.clock.now());
        match self.poll.poll(events, Some(timeout)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => other.map_err(crate::error::system("epoll"))?,
        }
        Ok(())
    }

    fn take(&mut self, now: Time, event: PeerEvent) -> Option<Result<AdminReply, AdminError>> {
        match event {
            // By the time of this turn, in which it is asked: by a later one it would be with the next.
            PeerEvent::Up(_) => self.ask_at = now,
            PeerEvent::Packet { packet, .. } => match packet.message {
                Message::AdminDone { operation, result } if operation == self.operation => {
                    return Some(result);
                }
                _ => {}
            },
            PeerEvent::Down(_) | PeerEvent::Gone(_) | PeerEvent::Certified { .. } => {}
        }
        None
    }

    fn ask(&mut self, now: Time) {
        let message = Message::Admin { operation: self.operation, request: self.request.clone() };
        self.peers.send(NodeId::Directory, &message.into());
        self.ask_at = now + AGAIN;
    }

    fn timeout(&self, options: &AdminOptions) -> HostError {
        let hint =
            self.peers.last_failure(NodeId::Directory).map_or_else(String::new, |why| format!(": {why}"));
        HostError::Timeout { address: options.directory.clone(), seconds: options.timeout.as_secs(), hint }
    }
}

/// The command came with a later release than the directory's.
fn unknown(options: &AdminOptions) -> AdminError {
    AdminError::NotNow(format!(
        "the directory at '{}' is of an earlier release, which does not know this command: upgrade it first",
        options.directory
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NodeOptions, Security};
    use base::ClusterId;

    /// The moment was read after the turn's own: each command waited for the next timer.
    #[test]
    fn it_is_asked_in_the_turn_in_which_the_connection_stands() {
        let node = NodeOptions { cluster: ClusterId([4; 16]), security: Security::Plain, metrics: None };
        let timeout = Duration::from_secs(1);
        let options = AdminOptions { node, directory: "127.0.0.1:1".to_owned(), timeout };
        let mut call = Call::new(&options, AdminRequest::STATUS).unwrap();
        let now = call.clock.now();
        call.ask_at = now + AGAIN;
        assert_eq!(call.take(now, PeerEvent::Up(NodeId::Directory)), None);
        assert!(now >= call.ask_at);
    }
}
