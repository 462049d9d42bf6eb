//! `brickwork volume`: creates, resizes and deletes volumes.
//!
//! Reading order: this file, [`list`], [`snapshot`] (snapshots, clones, rollback).

mod list;
mod lost;
mod snapshot;

use super::{client, confirm, stream};
use crate::config::{Bytes, Period};
use crate::global::Global;
use crate::security::random;
use crate::{output, view};
use anyhow::{Context, Result, anyhow, bail, ensure};
use base::BLOCK_U64;
use clap::{Subcommand, ValueEnum};
use serde_json::json;
use wire::{AdminReply, AdminRequest, IoTimeout, Placement, Protocol, ReadPolicy, Reads, VolumeMap};

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  brickwork volume create first --size 10GiB --layout raid1x3
  brickwork volume list
  brickwork volume show first --json
  brickwork volume resize first --size 20GiB
  brickwork volume read-only first on
  brickwork volume set first --read-policy claim
  brickwork volume set first --stream gold
  brickwork volume snapshot first monday
  brickwork volume clone first@monday try-upgrade
  brickwork volume delete first --yes")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make a volume
    Create(Create),
    /// List all volumes
    #[command(after_help = list::HELP)]
    List,
    /// Show one volume: its settings, its state, who has it open, and where it lies
    #[command(
        visible_alias = "show",
        after_help = "\
Gateways tell the directory every two seconds which volumes clients have open there.

Examples:
  brickwork volume show first
  brickwork volume show first --json | jq '.open[] | .gateway'"
    )]
    Info {
        /// The volume
        name: String,
    },
    /// Make a volume larger
    #[command(after_help = "\
A volume never shrinks. Clients see the new size when they connect anew.

Examples:
  brickwork volume resize first --size 20GiB")]
    Resize {
        /// The volume
        name: String,
        /// The new size, in bytes or with a unit; rounded up to 4 KiB
        #[arg(long, value_name = "SIZE")]
        size: Bytes,
    },
    /// Delete a volume and all its data, or a snapshot
    #[command(after_help = "\
A volume is deleted after its snapshots, a snapshot after its clones. Of a deleted snapshot, what the volume still needs
stays; the rest of its room is given back in the background.

Examples:
  brickwork volume delete first
  brickwork volume delete first --yes      without being asked
  brickwork volume delete first@monday")]
    Delete {
        /// The volume, or VOLUME@SNAPSHOT
        name: String,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Take a snapshot: keep the volume's present content under a name
    Snapshot(snapshot::Snapshot),
    /// Make a volume that begins with a snapshot's content
    Clone(snapshot::Clone),
    /// Return a volume to a snapshot, and discard everything written since
    Rollback(snapshot::Rollback),
    /// List what of a volume is lost for good
    Lost(lost::Lost),
    /// Change how a volume is served
    #[command(after_help = SET_HELP)]
    Set {
        /// The volume
        name: String,
        /// The read policy: which brick serves a read
        #[arg(long, value_name = "POLICY", required_unless_present_any = ["io_timeout", "stream", "reads"])]
        read_policy: Option<ReadPolicy>,
        /// What a read counts on: leased (the clock of the brick that serves it) or confirmed (the word of other bricks)
        #[arg(long, value_name = "WHAT")]
        reads: Option<Reads>,
        /// After how long a request that cannot be served ends with an error (EIO); off waits without end
        #[arg(long, value_name = "TIME")]
        io_timeout: Option<Period>,
        /// The stream to which the volume and its snapshots belong: see 'brickwork stream --help'
        #[arg(long, value_name = "NAME")]
        stream: Option<String>,
    },
    /// Refuse writes to a volume, or allow them again
    #[command(after_help = "Examples:\n  brickwork volume read-only first on")]
    ReadOnly {
        /// The volume
        name: String,
        /// on or off
        #[arg(value_enum)]
        state: Switch,
    },
}

