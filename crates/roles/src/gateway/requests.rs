//! Clients' requests: cut into parts that each lie on one group, and put together again.
//!
//! A request begins a bounded number of parts at a time. A write of less than a block is a *patch*: the block is
//! read, changed and written back on condition that it is still what was read; patches of one block by this gateway
//! take turns. A request that is not served within its volume's time is given up: its parts end, what they left in doubt is
//! settled by whoever meets it, and the answer is an error.

use super::allowance::{Allowance, Arrival, Needs};
use super::metadata::{Metadata, OpenVolume};
use super::{Awaited, GatewayEffect, send};
use base::{
    BLOCK, BLOCK_U64, ClientId, GatewayId, GroupId, HashMap, NodeId, Payload, RequestId, Stamp, StreamId,
    Time, VolumeId,
};
use core::time::Duration;
use reads::distribute::policies::longest_part;
use rules::layout::placement;
use rules::layout::{Part, Piece};
use rules::promises::Rules;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use volume::netraid::allocation::AllocationOperation;
use volume::netraid::atomicity::two_phase::round::Origin;
use volume::netraid::confirm::Confirmed;
use volume::netraid::context::links::Records;
use volume::netraid::coordinator::Coordinator;
use volume::netraid::link::{self, LinkOperation, PARTS_MAX};
use volume::netraid::members::is_mirrored;
use volume::netraid::operate::Operation;
use volume::netraid::order::gate::{Work as Ordered, ordered};
use volume::netraid::outcome::{Fetched, Outcome, Parent, Written};
use volume::netraid::path::gw::{Content, Path};
use volume::netraid::read::ReadOperation;
use wire::{Io, IoError, IoReply, IoTimeout, Message, Reads, Scope, Span};

/// Blocks cut into parts at a time.
const CHUNK_BLOCKS: u64 = 2048;
/// The most that is read with one request: what travels in one packet, and what NBD clients are told.
const READ_BYTES_MAX: u64 = wire::frame::PAYLOAD_BYTES_MAX as u64;
/// What of a volume is looked at for one question about allocation: blocks of which each second one holds data make an answer of two MiB.
const ALLOCATION_BYTES_MAX: u64 = 1 << 30;
/// Whatever is asked for takes as much as this.
const LEAST_BYTES: u64 = 4096;
/// The most records of a volume that a gateway keeps in a group.
const RECORDS_MAX: u32 = 32;
/// Parts under way above which no further chunk begins.
const PARTS_LOW: usize = 64;

/// How long the number of a write that was given up counts as unanswered: the bricks remember until then whether it took
/// effect, longer than any of its messages is still on its way to one.
pub(crate) const GIVEN_UP_KEPT: Duration = Duration::from_secs(60);

/// Where a request came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origins {
    Session { session: u64, tag: u64 },
    Client { node: NodeId, request: RequestId, floor: u64 },
}

/// A request as it comes.
pub(super) struct Asked {
    pub(super) origin: Origins,
    pub(super) volume: VolumeId,
    /// The stream to which it belongs; that of its volume where `None`.
    pub(super) stream: Option<StreamId>,
    pub(super) io: Io,
    /// The content of a write.
    pub(super) payload: Payload,
}

/// What a part does.
enum Work {
    Read { piece: Piece, content: Option<Payload> },
    Write,
    Patch { piece: Piece, group: GroupId, from: usize, new: Payload },
    Allocation { runs: Vec<(u32, bool)> },
}

impl Work {
    fn name(&self) -> &'static str {
        match self {
            Work::Read { .. } => "a read",
            Work::Write => "a write",
            Work::Patch { .. } => "a patch",
            Work::Allocation { .. } => "a question about allocation",
        }
    }
}

struct Request {
    origin: Origins,
    id: RequestId,
    floor: u64,
    volume: VolumeId,
    /// The stream to which it belongs; that of its volume where `None`.
    stream: Option<StreamId>,
    io: Io,
    payload: Payload,
    /// The bytes concerned.
    start: u64,
    end: u64,
    /// The next block to cut.
    next: u64,
    parts: BTreeMap<u64, Work>,
    under_way: usize,
    error: Option<IoError>,
    begun: Time,
    /// When it is given up.
    due: Option<Time>,
    /// Whether nobody waits for its answer any more.
    is_unwanted: bool,
}

