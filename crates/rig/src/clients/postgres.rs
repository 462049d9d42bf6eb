//! A database: PostgreSQL with data checksums on ext4 on nbdfuse on a volume, and pgbench. A brick is killed in the middle, then
//! the database is stopped as by a power cut. Afterwards every committed transaction must be there, the balances must agree,
//! and no page may have a bad checksum.

use super::filesystem::Mounted;
use super::volume::width;
use anyhow::{Context, Result, ensure};
use job::process::{Finished, Job, run, tail};
use rig::cluster::{Cluster, Spec, Storage, text};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Programs that it needs.
pub(super) const NEEDS: &[&str] =
    &["pg_ctlcluster", "nbdfuse", "mkfs.ext4", "fsck.ext4", "losetup", "mount", "setpriv"];

const VOLUME_BYTES: u64 = 1 << 30;
/// pgbench's scale: 100,000 accounts each.
const SCALE: &str = "5";
const CLIENTS: u64 = 4;
/// Transactions before and after the brick dies.
const TRANSACTIONS: u64 = 1000;
const LIMIT_S: u64 = 180;

pub(super) fn over_raid1(binary: &Path) -> Result<()> {
    survives(binary, "raid1x3")
}

pub(super) fn over_raid5(binary: &Path) -> Result<()> {
    survives(binary, "raid5-4+1")
}

/// Over two Reed-Solomon units.
pub(super) fn over_rs(binary: &Path) -> Result<()> {
    survives(binary, "rs-4+2")
}

fn survives(binary: &Path, layout: &str) -> Result<()> {
    let spec = Spec {
        bricks: width(layout),
        storage: Storage { disk_bytes: 2 << 30, ..Storage::default() },
        ..Spec::default()
    };
    let mut cluster = Cluster::start(binary, &spec)?;
    cluster.create("v", VOLUME_BYTES, layout)?;
    let folder = Folder::new(layout)?;
    let mounted = Mounted::format(&cluster.uri(0, "v"), cluster.dir.join("fuse"), &folder.0)?;
    let database = Database::create(&folder.0)?;
    let server = database.start()?;
    database.tool("pgbench", &["-q", "-i", "-s", SCALE, "postgres"])?;
    let load = database.load()?;
    database.get_on(TRANSACTIONS)?;
    cluster.bricks[0].kill()?;
    let killed = Instant::now();
    database.get_on(TRANSACTIONS).context("after a brick was killed")?;
    eprintln!("    {TRANSACTIONS} transactions {:.1} s after the brick died", killed.elapsed().as_secs_f64());
    database.control(&["stop", "-m", "immediate"])?;
    drop(server);
    let committed = committed(&load.wait(Duration::from_secs(LIMIT_S))?)?;
    let server = database.start().context("starting again after the immediate stop")?;
    database.agrees(committed)?;
    database.tool("pg_amcheck", &["--install-missing", "--heapallindexed", "-d", "postgres"])?;
    database.control(&["stop", "-m", "fast"])?;
    drop(server);
    database.tool_alone("pg_checksums", &["--check", "-D", &database.data])?;
    mounted.check()?;
    cluster.all_alive()
}

/// Where the file system is mounted: in a place that others may enter, as the database is not run by root.
struct Folder(PathBuf);

