//! `brickwork bucket`: to which streams buckets belong.

use super::{client, stream};
use crate::global::Global;
use crate::output;
use anyhow::{Context, Result};
use clap::Subcommand;
use serde_json::json;
use wire::AdminRequest;

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "\
A bucket is the first part of its objects' names, BUCKET/KEY. It is there as soon as an object is in it; nothing has to be made.
What is put into a bucket and read from it is served for the bucket's stream: in proportion to that stream's weight, with its
reservation and limit (`brickwork stream --help`). Each command counts what it was served at all bricks together.

Examples:
  brickwork stream create backup --weight 10 --limit 2000iops
  brickwork bucket set backups --stream backup
  brickwork bucket list
  brickwork bucket set backups --stream default")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Give a bucket to a stream
    #[command(after_help = "\
It holds for gets and puts that begin from then on. The bucket need not have an object yet. 'default' takes what was said back.

Examples:
  brickwork bucket set backups --stream backup")]
    Set {
        /// The bucket
        #[arg(value_parser = bucket)]
        bucket: String,
        /// The stream
        #[arg(long)]
        stream: String,
    },
    /// List the buckets that were given to streams
    #[command(after_help = "\
Buckets that are not in the list belong to 'default'.

Examples:
  brickwork bucket list --json")]
    List,
}

/// Runs the verb.
pub fn run(global: &Global, args: Args) -> Result<()> {
    match args.command {
        Command::Set { bucket, stream } => {
            let request = AdminRequest::SetBucketStream { bucket: bucket.clone(), stream: stream.clone() };
            client::call(global, request).with_context(|| format!("cannot give '{bucket}' to '{stream}'"))?;
            match global.json {
                true => output::print_json(&json!({ "bucket": bucket, "stream": stream })),
                false => println!("Bucket '{bucket}' belongs to the stream '{stream}'."),
            }
            Ok(())
        }
        Command::List => list(global),
    }
}

fn list(global: &Global) -> Result<()> {
    let status = stream::status(global)?;
    let names = status.table.streams.iter().map(|stream| &stream.name);
    let mut all: Vec<(&String, &String)> = names
        .zip(&status.streams)
        .flat_map(|(name, of)| of.buckets.iter().map(move |bucket| (bucket, name)))
        .collect();
    all.sort();
    if global.json {
        let all: Vec<_> =
            all.iter().map(|(bucket, stream)| json!({ "bucket": bucket, "stream": stream })).collect();
        output::print_json(&json!({ "buckets": all }));
        return Ok(());
    }
    if all.is_empty() {
        println!("All buckets belong to the stream 'default'.");
        return Ok(());
    }
    let mut table = output::table(&["bucket", "stream"]);
    for (bucket, stream) in all {
        table.add_row([bucket, stream]);
    }
    println!("{}", output::render(&table));
    Ok(())
}

/// The name of a bucket.
fn bucket(text: &str) -> Result<String, String> {
    wire::index::check_bucket(text).map(|()| text.to_owned())
}
