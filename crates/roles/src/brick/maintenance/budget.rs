//! What maintenance may cost others: bytes a second, and the spans that are looked at together.

use super::bucket::Bucket;
use base::Time;
use wire::Care;

/// The most spans of catching up at a time; and while clients wait here.
const SPANS_MAX: usize = 16;
pub(super) const SPANS_MAX_UNDER_LOAD: usize = 4;
/// The most spans of a scrub at a time that nobody waits for; and while clients wait here.
const SCRUB_SPANS_MAX_UNASKED: usize = 4;
const SCRUB_SPANS_MAX_UNDER_LOAD: usize = 1;

/// The budget: a rate for bytes fetched from others, and one for bytes checked on the brick's own disks.
pub(super) struct Budget {
    care: Care,
    fetching: Bucket,
    checking: Bucket,
    /// How many requests of clients wait here.
    load: usize,
}

impl Budget {
    pub(super) fn new(care: Care, now: Time) -> Budget {
        Budget {
            fetching: Bucket::new(care.rebuild_bytes_per_second, now),
            checking: Bucket::new(care.scrub_bytes_per_second, now),
            care,
            load: 0,
        }
    }

    pub(super) fn care(&self) -> Care {
        self.care
    }

    /// Other rates from now on. A scrub that somebody waits for may go as fast as a rebuild.
    pub(super) fn set_care(&mut self, care: Care, is_scrub_urgent: bool) {
        self.fetching.set_rate(care.rebuild_bytes_per_second);
        self.checking.set_rate(if is_scrub_urgent {
            care.rebuild_bytes_per_second
        } else {
            care.scrub_bytes_per_second
        });
        self.care = care;
    }

    pub(super) fn set_load(&mut self, load: usize) {
        self.load = load;
    }

    pub(super) fn catch_up_spans_max(&self) -> usize {
        if self.load > 0 { SPANS_MAX_UNDER_LOAD } else { SPANS_MAX }
    }

    pub(super) fn scrub_spans_max(&self, is_urgent: bool) -> usize {
        if self.load > 0 {
            SCRUB_SPANS_MAX_UNDER_LOAD
        } else if is_urgent {
            SPANS_MAX
        } else {
            SCRUB_SPANS_MAX_UNASKED
        }
    }

    pub(super) fn fetching(&mut self) -> &mut Bucket {
        &mut self.fetching
    }

    pub(super) fn checking(&mut self) -> &mut Bucket {
        &mut self.checking
    }

    pub(super) fn may_fetch_at(&self) -> Time {
        self.fetching.opens_at()
    }

    pub(super) fn may_check_at(&self) -> Time {
        self.checking.opens_at()
    }
}
