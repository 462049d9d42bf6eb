//! `brickwork object put`: a file, or what comes in, as an object.

use super::content::{self, Sent};
use super::resume::{Notes, Work};
use super::{info_json, version};
use crate::config::Bytes;
use crate::global::Global;
use crate::output;
use anyhow::Result;
use objects::object::{NewObject, ObjectWish, REDUNDANCY_MAX, SEGMENT_BYTES};
use std::path::PathBuf;
use wire::{Condition, ObjectName};

/// `object put`.
#[derive(clap::Args)]
#[command(after_help = "\
When the command succeeds the object is on stable storage, and survives the loss of as many bricks as --survive says. An object
of that name is replaced at once as a whole. When the command is interrupted before all content was sent, nothing is seen of
the object. Without --resume the space of what was sent is given back within some minutes.

With --resume NOTES the command notes in the file NOTES which segments of 32 MiB are stored; the file is made if it is not there.
After an interruption of any kind give the same command once more: it reads the content from its beginning, and sends the
segments that are not stored, or have changed since. What is stored is kept for a day. NOTES is removed when the object is
stored. To give up, remove NOTES.

Examples:
  brickwork object put backup.tar backups/monday.tar
  brickwork object put - backups/home.tar < home.tar
  brickwork object put db.dump backups/db --if-absent       fails if there is one
  brickwork object put disk.img images/disk --resume disk.notes")]
pub(super) struct Args {
    /// The file; `-` is standard input
    file: PathBuf,
    /// BUCKET/KEY
    #[arg(value_parser = super::name)]
    object: ObjectName,
    /// So many bricks may be lost; there have to be more than twice as many
    #[arg(long, value_name = "BRICKS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=16))]
    survive: u32,
    /// Store at least so much beside the object itself, in percent of it. Beyond what --survive takes this makes gets faster where bricks
    /// are fast at times and slow at times
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=i64::from(REDUNDANCY_MAX)))]
    redundancy: u32,
    /// Only if there is no object of that name
    #[arg(long, conflicts_with = "if_version")]
    if_absent: bool,
    /// Only if this version is there, as `object stat` shows it
    #[arg(long, value_name = "VERSION", value_parser = version)]
    if_version: Option<u64>,
    /// Note in this file what is stored; if there are notes, go on from there
    #[arg(long, value_name = "NOTES")]
    resume: Option<PathBuf>,
}

pub(super) fn run(global: &Global, args: Args) -> Result<()> {
    let condition = match args.if_version {
        Some(version) => Condition::Is(base::ObjectVersion(version)),
        None if args.if_absent => Condition::Absent,
        None => Condition::Always,
    };
    let work = Work::Put { survive: args.survive };
    let notes = args.resume.map(|path| Notes::open(path, &args.object, work)).transpose()?;
    let object = NewObject {
        name: args.object.clone(),
        condition,
        losses: args.survive,
        redundancy: args.redundancy,
        put_ms: content::now_ms(),
        segment_bytes: SEGMENT_BYTES,
        resumable: notes.as_ref().map(Notes::resumable),
    };
    let is_resumable = notes.is_some();
    let Sent { info, taken_over, seconds, .. } =
        content::send(global, &args.object, &args.file, ObjectWish::Put(object), notes)?;
    if global.json {
        let mut value = info_json(&args.object, &info);
        value["seconds"] = seconds.into();
        if is_resumable {
            value["stored_before_bytes"] = taken_over.into();
        }
        output::print_json(&value);
        return Ok(());
    }
    println!(
        "Put {}: {}{} in {seconds:.1} s, version {:016x}.",
        args.object,
        Bytes(info.bytes),
        content::stored_before(taken_over),
        info.version.0
    );
    Ok(())
}
