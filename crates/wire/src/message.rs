//! Who says what to whom.
//!
//! Any message may be lost, repeated or overtaken; whoever asks asks again, and every answer names the question by
//! its `operation` number. Content travels beside the message, in the [`Packet`].

use crate::admin::{AdminError, AdminReply, AdminRequest};
use crate::directory::{
    BrickStatus, Family, GroupState, Observed, OpenCount, Orders, RecountFrom, VolumeInfo, VolumeMap,
};
use crate::protocol::{LINKS, VERSIONS};
use crate::{
    BrickPlace, Change, Completion, Decision, DecodeError, Fate, FragmentId, FragmentOutcome, GroupView,
    IndexError, IndexReply, IndexRequest, Io, IoError, IoReply, Order, Reader, Service, Slots, Span,
    StreamReport, Version, Wait, Wire, WriteId, Writer, wire_enum, wire_struct,
};
use base::{
    BrickId, ClusterTime, GatewayId, GroupId, Loan, ObjectVersion, Payload, RequestId, Stamp, Time,
    ViewNumber, VolumeId,
};

/// A message and the bytes that go with it (none, for most).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    pub message: Message,
    /// Content of blocks.
    pub payload: Payload,
}

impl From<Message> for Packet {
    fn from(message: Message) -> Packet {
        Packet { message, payload: Payload::new() }
    }
}

