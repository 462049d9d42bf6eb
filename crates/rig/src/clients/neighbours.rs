//! Daemons of the release before beside those of this one: a cluster that begins with the former is replaced daemon by daemon
//! under load, and back.

use super::record;
use crate::place;
use anyhow::{Context, Result, ensure};
use clap::Args;
use rig::cluster::{Cluster, Spec};
use rig::nbd::Nbd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const LAYOUTS: [&str; 2] = ["raid1x3", "raid5-2+1"];
const WHOLE_WITHIN: Duration = Duration::from_secs(90);

/// Two binaries.
#[derive(Args)]
#[command(after_help = "\
A cluster of the release before is replaced daemon by daemon, bricks first, then the directory and the gateways, while a client
writes and checks what it wrote; then a brick and a gateway go back. No write may fail or be lost.

Example:
  cargo xtask neighbours      builds the last commit that speaks the version of the protocol before this one's")]
pub(crate) struct Options {
    /// The binary of the release before
    #[arg(long, value_name = "BINARY")]
    before: PathBuf,
    /// A binary to use instead of building one
    #[arg(long)]
    binary: Option<PathBuf>,
}

/// Replaces and checks, a layout after the other.
pub(crate) fn verb(options: &Options) -> Result<()> {
    let now = place::binary(options.binary.as_deref())?;
    let before = place::binary(Some(&options.before))?;
    for layout in LAYOUTS {
        let started = Instant::now();
        let mut fleet = Fleet::start(&before, layout).with_context(|| format!("the cluster of {layout}"))?;
        let replaced = fleet.replace_all(&now, &before).with_context(|| format!("on {layout}"))?;
        println!(
            "{layout}: {replaced} replacements under load in {:.0} s, nothing lost",
            started.elapsed().as_secs_f64()
        );
    }
    Ok(())
}

struct Fleet {
    cluster: Cluster,
    layout: &'static str,
    replaced: u32,
}

/// A daemon of the cluster.
#[derive(Clone, Copy, Debug)]
enum Which {
    Brick(usize),
    Gateway(usize),
    Directory,
}

impl Fleet {
    fn start(binary: &Path, layout: &'static str) -> Result<Fleet> {
        let cluster = Cluster::start(binary, &Spec { bricks: 4, gateways: 2, ..Spec::default() })?;
        Ok(Fleet { cluster, layout, replaced: 0 })
    }

    fn replace_all(&mut self, now: &Path, before: &Path) -> Result<u32> {
        let bricks = self.cluster.bricks.len();
        for brick in 0..bricks / 2 {
            self.replace(Which::Brick(brick), now)?;
        }
        // The directory in the middle: its bricks are of both.
        self.replace(Which::Directory, now)?;
        self.replace(Which::Gateway(1), now)?;
        for brick in bricks / 2..bricks {
            self.replace(Which::Brick(brick), now)?;
        }
        self.replace(Which::Gateway(0), now)?;
        // An operator who changes their mind.
        self.replace(Which::Brick(0), before)?;
        self.replace(Which::Gateway(1), before)?;
        self.cluster.all_alive()?;
        Ok(self.replaced)
    }

    /// While a client writes through a gateway that stays, and checks through both.
    fn replace(&mut self, which: Which, binary: &Path) -> Result<()> {
        let stays = usize::from(matches!(which, Which::Gateway(0)));
        let port = self.cluster.gateways[stays].nbd_port;
        // Each client finds zeros where it begins.
        let volume = format!("v{}", self.replaced);
        self.cluster.create(&volume, 64 << 20, self.layout)?;
        record::beside(
            || Nbd::tcp(port, &volume),
            || {
                let cluster = &mut self.cluster;
                let daemon = match which {
                    Which::Brick(brick) => &mut cluster.bricks[brick],
                    Which::Gateway(gateway) => &mut cluster.gateways[gateway].daemon,
                    Which::Directory => &mut cluster.directory,
                };
                daemon.replace(binary)?;
                cluster.wait_until_redundant(WHOLE_WITHIN).map(drop)
            },
        )
        .with_context(|| format!("{which:?} is replaced"))?;
        let read =
            |gateway: usize| Nbd::tcp(self.cluster.gateways[gateway].nbd_port, &volume)?.read(0, 1 << 20);
        ensure!(read(0)? == read(1)?, "the gateways read differently after {which:?} was replaced");
        self.replaced += 1;
        Ok(())
    }
}
