//! `brickwork brick init`: joins a cluster as a brick and formats its disks; `brick format` formats exchanged ones.

use super::room;
use crate::config::keys::IoChoice;
use crate::config::{self, BrickFile, Bytes, DiskFile, keys};
use crate::global::Global;
use crate::join::Admission;
use crate::output;
use crate::security::token::JoinRole;
use crate::verb::daemon::{self, Joining};
use anyhow::{Context, Result, anyhow, ensure};
use base::BrickId;
use host::DiskIdentity;
use host::disk::DiskBefore;
use serde_json::json;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// `brick init`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
A disk is a block device or a file. A file that does not exist is created with the size after the colon. A disk that holds
data (a file system, another brick) is refused unless --force is given.

Examples:
  brickwork brick init --dir /var/lib/brickwork --disk /dev/sdb --disk /dev/sdc --listen 10.0.0.2:7003 --join TOKEN
  brickwork brick init --dir b0 --disk b0/disk:10GiB --label host=a --label rack=2 --join TOKEN")]
pub struct Init {
    /// What joining needs.
    #[command(flatten)]
    pub joining: Joining,
    /// A disk: PATH of a block device or file, or PATH:SIZE to make a file; may be repeated
    #[arg(long = "disk", value_name = "PATH[:SIZE]", required = true, value_parser = parse_disk)]
    pub disks: Vec<DiskFile>,
    /// Where the brick listens
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7003")]
    pub listen: String,
    /// The address under which others reach --listen, if it differs
    #[arg(long, value_name = "HOST:PORT")]
    pub advertise: Option<String>,
    /// A failure domain, such as host=a or rack=2; copies go to different domains; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse_label)]
    pub labels: Vec<(String, String)>,
    /// Memory for cached blocks, over all disks
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    pub cache_bytes: Bytes,
    /// Size of the journal on each disk; default: chosen by the size of the disk
    #[arg(long, value_name = "SIZE")]
    pub journal_bytes: Option<Bytes>,
    /// Overwrite disks that hold data
    #[arg(long)]
    pub force: bool,
}

/// `brick format`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Use this after a disk was exchanged. It formats the disks of --config that are blank and does not touch the others. Then
start the brick: the directory sees the new disk, and the brick fetches its blocks from the other bricks.

--disk formats only that disk. With --force, everything on it is lost.

Examples:
  brickwork brick format --config /var/lib/brickwork/brick.toml
  brickwork brick format --config brick.toml --disk /dev/sdc --force")]
pub(super) struct Format {
    /// Only this disk of the configuration, as it is written there
    #[arg(long, value_name = "PATH")]
    disk: Option<PathBuf>,
    /// Overwrite the disk even if it holds data
    #[arg(long, requires = "disk")]
    force: bool,
}

/// Makes a brick; returns its configuration and where that is. Its disks have their room before the directory is asked for an
/// id, so that a lack of it leaves neither files nor a registered brick that nobody is.
pub fn init(args: &Init) -> Result<(BrickFile, PathBuf)> {
    config::keys::reachable(&args.listen, args.advertise.as_deref()).map_err(anyhow::Error::msg)?;
    if !args.force {
        args.disks.iter().try_for_each(require_blank)?;
    }
    room::require(&args.joining.dir, &args.disks)?;
    crate::security::files::make_dir(&args.joining.dir)?;
    let new = NewFiles::reserve(&args.disks)?;
    let admission = daemon::join(&args.joining, JoinRole::Brick, "brick", Vec::new())?;
    let id = admission.brick.context("the directory gave this brick no id; it is of another version")?;
    let made = finish(args, admission, id).with_context(|| {
        format!("brick-{id} has its id and no disks yet; init with the same --dir goes on with it")
    })?;
    new.keep();
    Ok(made)
}

