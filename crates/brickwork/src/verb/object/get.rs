//! `brickwork object get` and `verify`: an object into a file, or read and checked only.

use super::{Way, info_json};
use crate::config::Bytes;
use crate::global::Global;
use crate::output;
use anyhow::{Context, Error, Result, anyhow, bail};
use base::checksum::checksum_append;
use base::{Checksum, Payload};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use host::{ObjectUser, Waker};
use indicatif::ProgressBar;
use objects::object::{AccessStrategy, ObjectNews, ObjectWish, WantedObject};
use outfile::{Outfile, Part, Place, Regular};
use serde_json::json;
use std::io::{self, Read, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::time::Instant;
use wire::{ObjectInfo, ObjectName};

/// `object get`.
#[derive(clap::Args)]
#[command(after_help = "\
FILE appears when all that was asked for is in it, and is right. A file that is there already is replaced then, and keeps its owner
and permissions. A link is followed. A device, a pipe or a socket is written to as the content comes.
Without --from and --bytes, what has come until then is in FILE.part-VERSION-RANDOM. After an interruption the same command goes on
from there, if the object is still the same version. A get of a part of an object, or to what is no regular file, begins anew.

Examples:
  brickwork object get backups/monday.tar restored.tar
  brickwork object get backups/home.tar - | tar x
  brickwork object get backups/disk.img head --from 0 --bytes 1MiB")]
pub(super) struct Args {
    /// BUCKET/KEY
    #[arg(value_parser = super::name)]
    object: ObjectName,
    /// The file; `-` is standard output
    file: PathBuf,
    /// How fragments are asked for: 'paced' asks each brick for a few at a time; 'claimed' asks for hardly more than are needed,
    /// and for most of them at the fastest bricks; 'speculative' asks for all at once
    #[arg(long, default_value = "paced", value_parser = PossibleValuesParser::new(AccessStrategy::NAMED.map(|(name, _)| name))
        .try_map(|name| AccessStrategy::named(&name).ok_or("no such access")))]
    access: AccessStrategy,
    /// Only a part of it: from this byte
    #[arg(long, value_name = "SIZE")]
    from: Option<Bytes>,
    /// Only a part of it: so many bytes
    #[arg(long, value_name = "SIZE")]
    bytes: Option<Bytes>,
}

/// `object verify`.
#[derive(clap::Args)]
#[command(after_help = "\
Reads each object, without keeping it, and compares its checksum with that of what was put. It says of each whether it is right,
and fails if one is not.

Examples:
  brickwork object verify backups/monday.tar backups/home.tar")]
pub(super) struct Verify {
    /// BUCKET/KEY, several
    #[arg(value_parser = super::name, required = true)]
    objects: Vec<ObjectName>,
}

pub(super) fn run(global: &Global, args: Args) -> Result<()> {
    let is_part = args.from.is_some() || args.bytes.is_some();
    let target = match args.file.as_os_str() == "-" {
        true => Target::Output,
        false => Target::find(&args.file, is_part)?,
    };
    let is_kept = target.is_kept();
    let range =
        is_part.then(|| (args.from.unwrap_or_default().0, args.bytes.map_or(u64::MAX, |bytes| bytes.0)));
    let begun = Instant::now();
    let way = Way::find(global)?;
    let (info, got) = read(&way, &args.object, target, (range, args.access))
        .with_context(|| format!("cannot get {}", args.object))?;
    if args.file.as_os_str() == "-" {
        return Ok(());
    }
    let seconds = begun.elapsed().as_secs_f64();
    if global.json {
        let mut value = info_json(&args.object, &info);
        (value["read_bytes"], value["seconds"]) = (got.into(), seconds.into());
        output::print_json(&value);
        return Ok(());
    }
    let got =
        format!("Got {}: {} in {seconds:.1} s, version {:016x}.", args.object, Bytes(got), info.version.0);
    // What is no regular file may be standard output by another name, which holds the content.
    if is_kept {
        println!("{got}")
    } else {
        eprintln!("{got}")
    }
    Ok(())
}

pub(super) fn verify(global: &Global, args: Verify) -> Result<()> {
    let way = Way::find(global)?;
    let mut bad = 0;
    for object in &args.objects {
        let result = read(&way, object, Target::Nowhere, (None, AccessStrategy::USUAL));
        bad += usize::from(result.is_err());
        match (global.json, result) {
            (true, Ok((info, _))) => {
                let mut value = info_json(object, &info);
                value["right"] = true.into();
                output::print_json(&value);
            }
            (true, Err(error)) => {
                let (bucket, key) = (&object.bucket, &object.key);
                output::print_json(&json!({
                    "bucket": bucket, "key": key, "right": false, "error": format!("{error:#}"),
                }));
            }
            (false, Ok((info, _))) => println!("{object}: {}, as it was put", Bytes(info.bytes)),
            (false, Err(error)) => println!("{object}: {error:#}"),
        }
    }
    match bad {
        0 => Ok(()),
        _ => bail!(
            "{bad} of {} could not be read as they were put",
            output::count(args.objects.len() as u64, "object")
        ),
    }
}