pub(super) struct Requests {
    id: ClientId,
    serial: u64,
    sequence: u64,
    outstanding: BTreeSet<u64>,
    table: HashMap<u64, Request>,
    remote: HashMap<RequestId, u64>,
    closed: BTreeSet<u64>,
    patches: BTreeMap<(VolumeId, u64), VecDeque<(u64, u64)>>,
    /// When requests are given up.
    due: BTreeSet<(Time, u64)>,
    /// Sequences of own clients' requests that were given up, and until when they count as unanswered.
    given_up: BTreeSet<(Time, u64)>,
    given_up_remote: GivenUp,
    allowance: Allowance,
}

/// Other clients' requests that were given up, and until when a copy of them is not begun again: its client knows by then
/// that it failed, and may have written something else.
#[derive(Debug, Default)]
struct GivenUp {
    until: BTreeMap<RequestId, Time>,
    /// The same by time.
    in_order: BTreeSet<(Time, RequestId)>,
}

impl GivenUp {
    /// Beyond so many those that are to be forgotten first are. Clients set the pace at which requests come.
    const MAX: usize = 4 * Requests::MAX;

    fn insert(&mut self, request: RequestId, until: Time) {
        self.forget(request);
        self.until.insert(request, until);
        self.in_order.insert((until, request));
        if self.in_order.len() > GivenUp::MAX
            && let Some(&(_, first)) = self.in_order.first()
        {
            self.forget(first);
        }
    }

    fn forget(&mut self, request: RequestId) {
        if let Some(until) = self.until.remove(&request) {
            self.in_order.remove(&(until, request));
        }
    }

    fn has(&self, request: &RequestId) -> bool {
        self.until.contains_key(request)
    }

    fn expire(&mut self, now: Time) {
        while let Some(&(until, request)) = self.in_order.first()
            && until <= now
        {
            self.forget(request);
        }
    }
}

impl Requests {
    /// The most requests under way. Front ends keep far below it; a client beyond it is not answered and asks again.
    pub(super) const MAX: usize = 1 << 16;

    pub(super) fn new(id: GatewayId) -> Requests {
        Requests {
            // A gateway's own clients share its id; the top bit keeps it apart from other clients' ids.
            id: ClientId(id.0 | 1 << 63),
            serial: 0,
            sequence: 0,
            outstanding: BTreeSet::new(),
            table: HashMap::default(),
            remote: HashMap::default(),
            closed: BTreeSet::new(),
            patches: BTreeMap::new(),
            due: BTreeSet::new(),
            given_up: BTreeSet::new(),
            given_up_remote: GivenUp::default(),
            allowance: Allowance::default(),
        }
    }

    pub(super) fn check(&self) {
        assert!(self.len() <= Requests::MAX, "requests under way are bounded");
        self.allowance.check();
    }

    /// When the next request is given up.
    pub(super) fn deadline(&self) -> Option<(Time, &'static str)> {
        self.due.first().map(|(due, _)| (*due, "a request is given up"))
    }

    /// Marks the requests whose time is over; says whether there are any. Their parts are to be ended.
    pub(super) fn expire(&mut self, now: Time) -> bool {
        while let Some(&(until, sequence)) = self.given_up.first()
            && until <= now
        {
            self.given_up.pop_first();
            self.outstanding.remove(&sequence);
        }
        self.given_up_remote.expire(now);
        let mut any = false;
        while let Some(&(due, serial)) = self.due.first()
            && due <= now
        {
            self.due.pop_first();
            let request = self.table.get_mut(&serial).expect("what is due is under way");
            request.error = Some(IoError::TimedOut);
            any = true;
        }
        any
    }

    /// A volume's time for requests may have changed: it holds for those under way as well, from when they began. So of two
    /// that wait for each other the earlier one is never given up later.
    pub(super) fn keep_time(&mut self, metadata: &Metadata) {
        for (&serial, request) in self.table.iter_mut().filter(|(_, request)| !request.is_given_up()) {
            let Some(open) = metadata.volumes.get(&request.volume) else { continue };
            let now_due = due(request.begun, open);
            let before = core::mem::replace(&mut request.due, now_due);
            if before != now_due {
                before.map(|before| self.due.remove(&(before, serial)));
                self.due.extend(now_due.map(|due| (due, serial)));
            }
        }
    }

