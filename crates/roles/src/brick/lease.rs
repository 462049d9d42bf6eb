//! A brick's lease: until when it may trust its views, and when it asks the directory for more.
//!
//! The lease runs from the moment at which the heartbeat was *sent*. So it ends here before the directory, which counts from
//! the moment at which it received the heartbeat, believes that it has ended. Between two heartbeats it is renewed, as often as the directory says.
//! [`super::membership`] asks here.

use base::Time;
use core::time::Duration;

/// Between two heartbeats.
pub(super) const HEARTBEAT: Duration = Duration::from_millis(400);

/// The lease, the next heartbeat, and the next renewal.
#[derive(Debug)]
pub(super) struct Lease {
    until: Time,
    /// When it was given back: what was sent until then brings none any more.
    given_back: Option<Time>,
    next_heartbeat: Time,
    /// After how long it is renewed; zero where heartbeats are enough, or where none is held.
    renew_every: Duration,
    next_renewal: Time,
}

impl Lease {
    /// None yet; the first heartbeat is due at `now`.
    pub(super) fn new(now: Time) -> Lease {
        Lease {
            until: Time::ZERO,
            given_back: None,
            next_heartbeat: now,
            renew_every: Duration::ZERO,
            next_renewal: Time::MAX,
        }
    }

    pub(super) fn is_held(&self, now: Time) -> bool {
        now < self.until
    }

    /// Whether a lease that was held has ended; says so once.
    pub(super) fn takes_end(&mut self, now: Time) -> bool {
        let has_ended = self.until != Time::ZERO && !self.is_held(now);
        if has_ended {
            self.until = Time::ZERO;
        }
        has_ended
    }

    /// The directory answered the heartbeat of `sent`. An answer to a heartbeat of the future is no answer.
    pub(super) fn extend(&mut self, now: Time, sent: Time, lease_ns: u64) {
        let is_given_back = self.given_back.is_some_and(|given_back| sent <= given_back);
        if lease_ns > 0 && sent <= now && !is_given_back {
            self.until = self.until.max(sent + Duration::from_nanos(lease_ns));
        }
    }

    /// The directory wants it back. What was asked for before brings none either: its answer may be on its way.
    pub(super) fn give_back(&mut self, now: Time) {
        (self.until, self.given_back) = (Time::ZERO, Some(now));
        self.renew_every(now, Duration::ZERO);
    }

    pub(super) fn heartbeat_due(&self) -> Time {
        self.next_heartbeat
    }

    pub(super) fn renewal_due(&self) -> Time {
        self.next_renewal
    }

    /// The lease is to be renewed after so long; zero where it is not.
    pub(super) fn renew_every(&mut self, now: Time, every: Duration) {
        if every != self.renew_every {
            self.renew_every = every;
            self.on_renewal_sent(now);
        }
    }

    /// A renewal goes out, or a heartbeat, which is one.
    pub(super) fn on_renewal_sent(&mut self, now: Time) {
        self.next_renewal = if self.renew_every.is_zero() { Time::MAX } else { now + self.renew_every };
    }

    /// The next heartbeat goes out no later than `at`.
    pub(super) fn heartbeat_by(&mut self, at: Time) {
        self.next_heartbeat = self.next_heartbeat.min(at);
    }

    /// The next heartbeat goes out at `at`, whatever was due before.
    pub(super) fn heartbeat_at(&mut self, at: Time) {
        self.next_heartbeat = at;
    }

    /// A heartbeat goes out.
    pub(super) fn on_heartbeat_sent(&mut self, now: Time) {
        self.next_heartbeat = now + HEARTBEAT;
        self.on_renewal_sent(now);
    }
}
