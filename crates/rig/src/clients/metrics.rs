//! What daemons tell Prometheus of themselves, judged by its own tool.

use anyhow::{Context, Result, ensure};
use rig::cluster::{self, Cluster, Emulation, Spec, Storage, free_port};
use rig::nbd::Nbd;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A page is renewed once a second.
const RENEWED_WITHIN: Duration = Duration::from_secs(20);
const DRIVE: &str = "[drive]\nmodel = \"seagate-cheetah-9lp\"\ndata_bytes = 67108864\n";

/// The pages of all daemons pass `promtool check metrics`, and together they tell all figures of `docs/operations/metrics.md`.
pub(super) fn promtool(binary: &Path) -> Result<()> {
    let spec = Spec {
        metrics: true,
        storage: Storage { emulation: Emulation::Each, ..Storage::default() },
        ..Spec::default()
    };
    let mut cluster = Cluster::start(binary, &spec)?;
    cluster.create("v", 16 << 20, "raid1x3")?;
    cluster.emulate(1, DRIVE)?;
    // Disks tell how many places they have while streams share them.
    cluster.admin(&["stream", "create", "gold"])?;
    cluster.admin(&["stream", "places", "4"])?;
    // Nothing rare happens in a quiet cluster; that a scrub has ended is counted among it.
    cluster.admin(&["scrub"])?;
    let (config, port) = (cluster.dir.join("attach.toml"), free_port()?);
    let own = std::fs::read_to_string(cluster.client_config())?;
    std::fs::write(&config, format!("metrics = \"127.0.0.1:{port}\"\n{own}"))?;
    let socket = std::env::temp_dir().join(format!("brickwork-metrics-{}.sock", std::process::id()));
    let _ = std::fs::remove_file(&socket);
    let _attached = cluster::attach_as(&cluster, "v", &socket, &config)?;
    let mut recorded = super::record::Recorder::new(0, 256, 3);
    let mut through = [Nbd::unix(&socket, "v")?, Nbd::tcp(cluster.gateways[0].nbd_port, "v")?];
    for (nbd, enough) in through.iter_mut().zip([200, 400]) {
        recorded.write(nbd, 8, |count| count >= enough)?;
        recorded.verify(nbd)?;
    }
    let pages = || -> Result<Vec<String>> {
        Ok(cluster.told_metrics()?.into_iter().chain([cluster::told(port)?]).collect())
    };
    let begun = Instant::now();
    let is_all = |pages: &[String]| missing(pages).is_empty() && reads(pages) > 0;
    while !is_all(&pages()?) && begun.elapsed() < RENEWED_WITHIN {
        std::thread::sleep(Duration::from_millis(200));
    }
    let pages = pages()?;
    pages.iter().try_for_each(|page| judge(page))?;
    let missing = missing(&pages);
    ensure!(missing.is_empty(), "no daemon tells {missing:?}, of which docs/operations/metrics.md speaks");
    ensure!(reads(&pages) > 0, "the histograms are empty after reads");
    cluster.all_alive()
}

/// The reads in all histograms of them.
fn reads(pages: &[String]) -> u64 {
    let counts = pages.iter().flat_map(|page| page.lines());
    counts
        .filter_map(|line| line.strip_prefix("brickwork_nbd_read_seconds_count ")?.parse::<u64>().ok())
        .sum()
}

/// What operators read about, and no daemon tells.
fn missing(pages: &[String]) -> Vec<&'static str> {
    let told: BTreeSet<&str> = pages.iter().flat_map(|page| page.lines()).filter_map(kind_of).collect();
    let rows = include_str!("../../../../docs/operations/metrics.md").lines();
    let names = rows.filter_map(|row| row.strip_prefix("| `")?.split(['`', '{']).next());
    names.filter(|name| !told.contains(name)).collect()
}

fn kind_of(line: &str) -> Option<&str> {
    line.strip_prefix("# TYPE ")?.split(' ').next()
}

/// What Prometheus' own tool says of a page.
fn judge(page: &str) -> Result<()> {
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = promtool.spawn().context("starting promtool")?;
    child.stdin.take().context("it reads the page")?.write_all(page.as_bytes())?;
    let output = child.wait_with_output()?;
    let said =
        [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned()).concat();
    ensure!(output.status.success() && said.trim().is_empty(), "promtool says of a page:\n{said}\n{page}");
    Ok(())
}
