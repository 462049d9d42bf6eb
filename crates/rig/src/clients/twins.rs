//! A brick that runs twice: a second process serves a copy of its disk, and both have one id.

use anyhow::{Context, Result, ensure};
use rig::cluster::{Cluster, Spec, Storage, free_port, text};
use rig::nbd::Nbd;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const BLOCK: u64 = 4096;
const BLOCKS: u64 = 64;
const TWIN: &str = "brick-1-twin";

/// The first process goes on while the second one comes.
pub(super) fn copy_beside(binary: &Path) -> Result<()> {
    let mut pair = Pair::new(binary)?;
    pair.overwrite_for(Duration::from_secs(2))?;
    pair.start_twin()?;
    pair.overwrite_for(Duration::from_secs(15))?;
    pair.end()
}

/// The first process stands still while the second one comes, and then goes on.
pub(super) fn while_paused(binary: &Path) -> Result<()> {
    let mut pair = Pair::new(binary)?;
    pair.overwrite_for(Duration::from_secs(2))?;
    let first = pair.first.clone();
    pair.cluster.daemon(&first)?.stand_still()?;
    pair.start_twin()?;
    pair.overwrite_for(Duration::from_secs(8))?;
    pair.cluster.daemon(&first)?.go_on()?;
    pair.overwrite_for(Duration::from_secs(8))?;
    pair.end()
}

struct Pair {
    cluster: Cluster,
    gateways: [Nbd; 2],
    /// What was written last, in each block.
    generation: u8,
    /// The name of the process that was there first.
    first: String,
    twin_port: u16,
}

impl Pair {
    fn new(binary: &Path) -> Result<Pair> {
        let spec = Spec {
            bricks: 3,
            gateways: 2,
            storage: Storage { disk_bytes: 256 << 20, ..Storage::default() },
            ..Spec::default()
        };
        let cluster = Cluster::start(binary, &spec)?;
        cluster.create("v", BLOCK * BLOCKS, "raid1x3")?;
        let gateways = [cluster.connect(0, "v")?, cluster.connect(1, "v")?];
        let first = format!("brick-{}", cluster.brick_id(1)?);
        Ok(Pair { cluster, gateways, generation: 0, first, twin_port: free_port()? })
    }

    fn start_twin(&mut self) -> Result<()> {
        let (disk, copy) = (self.cluster.disk(1), self.cluster.dir.join("brick-1/disk-copy"));
        let copied = Command::new("cp").args(["--sparse=always"]).args([&disk, &copy]).status()?;
        ensure!(copied.success(), "cannot copy {}", disk.display());
        let own = fs::read_to_string(self.cluster.brick_config(1))?;
        let address = format!("127.0.0.1:{}", self.cluster.brick_ports[0]);
        let other = own.replace(&address, &format!("127.0.0.1:{}", self.twin_port));
        let other = other.replace(text(&disk)?, text(&copy)?);
        ensure!(other.contains(text(&copy)?) && other.contains(&self.twin_port.to_string()), "{other}");
        let config = self.cluster.dir.join("brick-1/twin.toml");
        fs::write(&config, other)?;
        self.cluster.spawn(TWIN, &["brick", "--config", text(&config)?])
    }

    /// Writes each block through one gateway, and reads it through the other one.
    fn overwrite_for(&mut self, span: Duration) -> Result<()> {
        let (begun, mut longest) = (Instant::now(), Duration::ZERO);
        while begun.elapsed() < span {
            self.generation = self.generation % 250 + 1;
            let content = [self.generation; BLOCK as usize];
            for block in 0..BLOCKS {
                let started = Instant::now();
                let [one, other] = &mut self.gateways;
                let (writer, reader) = if block % 2 == 0 { (one, other) } else { (other, one) };
                writer.write(block * BLOCK, &content)?;
                ensure!(
                    reader.read(block * BLOCK, BLOCK as u32)? == content,
                    "block {block} is read as it was before write {} of it",
                    self.generation
                );
                longest = longest.max(started.elapsed());
            }
        }
        eprintln!("    the longest write and read took {longest:.1?}");
        Ok(())
    }

    fn is_as_written(&mut self) -> Result<()> {
        let content = [self.generation; (BLOCK * BLOCKS) as usize];
        for nbd in &mut self.gateways {
            ensure!(nbd.read(0, content.len() as u32)? == content, "what was acknowledged is not there");
        }
        Ok(())
    }

    /// The process that `status` names is stopped, and then all others but its twin.
    fn end(mut self) -> Result<()> {
        let warnings = self.cluster.health()?.warnings;
        let warning = warnings.iter().find(|line| line.contains("runs twice"));
        let warning =
            warning.with_context(|| format!("status does not say that it runs twice: {warnings:?}"))?;
        let stop = warning.split("stop the process at ").nth(1).unwrap_or_default();
        let is_twin = stop.starts_with(&format!("127.0.0.1:{}", self.twin_port));
        ensure!(!is_twin, "the later one counts: {warning}");
        let first = self.first.clone();
        self.cluster.daemon(&first)?.alive()?;
        self.cluster.kill(&first)?;
        let took = self.cluster.wait_until_redundant(Duration::from_secs(120))?;
        eprintln!("    redundant {took:.1?} after the first process was stopped");
        self.is_as_written()?;
        let others: Vec<String> = (2..=3)
            .map(|number| Ok(format!("brick-{}", self.cluster.brick_id(number)?)))
            .collect::<Result<_>>()?;
        for other in others {
            self.cluster.kill(&other)?;
        }
        self.is_as_written()?;
        self.cluster.daemon(TWIN)?.alive()
    }
}
