//! What the directory keeps and says of the cluster.

use crate::policy::known_to;
use crate::protocol::READS;
use crate::{
    DecodeError, GroupView, IoTimeout, Placement, Protocol, ReadPolicy, Reader, Reads, StreamTable, Wire,
    Writer, wire_enum, wire_struct,
};
use base::{BrickId, GatewayId, GroupId, StreamId, ViewNumber, VolumeId};

/// A volume as its users see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VolumeInfo {
    pub id: VolumeId,
    /// Its name, unique in the cluster.
    pub name: String,
    /// Its size in bytes, a multiple of 4096.
    pub size_bytes: u64,
    /// Its layout, as written: `raid1x3`, `raid5-4+1`, `rs-4+2`.
    pub layout: String,
    /// Blocks of 4 KiB in a stripe unit.
    pub stripe_unit_blocks: u32,
    /// Blocks of 4 KiB that one extent takes on one member.
    pub column_blocks: u32,
    /// Whether writes are refused.
    pub read_only: bool,
    /// The family whose groups hold it: its own id, unless it is a snapshot or clone.
    pub family: VolumeId,
    /// What it was made of: of a clone the snapshot, of a snapshot the volume.
    pub origin: Option<VolumeId>,
    /// Whether it is a snapshot: never written.
    pub is_snapshot: bool,
    /// Who serves a read of it.
    pub read_policy: ReadPolicy,
    /// After how long a request that cannot be served is answered with an error.
    pub io_timeout: IoTimeout,
    /// What its writes and reads go by.
    pub protocol: Protocol,
    /// How its family's groups are made of bricks, and which of them gets an extent. It never changes.
    pub placement: Placement,
    /// To which its requests belong.
    pub stream: StreamId,
    /// What its reads count on.
    pub reads: Reads,
}

impl VolumeInfo {
    /// The usual stripe unit, in blocks: 64 KiB.
    pub const STRIPE_UNIT_BLOCKS: u32 = 16;
    /// The usual column of an extent, in blocks: 4 MiB on each member.
    pub const COLUMN_BLOCKS: u32 = 1024;

    /// A volume that is written and has a family of its own, with the usual measures and settings.
    pub fn new(
        id: VolumeId,
        name: impl Into<String>,
        size_bytes: u64,
        layout: impl Into<String>,
    ) -> VolumeInfo {
        VolumeInfo {
            id,
            name: name.into(),
            size_bytes,
            layout: layout.into(),
            stripe_unit_blocks: VolumeInfo::STRIPE_UNIT_BLOCKS,
            column_blocks: VolumeInfo::COLUMN_BLOCKS,
            read_only: false,
            family: id,
            origin: None,
            is_snapshot: false,
            read_policy: ReadPolicy::default(),
            io_timeout: IoTimeout::DEFAULT,
            protocol: Protocol::default(),
            placement: Placement::default(),
            stream: StreamId::default(),
            reads: Reads::default(),
        }
    }

    /// Whether its record says more than records of version 3 could.
    fn is_extended(&self) -> bool {
        (self.protocol, self.placement, self.stream) != Default::default()
    }

    /// The layout, or a name that the reader does not know where it would serve the volume wrongly.
    fn layout_for(&self, out: &Writer<'_>) -> String {
        if !self.placement.is_clear_to(out) {
            return format!("{} ({})", self.layout, self.placement);
        }
        match self.reads {
            Reads::Confirmed if !out.knows(READS) => format!("{} ({} reads)", self.layout, self.reads),
            _ => self.layout.clone(),
        }
    }
}

/// A family of volumes and its groups: what bricks keep, so that a lost directory can be made again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Family {
    /// Grows with every change of it.
    pub number: u64,
    /// Its volumes, snapshots and clones.
    pub volumes: Vec<VolumeInfo>,
    /// Its groups, in the order by which extents are placed on them.
    pub groups: Vec<GroupId>,
}

/// Where a page of what a brick knows begins: with which family, and after the last family with which group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RecountFrom {
    Family(VolumeId),
    Group(GroupId),
}

