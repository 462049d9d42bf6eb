//! `brickwork stream`: who gets how much of the disks.
//!
//! Reading order: this file, [`top`] (what streams get, and who holds back whom).

mod top;

use super::client;
use crate::config::{Latency, Rate};
use crate::global::Global;
use crate::security::random;
use crate::{output, view};
use anyhow::{Context, Result, bail, ensure};
use clap::Subcommand;
use serde_json::json;
use wire::{
    AdminReply, AdminRequest, BrickCapacity, ReservedOn, StreamInfo, StreamStatus, StreamTable, StreamsStatus,
};

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "\
A stream is a service class. Volumes and buckets belong to one; what names none belongs to 'default'. The certificate of a client may
name another one for all that this client reads and writes (`brickwork cluster token --role client --stream NAME`). When disks have more to do
than they can, each stream gets service in proportion to its weight, over all bricks together. What a stream does not use goes
to the others. As long as nothing is said of streams, requests are served as they come.

What the cluster does of its own has streams, too: 'maintenance' (rebuilds and scrubs), 'repair' and 'destage'.

Examples:
  brickwork stream create gold --weight 400
  brickwork volume create db --size 100GiB --stream gold
  brickwork volume set old --stream gold
  brickwork bucket set photos --stream gold
  brickwork stream list
  brickwork stream top
  brickwork stream set gold --weight 200 --limit 2000iops
  brickwork stream delete gold")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make a stream
    Create(Create),
    /// Change what a stream is entitled to
    Set(Set),
    /// List all streams, with their volumes and buckets
    #[command(after_help = "\
FOR has the stream's volumes, and its buckets with a '/' behind them. CHECKED says against how many of the bricks on which a reservation falls it is checked: those of which it is known what they can serve.
A brick measures that while its disks are loaded, since it started. --json has what each brick can serve and what is reserved there.

Examples:
  brickwork stream list
  brickwork stream list --json | jq '.streams[] | select(.weight > 100) | .name'
  brickwork stream list --json | jq '.capacities[]'")]
    List,
    /// Delete a stream to which no volume or bucket belongs
    #[command(after_help = "\
Give its volumes and buckets another stream first; the error names them. 'default' and the streams of background work stay. Clients whose
certificate names the stream go on, with the weight 100 of a stream of which nothing is said.

Examples:
  brickwork volume set db --stream default
  brickwork stream delete gold")]
    Delete {
        /// The stream
        name: String,
    },
    /// Say how many requests a disk has at a time while streams share it
    #[command(after_help = "\
Requests beyond these wait for their turn, by weights. Few places make sharing exact and waits short; many keep a drive's own
queue busy, which a hard disk needs to choose the nearest request, and flash to use all its chips. It is 32 unless set, 4096 at the
most.

Examples:
  brickwork stream places 16")]
    Places {
        /// Requests at a disk
        places: u32,
    },
    /// Show what each stream gets now, and who is held back by whom
    Top(top::Top),
}

/// `stream create`.
#[derive(clap::Args)]
#[command(after_help = RATES_HELP)]
struct Create {
    /// The stream's name: 1 to 63 of a-z 0-9 - _ . beginning with a letter or digit
    name: String,
    /// The weight: service is in proportion to it, 1 to 1000000
    #[arg(long, default_value_t = StreamInfo::WEIGHT, value_name = "N")]
    weight: u32,
    /// The minimum: for so much of the weight it counts at each disk whatever it is served elsewhere; a tenth unless set
    #[arg(long, value_name = "N")]
    minimum: Option<u32>,
    /// The reservation: service that comes first, over all disks together
    #[arg(long, default_value = "none", value_name = "RATE")]
    reservation: Rate,
    /// The limit: the most service, over all disks together, even where disks are idle
    #[arg(long, default_value = "none", value_name = "RATE")]
    limit: Rate,
    /// The latency target: within what time a request is to be served at a disk, from its arrival there
    #[arg(long, default_value = "none", value_name = "TIME")]
    latency: Latency,
}

