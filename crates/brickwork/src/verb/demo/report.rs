//! What the demo prints: a line as each thing happens, a table, and where to go next.

use super::VOLUMES;
use super::act::Act;
use crate::config::Bytes;
use crate::output;
use rig::cluster::Cluster;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

const MIB: f64 = (1 << 20) as f64;

/// Prints, for people or for programs.
pub(super) struct Report {
    json: bool,
}

impl Report {
    pub(super) fn new(json: bool) -> Report {
        Report { json }
    }

    pub(super) fn opening(&self, dir: &Path, bricks: u32) {
        self.say(&format!(
            "Brickwork demo: a cluster of {bricks} bricks on this machine, in\n{}\n",
            dir.display()
        ));
    }

    pub(super) fn started(&self, bricks: usize, took: Duration) {
        let what = format!("a directory, {} bricks, a gateway: {} processes", bricks, bricks + 2);
        self.line("Started", &format!("{what} on loopback, in {}", seconds(took)));
    }

    pub(super) fn created(&self, size: Bytes) {
        let [(mirror, _), (parity, _)] = VOLUMES;
        self.line(
            "Created",
            &format!("volumes '{mirror}' (3 copies) and '{parity}' (RAID-5, 4+1), {size} each"),
        );
    }

    pub(super) fn filled(&self, act: &Act) {
        let bytes = act.sum(|volume| volume.fill.bytes);
        let rate: f64 = act.volumes.iter().map(|volume| volume.fill.bytes_per_s()).sum();
        self.line(
            "Filled",
            &format!("both through NBD: {} at {:.0} MiB/s, then flushed", Bytes(bytes), rate / MIB),
        );
    }

    pub(super) fn killed(&self, act: &Act) {
        let victim = act.victim.as_deref().unwrap_or("nobody");
        let pause = pause(act);
        self.line("Killed", &format!("{victim} (SIGKILL) under random reads and writes: writes paused"));
        self.line("", &format!("for {} until it was left out, then went on without it", seconds(pause)));
    }

    pub(super) fn returned(&self, act: &Act) {
        let (Some(victim), Some(comeback)) = (&act.victim, &act.comeback) else { return };
        let (fetched, held) = (Bytes(comeback.fetched_bytes), Bytes(comeback.held_bytes));
        match comeback.took {
            Some(took) => {
                self.line(
                    "Returned",
                    &format!("{victim}: fetched the {fetched} that it had missed, of {held} that it"),
                );
                self.line("", &format!("holds; all data are redundant again, in {}", seconds(took)));
            }
            None => {
                self.line("Returned", &format!("{victim}, fetched {fetched}, and did not catch up in time"))
            }
        }
    }

    pub(super) fn verified(&self, act: &Act) {
        let rate: f64 = act.volumes.iter().map(|volume| volume.verify.bytes_per_s()).sum();
        let bytes = Bytes(act.sum(|volume| volume.verified_bytes));
        self.line(
            "Verified",
            &format!("every byte, read back from all bricks: {bytes} at {:.0} MiB/s", rate / MIB),
        );
    }

    /// The table and the verdict; whether all was as it should be.
    pub(super) fn closing(&self, act: &Act, took: Duration) -> bool {
        let good = is_good(act);
        if self.json {
            return good;
        }
        println!("\n{}\n", output::render(&table(act)));
        let lost = act.sum(|volume| volume.ledger.troubles.lost_bytes);
        let errors = act.sum(|volume| volume.ledger.troubles.io_errors);
        let verified = Bytes(act.sum(|volume| volume.verified_bytes));
        let back = if has_returned(act) { " and back" } else { "" };
        println!(
            "{verified} verified, {lost} bytes lost, {errors} I/O errors, 1 brick killed{back}, in {}.",
            seconds(took)
        );
        for example in act.volumes.iter().flat_map(|volume| &volume.ledger.troubles.examples) {
            println!("  ! {example}");
        }
        if !has_returned(act) {
            println!(
                "  ! The killed brick did not catch up: its log is in the demo's `logs` (run with --dir to keep it)."
            );
        }
        if act.bytes_after_kill == 0 {
            println!("  ! Nothing was answered in the last seconds after the kill: I/O did not go on.");
        }
        good
    }

    pub(super) fn whereto(&self) {
        self.say(
            "\nWhere to go next:\n  \
             brickwork demo --keep            leave the cluster up, and use it with qemu, fio, nbdinfo\n  \
             brickwork sim torture --seeds 50 the same code in a world full of faults\n  \
             brickwork cluster init --help    a cluster of real machines",
        );
    }

