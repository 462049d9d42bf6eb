//! Head schedulers before a modelled Atlas 10K, against the throughput curves of DiskSim 4.0 with the same requests.
//!
//! Two things are as there. A request is chosen before the one that ended is replaced: with `n` outstanding among
//! `n - 1`. And DiskSim's scheduler knows one write command overhead (its "write initiation delay"), while the drive has
//! two, after a read and after a write: who knows both serves 2.3% more of the mix with a third of writes at depth 64.

#[path = "../../model/tests/shared/mod.rs"]
mod shared;

use base::{Mechanics, Position, Time};
use model::drive::{Access, Drive, DriveModel, DriveOptions, find};
use proto::heads::{HeadQueue, Policy};
use std::sync::Arc;

/// One point of a curve.
#[derive(Debug)]
struct Point {
    config: String,
    mix: String,
    policy: Policy,
    outstanding: usize,
    iops: f64,
}

/// Requests of each mix, in the order in which they are issued.
fn workload(mix: &str) -> Option<Vec<Access>> {
    let text = shared::text("data/disks/atlas10k_closed_workload.csv")?;
    let access = |line: &str| {
        let cells: Vec<u64> = line.split(',').map(|cell| cell.parse().expect("numbers")).collect();
        let is_write = match mix {
            "100/0" => false,
            "90/10" => cells[2] == 0,
            _ => cells[3] == 0,
        };
        Access { sector: cells[0], count: cells[1] as u32, is_write }
    };
    Some(text.lines().skip(1).map(access).collect())
}

fn points() -> Option<Vec<Point>> {
    let text = shared::text("data/disks/atlas10k_reference_curves.csv")?;
    let point = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let policy = match cells[2] {
            "FCFS" => Policy::Fcfs,
            "SSTF" => Policy::Sstf,
            "C-LOOK" => Policy::Clook,
            "SPTF" => Policy::Sptf,
            _ => return None,
        };
        if cells[0] == "C_stock" {
            return None;
        }
        let number = |cell: &str| cell.parse::<f64>().expect("a number");
        Some(Point {
            config: cells[0].to_owned(),
            mix: cells[1].to_owned(),
            policy,
            outstanding: number(cells[4]) as usize,
            iops: number(cells[6]),
        })
    };
    Some(text.lines().skip(1).filter_map(point).collect())
}

fn iops(point: &Point, model: &Arc<DriveModel>, workload: &[Access]) -> f64 {
    let options = if point.config == "B_mech" { DriveOptions::MECHANICS } else { DriveOptions::UNCACHED };
    let write_command_ns = match (point.config.as_str(), point.mix.as_str()) {
        ("B_mech", _) => 0,
        (_, "90/10") => 345_000,
        _ => 395_000,
    };
    let mut drive = Drive::with_options(model.clone(), options);
    let mut queue = HeadQueue::new(point.policy);
    let issue = |queue: &mut HeadQueue<Access>, drive: &Drive, access: &Access| {
        queue.push(drive.position_of(access.sector, access.is_write), *access);
    };
    let (first, later) = workload.split_at(point.outstanding);
    let mut now = drive.serve(Time::ZERO, first[0]).done;
    first[1..].iter().for_each(|access| issue(&mut queue, &drive, access));
    for access in later {
        let believed = Believed { drive: &drive, write_command_ns };
        if let Some(picked) = queue.pick(now, &believed) {
            now = drive.serve(now, picked.item).done;
            issue(&mut queue, &drive, access);
        } else {
            now = drive.serve(now, *access).done;
        }
    }
    (later.len() + 1) as f64 / (now.0 as f64 / 1e9)
}

/// A drive as DiskSim's scheduler believes it to be.
struct Believed<'a> {
    drive: &'a Drive,
    write_command_ns: u64,
}

impl Mechanics for Believed<'_> {
    fn position_of(&self, sector: u64, is_write: bool) -> Position {
        self.drive.position_of(sector, is_write)
    }

    fn cylinder(&self) -> u32 {
        self.drive.cylinder()
    }

    fn positioning_ns(&self, free: Time, to: &Position) -> u64 {
        if !to.is_write {
            return self.drive.positioning_ns(free, to);
        }
        self.write_command_ns + self.drive.reach_ns(Time(free.0 + self.write_command_ns), to)
    }

    fn rotation_ns(&self, free: Time, to: &Position) -> u64 {
        self.drive.rotation_ns(free, to)
    }

    fn seek_floor_ns(&self, cylinders: u32) -> u64 {
        self.drive.seek_floor_ns(cylinders)
    }
}

#[test]
fn throughput_is_that_of_the_reference_at_every_depth() {
    let Some(points) = points() else { return };
    let Some(workloads) = ["100/0", "90/10", "67/33"].map(workload).into_iter().collect::<Option<Vec<_>>>()
    else {
        return;
    };
    let entry = find("quantum-atlas-10k").expect("it is in the library");
    let model = Arc::new(DriveModel::parse(entry.id, entry.text).expect("the library's files are right"));
    let mut worst = (0.0, String::new());
    for point in &points {
        let workload = ["100/0", "90/10"].iter().position(|mix| *mix == point.mix).unwrap_or(2);
        let found = iops(point, &model, &workloads[workload]);
        let apart = (found / point.iops - 1.0).abs();
        assert!(apart < 0.005, "{point:?}: found {found:.2}");
        if apart > worst.0 {
            worst = (apart, format!("{point:?}: found {found:.2}"));
        }
    }
    eprintln!("{} points, the farthest apart by {:.2}%: {}", points.len(), 100.0 * worst.0, worst.1);
    assert!(points.len() > 150);
}