    /// Whether a request's time is over.
    pub(super) fn is_given_up(&self, serial: u64) -> bool {
        self.table.get(&serial).is_some_and(Request::is_given_up)
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether a request came from a client that may have gone to another gateway with it.
    pub(super) fn is_remote(&self, serial: u64) -> bool {
        self.table.get(&serial).is_some_and(|request| matches!(request.origin, Origins::Client { .. }))
    }

    /// The number of a request that somebody waits for, and what it is. For people.
    pub(super) fn describe(&self, awaited: Awaited, now: Time) -> Option<(u64, Vec<String>)> {
        let is_awaited = |request: &&u64| match self.table[*request].origin {
            Origins::Session { session, tag } => awaited == Awaited::Session { session, tag },
            Origins::Client { request, .. } => awaited == Awaited::Client(request),
        };
        let serial = *self.table.keys().find(is_awaited)?;
        let request = &self.table[&serial];
        let since = now.since(request.begun);
        let mut lines =
            vec![format!("has it since {since:.1?}; {} of its parts are not done", request.under_way)];
        let behind = |(part, _): &(&u64, &Work)| {
            let turn = self.patches.get(&(request.volume, **part));
            turn.is_some_and(|turn| turn.front() != Some(&(serial, **part)))
        };
        let patches =
            request.parts.iter().filter(|(_, work)| matches!(work, Work::Patch { .. })).filter(behind);
        lines.extend(patches.map(|(block, _)| format!("  block {block} waits behind another change of it")));
        Some((serial, lines))
    }

    /// The session's answers are of no interest any more.
    pub(super) fn close(&mut self, session: u64) {
        let waits = |request: &Request| matches!(request.origin, Origins::Session { session: of, .. } if of == session);
        if self.table.values().any(waits) {
            self.closed.insert(session);
        }
    }

    pub(super) fn begin(
        &mut self,
        coordinator: &mut Coordinator,
        metadata: &Metadata,
        Asked { origin, volume, stream, io, payload }: Asked,
        fx: &mut Vec<GatewayEffect>,
    ) {
        if let Origins::Client { request, .. } = origin
            && (self.remote.contains_key(&request) || self.table.len() >= Requests::MAX)
        {
            return;
        }
        if let Origins::Client { request, .. } = origin
            && self.given_up_remote.has(&request)
        {
            return answer(fx, origin, Err(IoError::TimedOut), Payload::new());
        }
        let Some(open) = metadata.volumes.get(&volume) else {
            return answer(fx, origin, Err(IoError::NoVolume), Payload::new());
        };
        let is_write = matches!(io, Io::Write { .. } | Io::Zero { .. });
        if is_write && (open.info.read_only || open.info.is_snapshot) {
            return answer(fx, origin, Err(IoError::ReadOnly), Payload::new());
        }
        let Some((start, end)) = bytes_of(&io, &payload, open) else {
            return answer(fx, origin, Err(IoError::OutOfRange), Payload::new());
        };
        if let Some(stream) = stream {
            coordinator.serve_stream(open.info.family, stream);
        }
        let (id, floor) = self.identify(origin);
        self.serial += 1;
        let next = start / BLOCK_U64;
        let parts = BTreeMap::new();
        let begun = coordinator.now();
        let due = due(begun, open);
        let request = Request {
            origin,
            id,
            floor,
            volume,
            stream,
            io,
            payload,
            start,
            end,
            next,
            parts,
            under_way: 0,
            error: None,
            begun,
            due,
            is_unwanted: false,
        };
        let serial = self.serial;
        let arrival = match origin {
            Origins::Session { .. } => Arrival::Begins,
            Origins::Client { node, .. } => self.allowance.arrive(node, request.needs(serial)),
        };
        if arrival == Arrival::Refused {
            return;
        }
        if let Origins::Client { request, .. } = origin {
            self.remote.insert(request, serial);
        }
        self.table.insert(serial, request);
        self.due.extend(due.map(|due| (due, serial)));
        if arrival == Arrival::Begins {
            self.cut(coordinator, open, serial);
        }
    }

    /// Begins what has waited for its client's turn.
    fn begin_next(
        &mut self,
        coordinator: &mut Coordinator,
        metadata: &Metadata,
        fx: &mut Vec<GatewayEffect>,
    ) {
        while let Some(serial) = self.allowance.next() {
            let Some(request) = self.table.get_mut(&serial) else { continue };
            match metadata.volumes.get(&request.volume) {
                Some(open) if request.end <= open.info.size_bytes => self.cut(coordinator, open, serial),
                _ => {
                    request.error = Some(IoError::NoVolume);
                    self.end(serial, fx);
                }
            }
        }
    }

    /// Ends what has waited for its turn until it was given up.
    pub(super) fn end_waiting(&mut self, fx: &mut Vec<GatewayEffect>) {
        let is_over = |request: &Request| request.is_given_up() && !request.has_begun();
        let over: Vec<u64> =
            self.table.iter().filter(|(_, request)| is_over(request)).map(|(serial, _)| *serial).collect();
        over.into_iter().for_each(|serial| self.end(serial, fx));
    }

    /// What clients have asked for and has not begun is let go of, without a word: whoever still wants it asks again.
    pub(super) fn forget_waiting(&mut self, fx: &mut Vec<GatewayEffect>) {
        let waits =
            |request: &Request| matches!(request.origin, Origins::Client { .. }) && !request.has_begun();
        let mut waiting = Vec::new();
        for (serial, request) in self.table.iter_mut().filter(|(_, request)| waits(request)) {
            request.is_unwanted = true;
            waiting.push(*serial);
        }
        waiting.into_iter().for_each(|serial| self.end(serial, fx));
    }

    /// A client is gone: what it asked for and did not get need not be done for it. What it writes goes on, as somebody may have seen some of it.
    /// Says whether parts are to be ended.
    pub(super) fn leave(&mut self, client: NodeId, fx: &mut Vec<GatewayEffect>) -> bool {
        let is_its =
            |request: &Request| matches!(request.origin, Origins::Client { node, .. } if node == client);
        let is_write = |request: &Request| matches!(request.io, Io::Write { .. } | Io::Zero { .. });
        let its = self.table.iter_mut().filter(|(_, request)| is_its(request));
        let mut waiting = Vec::new();
        let mut any = false;
        for (serial, request) in its.filter(|(_, request)| !is_write(request) || !request.has_begun()) {
            request.is_unwanted = true;
            request.error = Some(IoError::NoVolume);
            match request.has_begun() {
                true => any = true,
                false => waiting.push(*serial),
            }
        }
        waiting.into_iter().for_each(|serial| self.end(serial, fx));
        any
    }

    /// Whether nobody waits for a request any more, and it changes nothing.
    pub(super) fn is_unwanted(&self, serial: u64) -> bool {
        self.table.get(&serial).is_some_and(|request| request.is_unwanted)
    }

    /// The identifier under which bricks remember the request, and below which they may forget.
    fn identify(&mut self, origin: Origins) -> (RequestId, u64) {
        match origin {
            Origins::Client { request, floor, .. } => (request, floor),
            Origins::Session { .. } => {
                self.sequence += 1;
                self.outstanding.insert(self.sequence);
                let floor = self.outstanding.first().copied().unwrap_or(self.sequence);
                (RequestId { client: self.id, sequence: self.sequence }, floor)
            }
        }
    }

    /// Begins further parts, as long as few are under way.
    fn cut(&mut self, coordinator: &mut Coordinator, open: &OpenVolume, serial: u64) {
        let mut begun = Vec::new();
        let Some(request) = self.table.get_mut(&serial) else { return };
        let last = request.end.div_ceil(BLOCK_U64);
        while request.next < last && request.under_way < PARTS_LOW && request.error.is_none() {
            let chunk_end = (request.next + CHUNK_BLOCKS).min(last);
            let range = request.next..chunk_end;
            request.next = chunk_end;
            let before = begun.len();
            let cut = Cut { open, rules: coordinator.rules(), writer: coordinator.writer() };
            request.cut_chunk(&cut, range, &mut begun);
            request.under_way += begun.len() - before;
        }
        let mut together = Vec::with_capacity(begun.len());
        for (part, work, operation) in begun {
            let patched = match &work {
                Work::Patch { .. } => Some((request.volume, part)),
                _ => None,
            };
            request.parts.insert(part, work);
            if let Some(place) = patched {
                let turn = self.patches.entry(place).or_default();
                turn.push_back((serial, part));
                if turn.len() > 1 {
                    continue;
                }
            }
            together.push((Parent::Part(serial, part), operation.for_stream(request.stream)));
        }
        coordinator.begin_parts(together);
    }

    pub(super) fn on_finished(
        &mut self,
        coordinator: &mut Coordinator,
        metadata: &Metadata,
        parent: Parent,
        outcome: Outcome,
        fx: &mut Vec<GatewayEffect>,
    ) {
        let Parent::Part(serial, part) = parent else { return };
        let Some(request) = self.table.get_mut(&serial) else { return };
        let open = metadata.volumes.get(&request.volume);
        let (stream, further) = (request.stream, request.on_part(open, part, outcome));
        if !further.is_empty() {
            for (part, operation) in further {
                coordinator.begin(Parent::Part(serial, part), operation.for_stream(stream));
            }
            return;
        }
        request.under_way -= 1;
        let place = (request.volume, part);
        self.next_patch(coordinator, place, serial);
        let Some(request) = self.table.get(&serial) else { return };
        let cut_all = request.next >= request.end.div_ceil(BLOCK_U64) || request.error.is_some();
        match open {
            Some(open) if !cut_all => self.cut(coordinator, open, serial),
            _ if request.under_way == 0 => {
                self.end(serial, fx);
                self.begin_next(coordinator, metadata, fx);
            }
            _ => {}
        }
    }

    /// The patch of a block ended: the next one of it begins.
    fn next_patch(&mut self, coordinator: &mut Coordinator, place: (VolumeId, u64), serial: u64) {
        let Some(turn) = self.patches.get_mut(&place) else { return };
        if turn.front() != Some(&(serial, place.1)) {
            return;
        }
        turn.pop_front();
        let Some(&(next, part)) = turn.front() else {
            self.patches.remove(&place);
            return;
        };
        let Some(request) = self.table.get(&next) else { return };
        if let Some(Work::Patch { piece, group, .. }) = request.parts.get(&part) {
            let operation = patch_read(place.0, *group, piece).for_stream(request.stream);
            coordinator.begin(Parent::Part(next, part), operation);
        }
    }

    fn end(&mut self, serial: u64, fx: &mut Vec<GatewayEffect>) {
        let Some(request) = self.table.remove(&serial) else { return };
        if let Some(due) = request.due {
            self.due.remove(&(due, serial));
        }
        match request.origin {
            Origins::Client { request: id, node, .. } => {
                self.remote.remove(&id);
                self.allowance.end(node, request.needs(serial));
                if request.is_unwanted {
                    return;
                }
                if let Some(due) = request.due.filter(|_| request.is_given_up()) {
                    self.given_up_remote.insert(id, due + GIVEN_UP_KEPT);
                }
            }
            Origins::Session { session, .. } => {
                match request.due.filter(|_| request.is_given_up()) {
                    Some(due) => drop(self.given_up.insert((due + GIVEN_UP_KEPT, request.id.sequence))),
                    None => drop(self.outstanding.remove(&request.id.sequence)),
                }
                if self.closed.contains(&session) {
                    let waits = |r: &Request| matches!(r.origin, Origins::Session { session: of, .. } if of == session);
                    if !self.table.values().any(waits) {
                        self.closed.remove(&session);
                    }
                    return;
                }
            }
        }
        let origin = request.origin;
        match request.into_reply() {
            Ok((reply, payload)) => answer(fx, origin, Ok(reply), payload),
            Err(error) => answer(fx, origin, Err(error), Payload::new()),
        }
    }
}

/// The bytes that are concerned, from where to before where, if there can be such a request to the volume.
fn bytes_of(io: &Io, payload: &Payload, open: &OpenVolume) -> Option<(u64, u64)> {
    let (start, length) = match io {
        Io::Read { offset, length } if u64::from(*length) <= READ_BYTES_MAX => (*offset, u64::from(*length)),
        Io::Read { .. } => return None,
        // Whoever asks is told how far the answer goes.
        Io::Allocation { offset, length } => (*offset, u64::from(*length)),
        Io::Write { offset } => (*offset, payload.len() as u64),
        Io::Zero { offset, length } => (*offset, *length),
    };
    let end = start.checked_add(length).filter(|end| length > 0 && *end <= open.info.size_bytes)?;
    let is_allocation = matches!(io, Io::Allocation { .. });
    Some((start, if is_allocation { end.min(start.saturating_add(ALLOCATION_BYTES_MAX)) } else { end }))
}

/// When a request to a volume is given up that began then.
fn due(begun: Time, open: &OpenVolume) -> Option<Time> {
    match open.info.io_timeout {
        IoTimeout::Never => None,
        IoTimeout::After(time) => Some(begun + time),
    }
}

type Begun = Vec<(u64, Work, Operation)>;

/// What a request is cut by.
struct Cut<'a> {
    open: &'a OpenVolume,
    rules: &'a dyn Rules,
    /// The number under which the gateway writes.
    writer: Option<u16>,
}