fn read(
    way: &Way,
    object: &ObjectName,
    target: Target,
    (range, access): (Option<(u64, u64)>, AccessStrategy),
) -> Result<(ObjectInfo, u64)> {
    let bar = output::progress(0, &object.to_string(), true);
    let mut getter = Getter {
        name: object.clone(),
        range,
        access,
        target,
        resumed: 0,
        got: 0,
        checksum: 0,
        info: None,
        bar,
        end: None,
    };
    way.go(&mut getter)?;
    getter.bar.finish_and_clear();
    getter.end.take().unwrap_or_else(|| Err(anyhow!("interrupted")))?;
    let info = getter.info.context("nothing came")?;
    getter.target.finish()?;
    Ok((info, getter.got))
}

/// Where content goes.
enum Target {
    Output,
    Nowhere,
    /// All of an object will be in this file. Its part is looked for when the object's version is known.
    Whole(PathBuf, Regular),
    /// All of an object, and what is there of it.
    Part(PathBuf, Part),
    /// What begins anew after an interruption: a part of an object, or what goes to a device or a pipe.
    Anew {
        path: PathBuf,
        file: Outfile,
        is_kept: bool,
    },
}

impl Target {
    fn find(path: &Path, is_part: bool) -> Result<Target> {
        let failed = || cannot_write(path);
        let (place, path) = (Place::find(path).with_context(failed)?, path.to_owned());
        let is_kept = matches!(place, Place::Regular(_));
        Ok(match place {
            Place::Regular(place) if !is_part => Target::Whole(path, place),
            place => Target::Anew { file: Outfile::at(place).with_context(failed)?, path, is_kept },
        })
    }

    /// Whether the content can be read there later.
    fn is_kept(&self) -> bool {
        match self {
            Target::Whole(..) | Target::Part(..) => true,
            Target::Anew { is_kept, .. } => *is_kept,
            Target::Output | Target::Nowhere => false,
        }
    }

    /// The file in which parts of several gets are.
    fn part(&self) -> String {
        match self {
            Target::Part(_, part) => part.path().display().to_string(),
            _ => "the part".to_owned(),
        }
    }

    /// A whole object of that version is to come: how many bytes of it are there already, and their checksum.
    fn begin(&mut self, info: &ObjectInfo) -> Result<(u64, Checksum)> {
        let Target::Whole(path, place) = mem::replace(self, Target::Nowhere) else {
            unreachable!("only a whole object in a file is looked at first")
        };
        let version = format!("{:016x}", info.version.0);
        let mut part = Part::open(place, &version).with_context(|| cannot_write(&path))?;
        let (bytes, sum) = read_back(&mut part).with_context(|| cannot_write(part.path()))?;
        if bytes > info.bytes {
            bail!("{} is longer than the object: remove it", part.path().display());
        }
        *self = Target::Part(path, part);
        Ok((bytes, sum))
    }

    fn write(&mut self, content: &Payload) -> io::Result<()> {
        let mut out: Box<dyn Write + '_> = match self {
            Target::Nowhere => return Ok(()),
            Target::Output => Box::new(io::stdout().lock()),
            Target::Whole(..) => unreachable!("it begins before content comes"),
            Target::Part(_, part) => Box::new(part.file()),
            Target::Anew { file, .. } => Box::new(file),
        };
        content.parts().iter().try_for_each(|part| out.write_all(part))
    }

    /// All is there.
    fn finish(self) -> Result<()> {
        match self {
            Target::Nowhere => Ok(()),
            Target::Output => io::stdout().lock().flush().context("cannot write"),
            Target::Whole(path, _) => bail!("nothing came for {}", path.display()),
            Target::Part(path, part) => part.finish().with_context(|| cannot_write(&path)),
            Target::Anew { path, file, .. } => file.finish().with_context(|| cannot_write(&path)),
        }
    }
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

/// How much is in a part, and its checksum.
fn read_back(part: &mut Part) -> io::Result<(u64, Checksum)> {
    let (mut buffer, mut bytes, mut sum) = (vec![0; 1 << 20], 0, 0);
    loop {
        match part.file().read(&mut buffer)? {
            0 => return Ok((bytes, sum)),
            count => (bytes, sum) = (bytes + count as u64, checksum_append(sum, &buffer[..count])),
        }
    }
}

