//! Against the times that a real drive took.

use base::Time;
use model::drive::{Access, Drive};

/// One access of a validation trace.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Measured {
    pub access: Access,
    /// What the real drive took.
    pub service_ns: u64,
    /// From its end until the next one is issued.
    pub think_ns: u64,
}

/// How a drive's model replays what the drive itself did.
#[derive(Clone, PartialEq, Debug)]
pub struct MeasuredComparison {
    pub accesses: u64,
    /// The real drive's mean time.
    pub real_ms: f64,
    pub model_ms: f64,
    /// Means over reads and over writes: the real drive's and the model's.
    pub reads_ms: [f64; 2],
    /// As before.
    pub writes_ms: [f64; 2],
    /// See [`rms_demerit_ms`].
    pub demerit_ms: f64,
}

/// Replays a validation trace with one access outstanding, each issued as long after the end of the one before as in the
/// trace.
pub fn replay_measured(drive: &mut Drive, trace: &[Measured]) -> MeasuredComparison {
    let mut now = Time::ZERO;
    let mut replay = |entry: &Measured| {
        let done = drive.serve(now, entry.access).done;
        let service_ns = done.0 - now.0;
        now = Time(done.0 + entry.think_ns);
        service_ns
    };
    let model: Vec<u64> = trace.iter().map(&mut replay).collect();
    let real: Vec<u64> = trace.iter().map(|entry| entry.service_ns).collect();
    let means = |of: fn(&Access) -> bool| {
        [&real, &model].map(|times| {
            mean_ms(trace.iter().zip(times.iter()).filter(|(entry, _)| of(&entry.access)).map(|(_, &ns)| ns))
        })
    };
    MeasuredComparison {
        accesses: trace.len() as u64,
        real_ms: mean_ms(real.iter().copied()),
        model_ms: mean_ms(model.iter().copied()),
        reads_ms: means(|access| !access.is_write),
        writes_ms: means(|access| access.is_write),
        demerit_ms: rms_demerit_ms(real, model),
    }
}

/// The root mean square of the horizontal distance between two distributions of times, sampled at every 0.0001 of
/// probability (Ruemmler and Wilkes, "An introduction to disk drive modeling", 1994).
pub fn rms_demerit_ms(mut one: Vec<u64>, mut other: Vec<u64>) -> f64 {
    const SAMPLES: usize = 10_000;
    if one.is_empty() || other.is_empty() {
        return 0.0;
    }
    one.sort_unstable();
    other.sort_unstable();
    let at = |times: &[u64], sample: usize| times[(times.len() * sample / SAMPLES).min(times.len() - 1)];
    let square = |sample| {
        let apart_ms = at(&one, sample).abs_diff(at(&other, sample)) as f64 / 1e6;
        apart_ms * apart_ms
    };
    libm::sqrt((0..SAMPLES).map(square).sum::<f64>() / SAMPLES as f64)
}

fn mean_ms(times: impl Iterator<Item = u64>) -> f64 {
    let (sum, count) = times.fold((0u64, 0u64), |(sum, count), ns| (sum + ns, count + 1));
    if count == 0 { 0.0 } else { sum as f64 / count as f64 / 1e6 }
}
