//! `brickwork protocol`: the protocols that a volume may have, what each promises, and what it costs.

use crate::global::Global;
use crate::output;
use anyhow::Result;
use clap::Subcommand;
use rules::layout::Layout;
use serde_json::{Value, json};
use volume::netraid::cost::{Cost, Operation, cost};
use volume::netraid::order::{Gate, rule};
use wire::known::{self, PRESETS, Preset};
use wire::{Atomicity, DataPath, Order, Protocol, SmallWrites};

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "\
A protocol is path,order,atomicity: who coordinates a request, which of two writes of a block goes first, and what keeps a
write whole. (The names are those of Kenchammana-Hosekote et al., \"The Design and Evaluation of Network RAID Protocols\".)
A volume has the protocol that it was made with.

Examples:
  brickwork protocol list
  brickwork protocol explain gw,ts,2pcw --layout raid5-4+1
  brickwork protocol explain fab
  brickwork volume create db --size 10GiB --protocol gw,ts,2pcw+read")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the protocols
    List,
    /// Say what a protocol promises, what it survives, and what it costs
    Explain {
        /// The protocol: path,order,atomicity, or a preset
        #[arg(default_value_t = Protocol::default(), value_parser = known::parse)]
        protocol: Protocol,
        /// The layout for which costs are told
        #[arg(long, default_value = "raid1x3")]
        layout: Layout,
    },
}

/// Runs the verb.
pub fn run(global: &Global, args: Args) -> Result<()> {
    match args.command {
        Command::List if global.json => {
            output::print_json(&Protocol::all().map(|of| json(of, None)).collect())
        }
        Command::List => list(),
        Command::Explain { protocol, layout } if global.json => {
            output::print_json(&json(protocol, Some(layout)))
        }
        Command::Explain { protocol, layout } => explain(protocol, layout),
    }
    Ok(())
}

fn list() {
    let mut table = output::table(&["part", "name", "what it says"]);
    for (part, name, text) in all_parts() {
        table.add_row([part, name, text]);
    }
    println!("{}", output::render(&table));
    println!(
        "\nAny path goes with any order and any atomicity, but version with log only.\nA preset is nearest to a system:"
    );
    let mut table = output::table(&["preset", "protocol", "of", "what differs"]);
    for Preset { name, system, protocol, differs } in PRESETS {
        table.add_row([name, protocol, system, differs]);
    }
    println!("{}", output::render(&table));
}

/// All that there are, each dimension's name at its first.
fn all_parts() -> Vec<(&'static str, &'static str, &'static str)> {
    let paths = DataPath::ALL.into_iter().map(|path| (path.name(), about_path(path)));
    let orders = Order::ALL.into_iter().map(|order| (order.name(), rule(order).about()));
    let mut all = Vec::new();
    let mut add = |part: &'static str, of: Vec<(&'static str, &'static str)>| {
        let first = core::iter::once(part).chain(core::iter::repeat(""));
        all.extend(of.into_iter().zip(first).map(|((name, text), part)| (part, name, text)));
    };
    add("path", paths.collect());
    add("order", orders.collect());
    let small_writes =
        SmallWrites::ALL.into_iter().map(|way| (way.name(), about_small_writes(way))).collect();
    add(
        "atomicity",
        vec![("none", ABOUT_NONE), ("2pcw", ABOUT_TWO_PHASE), ("log", ABOUT_LOG), ("...+read", ABOUT_READ)],
    );
    add("parity", small_writes);
    all
}

