//! Real NBD clients against a real cluster.
//!
//! Reading order: [`cases`] (what is run), `volume` (the volume a case works on, and the brick that dies meanwhile), then a
//! file a family: `nbd_tools`, `qemu`, `fio`, `filesystem` (each over three layouts, with and without a kill), `postgres`, `attach`,
//! `tls`, `hostile` (what a client may never do to others), `clocks` (machines whose clocks differ), `broken` (disks and configurations),
//! `metrics` (what daemons tell of themselves), `objects` (by their names), `neighbours` (two releases in one
//! cluster).

mod attach;
mod broken;
mod clocks;
mod enormous;
mod filesystem;
mod fio;
mod hostile;
mod lost;
mod metrics;
mod nbd_tools;
pub(crate) mod neighbours;
mod objects;
mod postgres;
mod qemu;
mod record;
mod tls;
mod twins;
mod volume;

pub(crate) use attach::survives_killing_all;
pub(crate) use volume::{data, width};

use crate::place;
use anyhow::Result;
use clap::Args;
use job::process::installed;
use job::report::{Outcome, Report};
use std::path::{Path, PathBuf};
use volume::Volume;
use wire::Protocol;
use wire::known;

/// Which clients to run, and against what.
#[derive(Args)]
pub(crate) struct Options {
    /// Only cases whose name contains this
    filter: Option<String>,
    /// A binary to use instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Every client over every layout, with and without a brick that dies; else each client once
    #[arg(long)]
    all: bool,
    /// Only list the cases
    #[arg(long)]
    list: bool,
}

/// A case over a volume, which is run for each layout, and once more with a brick that dies.
type OverVolume = fn(&Volume) -> Result<()>;

/// A case that makes its own cluster.
type Own = fn(&Path) -> Result<()>;

enum Body {
    OverVolume { layout: &'static str, protocol: Protocol, kill: bool, body: OverVolume },
    Own(Own),
}

struct Case {
    name: String,
    needs: &'static [&'static str],
    needs_root: bool,
    /// Whether it is run only with `--all`: the client has another case that is run always.
    more: bool,
    body: Body,
}

/// The layouts that every client must work over.
const LAYOUTS: [&str; 3] = ["raid1x3", "raid5-4+1", "rs-4+2"];
/// Of the cases of protocols those that are run always.
const ALWAYS: [&str; 3] =
    ["direct,ts,2pcw/fio/raid5-4+1", "coord,seq,none/fio/raid5-4+1", "direct,version,log+read/fio/raid5-4+1"];

/// Clients that work over any volume: name, programs, whether they need root, what they do.
const OVER_VOLUMES: [(&str, &[&str], bool, OverVolume); 6] = [
    ("nbdinfo", &["nbdinfo"], false, nbd_tools::info),
    ("nbdcopy", &["nbdcopy"], false, nbd_tools::copy),
    ("qemu-img", &["qemu-img"], false, qemu::image),
    ("qemu-io", &["qemu-io"], false, qemu::io),
    ("fio", &["fio"], false, fio::verify),
    ("ext4", &["nbdfuse", "mkfs.ext4", "fsck.ext4", "losetup", "mount"], true, filesystem::ext4),
];

/// Cases that make their own cluster.
const OWN: [(&str, &[&str], Own); 33] = [
    ("attach/gateway-killed", &[], attach::gateway_killed),
    ("qemu/reconnect-delay", &["qemu-io"], qemu::reconnect),
    ("durable/all-killed-at-once", &[], attach::all_killed),
    ("paused/brick-clock-jumps", &[], attach::brick_paused),
    ("tls/client-certificates", &["nbdinfo"], tls::client_certificates),
    ("tls/strangers", &[], tls::strangers),
    ("hostile/negotiation", &[], hostile::negotiation),
    ("hostile/requests", &[], hostile::requests),
    ("hostile/announced-and-gone", &[], hostile::announced_and_gone),
    ("hostile/read-only", &[], hostile::read_only),
    ("hostile/replies-never-read", &[], hostile::replies_never_read),
    ("hostile/closed-in-mid-payload", &[], hostile::closed_in_mid_payload),
    ("hostile/half-open-and-slow", &[], hostile::half_open_and_slow),
    ("hostile/enormous-reads", &[], enormous::reads),
    ("hostile/garbage-to-daemons", &[], hostile::garbage_to_daemons),
    ("sectors/two-gateways-one-block", &[], hostile::two_gateways_one_block),
    ("clocks/two-gateways-apart", &["faketime"], clocks::two_gateways_apart),
    ("lost/raid0-disk", &[], lost::raid0_disk),
    ("twins/copy-beside", &["cp"], twins::copy_beside),
    ("twins/while-paused", &["cp"], twins::while_paused),
    ("broken/disk-cut-short", &[], broken::disk_cut_short),
    ("broken/disk-of-noise", &[], broken::disk_of_noise),
    ("broken/noise-in-data", &[], broken::noise_in_data),
    ("broken/two-bricks-one-disk", &[], broken::two_bricks_one_disk),
    ("broken/unknown-key", &[], broken::unknown_key),
    ("broken/disk-full", &[], broken::disk_full),
    ("metrics/promtool", &["promtool"], metrics::promtool),
    ("objects/put-and-read", &[], objects::put_and_read),
    ("objects/brick-killed-and-stopped", &[], objects::brick_killed_and_stopped),
    ("objects/brick-evicted", &[], objects::brick_evicted),
    ("objects/put-resumed", &[], objects::put_resumed),
    ("objects/patch-resumed", &[], objects::patch_resumed),
    ("pgbench/raid5-4+1/brick-killed", postgres::NEEDS, postgres::over_raid5),
];