/// All that nodes say to each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    // ---- gateway to brick, and back ----
    /// Phase one of a write: put it on stable storage and answer [`Message::Prepared`]. Payload: the content
    /// ([`Change::Data`], [`Change::Parity`]), the delta ([`Change::Xor`]) or none ([`Change::Zero`]).
    Prepare {
        operation: u64,
        /// The view under which it is made.
        view: ViewNumber,
        write: WriteId,
        /// What it does here.
        change: Change,
        /// Only if the (single) block's stamp is this: a write that was computed from what was read.
        base: Option<Stamp>,
        /// Whether the answer shall carry old xor new content, and the old stamps.
        want_delta: bool,
        /// The client's request that it is part of.
        request: RequestId,
        /// All requests of that client below this sequence number are answered and never come again.
        floor: u64,
        /// The volume block at which this part of the request begins: tells parts of one request apart.
        part: u64,
        service: Service,
        /// What it does where it meets another write under way.
        order: Order,
    },
    /// Payload: the delta when it was wanted.
    Prepared {
        operation: u64,
        /// What became of it.
        outcome: PrepareOutcome,
        wait: Wait,
    },
    /// Phase two: these writes are decided (`commits`), or will never be (`aborts`). Not answered.
    Decide {
        commits: Vec<Decision>,
        aborts: Vec<Decision>,
    },
    /// Asks for blocks; with neither stamps nor content, just whether the view is in force with the member, which one
    /// that joins may say as well.
    Read {
        operation: u64,
        group: GroupId,
        /// The view under which it is asked.
        view: ViewNumber,
        /// The blocks.
        span: Span,
        /// Stamps a block: 1 for data, the number of data units for parity.
        width: u8,
        /// Whether stamps are wanted.
        stamps: bool,
        /// Whether content is wanted (otherwise stamps alone, from memory where possible).
        content: bool,
        /// Others that were asked the same: one of them claims it, the others stay silent.
        contest: Option<Contest>,
        service: Service,
        /// What it sees where writes are not decided.
        sight: Sight,
    },
    /// Payload: the content, zeros for blocks that are unreadable.
    ReadDone {
        operation: u64,
        /// What became of it.
        outcome: ReadOutcome,
        wait: Wait,
    },
    /// A writer wants the blocks for itself: at the first current member of the group, which grants them in the order in which they
    /// were asked for. Asked again, it keeps its turn. Answered by [`Message::Locked`] once they are granted, for two seconds at
    /// the most (`volume::netraid::order::locks`). It guards no data: who writes without it is put in order by stamps.
    Lock {
        operation: u64,
        group: GroupId,
        /// The view under which it is asked; when it ends so does the lock.
        view: ViewNumber,
        /// The blocks, of a volume.
        span: Span,
        /// The writer's own name of the lock.
        holder: u64,
    },
    Locked {
        operation: u64,
        outcome: LockOutcome,
    },
    /// These locks of the sender are not needed any more, at most [`OPERATIONS_MAX`]. Not answered.
    Unlock {
        holders: Vec<u64>,
    },
    /// What is the fate of this write? A member that does not have it refuses it from now on, durably, unless the question
    /// only looks.
    Query {
        operation: u64,
        /// The view under which it is asked.
        view: ViewNumber,
        write: WriteId,
        /// Stamps a block at this member (see [`Message::Read`]).
        width: u8,
        /// Whether nothing is refused for being asked about.
        only_looks: bool,
    },
    /// The answer; `Err` carries the member's view when the question's is not its own.
    QueryDone {
        operation: u64,
        fate: Result<Fate, Option<GroupView>>,
    },
    /// Which of these writes of a group, at most [`OPERATIONS_MAX`], is undecided here? Answered once what was decided of the others is on
    /// stable storage.
    AreDecided {
        operation: u64,
        group: GroupId,
        /// The view under which it is asked.
        view: ViewNumber,
        writes: Vec<WriteId>,
    },
    /// The answer: those that are undecided; an error as in [`Message::QueryDone`].
    AreDecidedDone {
        operation: u64,
        undecided: Result<Vec<WriteId>, Option<GroupView>>,
    },
    /// Puts good content in place of blocks that were unreadable. Taken only where nothing newer is. Payload: the
    /// content.
    Repair {
        operation: u64,
        group: GroupId,
        /// The view under which it is made.
        view: ViewNumber,
        /// The blocks.
        span: Span,
        /// Stamps a block.
        width: u8,
        /// The stamps of the content, `width` a block.
        stamps: Vec<Stamp>,
        service: Service,
    },
    /// What became of a repair.
    Repaired {
        operation: u64,
        /// Whether it was taken.
        outcome: RepairOutcome,
        wait: Wait,
    },
    /// These reads, repairs and fragments of the sender are of no interest any more, at most [`OPERATIONS_MAX`]. (A prepare is called off
    /// by its decision.)
    Cancel {
        operations: Vec<u64>,
    },
    /// What streams were served elsewhere through the sender since it spoke of them here last: as the delay of a request, where there
    /// was none. At most [`OPERATIONS_MAX`] streams. Not answered.
    Elsewhere {
        of: Vec<Service>,
    },
    /// What became of a cancel.
    Cancelled {
        /// They had not begun: nothing of them is left, and no answer comes.
        withdrawn: Vec<u64>,
        /// They do not wait here: they have begun, were answered, or have not come.
        late: Vec<u64>,
    },
    /// A brick to whoever asks of it: these prepares, reads and repairs wait for their turn, at most [`OPERATIONS_MAX`]. That is no
    /// sign of a slow disk, and there is no use in asking again. Repeated as long as they wait.
    Waiting {
        operations: Vec<u64>,
    },
    /// Which blocks hold data?
    Allocation {
        operation: u64,
        group: GroupId,
        /// The view under which it is asked.
        view: ViewNumber,
        /// From this brick-local block on.
        span: Span,
    },
    /// Runs of blocks that hold data, or not, from the start of the span.
    AllocationDone {
        operation: u64,
        /// `(blocks, holds data)`; `Err` as in [`Message::QueryDone`].
        runs: Result<Vec<(u32, bool)>, Option<GroupView>>,
    },
    /// Puts a fragment on stable storage. It is taken again when it comes again. Payload: its content, whole blocks.
    PutFragment {
        operation: u64,
        fragment: FragmentId,
        service: Service,
        /// Whether nobody can see its version yet, so that nobody counts on it if this is called off: then it is given back, unless it was put
        /// here once more by somebody else.
        is_new: bool,
    },
    FragmentPut {
        operation: u64,
        /// What became of it.
        outcome: FragmentOutcome,
        wait: Wait,
    },
    /// Asks for a fragment of so many blocks.
    GetFragment {
        operation: u64,
        fragment: FragmentId,
        blocks: u32,
        service: Service,
    },
    /// Payload: the content, where there is one.
    Fragment {
        operation: u64,
        /// What became of it.
        outcome: FragmentOutcome,
        wait: Wait,
    },
    /// Is this fragment of so many blocks there? Answered as [`Message::GetFragment`], without the content.
    CheckFragment {
        operation: u64,
        fragment: FragmentId,
        blocks: u32,
        /// Whether it is read and compared with its checksums, or only looked up.
        reads: bool,
        service: Service,
    },
    /// The directory alone says so, as its index knows it: these versions will never be visible, and all space that they have is given back. At most
    /// [`crate::object::VERSIONS_MAX`]. Not answered.
    DropVersions {
        versions: Vec<ObjectVersion>,
    },
    // ---- whoever has to do with objects to the directory, and back ----
    /// Asks the index of objects.
    Index {
        operation: u64,
        request: Box<IndexRequest>,
    },
    IndexDone {
        operation: u64,
        result: Box<Result<IndexReply, IndexError>>,
    },
    /// Which bricks are there for fragments?
    GetBricks {
        operation: u64,
    },
    Bricks {
        operation: u64,
        bricks: Vec<BrickPlace>,
    },
    // ---- brick to brick, and back; the gateway's questions above are asked by bricks too ----
    /// Which stretches of the group hold stamps at you?
    Inventory {
        operation: u64,
        group: GroupId,
        /// The view under which it is asked.
        view: ViewNumber,
        /// Those after this one.
        after: Option<(VolumeId, u64)>,
    },
    /// The answer; an error as in [`Message::QueryDone`].
    InventoryDone {
        operation: u64,
        /// `(branch, stretch)` in order, and where to go on, if there may be more.
        stretches: Result<Inventory, Option<GroupView>>,
    },
    /// Which requests took effect at you?
    GetCompletions {
        operation: u64,
        group: GroupId,
        /// The view under which it is asked.
        view: ViewNumber,
        /// Those after this one.
        after: Option<(RequestId, u64)>,
    },
    /// The answer; an error as in [`Message::QueryDone`].
    CompletionsDone {
        operation: u64,
        /// In order of request and part, at most [`COMPLETIONS_MAX`]; fewer are the end.
        completions: Result<Vec<Completion>, Option<GroupView>>,
    },

    /// I serve these reads, which you were asked for as well. Lost or late, it costs a second answer to each. Not answered.
    Claims {
        claims: Vec<Claim>,
    },

    /// A brick to all gateways that it knows: these writes have been in doubt here for long; please settle them.
    Doubtful {
        writes: Vec<WriteId>,
    },

    // ---- brick to directory, and back ----
    /// I am here; lease me my views.
    Heartbeat {
        brick: BrickId,
        /// When it was sent, by the brick's clock.
        sent: Time,
        /// Version of the cluster's map that the brick has durably taken in.
        known: u64,
        /// What it says of itself.
        status: Box<BrickStatus>,
        /// What it says of streams.
        streams: StreamReport,
        /// The newest version that the brick speaks; one that does not say so speaks none from 11 on.
        speaks: Version,
        /// What time of the cluster it believes it is; zero where it has not heard yet.
        time: ClusterTime,
    },
    HeartbeatDone {
        /// The heartbeat's own time.
        sent: Time,
        /// The map's version now.
        version: u64,
        /// For how long after `sent` the brick may trust its views; zero grants nothing.
        lease_ns: u64,
        /// The views of the brick's groups that changed after `known`.
        views: Vec<GroupView>,
        /// Volumes that were deleted after `known`.
        deleted: Vec<VolumeId>,
        /// What else it is to know and do.
        orders: Box<Orders>,
        /// The time of the cluster; zero from a directory that knows none.
        time: ClusterTime,
    },
    /// My lease goes on, if nothing has changed since my last heartbeat was answered with one. Most of these are sent: it is as short as can be.
    Renew {
        brick: BrickId,
        /// When it was sent, by the brick's clock.
        sent: Time,
        /// Which process of the brick.
        run: u64,
        /// As in a heartbeat.
        known: u64,
    },
    Renewed {
        /// The question's own time, and the process that asked.
        sent: Time,
        run: u64,
        /// For how long after `sent` the brick may trust its views. Zero if it is to send a heartbeat first: something has changed.
        lease_ns: u64,
    },
    /// You are to leave your groups: give back what is left of your lease.
    Yield {
        /// Which process of the brick.
        run: u64,
    },
    /// I have no lease any more, and shall use none that is granted for what I sent before this.
    Yielded {
        brick: BrickId,
        run: u64,
        /// When it was sent, by the brick's clock.
        sent: Time,
    },
    /// I was away for long: these families I know, from the one on that I was asked for.
    Held {
        brick: BrickId,
        operation: u64,
        /// In the order of their ids.
        families: Vec<VolumeId>,
    },
    HeldDone {
        operation: u64,
        /// The last of those that were named.
        through: VolumeId,
        /// Of those the ones of which nothing is left.
        gone: Vec<VolumeId>,
    },
    /// The directory lost its disk: what do you know of your groups?
    Recount {
        /// Where the page begins that is asked for. Directories of before version 20 ask for all at once.
        from: Option<RecountFrom>,
    },
    /// A page of what a brick knows, or all.
    Recounted {
        brick: BrickId,
        /// The version of the map that it had taken in.
        known: u64,
        groups: Vec<GroupState>,
        /// The families that they belong to.
        families: Vec<Family>,
        /// What time of the cluster it believes it is; zero where it has not heard yet.
        time: ClusterTime,
        /// Where this page was asked to begin.
        from: Option<RecountFrom>,
        /// Where the next page begins; `None` in the last one. Bricks of before version 20 tell all at once.
        next: Option<RecountFrom>,
    },
    /// A new view is being made: serve nothing more under older ones, and say which writes are in doubt.
    Fence {
        /// The view to come.
        view: GroupView,
        /// Whether it is asked as one that took the writes of the views before: who has forgotten them does not answer.
        speaks: bool,
        /// Which process of the brick is asked: another one does not answer. Zero where none is told apart.
        run: u64,
    },
    /// Durably promised.
    Fenced {
        group: GroupId,
        number: ViewNumber,
        /// Writes that are prepared here and not decided.
        doubts: Vec<WriteId>,
        /// Which process of the brick says so; zero where none is told apart.
        run: u64,
    },
    /// What do you know of these, which others have in doubt?
    Resolve {
        group: GroupId,
        /// The view being made.
        number: ViewNumber,
        /// The writes and the stamps a block at this member.
        writes: Vec<(WriteId, u8)>,
        /// As in [`Message::Fence`].
        run: u64,
    },
    /// One fate a write, in order.
    Resolved {
        group: GroupId,
        /// The view being made.
        number: ViewNumber,
        fates: Vec<(WriteId, Fate)>,
        /// As in [`Message::Fenced`].
        run: u64,
    },
    /// The view begins: apply these decisions and serve under it.
    Activate {
        view: GroupView,
        commits: Vec<Decision>,
        aborts: Vec<Decision>,
        /// Slots whose blocks of before are lost, where the directory knows: what such a member has no stamp of is not zeros
        /// but lost, until it is written.
        bare: Option<Slots>,
        /// As in [`Message::Fence`].
        run: u64,
    },
    /// Done, durably.
    Activated {
        group: GroupId,
        number: ViewNumber,
        /// As in [`Message::Fenced`].
        run: u64,
    },

    // ---- gateway to directory, and back ----
    /// I am a gateway that clients reach at this address. Repeated as a sign of life.
    Register {
        gateway: GatewayId,
        /// Where clients reach it.
        address: String,
        /// How many writer numbers it needs (one a shard).
        writers: u16,
        /// The first of those it has already.
        held: Option<u16>,
        /// The brick on the same machine, whose blocks it coordinates best.
        beside: Option<BrickId>,
        /// The newest version that the gateway speaks, as of bricks.
        speaks: Version,
        /// What time of the cluster it believes it is; zero where it has not heard yet.
        time: ClusterTime,
        /// When this was sent, by the gateway's clock; zero where it does not say.
        sent: Time,
        /// As its configuration says; empty where it says nothing.
        name: String,
        /// The volumes that clients have open there.
        opened: Vec<OpenCount>,
    },
    /// Numbers `first_writer..first_writer + writers` are lent to the gateway; one that wants none is told a number that there is not.
    Registered {
        first_writer: u16,
        /// The time of the cluster; zero from a directory that knows none.
        time: ClusterTime,
        /// For which times the numbers are lent; none where they are lent without an end.
        loan: Option<Loan>,
    },
    /// Tell me of this volume, and keep telling me when it changes.
    OpenVolume {
        operation: u64,
        name: String,
    },
    VolumeOpened {
        operation: u64,
        /// Boxed, so that what is said seldom does not make packets large.
        map: Result<Box<VolumeMap>, AdminError>,
    },
    /// A gateway holds an older view than the one it met; tell it.
    GetView {
        group: GroupId,
    },
    /// How long bricks take to prepare this gateway's writes, lately. All that it knows, each time: a later one replaces an
    /// earlier one. Twice a second at most, and only while there are writes. Not answered.
    Observed {
        members: Vec<Observed>,
    },
    /// Views that are now in force, and volumes that changed.
    Published {
        views: Vec<GroupView>,
        volumes: Vec<VolumeInfo>,
        /// The volumes that are no more.
        deleted: Vec<VolumeId>,
        /// Where bricks are reached.
        bricks: Vec<(BrickId, String)>,
    },

    // ---- anyone who may administer, to the directory ----
    Admin {
        operation: u64,
        request: AdminRequest,
    },
    AdminDone {
        operation: u64,
        /// What became of it.
        result: Result<AdminReply, AdminError>,
    },

    // ---- client to gateway, and back ----
    /// I want to use this volume.
    Attach {
        operation: u64,
        volume: String,
    },
    Attached {
        operation: u64,
        volume: Result<VolumeInfo, AdminError>,
    },
    /// A client's I/O. Payload: the content of a write.
    Request {
        /// The request; the same when it is asked again.
        id: RequestId,
        /// All requests of this client below this sequence number are answered.
        floor: u64,
        volume: VolumeId,
        io: Io,
        service: Service,
    },
    /// The answer. Payload: the content of a read.
    Reply {
        sequence: u64,
        /// What became of it.
        result: Result<IoReply, IoError>,
    },
    Ping {
        nonce: u64,
    },
    Pong {
        nonce: u64,
    },
}

