//! When requests come: gaps drawn one by one, or, for the b-model, a time span halved again and again with its requests. A trace of
//! several intervals is one span for each: gaps have the mean of their span.

use super::description::{Arrivals, Description, Interval};
use base::Rng;

/// A clock that ticks at each arrival. Times in nanoseconds from the start, never falling.
pub(super) struct Clock {
    random: Rng,
    now_ns: f64,
    /// Spans whose requests are still to come, the earliest last.
    spans: Vec<Span>,
    kind: Kind,
}

enum Kind {
    Gaps {
        gaps: Gaps,
        mean_ns: f64,
        /// Requests still to come with this mean.
        left: u64,
    },
    /// Spans are halved until they are slices; `slice` is what is left of the one that is not halved further.
    BModel { bias: f64, slice_ns: f64, slice: Span },
}

/// How the gaps between requests are drawn.
enum Gaps {
    Even,
    Poisson,
    /// Two exponential phases with balanced means.
    Hyper {
        share: f64,
    },
    /// Requests come only while the source is on.
    OnOff {
        on_ns: f64,
        off_ns: f64,
        left_ns: f64,
    },
}

#[derive(Clone, Copy, Default)]
struct Span {
    start_ns: f64,
    end_ns: f64,
    requests: u64,
}

impl Clock {
    pub(super) fn new(description: &Description, mut random: Rng) -> Clock {
        let gaps = match description.arrivals {
            Arrivals::Even => Gaps::Even,
            Arrivals::Poisson => Gaps::Poisson,
            Arrivals::Hyperexponential { cv } => {
                let square = cv * cv;
                Gaps::Hyper { share: (1.0 + libm::sqrt((square - 1.0) / (square + 1.0))) / 2.0 }
            }
            Arrivals::OnOff { on_s, off_s } => {
                let (on_ns, off_ns) = (on_s * 1e9, off_s * 1e9);
                Gaps::OnOff { on_ns, off_ns, left_ns: exponential(&mut random, on_ns) }
            }
            Arrivals::BModel { bias, slice_s } => {
                let kind = Kind::BModel { bias, slice_ns: slice_s * 1e9, slice: Span::default() };
                return Clock { random, now_ns: 0.0, spans: spans(description), kind };
            }
        };
        let kind = Kind::Gaps { gaps, mean_ns: 0.0, left: 0 };
        Clock { random, now_ns: 0.0, spans: spans(description), kind }
    }

    /// When the next request comes. There have to be no more ticks than requests.
    pub(super) fn tick(&mut self) -> u64 {
        match &mut self.kind {
            Kind::Gaps { gaps, mean_ns, left } => {
                if *left == 0
                    && let Some(span) = self.spans.pop()
                {
                    (*mean_ns, *left) = ((span.end_ns - span.start_ns) / span.requests as f64, span.requests);
                    // Random gaps may have ended the span before early or late.
                    self.now_ns = self.now_ns.max(span.start_ns);
                }
                *left = left.saturating_sub(1);
                self.now_ns += gaps.draw(*mean_ns, &mut self.random);
            }
            Kind::BModel { bias, slice_ns, slice } => {
                while slice.requests == 0 {
                    let Some(span) = self.spans.pop() else { break };
                    halve(span, *bias, *slice_ns, &mut self.random, &mut self.spans, slice);
                }
                self.now_ns += (within(slice, &mut self.random) - self.now_ns).max(0.0);
            }
        }
        self.now_ns as u64
    }
}

/// The description's intervals, the earliest last.
fn spans(description: &Description) -> Vec<Span> {
    let mut end_ns = 0.0;
    let span = |interval: Interval| {
        let start_ns = end_ns;
        end_ns += interval.duration_s * 1e9;
        Span { start_ns, end_ns, requests: interval.requests }
    };
    let spans = description.parts().into_iter().map(span).filter(|span| span.requests > 0);
    let mut spans: Vec<Span> = spans.collect();
    spans.reverse();
    spans
}

impl Gaps {
    fn draw(&mut self, mean_ns: f64, random: &mut Rng) -> f64 {
        match self {
            Gaps::Even => mean_ns,
            Gaps::Poisson => exponential(random, mean_ns),
            Gaps::Hyper { share } => {
                let share = if random.f64() < *share { *share } else { 1.0 - *share };
                exponential(random, mean_ns / (2.0 * share))
            }
            Gaps::OnOff { on_ns, off_ns, left_ns } => {
                let mut gap = exponential(random, mean_ns * *on_ns / (*on_ns + *off_ns));
                let mut silent = 0.0;
                while gap > *left_ns {
                    gap -= *left_ns;
                    silent += *left_ns + exponential(random, *off_ns);
                    *left_ns = exponential(random, *on_ns);
                }
                *left_ns -= gap;
                silent + gap
            }
        }
    }
}

/// Gives `bias` of the span's requests to one half of it, drawn, unless it is short enough to be a slice.
fn halve(span: Span, bias: f64, slice_ns: f64, random: &mut Rng, spans: &mut Vec<Span>, slice: &mut Span) {
    if span.end_ns - span.start_ns <= slice_ns || span.requests <= 1 {
        *slice = span;
        return;
    }
    let middle_ns = (span.start_ns + span.end_ns) / 2.0;
    let more = libm::floor(span.requests as f64 * bias + random.f64()) as u64;
    let more = more.min(span.requests);
    let early = if random.bool() { more } else { span.requests - more };
    let halves = [
        Span { start_ns: middle_ns, requests: span.requests - early, ..span },
        Span { end_ns: middle_ns, requests: early, ..span },
    ];
    spans.extend(halves.into_iter().filter(|half| half.requests > 0));
}

/// The earliest of the slice's requests, which lie anywhere in it.
fn within(slice: &mut Span, random: &mut Rng) -> f64 {
    let left = slice.requests.max(1) as f64;
    slice.start_ns += (slice.end_ns - slice.start_ns) * (1.0 - libm::pow(1.0 - random.f64(), 1.0 / left));
    slice.requests = slice.requests.saturating_sub(1);
    slice.start_ns
}

fn exponential(random: &mut Rng, mean: f64) -> f64 {
    -mean * libm::log(1.0 - random.f64())
}