/// A part of a write, and where it begins in the volume.
struct WritePart {
    first: u64,
    path: Path,
    origin: Origin,
}

impl Request {
    fn needs(&self, serial: u64) -> Needs {
        let bytes = match self.io {
            Io::Read { .. } | Io::Write { .. } => self.end - self.start,
            Io::Zero { .. } | Io::Allocation { .. } => 0,
        };
        Needs { serial, bytes: bytes.max(LEAST_BYTES), content_bytes: self.payload.len() as u64 }
    }

    /// Whether it does not wait for its client's turn any more.
    fn has_begun(&self) -> bool {
        self.next > self.start / BLOCK_U64
    }

    /// Parts of the blocks in `range`, with the operations that do them.
    fn cut_chunk(&self, cut: &Cut<'_>, range: core::ops::Range<u64>, begun: &mut Begun) {
        let open = cut.open;
        let count = range.end - range.start;
        match &self.io {
            Io::Read { .. } => {
                let copies = open.geometry.layout().copies();
                let longest = longest_part(open.info.read_policy, count, copies);
                begun.extend(open.geometry.pieces_within(longest, range.start, count).map(|piece| {
                    let operation = read(open, self.volume, &piece);
                    (piece.volume_block, Work::Read { piece, content: None }, operation)
                }));
            }
            Io::Allocation { .. } => begun.extend(open.geometry.pieces(range.start, count).map(|piece| {
                let operation = AllocationOperation::new(self.volume, group_of(open, piece.extent), piece);
                let operation = match open.info.reads {
                    Reads::Leased => Operation::new(operation),
                    Reads::Confirmed => Operation::new(Confirmed::new(operation)),
                };
                (piece.volume_block, Work::Allocation { runs: Vec::new() }, operation)
            })),
            Io::Write { .. } | Io::Zero { .. } => self.cut_write(cut, range, begun),
        }
    }