fn explain(protocol: Protocol, layout: Layout) {
    println!("{protocol}\n");
    for (part, name, text) in parts(protocol) {
        output::print_marked(&format!("  {part:10} {name:8} "), text);
    }
    println!("\nPromises");
    for (what, text) in promises(protocol) {
        output::print_marked(&format!("  {what:19} "), text);
    }
    if let Some((system, different)) = resembles(protocol) {
        output::print_marked(&format!("  {:19} ", "resembles"), &format!("{system}; {different}"));
    }
    println!("\nCosts on {layout}, where nothing fails and no writes meet");
    let mut table = output::table(&["operation", "messages", "rounds", "flushes in all"]);
    for (name, Cost { messages, rounds, flushes }) in costs(protocol, layout) {
        table.add_row([name.to_owned(), messages.to_string(), rounds.to_string(), flushes.to_string()]);
    }
    output::align_right(&mut table, &[1, 2, 3]);
    println!("{}", output::render(&table));
    println!(
        "Messages are questions to bricks and their answers. Decisions of writes ride\n\
         along with other messages. Rounds follow one another.{}",
        match protocol.path {
            DataPath::Gateway | DataPath::Coordinator | DataPath::Amongst =>
                "\nA read is of a policy that asks one brick. A client on another machine than its\n\
                 gateway takes two messages more.",
            DataPath::Direct => "\nA read is of a policy that asks one brick.",
        }
    );
}

fn about_path(path: DataPath) -> &'static str {
    match path {
        DataPath::Gateway => "a gateway coordinates, and computes the parity of whole rows",
        DataPath::Direct => {
            "the client's own process coordinates (brickwork attach --direct): the same, without the way to a gateway and back"
        }
        DataPath::Coordinator => {
            "the gateway beside the group's first current brick coordinates (brickwork gateway --beside); attach finds it, and another gateway serves where it is away"
        }
        DataPath::Amongst => {
            "the gateway beside the brick that has a request's first block coordinates, so that what it has for itself stays there"
        }
    }
}

fn about_small_writes(way: SmallWrites) -> &'static str {
    match way {
        SmallWrites::Delta => {
            "the data brick of a small write computes the difference, which goes to the parity bricks; this is usual and not written"
        }
        SmallWrites::ReadModifyWrite => {
            "the coordinator of a small write reads the old data and the old parity, and sends the new of both at once"
        }
    }
}

const ABOUT_NONE: &str =
    "a read may see a write that is not decided yet, and may see it undone when its writer dies";
const ABOUT_TWO_PHASE: &str = "a write stands beside the old content at all current members before it takes effect at any; \
     a read waits for the decision";
const ABOUT_LOG: &str = "a write stands beside the old content as under 2pcw; a read that meets it does not wait, but asks whether all bricks have \
     it, and if not takes the old content";
const ABOUT_READ: &str =
    "where a brick has no lease, it is asked again with all others, who confirm what it says by their stamps";

const ABOUT_LINK: &str =
    "a write that has several parts takes effect when a record of them is written, and so as a whole";

/// What the parts are: the dimension, the name, and what it says.
fn parts(protocol: Protocol) -> Vec<(&'static str, &'static str, &'static str)> {
    let mut parts = vec![
        ("path", protocol.path.name(), about_path(protocol.path)),
        ("order", protocol.order.name(), rule(protocol.order).about()),
        match protocol.atomicity {
            Atomicity::None => ("atomicity", "none", ABOUT_NONE),
            Atomicity::TwoPhase { .. } => ("atomicity", "2pcw", ABOUT_TWO_PHASE),
            Atomicity::Log { .. } => ("atomicity", "log", ABOUT_LOG),
        },
    ];
    if protocol.atomicity.checks_reads() {
        parts.push(("", "read", ABOUT_READ));
    }
    if protocol.atomicity.links() {
        parts.push(("", "link", ABOUT_LINK));
    }
    if protocol.small_writes != SmallWrites::Delta {
        parts.push(("parity", protocol.small_writes.name(), about_small_writes(protocol.small_writes)));
    }
    parts
}