fn finish(args: &Init, admission: Admission, id: u32) -> Result<(BrickFile, PathBuf)> {
    let file = BrickFile {
        listen: args.listen.clone(),
        advertise: args.advertise.clone(),
        directory: admission.directory,
        cluster: admission.cluster,
        id,
        cache_bytes: args.cache_bytes,
        journal_bytes: args.journal_bytes,
        io: IoChoice::Auto,
        destage_bytes: None,
        emulation: None,
        metrics: None,
        plaintext: admission.certificate.is_none(),
        disks: args.disks.iter().map(absolute).collect::<Result<_>>()?,
        labels: labels(&args.labels),
        tls: admission.certificate.is_some().then(|| crate::verb::cluster::tls_files("brick")),
    };
    config::Configuration::check(&file).map_err(anyhow::Error::msg)?;
    format(&file)?;
    let path = daemon::write_config(&args.joining.dir, "brick", &file)?;
    Ok((file, path))
}

/// Disk files that an `init` has made or grown, and takes back unless it comes to its end.
struct NewFiles(Vec<DiskBefore>);

impl NewFiles {
    /// Takes the room of all disks.
    fn reserve(disks: &[DiskFile]) -> Result<NewFiles> {
        let mut new = NewFiles(Vec::new());
        for disk in disks {
            let made = DiskBefore::of(&disk.path)
                .and_then(|before| host::reserve_disk(&super::spec(disk)).map(|()| before));
            new.0.push(made.context("cannot make the brick's disks")?);
        }
        Ok(new)
    }

    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for NewFiles {
    fn drop(&mut self) {
        for before in &self.0 {
            if let Err(error) = before.restore() {
                eprintln!(
                    "cannot give back the space that {} took in vain: {error}",
                    before.path().display()
                );
            }
        }
    }
}

/// Formats exchanged disks of a brick that exists.
pub(super) fn format_exchanged(global: &Global, args: &Format) -> Result<()> {
    let path = daemon::config_path(global, "brick")?;
    let file: BrickFile = config::load(Some(path), toml::Table::new())?;
    let chosen = chosen_disks(&file, args, path)?;
    for &index in &chosen {
        format_one(&file, index)?;
    }
    let paths: Vec<_> = chosen.iter().map(|&index| file.disks[index].path.clone()).collect();
    if global.json {
        output::print_json(&json!({ "id": file.id, "formatted": paths }));
        return Ok(());
    }
    for path in &paths {
        println!("Formatted {} for brick-{}.", path.display(), file.id);
    }
    println!(
        "Start the brick; it fetches what it lacks from the others:\n  brickwork brick --config {}\nWatch it:\n  \
         brickwork rebuild --wait",
        path.display()
    );
    Ok(())
}

/// The places in the configuration of the disks to format.
fn chosen_disks(file: &BrickFile, args: &Format, config: &Path) -> Result<Vec<usize>> {
    if let Some(wanted) = &args.disk {
        let wanted = std::path::absolute(wanted)?;
        let found = file.disks.iter().position(|disk| disk.path == wanted);
        let index = found
            .with_context(|| format!("{} is none of the disks of {}", wanted.display(), config.display()))?;
        if !args.force {
            require_blank(&file.disks[index])?;
        }
        return Ok(vec![index]);
    }
    let blank: Vec<usize> =
        (0..file.disks.len()).filter(|&index| require_blank(&file.disks[index]).is_ok()).collect();
    ensure!(
        !blank.is_empty(),
        "none of the disks of {} is blank; name the exchanged one with --disk PATH --force",
        config.display()
    );
    Ok(blank)
}

fn format(file: &BrickFile) -> Result<()> {
    (0..file.disks.len()).try_for_each(|index| format_one(file, index))
}

fn format_one(file: &BrickFile, index: usize) -> Result<()> {
    let identity = DiskIdentity {
        cluster: keys::cluster_id(&file.cluster).map_err(anyhow::Error::msg)?,
        brick: BrickId(file.id),
        index: index as u16,
        journal_bytes: file.journal_bytes.map(|bytes| bytes.0),
    };
    host::format_disk(&super::spec(&file.disks[index]), &identity)
        .context("cannot make the brick's disks")?;
    Ok(())
}

/// Refuses a disk on which there is something: a file system, a partition table, another brick.
fn require_blank(disk: &DiskFile) -> Result<()> {
    let path = disk.path.display();
    let mut start = vec![0; 8192];
    let read = match File::open(&disk.path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("cannot read the disk {path}")),
        Ok(mut file) => file.read(&mut start).with_context(|| format!("cannot read the disk {path}"))?,
    };
    ensure!(
        start[..read].iter().all(|&byte| byte == 0),
        "{path} holds data (a file system, a partition table or another brick); give --force if all of it may be lost"
    );
    Ok(())
}