    fn cut_write(&self, cut: &Cut<'_>, range: core::ops::Range<u64>, begun: &mut Begun) {
        let open = cut.open;
        let is_whole = |block: u64| block * BLOCK_U64 >= self.start && (block + 1) * BLOCK_U64 <= self.end;
        let mut whole = range.clone();
        if !is_whole(range.start) {
            begun.extend(self.patch(open, range.start));
            whole.start += 1;
        }
        if whole.end > whole.start && !is_whole(whole.end - 1) {
            begun.extend(self.patch(open, whole.end - 1));
            whole.end -= 1;
        }
        let mut parts = Vec::new();
        for part in open.geometry.split_rows(whole.start, whole.end - whole.start) {
            match part {
                Part::Piece(piece) if !cut.rules.keeps_units_whole() => {
                    parts.extend(singles(piece).map(|single| self.write_part(open, Part::Piece(single))));
                }
                part => parts.push(self.write_part(open, part)),
            }
        }
        let is_all = whole.start * BLOCK_U64 == self.start && whole.end * BLOCK_U64 == self.end;
        match cut.writer.filter(|_| is_all && is_linked(open, parts.len())) {
            Some(writer) => begun.extend(self.linked(open, writer, parts)),
            None => begun.extend(parts.into_iter().map(|part| {
                let work = Ordered::Write { path: part.path, origin: part.origin };
                (part.first, Work::Write, ordered(open.info.protocol.order, work))
            })),
        }
    }

