//! One client that puts and gets large objects, each in one piece, and what that takes: in the place of a [`Load`](super::load::Load).
//!
//! The client is part of a gateway's process. It does one thing after another, each on bricks that are drawn anew, and lets all become
//! quiet in between. Where several compete, so many objects are got at the same time. Whether what it gets is what it put is checked each time.
//! In [`sequences`] puts and gets compete with each other instead.

mod sequences;

use super::cluster::Cluster;
use super::grain::Grain;
use super::sharing::{Sharing, VolumeSpec};
use super::workload::{Length, Workload};
use super::{Conditions, Placed, Timed, TimedError, policy};
use crate::world::event::Input;
use base::{BLOCK, BrickId, NodeId, ObjectVersion, Payload, StreamId, Time};
use code::Computation;
use code::fountain::Lt;
use core::time::Duration;
use model::Draw;
use objects::object::{AccessStrategy, Coding, Get, LtDecoder, Place, Placing, Put};
use reads::seat::Turns;
use roles::gateway::Segment;
use rules::fair::{Share, Shares};
pub use sequences::{SequencesMeasured, run_sequences};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use wire::{FragmentId, Message, Packet};

/// What the client does.
#[derive(Clone, PartialEq, Debug)]
pub struct Objects {
    /// So many objects are put, one after another, and each is got by every one of `strategies`.
    pub objects: u32,
    /// Blocks of an object.
    pub blocks: u32,
    /// Bytes of a block, in whole 4 KiB.
    pub block_bytes: u64,
    pub code: ObjectCode,
    /// So many symbols of an object are stored.
    pub symbols: u32,
    /// On so many bricks, which are drawn anew for each object.
    pub bricks: u32,
    /// So many objects are got at the same time, as if by as many clients.
    pub at_once: u32,
    pub layout: ObjectLayout,
    pub writing: Writing,
    /// So many fragments are on their way to a brick at a time.
    pub window: u32,
    pub strategies: Vec<AccessStrategy>,
    pub order: FragmentOrder,
    /// How requests take their turns at the bricks' disks.
    pub turns: Turns,
    /// The weight of each client's stream, from the first client on; where it is empty, all are of one stream.
    pub weights: Vec<u32>,
    /// Between the end of one put or get and the next.
    pub pause: Duration,
}

/// How objects are coded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObjectCode {
    /// As it is, or in copies.
    Copies,
    /// The RobuSTore paper's code, of a graph that gives the blocks back from all that is stored.
    Lt(LtDecoder),
    Precoded,
}

/// Which bricks get which symbols.
#[derive(Clone, PartialEq, Debug)]
pub enum ObjectLayout {
    /// A fast brick gets more.
    ByPace,
    /// All get as many, by this rule.
    Even(Mapping),
    /// Each gets symbols of a code by one of these paces, which is drawn for it: as if it had had that one while the object was written. There
    /// are as many as bricks of the cluster.
    ByOtherPaces(Arc<[f64]>),
}

/// How objects come to the bricks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Writing {
    Put,
    /// They are there at once, where they are planned: puts are not measured. An even layout is the same however long a put takes.
    Laid,
}

/// How symbols, or the copies of blocks, are mapped to bricks evenly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mapping {
    /// A block after the other on the bricks in turn; the next copy of all begins at another brick.
    Rotated,
    /// Each copy in an order of its own, which is drawn.
    Drawn,
}

/// In which order a brick is asked for its fragments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FragmentOrder {
    /// In the order in which it got them.
    AsWritten,
    Drawn,
}

/// What a put or a get took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Transferred {
    pub took: Duration,
    /// Bytes of content that were sent because of it, also after its end.
    pub sent_bytes: u64,
}

/// What was measured of an object.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ObjectMeasured {
    /// Where it was stored.
    pub places: Vec<Place>,
    pub put: Transferred,
    /// In the order of the strategies.
    pub gets: Vec<Transferred>,
}

/// What came of a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ObjectsMeasured {
    pub objects: Vec<ObjectMeasured>,
    pub simulated: Duration,
    pub events: u64,
}

/// What is seen of transfers while they go on.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    ended: Vec<(u64, Segment)>,
    content_bytes: u64,
}

impl Watch {
    pub(crate) fn on_packet(&mut self, packet: &Packet) {
        if matches!(packet.message, Message::PutFragment { .. } | Message::Fragment { .. }) {
            self.content_bytes += packet.payload.len() as u64;
        }
    }

    pub(crate) fn on_segment(&mut self, tag: u64, segment: Segment) {
        self.ended.push((tag, segment));
    }
}

