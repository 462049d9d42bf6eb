//! `brickwork directory rebuild`: the directory's disk is lost; its store is made anew from what the bricks know.

use crate::config::{self, Bytes, DirectoryFile, Period};
use crate::global::Global;
use crate::verb::daemon;
use crate::{output, view};
use anyhow::{Context, Result, anyhow, ensure};
use base::BrickId;
use host::{Shutdown, Told};
use roles::directory::rebuild::Rebuilt;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Arguments.
#[derive(clap::Args)]
#[command(after_help = "\
Use this when the directory's store (`store`, directory.db) is lost or damaged. Every brick stores the views of its groups
and their volumes. This command listens at `listen` of directory.toml, asks all bricks that connect, and writes a new store
from their answers. The bricks must run; clients wait meanwhile.

DIR is the folder of `cluster init`, restored from a backup without the store. These files are needed:
  directory.toml                      the cluster's id, and where bricks look for the directory
  directory.pem, directory.key, ca.pem  without them no brick answers
  ca.key, tokens.json, admin/         to admit further machines, and for operators
Without ca.key and directory.key nobody can take the cluster over, not even you. Only tokens.json ever changes: one backup,
right after `cluster init`, is enough.

Nothing is written unless every volume is safe. If missing bricks could have continued without the bricks that answered,
the command names their groups. Start those bricks and run it again. With --force, writes that only they know are lost.

It hears bricks for --wait, or until --bricks of them have answered. A brick that has not answered by then and has no
blocks is unknown to the new directory: `brick init` it anew. Settings of `rebuild` and `scrub` and evictions are
forgotten, and so are volumes' deletions that no brick has learned of.

A volume that was deleted while a brick was away stands in the way: that brick still describes its groups, and the other
members do not know them any more. If you know that the volume was deleted, use --forget VOLUME, with the name as the
command printed it. Snapshots and clones share the groups of their volume and are left out with it; the command lists them.
What is left out cannot be read any more. Nothing is written if no brick describes a volume of that name.

Ends with 0 when the store is written, with 1 when it is not.

Examples:
  mv /etc/brickwork/directory.db /etc/brickwork/directory.db.damaged
  brickwork directory rebuild --dir /etc/brickwork --bricks 6
  brickwork directory rebuild --dir /etc/brickwork --wait 2m
  brickwork directory rebuild --dir /etc/brickwork --bricks 6 --forget scratch
  brickwork directory --config /etc/brickwork/directory.toml")]
pub(super) struct Args {
    /// The folder that `cluster init` wrote, without the store
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Wait until this many bricks have answered, however long that takes
    #[arg(long, value_name = "N", conflicts_with = "wait", value_parser = clap::value_parser!(u32).range(1..))]
    bricks: Option<u32>,
    /// How long to wait for bricks
    #[arg(long, value_name = "TIME", default_value = "30s")]
    wait: Period,
    /// Write the store even if missing bricks could have continued without the others; writes that only they know are lost
    #[arg(long)]
    force: bool,
    /// Leave out this volume, which was deleted, with all its snapshots and clones; may be repeated
    #[arg(long, value_name = "VOLUME")]
    forget: Vec<String>,
}

/// What was found.
#[derive(Default)]
struct Found {
    answered: Vec<BrickId>,
    /// Those that call and have not answered.
    heard: Vec<BrickId>,
    /// Members of groups that were not heard of.
    missing: Vec<BrickId>,
    /// Volumes, snapshots and clones that are left out, as asked for.
    forgotten: Vec<String>,
    verdict: Option<Result<Rebuilt, Vec<String>>>,
}