    fn write_part(&self, open: &OpenVolume, part: Part) -> WritePart {
        let volume = self.volume;
        let (extent, lba, count, first, scope, content) = match part {
            Part::Rows { extent, lba, count } => {
                let starts =
                    (0..open.geometry.layout().data()).map(|index| open.geometry.volume_block(lba, index));
                let rows: Option<Vec<Payload>> = starts.map(|block| self.content(block, count)).collect();
                let content = rows.map_or(Content::Zero, Content::Rows);
                (extent, lba, count, open.geometry.volume_block(lba, 0), Scope::Row, content)
            }
            Part::Piece(piece) => {
                let content =
                    self.content(piece.volume_block, piece.count).map_or(Content::Zero, Content::Blocks);
                (piece.extent, piece.lba, piece.count, piece.volume_block, scope_of(open, &piece), content)
            }
        };
        let span = Span { volume, lba, count };
        let path =
            Path::new(group_of(open, extent), span, scope, content).by(open.info.protocol.small_writes);
        WritePart { first, path, origin: self.origin_of(first) }
    }

    /// The parts as one operation, which decides them together.
    fn linked(
        &self,
        open: &OpenVolume,
        writer: u16,
        parts: Vec<WritePart>,
    ) -> Option<(u64, Work, Operation)> {
        let first = parts.iter().map(|part| part.first).min()?;
        let home = parts.iter().map(|part| part.path.group()).min()?;
        let records = records(open, self.volume, (home, writer));
        let parts = parts.into_iter().map(|part| (part.path, part.origin)).collect();
        Some((first, Work::Write, Operation::new(LinkOperation::new(parts, records))))
    }