impl Message {
    /// What it tells of the wait at a disk, where it answers a question that led to one.
    pub fn wait_mut(&mut self) -> Option<&mut Wait> {
        match self {
            Message::Prepared { wait, .. }
            | Message::ReadDone { wait, .. }
            | Message::Repaired { wait, .. }
            | Message::FragmentPut { wait, .. }
            | Message::Fragment { wait, .. } => Some(wait),
            _ => None,
        }
    }

    /// The version with which it came.
    pub fn since(&self) -> Version {
        match self {
            Message::Cancel { .. } | Message::Cancelled { .. } | Message::Waiting { .. } => Version(4),
            Message::Elsewhere { .. } => Version(5),
            Message::Lock { .. } | Message::Locked { .. } | Message::Unlock { .. } => Version(9),
            Message::Prepare { change: Change::Replace { .. }, .. } => Version(9),
            Message::Prepare { write: WriteId { link: Some(_), .. }, .. } => Version(LINKS),
            Message::AreDecided { .. } | Message::AreDecidedDone { .. } => Version(LINKS),
            Message::PutFragment { .. }
            | Message::FragmentPut { .. }
            | Message::GetFragment { .. }
            | Message::Fragment { .. }
            | Message::DropVersions { .. } => Version(OBJECTS),
            Message::CheckFragment { .. } => Version(RESTORED),
            Message::Held { .. } | Message::HeldDone { .. } => Version(20),
            Message::Renew { .. }
            | Message::Renewed { .. }
            | Message::Yield { .. }
            | Message::Yielded { .. } => Version::RENEWS,
            Message::Index { request, .. } => request.since(),
            Message::IndexDone { .. } | Message::GetBricks { .. } | Message::Bricks { .. } => Version(NAMES),
            Message::Admin { request, .. } => request.since(),
            _ => Version::OLDEST,
        }
    }
}

