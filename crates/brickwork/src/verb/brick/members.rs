//! `brickwork brick list | evict | forget | readmit | replace`: which bricks take part.

use crate::config::Bytes;
use crate::global::Global;
use crate::verb::{client, confirm, watch};
use crate::{output, view};
use anyhow::{Context, Result, bail};
use base::BrickId;
use host::HostError;
use serde_json::json;
use std::process::ExitCode;
use wire::directory::BrickEntry;
use wire::{AdminError, AdminReply, AdminRequest, ClusterStatus};

pub(super) const LIST_HELP: &str = "\
States:
  serving           its lease is in force
  serving, behind   it is up, and groups that went on without it have yet to take it back
  catching up 40%   it compares and fetches what it missed; it serves the rest meanwhile
  slow, left out    it held up its groups' writes; it returns by itself once it has been well for a while
  slow, leaving     the same, and some of its groups have yet to go on without it
  serving, slow     it holds up its groups' writes, but they cannot spare it
  silent            nothing was heard of it for longer than its lease
  evicted           taken out by an operator
  disk failed       `brickwork status` says why

Columns: groups in which it is a member; of these, in which it is behind; room taken; blocks that nobody could repair.

Examples:
  brickwork brick list
  brickwork brick list --json | jq '.[] | select(.state != \"serving\") | .name'";

/// `brick evict`.
#[derive(clap::Args)]
#[command(after_help = "\
The brick is left out of all its groups at once and gets no more groups. Its blocks are rebuilt on other bricks from the
remaining redundancy, and no acknowledged write is lost. Until the rebuild is done, the groups lack one member; the command
is refused if a layout does not tolerate that. Where no other brick can take its place in some groups, the command says so
before it asks; these groups stay without a member until a brick is added. To move blocks away from a working brick, add a
brick first. A brick that will return later needs no eviction.

Examples:
  brickwork brick evict brick-3
  brickwork brick evict 3 --yes && brickwork rebuild --wait")]
