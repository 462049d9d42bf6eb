//! The verbs, a file each.

pub mod attach;
pub mod brick;
pub mod client;
pub mod cluster;
pub mod completions;
pub mod confirm;
pub mod daemon;
pub mod demo;
pub mod directory;
pub mod disk;
pub mod fsck;
pub mod gateway;
pub mod lab;
pub mod man;
pub mod rebuild;
pub mod scrub;
pub mod sim;
pub mod status;
pub mod trace;
pub mod volume;
pub mod watch;

use crate::args::{Cli, Verb};
use crate::output;
use anyhow::Result;
use std::process::ExitCode;

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
        Verb::Gateway(args) => gateway::run(global, args).map(done),
        Verb::Client(args) => client::run(global, args).map(done),
        Verb::Attach(args) => attach::run(global, args).map(done),
        Verb::Volume(args) => volume::run(global, args).map(done),
        Verb::Status(args) => status::run(global, args),
        Verb::Rebuild(args) => rebuild::run(global, args),
        Verb::Scrub(args) => scrub::run(global, args),
        Verb::Fsck(args) => fsck::run(global, &args),
        Verb::Disk(args) => disk::run(global, args),
        Verb::Sim(args) => sim::run_verb(global, args),
        Verb::Trace(args) => trace::run(global, args).map(done),
        Verb::Lab(args) => lab::run_verb(global, args),
        Verb::Completions(args) => completions::run(args).map(done),
        Verb::Man(args) => man::run(args).map(done),
    }
}

/// Whether nobody notices the end of the verb but who reads what it prints: it starts no daemon and has no peers. Verbs that
/// ask the directory see to that themselves ([`client::call`]), and so does [`fsck`].
fn is_for_reading(verb: &Verb) -> bool {
    match verb {
        Verb::Cluster(_) => true,
        Verb::Disk(_) | Verb::Sim(_) | Verb::Trace(_) | Verb::Completions(_) | Verb::Man(_) => true,
        Verb::Lab(args) => !args.is_live(),
        _ => false,
    }
}
