//! What a volume has unless its owner says otherwise: it follows the devices. Where the way of a head decides how long an
//! access takes, a read waits at all holders and goes to the nearest ([`super::contest`]); where it does not, two packets do
//! as well ([`super::quickest`]).
//!
//! What the devices are is seen from how long they take: a head that moves and waits for a platter takes milliseconds
//! nearly each time, a device without one does so only when it is overrun.

use super::contest::Contest;
use super::load::Load;
use super::policy::{Course, Next, Part, Plan, Policy, Told};
use super::quickest::Quickest;
use base::{BrickId, HashMap, Time};

/// Accesses that are longer than this are those of a head,
const POSITIONED_NS: u64 = 1_500_000;
/// where so many of a hundred are.
const POSITIONED_PERCENT: u32 = 75;
/// Accesses after which it is judged anew.
const WINDOW: u32 = 64;

/// What is known of a brick's devices.
#[derive(Clone, Copy, Debug, Default)]
struct Device {
    is_positioned: bool,
    accesses: u32,
    long: u32,
}

#[derive(Debug)]
pub struct Usual {
    contest: Contest,
    quickest: Quickest,
    devices: HashMap<BrickId, Device>,
}

impl Usual {
    /// With these two.
    pub fn new(contest: Contest, quickest: Quickest) -> Usual {
        Usual { contest, quickest, devices: HashMap::default() }
    }

    /// Whether a read is for the bricks to decide: the devices of all of them position. (One may be a slow brick.)
    fn is_for_bricks(&self, part: &Part<'_>) -> bool {
        let is_positioned = |brick| self.devices.get(brick).is_some_and(|device| device.is_positioned);
        part.holders.iter().all(|(_, brick)| is_positioned(brick))
    }
}

impl Policy for Usual {
    fn one(&mut self, now: Time, part: &Part<'_>, load: &Load) -> Option<u8> {
        self.quickest.one(now, part, load)
    }

    fn first(&mut self, now: Time, part: &Part<'_>, load: &mut Load) -> Option<Plan> {
        match self.is_for_bricks(part) {
            true => self.contest.first(now, part, load),
            false => self.quickest.first(now, part, load),
        }
    }

    fn next(&mut self, now: Time, part: &Part<'_>, course: &Course, load: &Load) -> Next {
        match self.is_for_bricks(part) {
            true => self.contest.next(now, part, course, load),
            false => self.quickest.next(now, part, course, load),
        }
    }

    fn answered(&mut self, told: &Told) {
        self.contest.answered(told);
        self.quickest.answered(told);
        let Some(device_ns) = told.device_ns else { return };
        let device = self.devices.entry(told.brick).or_default();
        device.accesses += 1;
        device.long += u32::from(device_ns > POSITIONED_NS);
        if device.accesses >= WINDOW {
            let is_positioned = device.long * 100 >= device.accesses * POSITIONED_PERCENT;
            *device = Device { is_positioned, accesses: 0, long: 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribute::pace::Kind;
    use crate::distribute::policy::First;
    use crate::distribute::policy::PartId;
    use crate::distribute::shortest_queue::ShortestQueue;

    const HOLDERS: [(u8, BrickId); 2] = [(0, BrickId(1)), (1, BrickId(2))];

    fn usual() -> Usual {
        Usual::new(Contest::rescued(ShortestQueue::default()), Quickest::default())
    }

    fn contends(policy: &mut Usual) -> bool {
        let part = Part { id: PartId::default(), address: 0, kind: Kind::Read, holders: &HOLDERS };
        let plan = policy.first(Time::ZERO, &part, &mut Load::default()).expect("two holders");
        matches!(plan.first, First::Contest { .. })
    }

    fn tell(policy: &mut Usual, brick: u32, device_us: Option<u64>) {
        let (brick, device_ns) = (BrickId(brick), device_us.map(|us| us * 1_000));
        let told = Told { brick, response_ns: 300_000, service_ns: 300_000, queue: 0, device_ns };
        (0..WINDOW).for_each(|_| policy.answered(&told));
    }

    #[test]
    fn reads_contend_where_all_devices_position() {
        let mut policy = usual();
        assert!(!contends(&mut policy), "nothing is known");
        tell(&mut policy, 1, Some(6_000));
        tell(&mut policy, 2, Some(100));
        assert!(!contends(&mut policy), "one may be a slow brick");
        tell(&mut policy, 2, Some(6_000));
        assert!(contends(&mut policy));
        tell(&mut policy, 2, None);
        assert!(contends(&mut policy), "what memory answers says nothing of the device");
        tell(&mut policy, 1, Some(150));
        assert!(!contends(&mut policy), "it has another device now");
    }
}