/// The look before a get of a whole object, and the get.
const LOOK: u64 = 1;
const GET: u64 = 2;

struct Getter {
    name: ObjectName,
    range: Option<(u64, u64)>,
    access: AccessStrategy,
    target: Target,
    /// What was there from an earlier time.
    resumed: u64,
    got: u64,
    checksum: Checksum,
    info: Option<ObjectInfo>,
    bar: ProgressBar,
    end: Option<Result<()>>,
}

impl Getter {
    fn get(&self, range: Option<(u64, u64)>) -> Vec<(u64, ObjectWish)> {
        let wanted = WantedObject { name: self.name.clone(), range, access: self.access };
        vec![(GET, ObjectWish::Get(wanted)), (GET, ObjectWish::More)]
    }

    /// The object is known: goes on from what is there of it.
    fn on_looked(&mut self, info: ObjectInfo) -> Result<Vec<(u64, ObjectWish)>> {
        let (bytes, checksum) = self.target.begin(&info)?;
        (self.resumed, self.checksum, self.info) = (bytes, checksum, Some(info));
        self.bar.set_length(info.bytes);
        self.bar.set_position(bytes);
        if bytes == info.bytes {
            self.end = Some(self.judge());
            return Ok(Vec::new());
        }
        Ok(self.get((bytes > 0).then_some((bytes, u64::MAX))))
    }

    fn on_begun(&mut self, info: ObjectInfo) -> Result<()> {
        if self.info.is_some_and(|looked| looked.version != info.version) {
            bail!("the object was replaced just now: begin again");
        }
        let bytes = match self.range {
            None => info.bytes,
            Some((from, bytes)) => bytes.min(info.bytes.saturating_sub(from)),
        };
        self.bar.set_length(bytes);
        self.info = Some(info);
        Ok(())
    }

    fn on_content(&mut self, content: &Payload) -> Result<()> {
        self.target.write(content).context("what came cannot be written")?;
        self.checksum = content.checksum_behind(self.checksum);
        self.got += content.len() as u64;
        self.bar.inc(content.len() as u64);
        Ok(())
    }

    /// Whether what is there is what was put.
    fn judge(&self) -> Result<()> {
        let Some(info) = self.info else { bail!("nothing came") };
        match self.range.is_some() || self.checksum == info.checksum {
            true => Ok(()),
            false if self.resumed > 0 => {
                bail!(
                    "what was there from an earlier get does not fit: remove {} and begin again",
                    self.target.part()
                )
            }
            false => bail!("what was read is not what was put: the checksum differs"),
        }
    }

    fn fail(&mut self, error: Error) -> Vec<(u64, ObjectWish)> {
        self.end.get_or_insert(Err(error));
        vec![(GET, ObjectWish::CallOff)]
    }
}

impl ObjectUser for Getter {
    fn begin(&mut self, _waker: &Waker) -> Vec<(u64, ObjectWish)> {
        match self.target {
            Target::Whole(..) | Target::Part(..) => {
                vec![(LOOK, ObjectWish::Look { name: self.name.clone() })]
            }
            Target::Output | Target::Nowhere | Target::Anew { .. } => self.get(self.range),
        }
    }

    fn told(&mut self, _tag: u64, news: ObjectNews) -> Vec<(u64, ObjectWish)> {
        if self.end.is_some() {
            return Vec::new();
        }
        let next = match news {
            ObjectNews::Looked(Ok((info, _))) => self.on_looked(info),
            ObjectNews::Begun(info) => self.on_begun(info).map(|()| Vec::new()),
            ObjectNews::Content(content) => self.on_content(&content).map(|()| vec![(GET, ObjectWish::More)]),
            ObjectNews::Looked(Err(error)) | ObjectNews::Got(Err(error)) => Err(Error::new(error)),
            ObjectNews::Got(Ok(())) => {
                self.end = Some(self.judge());
                Ok(Vec::new())
            }
            news => unreachable!("{news:?} of a get"),
        };
        next.unwrap_or_else(|error| self.fail(error))
    }

    fn is_done(&self) -> bool {
        self.end.is_some()
    }

    fn interrupt(&mut self) -> Vec<(u64, ObjectWish)> {
        let what_next = match self.target {
            Target::Whole(..) | Target::Part(..) => "the same command goes on from what has come",
            Target::Anew { .. } | Target::Output | Target::Nowhere => "the same command begins anew",
        };
        self.end.get_or_insert_with(|| Err(anyhow!("interrupted: {what_next}")));
        Vec::new()
    }
}
