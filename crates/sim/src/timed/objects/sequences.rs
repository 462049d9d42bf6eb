//! Clients that each put and get one object after another, so that puts and gets compete for the disks.
//!
//! Each access is of an object of its own on bricks that are drawn for it, and begins when the client's access before it has ended. An object
//! that is got was stored while nothing else went on; what that took is not measured.

use super::{Client, ObjectLayout, Objects, Writing, check_got, shuffle};
use crate::timed::{Cluster, TimedError};
use crate::world::event::Input;
use core::time::Duration;
use model::Draw;
use objects::object::Put;
use roles::gateway::Segment;
use std::collections::VecDeque;

/// What the draw of who puts and who gets is apart from other draws of a seed.
const KINDS: u64 = 0x6d69_7865_6420;

/// What came of a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SequencesMeasured {
    /// How long each put took, in the order of the accesses.
    pub puts: Vec<Duration>,
    /// How long each get took, in the order of the accesses.
    pub gets: Vec<Duration>,
    pub simulated: Duration,
    pub events: u64,
}

/// As [`run`](super::run), but `objects.objects` is the number of accesses in all. Of these `writes` are puts, and the rest are gets by the
/// only one of `objects.strategies`; which are which is drawn. There are `objects.at_once` clients. Each does `length` accesses; then all
/// become quiet, and begin again.
///
/// # Errors
/// As [`run`](super::run), and when there is not one strategy, or a length of zero, or more writes than accesses, or puts go by the paces of
/// other bricks.
pub fn run_sequences(
    cluster: &Cluster,
    objects: &Objects,
    (writes, length): (u32, u32),
    seed: u64,
) -> Result<SequencesMeasured, TimedError> {
    validate(objects, (writes, length))?;
    let (mut client, begin) = Client::begin(cluster, objects, seed)?;
    let mut accesses: Vec<Access> =
        (0..objects.objects).map(|number| if number < writes { Access::Put } else { Access::Get }).collect();
    shuffle(&mut Draw::new(seed ^ KINDS), &mut accesses);
    let numbered: Vec<(u64, Access)> = (1..).zip(accesses).collect();
    let mut measured = SequencesMeasured::default();
    for some in numbered.chunks(length as usize * objects.at_once as usize) {
        client.sequences(some, &mut measured)?;
    }
    measured.simulated = client.timed.now().since(begin);
    measured.events = client.events;
    Ok(measured)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Access {
    Put,
    Get,
}

fn validate(objects: &Objects, (writes, length): (u32, u32)) -> Result<(), TimedError> {
    let refuse = |why: &str| Err(TimedError::Conditions(why.to_owned()));
    match () {
        () if objects.strategies.len() != 1 => refuse("sequences of gets that are not all of one strategy"),
        () if length == 0 => refuse("sequences of nothing"),
        () if writes > objects.objects => refuse("sequences of more puts than accesses"),
        () if matches!(objects.layout, ObjectLayout::ByOtherPaces(_)) => {
            refuse("sequences with puts by paces that bricks have not")
        }
        () => Ok(()),
    }
}

impl Client<'_> {
    /// Accesses that are dealt out to all clients in turn.
    fn sequences(
        &mut self,
        accesses: &[(u64, Access)],
        measured: &mut SequencesMeasured,
    ) -> Result<(), TimedError> {
        let clients = self.objects.at_once as usize;
        let mut inputs = vec![VecDeque::new(); clients];
        let mut asked: Vec<Vec<(Access, Put)>> = vec![Vec::new(); clients];
        for (at, (number, access)) in accesses.iter().enumerate() {
            let (tag, put) = (*number, self.draw_put(*number)?);
            let input = match access {
                Access::Put => Input::Put { tag, put: Box::new(put.clone()) },
                Access::Get => {
                    // What lies where it is planned is laid there: the same as put, and at once.
                    let (_, places) = self.store(tag, &put, Writing::Laid)?;
                    let get = Box::new(self.get_of(&put, &places, self.objects.strategies[0]));
                    Input::Get { tag, get }
                }
            };
            inputs[at % clients].push_back((tag, input));
            asked[at % clients].push((*access, put));
        }
        let ended = self.drive(inputs)?;
        for ((access, put), (took, segment)) in asked.iter().flatten().zip(ended) {
            match (access, segment) {
                (Access::Put, Segment::Put(Ok(_))) => measured.puts.push(took),
                (Access::Put, other) => {
                    return Err(TimedError::Failed(format!("a put ended with {other:?}")));
                }
                (Access::Get, segment) => {
                    check_got(put, segment)?;
                    measured.gets.push(took);
                }
            }
        }
        self.be_quiet();
        asked.iter().flatten().for_each(|(_, put)| self.drop_version(put.version));
        Ok(())
    }
}
