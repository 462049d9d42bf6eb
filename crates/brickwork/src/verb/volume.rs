//! `brickwork volume`: creates, lists, resizes and deletes volumes.

use super::client;
use crate::args::Global;
use crate::config::Bytes;
use crate::security::random;
use crate::{output, view};
use anyhow::{Result, anyhow, bail, ensure};
use base::BLOCK_U64;
use clap::{Subcommand, ValueEnum};
use serde_json::json;
use std::io::{IsTerminal, Write};
use wire::{AdminReply, AdminRequest, VolumeInfo, VolumeMap};

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  brickwork volume create first --size 10GiB --layout raid1x3
  brickwork volume list
  brickwork volume info first --json
  brickwork volume resize first --size 20GiB
  brickwork volume read-only first on
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
    #[command(
        after_help = "Examples:\n  brickwork volume list\n  brickwork volume list --json | jq -r '.[].name'"
    )]
    List,
    /// Show one volume and where it lies
    #[command(after_help = "Examples:\n  brickwork volume info first")]
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
        /// Its new size, in bytes or with a unit; rounded up to 4 KiB
        #[arg(long, value_name = "SIZE")]
        size: Bytes,
    },
    /// Delete a volume and all its data
    #[command(
        after_help = "Examples:\n  brickwork volume delete first\n  brickwork volume delete first --yes      without being asked"
    )]
    Delete {
        /// The volume
        name: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
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

Room is taken when blocks are first written.

Examples:
  brickwork volume create first --size 10GiB --layout raid1x3
  brickwork volume create wide --size 1TiB --layout rs-4+2 --groups 16 --stripe-unit 128KiB")]
struct Create {
    /// Its name: 1 to 63 of a-z 0-9 - _ . beginning with a letter or digit
    name: String,
    /// Its size, in bytes or with a unit (10GiB); rounded up to 4 KiB
    #[arg(long, value_name = "SIZE")]
    size: Bytes,
    /// How redundancy is kept
    #[arg(long, default_value = "raid1x3")]
    layout: String,
    /// On how many groups of bricks its extents are spread; 0 lets the directory choose
    #[arg(long, default_value_t = 0, value_name = "N")]
    groups: u32,
    /// How much of it lies on one brick before the next one's turn, a multiple of 4KiB; 0 lets the directory choose
    #[arg(long, default_value = "0", value_name = "SIZE")]
    stripe_unit: Bytes,
}

/// Runs the verb.
pub fn run(global: &Global, args: Args) -> Result<()> {
    match args.command {
        Command::Create(args) => create(global, args),
        Command::List => list(global),
        Command::Info { name } => info(global, name),
        Command::Resize { name, size } => {
            client::call(global, AdminRequest::ResizeVolume { name: name.clone(), size_bytes: size.0 })?;
            done(global, &name, &format!("resized to {size}"))
        }
        Command::Delete { name, yes } => delete(global, name, yes),
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
        nonce: u64::from_le_bytes(random()),
    };
    match client::call(global, request)? {
        AdminReply::Volume(volume) if global.json => output::print_json(&view::volume_json(&volume)),
        AdminReply::Volume(volume) => {
            println!("Volume '{}' is made: {}, {}.", volume.name, Bytes(volume.size_bytes), volume.layout);
        }
        _ => return done(global, &args.name, "made"),
    }
    Ok(())
}

fn list(global: &Global) -> Result<()> {
    let AdminReply::Volumes(volumes) = client::call(global, AdminRequest::ListVolumes)? else {
        bail!("the directory answered something else; it is of another version");
    };
    if global.json {
        output::print_json(&volumes.iter().map(view::volume_json).collect());
        return Ok(());
    }
    if volumes.is_empty() {
        println!("There is no volume yet: brickwork volume create first --size 10GiB --layout raid1x3");
        return Ok(());
    }
    let mut table = output::table(&["volume", "size", "layout", "stripe unit", "writes"]);
    for volume in volumes {
        table.add_row(row(&volume));
    }
    output::align_right(&mut table, &[1, 3]);
    println!("{}", output::render(&table));
    Ok(())
}

fn row(volume: &VolumeInfo) -> [String; 5] {
    [
        volume.name.clone(),
        Bytes(volume.size_bytes).to_string(),
        volume.layout.clone(),
        Bytes(u64::from(volume.stripe_unit_blocks) * BLOCK_U64).to_string(),
        if volume.read_only { "refused" } else { "allowed" }.to_owned(),
    ]
}

fn info(global: &Global, name: String) -> Result<()> {
    let AdminReply::Map(map) = client::call(global, AdminRequest::VolumeMap { name })? else {
        bail!("the directory answered something else; it is of another version");
    };
    if global.json {
        output::print_json(&view::map_json(&map));
        return Ok(());
    }
    print_map(&map);
    Ok(())
}

fn print_map(map: &VolumeMap) {
    let [name, size, layout, unit, writes] = row(&map.volume);
    println!("Volume '{name}' ({}): {size}, {layout}, stripe unit {unit}, writes {writes}\n", map.volume.id);
    let mut table = output::table(&["group", "view", "bricks", "left out"]);
    for group in &map.groups {
        let (mut bricks, mut left_out) = (Vec::new(), Vec::new());
        for brick in &group.members {
            if group.is_current(*brick) { &mut bricks } else { &mut left_out }.push(brick.0.to_string());
        }
        let left_out = if left_out.is_empty() { "-".to_owned() } else { left_out.join(" ") };
        table.add_row([group.group.0.to_string(), group.number.0.to_string(), bricks.join(" "), left_out]);
    }
    println!("{}", output::render(&table));
}

fn delete(global: &Global, name: String, yes: bool) -> Result<()> {
    if !yes {
        ensure!(std::io::stdin().is_terminal(), "deleting '{name}' destroys its data; say --yes");
        eprint!("Delete volume '{name}' and all its data? Write its name to confirm: ");
        std::io::stderr().flush()?;
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer)?;
        ensure!(answer.trim() == name, "not deleted: the name was not repeated");
    }
    client::call(global, AdminRequest::DeleteVolume { name: name.clone() })?;
    done(global, &name, "deleted")
}

fn done(global: &Global, name: &str, what: &str) -> Result<()> {
    if global.json {
        output::print_json(&json!({ "volume": name, "done": what }));
    } else {
        println!("Volume '{name}' is {what}.");
    }
    Ok(())
}
