//! What holds for every verb: where its configuration is, and how it speaks.

use clap::ValueEnum;
use std::path::PathBuf;

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
