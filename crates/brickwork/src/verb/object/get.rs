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
use proto::object::{AccessStrategy, ObjectNews, ObjectWish, WantedObject};
use serde_json::json;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;
use wire::{ObjectInfo, ObjectName};

/// `object get`.
#[derive(clap::Args)]
#[command(after_help = "\
Without --from and --bytes, FILE appears when all of the object is in it and its checksum is right. Until then what has come is in
FILE.part-VERSION.
After an interruption the same command goes on from there, if the object is still the same version. A get of a
part replaces FILE at once, and begins anew after an interruption.

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
        false if is_part => Target::part(&args.file)?,
        false => Target::File { path: args.file.clone(), part: None },
    };
    let range =
        is_part.then(|| (args.from.unwrap_or_default().0, args.bytes.map_or(u64::MAX, |bytes| bytes.0)));
    let begun = Instant::now();
    let (info, got) = read(&Way::find(global)?, &args.object, target, (range, args.access))?;
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
    println!("Got {}: {} in {seconds:.1} s, version {:016x}.", args.object, Bytes(got), info.version.0);
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
    /// The file that is to be made, and what is there of it.
    File {
        path: PathBuf,
        part: Option<(PathBuf, File)>,
    },
    /// A part of an object, as it comes.
    Part(PathBuf, File),
}

impl Target {
    fn part(path: &Path) -> Result<Target> {
        let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Target::Part(path.to_owned(), file))
    }

    /// A whole object of that version is to come: how many bytes of it are there already, and their checksum.
    fn begin(&mut self, info: &ObjectInfo) -> Result<(u64, Checksum)> {
        let Target::File { path, part } = self else { return Ok((0, 0)) };
        let mut name = path.clone().into_os_string();
        name.push(format!(".part-{:016x}", info.version.0));
        let name = PathBuf::from(name);
        let failed = || format!("cannot write {}", name.display());
        let mut file =
            OpenOptions::new().read(true).append(true).create(true).open(&name).with_context(failed)?;
        let (mut buffer, mut bytes, mut sum) = (vec![0; 1 << 20], 0, 0);
        loop {
            let count = file.read(&mut buffer).with_context(failed)?;
            if count == 0 {
                break;
            }
            (bytes, sum) = (bytes + count as u64, checksum_append(sum, &buffer[..count]));
        }
        if bytes > info.bytes {
            bail!("{} is longer than the object: remove it", name.display());
        }
        *part = Some((name, file));
        Ok((bytes, sum))
    }

    fn write(&mut self, content: &Payload) -> io::Result<()> {
        let mut out: Box<dyn Write + '_> = match self {
            Target::Nowhere => return Ok(()),
            Target::Output => Box::new(io::stdout().lock()),
            Target::File { part, .. } => Box::new(&mut part.as_mut().expect("it has begun").1),
            Target::Part(_, file) => Box::new(file),
        };
        content.parts().iter().try_for_each(|part| out.write_all(part))
    }

    /// All is there.
    fn finish(self) -> Result<()> {
        match self {
            Target::Nowhere => Ok(()),
            Target::Output => io::stdout().lock().flush().context("cannot write"),
            Target::Part(path, file) => {
                file.sync_all().with_context(|| format!("cannot write {}", path.display()))
            }
            Target::File { path, part } => {
                let (name, file) = part.context("nothing came")?;
                let failed = || format!("cannot write {}", path.display());
                file.sync_all().with_context(failed)?;
                fs::rename(&name, &path).with_context(failed)
            }
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
                    "what was there from an earlier get does not fit: remove the .part file and begin again"
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
            Target::File { .. } => vec![(LOOK, ObjectWish::Look { name: self.name.clone() })],
            Target::Output | Target::Nowhere | Target::Part(..) => self.get(self.range),
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
            Target::File { .. } => "the same command goes on from what has come",
            Target::Part(..) | Target::Output | Target::Nowhere => "the same command begins anew",
        };
        self.end.get_or_insert_with(|| Err(anyhow!("interrupted: {what_next}")));
        Vec::new()
    }
}
