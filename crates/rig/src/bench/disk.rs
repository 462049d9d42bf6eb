//! `cargo xtask bench disk`: how long it takes to open a disk that is full, what is read for it, and what a brick then holds in memory.
//!
//! The disk is a sparse file with what describes its content, made by the code that a brick writes it with, and without the content. It is opened by
//! the store alone, one request at a time, as a brick does. What a hard disk would take is computed from the requests.

use super::rebuild::parse_size;
use anyhow::{Context, Result, bail};
use base::{BrickId, ClusterId, Machine, Time};
use bytes::Bytes;
use clap::Args;
use host::DiskSpec;
use host::disk::DiskFile;
use job::process;
use serde_json::json;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;
use store::full::{Full, write_full};
use store::{
    FormatOptions, IoDone, IoKind, MapUse, Sectors, Store, StoreConfig, StoreEffect, StoreEvent,
    journal_bytes_default,
};

/// What a hard disk reads in a second, and how long it takes to get to a request that does not follow the last one: a
/// disk of 20 TB with 7,200 revolutions a minute (8.5 ms on the average seek, 4.2 ms for half a revolution).
const DISK_BYTES_PER_S: f64 = 270e6;
const ACCESS_S: f64 = 0.0127;

/// What to open.
#[derive(Args)]
#[command(after_help = "\
The file takes some 30 MiB for each TiB of a disk that is full, 90 MiB if it is scattered, and 4 GiB with
--pages. It must fit into one file of the file system: 16 TiB on ext4.

Examples:
  cargo xtask bench disk --size 15TiB
  cargo xtask bench disk --size 15TiB --scattered --interrupted 4096
  cargo xtask bench disk --size 1TiB --pages --no-map")]
pub(crate) struct Options {
    /// The size of the disk
    #[arg(long, default_value = "1TiB", value_parser = parse_size)]
    size: u64,
    /// How much of it is in use, in percent
    #[arg(long, default_value_t = 95, value_parser = clap::value_parser!(u8).range(1..=100))]
    percent: u8,
    /// What a page describes lies all over the disk, as on old disks
    #[arg(long)]
    scattered: bool,
    /// The power went in a cycle that was about to change so many pages, as far from one another as can be
    #[arg(long, default_value_t = 0, value_name = "PAGES")]
    interrupted: u32,
    /// Write the metadata pages, too: with the map only few are read
    #[arg(long)]
    pages: bool,
    /// Open it as if there was no map of the pages, as releases before 0.2 did; needs --pages
    #[arg(long, requires = "pages")]
    no_map: bool,
    /// Where the file is made; the folder of this program by default. It is removed in the end
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What opening took.
#[derive(Default)]
struct Opened {
    pages: u64,
    pages_read: u64,
    is_mapped: bool,
    requests: u64,
    bytes: u64,
    /// Requests that do not follow the one before.
    jumps: u64,
    seconds: f64,
    memory_bytes: u64,
    peak_bytes: u64,
}

impl Opened {
    /// What a hard disk would take for the requests.
    fn disk_s(&self) -> f64 {
        self.bytes as f64 / DISK_BYTES_PER_S + self.jumps as f64 * ACCESS_S
    }
}

/// Measures and prints.
pub(crate) fn verb(options: &Options) -> Result<()> {
    let folder = match &options.folder {
        Some(folder) => folder.clone(),
        None => std::env::current_exe()?.parent().context("this program lies nowhere")?.to_owned(),
    };
    let path = folder.join(format!("full-disk-{}", std::process::id()));
    let made = make(options, &path);
    let opened = made.and_then(|()| open(options, &path));
    std::fs::remove_file(&path).ok();
    let opened = opened?;
    if options.json {
        println!(
            "{}",
            json!({
                "disk_bytes": options.size, "pages": opened.pages, "pages_read": opened.pages_read, "by_map": opened.is_mapped,
                "requests": opened.requests, "jumps": opened.jumps, "bytes": opened.bytes, "seconds": opened.seconds,
                "hard_disk_seconds": opened.disk_s(), "memory_bytes": opened.memory_bytes, "peak_bytes": opened.peak_bytes,
            })
        );
        return Ok(());
    }
    let mib = |bytes: u64| bytes / (1 << 20);
    println!(
        "{} pages, {} of them read{}",
        opened.pages,
        opened.pages_read,
        if opened.is_mapped { ", the others known by the map" } else { "" }
    );
    println!(
        "read         {} MiB by {} requests, {} of which do not follow the one before",
        mib(opened.bytes),
        opened.requests,
        opened.jumps
    );
    println!("open after   {:.1} s here", opened.seconds);
    println!(
        "hard disk    {:.1} s at 270 MB/s and 12.7 ms an access (computed), beside the processor's time",
        opened.disk_s()
    );
    println!(
        "memory       {} MiB, {:.1} bytes a page, {} MiB at most while it opened",
        mib(opened.memory_bytes),
        opened.memory_bytes as f64 / opened.pages.max(1) as f64,
        mib(opened.peak_bytes)
    );
    Ok(())
}

fn owner() -> (ClusterId, BrickId) {
    (ClusterId([7; 16]), BrickId(1))
}

/// Makes the disk.
fn make(options: &Options, path: &Path) -> Result<()> {
    let file = File::create_new(path).with_context(|| format!("cannot make {}", path.display()))?;
    file.set_len(options.size).with_context(|| format!("a file of {} bytes", options.size))?;
    let (cluster, brick) = owner();
    let (disk_bytes, journal_bytes) = (options.size, journal_bytes_default(options.size));
    let format = FormatOptions { cluster, brick, disk_index: 0, uuid: [9; 16], disk_bytes, journal_bytes };
    let full = Full {
        percent: options.percent,
        is_scattered: options.scattered,
        has_map: !options.no_map,
        has_pages: options.pages,
        interrupted: options.interrupted,
    };
    let begun = Instant::now();
    let mut gathered = Gathered { file: &file, at: 0, bytes: Vec::new() };
    write_full::<anyhow::Error>(format, full, &mut |offset, bytes| Ok(gathered.write(offset, &bytes)?))?;
    gathered.flush()?;
    // Nothing of it is to be in memory when it is read.
    file.sync_all()?;
    if !options.json {
        println!("made in {:.0} s", begun.elapsed().as_secs_f64());
    }
    Ok(())
}

/// Writes that follow one another, as one.
struct Gathered<'a> {
    file: &'a File,
    at: u64,
    bytes: Vec<u8>,
}

