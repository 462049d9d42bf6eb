//! Time as the machines get it: the Unix epoch at the start plus what a clock counted since that goes on while the machine is
//! suspended. A lease that ended meanwhile has ended.

use base::Time;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Never runs backwards, and a jump of the wall clock after the start changes nothing.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch_ns: u64,
    start_ns: u64,
}

impl Clock {
    /// Reads the wall clock, for the only time. One that stands before 1970 counts as 1970.
    pub fn start() -> Clock {
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { epoch_ns: epoch.as_nanos() as u64, start_ns: read_ns(libc::CLOCK_BOOTTIME) }
    }

    pub fn now(&self) -> Time {
        Time(self.epoch_ns) + Duration::from_nanos(read_ns(libc::CLOCK_BOOTTIME) - self.start_ns)
    }
}

/// Says in the log what a virtual machine's clock may do, where it is known that this is one.
pub(crate) fn warn_of_a_virtual_machine() {
    if is_virtual() {
        tracing::warn!(
            "this is a virtual machine: its clock may stand while it is paused, and leases with it; volumes made or set with \
             `--reads confirmed` do not count on clocks (docs/operations/paused-machines.md)"
        );
    }
}

/// Whether the processor says that a hypervisor runs it; other processors do not say.
fn is_virtual() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        const HYPERVISOR: u32 = 1 << 31;
        core::arch::x86_64::__cpuid(1).ecx & HYPERVISOR != 0
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// For how long the machine has been suspended. Two clocks of the kernel say so, of which one stands meanwhile. Of a virtual machine that is
/// paused from outside both may stand.
#[derive(Debug)]
pub(crate) struct Suspensions {
    /// At most so long up to the last that was told.
    told: Duration,
}

/// What is shorter costs nobody a lease.
const NOTICED: Duration = Duration::from_millis(50);

impl Suspensions {
    pub(crate) fn new() -> Suspensions {
        Suspensions { told: suspended().at_most }
    }

    /// How long the machine was suspended since the last call, if it was.
    pub(crate) fn take(&mut self) -> Option<Duration> {
        self.take_of(suspended())
    }

    fn take_of(&mut self, total: Suspended) -> Option<Duration> {
        let since = total.at_least.saturating_sub(self.told);
        (since > NOTICED).then(|| {
            self.told = total.at_most;
            since
        })
    }
}

/// For how long the machine has been suspended since it was started. A thread may have to wait between two readings of clocks.
#[derive(Clone, Copy, Debug)]
struct Suspended {
    at_least: Duration,
    at_most: Duration,
}

fn suspended() -> Suspended {
    let before = read_ns(libc::CLOCK_MONOTONIC);
    let goes_on = read_ns(libc::CLOCK_BOOTTIME);
    let after = read_ns(libc::CLOCK_MONOTONIC);
    let beyond = |stands: u64| Duration::from_nanos(goes_on.saturating_sub(stands));
    Suspended { at_least: beyond(after), at_most: beyond(before) }
}

/// By the C library, so that tests can put another clock in the place of the kernel's.
fn read_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place is valid, and the kernel has both clocks since 2.6.39.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    assert_eq!(result, 0, "the kernel has no such clock");
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_with_the_clock_that_counts_suspension() {
        let (clock, before) = (Clock::start(), read_ns(libc::CLOCK_BOOTTIME));
        let (shown, after) = (clock.now(), read_ns(libc::CLOCK_BOOTTIME));
        let passed = shown.0 - clock.epoch_ns;
        assert!(passed <= after - clock.start_ns && passed >= before - clock.start_ns);
    }

    #[test]
    fn a_suspension_is_noticed_once() {
        let second = Duration::from_secs;
        let mut suspensions = Suspensions { told: second(20) };
        let mut take = |at_least, at_most| suspensions.take_of(Suspended { at_least, at_most });
        assert_eq!(take(second(20), second(20)), None);
        assert_eq!(take(second(20) + NOTICED, second(21)), None);
        assert_eq!(take(second(27), second(28)), Some(second(7)));
        assert_eq!(take(second(28), second(28)), None, "a thread waited between two readings");
    }
}
