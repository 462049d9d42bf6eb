//! Figures for Prometheus. The loop counts in plain integers of its own and publishes them once a second; a thread
//! beside it answers whoever asks. What is on a page comes from each daemon's `measure`.

mod page;

use crate::admission::{Bound, Bounds, HELLO_MAX};
use crate::threads::{self, Caller};
use crate::transport::TransportCounters;
use crate::{HostError, refusals};
use base::Time;
use page::{Buckets, Page, Value};
use rules::Counters;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wire::StreamUse;

const PERIOD: Duration = Duration::from_secs(1);
/// Upper bounds of the latency buckets, in seconds: 16 us to 8 s by powers of two.
const LATENCY_BUCKETS: usize = 20;
const LATENCY_BUCKET_MIN_US: u64 = 16;
const REQUEST_BYTES_MAX: usize = 8 << 10;
/// Readers at a time: a few Prometheus servers, each with a request or two. Nobody shows who it is.
const BOUNDS: Bounds = Bounds {
    strangers: Bound { in_all: 32, per_origin: 8, gives_way: true },
    clients: Bound { in_all: 0, per_origin: 0, gives_way: false },
    members: Bound { in_all: 0, per_origin: 0, gives_way: false },
};

/// Publishes a daemon's figures.
#[derive(Clone)]
pub(crate) struct Meter {
    page: Option<Arc<Mutex<Page>>>,
    due: Time,
}

impl Meter {
    /// Listens on `address`, if there is one.
    pub(crate) fn new(address: Option<SocketAddr>) -> Result<Meter, HostError> {
        Ok(Meter { page: address.map(serve).transpose()?, due: Time::ZERO })
    }

    /// When it wants figures next.
    pub(crate) fn due(&self) -> Time {
        self.due
    }

    /// Whether it wants figures now.
    pub(crate) fn is_due(&mut self, now: Time) -> bool {
        let is_due = now >= self.due;
        if is_due {
            self.due = now + PERIOD;
        }
        is_due
    }

    /// A total since the start.
    pub(crate) fn counter(&mut self, name: &'static str, value: u64) {
        self.publish(|page| page.set(name, None, Value::Counter(value as f64)));
    }

    /// What a machine counts, by name.
    pub(crate) fn counters(&mut self, counters: &Counters) {
        self.publish(|page| {
            for (event, count) in counters.all() {
                let label = Some(("event", event.text().to_owned()));
                page.set("brickwork_protocol_events_total", label, Value::Counter(count as f64));
            }
        });
    }

    /// A value of now.
    pub(crate) fn gauge(&mut self, name: &'static str, value: f64) {
        self.publish(|page| page.set(name, None, Value::Gauge(value)));
    }

    /// A value of now of one disk.
    pub(crate) fn disk(&mut self, name: &'static str, disk: usize, value: f64) {
        self.publish(|page| page.set(name, Some(("disk", disk.to_string())), Value::Gauge(value)));
    }

    /// What a stream was served at this brick.
    pub(crate) fn stream(&mut self, stream: &str, used: &StreamUse) {
        let turn = Duration::from_micros(used.turn_us).as_secs_f64();
        let figures = [
            ("brickwork_stream_served_units_total", Value::Counter(used.served as f64)),
            ("brickwork_stream_requests_total", Value::Counter(used.requests as f64)),
            ("brickwork_stream_waiting", Value::Gauge(f64::from(used.waiting))),
            ("brickwork_stream_turn_seconds_total", Value::Counter(turn)),
        ];
        self.publish(|page| {
            for (name, value) in figures {
                page.set(name, Some(("stream", stream.to_owned())), value);
            }
        });
    }

    /// Latencies as a histogram.
    pub(crate) fn latency(&mut self, name: &'static str, latency: &Latency) {
        self.histogram(name, latency.cumulative(), latency.sum);
    }