/// What holds under it.
fn promises(protocol: Protocol) -> Vec<(&'static str, &'static str)> {
    let directory = match protocol.atomicity.checks_reads() {
        true => "writes go on; once leases have run out, reads are asked of each brick that has the block",
        false => {
            "writes go on; once leases have run out, reads wait until it is back, unless one brick alone has the block, or its row stands in for it"
        }
    };
    let order = match protocol.atomicity {
        Atomicity::None => {
            "a read sees the last acknowledged write of a block, or one that is under way; of two reads during a write the later one may see the old content"
        }
        Atomicity::TwoPhase { .. } | Atomicity::Log { .. } => {
            "linearizable for each block, through any number of gateways"
        }
    };
    let mut promises = vec![
        (
            "a write is atomic",
            match protocol.atomicity.links() {
                true => {
                    "whatever fails: of whole 4 KiB blocks, if it has at most 64 parts (usually 3.9 MiB); a longer or unaligned one within each stripe unit by itself. A read of up to 64 KiB within a unit sees all of it or nothing"
                }
                false => {
                    "whatever fails: within one stripe unit (usually 64 KiB), of all units of whole rows of one stripe, and on copies up to 1 MiB within an extent (4 MiB); of a longer write each such part by itself. A read of up to 64 KiB within a unit sees all of it or nothing"
                }
            },
        ),
        ("order", order),
        ("acknowledged", "once all current members of the group have it on stable storage"),
        ("a client dies", "what it wrote last takes effect once or never"),
        match protocol.path {
            DataPath::Gateway | DataPath::Coordinator | DataPath::Amongst => (
                "a gateway dies",
                "its clients go on through another one; what was in doubt is settled within a few seconds",
            ),
            DataPath::Direct => (
                "an attach dies",
                "its client has no other; what was in doubt is settled as soon as the volume is attached again",
            ),
        },
        (
            "a brick dies",
            "the layout says how many may; the others go on when the dead one's lease has ended (0.3 s; up to 4 s if it was heard irregularly)",
        ),
        ("the directory dies", directory),
    ];
    if matches!(rule(protocol.order).gate(), Gate::Server | Gate::ServerWhereRefused) {
        promises.push((
            "a lock server dies",
            "its locks are void, and the group's next first brick is asked; who gets no lock for 5 s writes without it",
        ));
    }
    promises
}

/// Which known system it is nearest to, and what is different.
fn resembles(protocol: Protocol) -> Option<(&'static str, &'static str)> {
    PRESETS.iter().find(|preset| preset.protocol() == protocol).map(|preset| (preset.system, preset.differs))
}

fn costs(protocol: Protocol, layout: Layout) -> Vec<(&'static str, Cost)> {
    let mut costs = vec![
        ("read of a unit", cost(protocol, layout, Operation::Read)),
        ("small write", cost(protocol, layout, Operation::SmallWrite)),
    ];
    if layout.data() > 1 {
        costs.push(("write of a whole row", cost(protocol, layout, Operation::FullStripe)));
    }
    if protocol.atomicity.links() {
        costs.push(("record of several parts", cost(protocol, layout, Operation::Record)));
    }
    costs
}

fn json(protocol: Protocol, layout: Option<Layout>) -> Value {
    let parts: Vec<Value> = parts(protocol)
        .into_iter()
        .map(|(part, name, text)| json!({ "part": if part.is_empty() { "atomicity" } else { part }, "name": name, "what": text }))
        .collect();
    let promises: serde_json::Map<String, Value> =
        promises(protocol).into_iter().map(|(what, text)| (what.to_owned(), text.into())).collect();
    let mut value = json!({
        "protocol": protocol.to_string(), "default": protocol == Protocol::default(), "parts": parts,
        "promises": promises, "resembles": resembles(protocol).map(|(system, _)| system),
    });
    if let Some(layout) = layout {
        value["layout"] = layout.to_string().into();
        value["costs"] = costs(protocol, layout)
            .into_iter()
            .map(|(name, Cost { messages, rounds, flushes })| {
                json!({ "operation": name, "messages": messages, "rounds": rounds, "flushes": flushes })
            })
            .collect();
    }
    value
}