/// The version with which objects came.
const OBJECTS: u32 = 12;
/// The version with which their names came.
const NAMES: u32 = 13;
/// The version with which bricks make lost fragments again.
const RESTORED: u32 = 14;

/// The most questions that one [`Message::Cancel`] or [`Message::Waiting`] names.
pub const OPERATIONS_MAX: usize = 256;

/// The most completions in one [`Message::CompletionsDone`].
pub const COMPLETIONS_MAX: usize = 4096;

/// A read that several members were asked for at once. Whoever asked is responsible for an answer: it asks again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contest {
    /// The asker's own number of it, the same at all of them.
    pub number: u64,
    pub holders: Slots,
    /// Whether each is to begin as soon as it can, and not leave it to whoever is expected to be first.
    pub tied: bool,
}

/// That a member serves a contested read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claim {
    pub gateway: GatewayId,
    /// The number of the [`Contest`].
    pub number: u64,
    /// The first block that is read.
    pub volume: VolumeId,
    /// The first block that is read.
    pub lba: u64,
    /// How long the member expects to take, in nanoseconds.
    pub bid_ns: u64,
}

/// The most claims in one [`Message::Claims`].
pub const CLAIMS_MAX: usize = 256;

/// Stretches that hold stamps at a member: `(branch, stretch)` in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Inventory {
    /// Those of the group that was asked for.
    pub stretches: Vec<(VolumeId, u64)>,
    /// Where to go on; `None` at the end.
    pub next: Option<(VolumeId, u64)>,
}