impl RecountFrom {
    pub const FIRST: RecountFrom = RecountFrom::Family(VolumeId(0));
}

/// What a brick knows of one group.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct GroupState {
    /// No request under a view before this one is served any more.
    pub promised: ViewNumber,
    /// The view that began last.
    pub active: Option<GroupView>,
    /// What this brick had of the group before is lost, and nobody else has it: a block without a stamp is not zeros.
    pub is_bare: bool,
}

/// What a brick is to know and do beside keeping its views.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Orders {
    /// The families in which it has groups, that changed after the version that it knows.
    pub families: Vec<Family>,
    /// Views of groups that it was a member of and is no more: it gives their space back and says so.
    pub left: Vec<GroupView>,
    /// Where the other bricks are reached.
    pub bricks: Vec<(BrickId, String)>,
    /// How it looks after its blocks.
    pub care: Care,
    /// It is left out for being slow: it is to measure itself closely, so that it is seen when it is well again.
    pub is_slow: bool,
    /// The streams, where it knows another version of them.
    pub streams: Option<StreamTable>,
    /// The run to which this is said: two processes with one id may hear each other's answers. 0 from earlier releases.
    pub run: u64,
    /// Whether its run is the one that counts, and what of its disks does.
    pub standing: Standing,
    /// The newest version of the map, also where it is not told of all up to there yet: a directory with a store from before is known by that.
    pub newest: u64,
    /// Of what is deleted the ids that name no family any more: it forgets all groups of a family of that id.
    pub gone: Vec<VolumeId>,
    /// Deletions that it has not heard of are forgotten: it is to say which families it knows.
    pub asks_held: bool,
    /// After how long it is to renew its lease; zero where heartbeats are enough.
    pub renew_ns: u64,
}

/// What the directory says to one run of a brick's process: a brick serves nothing of what it recovered before it knows.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Standing {
    /// Nothing: the directory is of an earlier release.
    #[default]
    Untold,
    /// It is not decided yet.
    Waits,
    /// This run counts.
    Stands {
        /// Its number among the brick's runs.
        incarnation: u64,
        /// Groups whose latest writes its disks lack: under views up to these it neither serves them nor speaks for them.
        behind: Vec<(GroupId, ViewNumber)>,
    },
    /// A later run of the same brick counts, and this one must serve nothing.
    Ousted {
        /// The number of the one that counts.
        by: u64,
    },
}

/// One run of a brick's process, and how far the journals of its disks are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Run {
    /// Drawn at its start.
    pub number: u64,
    /// What the directory gave it among the brick's runs; 0 before.
    pub incarnation: u64,
    /// The incarnation that counts in its stead; 0 where it was not told of one.
    pub ousted_by: u64,
    /// A disk each; none of a brick of an earlier release.
    pub journals: Vec<JournalReport>,
    /// The newest version of the cluster's map of which it ever heard, also before it started.
    pub newest_known: u64,
    /// Where it runs.
    pub place: Place,
}

/// Where a run of a brick's process has its first disk, which nobody else can have open there: two runs of one place come one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// The machine and the disk, or the file. A copy elsewhere has another, unless the machine was cloned as a whole. 0 where that is not known.
    pub disk: u64,
    /// The same since this start of the machine.
    pub boot: u64,
}

impl Place {
    /// Whether a run here has ended once there is one at `later`.
    pub fn ends_with(self, later: Place) -> bool {
        // A clone of the machine may have the same disk, and never the same start.
        self.boot != 0 && self == later
    }

    /// Whether the disk at `later` is another one than here: a copy, or a disk that was moved.
    pub fn is_elsewhere(self, later: Place) -> bool {
        self.disk != 0 && later.disk != 0 && self.disk != later.disk
    }
}

/// How far a disk's journal is, in bytes that were ever written to it. It only grows, so that a disk whose journal ends
/// before what was told of it is an older copy, or has lost writes that it called durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct JournalReport {
    /// The disk's identity.
    pub disk: u64,
    /// Where its journal ended when it was opened.
    pub found: u64,
    /// Everything before is on stable storage.
    pub durable: u64,
}

