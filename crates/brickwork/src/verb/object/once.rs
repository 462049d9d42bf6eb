//! `brickwork object stat` and `rm`: one question, one answer.

use super::{Way, info_json, time};
use crate::config::Bytes;
use crate::global::Global;
use crate::output;
use anyhow::{Context, Error, Result};
use base::BLOCK_U64;
use host::{ObjectUser, Waker};
use objects::object::{Manifest, ObjectNews, ObjectWish, SegmentRecord};
use serde_json::json;
use wire::ObjectName;

/// `object stat`.
#[derive(clap::Args)]
#[command(after_help = "\
'stored' is what all fragments take on all bricks together; 'needed' says how many fragments of the first segment are enough to read it, of how
many there are. An object that was patched has segments of earlier versions, which --json names.

Examples:
  brickwork object stat backups/monday.tar
  brickwork object stat backups/monday.tar --json | jq .version")]
pub(super) struct Stat {
    /// BUCKET/KEY
    #[arg(value_parser = super::name)]
    object: ObjectName,
}

/// `object rm`.
#[derive(clap::Args)]
#[command(after_help = "\
The object is gone when the command succeeds. Whoever is reading it reads it to its end; its space is given back within some
minutes.

Examples:
  brickwork object rm backups/monday.tar")]
pub(super) struct Remove {
    /// BUCKET/KEY
    #[arg(value_parser = super::name)]
    object: ObjectName,
}

pub(super) fn stat(global: &Global, args: &Stat) -> Result<()> {
    let news = ask(global, ObjectWish::Look { name: args.object.clone() })?;
    let ObjectNews::Looked(result) = news else { unreachable!("{news:?} of a look") };
    let (info, manifest) = result.map_err(Error::new).with_context(|| args.object.to_string())?;
    if global.json {
        let mut value = info_json(&args.object, &info);
        value["stored_bytes"] = manifest.stored_bytes().into();
        value["bricks"] = manifest.bricks().into();
        value["losses"] = manifest.losses.into();
        value["segments"] = manifest.segments.iter().map(segment_json).collect();
        output::print_json(&value);
        return Ok(());
    }
    let Manifest { segments, losses } = &manifest;
    println!("{}", args.object);
    println!("  size      {}", Bytes(info.bytes));
    println!("  put       {}", time(info.put_ms));
    println!("  version   {:016x}", info.version.0);
    println!("  crc32c    {:08x}", info.checksum);
    println!(
        "  stored    {} on {}",
        Bytes(manifest.stored_bytes()),
        output::count(manifest.bricks() as u64, "brick")
    );
    println!("  survives  the loss of {}", output::count(u64::from(*losses), "brick"));
    let shared = segments.iter().filter(|segment| segment.version != info.version).count();
    match shared {
        0 => println!("  segments  {}", segments.len()),
        _ => println!("  segments  {}, {shared} of them of earlier versions", segments.len()),
    }
    if let Some(first) = segments.first() {
        println!(
            "  needed    {} or a few more of {} fragments of {}, in the first segment",
            first.coding.blocks(),
            first.places.len(),
            Bytes(u64::from(first.symbol_blocks) * BLOCK_U64)
        );
    }
    Ok(())
}

fn segment_json(segment: &SegmentRecord) -> serde_json::Value {
    let places: Vec<_> = segment.places.iter().map(|(symbol, brick)| json!([symbol, brick.0])).collect();
    json!({
        "bytes": segment.bytes,
        "version": format!("{:016x}", segment.version.0),
        "crc32c": segment.checksum.map(|sum| format!("{sum:08x}")),
        "coding": format!("{:?}", segment.coding),
        "fragment_bytes": u64::from(segment.symbol_blocks) * BLOCK_U64,
        "places": places,
    })
}

pub(super) fn remove(global: &Global, args: &Remove) -> Result<()> {
    let news = ask(global, ObjectWish::Remove { name: args.object.clone() })?;
    let ObjectNews::Removed(result) = news else { unreachable!("{news:?} of a removal") };
    result.map_err(Error::new).with_context(|| args.object.to_string())?;
    if global.json {
        output::print_json(&json!({ "bucket": args.object.bucket, "key": args.object.key, "removed": true }));
        return Ok(());
    }
    println!("Removed {}.", args.object);
    Ok(())
}

fn ask(global: &Global, wish: ObjectWish) -> Result<ObjectNews> {
    let mut once = Once { wish: Some(wish), news: None };
    Way::find(global)?.go(&mut once)?;
    once.news.context("interrupted")
}

struct Once {
    wish: Option<ObjectWish>,
    news: Option<ObjectNews>,
}

impl ObjectUser for Once {
    fn begin(&mut self, _waker: &Waker) -> Vec<(u64, ObjectWish)> {
        self.wish.take().map(|wish| (1, wish)).into_iter().collect()
    }

    fn told(&mut self, _tag: u64, news: ObjectNews) -> Vec<(u64, ObjectWish)> {
        self.news = Some(news);
        Vec::new()
    }

    fn is_done(&self) -> bool {
        self.news.is_some()
    }

    fn interrupt(&mut self) -> Vec<(u64, ObjectWish)> {
        vec![(1, ObjectWish::CallOff)]
    }
}