pub(super) fn print_init(global: &Global, args: &Init) -> Result<()> {
    let (file, path) = init(args)?;
    if global.json {
        output::print_json(&json!({ "id": file.id, "cluster": file.cluster, "config": path }));
    } else {
        println!(
            "This is brick-{} of cluster {}, with {}.",
            file.id,
            file.cluster,
            output::count(file.disks.len() as u64, "disk")
        );
        println!("Start it:\n  brickwork brick --config {}", path.display());
    }
    Ok(())
}

/// The configuration may be read from elsewhere than where this ran.
fn absolute(disk: &DiskFile) -> Result<DiskFile> {
    let path = std::path::absolute(&disk.path)
        .with_context(|| format!("disk '{}' is no path", disk.path.display()))?;
    Ok(DiskFile { path, ..disk.clone() })
}

/// Bricks on one machine fail together, so that the machine is a failure domain unless the operator names others.
fn labels(given: &[(String, String)]) -> BTreeMap<String, String> {
    if !given.is_empty() {
        return given.iter().cloned().collect();
    }
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { BTreeMap::new() } else { BTreeMap::from([("host".to_owned(), name.to_owned())]) }
}

fn parse_disk(text: &str) -> Result<DiskFile> {
    match text.rsplit_once(':') {
        Some((path, size)) if !path.is_empty() => {
            let size = size.parse().with_context(|| format!("in '{text}', behind the colon"))?;
            Ok(DiskFile { path: path.into(), size: Some(size), model: None })
        }
        _ if text.is_empty() => Err(anyhow!("a disk needs a path")),
        _ => Ok(DiskFile { path: text.into(), size: None, model: None }),
    }
}

fn parse_label(text: &str) -> Result<(String, String)> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(anyhow!("'{text}' is not a label; write host=a")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_init_that_fails_takes_back_what_it_made_and_grew() {
        let dir = tempfile::tempdir().expect("a directory");
        let disk =
            |name: &str| DiskFile { path: dir.path().join(name), size: Some(Bytes(1 << 20)), model: None };
        let disks = ["new", "empty", "small", "large"].map(disk);
        for (disk, length) in disks[1..].iter().zip([0, 8192, 2 << 20]) {
            std::fs::write(&disk.path, vec![0; length]).expect("a file");
        }
        let length = |disk: &DiskFile| std::fs::metadata(&disk.path).ok().map(|found| found.len());
        let new = NewFiles::reserve(&disks).expect("there is room");
        let mib = Some(1 << 20);
        assert_eq!(disks.each_ref().map(length), [mib, mib, mib, Some(2 << 20)]);
        drop(new);
        assert_eq!(disks.each_ref().map(length), [None, Some(0), Some(8192), Some(2 << 20)]);
        NewFiles::reserve(&disks).expect("there is room").keep();
        assert_eq!(disks.each_ref().map(length), [mib, mib, mib, Some(2 << 20)]);
    }

    #[test]
    fn disks_and_labels_are_read() {
        assert_eq!(
            parse_disk("/dev/sdb").expect("device"),
            DiskFile { path: "/dev/sdb".into(), size: None, model: None }
        );
        let file = DiskFile { path: "a:b/disk".into(), size: Some(Bytes(1 << 30)), model: None };
        assert_eq!(parse_disk("a:b/disk:1GiB").expect("file"), file);
        assert!(parse_disk("disk:huge").is_err());
        assert!(parse_label("host").is_err());
        assert_eq!(labels(&[("rack".to_owned(), "2".to_owned())]).get("rack").map(String::as_str), Some("2"));
    }
}