/// Runs what the client does on this cluster, and measures. All draws are from `seed`.
///
/// # Errors
/// When the cluster cannot be, or a put or a get fails.
pub fn run(cluster: &Cluster, objects: &Objects, seed: u64) -> Result<ObjectsMeasured, TimedError> {
    let (mut client, begin) = Client::begin(cluster, objects, seed)?;
    let numbers: Vec<u64> = (1..=u64::from(objects.objects)).collect();
    let measured: Result<Vec<_>, _> =
        numbers.chunks(objects.at_once as usize).map(|numbers| client.objects(numbers)).collect();
    let simulated = client.timed.now().since(begin);
    Ok(ObjectsMeasured { objects: measured?.concat(), simulated, events: client.events })
}

impl Objects {
    fn validate(&self, bricks: usize) -> Result<(), TimedError> {
        let refuse = |why: &str| Err(TimedError::Conditions(why.to_owned()));
        match () {
            () if self.bricks as usize > bricks => refuse("objects on more bricks than there are"),
            () if self.bricks == 0 || self.blocks == 0 => refuse("objects on no bricks, or of no blocks"),
            () if self.at_once == 0 => refuse("objects that nobody gets"),
            () if !self.weights.is_empty() && self.weights.len() != self.at_once as usize => {
                refuse("weights that are not one of each client")
            }
            () if self.block_bytes == 0 || !self.block_bytes.is_multiple_of(BLOCK as u64) => {
                refuse("objects of blocks that are not whole 4 KiB")
            }
            () if self.symbols < self.blocks => refuse("objects of which less than all is stored"),
            () if self.code == ObjectCode::Copies && self.symbols > self.blocks * self.bricks => {
                refuse("objects in more copies than bricks")
            }
            () if self.writing == Writing::Laid && self.layout == ObjectLayout::ByPace => {
                refuse("objects that are laid by the pace of puts that are not")
            }
            () if !self.has_paces(bricks) => refuse(
                "paces that are not one of each brick, or copies by paces, or puts by paces that bricks have not",
            ),
            () if self.draws_copies()
                && self.symbols.div_ceil(self.blocks) * 2 > self.bricks.min(self.blocks) =>
            {
                refuse("copies at drawn places, and hardly more bricks or blocks than copies: no draw may do")
            }
            () => Ok(()),
        }
    }
}

impl Objects {
    /// The stream of the client that has this object. Clients have objects in turn.
    fn stream(&self, version: ObjectVersion) -> StreamId {
        match self.weights.is_empty() {
            true => StreamId::default(),
            false => StreamId(1 + (version.0.saturating_sub(1) % u64::from(self.at_once)) as u32),
        }
    }

    fn shares(&self) -> Shares {
        (1..).map(StreamId).zip(self.weights.iter().map(|weight| Share::total(*weight))).collect()
    }

    /// Where symbols lie by other paces there are as many as bricks, and it suits the rest.
    fn has_paces(&self, bricks: usize) -> bool {
        let ObjectLayout::ByOtherPaces(paces) = &self.layout else { return true };
        let is_laid = self.writing == Writing::Laid && self.code != ObjectCode::Copies;
        is_laid && paces.len() == bricks && paces.iter().all(|pace| pace.is_finite() && *pace > 0.0)
    }

    fn draws_copies(&self) -> bool {
        self.code == ObjectCode::Copies && self.layout == ObjectLayout::Even(Mapping::Drawn)
    }
}

struct Client<'a> {
    timed: Timed,
    objects: &'a Objects,
    gateway: usize,
    draw: Draw,
    events: u64,
    grain: Grain,
}

