//! `cargo xtask rot`: bytes changed anywhere in the disks of as many bricks as a layout can lose, and everything read back.
//!
//! Reading order: [`verb`], [`Arena::round`] (what is asserted), `damage` (what rots), `ledger` (what must be read), `beyond`
//! (more than a layout can lose: EIO for exactly the blocks concerned).

mod beyond;
mod damage;
mod ledger;

use crate::clients::width;
use crate::place;
use anyhow::{Context, Result, ensure};
use clap::Args;
use ledger::Ledger;
use rig::cluster::{Cluster, Spec, Storage};
use rig::noise::Noise;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Layouts, and how many bricks each can lose.
const LAYOUTS: [(&str, usize); 3] = [("raid1x3", 2), ("raid5-4+1", 1), ("rs-4+2", 2)];
const VOLUME_BYTES: u64 = 16 << 20;
const DISK_BYTES: u64 = 96 << 20;
const JOURNAL_BYTES: u64 = 2 << 20;
/// Short runs written before each round.
const SCRIBBLES: u64 = 150;
/// Blocks whose every copy is destroyed at the end, a layout.
const BEYOND: u64 = 12;

/// How many rounds.
#[derive(Args)]
#[command(after_help = "\
Each round writes, stops up to as many bricks as the layout can lose (SIGTERM, SIGKILL, or not at all), changes bytes anywhere
in their disks, starts them again, and reads everything back: every byte must be what was written. Then `brickwork scrub --wait`
must end clean, and a second one find nothing. A brick that refuses its disk with a clear error counts as lost and gets an empty one. At the end, more copies of
some blocks are destroyed than the layout can lose: exactly these must answer EIO.

Examples:
  cargo xtask rot --rounds 200
  cargo xtask rot --rounds 6 --seed 4 --json")]
pub(crate) struct Options {
    /// How many rounds, over all layouts
    #[arg(long, value_name = "N", default_value_t = 200)]
    rounds: u64,
    /// Decides what rots
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A binary to use instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Only rounds on this layout
    #[arg(long, value_parser = LAYOUTS.map(|(layout, _)| layout))]
    layout: Option<String>,
    /// Begin each round with a new cluster instead of scrubbing the old one
    #[arg(long)]
    fresh: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Rots, reads and prints.
pub(crate) fn verb(options: &Options) -> Result<()> {
    let binary = place::binary(options.binary.as_deref())?;
    let wanted = |layout: &str| options.layout.as_deref().is_none_or(|only| only == layout);
    let layouts: Vec<_> = LAYOUTS.into_iter().filter(|(layout, _)| wanted(layout)).collect();
    let summary = run(&layouts, &binary, options.rounds, options.seed, options.fresh)?;
    if options.json {
        println!("{}", summary.json());
    } else {
        println!("{}", summary.sentence());
    }
    Ok(())
}

/// What happened.
#[derive(Default)]
pub(crate) struct Summary {
    rounds: u64,
    disks: u64,
    bytes: u64,
    refused: u64,
    blocks_read: u64,
    /// Blocks repaired by scrubs; nothing when there were none.
    repaired: Option<u64>,
    beyond: u64,
}

impl Summary {
    /// For people.
    pub(crate) fn sentence(&self) -> String {
        let scrub = match self.repaired {
            Some(blocks) => format!("every scrub ended clean ({blocks} blocks repaired)"),
            None => "no scrub".to_owned(),
        };
        format!(
            "rot: {} rounds: {} bytes changed on {} disks, {} of which were refused with a clear error; {} blocks read, no wrong \
             byte, none unreadable; {scrub}; beyond what layouts can lose: EIO for exactly the {} blocks concerned",
            self.rounds, self.bytes, self.disks, self.refused, self.blocks_read, self.beyond
        )
    }

