//! Figures for Prometheus. The loop counts in plain integers of its own and publishes them once a second; a thread
//! beside it answers whoever asks. What is on a page comes from each daemon's `measure`.

use crate::admission::{Bound, Bounds, HELLO_MAX};
use crate::threads::{self, Caller};
use crate::transport::TransportCounters;
use crate::{HostError, refusals};
use base::Time;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use proto::Counters;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
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
    recorder: Option<Arc<PrometheusRecorder>>,
    due: Time,
}

impl Meter {
    /// Listens on `address`, if there is one.
    pub(crate) fn new(address: Option<SocketAddr>) -> Result<Meter, HostError> {
        let recorder = address.map(serve).transpose()?.map(Arc::new);
        Ok(Meter { recorder, due: Time::ZERO })
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
        self.publish(|| metrics::counter!(name).absolute(value));
    }

    /// What a machine counts, by name.
    pub(crate) fn counters(&mut self, counters: &Counters) {
        self.publish(|| {
            for (event, count) in counters.all() {
                metrics::counter!("brickwork_protocol_events_total", "event" => event.text()).absolute(count);
            }
        });
    }

    /// A value of now.
    pub(crate) fn gauge(&mut self, name: &'static str, value: f64) {
        self.publish(|| metrics::gauge!(name).set(value));
    }

    /// A value of now of one disk.
    pub(crate) fn disk(&mut self, name: &'static str, disk: usize, value: f64) {
        self.publish(|| metrics::gauge!(name, "disk" => disk.to_string()).set(value));
    }

    /// What a stream was served at this brick.
    pub(crate) fn stream(&mut self, name: String, used: &StreamUse) {
        self.publish(|| {
            let label = [("stream", name)];
            metrics::counter!("brickwork_stream_served_units_total", &label).absolute(used.served);
            metrics::counter!("brickwork_stream_requests_total", &label).absolute(used.requests);
            metrics::gauge!("brickwork_stream_waiting", &label).set(f64::from(used.waiting));
            let turn = Duration::from_micros(used.turn_us).as_secs_f64();
            metrics::gauge!("brickwork_stream_turn_seconds_total", &label).set(turn);
        });
    }

    /// Latencies as a histogram.
    pub(crate) fn latency(&mut self, name: &'static str, latency: &Latency) {
        self.histogram(name, latency.cumulative(), latency.sum);
    }

    /// A histogram: counters by upper bound ([`Duration::MAX`] for none), as Prometheus reckons with them.
    pub(crate) fn histogram(
        &mut self,
        name: &'static str,
        cumulative: impl Iterator<Item = (Duration, u64)>,
        sum: Duration,
    ) {
        self.publish(|| {
            let mut count = 0;
            for (bound, total) in cumulative {
                let bound = match bound {
                    Duration::MAX => "+Inf".to_owned(),
                    bound => bound.as_secs_f64().to_string(),
                };
                metrics::counter!(format!("{name}_bucket"), "le" => bound).absolute(total);
                count = total;
            }
            metrics::counter!(format!("{name}_count")).absolute(count);
            metrics::gauge!(format!("{name}_sum")).set(sum.as_secs_f64());
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
        self.counter("brickwork_peer_connections_total", counters.connections);
        self.counter("brickwork_peer_connections_broken_total", counters.broken);
        self.counter("brickwork_refusals_total", refusals::total());
    }

    fn publish(&self, record: impl FnOnce()) {
        if let Some(recorder) = &self.recorder {
            metrics::with_local_recorder(&**recorder, record);
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

fn serve(address: SocketAddr) -> Result<PrometheusRecorder, HostError> {
    let failed = |why: String| HostError::Listen { address: format!("{address} (metrics)"), why };
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    let listener = TcpListener::bind(address).map_err(|error| failed(error.to_string()))?;
    let answer = move |caller: Caller| {
        if let Err(error) = answer(caller, &handle) {
            tracing::debug!(%error, "a metrics request failed");
        }
    };
    threads::serve("metrics", listener, BOUNDS, HELLO_MAX, answer)
        .map_err(|error| failed(error.to_string()))?;
    Ok(recorder)
}

fn answer(mut caller: Caller, handle: &PrometheusHandle) -> io::Result<()> {
    let mut request = [0; REQUEST_BYTES_MAX];
    let mut length = 0;
    while !request[..length].windows(4).any(|end| end == b"\r\n\r\n") {
        match caller.read(&mut request[length..])? {
            0 => return Ok(()),
            count => length += count,
        }
    }
    let (status, body) = match request.starts_with(b"GET /metrics ") || request.starts_with(b"GET / ") {
        true => ("200 OK", handle.render()),
        false => ("404 Not Found", "ask for /metrics\n".to_owned()),
    };
    write!(
        caller,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}
