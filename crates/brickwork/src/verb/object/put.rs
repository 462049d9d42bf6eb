//! `brickwork object put`: a file, or what comes in, as an object.

use super::{Way, info_json};
use crate::config::Bytes;
use crate::global::Global;
use crate::output;
use anyhow::{Context, Error, Result, anyhow};
use host::{ObjectUser, Waker};
use indicatif::ProgressBar;
use proto::object::{NewObject, ObjectNews, ObjectWish, SEGMENT_BYTES};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use wire::{Condition, ObjectInfo, ObjectName, Service};

/// `object put`.
#[derive(clap::Args)]
#[command(after_help = "\
When the command succeeds the object is on stable storage, and survives the loss of as many bricks as --survive says. An object
of that name is replaced at once as a whole. When the command is interrupted before all content was sent, nothing is seen of
the object, and the space of what was sent is given back within some minutes.

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
    let mut putter =
        Putter { object: Some(object), source, is_wanted: false, is_complete: false, bar, end: None };
    let begun = Instant::now();
    Way::find(global)?.go(&mut putter)?;
    putter.bar.finish_and_clear();
    let why = match putter.is_complete {
        true => "interrupted: it may have been put or not, as `brickwork object stat` shows",
        false => "interrupted: it was not put",
    };
    let info = putter.end.unwrap_or_else(|| Err(anyhow!(why)))?;
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

/// Reads the content segment by segment, in a thread of its own: what it comes from may be slow. Each is read when the one before it was taken, so that
/// one is in memory here.
fn read_segments(
    mut from: Box<dyn Read + Send>,
    asked: &Receiver<()>,
    to: &Sender<io::Result<Piece>>,
    waker: &Waker,
) {
    let mut ahead = Vec::new();
    for () in asked {
        let piece = next_segment(&mut *from, &mut ahead);
        let is_last = piece.as_ref().map_or(true, |(_, is_last)| *is_last);
        let is_wanted = to.send(piece).is_ok();
        waker.wake();
        if is_last || !is_wanted {
            return;
        }
    }
}

/// The next segment, and whether it is the last. One byte more is read ahead, to know the end when it is there.
fn next_segment(from: &mut dyn Read, ahead: &mut Vec<u8>) -> io::Result<Piece> {
    let mut content = Vec::with_capacity(SEGMENT_BYTES + 1);
    content.append(ahead);
    let wanted = (SEGMENT_BYTES + 1 - content.len()) as u64;
    from.take(wanted).read_to_end(&mut content)?;
    let is_last = content.len() <= SEGMENT_BYTES;
    if !is_last {
        *ahead = content.split_off(SEGMENT_BYTES);
    }
    Ok((content, is_last))
}

/// A segment's content, and whether it is the last.
type Piece = (Vec<u8>, bool);

/// Where content comes from.
enum Source {
    Unread(Box<dyn Read + Send>),
    Read { ask: Sender<()>, pieces: Receiver<io::Result<Piece>> },
}

impl Source {
    fn open(path: &Path) -> Result<(Source, Option<u64>)> {
        if path.as_os_str() == "-" {
            return Ok((Source::Unread(Box::new(io::stdin())), None));
        }
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        let bytes = file.metadata().with_context(|| format!("cannot read {}", path.display()))?.len();
        Ok((Source::Unread(Box::new(file)), Some(bytes)))
    }

    /// Begins to read.
    fn begin(&mut self, waker: &Waker) {
        let ((ask, asked), (to, pieces)) = (mpsc::channel(), mpsc::channel());
        ask.send(()).expect("it has not begun, and so not ended");
        if let Source::Unread(from) = std::mem::replace(self, Source::Read { ask, pieces }) {
            let waker = waker.clone();
            thread::spawn(move || read_segments(from, &asked, &to, &waker));
        }
    }

    /// The next segment, if it has come.
    fn next(&mut self) -> Option<io::Result<Piece>> {
        match self {
            Source::Unread(_) => None,
            Source::Read { ask, pieces } => {
                let piece = pieces.try_recv().ok()?;
                // Whoever has read all does not listen any more.
                let _ = ask.send(());
                Some(piece)
            }
        }
    }
}

const TAG: u64 = 1;

struct Putter {
    object: Option<NewObject>,
    source: Source,
    /// Whether a segment is waited for.
    is_wanted: bool,
    /// Whether all content was handed over: from then on the object may become visible.
    is_complete: bool,
    bar: ProgressBar,
    end: Option<Result<ObjectInfo>>,
}

impl ObjectUser for Putter {
    fn begin(&mut self, waker: &Waker) -> Vec<(u64, ObjectWish)> {
        self.source.begin(waker);
        self.object.take().map(|object| (TAG, ObjectWish::Put(object))).into_iter().collect()
    }

    fn gather(&mut self) -> Vec<(u64, ObjectWish)> {
        let Some(piece) = (if self.is_wanted { self.source.next() } else { None }) else { return Vec::new() };
        self.is_wanted = false;
        match piece {
            Ok((content, is_last)) => {
                self.bar.inc(content.len() as u64);
                self.is_complete = is_last;
                vec![(TAG, ObjectWish::Content { content: content.into(), is_last })]
            }
            Err(error) => {
                self.end = Some(Err(Error::new(error).context("the content cannot be read to its end")));
                vec![(TAG, ObjectWish::CallOff)]
            }
        }
    }

    fn told(&mut self, _tag: u64, news: ObjectNews) -> Vec<(u64, ObjectWish)> {
        match news {
            ObjectNews::WantsContent => self.is_wanted = true,
            ObjectNews::Put(result) => drop(self.end.get_or_insert(result.map_err(Error::new))),
            news => unreachable!("{news:?} of a put"),
        }
        self.gather()
    }

    fn is_done(&self) -> bool {
        self.end.is_some()
    }

    fn interrupt(&mut self) -> Vec<(u64, ObjectWish)> {
        vec![(TAG, ObjectWish::CallOff)]
    }
}