    fn json(&self) -> Value {
        json!({
            "rounds": self.rounds, "disks": self.disks, "bytes_changed": self.bytes, "disks_refused": self.refused,
            "blocks_read": self.blocks_read, "blocks_repaired": self.repaired, "blocks_beyond": self.beyond,
        })
    }
}

/// Runs so many rounds by turns on the layouts, and destroys some blocks of each at the end.
fn run(
    layouts: &[(&'static str, usize)],
    binary: &Path,
    rounds: u64,
    seed: u64,
    fresh: bool,
) -> Result<Summary> {
    let mut summary = Summary::default();
    for (index, &(layout, tolerates)) in (0..).zip(layouts) {
        // A layout's rounds are the same ones whether it is alone or not.
        let mut noise = Noise::new(seed + tolerates as u64 * 1000 + layout.len() as u64);
        let mut arena = None;
        for number in (0..rounds).filter(|number| number % layouts.len() as u64 == index) {
            let arena = match &mut arena {
                Some(arena) if !fresh => arena,
                other => other.insert(Arena::start(binary, layout, tolerates)?),
            };
            let victims = arena.draw(&mut noise);
            let told = format!("round {} of {rounds}, {layout}, seed {seed}: {victims:?}", number + 1);
            eprintln!("    {told}");
            arena
                .round(&victims, fresh, &mut noise, &mut summary)
                .with_context(|| format!("{told}; files are in {}", arena.cluster.dir.display()))
                .inspect_err(|_| arena.cluster.keep_files())?;
        }
        drop(arena);
        summary.beyond += beyond::run(binary, layout, tolerates, &mut noise)?;
    }
    Ok(summary)
}

/// How a brick is when its disk rots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// It ended well.
    Ended,
    /// It was killed.
    Killed,
    /// It runs.
    Running,
}

/// A cluster just wide enough for a layout, with one volume.
struct Arena {
    cluster: Cluster,
    tolerates: usize,
    ledger: Ledger,
}

impl Arena {
    fn start(binary: &Path, layout: &str, tolerates: usize) -> Result<Arena> {
        let spec = Spec {
            bricks: width(layout),
            gateways: 2,
            storage: Storage {
                disk_bytes: DISK_BYTES,
                journal_bytes: JOURNAL_BYTES,
                cache_bytes: 16 << 20,
                ..Storage::default()
            },
            ..Spec::default()
        };
        let cluster = Cluster::start(binary, &spec)?;
        cluster.create("v", VOLUME_BYTES, layout)?;
        let mut ledger = Ledger::new(VOLUME_BYTES / base::BLOCK_U64);
        ledger.fill(&mut cluster.connect(0, "v")?)?;
        Ok(Arena { cluster, tolerates, ledger })
    }

    /// Whose disks rot, and how they are then.
    fn draw(&self, noise: &mut Noise) -> Vec<(usize, How)> {
        let mut left: Vec<usize> = (0..self.cluster.bricks.len()).collect();
        let how =
            |noise: &mut Noise| [How::Ended, How::Killed, How::Killed, How::Running][noise.below(4) as usize];
        (0..1 + noise.below(self.tolerates as u64))
            .map(|_| (left.swap_remove(noise.below(left.len() as u64) as usize), how(noise)))
            .collect()
    }

    fn round(
        &mut self,
        victims: &[(usize, How)],
        fresh: bool,
        noise: &mut Noise,
        summary: &mut Summary,
    ) -> Result<()> {
        self.ledger.scribble(&mut self.cluster.connect(0, "v")?, SCRIBBLES, noise)?;
        for &(brick, how) in victims {
            match how {
                How::Ended => drop(self.cluster.bricks[brick].stop()?),
                How::Killed => self.cluster.bricks[brick].send_kill()?,
                How::Running => {}
            }
        }
        victims
            .iter()
            .filter(|(_, how)| *how == How::Killed)
            .for_each(|&(brick, _)| self.cluster.bricks[brick].reap());
        for &(brick, _) in victims {
            summary.bytes += damage::damage(&self.cluster.disk(brick + 1), JOURNAL_BYTES, noise)?.bytes;
        }
        let mut refused = BTreeSet::new();
        for &(brick, _) in victims.iter().filter(|(_, how)| *how != How::Running) {
            if let Err(error) = self.cluster.bricks[brick].restart() {
                refuses_clearly(&error.to_string(), &self.cluster.disk(brick + 1))?;
                refused.insert(brick);
            }
        }
        summary.rounds += 1;
        summary.disks += victims.len() as u64;
        summary.refused += refused.len() as u64;
        self.read_back(0, summary)?;
        if !fresh {
            self.mend(&refused, summary)?;
        }
        self.read_back(1, summary)?;
        self.cluster.all_alive()
    }

    /// Gives refused bricks empty disks, waits until all data are redundant, and scrubs.
    fn mend(&mut self, refused: &BTreeSet<usize>, summary: &mut Summary) -> Result<()> {
        for &brick in refused {
            self.cluster.give_empty_disk(brick)?;
        }
        self.cluster.wait_until_redundant(Duration::from_secs(180))?;
        *summary.repaired.get_or_insert(0) += scrub(&self.cluster)?["repaired_blocks"].as_u64().unwrap_or(0);
        // What was repaired is whole on the disk, not only in somebody's count.
        let again = scrub(&self.cluster)?;
        ensure!(
            again["found_blocks"] == 0,
            "a scrub repaired all it found, and the next one finds more: {again}"
        );
        Ok(())
    }

    fn read_back(&self, gateway: usize, summary: &mut Summary) -> Result<()> {
        let unreadable = self.ledger.verify(&mut self.cluster.connect(gateway, "v")?)?;
        ensure!(
            unreadable.is_empty(),
            "{} blocks answer EIO, although only as many disks rotted as the layout can lose; the first is {:?}",
            unreadable.len(),
            unreadable.first()
        );
        summary.blocks_read += self.ledger.blocks();
        Ok(())
    }
}

/// Scrubs everything; what it says of it.
fn scrub(cluster: &Cluster) -> Result<Value> {
    let said = cluster.admin(&["--json", "scrub", "--wait"]).context("the scrub did not end clean")?;
    serde_json::from_str(&said).context("reading `scrub --json`")
}

/// A refusal names the disk and is no panic.
fn refuses_clearly(said: &str, disk: &Path) -> Result<()> {
    ensure!(!said.contains("panicked"), "the brick panicked: {said}");
    ensure!(
        said.contains(&disk.display().to_string()),
        "the refusal does not name {}: {said}",
        disk.display()
    );
    Ok(())
}
