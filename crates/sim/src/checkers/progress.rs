//! `progress`: a write that was refused because its stamp was too old comes again with a later one, whatever the clocks of machines
//! say.
//!
//! Watches what gateways send, and what reaches them: an answer that is on its way tells nobody of a later stamp. That two writers refuse each other is no fault: their stamps are milliseconds apart. A
//! refusal is *for the clock* where the stamp that was there first is later by more than that although its write was sent earlier (a
//! write that waits for seconds may be overtaken by whoever comes meanwhile); of these a part of a request may meet a few, since
//! several members may know several later stamps.

use super::Violation;
use base::{GroupId, HashMap, NodeId, RequestId, Stamp};
use core::time::Duration;
use wire::{Message, PrepareOutcome};

const NAME: &str = "progress";
/// Stamps of writers that meet are closer to each other than this; so long takes a message and what is waited between two attempts.
const MEETING: Duration = Duration::from_secs(1);
/// So often a part of a request may be refused for the clock. The first refusal tells the writer of a stamp that is later than its
/// own; each further one takes another gateway that has heard of a yet later time of the cluster meanwhile.
pub const REFUSALS_MAX: usize = 3;

/// One part of a client's request, in one group.
type Part = (RequestId, GroupId, u64);

/// What was seen so far.
#[derive(Default)]
pub struct Progress {
    /// What each outstanding question of a gateway is about.
    asked: HashMap<(NodeId, u64), (Part, Stamp)>,
    /// The stamps under which a part was refused for the clock, for each gateway through which its client tried.
    refused: HashMap<(NodeId, Part), Vec<Stamp>>,
    /// In which place each stamp was first sent.
    sent: HashMap<Stamp, u64>,
}

impl Progress {
    /// Looks at a message as it is sent.
    pub fn watch(&mut self, from: NodeId, message: &Message) {
        if let Message::Prepare { operation, write, request, part, .. } = message {
            self.asked.insert((from, *operation), ((*request, write.group, *part), write.stamp));
            let place = self.sent.len() as u64;
            self.sent.entry(write.stamp).or_insert(place);
        }
    }

    /// Looks at a message as it reaches somebody.
    pub fn hear(&mut self, to: NodeId, message: &Message) -> Result<(), Violation> {
        let Message::Prepared { operation, outcome: PrepareOutcome::Late { newest }, .. } = message else {
            return Ok(());
        };
        let Some((part, stamp)) = self.asked.get(&(to, *operation)).copied() else { return Ok(()) };
        self.on_late((to, part), stamp, *newest)
    }

    fn on_late(
        &mut self,
        (gateway, part): (NodeId, Part),
        stamp: Stamp,
        newest: Stamp,
    ) -> Result<(), Violation> {
        // A stamp that was never sent to a brick is of the world before.
        let overtaken = self.sent.get(&newest) > self.sent.get(&stamp);
        if overtaken || newest.time().since(stamp.time()) < MEETING {
            return Ok(());
        }
        let refused = self.refused.entry((gateway, part)).or_default();
        if !refused.contains(&stamp) {
            refused.push(stamp);
        }
        if refused.len() <= REFUSALS_MAX {
            return Ok(());
        }
        let (RequestId { client, sequence }, group, block) = part;
        Err(Violation::new(
            NAME,
            format!(
                "request {sequence} of {client}, in {group} from block {block} on, was refused through {gateway} under {refused:?}, the last time \
                 for {newest:?}: its gateway draws no later stamps than it is told of"
            ),
        ))
    }
}

/// No gateway of the torture lies about its stamps: none is so far ahead of the cluster's time that a brick refuses it.
pub fn check_far_ahead(refused: u64) -> Result<(), Violation> {
    if refused == 0 {
        return Ok(());
    }
    Err(Violation::new(
        NAME,
        format!("{refused} stamps of honest gateways were refused for being far ahead of the cluster's time"),
    ))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use base::{ClientId, ClusterClock, ClusterTime, Loan, StampClock, Time, ViewNumber, VolumeId};
    use wire::{Change, Order, Scope, Service, Span, Wait, WriteId};

    const GATEWAY: NodeId = NodeId::Gateway(base::GatewayId(1));

    /// A question of a write of one block, in view 1 of the first group.
    pub(in crate::checkers) fn prepare(operation: u64, stamp: Stamp) -> Message {
        let span = Span { volume: VolumeId(1), lba: 0, count: 1 };
        Message::Prepare {
            operation,
            view: ViewNumber(1),
            write: WriteId { group: GroupId(1), span, stamp, scope: Scope::Row, link: None },
            change: Change::Data,
            base: None,
            want_delta: false,
            request: RequestId { client: ClientId(1), sequence: 1 },
            floor: 0,
            part: 0,
            service: Service::default(),
            order: Order::default(),
        }
    }

    fn draw(clock: &mut StampClock, now: Time) -> Stamp {
        clock.draw(now).expect("its number is lent to it")
    }

    /// A request is refused for `newest` each time that it comes, under stamps `apart` of each other.
    fn refused(times: u64, newest: Stamp, apart: Duration) -> Result<(), Violation> {
        let (mut progress, now) = (Progress::default(), Time(0));
        let mut clock = StampClock::new(1, Loan::UNBOUNDED, ClusterClock::new(now, ClusterTime::FIRST));
        (0..times as u32).try_for_each(|time| {
            let stamp = draw(&mut clock, now + apart * time);
            progress.watch(GATEWAY, &prepare(u64::from(time), stamp));
            let outcome = PrepareOutcome::Late { newest };
            let operation = u64::from(time);
            progress.hear(GATEWAY, &Message::Prepared { operation, outcome, wait: Wait::default() })
        })
    }

    #[test]
    fn who_comes_again_with_earlier_stamps_is_found_and_who_meets_others_is_not() {
        let at = |ahead| {
            let clock = ClusterClock::new(Time(0), ClusterTime::FIRST + ahead);
            draw(&mut StampClock::new(2, Loan::UNBOUNDED, clock), Time(0))
        };
        let hour = at(Duration::from_secs(3600));
        assert_eq!(refused(REFUSALS_MAX as u64, hour, Duration::from_millis(50)), Ok(()));
        let found = refused(REFUSALS_MAX as u64 + 1, hour, Duration::from_millis(50)).expect_err("too often");
        assert!(found.what.contains("draws no later stamps"), "{found}");
        assert_eq!(refused(20, at(Duration::from_millis(300)), Duration::from_millis(10)), Ok(()));
    }

    #[test]
    fn who_is_overtaken_while_it_waits_is_not_refused_for_its_clock() {
        let mut progress = Progress::default();
        let mut clock = StampClock::new(1, Loan::UNBOUNDED, ClusterClock::new(Time(0), ClusterTime::FIRST));
        for attempt in 0..10 {
            let now = Time(0) + Duration::from_secs(10) * attempt;
            let (mine, overtaking) = (draw(&mut clock, now), draw(&mut clock, now + Duration::from_secs(5)));
            let (mine_at, other_at) = (2 * u64::from(attempt), 2 * u64::from(attempt) + 1);
            progress.watch(GATEWAY, &prepare(mine_at, mine));
            progress.watch(GATEWAY, &prepare(other_at, overtaking));
            let outcome = PrepareOutcome::Late { newest: overtaking };
            let answer = Message::Prepared { operation: mine_at, outcome, wait: Wait::default() };
            assert_eq!(progress.hear(GATEWAY, &answer), Ok(()));
        }
    }
}
