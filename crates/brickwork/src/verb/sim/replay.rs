//! `sim replay`: what happened in a run, event by event.

use super::panics;
use crate::global::Global;
use crate::output;
use anyhow::{Context, Result};
use serde_json::json;
use sim::replay::{Filter, Place, ReplayError};
use std::fs::File;
use std::io::{BufReader, Write, sink, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
#[command(after_help = "\
Does the run of a trace again and compares each event with the trace. Each event is one line, however long: its number,
the time since the world began in seconds, the node that it reaches, and what reaches it. What a node sends is shown where
it arrives.

--from, --until, --node and --operation choose what is shown; an event must pass all that are given. What is not shown
is compared all the same, up to --until. TIME is a number with a unit, such as 12.5s, 300ms, 20us or 7ns; EVENT is the
number of an event. NAME is a node as the trace names it: directory, brick-3, gateway-2, client-5. ID is the number of
an operation: #ID where a client asks for it, and 'operation: ID' in the messages between nodes. Each node numbers the
operations that it begins by itself, so that --node and --operation are best given together.

When the run differs from the trace, the first event that differs is printed as recorded and as replayed, and the code is 1.
That happens when another version of the program wrote the trace.

Examples:
  brickwork sim replay torture-4711.trace.jsonl | less -S
  brickwork sim replay torture-4711.trace.jsonl --from 12.5s --until 13s
  brickwork sim replay torture-4711.trace.jsonl --until 5000 | tail -n 40
  brickwork sim replay torture-4711.trace.jsonl --node brick-3 --node gateway-2 --operation 118")]
pub(super) struct Replay {
    /// The trace that a failing seed left, or `sim shrink`
    trace: PathBuf,
    /// The first event to show
    #[arg(long, value_name = "TIME|EVENT")]
    from: Option<Place>,
    /// The last event to show
    #[arg(long, value_name = "TIME|EVENT")]
    until: Option<Place>,
    /// Show only what reaches this node and what it sent; may be repeated
    #[arg(long = "node", value_name = "NAME", value_parser = parse_node)]
    nodes: Vec<String>,
    /// Show only events that name this operation; may be repeated
    #[arg(long = "operation", value_name = "ID")]
    operations: Vec<u64>,
}

/// A name of a node, as traces have it.
fn parse_node(text: &str) -> Result<String, String> {
    let is_numbered =
        |kind| text.strip_prefix(kind).is_some_and(|number: &str| number.parse::<u64>().is_ok());
    if text == "directory" || ["brick-", "gateway-", "client-"].into_iter().any(is_numbered) {
        return Ok(text.to_owned());
    }
    Err(format!("'{text}' is no node: nodes are named directory, brick-3, gateway-2 and client-5"))
}

pub(super) fn run(global: &Global, args: &Replay) -> Result<ExitCode> {
    let file =
        File::open(&args.trace).with_context(|| format!("cannot read the trace {}", args.trace.display()))?;
    let filter = Filter {
        from: args.from,
        until: args.until,
        nodes: args.nodes.clone(),
        operations: args.operations.clone(),
    };
    let out: Box<dyn Write> = if global.json { Box::new(sink()) } else { Box::new(stdout().lock()) };
    panics::keep();
    let cannot = || format!("the trace {} cannot be replayed", args.trace.display());
    let replay = sim::Replay::open(Box::new(BufReader::new(file)), filter, out).with_context(cannot)?;
    let violation = panics::catch(|| replay.run()).unwrap_or_else(Some);
    let count = match replay.finish() {
        Ok(count) => count,
        Err(ReplayError::Diverged(divergence)) if global.json => {
            output::print_json(&json!({
                "events": divergence.recorded.n - 1, "agree": false,
                "recorded": divergence.recorded, "replayed": divergence.replayed,
            }));
            return Ok(ExitCode::FAILURE);
        }
        Err(error) => return Err(error).with_context(cannot),
    };
    if global.json {
        output::print_json(&json!({ "events": count, "agree": true, "violation": violation }));
        return Ok(ExitCode::SUCCESS);
    }
    println!("{} agree with the trace.", output::count(count, "event"));
    if let Some(violation) = violation {
        println!("The run ends with a violation: {violation}");
    }
    Ok(ExitCode::SUCCESS)
}