impl Folder {
    fn new(layout: &str) -> Result<Folder> {
        let folder = std::env::temp_dir().join(format!("brickwork-xtask-{}-{layout}", std::process::id()));
        fs::create_dir_all(&folder)?;
        Ok(Folder(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// A database cluster and where its server's socket is: both in the mounted file system.
struct Database {
    programs: PathBuf,
    data: String,
    socket: String,
}

impl Database {
    fn create(folder: &Path) -> Result<Database> {
        let own = folder.join("postgres");
        fs::create_dir(&own)?;
        run("chown", Command::new("chown").args(["postgres:postgres", text(&own)?]), 20)?;
        let (data, socket) = (text(&own.join("data"))?.to_owned(), text(&own)?.to_owned());
        let database = Database { programs: programs()?, data, socket };
        database.tool_alone("initdb", &["--data-checksums", "-A", "trust", "-D", &database.data])?;
        Ok(database)
    }

    /// A server in the foreground, ready for clients.
    fn start(&self) -> Result<Job> {
        let mut command = self.command("postgres", &["-D", &self.data, "-k", &self.socket]);
        for setting in
            ["listen_addresses=", "shared_buffers=32MB", "max_wal_size=96MB", "checkpoint_timeout=30s"]
        {
            command.args(["-c", setting]);
        }
        let mut job = Job::spawn("postgres", &mut command)?;
        let started = Instant::now();
        while self.tool("psql", &["-c", "select 1", "postgres"]).is_err() {
            let late = started.elapsed() > Duration::from_secs(LIMIT_S);
            ensure!(job.running() && !late, "the server does not get ready:\n{}", tail(&job.stderr(), 15));
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(job)
    }

    /// pgbench, which goes on until the server is stopped.
    fn load(&self) -> Result<Job> {
        let (clients, limit) = (CLIENTS.to_string(), LIMIT_S.to_string());
        let mut command = self.command("pgbench", &["-h", &self.socket, "-n", "-c", &clients, "-T", &limit]);
        Job::spawn("pgbench", command.arg("postgres"))
    }

    /// Waits for so many more transactions.
    fn get_on(&self, more: u64) -> Result<()> {
        let count = || self.ask("select count(*) from pgbench_history");
        let (started, before) = (Instant::now(), count()?);
        loop {
            let now = count()?;
            if now >= before + more as i64 {
                return Ok(());
            }
            ensure!(
                started.elapsed() < Duration::from_secs(LIMIT_S / 2),
                "{} transactions within {} s",
                now - before,
                LIMIT_S / 2
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Every committed transaction is there, and accounts, tellers, branches and the history agree.
    fn agrees(&self, committed: u64) -> Result<()> {
        let sum =
            |what: &str| self.ask(&format!("select coalesce(sum({what}), 0) from pgbench_{}", table(what)));
        let sums = [sum("abalance")?, sum("bbalance")?, sum("tbalance")?, sum("delta")?];
        ensure!(sums.iter().all(|one| *one == sums[0]), "the balances do not agree: {sums:?}");
        let rows = self.ask("select count(*) from pgbench_history")? as u64;
        ensure!(rows >= committed, "{committed} transactions were committed, and {rows} are there");
        ensure!(rows <= committed + CLIENTS, "{committed} transactions were committed, and {rows} are there");
        eprintln!("    {committed} committed transactions, {rows} found, all balances {}", sums[0]);
        Ok(())
    }

    fn ask(&self, question: &str) -> Result<i64> {
        let said = self.tool("psql", &["-t", "-A", "-c", question, "postgres"])?.stdout;
        said.trim().parse().with_context(|| format!("{question}: {said}"))
    }

    fn control(&self, arguments: &[&str]) -> Result<Finished> {
        self.tool_alone("pg_ctl", &[arguments, &["-D", &self.data]].concat())
    }

    /// A program that speaks to the server.
    fn tool(&self, program: &str, arguments: &[&str]) -> Result<Finished> {
        self.tool_alone(program, &[&["-h", &*self.socket], arguments].concat())
    }

    fn tool_alone(&self, program: &str, arguments: &[&str]) -> Result<Finished> {
        run(program, &mut self.command(program, arguments), LIMIT_S)
    }

    /// A program that is run by the user `postgres`, and that the kernel ends with us.
    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("setpriv");
        command.args([
            "--reuid",
            "postgres",
            "--regid",
            "postgres",
            "--init-groups",
            "--pdeathsig",
            "KILL",
            "--",
        ]);
        command.arg(self.programs.join(program)).args(arguments).current_dir("/");
        command
    }
}

fn table(column: &str) -> &'static str {
    match column {
        "abalance" => "accounts",
        "bbalance" => "branches",
        "tbalance" => "tellers",
        _ => "history",
    }
}

/// How many transactions pgbench was told to be committed.
fn committed(finished: &Finished) -> Result<u64> {
    let line =
        finished.stdout.lines().find(|line| line.starts_with("number of transactions actually processed"));
    let number = line.and_then(|line| line.rsplit(':').next()?.trim().split('/').next()?.parse().ok());
    number.with_context(|| {
        format!("pgbench does not say what it did: {}\n{}", finished.stdout, finished.stderr)
    })
}

/// Where Debian puts the server's programs: a folder a version, of which the newest is taken.
fn programs() -> Result<PathBuf> {
    let folders =
        fs::read_dir("/usr/lib/postgresql").context("no PostgreSQL here (Debian's package postgresql)")?;
    let versions =
        folders.flatten().filter_map(|entry| entry.file_name().to_string_lossy().parse::<u32>().ok());
    let newest = versions.max().context("no PostgreSQL in its folder")?;
    Ok(PathBuf::from(format!("/usr/lib/postgresql/{newest}/bin")))
}