    pub(super) fn how_to_attach(&self, cluster: &Cluster, dir: &Path) {
        let endpoint = cluster.endpoint(0).trim_start_matches("tcp:").to_owned();
        let (host, port) = endpoint.rsplit_once(':').unwrap_or((&endpoint, ""));
        let uri = format!("nbd://{endpoint}/mirror");
        self.say(&format!(
            "\nThe cluster is up. Use it:\n  \
             nbdinfo {uri}\n  \
             qemu-img info {uri}\n  \
             qemu-io --image-opts -c 'write -P 7 0 1M' -c 'read -P 7 0 1M' \\\n    \
             driver=nbd,server.type=inet,server.host={host},server.port={port},\\\n\
             export=mirror,reconnect-delay=60\n  \
             fio --name=try --ioengine=nbd --uri={uri} \\\n    \
             --rw=randrw --bs=4k --size=64m --iodepth=16 \\\n    \
             --verify=crc32c --verify_fatal=1\n\n\
             Look at it:\n  \
             brickwork status --config {dir}/admin/client.toml\n  \
             brickwork attach mirror --socket /tmp/mirror.sock \\\n    \
             --config {dir}/admin/client.toml\n\n\
             Stop it:\n  \
             brickwork demo --stop {dir}",
            dir = dir.display(),
        ));
    }

    /// One object on the last line.
    pub(super) fn json(&self, act: &Act, took: Duration, kept: Option<&std::path::PathBuf>) {
        if !self.json {
            return;
        }
        let volumes: Vec<Value> = act.volumes.iter().map(volume_json).collect();
        output::print_json(&json!({
            "verified_bytes": act.sum(|volume| volume.verified_bytes),
            "lost_bytes": act.sum(|volume| volume.ledger.troubles.lost_bytes),
            "io_errors": act.sum(|volume| volume.ledger.troubles.io_errors),
            "bricks_killed": u32::from(act.victim.is_some()),
            "killed": act.victim, "went_on": act.bytes_after_kill > 0, "good": is_good(act),
            "redundant": has_returned(act),
            "caught_up_s": act.comeback.and_then(|comeback| comeback.took).map(|took| took.as_secs_f64()),
            "fetched_bytes": act.comeback.map(|comeback| comeback.fetched_bytes),
            "held_bytes": act.comeback.map(|comeback| comeback.held_bytes),
            "write_pause_s": pause(act).as_secs_f64(), "wall_s": took.as_secs_f64(),
            "volumes": volumes, "dir": kept,
        }));
    }

    fn line(&self, verb: &str, what: &str) {
        self.say(&format!("  {verb:<9} {what}"));
    }

    fn say(&self, text: &str) {
        if !self.json {
            println!("{text}");
        }
    }
}

fn is_good(act: &Act) -> bool {
    let all = act.sum(|volume| volume.ledger.blocks() * base::BLOCK_U64);
    let troubles = act.sum(|volume| volume.ledger.troubles.lost_bytes + volume.ledger.troubles.io_errors);
    troubles == 0
        && act.sum(|volume| volume.verified_bytes) == all
        && act.victim.is_some()
        && act.bytes_after_kill > 0
        && has_returned(act)
}

fn has_returned(act: &Act) -> bool {
    act.comeback.is_some_and(|comeback| comeback.took.is_some())
}

fn table(act: &Act) -> comfy_table::Table {
    let mut table =
        output::table(&["volume", "layout", "fill", "random 4-16K", "pause", "read back", "lost"]);
    for volume in &act.volumes {
        let operations = volume.mix_reads.operations_per_s() + volume.mix_writes.operations_per_s();
        table.add_row([
            volume.name.to_owned(),
            volume.layout.to_owned(),
            format!("{:.0} MiB/s", volume.fill.bytes_per_s() / MIB),
            format!("{operations:.0} op/s"),
            seconds(volume.mix_writes.longest_pause),
            format!("{:.0} MiB/s", volume.verify.bytes_per_s() / MIB),
            format!("{} B", volume.ledger.troubles.lost_bytes),
        ]);
    }
    output::align_right(&mut table, &[2, 3, 4, 5, 6]);
    table
}

fn volume_json(volume: &super::act::Volume) -> Value {
    json!({
        "name": volume.name, "layout": volume.layout, "size_bytes": volume.ledger.blocks() * base::BLOCK_U64,
        "fill_bytes_per_s": volume.fill.bytes_per_s(), "read_operations": volume.mix_reads.operations,
        "write_operations": volume.mix_writes.operations,
        "mix_operations_per_s": volume.mix_reads.operations_per_s() + volume.mix_writes.operations_per_s(),
        "write_pause_s": volume.mix_writes.longest_pause.as_secs_f64(),
        "read_pause_s": volume.mix_reads.longest_pause.as_secs_f64(),
        "slowest_write_s": volume.mix_writes.slowest.as_secs_f64(),
        "verify_bytes_per_s": volume.verify.bytes_per_s(), "verified_bytes": volume.verified_bytes,
        "lost_bytes": volume.ledger.troubles.lost_bytes, "io_errors": volume.ledger.troubles.io_errors,
        "troubles": volume.ledger.troubles.examples,
    })
}

/// The longest time for which a volume's writes stood still.
fn pause(act: &Act) -> Duration {
    act.volumes.iter().map(|volume| volume.mix_writes.longest_pause).max().unwrap_or_default()
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