/// What `--help` says of read policies.
const SET_HELP: &str = "\
Read policies, of volumes whose blocks are on several bricks:
  usual           as claim where disks have heads that move, as quickest where not
  quickest        the brick that is expected to be quickest; another when it is later than it usually is
  claim           a read waits at all bricks that have the block; the first that can serve it claims it
  hash            the brick that a hash of the address picks
  weighted-hash   the same, with more addresses for bricks that answer faster
  lard            the brick that served this place before, unless it is overloaded
  shortest-queue  the brick with the fewest reads of the gateway unanswered
  hedged          one brick, and a second one when it takes longer than usual
  tied            two bricks, of which the first to begin calls the other off
  probing         the better of a few by their queues and latest answers
  random          any one, each as often as the others
  two-choices     of two drawn at random the one with fewer reads of the gateway unanswered

What a read counts on:
  leased     (unless set) on the lease of the brick that serves it, which ends by its clock:
             a read may be old if that clock stops while a hypervisor pauses the machine
  confirmed  on no clock: bricks have said, after the read was asked, that they know of no
             newer view. Reads wait for that: of all bricks with copies, of some with parity

A request that cannot be served, because too many bricks of a group are away, ends with EIO after the volume's I/O
timeout. A write that ended that way may have taken effect or not. `off` waits until the bricks are back.

Gateways follow within seconds; nothing is moved.

Examples:
  brickwork volume set first --read-policy claim
  brickwork volume set first --reads confirmed
  brickwork volume set first --io-timeout off
  brickwork volume set first --stream gold";

/// On or off.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Switch {
    /// Writes are refused.
    On,
    /// Writes are allowed.
    Off,
}

/// `volume create`.
#[derive(clap::Args)]
#[command(after_help = "\
Layouts:
  raid0x4       striped over 4 bricks, no redundancy
  raid1x3       3 copies on 3 bricks; survives the loss of 2
  raid5-4+1     4 data units and 1 parity unit on 5 bricks, the parity rotating; survives the loss of 1
  raid4-4+1     the same with the parity in one place
  rs-4+2        4 data and 2 Reed-Solomon units on 6 bricks; survives the loss of 2

Placement rules say which bricks form the volume's groups, and which group gets an extent:
  hashed        each group draws its bricks, large ones more often; extents draw their groups
  weighted      the same, but each brick is in as many groups as its size asks for, or one more
                or less: for bricks of different sizes, and for few groups
  periodic      a formula takes all bricks equally often, and consecutive extents lie on
                consecutive groups: for bricks of one size, and for large requests. It is
                refused where failure domains of different sizes cannot be kept apart
A volume's snapshots and clones have its rule. The rule never changes.

Protocols (path,order,atomicity) say who coordinates a request, which of two writes of a block goes
first, and what keeps a write whole: 'brickwork protocol list' shows them, 'brickwork protocol
explain' what each promises and costs. A volume's protocol never changes.

Room is taken when blocks are first written.

Examples:
  brickwork volume create first --size 10GiB --layout raid1x3
  brickwork volume create wide --size 1TiB --layout rs-4+2 --groups 16 --stripe-unit 128KiB
  brickwork volume create mixed --size 1TiB --placement weighted
  brickwork volume create db --size 100GiB --stream gold
  brickwork volume create log --size 10GiB --protocol gw,ts,2pcw+read")]
struct Create {
    /// The volume's name: 1 to 63 of a-z 0-9 - _ . beginning with a letter or digit
    name: String,
    /// The volume's size, in bytes or with a unit (10GiB); rounded up to 4 KiB
    #[arg(long, value_name = "SIZE")]
    size: Bytes,
    /// The layout: how copies or parity are kept
    #[arg(long, default_value = "raid1x3")]
    layout: String,
    /// How many groups of bricks its extents are spread over, at most 1024; 0 lets the directory choose
    #[arg(long, default_value_t = 0, value_name = "N")]
    groups: u32,
    /// The placement rule: which bricks form its groups, and which group gets an extent
    #[arg(long, default_value_t = Placement::Hashed, value_name = "RULE")]
    placement: Placement,
    /// The protocol, or the preset of a known system: what a write promises and costs; see 'brickwork protocol list'
    #[arg(long, default_value_t = Protocol::default(), value_name = "PROTOCOL", value_parser = wire::known::parse)]
    protocol: Protocol,
    /// The stripe unit: how many bytes lie on one brick before the next one follows, a multiple of 4KiB; 0 lets the directory choose
    #[arg(long, default_value = "0", value_name = "SIZE")]
    stripe_unit: Bytes,
    /// The read policy: see 'brickwork volume set --help'
    #[arg(long, default_value_t = ReadPolicy::FOR_NEW_VOLUMES, value_name = "POLICY")]
    read_policy: ReadPolicy,
    /// What a read counts on, leased or confirmed: see 'brickwork volume set --help'
    #[arg(long, default_value_t = Reads::Leased, value_name = "WHAT")]
    reads: Reads,
    /// After how long a request that cannot be served ends with an error (EIO); off waits without end
    #[arg(long, default_value = "5m", value_name = "TIME")]
    io_timeout: Period,
    /// The stream to which its requests belong: see 'brickwork stream --help'
    #[arg(long, default_value = "default", value_name = "NAME")]
    stream: String,
}

