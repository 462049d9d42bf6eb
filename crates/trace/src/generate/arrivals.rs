//! When requests come: gaps drawn one by one, or, for the b-model, a time span halved again and again with its requests.

use super::description::{Arrivals, Description};
use base::Rng;

/// A clock that ticks at each arrival. Times in nanoseconds from the start, never falling.
pub(super) struct Clock {
    random: Rng,
    now_ns: f64,
    gap_ns: f64,
    kind: Kind,
}

enum Kind {
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
    /// Spans still to be halved, the earliest last, and what is left of the one that is not halved further.
    BModel {
        bias: f64,
        slice_ns: f64,
        spans: Vec<Span>,
        slice: Span,
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
        let duration_ns = description.duration_s * 1e9;
        let gap_ns = duration_ns / description.requests.max(1) as f64;
        let kind = match description.arrivals {
            Arrivals::Even => Kind::Even,
            Arrivals::Poisson => Kind::Poisson,
            Arrivals::Hyperexponential { cv } => {
                let square = cv * cv;
                Kind::Hyper { share: (1.0 + libm::sqrt((square - 1.0) / (square + 1.0))) / 2.0 }
            }
            Arrivals::OnOff { on_s, off_s } => {
                let (on_ns, off_ns) = (on_s * 1e9, off_s * 1e9);
                Kind::OnOff { on_ns, off_ns, left_ns: exponential(&mut random, on_ns) }
            }
            Arrivals::BModel { bias, slice_s } => {
                let whole = Span { start_ns: 0.0, end_ns: duration_ns, requests: description.requests };
                Kind::BModel { bias, slice_ns: slice_s * 1e9, spans: vec![whole], slice: Span::default() }
            }
        };
        Clock { random, now_ns: 0.0, gap_ns, kind }
    }

    pub(super) fn tick(&mut self) -> u64 {
        let (random, gap_ns) = (&mut self.random, self.gap_ns);
        let gap = match &mut self.kind {
            Kind::Even => gap_ns,
            Kind::Poisson => exponential(random, gap_ns),
            Kind::Hyper { share } => {
                let share = if random.f64() < *share { *share } else { 1.0 - *share };
                exponential(random, gap_ns / (2.0 * share))
            }
            Kind::OnOff { on_ns, off_ns, left_ns } => {
                let mut gap = exponential(random, gap_ns * *on_ns / (*on_ns + *off_ns));
                let mut silent = 0.0;
                while gap > *left_ns {
                    gap -= *left_ns;
                    silent += *left_ns + exponential(random, *off_ns);
                    *left_ns = exponential(random, *on_ns);
                }
                *left_ns -= gap;
                silent + gap
            }
            Kind::BModel { bias, slice_ns, spans, slice } => {
                while slice.requests == 0 {
                    let Some(span) = spans.pop() else { break };
                    halve(span, *bias, *slice_ns, random, spans, slice);
                }
                within(slice, random) - self.now_ns
            }
        };
        self.now_ns += gap.max(0.0);
        self.now_ns as u64
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
