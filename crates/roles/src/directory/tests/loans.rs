//! For how long gateways have their numbers, and that no two have one at a time.

use super::*;
use base::{ClusterClock, ClusterTime, Loan, StampClock};
use core::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);
/// Longer than the loan of a gateway that has just come.
const A_LOAN: Duration = Duration::from_secs(3600 + 601);

impl Stage {
    fn registers(&mut self, gateway: u64, held: Option<u16>) -> Vec<DirectoryEffect> {
        let register = Message::Register {
            gateway: GatewayId(gateway),
            address: "10.0.0.1:7004".to_owned(),
            writers: 1,
            held,
            beside: None,
            speaks: wire::Version::CURRENT,
            time: ClusterTime::default(),
            sent: Time::ZERO,
            name: String::new(),
            opened: Vec::new(),
        };
        let mut fx = Vec::new();
        let from = NodeId::Gateway(GatewayId(gateway));
        self.directory.step(self.now, DirectoryEvent::Packet { from, packet: register.into() }, &mut fx);
        fx
    }

    /// What a gateway is told that registers, once that is stored.
    fn lent_where_held(&mut self, gateway: u64, held: Option<u16>) -> Option<(u16, Loan)> {
        for _ in 0..2 {
            let fx = self.registers(gateway, held);
            self.follow(fx);
        }
        told(&self.registers(gateway, held))
    }

    fn lent(&mut self, gateway: u64) -> Option<(u16, Loan)> {
        self.lent_where_held(gateway, None)
    }

    /// So much time passes, in one step.
    fn skip(&mut self, time: Duration) {
        self.now += time;
        self.run(1000);
    }

    fn time(&self) -> ClusterTime {
        self.directory.desk.cluster.time.time(self.now)
    }

    fn loans(&self) -> usize {
        self.directory.desk.cluster.records.loans.len()
    }
}

fn told(fx: &[DirectoryEffect]) -> Option<(u16, Loan)> {
    fx.iter().find_map(|effect| match effect {
        DirectoryEffect::Send { packet, .. } => match &packet.message {
            Message::Registered { first_writer, loan, .. } => Some((*first_writer, (*loan)?)),
            _ => None,
        },
        _ => None,
    })
}

#[test]
fn a_number_is_lent_again_only_for_a_time_after_its_last_loan() {
    let mut stage = Stage::new(1);
    stage.directory.desk.cluster.records.counts.next_writer = StampClock::WRITERS - 1;
    let (last, loan) = stage.lent(7).expect("lent");
    assert_eq!((last, stage.lent(8).expect("lent").0), (StampClock::WRITERS - 1, 0));
    // Both are silent for long, and the numbers come round.
    stage.run(20_000);
    stage.directory.desk.cluster.records.counts.next_writer = StampClock::WRITERS - 1;
    assert_eq!(stage.lent(9).expect("lent").0, 1, "the others may still draw stamps");
    stage.skip(A_LOAN);
    stage.directory.desk.cluster.records.counts.next_writer = StampClock::WRITERS - 1;
    let (again, later) = stage.lent(10).expect("lent");
    assert_eq!(again, last);
    assert!(later.from > loan.until, "{later:?} {loan:?}");
}

#[test]
fn where_all_numbers_are_lent_a_gateway_waits_for_one() {
    let mut stage = Stage::new(1);
    for gateway in 0..u64::from(StampClock::WRITERS) {
        let fx = stage.registers(gateway, None);
        stage.follow(fx);
    }
    assert_eq!(stage.lent(100_000), None);
    // One of them is still there.
    let (its, before) = stage.lent(5).expect("lent");
    stage.skip(A_LOAN - Duration::from_secs(400));
    assert_eq!(stage.lent(100_000), None, "they were silent for an hour");
    assert_eq!(stage.lent(5).map(|(number, loan)| (number, loan.until > before.until)), Some((its, true)));
    stage.skip(Duration::from_secs(1000));
    assert!(stage.lent(100_000).is_some());
    assert_eq!(stage.loans(), 2, "those that are over are forgotten");
}

#[test]
fn a_loan_lasts_as_long_again_as_its_gateway_has_been_there() {
    let mut stage = Stage::new(1);
    let rest = |stage: &mut Stage| {
        let (_, loan) = stage.lent(7).expect("lent");
        loan.until.since(stage.time()).saturating_sub(ClusterClock::AHEAD)
    };
    let from = stage.lent(7).expect("lent").1.from;
    for minutes in 1..=300_u64 {
        stage.skip(Duration::from_secs(60));
        let age = stage.time().since(from);
        let rest = rest(&mut stage);
        assert!(
            rest >= age.max(Duration::from_secs(600)) / 2 - Duration::from_secs(1),
            "{rest:?} after {minutes} minutes"
        );
    }
    for _ in 0..100 {
        stage.skip(2 * HOUR);
        assert!(stage.lent(7).is_some());
    }
    assert!(rest(&mut stage) <= 24 * HOUR);
    assert_eq!(stage.lent(7).expect("lent").1.from, from, "it is one loan");
}

#[test]
fn a_directory_that_restarts_knows_what_is_lent() {
    let mut stage = Stage::new(1);
    let first = stage.lent(7).expect("lent");
    stage.restart();
    stage.run(2000);
    stage.directory.desk.cluster.records.counts.next_writer = first.0;
    assert_ne!(stage.lent(8).expect("lent").0, first.0);
    let again = stage.lent_where_held(7, Some(first.0)).expect("lent");
    assert_eq!((again.0, again.1.from), (first.0, first.1.from));
}

/// The directory of an earlier release gave numbers without an end.
#[test]
fn a_gateway_goes_on_under_the_number_that_it_holds_unless_another_has_it() {
    let mut stage = Stage::new(1);
    assert_eq!(stage.lent_where_held(7, Some(77)).expect("lent").0, 77);
    let other = stage.lent_where_held(8, Some(77)).expect("lent").0;
    assert_ne!(other, 77);
    assert!(stage.lent_where_held(9, Some(u16::MAX)).expect("lent").0 < StampClock::WRITERS);
}

#[test]
fn nothing_is_told_to_be_lent_before_it_is_stored() {
    let mut stage = Stage::new(1);
    let (number, before) = stage.lent(7).expect("lent");
    stage.now += Duration::from_secs(400);
    let fx = stage.registers(7, None);
    assert_eq!(told(&fx), Some((number, before)));
    assert_eq!(told(&stage.registers(7, None)), Some((number, before)), "it is being stored");
    stage.follow(fx);
    let (_, later) = told(&stage.registers(7, None)).expect("lent");
    assert!(later.until > before.until);
}