/// Runs the verb.
pub fn run(global: &Global, args: Args) -> Result<()> {
    match args.command {
        Command::Create(args) => create(global, args),
        Command::List => list::list(global),
        Command::Info { name } => info(global, name),
        Command::Resize { name, size } => {
            client::call(global, AdminRequest::ResizeVolume { name: name.clone(), size_bytes: size.0 })?;
            done(global, &name, &format!("resized to {size}"))
        }
        Command::Delete { name, yes } => delete(global, name, yes),
        Command::Snapshot(args) => snapshot::snapshot(global, args),
        Command::Clone(args) => snapshot::clone(global, args),
        Command::Lost(args) => lost::lost(global, args),
        Command::Rollback(args) => snapshot::rollback(global, args),
        Command::Set { name, read_policy, reads, io_timeout, stream } => {
            set(global, &name, (read_policy, reads), io_timeout, stream)
        }
        Command::ReadOnly { name, state } => {
            let read_only = state == Switch::On;
            client::call(global, AdminRequest::SetReadOnly { name: name.clone(), read_only })?;
            done(global, &name, if read_only { "made read-only" } else { "made writable" })
        }
    }
}

fn create(global: &Global, args: Create) -> Result<()> {
    let unit = args.stripe_unit.0;
    ensure!(
        unit.is_multiple_of(BLOCK_U64),
        "--stripe-unit is {}; it must be a multiple of 4 KiB",
        args.stripe_unit
    );
    let request = AdminRequest::CreateVolume {
        name: args.name.clone(),
        size_bytes: args.size.0,
        layout: args.layout,
        stripe_unit_blocks: u32::try_from(unit / BLOCK_U64)
            .map_err(|_| anyhow!("--stripe-unit is too large"))?,
        groups: args.groups,
        read_policy: args.read_policy,
        io_timeout: timeout(args.io_timeout),
        nonce: nonce(),
        protocol: args.protocol,
        placement: args.placement,
        stream: stream::named(global, &args.stream)?,
        reads: args.reads,
    };
    match client::call(global, request)? {
        AdminReply::Volume(volume) if global.json => output::print_json(&view::volume_json(&volume)),
        AdminReply::Volume(volume) => {
            let (name, size, layout) = (&volume.name, Bytes(volume.size_bytes), &volume.layout);
            println!("Volume '{name}' is made: {size}, {layout}, placed by {}.", volume.placement);
        }
        _ => return done(global, &args.name, "made"),
    }
    Ok(())
}

