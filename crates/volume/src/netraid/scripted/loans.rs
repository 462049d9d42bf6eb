//! The number under which a gateway draws its stamps is lent for a while.

use super::Script;
use super::busy::{stamp_of, write};
use base::{ClusterTime, Loan};
use core::time::Duration;
use rules::counters::Counter;

fn until(seconds: u64) -> Loan {
    Loan { from: ClusterTime::FIRST, until: ClusterTime::FIRST + Duration::from_secs(seconds) }
}

#[test]
fn a_write_waits_until_its_gateways_number_is_lent_for_longer() {
    let mut script = Script::new("raid1x3", 0b111, 0);
    script.coordinator.lend(ClusterTime::FIRST, 3, until(1));
    script.pass(Duration::from_secs(2));
    script.begin(write());
    assert!(script.asked().is_empty(), "there is no stamp");
    script.pass(Duration::from_secs(5));
    assert!(script.asked().is_empty());
    assert!(script.counted(Counter::WriteWaitedForALoan) > 10);
    script.coordinator.lend(ClusterTime::FIRST, 3, until(60));
    let asked = script.wait();
    assert_eq!(Script::slots(&asked), [0, 1, 2]);
    assert!(until(60).covers(stamp_of(&asked[0]).time()));
}

#[test]
fn a_gateway_that_is_lent_another_number_draws_later_stamps_under_that() {
    let mut script = Script::new("raid1x3", 0b111, 0);
    script.begin(write());
    let first = stamp_of(&script.asked()[0]);
    script.coordinator.lend(ClusterTime::FIRST, 9, until(60));
    script.begin(write());
    let stamp = stamp_of(&script.asked()[0]);
    assert_eq!((first.writer(), stamp.writer(), stamp > first), (3, 9, true));
}