    /// A histogram: how many were up to each bound, in order ([`Duration::MAX`] for all), and the sum.
    pub(crate) fn histogram(
        &mut self,
        name: &'static str,
        cumulative: impl Iterator<Item = (Duration, u64)>,
        sum: Duration,
    ) {
        self.publish(|page| {
            let buckets = Buckets { cumulative: cumulative.collect(), sum };
            page.set(name, None, Value::Histogram(buckets));
        });
    }

    /// What the transport counts.
    pub(crate) fn transport(&mut self, counters: TransportCounters, peers_up: usize) {
        self.gauge("brickwork_peers_up", peers_up as f64);
        self.counter("brickwork_peer_packets_received_total", counters.received);
        self.counter("brickwork_peer_packets_sent_total", counters.sent);
        self.counter("brickwork_peer_bytes_received_total", counters.received_bytes);
        self.counter("brickwork_peer_bytes_sent_total", counters.sent_bytes);
        self.counter("brickwork_peer_packets_dropped_total", counters.dropped);
        self.counter("brickwork_peer_packets_unroutable_total", counters.unroutable);
        self.counter("brickwork_peer_packets_unspoken_total", counters.unspoken);
        self.counter("brickwork_peer_packets_too_long_total", counters.too_long);
        self.counter("brickwork_peer_connections_total", counters.connections);
        self.counter("brickwork_peer_connections_broken_total", counters.broken);
        self.counter("brickwork_refusals_total", refusals::total());
    }

    fn publish(&self, set: impl FnOnce(&mut Page)) {
        if let Some(page) = &self.page {
            set(&mut page.lock().expect("no holder panics"));
        }
    }
}

/// Latencies, counted by powers of two.
#[derive(Default)]
pub(crate) struct Latency {
    counts: [u64; LATENCY_BUCKETS],
    sum: Duration,
}

impl Latency {
    pub(crate) fn record(&mut self, latency: Duration) {
        let steps = latency.as_micros() as u64 / LATENCY_BUCKET_MIN_US;
        let bucket = (u64::BITS - steps.leading_zeros()) as usize;
        self.counts[bucket.min(LATENCY_BUCKETS - 1)] += 1;
        self.sum += latency;
    }

    fn cumulative(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        self.counts.iter().enumerate().scan(0, |total, (bucket, count)| {
            *total += count;
            let is_last = bucket + 1 == LATENCY_BUCKETS;
            let bound =
                if is_last { Duration::MAX } else { Duration::from_micros(LATENCY_BUCKET_MIN_US << bucket) };
            Some((bound, *total))
        })
    }
}

fn serve(address: SocketAddr) -> Result<Arc<Mutex<Page>>, HostError> {
    let failed = |why: String| HostError::Listen { address: format!("{address} (metrics)"), why };
    let page = Arc::new(Mutex::new(Page::default()));
    let told = Arc::clone(&page);
    let listener = TcpListener::bind(address).map_err(|error| failed(error.to_string()))?;
    let answer = move |caller: Caller| {
        if let Err(error) = answer(caller, &told) {
            tracing::debug!(%error, "a metrics request failed");
        }
    };
    threads::serve("metrics", listener, BOUNDS, HELLO_MAX, answer)
        .map_err(|error| failed(error.to_string()))?;
    Ok(page)
}

fn answer(mut caller: Caller, page: &Mutex<Page>) -> io::Result<()> {
    let mut request = [0; REQUEST_BYTES_MAX];
    let mut length = 0;
    while !request[..length].windows(4).any(|end| end == b"\r\n\r\n") {
        match caller.read(&mut request[length..])? {
            0 => return Ok(()),
            count => length += count,
        }
    }
    let (status, body) = match request.starts_with(b"GET /metrics ") || request.starts_with(b"GET / ") {
        true => ("200 OK", page.lock().expect("no holder panics").render()),
        false => ("404 Not Found", "ask for /metrics\n".to_owned()),
    };
    write!(
        caller,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}
