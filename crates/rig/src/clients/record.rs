//! A client that remembers what was acknowledged: it writes blocks that carry stamps, and afterwards each block must hold
//! the last acknowledged stamp, or one that was sent later and never answered.

use anyhow::{Result, bail, ensure};
use base::BLOCK_U64;
use rig::nbd::{Nbd, command};
use rig::noise::Noise;
use rig::pattern::{self, content};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

/// What a block may hold.
#[derive(Clone, Default)]
struct Expected {
    acknowledged: u64,
    unanswered: Vec<u64>,
}

/// What was written where.
pub(crate) struct Recorder {
    blocks: Vec<Expected>,
    first_block: u64,
    stamp: u64,
    noise: Noise,
    /// Writes that were acknowledged.
    pub(crate) acknowledged: u64,
    /// Writes that were sent and never answered.
    pub(crate) unanswered: u64,
    /// The longest that a write took.
    pub(crate) slowest: Duration,
}

/// Why a run of writes ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It was asked to.
    Stopped,
    ConnectionLost,
}

struct InFlight {
    block: usize,
    stamp: u64,
    since: Instant,
}

impl Recorder {
    /// Over so many blocks of 4 KiB beginning with `first_block`, which hold zeroes.
    pub(crate) fn new(first_block: u64, blocks: usize, seed: u64) -> Recorder {
        let (blocks, noise) = (vec![Expected::default(); blocks], Noise::new(seed));
        let (stamp, acknowledged, unanswered, slowest) = (0, 0, 0, Duration::ZERO);
        Recorder { blocks, first_block, stamp, noise, acknowledged, unanswered, slowest }
    }

    /// Writes single blocks in random order, `depth` at a time and never two to one block, until `stop` or until the
    /// connection breaks. A write that is answered with an error is an error here.
    pub(crate) fn write(
        &mut self,
        nbd: &mut Nbd,
        depth: usize,
        mut stop: impl FnMut(u64) -> bool,
    ) -> Result<Ended> {
        let end = (self.first_block + self.blocks.len() as u64) * BLOCK_U64;
        ensure!(end <= nbd.size, "the export has {} bytes, {end} are needed", nbd.size);
        let mut in_flight: HashMap<u64, InFlight> = HashMap::new();
        let ended = loop {
            let stopping = stop(self.acknowledged);
            if stopping && in_flight.is_empty() {
                break Ended::Stopped;
            }
            if !stopping && in_flight.len() < depth {
                if self.send_one(nbd, &mut in_flight).is_err() {
                    break Ended::ConnectionLost;
                }
                continue;
            }
            let Ok(reply) = nbd.reply() else { break Ended::ConnectionLost };
            let Some(write) = in_flight.remove(&reply.handle) else {
                bail!("a reply to handle {}", reply.handle)
            };
            ensure!(
                reply.error == 0,
                "writing block {}: error {}",
                self.first_block + write.block as u64,
                reply.error
            );
            self.on_acknowledged(&write);
        };
        self.unanswered += in_flight.len() as u64;
        in_flight.into_values().for_each(|write| self.blocks[write.block].unanswered.push(write.stamp));
        Ok(ended)
    }

    fn send_one(&mut self, nbd: &mut Nbd, in_flight: &mut HashMap<u64, InFlight>) -> Result<()> {
        let block = loop {
            let block = self.noise.below(self.blocks.len() as u64) as usize;
            if in_flight.values().all(|write| write.block != block) {
                break block;
            }
        };
        self.stamp += 1;
        let stamp = self.stamp;
        in_flight.insert(stamp, InFlight { block, stamp, since: Instant::now() });
        let place = self.first_block + block as u64;
        nbd.send_write(stamp, place * BLOCK_U64, &content(stamp, place))
    }

    fn on_acknowledged(&mut self, write: &InFlight) {
        self.acknowledged += 1;
        self.slowest = self.slowest.max(write.since.elapsed());
        self.blocks[write.block] = Expected { acknowledged: write.stamp, unanswered: Vec::new() };
    }

    /// Reads every block. An error names the first that does not hold what it must, and counts them.
    pub(crate) fn verify(&self, nbd: &mut Nbd) -> Result<u64> {
        let mut wrong = Vec::new();
        for (index, expected) in self.blocks.iter().enumerate() {
            let place = self.first_block + index as u64;
            nbd.request(command::READ, place, place * BLOCK_U64, BLOCK_U64 as u32)?;
            let reply = nbd.reply()?;
            ensure!(reply.error == 0, "reading block {place}: error {}", reply.error);
            let data = nbd.payload(BLOCK_U64 as usize)?;
            wrong.extend(complaint(&data, place, expected));
        }
        ensure!(wrong.is_empty(), "{} blocks lost or torn; the first: {}", wrong.len(), wrong[0]);
        Ok(self.blocks.len() as u64)
    }
}

/// What is wrong with a block, if something is.
fn complaint(data: &[u8], place: u64, expected: &Expected) -> Option<String> {
    let mut allowed = expected.unanswered.iter().chain([&expected.acknowledged]);
    let good = allowed.any(|stamp| data == content(*stamp, place));
    (!good).then(|| describe(data, place, expected))
}

fn describe(data: &[u8], place: u64, expected: &Expected) -> String {
    let found = match pattern::value_at(data, place) {
        Ok(stamp) => format!("holds stamp {stamp}"),
        Err(damage) => format!("is damaged: {damage}"),
    };
    let (stamp, unanswered) = (expected.acknowledged, &expected.unanswered);
    format!("block {place} {found}; acknowledged is {stamp}, unanswered {unanswered:?}")
}

/// Runs a well-behaved client beside something hostile: it must see no error, get on, and find all it wrote.
pub(super) fn beside(
    connect: impl Fn() -> Result<Nbd> + Sync,
    hostile: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let witness: ScopedJoinHandle<'_, Result<Recorder>> = scope.spawn(|| {
            let mut recorder = Recorder::new(0, 2048, 7);
            let ended = recorder.write(&mut connect()?, 4, |_| done.load(Ordering::SeqCst))?;
            ensure!(ended == Ended::Stopped, "the connection of a well-behaved client was broken");
            recorder.verify(&mut connect()?)?;
            Ok(recorder)
        });
        let outcome = hostile();
        // The witness must have got on after the hostile part as well as during it.
        std::thread::sleep(Duration::from_millis(300));
        done.store(true, Ordering::SeqCst);
        let Ok(witness) = witness.join() else { bail!("the well-behaved client panicked") };
        outcome?;
        let recorder =
            witness.map_err(|error| error.context("a well-behaved client beside the hostile one"))?;
        ensure!(recorder.acknowledged > 0, "the well-behaved client got nothing done");
        ensure!(
            recorder.slowest < Duration::from_secs(10),
            "a write of the well-behaved client took {:?}",
            recorder.slowest
        );
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_an_older_and_a_torn_block_are_found() {
        let expected = Expected { acknowledged: 5, unanswered: vec![7] };
        assert_eq!(complaint(&content(5, 9), 9, &expected), None);
        assert_eq!(complaint(&content(7, 9), 9, &expected), None);
        assert!(complaint(&content(0, 9), 9, &expected).is_some(), "lost");
        assert!(complaint(&content(4, 9), 9, &expected).is_some(), "older");
        assert!(complaint(&content(5, 8), 9, &expected).is_some(), "another block's");
        let mut torn = content(5, 9);
        torn[2048..].copy_from_slice(&content(7, 9)[2048..]);
        assert!(complaint(&torn, 9, &expected).is_some_and(|said| said.contains("torn")));
    }
}