    /// What is written to whole blocks; `None` is zeros.
    fn content(&self, block: u64, count: u32) -> Option<Payload> {
        let at = (block * BLOCK_U64 - self.start) as usize;
        matches!(self.io, Io::Write { .. }).then(|| self.payload.slice(at, count as usize * BLOCK))
    }

    fn patch(&self, open: &OpenVolume, block: u64) -> Option<(u64, Work, Operation)> {
        let piece = open.geometry.pieces(block, 1).next()?;
        let group = group_of(open, piece.extent);
        let from = self.start.max(block * BLOCK_U64);
        let to = self.end.min((block + 1) * BLOCK_U64);
        let length = (to - from) as usize;
        let new = match &self.io {
            Io::Write { .. } => self.payload.slice((from - self.start) as usize, length),
            _ => Payload::zeros(length),
        };
        let work = Work::Patch { piece, group, from: (from - block * BLOCK_U64) as usize, new };
        Some((block, work, patch_read(self.volume, group, &piece)))
    }

    fn is_given_up(&self) -> bool {
        self.error == Some(IoError::TimedOut)
    }

    fn origin_of(&self, part: u64) -> Origin {
        Origin { request: self.id, floor: self.floor, part }
    }

    /// What follows on the end of a part's operation; nothing when the part is done.
    fn on_part(&mut self, open: Option<&OpenVolume>, part: u64, outcome: Outcome) -> Vec<(u64, Operation)> {
        if self.is_given_up() {
            self.parts.remove(&part);
            return Vec::new();
        }
        let Some(work) = self.parts.get_mut(&part) else { return Vec::new() };
        match (work, outcome) {
            (Work::Read { content, .. }, Outcome::Read(Ok(fetched))) => *content = Some(fetched.content),
            (Work::Read { piece, .. }, Outcome::Read(Err(IoError::Unreadable))) if piece.count > 1 => {
                let piece = *piece;
                return open.map_or_else(Vec::new, |open| self.split_read(open, piece));
            }
            (Work::Allocation { runs }, Outcome::Allocation(found)) => *runs = found,
            (Work::Patch { .. }, Outcome::Read(Ok(Fetched { content, stamps }))) => {
                return open.map_or_else(Vec::new, |open| self.patch_write(open, part, &content, stamps));
            }
            (Work::Patch { piece, group, .. }, Outcome::Written(Ok(Written::Changed))) => {
                return vec![(part, patch_read(self.volume, *group, piece))];
            }
            (Work::Write | Work::Patch { .. }, Outcome::Written(Ok(Written::Done))) => {
                self.parts.remove(&part);
            }
            (_, Outcome::Gone(error) | Outcome::Read(Err(error)) | Outcome::Written(Err(error))) => {
                self.error = Some(error);
            }
            (work, outcome) => unreachable!("{} ended with {outcome:?}", work.name()),
        }
        Vec::new()
    }

    /// Some blocks of a piece are bad at one member and others at another: each block is read on its own.
    fn split_read(&mut self, open: &OpenVolume, piece: Piece) -> Vec<(u64, Operation)> {
        self.parts.remove(&piece.volume_block);
        self.under_way += piece.count as usize - 1;
        let pieces = open.geometry.pieces(piece.volume_block, u64::from(piece.count));
        let singles = pieces.flat_map(singles);
        let mut operations = Vec::new();
        for single in singles {
            operations.push((single.volume_block, read(open, self.volume, &single)));
            self.parts.insert(single.volume_block, Work::Read { piece: single, content: None });
        }
        operations
    }

    fn patch_write(
        &mut self,
        open: &OpenVolume,
        part: u64,
        old: &Payload,
        stamps: Vec<Stamp>,
    ) -> Vec<(u64, Operation)> {
        let Some(Work::Patch { piece, group, from, new }) = self.parts.get(&part) else { return Vec::new() };
        let mut block = old.to_vec();
        new.copy_to(&mut block[*from..*from + new.len()]);
        let span = Span { volume: self.volume, lba: piece.lba, count: 1 };
        let base = stamps.first().copied().unwrap_or_default();
        let content = Content::Blocks(Payload::from(block));
        let path = Path::new(*group, span, scope_of(open, piece), content)
            .only_over(base)
            .by(open.info.protocol.small_writes);
        let work = Ordered::Write { path, origin: self.origin_of(part) };
        vec![(part, ordered(open.info.protocol.order, work))]
    }

