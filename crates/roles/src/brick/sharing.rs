//! Streams at a brick: what each of its disks hears of what streams were served at the others.

use base::StreamId;
use rules::fair::{Cost, Ledger};
use wire::Service;

/// Where a brick's disks are not: what gateways tell of.
const ELSEWHERE: usize = usize::MAX;

/// What the disks of a brick know of each other. Gateways know bricks alone.
#[derive(Debug)]
pub(super) struct Sharing {
    cost: Cost,
    /// None where there is one disk, which hears all.
    between: Option<Ledger<usize>>,
}

impl Sharing {
    /// Between so many disks.
    pub(super) fn new(disks: usize, cost: Cost) -> Sharing {
        Sharing { cost, between: (disks > 1).then(Ledger::default) }
    }

    /// A request for so many blocks comes to a disk: for the disk.
    pub(super) fn arrive(&mut self, service: Service, disk: usize, blocks: u32) -> Service {
        let Some(between) = &mut self.between else { return service };
        between.served(service.stream, ELSEWHERE, u64::from(service.delay));
        let delay = between.charge(service.stream, disk, u64::from(self.cost.of(blocks)));
        Service { delay: u32::try_from(delay).unwrap_or(u32::MAX), ..service }
    }

    /// A question came that no disk is asked: what it says of its stream counts, and nothing is charged.
    pub(super) fn hear(&mut self, service: Service) -> Service {
        let Some(between) = &mut self.between else { return service };
        between.served(service.stream, ELSEWHERE, u64::from(service.delay));
        Service { delay: 0, ..service }
    }

    /// A stream was served elsewhere: what a disk is to hear of that, and of the other disks.
    pub(super) fn elsewhere(&mut self, service: Service, disk: usize) -> Service {
        let Some(between) = &mut self.between else { return service };
        let unheard = u32::try_from(between.tell(service.stream, disk)).unwrap_or(u32::MAX);
        Service { delay: service.delay.saturating_add(unheard), ..service }
    }

    /// A request that came was not served there.
    pub(super) fn unserved(&mut self, stream: StreamId, disk: usize, blocks: u32) {
        if let Some(between) = &mut self.between {
            between.refund(stream, disk, u64::from(self.cost.of(blocks)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_of_a_brick_hear_of_each_other_and_of_the_rest_once() {
        let service = |delay| Service { stream: StreamId(7), delay };
        let mut two = Sharing::new(2, Cost::BYTES);
        let mut arrive = |delay, disk, blocks| two.arrive(service(delay), disk, blocks).delay;
        assert_eq!((arrive(0, 0, 3), arrive(0, 1, 5)), (0, 0), "each for the first time");
        assert_eq!((arrive(10, 0, 1), arrive(0, 1, 1)), (15, 11));
        two.unserved(StreamId(7), 1, 1);
        assert_eq!(two.arrive(service(0), 0, 1), service(0));
        assert_eq!((two.elsewhere(service(4), 0), two.elsewhere(service(4), 1)), (service(4), service(5)));
        assert_eq!(two.hear(service(20)), service(0));
        assert_eq!((two.elsewhere(service(0), 0), two.elsewhere(service(0), 1)), (service(20), service(20)));
        let mut one = Sharing::new(1, Cost::BYTES);
        assert_eq!(one.arrive(service(9), 0, 1), service(9));
    }
}