pub(super) struct Evict {
    /// The brick: brick-3, or 3
    #[arg(value_parser = parse_brick)]
    brick: BrickId,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

/// `brick forget`.
#[derive(clap::Args)]
#[command(after_help = "\
For a brick that is gone for good, and for one that was admitted and never came: the directory removes its record, and
`status` and `brick list` show it no more. Its id is not given again. If its process starts after all, the directory does
not let it take part; make it anew with `brickwork brick init`.

This is refused while the brick is up, while a group has a place for it, and while it is not evicted and may hold
fragments of objects. Evict it first, and wait until others have its blocks: `brickwork rebuild --wait`.

Examples:
  brickwork brick evict 3 --yes && brickwork rebuild --wait && brickwork brick forget 3
  brickwork brick forget brick-3 --yes")]
pub(super) struct Forget {
    /// The brick: brick-3, or 3
    #[arg(value_parser = parse_brick)]
    brick: BrickId,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

/// `brick readmit`.
#[derive(clap::Args)]
#[command(after_help = "\
Lets an evicted brick take part again: it gets groups of new volumes and takes over slots of missing bricks.

Examples:
  brickwork brick readmit brick-3")]
pub(super) struct Readmit {
    /// The brick: brick-3, or 3
    #[arg(value_parser = parse_brick)]
    brick: BrickId,
}

/// `brick replace`.
#[derive(clap::Args)]
#[command(after_help = "\
Does at once what happens by itself when a brick has been away for `rebuild_after` (10m): its places go to other bricks,
which fetch the blocks from the members that are left. Without --by the directory chooses a brick for each group, by
failure domain and room. The brick is evicted: when it comes back it gives its room back and gets no groups until it is
readmitted. This is refused where the layout cannot bear it.

With --wait: shows progress; ends with 0 when the brick has no groups and all data are redundant, with 1 after --timeout.

Examples:
  brickwork brick replace brick-3 --wait
  brickwork brick replace 3 --by 7")]
pub(super) struct Replace {
    /// The brick: brick-3, or 3
    #[arg(value_parser = parse_brick)]
    brick: BrickId,
    /// The brick that takes over its slots
    #[arg(long, value_name = "BRICK", value_parser = parse_brick)]
    by: Option<BrickId>,
    #[command(flatten)]
    waiting: watch::Waiting,
}

/// Prints all bricks.
pub(super) fn list(global: &Global) -> Result<()> {
    let status = client::status(global)?;
    if global.json {
        output::print_json(&status.bricks.iter().map(view::brick_json).collect());
        return Ok(());
    }
    if status.bricks.is_empty() {
        println!("The cluster has no brick: run `brickwork brick init` on a storage server to make one.");
        return Ok(());
    }
    let mut table = output::table(&["brick", "state", "address", "groups", "behind", "used", "lost"]);
    for brick in &status.bricks {
        table.add_row(row(brick));
    }
    output::align_right(&mut table, &[3, 4, 5, 6]);
    println!("{}", output::render(&table));
    Ok(())
}

fn row(brick: &BrickEntry) -> [String; 7] {
    [
        brick.id.to_string(),
        view::brick_state_since(brick),
        brick.status.address.clone(),
        brick.groups.to_string(),
        brick.stale_groups.to_string(),
        format!("{}%", view::percent(brick.status.space.used_bytes, brick.status.space.capacity_bytes)),
        brick.status.rot.lost_blocks.to_string(),
    ]
}

pub(super) fn evict(global: &Global, args: &Evict) -> Result<()> {
    let brick = args.brick;
    let status = client::status(global)?;
    let entry = find(&status, brick)?;
    let obstacle = obstacle(global, brick)?;
    if let Some(why) = obstacle.as_ref().filter(|_| !global.json) {
        output::print_marked("!", &format!("Not all of it would be rebuilt: {why}."));
    }
    if !args.yes {
        let groups = output::count(u64::from(entry.groups + entry.stand_in_groups), "group");
        let until = if obstacle.is_none() { "it is rebuilt" } else { "a brick is added" };
        let what = format!("Evict {brick}, a member of {groups}, which lose its redundancy until {until}");
        confirm::confirm(&what, &brick.to_string())?;
    }
    change(global, AdminRequest::EvictBrick { brick }).with_context(|| format!("cannot evict {brick}"))?;
    let next = match (entry.groups + entry.stand_in_groups, obstacle) {
        (0, _) => "It had no groups; its process may be stopped.",
        (_, None) => "Its blocks are rebuilt on other bricks; watch it:\n  brickwork rebuild --wait",
        (_, Some(_)) => {
            "What other bricks can take is rebuilt on them; `brickwork status` says what waits for another brick."
        }
    };
    done(global, brick, "evicted", next);
    Ok(())
}

/// Why not all places of the brick would go to others, if so.
fn obstacle(global: &Global, brick: BrickId) -> Result<Option<String>> {
    let error = match client::call(global, AdminRequest::MayEvict { brick }) {
        Ok(_) => return Ok(None),
        Err(error) => error,
    };
    match error.downcast_ref() {
        Some(HostError::Admin(AdminError::NotNow(why))) => Ok(Some(why.clone())),
        _ => Err(error.context(format!("cannot evict {brick}"))),
    }
}

pub(super) fn forget(global: &Global, args: &Forget) -> Result<()> {
    let brick = args.brick;
    let status = client::status(global)?;
    let entry = find(&status, brick)?;
    if !args.yes {
        let what = format!("Forget {brick}{}; it cannot come back under this id", remains(entry));
        confirm::confirm(&what, &brick.to_string())?;
    }
    change(global, AdminRequest::ForgetBrick { brick }).with_context(|| format!("cannot forget {brick}"))?;
    done(global, brick, "forgotten", "Its disks may be used for something else.");
    Ok(())
}

/// What the brick said it held when it was heard last.
fn remains(entry: &BrickEntry) -> String {
    match entry.status.space.used_bytes {
        0 => String::new(),
        bytes => format!(", with {} on its disks that are then out of reach", Bytes(bytes)),
    }
}

pub(super) fn readmit(global: &Global, args: &Readmit) -> Result<()> {
    let brick = args.brick;
    change(global, AdminRequest::ReadmitBrick { brick })
        .with_context(|| format!("cannot readmit {brick}"))?;
    done(global, brick, "readmitted", "It takes part again as soon as it is up.");
    Ok(())
}

pub(super) fn replace(global: &Global, args: &Replace) -> Result<ExitCode> {
    let Replace { brick, by, .. } = *args;
    let request = AdminRequest::ReplaceBrick { brick, by };
    change(global, request).with_context(|| format!("cannot replace {brick}"))?;
    if args.waiting.wait {
        let gone = |status: &ClusterStatus| {
            view::is_redundant(status)
                && status.bricks.iter().all(|entry| entry.id != brick || entry.groups == 0)
        };
        return watch::rebuild(global, &args.waiting, &gone);
    }
    let by = by.map_or_else(|| "others".to_owned(), |by| by.to_string());
    done(
        global,
        brick,
        "replaced",
        &format!("It is evicted, its places go to {by}; watch it:\n  brickwork rebuild --wait"),
    );
    Ok(ExitCode::SUCCESS)
}

fn change(global: &Global, request: AdminRequest) -> Result<()> {
    match client::call(global, request)? {
        AdminReply::Done | AdminReply::Status(_) => Ok(()),
        other => bail!("the directory answered something else: {other:?}; it is of another version"),
    }
}

fn find(status: &ClusterStatus, brick: BrickId) -> Result<&BrickEntry> {
    let found = status.bricks.iter().find(|entry| entry.id == brick);
    found.with_context(|| format!("there is no {brick}; `brickwork brick list` shows those there are"))
}

fn done(global: &Global, brick: BrickId, what: &str, next: &str) {
    if global.json {
        output::print_json(&json!({ "brick": brick.0, "done": what }));
    } else {
        println!("{brick} is {what}. {next}");
    }
}

/// A brick as people write it: `brick-3`, or `3`.
pub(in crate::verb) fn parse_brick(text: &str) -> Result<BrickId> {
    let number = text.strip_prefix("brick-").unwrap_or(text);
    let parsed = number.parse().ok().filter(|_| number.bytes().all(|byte| byte.is_ascii_digit()));
    parsed.map(BrickId).with_context(|| format!("'{text}' is no brick; write brick-3 or 3"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::directory::SlowEntry;

    #[test]
    fn the_help_names_every_state_of_a_slow_brick() {
        let slow = SlowEntry {
            is_out: true,
            since_ms: 1,
            why: String::new(),
            relapses: 0,
            hold_s: 10,
            well_ms: None,
            needed_by: None,
        };
        let status = wire::BrickStatus::default();
        let (id, alive, silent_ms) = (BrickId(1), true, Some(1));
        let (groups, stale_groups, joining_groups, evicted) = (2, 1, 0, false);
        let mut brick = BrickEntry {
            id,
            alive,
            silent_ms,
            groups,
            stale_groups,
            joining_groups,
            evicted,
            slow: Some(slow),
            status,
            version: 1,
            stand_in_groups: 0,
            caught_up_percent: None,
        };
        for (is_out, stale_groups) in [(true, 1), (true, 2), (false, 0)] {
            brick.stale_groups = stale_groups;
            brick.slow.iter_mut().for_each(|slow| slow.is_out = is_out);
            let state = view::brick_state(&brick);
            assert!(LIST_HELP.contains(&format!("\n  {state} ")), "{state} is not in the help");
        }
    }

    #[test]
    fn bricks_are_named_with_and_without_the_word() {
        assert_eq!(parse_brick("brick-12").expect("a brick"), BrickId(12));
        assert_eq!(parse_brick("3").expect("a brick"), BrickId(3));
        for text in ["", "brick-", "brick", "b3", "-3", "+3", "3.", "99999999999"] {
            let error = parse_brick(text).expect_err("no brick").to_string();
            assert!(error.contains("write brick-3 or 3"), "{error}");
        }
    }
}