fn set(
    global: &Global,
    name: &str,
    (policy, reads): (Option<ReadPolicy>, Option<Reads>),
    period: Option<Period>,
    stream: Option<String>,
) -> Result<()> {
    let mut what = Vec::new();
    if let Some(read_policy) = policy {
        client::call(global, AdminRequest::SetReadPolicy { name: name.to_owned(), read_policy })?;
        what.push(format!("read by the policy '{read_policy}'"));
    }
    if let Some(reads) = reads {
        client::call(global, AdminRequest::SetReads { name: name.to_owned(), reads })?;
        what.push(match reads {
            Reads::Leased => "read by the word of one brick that has a lease".to_owned(),
            Reads::Confirmed => {
                "read with the word of other bricks that nothing was written without them".to_owned()
            }
        });
    }
    if let Some(period) = period {
        let io_timeout = timeout(period);
        client::call(global, AdminRequest::SetIoTimeout { name: name.to_owned(), io_timeout })?;
        what.push(match io_timeout {
            IoTimeout::Never => "served without a time after which requests end with an error".to_owned(),
            IoTimeout::After(_) => format!("served with an error after {period}"),
        });
    }
    if let Some(stream) = stream {
        let request = AdminRequest::SetVolumeStream { volume: name.to_owned(), stream: stream.clone() };
        client::call(global, request)?;
        what.push(format!("served in stream '{stream}'"));
    }
    done(global, name, &what.join(", and "))
}

fn timeout(period: Period) -> IoTimeout {
    IoTimeout::of_ms(period.seconds.saturating_mul(1000))
}

fn info(global: &Global, name: String) -> Result<()> {
    let AdminReply::Map(map) = client::call(global, AdminRequest::VolumeMap { name })? else {
        bail!("the directory answered something else; it is of another version");
    };
    let status = client::status(global)?;
    let users = view::users_of(&status, map.volume.id);
    if global.json {
        let mut value = view::map_json(&map);
        value["open"] = view::users_json(&users);
        output::print_json(&value);
        return Ok(());
    }
    print_map(&map);
    let state = status.volumes.iter().find(|volume| volume.volume.id == map.volume.id);
    state.into_iter().for_each(|state| println!("\nState: {}", view::volume_state(state)));
    match view::open_at(&users) {
        None => println!("No client has it open."),
        Some(places) => println!("Open at {places}."),
    }
    Ok(())
}

fn print_map(map: &VolumeMap) {
    let [name, size, layout, placement, unit, policy, writes] = list::row(&map.volume);
    println!(
        "Volume '{name}' ({}): {size}, {layout}, placed by {placement}, stripe unit {unit}, protocol {}, reads by {policy} and {}, writes {writes}, \
         I/O timeout {}, {}\n",
        map.volume.id, map.volume.protocol, map.volume.reads, map.volume.io_timeout, map.volume.stream
    );
    let mut table = output::table(&["group", "view", "bricks", "catching up", "standing in", "left out"]);
    for group in &map.groups {
        let listed = |bricks: Vec<String>| if bricks.is_empty() { "-".to_owned() } else { bricks.join(" ") };
        let named = |of: &dyn Fn(base::BrickId) -> bool| -> String {
            listed(group.parties().filter(|brick| of(*brick)).map(|brick| brick.0.to_string()).collect())
        };
        let stand_ins = group
            .sealed
            .iter()
            .filter_map(|(slot, member)| Some(format!("{} for {}", group.stands_in_at(*slot)?.0, member.0)));
        table.add_row([
            group.group.0.to_string(),
            group.number.0.to_string(),
            named(&|brick| group.is_current(brick)),
            named(&|brick| group.is_catching_up(brick)),
            listed(stand_ins.collect()),
            named(&|brick| !group.is_writer(brick)),
        ]);
    }
    println!("{}", output::render(&table));
}

fn delete(global: &Global, name: String, yes: bool) -> Result<()> {
    if !yes {
        let what = match name.contains('@') {
            true => format!("Delete the snapshot '{name}' (the volume and its clones stay)"),
            false => format!("Delete volume '{name}' and all its data"),
        };
        confirm::confirm(&what, &name)?;
    }
    client::call(global, AdminRequest::DeleteVolume { name: name.clone(), nonce: nonce() })
        .with_context(|| format!("cannot delete '{name}'"))?;
    done(global, &name, "deleted")
}

/// Tells a retry of this command from another one.
fn nonce() -> u64 {
    u64::from_le_bytes(random())
}

fn done(global: &Global, name: &str, what: &str) -> Result<()> {
    if global.json {
        output::print_json(&json!({ "volume": name, "done": what }));
    } else {
        let kind = if name.contains('@') { "Snapshot" } else { "Volume" };
        println!("{kind} '{name}' is {what}.");
    }
    Ok(())
}
