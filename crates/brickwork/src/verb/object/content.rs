//! What is put or patched goes from a file, or from what comes in, to the cluster.

use super::Way;
use super::resume::Notes;
use crate::config::Bytes;
use crate::global::Global;
use crate::output;
use anyhow::{Context, Error, Result, anyhow};
use host::{ObjectUser, Waker};
use indicatif::ProgressBar;
use objects::object::{ObjectError, ObjectNews, ObjectWish, SEGMENT_BYTES};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use wire::{ObjectInfo, ObjectName};

/// What came of it.
pub(super) struct Sent {
    /// The object as it is now, and as it was if it was patched.
    pub(super) info: ObjectInfo,
    pub(super) base: Option<ObjectInfo>,
    /// So much was sent.
    pub(super) bytes: u64,
    /// Of that so much was stored by earlier tries.
    pub(super) taken_over: u64,
    pub(super) seconds: f64,
}

/// Puts or patches an object, as `wish` says, with what is in `file`. What is stored of it is noted, where it can go on later.
pub(super) fn send(
    global: &Global,
    object: &ObjectName,
    file: &Path,
    wish: ObjectWish,
    notes: Option<Notes>,
) -> Result<Sent> {
    let (source, bytes) = Source::open(file)?;
    let bar = output::progress(bytes.unwrap_or(0), &object.to_string(), true);
    let mut putter = Putter {
        wish: Some(wish),
        source,
        wanted: None,
        sent: 0,
        is_complete: false,
        base: None,
        notes,
        bar,
        end: None,
    };
    let begun = Instant::now();
    Way::find(global)?.go(&mut putter)?;
    putter.bar.finish_and_clear();
    let why = match putter.is_complete {
        true => "interrupted: it may have been done or not, as `brickwork object stat` shows",
        false => "interrupted: nothing has changed",
    };
    let result = putter.end.unwrap_or_else(|| Err(anyhow!(why)));
    let taken_over = putter.notes.as_ref().map_or(0, Notes::taken_over);
    let result = result.map_err(|error| match error.downcast_ref() {
        Some(ObjectError::CalledOff) => anyhow!(why),
        _ => error,
    });
    let info = match putter.notes {
        Some(notes) => notes.end(result)?,
        None => result?,
    };
    let seconds = begun.elapsed().as_secs_f64();
    Ok(Sent { info, base: putter.base, bytes: putter.sent, taken_over, seconds })
}

/// How much earlier tries have stored, for people.
pub(super) fn stored_before(taken_over: u64) -> String {
    match taken_over {
        0 => String::new(),
        bytes => format!(" ({} were stored before)", Bytes(bytes)),
    }
}

/// By this machine's clock, in milliseconds since 1970.
pub(super) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

/// Content, and whether it is the last.
type Piece = (Vec<u8>, bool);

/// Where content comes from.
enum Source {
    Unread(Box<dyn Read + Send>),
    Read { ask: Sender<usize>, pieces: Receiver<io::Result<Piece>> },
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
        if let Source::Unread(from) = std::mem::replace(self, Source::Read { ask, pieces }) {
            let waker = waker.clone();
            thread::spawn(move || read_pieces(from, &asked, &to, &waker));
        }
    }

    /// So much is wanted next.
    fn ask(&self, bytes: usize) {
        if let Source::Read { ask, .. } = self {
            // Whoever could not read on has said so, and does not listen any more.
            let _ = ask.send(bytes);
        }
    }

    /// What was asked for, if it has come.
    fn next(&self) -> Option<io::Result<Piece>> {
        match self {
            Source::Unread(_) => None,
            Source::Read { pieces, .. } => pieces.try_recv().ok(),
        }
    }
}

/// Reads the content piece by piece, in a thread of its own: what it comes from may be slow. As much as can be asked for next is read ahead, and one
/// byte more, to know the end when it is there.
fn read_pieces(
    mut from: Box<dyn Read + Send>,
    asked: &Receiver<usize>,
    to: &Sender<io::Result<Piece>>,
    waker: &Waker,
) {
    let mut ahead = Vec::new();
    loop {
        let filled = fill(&mut *from, &mut ahead);
        let Ok(bytes) = asked.recv() else { return };
        let piece = filled.map(|()| {
            let rest = ahead.split_off(bytes.min(ahead.len()));
            let is_last = rest.is_empty();
            (std::mem::replace(&mut ahead, rest), is_last)
        });
        let is_last = piece.as_ref().map_or(true, |(_, is_last)| *is_last);
        let is_wanted = to.send(piece).is_ok();
        waker.wake();
        if is_last || !is_wanted {
            return;
        }
    }
}

fn fill(from: &mut dyn Read, ahead: &mut Vec<u8>) -> io::Result<()> {
    let missing = (SEGMENT_BYTES + 1).saturating_sub(ahead.len());
    ahead.reserve_exact(missing);
    from.take(missing as u64).read_to_end(ahead).map(drop)
}

const TAG: u64 = 1;

struct Putter {
    wish: Option<ObjectWish>,
    source: Source,
    /// So much is waited for.
    wanted: Option<usize>,
    sent: u64,
    /// Whether all content was handed over: from then on the object may become visible.
    is_complete: bool,
    base: Option<ObjectInfo>,
    notes: Option<Notes>,
    bar: ProgressBar,
    end: Option<Result<ObjectInfo>>,
}

impl ObjectUser for Putter {
    fn begin(&mut self, waker: &Waker) -> Vec<(u64, ObjectWish)> {
        self.source.begin(waker);
        self.wish.take().map(|wish| (TAG, wish)).into_iter().collect()
    }

    fn gather(&mut self) -> Vec<(u64, ObjectWish)> {
        let Some(piece) = self.wanted.and_then(|_| self.source.next()) else { return Vec::new() };
        self.wanted = None;
        match piece {
            Ok((content, is_last)) => {
                self.sent += content.len() as u64;
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
            ObjectNews::WantsContent { bytes } => {
                self.wanted = Some(bytes);
                self.source.ask(bytes);
            }
            ObjectNews::Begun(info) => {
                self.base = Some(info);
                let noted = self.notes.as_mut().map_or(Ok(()), |notes| notes.begun(info.version));
                if let Err(error) = noted {
                    self.end = Some(Err(error));
                    return vec![(TAG, ObjectWish::CallOff)];
                }
            }
            ObjectNews::Stored { segment, stored } => {
                let noted = self.notes.as_mut().map_or(Ok(()), |notes| notes.note(segment, stored));
                if let Err(error) = noted {
                    self.end = Some(Err(error));
                    return vec![(TAG, ObjectWish::CallOff)];
                }
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_piece_is_known_when_it_is_there() {
        let mut ahead = Vec::new();
        let mut content: &[u8] = &vec![7; SEGMENT_BYTES + 5];
        fill(&mut content, &mut ahead).unwrap();
        assert_eq!((ahead.len(), content.len()), (SEGMENT_BYTES + 1, 4));
        ahead.drain(..SEGMENT_BYTES);
        fill(&mut content, &mut ahead).unwrap();
        assert_eq!((ahead.len(), content.len()), (5, 0));
    }
}
