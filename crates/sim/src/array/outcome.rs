//! How long requests took.

use super::controller::Controller;

/// A request that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Id(usize);

/// A request of which buckets have not arrived yet, or all have.
#[derive(Clone, Copy, Debug)]
struct Asked {
    at_ns: u64,
    missing: usize,
    last_ns: u64,
}

#[derive(Debug, Default)]
pub(super) struct Responses {
    requests: Vec<Asked>,
    buckets: u64,
}

impl Responses {
    pub(super) fn asked(&mut self, at_ns: u64, buckets: usize) -> Id {
        self.requests.push(Asked { at_ns, missing: buckets, last_ns: 0 });
        self.buckets += buckets as u64;
        Id(self.requests.len() - 1)
    }

    /// A bucket of a request arrives.
    pub(super) fn arrives(&mut self, Id(id): Id, at_ns: u64) {
        let request = &mut self.requests[id];
        request.missing -= 1;
        request.last_ns = request.last_ns.max(at_ns);
    }

    /// When the last bucket of each request arrived.
    pub(super) fn last_ns(&self) -> Vec<u64> {
        self.requests.iter().map(|request| request.last_ns).collect()
    }

    pub(super) fn outcome(&self, controller: &Controller<'_, '_>, moves: u64) -> Outcome {
        let mut responses: Vec<f64> = Vec::with_capacity(self.requests.len());
        for request in &self.requests {
            assert_eq!(request.missing, 0, "every bucket of every request arrives");
            responses.push((request.last_ns - request.at_ns) as f64 / 1e6);
        }
        responses.sort_by(f64::total_cmp);
        let count = responses.len().max(1) as f64;
        let mean = responses.iter().sum::<f64>() / count;
        let variance =
            responses.iter().map(|response| (response - mean) * (response - mean)).sum::<f64>() / count;
        let at = |share: f64| responses.get(((count - 1.0) * share) as usize).copied().unwrap_or(0.0);
        let ends_ns = self.requests.iter().map(|request| request.last_ns).max().unwrap_or(0);
        Outcome {
            requests: responses.len() as u64,
            buckets: self.buckets,
            mean_ms: mean,
            variation: if mean > 0.0 { variance / (mean * mean) } else { 0.0 },
            median_ms: at(0.5),
            p99_ms: at(0.99),
            planning_us: controller.mean_ns() / 1e3,
            moves,
            ends_ns,
        }
    }
}

/// What a run measured.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Outcome {
    pub requests: u64,
    pub buckets: u64,
    /// The mean response time: from a request's arrival to that of its last bucket.
    pub mean_ms: f64,
    /// The squared coefficient of variation of response times.
    pub variation: f64,
    pub median_ms: f64,
    pub p99_ms: f64,
    /// What a plan took on average.
    pub planning_us: f64,
    /// How many waiting buckets were moved.
    pub moves: u64,
    /// When the last bucket arrived.
    pub ends_ns: u64,
}
