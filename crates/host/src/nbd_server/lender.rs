//! Memory for requests that exceed their session's share: lent in the order of asking, up to a bound over all clients.
//!
//! A client that waits for a loan is not read, and nothing of its request is kept but the header. A request within its
//! session's share needs no loan, so that clients with small requests never wait for those with large ones.

use base::Time;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// What all loans together may come to: two requests of the protocol's usual maximum of 32 MiB.
const LOANS_BYTES_MAX: usize = 64 << 20;
/// A client that has kept a loan for so long while others wait, and whose turn it is to send or to read, is let go.
const LOAN_MAX: Duration = Duration::from_secs(30);

#[derive(Default)]
pub(super) struct Lender {
    lent_bytes: usize,
    loans: BTreeMap<u64, Loan>,
    waiting: VecDeque<Wish>,
}

struct Loan {
    bytes: usize,
    since: Time,
}

struct Wish {
    session: u64,
    bytes: usize,
}

impl Lender {
    /// Queues the wish of a session that has no loan and waits for none.
    pub(super) fn ask(&mut self, session: u64, bytes: usize) {
        self.waiting.push_back(Wish { session, bytes });
    }

    /// Lends to the session that has waited longest, if its wish fits. A single wish beyond the bound fits alone.
    pub(super) fn grant(&mut self, now: Time) -> Option<u64> {
        let wish = self.waiting.front()?;
        if self.lent_bytes > 0 && self.lent_bytes + wish.bytes > LOANS_BYTES_MAX {
            return None;
        }
        let Wish { session, bytes } = self.waiting.pop_front()?;
        self.lent_bytes += bytes;
        self.loans.insert(session, Loan { bytes, since: now });
        Some(session)
    }

    /// Takes the loan of a session back, and forgets its wish.
    pub(super) fn end(&mut self, session: u64) {
        self.waiting.retain(|wish| wish.session != session);
        self.lent_bytes -= self.loans.remove(&session).map_or(0, |loan| loan.bytes);
    }

    pub(super) fn has_lent(&self, session: u64) -> bool {
        self.loans.contains_key(&session)
    }

    /// Sessions that have kept their loan for long while others wait for one.
    pub(super) fn overdue(&self, now: Time) -> Vec<u64> {
        if self.waiting.is_empty() {
            return Vec::new();
        }
        let late = self.loans.iter().filter(|(_, loan)| now.since(loan.since) > LOAN_MAX);
        late.map(|(&session, _)| session).collect()
    }

    pub(super) fn lent_bytes(&self) -> usize {
        self.lent_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: usize = 32 << 20;

    #[test]
    fn loans_are_bounded_and_given_in_order() {
        let mut lender = Lender::default();
        (1..=4).for_each(|session| lender.ask(session, LARGE));
        lender.ask(5, 4096);
        let granted: Vec<u64> = std::iter::from_fn(|| lender.grant(Time::ZERO)).collect();
        assert_eq!((granted, lender.lent_bytes()), (vec![1, 2], LOANS_BYTES_MAX), "nobody overtakes");
        lender.end(4);
        lender.end(1);
        let granted: Vec<u64> = std::iter::from_fn(|| lender.grant(Time::ZERO)).collect();
        assert_eq!(granted, [3], "the wish of 4 went with it");
        assert_eq!(lender.overdue(Time::ZERO + LOAN_MAX), []);
        assert_eq!(lender.overdue(Time::ZERO + 2 * LOAN_MAX), [2, 3], "5 waits");
        [2, 3].into_iter().for_each(|session| lender.end(session));
        assert_eq!(lender.grant(Time::ZERO), Some(5));
        assert_eq!(lender.overdue(Time::ZERO + 2 * LOAN_MAX), [], "nobody waits");
    }
}
