//! What happens to clusters: how drives fall ill, as published, and what could be mistaken for that.

/// What drives are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Device {
    Disk,
    Flash,
}

/// How a drive is ill: symptoms of Fail-Slow at Scale, the first one in two forms. That only parts of a drive are slow the world cannot show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Symptom {
    /// It is slow from a moment on.
    Sudden,
    /// It becomes slower and slower, and remains so.
    Gradual,
    /// It is slow for a while again and again.
    Transient,
    /// It stands still for a moment again and again.
    Stops,
}

/// What could be mistaken for a slow drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Trap {
    Nothing,
    /// More writes than the disks take.
    Overload,
    /// Ten times the load for a tenth of each second.
    Bursts,
    /// Another application reads one brick's drive all the time.
    Scan,
    /// One drive, or every other one, is of a slower model.
    Models,
    /// One brick stands still for up to a quarter of a second.
    Pauses,
    /// All drives become slow at the same moment.
    AllSlow,
}

/// What happens to a cluster.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum What {
    /// A drive falls ill. An access takes so many milliseconds longer, drawn between these; a stop takes so many.
    Ill(Symptom, [f64; 2]),
    Healthy(Trap),
}

pub(super) use Device::{Disk, Flash};
pub(super) use Symptom::{Gradual, Stops, Sudden, Transient};
pub(super) use What::{Healthy, Ill};

pub(super) const DEVICES: [Device; 2] = [Disk, Flash];
pub(super) const SYMPTOMS: [Symptom; 4] = [Sudden, Gradual, Transient, Stops];
const TRAPS: [Trap; 7] =
    [Trap::Nothing, Trap::Overload, Trap::Bursts, Trap::Scan, Trap::Models, Trap::Pauses, Trap::AllSlow];

impl Device {
    pub(super) fn name(self) -> &'static str {
        match self {
            Disk => "disk",
            Flash => "flash",
        }
    }

    /// Of so many drives so many have each symptom: permanent slowdown, transient slowdown, transient stop (Fail-Slow at Scale, table 4).
    pub(super) fn symptoms(self) -> [u32; 3] {
        match self {
            Disk => [9, 4, 5],
            Flash => [6, 7, 3],
        }
    }

    /// By how many milliseconds accesses take longer: the range is published, how drives spread over it is not. The timed world makes a drive at most a thousand times as slow,
    /// which ends the range of flash drives. How long stops are is assumed.
    pub(super) fn severities(self, symptom: Symptom) -> &'static [[f64; 2]] {
        match (symptom, self) {
            (Stops, _) => &[[300.0, 1000.0], [1000.0, 5000.0]],
            (_, Disk) => &[[1.0, 10.0], [10.0, 100.0], [100.0, 1000.0]],
            (_, Flash) => &[[1.0, 10.0], [10.0, 40.0]],
        }
    }

    /// How long a small access of a drive that is well takes, of disks about: what takes so many milliseconds longer takes so many times that.
    pub(super) fn access_ms(self) -> f64 {
        match self {
            Disk => 7.0,
            Flash => 0.04,
        }
    }

    /// The assumption that names the drive, the one that names another model, and the one of the load.
    pub(super) fn assumptions(self) -> [&'static str; 3] {
        match self {
            Disk => ["detection_disk", "detection_other_disk", "detection_disk_per_second"],
            Flash => ["detection_flash", "detection_other_flash", "detection_flash_per_second"],
        }
    }

    /// What else reads a drive: accesses a second, and blocks of each. It takes about a fifth of the drive's time.
    pub(super) fn scan(self) -> (f64, u32) {
        match self {
            Disk => (16.0, 16),
            Flash => (600.0, 32),
        }
    }

    /// Those that are laid for it. So many writes as saturate flash drives take minutes to simulate.
    pub(super) fn traps(self) -> impl Iterator<Item = Trap> {
        TRAPS.into_iter().filter(move |trap| self == Disk || *trap != Trap::Overload)
    }
}

impl What {
    pub(super) fn name(self) -> &'static str {
        match self {
            Ill(symptom, _) => match symptom {
                Sudden => "slow from a moment on",
                Gradual => "slower and slower",
                Transient => "slow at times",
                Stops => "stands still at times",
            },
            Healthy(trap) => match trap {
                Trap::Nothing => "all well",
                Trap::Overload => "overload",
                Trap::Bursts => "bursts",
                Trap::Scan => "a scan of one drive",
                Trap::Models => "two models",
                Trap::Pauses => "short pauses",
                Trap::AllSlow => "all drives slow",
            },
        }
    }

    pub(super) fn severity(self) -> String {
        match self {
            Ill(_, [least, most]) => format!("{least} to {most} ms"),
            Healthy(_) => "-".to_owned(),
        }
    }
}

/// All assumptions but that of the network.
pub(super) fn assumptions() -> impl Iterator<Item = &'static str> {
    DEVICES.into_iter().flat_map(Device::assumptions).chain(ASSUMED)
}

/// Assumptions for both kinds of drives.
const ASSUMED: [&str; 10] = [
    "detection_rounds",
    "detection_seconds",
    "detection_reads",
    "detection_gradual_s",
    "detection_slow_least_s",
    "detection_slow_most_s",
    "detection_well_least_s",
    "detection_well_most_s",
    "detection_pause_most_ms",
    "detection_overload_outstanding",
];

/// What happens to clusters with drives of that kind.
pub(super) fn kinds_of(device: Device) -> Vec<What> {
    let severities = |symptom: Symptom| device.severities(symptom).iter().map(move |ms| Ill(symptom, *ms));
    SYMPTOMS.into_iter().flat_map(severities).chain(device.traps().map(Healthy)).collect()
}

/// All clusters of so many rounds, each with its number among those with the same symptom or trap. A round has as many drives as the published table, severities
/// take turns, and each trap is laid once.
pub(super) fn cases(device: Device, rounds: usize) -> Vec<(What, usize)> {
    let [permanent, transient, stops] = device.symptoms().map(|of| of as usize * rounds);
    let symptoms =
        [(Sudden, permanent.div_ceil(2)), (Gradual, permanent / 2), (Transient, transient), (Stops, stops)];
    let ill = symptoms.into_iter().flat_map(|(symptom, drives)| {
        let severities = device.severities(symptom);
        (0..drives).map(move |nth| (Ill(symptom, severities[nth % severities.len()]), nth / severities.len()))
    });
    let traps = device.traps().flat_map(|trap| (0..rounds).map(move |nth| (Healthy(trap), nth)));
    ill.chain(traps).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_has_the_published_numbers_and_every_kind_once_at_least() {
        for device in DEVICES {
            let cases: Vec<What> = cases(device, 1).into_iter().map(|(what, _)| what).collect();
            let count = |of: &[Symptom]| {
                cases.iter().filter(|what| matches!(what, Ill(symptom, _) if of.contains(symptom))).count()
                    as u32
            };
            assert_eq!([count(&[Sudden, Gradual]), count(&[Transient]), count(&[Stops])], device.symptoms());
            assert!(kinds_of(device).iter().all(|what| cases.contains(what)), "{cases:?}");
        }
    }
}