/// `stream set`.
#[derive(clap::Args)]
#[command(after_help = RATES_HELP)]
struct Set {
    /// The stream
    name: String,
    /// The weight: service is in proportion to it, 1 to 1000000
    #[arg(long, value_name = "N", required_unless_present_any = ["minimum", "reservation", "limit", "latency"])]
    weight: Option<u32>,
    /// The minimum: for so much of the weight it counts at each disk whatever it is served elsewhere; 0 for none
    #[arg(long, value_name = "N")]
    minimum: Option<u32>,
    /// The reservation: service that comes first, over all disks together; none takes it away
    #[arg(long, value_name = "RATE")]
    reservation: Option<Rate>,
    /// The limit: the most service, over all disks together; none takes it away
    #[arg(long, value_name = "RATE")]
    limit: Option<Rate>,
    /// The latency target: within what time a request is to be served at a disk; none takes it away
    #[arg(long, value_name = "TIME")]
    latency: Option<Latency>,
}

/// What `--help` says of weights and rates.
const RATES_HELP: &str = "\
Weights compare streams that want service at the same time: 300 gets three times as much as 100. A stream that wants less leaves
the rest to the others.

Service is counted in units: a request costs 8, and 1 for each 4 KiB that it moves, which is about the time that a disk takes. Copies and
parity count where they are written. Rates are written as requests for 4 KiB a second (500 or 500iops, 9 units each) or as units
(4500units).

A disk that serves a stream with a latency target has fewer requests at a time while that is missed, which costs the others throughput: a hard
disk finds the nearest request among few. Only requests count that came while nobody of their stream waited for a turn.

A reservation that would not fit in seven eighths of what a brick can serve is refused, where that is known ('brickwork stream list').

A weight takes effect within a second; nothing is moved, and no request is lost. Of the streams of background work only the weight can be
set.

Examples:
  brickwork stream create gold --weight 400
  brickwork stream create backup --weight 10 --limit 200iops
  brickwork stream set gold --reservation 500iops
  brickwork stream set backup --limit none
  brickwork stream set gold --latency 5ms
  brickwork stream set maintenance --weight 20";

/// Runs the verb.
pub fn run(global: &Global, args: Args) -> Result<()> {
    match args.command {
        Command::Create(args) => create(global, args),
        Command::Set(args) => set(global, args),
        Command::List => list(global),
        Command::Delete { name } => {
            let request = AdminRequest::DeleteStream { name: name.clone(), nonce: nonce() };
            client::call(global, request).with_context(|| format!("cannot delete '{name}'"))?;
            match global.json {
                true => output::print_json(&json!({ "stream": name, "done": "deleted" })),
                false => println!("Stream '{name}' is deleted."),
            }
            Ok(())
        }
        Command::Places { places } => {
            client::call(global, AdminRequest::SetPlaces { places })?;
            match global.json {
                true => output::print_json(&json!({ "places": places })),
                false => {
                    println!(
                        "While streams share a disk, it has {} at a time.",
                        output::count(u64::from(places), "request")
                    );
                }
            }
            Ok(())
        }
        Command::Top(args) => top::run(global, args),
    }
}

/// All streams, and what bricks say of them.
pub fn status(global: &Global) -> Result<StreamsStatus> {
    client::streams_of(client::call(global, AdminRequest::ListStreams)?)
}

/// The stream of this name, for a volume.
pub fn named(global: &Global, name: &str) -> Result<base::StreamId> {
    if name == "default" {
        return Ok(base::StreamId::default());
    }
    Ok(find(&status(global)?, name)?.id)
}

/// The stream of this name, for the certificates of clients.
pub fn for_clients(status: &StreamsStatus, name: &str) -> Result<base::StreamId> {
    let found = find(status, name)?;
    ensure!(!found.is_background(), "'{name}' is background work: no client can belong to it");
    Ok(found.id)
}

fn find<'a>(status: &'a StreamsStatus, name: &str) -> Result<&'a StreamInfo> {
    let found = status.table.streams.iter().find(|stream| stream.name == name);
    found.with_context(|| format!("no stream named '{name}'; `brickwork stream list` shows those there are"))
}

fn create(global: &Global, args: Create) -> Result<()> {
    let request = AdminRequest::CreateStream {
        name: args.name,
        weight: args.weight,
        minimum: args.minimum,
        reservation: args.reservation.units,
        limit: args.limit.units,
        nonce: nonce(),
        latency_us: args.latency.us,
    };
    tell(global, client::call(global, request)?, "made")
}