/// What became of a repair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RepairOutcome {
    /// It is on stable storage.
    Taken,
    /// Something newer is there, or a write is under way.
    Refused,
    /// The disk has no room for it.
    NoSpace,
}

/// What became of the wish for a lock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LockOutcome {
    Granted {
        /// Whether somebody else had the blocks, or wanted them before.
        waited: bool,
    },
    /// As in [`PrepareOutcome::Stale`].
    Stale { view: Option<GroupView> },
    /// Too many wait: try again later.
    Busy,
}

/// What became of phase one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PrepareOutcome {
    Prepared {
        /// The stamps before, one a block, when the delta was wanted.
        previous: Vec<Stamp>,
    },
    /// This part of the request took effect before.
    Duplicate,
    /// A later stamp was here first: draw one later than `newest`.
    Late {
        /// The latest stamp seen.
        newest: Stamp,
    },
    /// `base` or `previous` is not what is here: read again.
    Changed,
    /// The view is not the member's; its own, if it has one.
    Stale {
        /// Newer, or why the request's is ahead.
        view: Option<GroupView>,
    },
    /// Too much is waiting here: try again later.
    Busy,
    /// No room.
    NoSpace,
    /// The blocks' stamps cannot be read, and the change needs them.
    Unreadable,
    Failed,
}

