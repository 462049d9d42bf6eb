//! What a run is asked to be: the options that `sim torture` and `sim shrink` share, so that the same options make the same run.

use anyhow::{Result, anyhow, bail};
use sim::Options;

#[derive(clap::Args, Clone)]
pub(super) struct RunOptions {
    /// How many shards a brick has, each with a disk of its own; default: drawn from the seed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    shards: Option<u16>,
    /// How many bricks; default: drawn from the seed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    bricks: Option<u32>,
    /// Draw layouts from these only; may be repeated
    #[arg(long = "layout", value_name = "LAYOUT", value_parser = parse_layout)]
    layouts: Vec<String>,
    /// Draw read policies from these only; may be repeated
    #[arg(long = "read-policy", value_name = "POLICY")]
    read_policies: Vec<wire::ReadPolicy>,
    /// Draw placement rules from these only; may be repeated
    #[arg(long = "placement", value_name = "RULE")]
    placements: Vec<wire::Placement>,
    /// Draw protocols from these only, such as gw,ts,2pcw+read; may be repeated
    #[arg(long = "protocol", value_name = "PROTOCOL", value_parser = wire::known::parse)]
    protocols: Vec<wire::Protocol>,
    /// Seconds of simulated time under faults; default: drawn from the seed
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    simulated_s: Option<u64>,
    /// About how many operations clients issue; default: drawn from the seed
    #[arg(long, value_name = "N")]
    operations: Option<u64>,
    /// Put, patch, read, list and remove objects, too, while clients use the volumes
    #[arg(long)]
    objects: bool,
    /// Inject no faults
    #[arg(long)]
    no_faults: bool,
}

impl RunOptions {
    pub(super) fn options(&self) -> Result<Options> {
        let narrowest = self.layouts.iter().filter_map(|layout| width(layout).ok()).min().unwrap_or(0);
        // Without --bricks a seed may draw as few as 4.
        if narrowest > self.bricks.unwrap_or(4) {
            bail!("these layouts need {narrowest} bricks at least: give --bricks {narrowest} or more");
        }
        Ok(Options {
            simulated_s: self.simulated_s,
            shards: self.shards,
            bricks: self.bricks,
            layouts: self.layouts.clone(),
            read_policies: self.read_policies.iter().map(ToString::to_string).collect(),
            placements: self.placements.iter().map(ToString::to_string).collect(),
            protocols: self.protocols.iter().map(ToString::to_string).collect(),
            faults: !self.no_faults,
            operations: self.operations,
            objects: self.objects,
            plant: None,
        })
    }

    /// The same, with this protocol only.
    pub(super) fn under(&self, protocol: wire::Protocol) -> RunOptions {
        RunOptions { protocols: vec![protocol], ..self.clone() }
    }

    /// A command that runs `seed` with these options, such as `sim shrink 7 --objects`.
    pub(super) fn command(&self, run: &str) -> String {
        let mut command = format!("brickwork sim {run}");
        let mut add = |flag: &str, value: Option<String>| {
            command.extend(value.map(|value| format!(" {flag} {value}")));
        };
        add("--shards", self.shards.map(|shards| shards.to_string()));
        add("--bricks", self.bricks.map(|bricks| bricks.to_string()));
        add("--simulated-s", self.simulated_s.map(|seconds| seconds.to_string()));
        add("--operations", self.operations.map(|operations| operations.to_string()));
        self.layouts.iter().for_each(|layout| add("--layout", Some(layout.clone())));
        self.read_policies.iter().for_each(|policy| add("--read-policy", Some(policy.to_string())));
        self.placements.iter().for_each(|rule| add("--placement", Some(rule.to_string())));
        self.protocols.iter().for_each(|protocol| add("--protocol", Some(protocol.to_string())));
        let flags = [(self.objects, " --objects"), (self.no_faults, " --no-faults")];
        flags.into_iter().filter(|(is_given, _)| *is_given).for_each(|(_, flag)| command.push_str(flag));
        command
    }
}

fn parse_layout(text: &str) -> Result<String> {
    width(text).map(|_| text.to_owned())
}

/// How many bricks a layout needs.
fn width(text: &str) -> Result<u32> {
    let layout: rules::layout::Layout = text.parse().map_err(|error| anyhow!("{error}"))?;
    Ok(u32::from(layout.width()))
}