/// Further ones of clients that are above.
const MORE: [(&str, &[&str], Own); 4] = [
    ("objects/brick-joins", &[], objects::brick_joins),
    ("objects/five-gib", &["cmp"], objects::five_gib),
    ("pgbench/raid1x3/brick-killed", postgres::NEEDS, postgres::over_raid1),
    ("pgbench/rs-4+2/brick-killed", postgres::NEEDS, postgres::over_rs),
];

/// Runs the cases and prints what came of them.
pub(crate) fn verb(options: &Options) -> Result<()> {
    let mut report = Report::default();
    let cases: Vec<Case> = cases().into_iter().filter(|case| case.is_meant(options)).collect();
    if options.list {
        cases.iter().for_each(|case| println!("{}", case.name));
        return Ok(());
    }
    let binary = place::binary(options.binary.as_deref())?;
    for case in &cases {
        match cannot_run(case) {
            Some(why) => report.skip(&case.name, &why),
            None => drop(report.step(&case.name, || case.body.run(&binary).map(|()| Outcome::Passed(1)))),
        }
    }
    report.close()
}

impl Case {
    /// Whoever names cases gets all that are called so.
    fn is_meant(&self, options: &Options) -> bool {
        match &options.filter {
            Some(part) => self.name.contains(part),
            None => options.all || options.list || !self.more,
        }
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (place, layout) in LAYOUTS.into_iter().enumerate() {
        for kill in [false, true] {
            for (number, (client, needs, needs_root, body)) in OVER_VOLUMES.into_iter().enumerate() {
                let name = format!("{client}/{layout}{}", if kill { "/brick-killed" } else { "" });
                // Once each client meets a brick that dies, the clients over all layouts by turns.
                let more = !kill || number % LAYOUTS.len() != place;
                let body = Body::OverVolume { layout, protocol: Protocol::default(), kill, body };
                cases.push(Case { name, needs, needs_root, more, body });
            }
        }
    }
    cases.extend(cases_of_protocols());
    let own = OWN.iter().map(|own| (own, false)).chain(MORE.iter().map(|own| (own, true)));
    cases.extend(own.map(|((name, needs, body), more)| Case {
        name: (*name).to_owned(),
        needs,
        needs_root: *needs == postgres::NEEDS,
        more,
        body: Body::Own(*body),
    }));
    cases
}

/// Clients that compare what they wrote, under each protocol that has a name, with a brick that dies: fio over parity under those that
/// are least like the default, and the rest with `--all`.
fn cases_of_protocols() -> impl Iterator<Item = Case> {
    let checking = OVER_VOLUMES.into_iter().filter(|(client, ..)| ["fio", "qemu-img"].contains(client));
    let others = known::named().into_iter().filter(|protocol| *protocol != Protocol::default());
    others.flat_map(move |protocol| {
        checking.clone().flat_map(move |(client, needs, needs_root, body)| {
            LAYOUTS.into_iter().map(move |layout| {
                let name = format!("{protocol}/{client}/{layout}");
                let more = !ALWAYS.contains(&name.as_str());
                let body = Body::OverVolume { layout, protocol, kill: true, body };
                Case { name, needs, needs_root, more, body }
            })
        })
    })
}

impl Body {
    fn run(&self, binary: &Path) -> Result<()> {
        match self {
            Body::Own(body) => body(binary),
            Body::OverVolume { layout, protocol, kill, body } => {
                volume::run(binary, (layout, *protocol), *kill, *body)
            }
        }
    }
}

fn cannot_run(case: &Case) -> Option<String> {
    if let Some(missing) = case.needs.iter().find(|program| !installed(program)) {
        return Some(format!("{missing} is not installed"));
    }
    (case.needs_root && !job::process::is_root()).then(|| "needs root (loop device, mount)".to_owned())
}