    fn into_reply(self) -> Result<(IoReply, Payload), IoError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        match self.io {
            Io::Write { .. } | Io::Zero { .. } => Ok((IoReply::Done, Payload::new())),
            Io::Read { .. } => {
                let mut content = Payload::new();
                for work in self.parts.values() {
                    let Work::Read { content: Some(part), .. } = work else { return Err(IoError::Failed) };
                    content.append(part);
                }
                let skip = (self.start % BLOCK_U64) as usize;
                Ok((IoReply::Done, content.slice(skip, (self.end - self.start) as usize)))
            }
            Io::Allocation { .. } => Ok((IoReply::Allocation { runs: self.allocation() }, Payload::new())),
        }
    }

    /// Runs of bytes from the start on, neighbours of one kind joined.
    fn allocation(&self) -> Vec<(u64, bool)> {
        let mut runs: Vec<(u64, bool)> = Vec::new();
        let mut at = self.start - self.start % BLOCK_U64;
        for work in self.parts.values() {
            let Work::Allocation { runs: found } = work else { continue };
            for (blocks, data) in found {
                let end = at + u64::from(*blocks) * BLOCK_U64;
                let bytes = end.min(self.end).saturating_sub(at.max(self.start));
                at = end;
                match runs.last_mut() {
                    Some((last, kind)) if kind == data => *last += bytes,
                    _ => runs.push((bytes, *data)),
                }
            }
        }
        runs.retain(|(bytes, _)| *bytes > 0);
        runs
    }
}

fn group_of(open: &OpenVolume, extent: u64) -> GroupId {
    // Snapshots and clones share the groups of their family, and a block lies where its parent's does.
    let rule = placement::rule(open.info.placement);
    open.groups[rule.group_of(open.info.family, extent, open.groups.len())]
}

/// Whether a write of so many parts is decided as a whole.
fn is_linked(open: &OpenVolume, parts: usize) -> bool {
    open.info.protocol.atomicity.links() && (2..=PARTS_MAX).contains(&parts)
}

/// Where a gateway that writes under `writer` puts the records of a volume that a group decides: in the first extent of that group among
/// those that only this writer uses. They are 131,072 where an extent has 4 MiB a member, and a family has 1,024 groups at the most.
fn records(open: &OpenVolume, volume: VolumeId, (group, writer): (GroupId, u16)) -> Records {
    let column = open.geometry.column_blocks();
    let first = |writer: u64| open.geometry.extent_of_lba(link::RECORDS + writer * link::WRITER);
    let mut of_writer = first(u64::from(writer))..first(u64::from(writer) + 1);
    let is_there = |extent: &u64| group_of(open, *extent) == group;
    let extent = of_writer.find(is_there).expect("a writer has many more extents than there are groups");
    Records { volume, group, first: open.geometry.lbas(extent).start, count: column.min(RECORDS_MAX) }
}

fn scope_of(open: &OpenVolume, piece: &Piece) -> Scope {
    if is_mirrored(&open.geometry) { Scope::Row } else { Scope::Unit { index: piece.data_index } }
}

/// The blocks of a piece, each by itself.
fn singles(piece: Piece) -> impl Iterator<Item = Piece> {
    (0..piece.count).map(move |i| Piece {
        volume_block: piece.volume_block + u64::from(i),
        lba: piece.lba + u64::from(i),
        count: 1,
        ..piece
    })
}

fn read(open: &OpenVolume, volume: VolumeId, piece: &Piece) -> Operation {
    let span = Span { volume, lba: piece.lba, count: piece.count };
    let group = group_of(open, piece.extent);
    let (data_index, reads) = (piece.data_index, open.info.reads);
    ordered(open.info.protocol.order, Ordered::Read { group, span, data_index, reads })
}

/// What a patch builds on. It passes no gate: the patch is written on condition that it is still there.
fn patch_read(volume: VolumeId, group: GroupId, piece: &Piece) -> Operation {
    let span = Span { volume, lba: piece.lba, count: piece.count };
    Operation::new(ReadOperation::new(group, span, piece.data_index, true))
}

fn answer(fx: &mut Vec<GatewayEffect>, origin: Origins, result: Result<IoReply, IoError>, payload: Payload) {
    match origin {
        Origins::Session { session, tag } => fx.push(GatewayEffect::Reply { session, tag, result, payload }),
        Origins::Client { node, request, .. } if payload.is_empty() => {
            send(fx, node, Message::Reply { sequence: request.sequence, result });
        }
        Origins::Client { node, request, .. } => {
            let message = Message::Reply { sequence: request.sequence, result };
            fx.push(GatewayEffect::Send { to: node, packet: wire::Packet { message, payload } });
        }
    }
}
