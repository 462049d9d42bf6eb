//! `brickwork object put`: a file, or what comes in, as an object.

use super::{Way, info_json};
use crate::config::Bytes;
use crate::global::Global;
use crate::output;
use anyhow::{Context, Error, Result, anyhow};
use host::ObjectUser;
use indicatif::ProgressBar;
use proto::object::{NewObject, ObjectNews, ObjectWish, SEGMENT_BYTES};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use wire::{Condition, ObjectInfo, ObjectName, Service};

/// `object put`.
#[derive(clap::Args)]
#[command(after_help = "\
When the command succeeds the object is on stable storage, and survives the loss of as many bricks as --survive says. An object
of that name is replaced at once as a whole. When the command is interrupted nothing is seen of the object, and the space of
what was sent is given back within some minutes.

Examples:
  brickwork object put backup.tar backups/monday.tar
  brickwork object put - backups/home.tar < home.tar
  brickwork object put db.dump backups/db --if-absent       fails if there is one")]
pub(super) struct Args {
    /// The file; `-` is standard input
    file: PathBuf,
    /// BUCKET/KEY
    #[arg(value_parser = super::name)]
    object: ObjectName,
    /// So many bricks may be lost; there have to be more than twice as many
    #[arg(long, value_name = "BRICKS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=16))]
    survive: u32,
    /// Only if there is no object of that name
    #[arg(long, conflicts_with = "if_version")]
    if_absent: bool,
    /// Only if this version is there, as `object stat` shows it
    #[arg(long, value_name = "VERSION", value_parser = version)]
    if_version: Option<u64>,
}

fn version(text: &str) -> Result<u64, String> {
    u64::from_str_radix(text, 16)
        .map_err(|_| format!("'{text}' is not a version: it has 16 hexadecimal digits"))
}

pub(super) fn run(global: &Global, args: Args) -> Result<()> {
    let condition = match args.if_version {
        Some(version) => Condition::Is(base::ObjectVersion(version)),
        None if args.if_absent => Condition::Absent,
        None => Condition::Always,
    };
    let (source, bytes) = Source::open(&args.file)?;
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let object = NewObject {
        name: args.object.clone(),
        condition,
        losses: args.survive,
        put_ms: since_1970.as_millis() as u64,
        segment_bytes: SEGMENT_BYTES,
        service: Service::default(),
    };
    let bar = output::progress(bytes.unwrap_or(0), &args.object.to_string(), true);
    let mut putter = Putter { object: Some(object), source, bar, end: None };
    let begun = Instant::now();
    Way::find(global)?.go(&mut putter)?;
    putter.bar.finish_and_clear();
    let info = putter.end.unwrap_or_else(|| Err(anyhow!("interrupted")))?;
    let seconds = begun.elapsed().as_secs_f64();
    if global.json {
        let mut value = info_json(&args.object, &info);
        value["seconds"] = seconds.into();
        output::print_json(&value);
        return Ok(());
    }
    println!(
        "Put {}: {} in {seconds:.1} s, version {:016x}.",
        args.object,
        Bytes(info.bytes),
        info.version.0
    );
    Ok(())
}

/// Where content comes from.
struct Source {
    reader: Box<dyn Read>,
    /// One byte more than was handed out, to know the end when it is there.
    ahead: Vec<u8>,
}

impl Source {
    fn open(path: &Path) -> Result<(Source, Option<u64>)> {
        if path.as_os_str() == "-" {
            return Ok((Source { reader: Box::new(io::stdin().lock()), ahead: Vec::new() }, None));
        }
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        let bytes = file.metadata().with_context(|| format!("cannot read {}", path.display()))?.len();
        Ok((Source { reader: Box::new(file), ahead: Vec::new() }, Some(bytes)))
    }

    /// The next segment, and whether it is the last.
    fn next(&mut self) -> io::Result<(Vec<u8>, bool)> {
        let mut content = std::mem::take(&mut self.ahead);
        content.reserve_exact(SEGMENT_BYTES + 1 - content.len());
        let wanted = (SEGMENT_BYTES + 1 - content.len()) as u64;
        self.reader.by_ref().take(wanted).read_to_end(&mut content)?;
        let is_last = content.len() <= SEGMENT_BYTES;
        if !is_last {
            self.ahead = content.split_off(SEGMENT_BYTES);
        }
        Ok((content, is_last))
    }
}

const TAG: u64 = 1;

struct Putter {
    object: Option<NewObject>,
    source: Source,
    bar: ProgressBar,
    end: Option<Result<ObjectInfo>>,
}

impl ObjectUser for Putter {
    fn begin(&mut self) -> Vec<(u64, ObjectWish)> {
        self.object.take().map(|object| (TAG, ObjectWish::Put(object))).into_iter().collect()
    }

    fn told(&mut self, _tag: u64, news: ObjectNews) -> Vec<(u64, ObjectWish)> {
        match news {
            ObjectNews::WantsContent => match self.source.next() {
                Ok((content, is_last)) => {
                    self.bar.inc(content.len() as u64);
                    return vec![(TAG, ObjectWish::Content { content: content.into(), is_last })];
                }
                Err(error) => {
                    self.end = Some(Err(Error::new(error).context("the file cannot be read to its end")));
                    return vec![(TAG, ObjectWish::CallOff)];
                }
            },
            ObjectNews::Put(result) => drop(self.end.get_or_insert(result.map_err(Error::new))),
            news => unreachable!("{news:?} of a put"),
        }
        Vec::new()
    }

    fn is_done(&self) -> bool {
        self.end.is_some()
    }

    fn interrupt(&mut self) -> Vec<(u64, ObjectWish)> {
        vec![(TAG, ObjectWish::CallOff)]
    }
}