impl Client<'_> {
    /// A client of a cluster that has come up, and the moment.
    fn begin<'a>(
        cluster: &Cluster,
        objects: &'a Objects,
        seed: u64,
    ) -> Result<(Client<'a>, Time), TimedError> {
        cluster.validate()?;
        objects.validate(cluster.bricks.len())?;
        let policy = policy::name(&cluster.scheme).ok_or(TimedError::Scheme(cluster.scheme.name()))?;
        let order: Vec<usize> = (0..cluster.bricks.len()).collect();
        // A gateway learns where all bricks are with its first volume, of which nothing is asked.
        let volumes = vec![VolumeSpec::on(0, StreamId::default())];
        let plans = volumes.iter().map(|volume| (volume.layout, volume.stream)).collect();
        let sharing = Some(Sharing { volumes, turns: objects.turns, shares: objects.shares() });
        let placed = Placed { order, replicas: 1, plans, sharing };
        let (workload, length) =
            (Workload::Stream(Box::new(core::iter::empty())), Length { warmup: 0, requests: 0 });
        let grain = Grain::Blocks((objects.block_bytes / BLOCK as u64) as u32);
        let conditions = Conditions::default();
        let mut timed = Timed::new(cluster, (policy, placed), (workload, grain), (length, &conditions), seed);
        timed.world.watch_no_more();
        timed.set_up()?;
        timed.world.watch = Some(Box::default());
        let gateways = timed.world.nodes.matching(|node| matches!(node.id(), NodeId::Gateway(_)));
        let (draw, begin) = (Draw::new(seed ^ 0x0b1e_c75e), timed.now());
        Ok((Client { timed, objects, gateway: gateways[0], draw, events: 0, grain }, begin))
    }

    /// Puts objects one after another, gets them at the same time, and drops them.
    fn objects(&mut self, numbers: &[u64]) -> Result<Vec<ObjectMeasured>, TimedError> {
        let (mut puts, mut measured) = (Vec::new(), Vec::new());
        for number in numbers {
            let put = self.draw_put(*number)?;
            let (took, places) = self.store(*number, &put, self.objects.writing)?;
            measured.push(ObjectMeasured { places, put: took, gets: Vec::new() });
            puts.push(put);
        }
        for strategy in &self.objects.strategies {
            let mut inputs = Vec::new();
            for ((number, put), object) in numbers.iter().zip(&puts).zip(&measured) {
                let get = Box::new(self.get_of(put, &object.places, *strategy));
                inputs.push((*number, Input::Get { tag: *number, get }));
            }
            let ended = self.transfer(inputs)?;
            for ((put, object), (took, segment)) in puts.iter().zip(&mut measured).zip(ended) {
                check_got(put, segment)?;
                object.gets.push(took);
            }
        }
        puts.iter().for_each(|put| self.drop_version(put.version));
        Ok(measured)
    }

    /// An object, and the bricks that it goes to.
    fn draw_put(&mut self, number: u64) -> Result<Put, TimedError> {
        let all = self.timed.placed.order.len() as u32;
        let mut bricks: Vec<BrickId> = (1..=all).map(BrickId).collect();
        shuffle(&mut self.draw, &mut bricks);
        bricks.truncate(self.objects.bricks as usize);
        self.put_of(ObjectVersion(number), bricks)
    }

    /// An object comes to its bricks, unless it is laid there at once: where it is then.
    fn store(
        &mut self,
        number: u64,
        put: &Put,
        writing: Writing,
    ) -> Result<(Transferred, Vec<Place>), TimedError> {
        match (writing, &put.placing) {
            (Writing::Laid, Placing::Planned(plan)) => Ok((Transferred::default(), self.lay(put, plan))),
            _ => self.put(number, put.clone()),
        }
    }

    fn put(&mut self, tag: u64, put: Put) -> Result<(Transferred, Vec<Place>), TimedError> {
        let ended = self.transfer(vec![(tag, Input::Put { tag, put: Box::new(put) })])?;
        match ended.into_iter().next() {
            Some((measured, Segment::Put(Ok(places)))) => Ok((measured, places)),
            other => Err(TimedError::Failed(format!("a put ended with {other:?}"))),
        }
    }

    fn lay(&mut self, put: &Put, plan: &[BrickId]) -> Vec<Place> {
        let places: Vec<Place> = (0..).zip(plan.iter().copied()).collect();
        for ((index, brick), content) in places.iter().zip(symbols(put)) {
            let fragment = FragmentId { version: put.version, segment: put.segment, index: *index };
            let node = self.timed.world.nodes.slot(NodeId::Brick(*brick)).expect("a brick of the cluster");
            self.timed.world.nodes[node].lay(fragment.span_alone(1), &content);
        }
        places
    }

    /// Puts or gets that begin at the same time, by their tags: what each took, and how it ended. What was sent is shared out evenly.
    fn transfer(&mut self, inputs: Vec<(u64, Input)>) -> Result<Vec<(Transferred, Segment)>, TimedError> {
        self.timed.world.watch = Some(Box::default());
        let count = inputs.len() as u64;
        let ended = self.drive(inputs.into_iter().map(|input| VecDeque::from([input])).collect())?;
        self.be_quiet();
        let watch = self.timed.world.watch.as_ref().expect("transfers are watched");
        let sent_bytes = self.grain.on_disk(watch.content_bytes) / count;
        Ok(ended.into_iter().map(|(took, segment)| (Transferred { took, sent_bytes }, segment)).collect())
    }

    /// Puts and gets by their tags, those of a sequence one after another, and all sequences at the same time: what each took, and how it
    /// ended, sequence by sequence.
    fn drive(
        &mut self,
        mut sequences: Vec<VecDeque<(u64, Input)>>,
    ) -> Result<Vec<(Duration, Segment)>, TimedError> {
        let tags: Vec<u64> = sequences.iter().flatten().map(|(tag, _)| *tag).collect();
        let mut begun = BTreeMap::new();
        for at in 0..sequences.len() {
            self.begin_next(at, &mut sequences, &mut begun);
        }
        let mut ended = BTreeMap::new();
        while ended.len() < tags.len() {
            let Some(event) = self.timed.world.next_event() else {
                return Err(TimedError::Failed("nothing happens any more".to_owned()));
            };
            self.events += 1;
            self.timed.world.on_event(event);
            let watch = self.timed.world.watch.as_mut().expect("transfers are watched");
            for (tag, segment) in core::mem::take(&mut watch.ended) {
                let (sequence, begin) = begun.remove(&tag).expect("what ends has begun");
                ended.insert(tag, (self.timed.now().since(begin), segment));
                self.begin_next(sequence, &mut sequences, &mut begun);
            }
        }
        Ok(tags.iter().map(|tag| ended.remove(tag).expect("each has ended")).collect())
    }

    /// The next of a sequence begins now, if it has one more.
    fn begin_next(
        &mut self,
        sequence: usize,
        sequences: &mut [VecDeque<(u64, Input)>],
        begun: &mut BTreeMap<u64, (usize, Time)>,
    ) {
        let Some((tag, input)) = sequences[sequence].pop_front() else { return };
        begun.insert(tag, (sequence, self.timed.now()));
        self.timed.world.deliver(self.gateway, input);
    }

    fn be_quiet(&mut self) {
        let end = self.timed.now() + self.objects.pause;
        self.timed.world.run_until(end.0);
    }

    fn put_of(&mut self, version: ObjectVersion, bricks: Vec<BrickId>) -> Result<Put, TimedError> {
        let Objects { blocks, symbols, code, window, .. } = *self.objects;
        let layout = &self.objects.layout;
        let coding = match code {
            ObjectCode::Copies => Coding::Copies { blocks },
            ObjectCode::Precoded => Coding::precoded(blocks),
            ObjectCode::Lt(decoder) => {
                let seed = self.draw.bits() >> 1;
                // What is stored by pace need not be the first symbols: the put goes on until it is enough.
                let decodable = Lt::decodable(blocks, symbols, seed).map(|(_, seed)| seed);
                let seed = if *layout == ObjectLayout::ByPace { Some(seed) } else { decodable };
                let why = || format!("no graph gives {blocks} blocks back from {symbols} symbols");
                Coding::Lt { blocks, seed: seed.ok_or_else(|| TimedError::Failed(why()))?, decoder }
            }
        };
        let placing = match (layout, code) {
            (ObjectLayout::ByPace, _) => Placing::ByPace,
            (ObjectLayout::Even(_), ObjectCode::Lt(_) | ObjectCode::Precoded) => {
                Placing::Planned((0..symbols as usize).map(|symbol| bricks[symbol % bricks.len()]).collect())
            }
            (ObjectLayout::Even(mapping), ObjectCode::Copies) => {
                Placing::Planned(self.plan_of_copies(*mapping, &bricks))
            }
            (ObjectLayout::ByOtherPaces(paces), _) => {
                let mut paces = paces.to_vec();
                shuffle(&mut self.draw, &mut paces);
                Placing::Planned(plan_by_paces(&paces[..bricks.len()], symbols, &bricks))
            }
        };
        Ok(Put {
            version,
            segment: 0,
            coding,
            blocks: (0..blocks).map(|block| content(version, block)).collect(),
            symbols,
            least: symbols,
            bricks,
            placing,
            losses: 0,
            window,
            stream: self.objects.stream(version),
        })
    }

    fn plan_of_copies(&mut self, mapping: Mapping, bricks: &[BrickId]) -> Arc<[BrickId]> {
        let Objects { blocks, symbols, .. } = *self.objects;
        let copies = symbols.div_ceil(blocks) as usize;
        match mapping {
            Mapping::Rotated => {
                // Copies of a block are as far from each other as they can be.
                let shift = (bricks.len() / copies).max(1);
                let at = |symbol: u32| (symbol % blocks) as usize + (symbol / blocks) as usize * shift;
                (0..symbols).map(|symbol| bricks[at(symbol) % bricks.len()]).collect()
            }
            Mapping::Drawn => {
                let mut plan: Vec<BrickId> = Vec::new();
                for _ in 0..copies {
                    let copy = self.draw_copy(&plan, bricks);
                    plan.extend(copy);
                }
                plan.truncate(symbols as usize);
                plan.into()
            }
        }
    }

    /// Where one more copy of all blocks is to lie, evenly, and no block where another copy of it is in `plan`.
    fn draw_copy(&mut self, plan: &[BrickId], bricks: &[BrickId]) -> Vec<BrickId> {
        let blocks = self.objects.blocks as usize;
        let has =
            |block: usize, brick: BrickId| plan.iter().skip(block).step_by(blocks).any(|at| *at == brick);
        let mut copy: Vec<BrickId> = (0..blocks).map(|block| bricks[block % bricks.len()]).collect();
        shuffle(&mut self.draw, &mut copy);
        for block in 0..blocks {
            // A block that would lie where it lies already changes places with another one.
            while has(block, copy[block]) {
                let other = self.draw.index(blocks);
                if !has(block, copy[other]) && !has(other, copy[block]) {
                    copy.swap(block, other);
                }
            }
        }
        copy
    }

    fn get_of(&mut self, put: &Put, places: &[Place], strategy: AccessStrategy) -> Get {
        let mut places = places.to_vec();
        if self.objects.order == FragmentOrder::Drawn {
            shuffle(&mut self.draw, &mut places);
        }
        let Put { version, segment, coding, stream, .. } = *put;
        Get {
            version,
            segment,
            coding,
            symbol_blocks: 1,
            places,
            wanted: None,
            expected: None,
            strategy,
            stream,
        }
    }

    /// Bricks forget an object, so that memory is bounded.
    fn drop_version(&mut self, version: ObjectVersion) {
        let from = NodeId::Directory;
        for node in self.timed.world.nodes.matching(|node| node.brick().is_some()) {
            let packet = Packet::from(Message::DropVersions { versions: vec![version] });
            self.timed.world.deliver(node, Input::Packet { from, packet });
        }
    }
}