/// How a brick finds itself, by what it measures: medians of the latest samples, in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Health {
    /// Of a durable write; of one under way as long as it has lasted, where that is more. 0 as long as there was none.
    pub write_us: u32,
    /// Of a read of its store, cached or not.
    pub read_us: u32,
    /// By how much its process ran late, at most, since the heartbeat before.
    pub late_us: u32,
    /// From its last heartbeat to the answer.
    pub round_trip_us: u32,
    /// Of a block that is brought home from the journal, while the disk works on that; 0 as long as there was none.
    pub home_us: u32,
    /// Of the time since the heartbeat before, in parts of a thousand: how long content waited for room at its disk.
    pub held_permille: u32,
}

/// How long a gateway waits for a brick, beside the other members of its groups, when writes are prepared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Observed {
    pub brick: BrickId,
    /// Whether it has been several times slower than the others, for about a second, by more than noise.
    pub is_slow: bool,
    /// How long it takes, in microseconds.
    pub prepare_us: u32,
    /// How long the others take for the same writes.
    pub others_us: u32,
}

/// What the directory holds of a brick that is slow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlowEntry {
    /// Whether it is left out for that. Where its groups cannot bear that it stays, and is shown all the same.
    pub is_out: bool,
    /// For how many milliseconds.
    pub since_ms: u64,
    /// By what that is known.
    pub why: String,
    /// How often it was left out for being slow before, within an hour of good conduct.
    pub relapses: u32,
    /// For how many seconds it must be well again before it returns.
    pub hold_s: u64,
    /// For how many milliseconds it has been well again.
    pub well_ms: Option<u64>,
    /// Of one that stays: a group that would have too little redundancy without it.
    pub needed_by: Option<GroupId>,
}

/// How bricks look after their blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Care {
    /// Bytes a second at most that a brick fetches to catch up.
    pub rebuild_bytes_per_second: u64,
    /// Bytes a second at most that a brick reads to check.
    pub scrub_bytes_per_second: u64,
    /// Seconds between the beginnings of two scrubs; 0 for none but those asked for.
    pub scrub_interval_s: u64,
    /// The number of the latest scrub asked for: begins at once.
    pub scrub: u64,
    /// Seconds for which a brick may be away before its blocks are rebuilt onto others.
    pub rebuild_after_s: u64,
}

impl Default for Care {
    fn default() -> Care {
        Care {
            rebuild_bytes_per_second: 256 << 20,
            scrub_bytes_per_second: 32 << 20,
            scrub_interval_s: 7 * 24 * 3600,
            scrub: 0,
            rebuild_after_s: 600,
        }
    }
}

/// How far a brick has caught up in one group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CatchUp {
    pub group: GroupId,
    /// The view in which it joins.
    pub number: ViewNumber,
    /// Blocks compared so far.
    pub compared_blocks: u64,
    /// Blocks to compare, as far as is known.
    pub total_blocks: u64,
    /// Bytes fetched, because they were missing or old here.
    pub fetched_bytes: u64,
    /// Whether it has every acknowledged write now.
    pub done: bool,
}

/// How far a brick's scrub is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ScrubStatus {
    /// Scrubs begun on request, as in [`Care::scrub`]; what is below is of this one, or of one begun by itself later.
    pub number: u64,
    /// Whether one is under way.
    pub running: bool,
    /// Scrubs completed since the brick started.
    pub completed: u64,
    /// Blocks checked.
    pub checked_blocks: u64,
    /// Blocks to check, as far as is known.
    pub total_blocks: u64,
    /// Blocks found unreadable or old, by this scrub.
    pub found_blocks: u64,
    pub repaired_blocks: u64,
    /// Of [`BrickStatus::unreadable_blocks`] those that were found before a scrub that then found nothing.
    pub settled_blocks: u64,
}

/// Blocks of a volume that no member can make out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LostBlocks {
    /// The volume, or the branch where the volume is not known.
    pub volume: VolumeId,
    /// The first byte.
    pub offset: u64,
    /// How many bytes.
    pub length: u64,
}