impl Gathered<'_> {
    fn write(&mut self, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        if offset != self.at + self.bytes.len() as u64 || self.bytes.len() > 4 << 20 {
            self.flush()?;
            self.at = offset;
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.write_all_at(&self.bytes, self.at)?;
        self.bytes.clear();
        Ok(())
    }
}

/// Opens it, past the kernel's cache where the file system allows.
fn open(options: &Options, path: &Path) -> Result<Opened> {
    let mut disk = DiskFile::open(&DiskSpec { path: path.to_owned(), size_bytes: None })?;
    let (cluster, brick) = owner();
    let mut config = StoreConfig::new(cluster, brick, 0, disk.size_bytes());
    config.map = if options.no_map { MapUse::Ignored } else { MapUse::Trusted };
    let resident = || process::resident_bytes(std::process::id());
    let (before, begun) = (resident()?, Instant::now());
    let (mut store, mut fx) = (Store::open(config), Vec::new());
    let (mut opened, mut last_end) = (Opened::default(), 0);
    store.settle(Time(1), &mut fx);
    while let Some(effect) = fx.pop() {
        match effect {
            StoreEffect::Io(io) => {
                let result = match io.kind {
                    IoKind::Read { offset, length, .. } => {
                        opened.requests += 1;
                        opened.bytes += length as u64;
                        opened.jumps += u64::from(offset != last_end);
                        last_end = offset + length as u64;
                        disk.read(offset, length)
                    }
                    IoKind::Flush => Ok(Bytes::new()),
                    IoKind::Write { .. } => bail!("a store that opens writes nothing"),
                };
                store.step(Time(1), StoreEvent::Io(IoDone { token: io.token, result }), &mut fx);
            }
            StoreEffect::Opened(Ok(_)) => break,
            StoreEffect::Opened(Err(error)) => return Err(error.into()),
            StoreEffect::Reply(reply) => bail!("a store that opens answered {reply:?}"),
        }
    }
    opened.seconds = begun.elapsed().as_secs_f64();
    opened.memory_bytes = resident()?.saturating_sub(before);
    opened.peak_bytes = process::peak_bytes(std::process::id())?.saturating_sub(before);
    let stats = store.stats().pages;
    (opened.pages, opened.pages_read, opened.is_mapped) = (stats.count, stats.read_at_open, stats.is_mapped);
    Ok(opened)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        options: Options,
    }

    fn opened(words: &[&str]) -> Opened {
        let options = Words::parse_from(["disk"].iter().chain(words)).options;
        let path =
            job::scratch("clusters").unwrap().join(format!("{}-{}", std::process::id(), words.join("")));
        make(&options, &path).unwrap();
        let opened = open(&options, &path).unwrap();
        std::fs::remove_file(&path).unwrap();
        opened
    }

    /// What was made is what a store takes for a disk in use, with the map and without it.
    #[test]
    fn a_full_disk_opens() {
        let all = opened(&["--size", "1GiB", "--pages", "--no-map"]);
        assert!(!all.is_mapped && all.pages > 800 && all.pages_read == all.pages);
        for words in [&["--size", "1GiB"][..], &["--size", "1GiB", "--scattered"]] {
            let mapped = opened(words);
            // The journal is read in any case.
            let saved = all.bytes - mapped.bytes;
            assert!(mapped.is_mapped && saved > all.pages * 4096 / 10 * 9, "{saved} bytes of {}", all.bytes);
            assert_eq!((mapped.pages, mapped.pages_read), (all.pages, 0));
        }
        let interrupted = opened(&["--size", "1GiB", "--interrupted", "16"]);
        assert!(interrupted.is_mapped);
        assert_eq!((interrupted.pages, interrupted.pages_read), (all.pages, 16));
    }
}