/// That a get brought what was put.
fn check_got(put: &Put, segment: Segment) -> Result<(), TimedError> {
    match segment {
        Segment::Got(Ok(blocks)) if blocks == put.blocks => Ok(()),
        Segment::Got(Ok(_)) => Err(TimedError::Failed("an object came back with other bytes".to_owned())),
        other => Err(TimedError::Failed(format!("a get ended with {other:?}"))),
    }
}

/// Bricks of such paces get symbols until there are so many: whoever is done with one gets the next.
fn plan_by_paces(paces: &[f64], symbols: u32, bricks: &[BrickId]) -> Arc<[BrickId]> {
    let mut given = vec![0_u32; bricks.len()];
    let mut next = || {
        let done_at = |brick: &usize| f64::from(given[*brick] + 1) / paces[*brick];
        let first = (0..bricks.len()).min_by(|one, other| done_at(one).total_cmp(&done_at(other)));
        let first = first.expect("there are bricks");
        given[first] += 1;
        bricks[first]
    };
    (0..symbols).map(|_| next()).collect()
}

/// All symbols of an object.
fn symbols(put: &Put) -> Vec<Payload> {
    let want: Vec<u32> = (0..put.symbols).collect();
    let schedule = match put.coding {
        Coding::Copies { blocks } => {
            return want.iter().map(|symbol| put.blocks[(symbol % blocks) as usize].clone()).collect();
        }
        Coding::Lt { blocks, seed, .. } => {
            let mut code = Lt::new(blocks, seed);
            code.extend_to(put.symbols);
            code.encode(&want)
        }
        Coding::Precoded(code) => {
            let have: Vec<u32> = (0..code.blocks()).collect();
            code.code().schedule(&have, &want).expect("a code has its source")
        }
    };
    let sums = Computation::Sums { schedule: Arc::new(schedule), blocks: put.blocks.clone() };
    sums.run().expect("sums of blocks of one length can be made")
}

/// What a block of an object holds: no other block holds it.
fn content(version: ObjectVersion, block: u32) -> Payload {
    let word = (version.0 << 32 | u64::from(block) | 1 << 63).to_le_bytes();
    Payload::from(word.repeat(BLOCK / word.len()))
}

fn shuffle<T>(draw: &mut Draw, items: &mut [T]) {
    for last in (1..items.len()).rev() {
        items.swap(last, draw.index(last + 1));
    }
}

impl Timed {
    fn now(&self) -> Time {
        Time(self.world.time.now_ns())
    }
}
