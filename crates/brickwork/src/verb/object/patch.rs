//! `brickwork object patch`: a file, or what comes in, in place of a part of an object, or behind its end.

use super::content::{self, Sent};
use super::resume::{Notes, Work};
use super::{info_json, version};
use crate::config::Bytes;
use crate::global::Global;
use crate::output;
use anyhow::Result;
use objects::object::{ObjectPatch, ObjectWish, REDUNDANCY_MAX, SEGMENT_BYTES};
use std::path::PathBuf;
use wire::ObjectName;

/// `object patch`.
#[derive(clap::Args)]
#[command(after_help = "\
The content of FILE replaces the same number of bytes of the object, from --at on. What goes beyond the object's end makes the object longer. The object
becomes the new version at once: whoever reads it meanwhile reads the old one to its end. If somebody else puts, patches or
removes the object meanwhile, nothing is changed, and the command says so at its end.

Of an object's segments (32 MiB each, the last one less) those that are not touched stay where they are, and both versions share
them. One that is touched is read and put anew, even for one byte. The object survives the loss of as many bricks as before.

If the directory stops answering, the command may not know whether the object was patched. To append what must not come twice,
give the version that is there, or --resume: a repetition is refused if the first one was done.

With --resume NOTES the command notes in the file NOTES which segments are stored, as `object put` does. After an interruption
of any kind, or when somebody else changed the object meanwhile, give the same command once more: it reads the content from its
beginning, and sends the segments that are not stored, or would have other content by now. What is stored is kept for a day.
NOTES is removed when the object is patched, or when going on is of no use. To give up, remove NOTES. An append that may have
been done is refused until NOTES is removed. Use a file of its own for each command that runs.

Examples:
  brickwork object patch sector.bin images/disk.img --at 1MiB
  brickwork object patch today.log logs/all.log --append
  brickwork object patch - images/disk.img --at 0 --if-version 2c8f1a0000000005 < head.bin
  brickwork object patch day.tar backups/all.tar --append --resume day.notes")]
pub(super) struct Args {
    /// The file; `-` is standard input
    file: PathBuf,
    /// BUCKET/KEY
    #[arg(value_parser = super::name)]
    object: ObjectName,
    /// From this byte on: at most the object's size
    #[arg(long, value_name = "SIZE", required_unless_present = "append", conflicts_with = "append")]
    at: Option<Bytes>,
    /// Behind the end of the object
    #[arg(long)]
    append: bool,
    /// Store at least so much beside the segments that are put anew, in percent of them, as in `object put`
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=i64::from(REDUNDANCY_MAX)))]
    redundancy: u32,
    /// Only if this version is there, as `object stat` shows it
    #[arg(long, value_name = "VERSION", value_parser = version)]
    if_version: Option<u64>,
    /// Note in this file what is stored; if there are notes, go on from there
    #[arg(long, value_name = "NOTES")]
    resume: Option<PathBuf>,
}

pub(super) fn run(global: &Global, args: Args) -> Result<()> {
    let work = Work::Patch { at: args.at.map(|at| at.0) };
    let notes = args.resume.map(|path| Notes::open(path, &args.object, work)).transpose()?;
    let is_resumable = notes.is_some();
    let wanted = args.if_version.map(base::ObjectVersion);
    let patch = ObjectPatch {
        name: args.object.clone(),
        at: args.at.map(|at| at.0),
        of: match &notes {
            Some(notes) => notes.only_of(wanted)?,
            None => wanted,
        },
        redundancy: args.redundancy,
        put_ms: content::now_ms(),
        segment_bytes: SEGMENT_BYTES,
        resumable: notes.as_ref().map(Notes::resumable),
    };
    let Sent { info, base, bytes, taken_over, seconds } =
        content::send(global, &args.object, &args.file, ObjectWish::Patch(patch), notes)?;
    let old_bytes = base.map_or(0, |base| base.bytes);
    let from = args.at.map_or(old_bytes, |at| at.0);
    if global.json {
        let mut value = info_json(&args.object, &info);
        value["patched_from"] = from.into();
        value["patched_bytes"] = bytes.into();
        value["old_bytes"] = old_bytes.into();
        value["seconds"] = seconds.into();
        if is_resumable {
            value["stored_before_bytes"] = taken_over.into();
        }
        output::print_json(&value);
        return Ok(());
    }
    println!(
        "Patched {}: {} from {} on{} in {seconds:.1} s, now {}, version {:016x}.",
        args.object,
        Bytes(bytes),
        Bytes(from),
        content::stored_before(taken_over),
        Bytes(info.bytes),
        info.version.0
    );
    Ok(())
}
