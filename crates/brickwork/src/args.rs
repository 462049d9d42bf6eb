//! The command line, and which verb answers it. Each verb's own arguments stand in its file under [`crate::verb`], and what
//! holds for all of them in [`crate::global`]: no verb knows this file.

use crate::global::Global;
use crate::output;
use crate::verb::{
    attach, brick, bucket, client, cluster, completions, demo, directory, disk, events, fsck, gateway, lab,
    man, object, protocol, rebuild, scrub, sim, status, stream, trace, volume,
};
use anyhow::Result;
use clap::builder::styling::{AnsiColor, Styles};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::process::ExitCode;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Distributed block storage from ordinary servers
///
/// Brickwork keeps volumes on bricks (storage servers), several copies or parity of everything, and serves them over
/// NBD through gateways. A directory keeps track of who holds what.
#[derive(Parser)]
#[command(
    name = "brickwork",
    version,
    styles = STYLES,
    max_term_width = 100,
    after_help = "\
Examples:
  brickwork demo                      a whole cluster on this machine, a brick killed, every byte verified
  brickwork cluster init --dir D      begin a real cluster
  brickwork status                    how the cluster is
  brickwork help volume create        more about one verb

Environment: BRICKWORK_CONFIG, BRICKWORK_LOG_LEVEL, BRICKWORK_LOG_FORMAT, and BRICKWORK_<KEY> for every key of a
configuration file (BRICKWORK_LISTEN, BRICKWORK_TLS_CA). Flags win over the environment, which wins over the file.
Exit codes: 0 done, 1 failed, 2 the command line makes no sense."
)]
pub struct Cli {
    /// What holds for every verb.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do.
#[derive(Subcommand)]
pub enum Verb {
    /// Run a whole cluster on this machine, kill a brick under load, verify every byte
    Demo(demo::Args),
    /// Begin a cluster, admit machines to it
    Cluster(cluster::Args),
    /// Run the directory: the metadata service; or make a lost one anew (`directory rebuild`)
    Directory(directory::Args),
    /// Run a brick (a storage server); create one (`brick init`); list or evict bricks
    Brick(brick::Args),
    /// Run a gateway (NBD in front of the bricks), or create one (`gateway init`)
    Gateway(Box<gateway::Args>),
    /// Create a client: the configuration for `attach`, `volume` and `status`
    Client(client::Args),
    /// Serve a volume on a unix socket of this machine, through any live gateway
    Attach(attach::Args),
    /// Create, list, resize and delete volumes; snapshots and clones of them
    Volume(volume::Args),
    /// Put, patch, read, list, check and remove objects
    Object(object::Args),
    /// Say to which streams buckets belong
    Bucket(bucket::Args),
    /// The protocols that volumes may have: list them, explain what each promises and costs
    Protocol(protocol::Args),
    /// Share the disks among volumes: streams with weights, and what each gets
    Stream(stream::Args),
    /// Show the state of bricks, gateways and volumes
    Status(status::Args),
    /// Show what happened to bricks: when, why, and by what that is known
    Events(events::Args),
    /// Show the progress of rebuilding; set its rate and when it begins
    Rebuild(rebuild::Args),
    /// Check every block of every brick, and repair rotten blocks
    Scrub(scrub::Args),
    /// Check a stopped brick's disks, and repair them on request
    Fsck(fsck::Args),
    /// Models of drives: list and show them, compare them with real ones, measure real ones
    Disk(disk::Args),
    /// Run the same protocol code in a simulated world under faults
    Sim(sim::Args),
    /// Inspect block traces, convert them, generate synthetic ones
    Trace(trace::Args),
    /// Run the published experiments behind Brickwork, and your own, in simulation
    Lab(lab::Args),
    /// Print a completion script for a shell
    Completions(completions::Args),
    /// Write manual pages
    Man(man::Args),
}

/// Reads the command line; ends the process with code 2 when it makes no sense.
pub fn parse() -> Cli {
    let matches = command().get_matches();
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// The command line, with texts that are wrapped where the terminal ends and nowhere else.
fn command() -> clap::Command {
    unwrapped(Cli::command())
}

fn unwrapped(command: clap::Command) -> clap::Command {
    let text = command.get_after_help().map(|text| unwrap_prose(&text.to_string()));
    let command = match text {
        Some(text) => command.after_help(text),
        None => command,
    };
    command.mut_subcommands(unwrapped)
}

/// Joins the lines of each paragraph. Lines that are indented stay as they are, and so do ends of lines that are meant: a heading's, or of a sentence where there is much room left.
fn unwrap_prose(text: &str) -> String {
    const MUCH_ROOM_FROM: usize = 90;
    let mut joined = String::new();
    let mut last = "";
    for line in text.lines() {
        let is_prose = |line: &str| !line.is_empty() && !line.starts_with([' ', '-']);
        let ends_there = last.ends_with(':') || (last.ends_with('.') && last.len() < MUCH_ROOM_FROM);
        let goes_on = is_prose(last) && is_prose(line) && !ends_there;
        if !joined.is_empty() {
            joined.push(if goes_on { ' ' } else { '\n' });
        }
        joined.push_str(line);
        last = line;
    }
    joined
}

/// Does what the command line says.
pub fn run(cli: Cli) -> Result<ExitCode> {
    let global = &cli.global;
    let done = |()| ExitCode::SUCCESS;
    if is_for_reading(&cli.verb) {
        output::end_with_reader();
    }
    match cli.verb {
        Verb::Demo(args) => demo::run(global, args),
        Verb::Cluster(args) => cluster::run(global, args).map(done),
        Verb::Directory(args) => directory::run(global, args),
        Verb::Brick(args) => brick::run(global, args),
        Verb::Gateway(args) => gateway::run(global, *args).map(done),
        Verb::Client(args) => client::run(global, args).map(done),
        Verb::Attach(args) => attach::run(global, args).map(done),
        Verb::Volume(args) => volume::run(global, args).map(done),
        Verb::Object(args) => object::run(global, args).map(done),
        Verb::Bucket(args) => bucket::run(global, args).map(done),
        Verb::Protocol(args) => protocol::run(global, args).map(done),
        Verb::Stream(args) => stream::run(global, args).map(done),
        Verb::Status(args) => status::run(global, args),
        Verb::Events(args) => events::run(global, args).map(done),
        Verb::Rebuild(args) => rebuild::run(global, args),
        Verb::Scrub(args) => scrub::run(global, args),
        Verb::Fsck(args) => fsck::run(global, &args),
        Verb::Disk(args) => disk::run(global, args),
        Verb::Sim(args) => sim::run_verb(global, args),
        Verb::Trace(args) => trace::run(global, args).map(done),
        Verb::Lab(args) => lab::run_verb(global, args),
        Verb::Completions(args) => completions::run(args, &mut command()).map(done),
        Verb::Man(args) => man::run(args, command()).map(done),
    }
}

/// Whether nobody notices the end of the verb but who reads what it prints: it starts no daemon and has no peers. Verbs that
/// ask the directory see to that themselves ([`client::call`]). [`fsck`] goes on: its exit code is the answer. [`cluster`] goes
/// on, too: it makes what must not be left half made.
fn is_for_reading(verb: &Verb) -> bool {
    match verb {
        Verb::Disk(_)
        | Verb::Sim(_)
        | Verb::Trace(_)
        | Verb::Protocol(_)
        | Verb::Completions(_)
        | Verb::Man(_) => true,
        Verb::Lab(args) => !args.is_live(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        command().debug_assert();
    }

    #[test]
    fn prose_is_joined_and_examples_are_not() {
        let text = "What is in FILE takes the place of as many bytes of the object, and what goes beyond its\nend makes it longer.\nA sentence.\n\nExamples:\n  one\n  two";
        let joined = "What is in FILE takes the place of as many bytes of the object, and what goes beyond its end makes it longer.\nA sentence.\n\nExamples:\n  one\n  two";
        assert_eq!(unwrap_prose(text), joined);
    }
}