/// What a read sees where writes of its blocks are on stable storage and not decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sight {
    /// It waits until they are decided.
    #[default]
    Decided,
    /// Their content. It waits for none.
    Staged,
    /// What was there before them, and which they are ([`ReadOutcome::Older`]). It waits for none.
    Committed,
}

/// What became of a read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReadOutcome {
    /// The latest that is known to be decided here, and nothing is in doubt here.
    Done {
        /// Whether the member held a lease of its view when it looked: then this alone is the latest acknowledged.
        leased: bool,
        /// The stamps when they were wanted, `width` a block.
        stamps: Vec<Stamp>,
        /// The blocks, from 0, whose content or stamps do not match their checksum.
        unreadable: Vec<u32>,
    },
    /// To a read whose sight is [`Sight::Committed`]: as `Done`, with the latest that is known to be decided here, beside which stand
    /// writes that are not.
    Older {
        leased: bool,
        /// The stamps of what is decided, when they were wanted.
        stamps: Vec<Stamp>,
        unreadable: Vec<u32>,
        /// Those that are not decided.
        newer: Vec<WriteId>,
    },
    /// These writes were not decided within the time that a member waits.
    InDoubt {
        writes: Vec<WriteId>,
    },
    /// As in [`PrepareOutcome::Stale`].
    Stale {
        view: Option<GroupView>,
    },
    /// Too much is waiting here.
    Busy,
    Failed,
}

