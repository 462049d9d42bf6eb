//! The command line. Each verb's own arguments stand in its file under [`crate::verb`].

use crate::verb::{
    attach, brick, client, cluster, completions, demo, directory, disk, fsck, gateway, lab, man, rebuild,
    scrub, sim, status, trace, volume,
};
use clap::builder::styling::{AnsiColor, Styles};
use clap::{Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

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

/// What holds for every verb.
#[derive(clap::Args, Clone, Debug)]
pub struct Global {
    /// Print JSON instead of text
    #[arg(long, global = true, help_heading = "Global options")]
    pub json: bool,
    /// The configuration file (TOML) of this daemon or client
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "BRICKWORK_CONFIG",
        help_heading = "Global options"
    )]
    pub config: Option<PathBuf>,
    /// How logs are written to standard error
    #[arg(
        long,
        global = true,
        value_enum,
        default_value = "text",
        env = "BRICKWORK_LOG_FORMAT",
        help_heading = "Global options"
    )]
    pub log_format: LogFormat,
    /// The least important log line to write
    #[arg(
        long,
        global = true,
        value_enum,
        default_value = "info",
        env = "BRICKWORK_LOG_LEVEL",
        help_heading = "Global options"
    )]
    pub log_level: LogLevel,
}

/// How logs are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Which log lines are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum LogLevel {
    /// What went wrong.
    Error,
    /// And what may.
    Warn,
    /// And what happens.
    Info,
    /// And why.
    Debug,
    /// And everything else.
    Trace,
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
    /// Run a brick: a storage server; make one (`brick init`), list or evict them
    Brick(brick::Args),
    /// Run a gateway: NBD in front of the bricks; or make one (`gateway init`)
    Gateway(gateway::Args),
    /// Make a client: the configuration for `attach`, `volume` and `status`
    Client(client::Args),
    /// Serve a volume on a unix socket of this machine, through any gateway that lives
    Attach(attach::Args),
    /// Create, list, resize and delete volumes; snapshots and clones of them
    Volume(volume::Args),
    /// Show how bricks, gateways and volumes are
    Status(status::Args),
    /// Show how bricks catch up and lost bricks are rebuilt; set how fast and when
    Rebuild(rebuild::Args),
    /// Check every block of every brick, and repair what is rotten
    Scrub(scrub::Args),
    /// Check a stopped brick's disks, and repair them when asked
    Fsck(fsck::Args),
    /// Models of drives: list and show them, compare them with real ones, measure real ones
    Disk(disk::Args),
    /// Run the same protocol code in a simulated world full of faults
    Sim(sim::Args),
    /// Look at block traces, convert them, generate synthetic ones
    Trace(trace::Args),
    /// Run the published experiments behind Brickwork, and one's own, in simulation
    Lab(lab::Args),
    /// Print a completion script for a shell
    Completions(completions::Args),
    /// Write manual pages
    Man(man::Args),
}

/// Reads the command line; ends the process with code 2 when it makes no sense.
pub fn parse() -> Cli {
    Cli::parse()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