/// All that a gateway needs to serve a volume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VolumeMap {
    pub volume: VolumeInfo,
    /// Its groups, in the order by which extents are placed on them.
    pub groups: Vec<GroupView>,
    /// Where bricks are reached.
    pub bricks: Vec<(BrickId, String)>,
    /// The bricks on which volumes of its stream lie, this one and others. They are told what the stream is served elsewhere.
    pub stream_bricks: Vec<BrickId>,
}

/// What a brick says of itself with each heartbeat.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BrickStatus {
    /// Where gateways reach it.
    pub address: String,
    pub space: Space,
    /// Writes that are prepared and not decided.
    pub in_doubt: u32,
    /// Blocks found unreadable since it started.
    pub unreadable_blocks: u64,
    /// Failure-domain labels, such as `("host", "a")`, `("rack", "2")`.
    pub labels: Vec<(String, String)>,
    /// A disk of it failed or is corrupt: why.
    pub failed: Option<String>,
    /// The identities of its disks, drawn when they were formatted: another one is another disk.
    pub disks: Vec<u64>,
    pub groups: GroupProgress,
    pub scrub: ScrubStatus,
    pub rot: Rot,
    /// What it measures of itself.
    pub health: Health,
    /// How durable writes reach stable storage, a disk each in their order.
    pub durability: Vec<Durability>,
    /// Which run of the brick says this.
    pub run: Run,
}

/// A brick's room for data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Space {
    /// In bytes, over all its disks.
    pub capacity_bytes: u64,
    pub used_bytes: u64,
    /// How full its fullest disk is: of data or of what describes them, and 100 as long as it has no room for what it refused
    /// last.
    pub fullest_percent: u8,
}

/// How far a brick is with what it was told to do in groups.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GroupProgress {
    /// Groups in which it catches up.
    pub catching_up: Vec<CatchUp>,
    /// Groups that it was told to leave and holds nothing of any more, with the number of the view that told it so.
    pub left: Vec<(GroupId, ViewNumber)>,
    /// Branches of deleted snapshots that have nothing left to give to their child here, by group.
    pub merged: Vec<(GroupId, VolumeId)>,
    /// Groups of which it lost what it had of before, and nobody else has it.
    pub bare: Vec<GroupId>,
    /// Notes of groups and volumes for which its first disk has no room: it does not serve what they say.
    pub unnoted: u32,
}

/// What became of blocks that a brick, or a member that catches up from others, could not read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rot {
    /// Blocks that it could not repair, as far as they have room here.
    pub lost: Vec<LostBlocks>,
    /// All that it could not repair.
    pub lost_blocks: u64,
    /// Blocks repaired since it started.
    pub repaired_blocks: u64,
}

/// What [`BrickStatus::failed`] says of a disk whose file system is full: the brick begins anew by itself once there is room,
/// and an operator is told to make some instead of exchanging the disk.
pub const DISK_FULL: &str = "no space left on its file system";

/// How a write that must be durable reaches a disk's stable storage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Durability {
    /// The write says that it must be durable (`RWF_DSYNC`): one request.
    WriteThrough,
    /// The write is followed by `fdatasync`: two requests, where write-through is not known to be honoured.
    WriteThenSync,
}

impl Durability {
    /// As operators read it, and programs in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Durability::WriteThrough => "write-through",
            Durability::WriteThenSync => "write-then-sync",
        }
    }
}

