//! The numbers of writers, and until when each is lent: the stamps of a gateway's writes differ from others' by its number.
//!
//! A number is lent for a period of the cluster's time ([`base::Loan`]), and its gateway draws no stamp of any other time. It is lent again
//! only once the directory has stored that the period is over; the next one begins after that. So no stamp is drawn twice, whoever is
//! paused, cut off or forgotten, and whatever clocks do. What is lent is stored before it is told.
//!
//! A loan's length is the time for which its gateway has had the number, 10 minutes at least and a day at most, and an hour more: a stamp may be so far
//! ahead of the cluster's time. It is made longer when what is left, without that hour, is less than half of what a new one would get. So a gateway goes
//! on writing without a directory for an hour, and half as long as it has been there. Gateways that come and go have a number for little more than
//! an hour.

use super::event::{DirectoryConfig, Put};
use super::gateways::Registration;
use super::records::{LoanRecord, Records};
use base::{ClusterClock, ClusterTime, Loan, StampClock};
use core::ops::Range;
use core::time::Duration;
use rules::promises::Rules;

pub(super) const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// The most numbers that one gateway gets. Gateways of earlier releases may ask for several.
const NUMBERS_MAX: u16 = 64;

/// By how much a directory that does not know what was lent takes the time forward from what bricks know: every loan is over then. Bricks may have been away,
/// and know a time of before.
pub(super) const FORGOTTEN: Duration = Duration::from_secs(30 * 24 * 3600);

fn length(config: &DirectoryConfig, from: ClusterTime, time: ClusterTime) -> Duration {
    time.since(from).clamp(config.shortest_loan, LONGEST)
}

/// Whether it is to be made longer.
pub(super) fn is_due(config: &DirectoryConfig, loan: Loan, time: ClusterTime) -> bool {
    loan.until < time + (ClusterClock::AHEAD + length(config, loan.from, time) / 2)
}

/// Lends a gateway its number for longer; or the one that it says it holds, or the next one, if nobody else may draw stamps under it. Returns the first
/// number and its loan; none where all are lent.
pub(super) fn lend(
    records: &mut Records,
    config: &DirectoryConfig,
    rules: &dyn Rules,
    time: ClusterTime,
    said: &Registration,
) -> Option<(u16, Loan)> {
    let its = records.loans.iter().find(|(_, record)| record.gateway == said.gateway);
    let (first, count, from) = match its {
        Some((first, record)) => (*first, record.count, record.loan.from),
        None => {
            let count = said.writers.clamp(1, NUMBERS_MAX);
            let fits = |first: &u16| *first <= StampClock::WRITERS - count;
            let held = said.held.filter(fits).filter(|first| in_the_way(records, *first, count).is_none());
            let first = held.or_else(|| free_run(records, count, rules))?;
            if held.is_none() {
                records.counts.next_writer = (first + count) % StampClock::WRITERS;
            }
            (first, count, time)
        }
    };
    let until = time + (ClusterClock::AHEAD + length(config, from, time));
    let loan = Loan { from, until };
    records.loans.insert(first, LoanRecord { gateway: said.gateway, count, loan });
    Some((first, loan))
}

/// The next run that can be lent: from the next number on, and then from 0.
fn free_run(records: &Records, count: u16, rules: &dyn Rules) -> Option<u16> {
    let next = records.counts.next_writer;
    let first_in = |range: Range<u16>| {
        let mut first = range.start;
        while first < range.end.min(StampClock::WRITERS - count + 1) {
            match in_the_way(records, first, count) {
                Some(behind) if !rules.lends(false) => first = behind,
                Some(_) | None => return Some(first),
            }
        }
        None
    };
    first_in(next..StampClock::WRITERS).or_else(|| first_in(0..next))
}

/// Where a run of numbers cannot be lent, the first number behind what is in its way.
fn in_the_way(records: &Records, first: u16, count: u16) -> Option<u16> {
    let (lent, record) = records.loans.range(..first.saturating_add(count)).next_back()?;
    Some(lent + record.count).filter(|behind| *behind > first)
}

/// Forgets loans that were over at a time which is stored together with that: their numbers can be lent again.
pub(super) fn forget_ended(records: &mut Records, stored: ClusterTime) -> Vec<Put> {
    let ended = records.loans.iter().filter(|(_, record)| record.loan.until < stored);
    let ended: Vec<u16> = ended.map(|(first, _)| *first).collect();
    let forget = |first| {
        records.loans.remove(&first);
        records.put_loan(first)
    };
    ended.into_iter().map(forget).collect()
}
