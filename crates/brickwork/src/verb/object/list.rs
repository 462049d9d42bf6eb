//! `brickwork object ls`: the objects of a bucket, in the order of their keys.

use super::{Way, info_json, time};
use crate::config::Bytes;
use crate::global::Global;
use crate::output;
use anyhow::{Error, Result, anyhow};
use host::{ObjectUser, Waker};
use objects::object::{ObjectNews, ObjectWish};
use wire::index::{LIST_MAX, check_bucket};
use wire::{ObjectInfo, ObjectName};

/// `object ls`.
#[derive(clap::Args)]
#[command(after_help = "\
Keys are in the order of their bytes. With --json each object is a line, with the names of `object stat`.

Examples:
  brickwork object ls backups
  brickwork object ls backups/2026-11
  brickwork object ls backups --json | jq -r .key")]
pub(super) struct Args {
    /// BUCKET, or BUCKET/PREFIX for keys that begin with it
    #[arg(value_name = "BUCKET[/PREFIX]", value_parser = place)]
    place: (String, String),
    /// At most so many
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
}

fn place(text: &str) -> Result<(String, String), String> {
    let (bucket, prefix) = text.split_once('/').unwrap_or((text, ""));
    check_bucket(bucket).map(|()| (bucket.to_owned(), prefix.to_owned()))
}

pub(super) fn run(global: &Global, args: &Args) -> Result<()> {
    let (bucket, prefix) = args.place.clone();
    let limit = args.limit.unwrap_or(u64::MAX);
    let mut lister = Lister { bucket, prefix, limit, objects: Vec::new(), end: None };
    Way::find(global)?.go(&mut lister)?;
    lister.end.take().unwrap_or_else(|| Err(anyhow!("interrupted")))?;
    let Lister { bucket, objects, .. } = lister;
    if global.json {
        for (key, info) in objects {
            let name = ObjectName { bucket: bucket.clone(), key };
            output::print_json(&info_json(&name, &info));
        }
        return Ok(());
    }
    if objects.is_empty() {
        println!("There is no such object.");
        return Ok(());
    }
    let mut table = output::table(&["size", "put", "key"]);
    for (key, info) in &objects {
        table.add_row([Bytes(info.bytes).to_string(), time(info.put_ms), key.escape_debug().to_string()]);
    }
    output::align_right(&mut table, &[0]);
    println!("{}", output::render(&table));
    Ok(())
}

struct Lister {
    bucket: String,
    prefix: String,
    limit: u64,
    objects: Vec<(String, ObjectInfo)>,
    end: Option<Result<()>>,
}

impl Lister {
    fn next(&self) -> Vec<(u64, ObjectWish)> {
        let after = self.objects.last().map(|(key, _)| key.clone());
        let left = self.limit - self.objects.len() as u64;
        let limit = left.min(u64::from(LIST_MAX)) as u32;
        let (bucket, prefix) = (self.bucket.clone(), self.prefix.clone());
        vec![(self.objects.len() as u64 + 1, ObjectWish::List { bucket, prefix, after, limit })]
    }
}

impl ObjectUser for Lister {
    fn begin(&mut self, _waker: &Waker) -> Vec<(u64, ObjectWish)> {
        self.next()
    }

    fn told(&mut self, _tag: u64, news: ObjectNews) -> Vec<(u64, ObjectWish)> {
        match news {
            ObjectNews::Listed(Ok((objects, more))) => {
                self.objects.extend(objects);
                if more && (self.objects.len() as u64) < self.limit {
                    return self.next();
                }
                self.end = Some(Ok(()));
            }
            ObjectNews::Listed(Err(error)) => self.end = Some(Err(Error::new(error))),
            news => unreachable!("{news:?} of a list"),
        }
        Vec::new()
    }

    fn is_done(&self) -> bool {
        self.end.is_some()
    }

    fn interrupt(&mut self) -> Vec<(u64, ObjectWish)> {
        self.end = Some(Err(anyhow!("interrupted")));
        Vec::new()
    }
}