/// A brick as the directory sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BrickEntry {
    pub id: BrickId,
    /// Whether its lease is in force.
    pub alive: bool,
    /// Milliseconds since its last heartbeat, if there was one since the directory started.
    pub silent_ms: Option<u64>,
    /// Groups in which it is a member.
    pub groups: u32,
    /// Groups in which it is a member and not in the current set.
    pub stale_groups: u32,
    /// Groups in which it catches up.
    pub joining_groups: u32,
    /// Whether it was evicted: it gets no groups and loses those it has.
    pub evicted: bool,
    /// Whether it is held for slow.
    pub slow: Option<SlowEntry>,
    /// What it said last.
    pub status: BrickStatus,
    /// The map's version that it said it knows; 0 if it was not heard since the directory started.
    pub version: u64,
    /// Groups in which it stands in for a member that is away: they are no part of `groups`.
    pub stand_in_groups: u32,
    /// How much of what it lacked when it returned it has by now, in percent. It only grows. None where it lacks nothing or is away, and of one that takes
    /// the places of others.
    pub caught_up_percent: Option<u8>,
}

/// A gateway as the directory sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GatewayStatus {
    pub id: GatewayId,
    /// Where clients reach it.
    pub address: String,
    /// Milliseconds since it registered last.
    pub silent_ms: u64,
    /// The brick on the same machine, if it says so.
    pub beside: Option<BrickId>,
    /// As its configuration says, or else by the directory's count of gateways: `gateway-1`.
    pub name: String,
    /// The volumes that clients have open there.
    pub opened: Vec<OpenCount>,
}

/// By how many clients of a gateway a volume is open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenCount {
    pub volume: VolumeId,
    pub users: u32,
}

impl OpenCount {
    /// A gateway tells of so many volumes at most.
    pub const MAX: usize = 1024;
}

/// The cluster at a glance.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ClusterStatus {
    pub bricks: Vec<BrickEntry>,
    /// Gateways heard of lately.
    pub gateways: Vec<GatewayStatus>,
    pub volumes: Vec<VolumeStatus>,
    /// Version of the cluster's map.
    pub version: u64,
    /// How bricks look after their blocks.
    pub care: Care,
    /// What an operator should know, in words.
    pub warnings: Vec<String>,
    /// The directory's own store fails: nothing can be made or changed.
    pub store: Option<StoreFailure>,
    /// With which volume the next page begins, where a page was asked for and is not the last one.
    pub next: Option<VolumeId>,
    /// How many there are of each, where a summary was asked for.
    pub counts: Option<Counts>,
}

/// How many there are in a cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    pub bricks: u32,
    /// Bricks of which an operator is told something, such as those that are silent, slow, or catch up.
    pub unwell_bricks: u32,
    pub gateways: u32,
    /// Without snapshots.
    pub volumes: u32,
    /// Of these, those that lack redundancy, or do not serve all of their blocks.
    pub unwell_volumes: u32,
    pub snapshots: u32,
    pub groups: u32,
}

impl ClusterStatus {
    /// Takes in the first page, or the one that follows. Says with which volume the next one begins.
    pub fn take_page(&mut self, mut page: ClusterStatus) -> Option<VolumeId> {
        let next = page.next.take();
        match self.volumes.is_empty() {
            true => *self = page,
            false => self.volumes.extend(page.volumes),
        }
        next
    }
}

/// The directory's own store cannot be written. The directory tries again by itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoreFailure {
    /// What the latest try said.
    pub why: String,
    /// Milliseconds since the first try that failed.
    pub since_ms: u64,
    /// All tries, the first included.
    pub tries: u32,
    /// Records that wait to be stored.
    pub waiting: u32,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VolumeStatus {
    pub volume: VolumeInfo,
    pub groups: u32,
    /// Groups with fewer current members than slots.
    pub degraded: u32,
    /// Groups that cannot serve now.
    pub unavailable: u32,
    /// How many further members the worst group can lose.
    pub can_lose: u8,
    /// Groups with a member that catches up.
    pub rebuilding: u32,
    /// Of the degraded ones those in which a brick takes new writes in each slot, be it a stand-in.
    pub covered: u32,
    /// Groups that have a member missing for whose blocks no other brick has room or may take them.
    pub unplaced: u32,
    /// The bricks for which groups that cannot serve wait.
    pub waits_for: Vec<BrickId>,
    /// Groups of which members lost blocks for good that nobody else has.
    pub lost: u32,
}

/// In the number of a read policy: what came with version 4 follows.
const EXTENDED: u8 = 0x3f;
/// The same, and then what its reads count on.
const WITH_READS: u8 = 0x3e;