wire_enum!(Message {
    0 => Prepare {
        operation, view, write, change, base, want_delta, request, floor, part;
        since 4: service; since 8: order
    },
    1 => Prepared { operation, outcome; since 4: wait },
    2 => Decide { commits, aborts },
    3 => Read { operation, group, view, span, width, stamps, content, contest; since 4: service; since 9: sight },
    4 => ReadDone { operation, outcome; since 4: wait },
    5 => Query { operation, view, write, width; since 10: only_looks },
    6 => QueryDone { operation, fate },
    7 => Repair { operation, group, view, span, width, stamps; since 4: service },
    8 => Repaired { operation, outcome; since 4: wait },
    9 => Allocation { operation, group, view, span },
    10 => AllocationDone { operation, runs },
    11 => Doubtful { writes },
    12 => Inventory { operation, group, view, after },
    13 => InventoryDone { operation, stretches },
    14 => GetCompletions { operation, group, view, after },
    15 => CompletionsDone { operation, completions },
    16 => Claims { claims },
    17 => Cancel { operations },
    18 => Cancelled { withdrawn, late },
    19 => Waiting { operations },
    20 => Heartbeat { brick, sent, known, status; since 5: streams; since 11: speaks; since 20: time },
    21 => HeartbeatDone { sent, version, lease_ns, views, deleted, orders; since 20: time },
    22 => Fence { view, speaks; since 23: run },
    23 => Fenced { group, number, doubts; since 23: run },
    24 => Resolve { group, number, writes; since 23: run },
    25 => Resolved { group, number, fates; since 23: run },
    26 => Activate { view, commits, aborts; since 20: bare; since 23: run },
    27 => Activated { group, number; since 23: run },
    28 => Recount { ; since 20: from },
    29 => Recounted { brick, known, groups, families; since 20: time, from, next },
    30 => Elsewhere { of },
    31 => Lock { operation, group, view, span, holder },
    32 => Locked { operation, outcome },
    33 => Unlock { holders },
    34 => AreDecided { operation, group, view, writes },
    35 => AreDecidedDone { operation, undecided },
    36 => Held { brick, operation, families },
    37 => HeldDone { operation, through, gone },
    38 => Renew { brick, sent, run, known },
    39 => Renewed { sent, run, lease_ns },
    47 => Yield { run },
    48 => Yielded { brick, run, sent },
    50 => PutFragment { operation, fragment, service; since 20: is_new },
    51 => FragmentPut { operation, outcome, wait },
    52 => GetFragment { operation, fragment, blocks, service },
    53 => Fragment { operation, outcome, wait },
    54 => DropVersions { versions },
    55 => CheckFragment { operation, fragment, blocks, reads, service },
    40 => Register {
        gateway, address, writers, held;
        since 9: beside; since 11: speaks; since 20: time, sent, name, opened
    },
    41 => Registered { first_writer; since 20: time, loan },
    42 => OpenVolume { operation, name },
    43 => VolumeOpened { operation, map },
    44 => GetView { group },
    45 => Published { views, volumes, deleted, bricks },
    46 => Observed { members },
    70 => Index { operation, request },
    71 => IndexDone { operation, result },
    72 => GetBricks { operation },
    73 => Bricks { operation, bricks },
    60 => Admin { operation, request },
    61 => AdminDone { operation, result },
    80 => Attach { operation, volume },
    81 => Attached { operation, volume },
    82 => Request { id, floor, volume, io; since 4: service },
    83 => Reply { sequence, result },
    90 => Ping { nonce },
    91 => Pong { nonce },
});
wire_struct!(Inventory { stretches, next });

/// By number, which was a truth value when there were two; who knows no more waits for decisions instead.
impl Wire for Sight {
    fn encode(&self, out: &mut Writer<'_>) {
        out.push(match self {
            Sight::Committed if !out.knows(VERSIONS) => 0,
            Sight::Decided => 0,
            Sight::Staged => 1,
            Sight::Committed => 2,
        });
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Sight, DecodeError> {
        match u8::decode(reader)? {
            0 => Ok(Sight::Decided),
            1 => Ok(Sight::Staged),
            2 => Ok(Sight::Committed),
            tag => Err(DecodeError::UnknownTag { what: "sight", tag }),
        }
    }
}

wire_struct!(Contest { number, holders, tied });
wire_struct!(Claim { gateway, number, volume, lba, bid_ns });
wire_enum!(RepairOutcome { 0 => Taken, 1 => Refused, 2 => NoSpace });
wire_enum!(LockOutcome { 0 => Granted { waited }, 1 => Stale { view }, 2 => Busy });
wire_enum!(PrepareOutcome {
    0 => Prepared { previous }, 1 => Duplicate, 2 => Late { newest }, 3 => Changed, 4 => Stale { view },
    5 => Busy, 6 => NoSpace, 7 => Unreadable, 8 => Failed,
});
wire_enum!(ReadOutcome {
    0 => Done { leased, stamps, unreadable }, 1 => InDoubt { writes }, 2 => Stale { view }, 3 => Busy, 4 => Failed,
    5 => Older { leased, stamps, unreadable, newer },
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_seldom_does_not_make_what_is_said_often_large() {
        let bytes = core::mem::size_of::<Packet>();
        assert!(bytes <= 232, "a packet takes {bytes} bytes");
    }
}
