//! `brickwork volume snapshot | clone | rollback`.

use super::nonce;
use crate::global::Global;
use crate::verb::{client, confirm};
use crate::{output, view};
use anyhow::{Context, Result};
use serde_json::json;
use wire::{AdminReply, AdminRequest};

/// `volume snapshot`.
#[derive(clap::Args)]
#[command(after_help = "\
A snapshot holds all writes that were acknowledged before this command began, and none that began after it ended. It takes
no room until the volume is written. Writes pause for some milliseconds. A file system finds what it would find after a
power cut; for a clean one, run `sync` or `fsfreeze` first.

It is named VOLUME@NAME, listed below its volume, and served read-only over NBD under that name.

Examples:
  brickwork volume snapshot first monday
  nbdcopy 'nbd+unix:///first@monday?socket=/run/brickwork-nbd.sock' backup.raw
  brickwork volume delete first@monday")]
pub(super) struct Snapshot {
    /// The volume
    #[arg(value_parser = parse_volume)]
    volume: String,
    /// The snapshot's name: 1 to 63 of a-z 0-9 - _ . beginning with a letter or digit
    name: String,
}

/// `volume clone`.
#[derive(clap::Args)]
#[command(after_help = "\
A clone is a volume that begins with the snapshot's content. It shares the snapshot's blocks until they are overwritten. A
snapshot that has clones cannot be deleted.

Examples:
  brickwork volume clone first@monday try-upgrade")]
pub(super) struct Clone {
    /// The snapshot: VOLUME@NAME
    #[arg(value_parser = parse_snapshot)]
    snapshot: String,
    /// The new volume's name
    name: String,
}

/// `volume rollback`.
#[derive(clap::Args)]
#[command(after_help = "\
The volume becomes what the snapshot is; all that was written since is dropped. Unmount file systems first: clients that
are connected would see blocks change under them. Before it asks, the command says at which gateways the volume is open.
The snapshot stays.

Examples:
  brickwork volume snapshot first before-rollback
  brickwork volume rollback first@monday --yes")]
pub(super) struct Rollback {
    /// The snapshot: VOLUME@NAME
    #[arg(value_parser = parse_snapshot)]
    snapshot: String,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

pub(super) fn snapshot(global: &Global, args: Snapshot) -> Result<()> {
    let Snapshot { volume, name } = args;
    let full = format!("{volume}@{name}");
    let request = AdminRequest::Snapshot { volume, snapshot: name, nonce: nonce() };
    let reply =
        client::call(global, request).with_context(|| format!("cannot take the snapshot '{full}'"))?;
    done(global, &reply, &full, &format!("Snapshot '{full}' is taken; it is served read-only as '{full}'."));
    Ok(())
}

pub(super) fn clone(global: &Global, args: Clone) -> Result<()> {
    let Clone { snapshot, name } = args;
    let request = AdminRequest::Clone { snapshot: snapshot.clone(), name: name.clone(), nonce: nonce() };
    let reply = client::call(global, request).with_context(|| format!("cannot clone '{snapshot}'"))?;
    done(global, &reply, &name, &format!("Volume '{name}' created from '{snapshot}'."));
    Ok(())
}

pub(super) fn rollback(global: &Global, args: Rollback) -> Result<()> {
    let Rollback { snapshot, yes } = args;
    let volume = snapshot.split('@').next().unwrap_or_default().to_owned();
    let open = open_at(global, &volume)?;
    if !yes {
        confirm::confirm(&question(&volume, &snapshot, open.as_deref()), &volume)?;
    } else if let Some(places) = open.filter(|_| !global.json) {
        output::print_marked(
            "!",
            &format!("'{volume}' is open at {places}: they see blocks change under them."),
        );
    }
    let request = AdminRequest::Rollback { snapshot: snapshot.clone(), nonce: nonce() };
    let reply = client::call(global, request)
        .with_context(|| format!("cannot roll '{volume}' back to '{snapshot}'"))?;
    done(global, &reply, &volume, &format!("Volume '{volume}' rolled back to '{snapshot}'."));
    Ok(())
}

/// Where clients have the volume open, if any have.
fn open_at(global: &Global, volume: &str) -> Result<Option<String>> {
    let status = client::status(global)?;
    let found = status.volumes.iter().find(|of| of.volume.name == volume);
    Ok(found.and_then(|of| view::open_at(&view::users_of(&status, of.volume.id))))
}

/// What is asked before a rollback.
fn question(volume: &str, snapshot: &str, open: Option<&str>) -> String {
    let open = open.map_or_else(String::new, |places| {
        format!(", although it is open at {places}, who would see blocks change under them")
    });
    format!("Roll '{volume}' back to '{snapshot}' and drop all that was written since{open}")
}

fn done(global: &Global, reply: &AdminReply, name: &str, text: &str) {
    match reply {
        _ if !global.json => println!("{text}"),
        AdminReply::Volume(volume) => output::print_json(&view::volume_json(volume)),
        _ => output::print_json(&json!({ "name": name })),
    }
}

fn parse_volume(text: &str) -> Result<String, String> {
    match text.split_once('@') {
        Some((volume, name)) => {
            Err(format!("'{text}' is a snapshot's name; write `brickwork volume snapshot {volume} {name}`"))
        }
        None => Ok(text.to_owned()),
    }
}

fn parse_snapshot(text: &str) -> Result<String, String> {
    match text.split_once('@') {
        Some((volume, name)) if !volume.is_empty() && !name.is_empty() && !name.contains('@') => {
            Ok(text.to_owned())
        }
        _ => {
            Err(format!("'{text}' is no snapshot; write VOLUME@NAME, as `brickwork volume list` shows them"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rollback_of_a_volume_that_is_open_says_where_before_it_asks() {
        let free = question("v", "v@monday", None);
        assert!(!free.contains("open"), "{free}");
        let open = question("v", "v@monday", Some("gateway-1 (10.0.0.5:7004) by 2 clients"));
        assert!(open.contains("although it is open at gateway-1 (10.0.0.5:7004) by 2 clients"), "{open}");
    }
}