/// All of it but what shares its last byte: whether it is a snapshot (the lowest bit), the number of its read policy above
/// that, and whether an I/O timeout follows that is not the default one (the highest bit). Records of before there were
/// policies and timeouts have 0 there. Where the number is [`EXTENDED`] it follows, with the protocol, the placement and the
/// stream; where it is [`WITH_READS`], what its reads count on comes last.
///
/// To a node that speaks a version before its placement or its way to read came, a volume's layout has a name that the node does
/// not know: it refuses the volume, and serves all others. It would look for the volume's extents in the wrong groups, or take the
/// word of one brick.
impl Wire for VolumeInfo {
    fn encode(&self, out: &mut Writer<'_>) {
        self.id.encode(out);
        self.name.encode(out);
        self.size_bytes.encode(out);
        self.layout_for(out).encode(out);
        self.stripe_unit_blocks.encode(out);
        self.column_blocks.encode(out);
        self.read_only.encode(out);
        self.family.encode(out);
        self.origin.encode(out);
        let has_timeout = self.io_timeout != IoTimeout::DEFAULT;
        let has_reads = out.knows(READS) && self.reads != Reads::default();
        let is_extended = out.knows(4) && self.is_extended() || has_reads;
        let policy = match (has_reads, is_extended) {
            (true, _) => WITH_READS,
            (false, true) => EXTENDED,
            (false, false) => known_to(out.version(), self.read_policy).code(),
        };
        out.push(u8::from(self.is_snapshot) | policy << 1 | u8::from(has_timeout) << 7);
        if has_timeout {
            self.io_timeout.encode(out);
        }
        if is_extended {
            self.read_policy.encode(out);
            self.protocol.encode(out);
            self.placement.encode(out);
            self.stream.encode(out);
        }
        if has_reads {
            self.reads.encode(out);
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<VolumeInfo, DecodeError> {
        let mut info = VolumeInfo::new(
            Wire::decode(reader)?,
            String::decode(reader)?,
            Wire::decode(reader)?,
            String::decode(reader)?,
        );
        info.stripe_unit_blocks = Wire::decode(reader)?;
        info.column_blocks = Wire::decode(reader)?;
        info.read_only = Wire::decode(reader)?;
        info.family = Wire::decode(reader)?;
        info.origin = Wire::decode(reader)?;
        let last = u8::decode(reader)?;
        info.is_snapshot = last & 1 == 1;
        if last >> 7 == 1 {
            info.io_timeout = IoTimeout::decode(reader)?;
        }
        match (last & 0x7f) >> 1 {
            number
                if number == EXTENDED && reader.knows(4) || number == WITH_READS && reader.knows(READS) =>
            {
                info.read_policy = Wire::decode(reader)?;
                info.protocol = Wire::decode(reader)?;
                info.placement = Wire::decode(reader)?;
                info.stream = Wire::decode(reader)?;
                if number == WITH_READS {
                    info.reads = Wire::decode(reader)?;
                }
            }
            policy => {
                info.read_policy = ReadPolicy::of_code(policy)?;
                // Whoever speaks an older version knows no later one.
                if known_to(reader.version(), info.read_policy) != info.read_policy {
                    return Err(DecodeError::UnknownTag { what: "read policy", tag: policy });
                }
            }
        }
        Ok(info)
    }
}

wire_enum!(RecountFrom { 0 => Family(first), 1 => Group(first) });
wire_struct!(Family { number, volumes, groups });
wire_struct!(GroupState { promised, active; since 20: is_bare });
wire_struct!(Orders { families, left, bricks, care, is_slow; since 5: streams; since 20: run, standing, newest, gone, asks_held; since 23: renew_ns });
wire_enum!(Standing { 0 => Untold, 1 => Waits, 2 => Stands { incarnation, behind }, 3 => Ousted { by } });
wire_struct!(Place { disk, boot });
wire_struct!(Run { number, incarnation, ousted_by, journals, newest_known; since 21: place });
wire_struct!(JournalReport { disk, found, durable });
wire_struct!(Health { write_us, read_us, late_us, round_trip_us; since 22: home_us, held_permille });
wire_struct!(Observed { brick, is_slow, prepare_us, others_us });
wire_struct!(SlowEntry { is_out, since_ms, why, relapses, hold_s, well_ms; since 20: needed_by });
wire_struct!(Care {
    rebuild_bytes_per_second,
    scrub_bytes_per_second,
    scrub_interval_s,
    scrub,
    rebuild_after_s
});
wire_struct!(CatchUp { group, number, compared_blocks, total_blocks, fetched_bytes, done });
wire_struct!(ScrubStatus {
    number,
    running,
    completed,
    checked_blocks,
    total_blocks,
    found_blocks,
    repaired_blocks;
    since 20: settled_blocks
});
wire_struct!(LostBlocks { volume, offset, length });
wire_struct!(VolumeMap { volume, groups, bricks; since 6: stream_bricks });
wire_struct!(BrickStatus {
    address,
    space,
    in_doubt,
    unreadable_blocks,
    labels,
    failed,
    disks,
    groups,
    scrub,
    rot,
    health,
    durability;
    since 20: run
});
wire_struct!(Space { capacity_bytes, used_bytes, fullest_percent });
wire_struct!(GroupProgress { catching_up, left, merged; since 20: bare, unnoted });
wire_struct!(Rot { lost, lost_blocks, repaired_blocks });
wire_enum!(Durability { 0 => WriteThrough, 1 => WriteThenSync });
wire_struct!(BrickEntry {
    id,
    alive,
    silent_ms,
    groups,
    stale_groups,
    joining_groups,
    evicted,
    slow,
    status;
    since 23: version, stand_in_groups, caught_up_percent
});
wire_struct!(GatewayStatus { id, address, silent_ms; since 9: beside; since 20: name, opened });
wire_struct!(OpenCount { volume, users });
wire_struct!(ClusterStatus { bricks, gateways, volumes, version, care, warnings, store; since 20: next, counts });
wire_struct!(Counts { bricks, unwell_bricks, gateways, volumes, unwell_volumes, snapshots, groups });
wire_struct!(StoreFailure { why, since_ms, tries, waiting });
wire_struct!(VolumeStatus {
    volume, groups, degraded, unavailable, can_lose, rebuilding, unplaced; since 20: waits_for, lost; since 23: covered
});
#[cfg(test)]
mod tests {
    use super::*;

    fn volume(is_snapshot: bool, read_policy: ReadPolicy) -> VolumeInfo {
        VolumeInfo { is_snapshot, read_policy, ..VolumeInfo::new(VolumeId(1), "v", 1 << 30, "raid1x3") }
    }

    #[test]
    fn a_volume_comes_back_with_its_timeout_and_the_default_one_takes_no_room() {
        let plain = volume(false, ReadPolicy::Claim);
        for ms in [0, 1, 300_000, 86_400_000] {
            let info = VolumeInfo { io_timeout: IoTimeout::of_ms(ms), ..plain.clone() };
            assert_eq!(VolumeInfo::from_bytes(&info.to_bytes()), Ok(info.clone()));
            assert_eq!(info.to_bytes().len() - plain.to_bytes().len(), if ms == 300_000 { 0 } else { 8 });
        }
    }

    #[test]
    fn a_volume_comes_back_with_its_policy() {
        for policy in ReadPolicy::ALL {
            for is_snapshot in [false, true] {
                let info = volume(is_snapshot, policy);
                assert_eq!(VolumeInfo::from_bytes(&info.to_bytes()), Ok(info));
            }
        }
    }

    #[test]
    fn a_volume_comes_back_with_what_came_with_version_4_and_without_it_its_record_is_as_before() {
        let plain = volume(true, ReadPolicy::TwoChoices);
        for io_timeout in [IoTimeout::DEFAULT, IoTimeout::Never] {
            let info = VolumeInfo { stream: StreamId(7), io_timeout, ..plain.clone() };
            assert_eq!(VolumeInfo::from_bytes(&info.to_bytes()), Ok(info.clone()));
            let (mut old, mut without) = (Vec::new(), Vec::new());
            info.encode(&mut Writer::of(crate::Version(3), &mut old));
            VolumeInfo { stream: StreamId(0), ..info }.append(&mut without);
            assert_eq!(old, without);
        }
    }

    #[test]
    fn who_knows_no_confirmed_reads_is_told_a_layout_that_it_refuses() {
        let plain = volume(false, ReadPolicy::Claim);
        for stream in [StreamId(0), StreamId(7)] {
            let info = VolumeInfo { reads: Reads::Confirmed, stream, ..plain.clone() };
            assert_eq!(VolumeInfo::from_bytes(&info.to_bytes()), Ok(info.clone()));
            for version in [3, 4, 19].map(crate::Version) {
                let mut bytes = Vec::new();
                info.encode(&mut Writer::of(version, &mut bytes));
                let heard = VolumeInfo::decode(&mut Reader::of(version, &bytes)).expect("a record");
                assert_eq!(heard.layout, "raid1x3 (confirmed reads)");
            }
        }
    }

    #[test]
    fn a_record_of_before_there_were_rules_is_of_a_hashed_volume() {
        let info = VolumeInfo { stream: StreamId(7), ..volume(false, ReadPolicy::Claim) };
        let mut bytes = info.to_bytes();
        // The placement stands before the four bytes of the stream.
        let at = bytes.len() - 5;
        for before in [0, 1] {
            bytes[at] = before;
            assert_eq!(VolumeInfo::from_bytes(&bytes), Ok(info.clone()));
        }
        for placement in Placement::ALL {
            let info = VolumeInfo { placement, ..info.clone() };
            assert_eq!(VolumeInfo::from_bytes(&info.to_bytes()), Ok(info));
        }
    }

    #[test]
    fn who_knows_no_rules_is_told_a_layout_that_it_refuses_where_it_would_look_in_the_wrong_groups() {
        for version in [3, 6].map(crate::Version) {
            let heard = |placement| {
                let mut bytes = Vec::new();
                let info = VolumeInfo { placement, ..volume(false, ReadPolicy::Claim) };
                info.encode(&mut Writer::of(version, &mut bytes));
                VolumeInfo::decode(&mut Reader::of(version, &bytes)).expect("a record")
            };
            for placement in [Placement::Hashed, Placement::Weighted] {
                assert_eq!(heard(placement), volume(false, ReadPolicy::Claim));
            }
            assert_eq!(heard(Placement::Periodic).layout, "raid1x3 (periodic)");
        }
    }

    #[test]
    fn a_release_before_hears_of_no_policy_that_it_does_not_know() {
        let heard = |version: u32, policy: ReadPolicy| {
            let (version, mut old) = (crate::Version(version), Vec::new());
            volume(false, policy).encode(&mut Writer::of(version, &mut old));
            VolumeInfo::decode(&mut Reader::of(version, &old)).expect("a record").read_policy
        };
        use ReadPolicy::{Claim, MaxFlowAdaptive, MaxFlowConservative, Online, Quickest, Usual};
        for policy in ReadPolicy::ALL {
            let (to_3, to_6) = match policy {
                Quickest | Usual => (Claim, policy),
                Online | MaxFlowConservative | MaxFlowAdaptive => (Claim, Quickest),
                known => (known, known),
            };
            assert_eq!([heard(3, policy), heard(6, policy), heard(7, policy)], [to_3, to_6, policy]);
        }
    }

    #[test]
    fn a_record_without_a_policy_has_the_default_one() {
        for is_snapshot in [false, true] {
            let mut bytes = volume(is_snapshot, ReadPolicy::Claim).to_bytes();
            *bytes.last_mut().expect("not empty") = u8::from(is_snapshot);
            assert_eq!(VolumeInfo::from_bytes(&bytes), Ok(volume(is_snapshot, ReadPolicy::default())));
        }
    }
}
