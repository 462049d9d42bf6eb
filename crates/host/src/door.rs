//! A listener that goes on when descriptors run out. Who is let in is decided in [`crate::admission`].
//!
//! The system tells of a waiting connection once. A process that has no descriptor for it is told nothing more until somebody else
//! calls. So a caller is then taken with a descriptor in reserve: somebody inside goes for it, or it is hung up on and learns that at
//! once. A door that could not even do that tries again by itself.

use crate::HostError;
use crate::address::Address;
use crate::admission::Origin;
use crate::descriptors::{Reserve, is_exhausted};
use crate::refusals::refused;
use crate::socket::{Listener, Socket};
use base::Time;
use mio::{Registry, Token};
use std::io;
use std::time::Duration;

/// Callers taken in one turn of the loop: a flood of them must not keep those inside from being served.
const TURN_CALLERS: usize = 64;
/// After so long a door that could not take a connection tries again.
const AGAIN: Duration = Duration::from_millis(100);

/// What is at the door.
pub(crate) enum Knock {
    Caller(Socket, Origin),
    /// It was taken with the last descriptor: let somebody go for it, or drop it.
    LastCaller(Socket, Origin),
    /// Nobody now.
    Nobody,
}

#[derive(Debug)]
pub(crate) struct Door {
    listener: Listener,
    reserve: Reserve,
    /// When to look by itself.
    again: Option<Time>,
}

impl Door {
    /// As [`Listener::open`].
    pub(crate) fn open(
        address: &Address,
        group: Option<libc::gid_t>,
        registry: &Registry,
        token: Token,
    ) -> Result<Door, HostError> {
        let listener = Listener::open(address, group, registry, token)?;
        let mut reserve = Reserve::default();
        reserve.restock();
        Ok(Door { listener, reserve, again: None })
    }

    /// Where it listens, with the port that was drawn.
    pub(crate) fn address(&self) -> io::Result<Address> {
        self.listener.address()
    }

    /// When it wants to look by itself.
    pub(crate) fn deadline(&self) -> Time {
        self.again.unwrap_or(Time::MAX)
    }

    /// Callers of one turn, each with [`Door::next`].
    pub(crate) fn turn(&mut self) -> std::ops::Range<usize> {
        self.again = None;
        0..TURN_CALLERS
    }

    /// Who is next. After the last of a turn's callers it looks again in the next turn.
    pub(crate) fn next(&mut self, number: usize, now: Time) -> Knock {
        self.reserve.restock();
        if number + 1 == TURN_CALLERS {
            self.again = Some(now);
        }
        match self.accept() {
            Ok(Some((socket, origin))) => Knock::Caller(socket, origin),
            Ok(None) => self.nobody(),
            Err(error) if !is_exhausted(&error) => {
                refused(|| tracing::warn!(%error, "cannot take a connection; trying again"));
                self.try_again(now)
            }
            // The system says so without a look at who waits.
            Err(_) if self.reserve.spend() => match self.accept() {
                Ok(Some((socket, origin))) => Knock::LastCaller(socket, origin),
                Ok(None) => self.nobody(),
                Err(_) => self.try_again(now),
            },
            Err(_) => self.try_again(now),
        }
    }

    fn try_again(&mut self, now: Time) -> Knock {
        self.again = Some(now + AGAIN);
        Knock::Nobody
    }

    fn nobody(&mut self) -> Knock {
        self.again = None;
        Knock::Nobody
    }

    fn accept(&self) -> io::Result<Option<(Socket, Origin)>> {
        loop {
            match self.listener.accept() {
                Err(error) if is_of_the_caller(&error) => {}
                other => return other,
            }
        }
    }
}

/// Says that a caller was hung up on for want of a descriptor.
pub(crate) fn turned_away() {
    refused(|| {
        tracing::warn!(
            "no file descriptor is left, and a caller was turned away: raise the limit of open files"
        )
    });
}

/// Whether it tells of one caller that is gone, and the next may be well.
fn is_of_the_caller(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted)
}
