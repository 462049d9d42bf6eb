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
    pub all: Compared,
    /// The same of some of the accesses each.
    pub classes: [(Class, Compared); 6],
}

/// Which accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    Reads,
    /// Those that begin where the access before ended, of whichever kind that was.
    SequentialReads,
    OtherReads,
    Writes,
    SequentialWrites,
    OtherWrites,
}

/// The real drive's times and the model's, of some accesses.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Compared {
    pub accesses: u64,
    /// The real drive's mean time.
    pub real_ms: f64,
    pub model_ms: f64,
    /// See [`rms_demerit_ms`].
    pub demerit_ms: f64,
}

impl Class {
    pub const ALL: [Class; 6] = [
        Class::Reads,
        Class::SequentialReads,
        Class::OtherReads,
        Class::Writes,
        Class::SequentialWrites,
        Class::OtherWrites,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Class::Reads => "reads",
            Class::SequentialReads => "sequential reads",
            Class::OtherReads => "other reads",
            Class::Writes => "writes",
            Class::SequentialWrites => "sequential writes",
            Class::OtherWrites => "other writes",
        }
    }

    fn has(self, access: &Access, is_sequential: bool) -> bool {
        let (is_write, wants) = match self {
            Class::Reads => (false, None),
            Class::SequentialReads => (false, Some(true)),
            Class::OtherReads => (false, Some(false)),
            Class::Writes => (true, None),
            Class::SequentialWrites => (true, Some(true)),
            Class::OtherWrites => (true, Some(false)),
        };
        access.is_write == is_write && wants.is_none_or(|wants| wants == is_sequential)
    }
}

impl Compared {
    /// Of times of the real drive and of the model, in nanoseconds.
    fn of(times: impl Iterator<Item = (u64, u64)>) -> Compared {
        let (real, model): (Vec<u64>, Vec<u64>) = times.unzip();
        Compared {
            accesses: real.len() as u64,
            real_ms: mean_ms(&real),
            model_ms: mean_ms(&model),
            demerit_ms: rms_demerit_ms(real, model),
        }
    }
}

/// Replays a validation trace with one access outstanding, each issued as long after the end of the one before as in the
/// trace.
pub fn replay_measured(drive: &mut Drive, trace: &[Measured]) -> MeasuredComparison {
    let (mut now, mut end) = (Time::ZERO, None);
    let mut replay = |entry: &Measured| {
        let Measured { access, service_ns, think_ns } = *entry;
        let done = drive.serve(now, access).done;
        let model_ns = done.0 - now.0;
        now = Time(done.0 + think_ns);
        let is_sequential = end.replace(access.sector + u64::from(access.count)) == Some(access.sector);
        (access, is_sequential, (service_ns, model_ns))
    };
    let replayed: Vec<(Access, bool, (u64, u64))> = trace.iter().map(&mut replay).collect();
    let of = |class: Class| {
        let meant = replayed.iter().filter(|(access, is_sequential, _)| class.has(access, *is_sequential));
        (class, Compared::of(meant.map(|(_, _, times)| *times)))
    };
    MeasuredComparison {
        all: Compared::of(replayed.iter().map(|(_, _, times)| *times)),
        classes: Class::ALL.map(of),
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

fn mean_ms(times: &[u64]) -> f64 {
    if times.is_empty() { 0.0 } else { times.iter().sum::<u64>() as f64 / times.len() as f64 / 1e6 }
}