fn set(global: &Global, args: Set) -> Result<()> {
    let request = AdminRequest::SetStream {
        name: args.name,
        weight: args.weight,
        minimum: args.minimum,
        reservation: args.reservation.map(|rate| rate.units),
        limit: args.limit.map(|rate| rate.units),
        latency_us: args.latency.map(|latency| latency.us),
    };
    tell(global, client::call(global, request)?, "set")
}

fn tell(global: &Global, reply: AdminReply, what: &str) -> Result<()> {
    let AdminReply::Stream(stream) = reply else {
        bail!("the directory answered something else; it is of another version");
    };
    if global.json {
        output::print_json(&view::stream_json(&stream));
        return Ok(());
    }
    let mut said = format!("weight {}, minimum {}", stream.weight, stream.minimum);
    for (name, units) in [("reservation", stream.reservation), ("limit", stream.limit)] {
        if units > 0 {
            said.push_str(&format!(", {name} {}", Rate { units }));
        }
    }
    if stream.latency_us > 0 {
        said.push_str(&format!(", latency {}", Latency { us: stream.latency_us }));
    }
    println!("Stream '{}' is {what}: {said}.", stream.name);
    Ok(())
}

fn list(global: &Global) -> Result<()> {
    let status = status(global)?;
    if global.json {
        output::print_json(&view::streams_json(&status));
        return Ok(());
    }
    let mut table =
        output::table(&["stream", "weight", "minimum", "reserved", "checked", "limit", "latency", "for"]);
    for (stream, of) in status.table.streams.iter().zip(&status.streams) {
        table.add_row([
            stream.name.clone(),
            stream.weight.to_string(),
            stream.minimum.to_string(),
            Rate { units: stream.reservation }.to_string(),
            checked(stream, of.reserved_on),
            Rate { units: stream.limit }.to_string(),
            Latency { us: stream.latency_us }.to_string(),
            belongings(of),
        ]);
    }
    output::align_right(&mut table, &[1, 2, 3, 4, 5, 6]);
    println!("{}", output::render(&table));
    println!("{}", in_force(&status.table));
    if let Some(line) = capacity(&status.capacities) {
        println!("{line}");
    }
    Ok(())
}

/// What belongs to a stream: volumes, and buckets with a `/` behind them.
fn belongings(of: &StreamStatus) -> String {
    let buckets = of.buckets.iter().map(|bucket| format!("{bucket}/"));
    let all: Vec<String> = of.volumes.iter().cloned().chain(buckets).collect();
    if all.is_empty() { "-".to_owned() } else { all.join(", ") }
}

/// Against how many of its bricks a reservation is checked.
fn checked(stream: &StreamInfo, on: ReservedOn) -> String {
    match (stream.reservation, on) {
        (0, _) => "-".to_owned(),
        (_, ReservedOn { bricks: 0, .. }) => "no data".to_owned(),
        (_, ReservedOn { bricks, measured }) => format!("{measured} of {bricks}"),
    }
}

/// What bricks can serve, and what of it is reserved, in a line or two. Nothing where none is measured yet.
fn capacity(of: &[BrickCapacity]) -> Option<String> {
    let measured: Vec<&BrickCapacity> = of.iter().filter(|of| of.capacity > 0).collect();
    let fullest = measured.iter().max_by_key(|of| of.reserved.saturating_mul(1000) / of.capacity)?;
    let sum = measured.iter().fold(0, |sum: u64, of| sum.saturating_add(of.capacity));
    let mut line = format!("{} of {} measured: {} together.", measured.len(), bricks(of.len()), iops(sum));
    if fullest.reserved > 0 {
        let (reserved, capacity) = (iops(fullest.reserved), iops(fullest.capacity));
        line.push_str(&format!("\nMost is reserved on {}: {reserved} of {capacity}.", fullest.brick));
    }
    Some(line)
}

fn bricks(count: usize) -> String {
    output::count(count as u64, "brick")
}

/// A rate that was measured, in requests for 4 KiB a second.
fn iops(units: u64) -> String {
    format!("{}iops", units.saturating_add(StreamInfo::BLOCK_UNITS / 2) / StreamInfo::BLOCK_UNITS)
}

fn in_force(table: &StreamTable) -> String {
    match table.is_shared() {
        true => format!("Disks are shared by these weights; each has {} requests at a time.", table.places),
        false => "Nothing was said of streams: requests are served as they come.".to_owned(),
    }
}

/// Tells a retry of this command from another one.
fn nonce() -> u64 {
    u64::from_le_bytes(random())
}