/// Runs the verb.
pub(super) fn run(global: &Global, args: &Args) -> Result<ExitCode> {
    let path = args.dir.join("directory.toml");
    let file: DirectoryFile = config::load(Some(&path), toml::Table::new()).context(
        "this needs the directory that `brickwork cluster init --dir` wrote: restore it from its backup, without the store",
    )?;
    require_absent(&file.store)?;
    daemon::start_logs(global);
    let found = listen(global, args, &file)?;
    let verdict = found.verdict.as_ref().context("interrupted; nothing was written")?;
    if let Ok(rebuilt) = verdict
        && !found.answered.is_empty()
    {
        host::write_store(&file.store, &rebuilt.puts)?;
    }
    output::end_with_reader();
    if global.json {
        print_json(&found, &file.store);
    } else {
        print(&found, &file.store, &path);
    }
    let is_written = verdict.is_ok() && !found.answered.is_empty();
    Ok(if is_written { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Before anything is asked, so that a mistake costs nobody anything.
fn require_absent(store: &Path) -> Result<()> {
    ensure!(
        !store.exists(),
        "the store {} is there; a directory that has its store needs no other: start it, or move the file away if it is damaged",
        store.display()
    );
    Ok(())
}

fn listen(global: &Global, args: &Args, file: &DirectoryFile) -> Result<Found> {
    let node = daemon::node(&file.cluster, file.tls.as_ref(), None)?;
    let shutdown = Shutdown::on_signals().context("cannot watch for signals")?;
    let (start, limit) = (Instant::now(), Duration::from_secs(args.wait.seconds));
    let total = args.bricks.map_or(args.wait.seconds, u64::from);
    let bar = if global.json { indicatif::ProgressBar::hidden() } else { output::progress(total, "", false) };
    let (mut found, mut unknown) = (Found::default(), None);
    let is_enough = |told: &Told| {
        let recount = told.recount();
        let (answered, heard) = recount.bricks();
        let is_enough = match args.bricks {
            Some(bricks) => answered.len() >= bricks as usize,
            None => start.elapsed() >= limit,
        };
        bar.set_message(format!("{} of {} bricks answered", answered.len(), answered.len() + heard.len()));
        bar.set_position(args.bricks.map_or(start.elapsed().as_secs(), |_| answered.len() as u64));
        if is_enough {
            let missing = recount.missing().into_iter().filter(|brick| !heard.contains(brick)).collect();
            let verdict = Some(recount.verdict(args.force));
            unknown = answered.first().and_then(|_| unknown_volume(told, &args.forget));
            found = Found { missing, forgotten: forgotten(told, &args.forget), verdict, answered, heard };
        }
        is_enough
    };
    let ready = |ready: &host::Ready| tracing::info!("{ready}");
    host::run_recount(&node, &file.listen, &args.forget, &shutdown, ready, is_enough)?;
    bar.finish_and_clear();
    unknown.map_or(Ok(found), |why| Err(anyhow!(why)))
}

/// What is wrong with the first of `volumes` that no brick describes.
fn unknown_volume(told: &Told, volumes: &[String]) -> Option<String> {
    let unknown = volumes.iter().find(|volume| told.family_of(volume).is_empty())?;
    let known: Vec<&str> = told.volumes().collect();
    let known = if known.is_empty() { "no volume".to_owned() } else { known.join(", ") };
    Some(format!(
        "nothing was written: --forget names '{unknown}', and no brick that answered describes such a volume; they describe \
         {known}"
    ))
}

fn forgotten(told: &Told, volumes: &[String]) -> Vec<String> {
    let families = volumes.iter().flat_map(|volume| told.family_of(volume));
    families.map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
}

fn print(found: &Found, store: &Path, config: &Path) {
    println!("{} answered: {}.", output::count(found.answered.len() as u64, "brick"), names(&found.answered));
    for (bricks, what) in [(&found.heard, "called and did not answer"), (&found.missing, "was not heard of")]
    {
        if !bricks.is_empty() {
            output::print_marked("!", &format!("{} {what}.", names(bricks)));
        }
    }
    if found.answered.is_empty() {
        println!("Nothing was written: without bricks there is nothing to make a directory from.");
        return;
    }
    if !found.forgotten.is_empty() {
        output::print_marked("!", &format!("Left out, as asked: {}.", found.forgotten.join(", ")));
    }
    match &found.verdict {
        Some(Ok(rebuilt)) => print_rebuilt(rebuilt, store, config),
        Some(Err(objections)) => {
            println!("\nNothing was written, because acknowledged writes could be lost:");
            objections.iter().for_each(|why| output::print_marked("!", why));
        }
        None => {}
    }
}

fn print_rebuilt(rebuilt: &Rebuilt, store: &Path, config: &Path) {
    rebuilt.notes.iter().for_each(|note| output::print_marked("!", note));
    let mut table = output::table(&["volume", "size", "layout"]);
    for volume in &rebuilt.volumes {
        table.add_row([volume.name.clone(), Bytes(volume.size_bytes).to_string(), volume.layout.clone()]);
    }
    output::align_right(&mut table, &[1]);
    let groups = output::count(rebuilt.groups as u64, "group");
    if rebuilt.volumes.is_empty() {
        println!("\nThe bricks know of no volume.");
    } else {
        println!("\n{}\n", output::render(&table));
    }
    println!(
        "{} in {groups}: written to {}.",
        output::count(rebuilt.volumes.len() as u64, "volume"),
        store.display()
    );
    println!("Start the directory:\n  brickwork directory --config {}", config.display());
}

fn print_json(found: &Found, store: &Path) {
    let numbers = |bricks: &[BrickId]| bricks.iter().map(|brick| brick.0).collect::<Vec<_>>();
    let mut value = json!({
        "answered": numbers(&found.answered), "heard": numbers(&found.heard), "missing": numbers(&found.missing),
        "forgotten": found.forgotten,
        "written": null, "volumes": [], "groups": 0, "notes": [], "objections": [],
    });
    match &found.verdict {
        Some(Ok(rebuilt)) if !found.answered.is_empty() => {
            value["written"] = json!(store);
            value["volumes"] = rebuilt.volumes.iter().map(view::volume_json).collect();
            value["groups"] = json!(rebuilt.groups);
            value["notes"] = json!(rebuilt.notes);
        }
        Some(Err(objections)) => value["objections"] = json!(objections),
        _ => {}
    }
    output::print_json(&value);
}

fn names(bricks: &[BrickId]) -> String {
    let names: Vec<String> = bricks.iter().map(ToString::to_string).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
