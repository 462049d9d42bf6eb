//! The names of protocols: `path,order,atomicity`, after Kenchammana-Hosekote et al., section 2.2. What each part does is in
//! `volume::netraid`; what each protocol promises is told by `brickwork protocol explain`.

use crate::{DecodeError, Reader, Sight, Version, Wire, Writer, choices};
use core::fmt;
use core::str::FromStr;

choices! {
    /// Who coordinates a client's request.
    DataPath, "data path";
    /// A gateway; which one does not matter.
    Gateway = "gw",
    /// The client's own process: a gateway within `attach`.
    Direct = "direct",
    /// The gateway beside the group's first current brick.
    Coordinator = "coord",
    /// The gateway beside the brick that has the first block of the request.
    Amongst = "amongst",
}

impl DataPath {
    /// Whether bricks coordinate: gateways beside them, to which clients go.
    pub fn is_of_bricks(self) -> bool {
        matches!(self, DataPath::Coordinator | DataPath::Amongst)
    }
}

choices! {
    /// Which of the writes that want a block at the same time goes first.
    Order, "order";
    /// By stamps: a later write waits at a member behind an earlier one.
    TsWait = "ts-wait",
    /// By stamps: a write that meets another one under way is refused, and comes again.
    Ts = "ts",
    /// By nothing: clients do not write the same blocks at once.
    None = "none",
    /// By a lock server, which writers ask before.
    ServerLock = "slock",
    /// By a lock at the data brick, which a write takes as it is prepared there before all others.
    DataLock = "dlock",
    /// By the coordinator, which lets requests pass one after the other.
    Sequencer = "seq",
    /// By the coordinator, which lets writes pass one after the other; reads go past it.
    SequencerOfWrites = "seq-opt",
    /// As `ts`; a write that was refused asks the lock server, and so do others of the same rows for a while.
    Hybrid = "hybrid",
    /// By a time that the writer asks a member for, so that a wrong clock costs no refusal.
    Version = "version",
}

/// What keeps a write whole: a set of mechanisms.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Atomicity {
    /// `none`: a read may see a write that is not decided.
    None,
    /// `2pcw`: a read waits for the decision.
    TwoPhase {
        /// `read`: what members say is compared where one of them alone cannot answer a read.
        checks_reads: bool,
        /// `link`: the parts of a request that are several writes are decided together.
        links: bool,
    },
    /// `log`: a read that meets a write goes back to the version before it, unless all members have the write.
    Log {
        /// As with `2pcw`.
        checks_reads: bool,
    },
}

impl Atomicity {
    pub const ALL: [Atomicity; 7] = [
        Atomicity::TwoPhase { checks_reads: true, links: false },
        Atomicity::TwoPhase { checks_reads: false, links: false },
        Atomicity::None,
        Atomicity::Log { checks_reads: true },
        Atomicity::Log { checks_reads: false },
        Atomicity::TwoPhase { checks_reads: true, links: true },
        Atomicity::TwoPhase { checks_reads: false, links: true },
    ];

    /// Whether what members say is compared where one of them alone cannot answer a read.
    pub fn checks_reads(self) -> bool {
        matches!(self, Atomicity::TwoPhase { checks_reads: true, .. } | Atomicity::Log { checks_reads: true })
    }

    /// Whether the parts of a request are decided together.
    pub fn links(self) -> bool {
        matches!(self, Atomicity::TwoPhase { links: true, .. })
    }

    /// What a read sees of writes that are not decided.
    pub fn sight(self) -> Sight {
        match self {
            Atomicity::None => Sight::Staged,
            Atomicity::TwoPhase { .. } => Sight::Decided,
            Atomicity::Log { .. } => Sight::Committed,
        }
    }

    /// Whether each read sees what was acknowledged last or is being written, and no later one something older.
    pub fn is_linearizable(self) -> bool {
        self != Atomicity::None
    }
}

impl Default for Atomicity {
    fn default() -> Atomicity {
        Atomicity::TwoPhase { checks_reads: true, links: false }
    }
}

choices! {
    /// Where the parity of a small write is computed.
    SmallWrites, "way of small writes";
    /// At the data brick, which tells the difference: `delta`.
    Delta = "delta",
    /// At the coordinator, which reads the old data and the old parity: `rmw`.
    ReadModifyWrite = "rmw",
}

/// What the writes and reads of a volume go by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Protocol {
    pub path: DataPath,
    pub order: Order,
    pub atomicity: Atomicity,
    pub small_writes: SmallWrites,
}

impl Protocol {
    /// All that there are.
    pub fn all() -> impl Iterator<Item = Protocol> {
        let of_order = |path, order| {
            let of_atomicity = move |atomicity| {
                let with = move |small_writes| Protocol { path, order, atomicity, small_writes };
                SmallWrites::ALL.into_iter().map(with)
            };
            Atomicity::ALL.into_iter().flat_map(of_atomicity)
        };
        let of_path = move |path| Order::ALL.into_iter().flat_map(move |order| of_order(path, order));
        DataPath::ALL.into_iter().flat_map(of_path).filter(|protocol| protocol.is_possible().is_ok())
    }

    /// The same with the parts of a request decided together, where the other parts of the protocol go with that.
    pub fn linked(self) -> Option<Protocol> {
        let Atomicity::TwoPhase { checks_reads, .. } = self.atomicity else { return None };
        let linked = Protocol { atomicity: Atomicity::TwoPhase { checks_reads, links: true }, ..self };
        linked.is_possible().is_ok().then_some(linked)
    }

    /// Whether the parts go together; if not, why.
    fn is_possible(self) -> Result<(), &'static str> {
        let waits_at_gates = !matches!(self.order, Order::TsWait | Order::Ts | Order::None);
        match (self.order, self.atomicity) {
            (_, Atomicity::TwoPhase { links: true, .. })
                if self.small_writes == SmallWrites::ReadModifyWrite =>
            {
                Err(
                    "link goes with delta: under rmw the parts of a request that are in one row would refuse each other",
                )
            }
            (_, Atomicity::TwoPhase { links: true, .. }) if waits_at_gates => Err(
                "link goes with the orders ts-wait, ts and none: the parts of a request would wait for each other's locks and turns",
            ),
            (Order::Version, Atomicity::None | Atomicity::TwoPhase { .. }) => Err(
                "order version goes with log or log+read: a reader of versions goes back to the one before a write that is not complete",
            ),
            _ => Ok(()),
        }
    }

    /// The version of the daemons that serve volumes with it as it promises.
    pub fn since(self) -> Version {
        let has_versions = self.order == Order::Version || matches!(self.atomicity, Atomicity::Log { .. });
        let is_of_first = !self.path.is_of_bricks()
            && matches!(self.order, Order::TsWait | Order::Ts)
            && self.atomicity != Atomicity::None
            && self.small_writes == SmallWrites::Delta;
        match () {
            () if self == Protocol::default() => Version::OLDEST,
            () if self.atomicity.links() => Version(LINKS),
            () if has_versions => Version(VERSIONS),
            () if is_of_first => Version(FAMILY),
            () => Version(LARGER),
        }
    }
}

/// The version that brought protocols other than the default one.
const FAMILY: u32 = 8;
/// The version that brought the paths after `direct`, the orders after `ts`, atomicity `none`, and `rmw`.
const LARGER: u32 = 9;
/// The version that brought order `version` and atomicity `log`.
pub(crate) const VERSIONS: u32 = 10;
/// The version that brought `link`.
pub(crate) const LINKS: u32 = 11;

impl fmt::Display for Atomicity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Atomicity::None => "none",
            Atomicity::TwoPhase { checks_reads: false, links: false } => "2pcw",
            Atomicity::TwoPhase { checks_reads: true, links: false } => "2pcw+read",
            Atomicity::TwoPhase { checks_reads: false, links: true } => "2pcw+link",
            Atomicity::TwoPhase { checks_reads: true, links: true } => "2pcw+read+link",
            Atomicity::Log { checks_reads: false } => "log",
            Atomicity::Log { checks_reads: true } => "log+read",
        })
    }
}

impl FromStr for Atomicity {
    type Err = String;
    fn from_str(name: &str) -> Result<Atomicity, String> {
        let mut has = [false; 5];
        for part in name.split('+') {
            let at = ["none", "2pcw", "log", "read", "link"].iter().position(|known| *known == part);
            let at =
                at.ok_or_else(|| format!("'{part}' is no atomicity: there are none, 2pcw, log, read, link"))?;
            if core::mem::replace(&mut has[at], true) {
                return Err(format!("atomicity '{name}' has {part} twice"));
            }
        }
        match has {
            [true, false, false, false, false] => Ok(Atomicity::None),
            [false, true, false, checks_reads, links] => Ok(Atomicity::TwoPhase { checks_reads, links }),
            [false, false, true, checks_reads, false] => Ok(Atomicity::Log { checks_reads }),
            [true, ..] => Err(format!("atomicity '{name}' cannot be: none goes with nothing")),
            [false, false, true, _, true] => Err(format!(
                "atomicity '{name}' cannot be: a reader under log decides a write by asking for it alone, a linked one is decided by its record"
            )),
            [false, true, true, ..] => Err(format!(
                "atomicity '{name}' cannot be: under 2pcw a read waits for the decision of a write, under log it goes back to what was before"
            )),
            [false, false, false, ..] => Err(format!(
                "atomicity '{name}' lacks 2pcw or log: what a read finds to be half a write can only be mended by what a write has prepared"
            )),
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let small_writes = match self.small_writes {
            SmallWrites::Delta => "",
            SmallWrites::ReadModifyWrite => ",rmw",
        };
        f.pad(&format!("{},{},{}{small_writes}", self.path, self.order, self.atomicity))
    }
}

/// The name is of no protocol, and why.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{name}' is no protocol: {why}; `brickwork protocol list` shows those there are")]
pub struct NoProtocol {
    name: String,
    why: String,
}

impl FromStr for Protocol {
    type Err = NoProtocol;
    fn from_str(name: &str) -> Result<Protocol, NoProtocol> {
        let wrong = |why: String| NoProtocol { name: name.to_owned(), why };
        let parts: Vec<&str> = name.split(',').map(str::trim).collect();
        let (path, order, atomicity, small_writes) = match parts[..] {
            [path, order, atomicity] => (path, order, atomicity, SmallWrites::default().name()),
            [path, order, atomicity, small_writes] => (path, order, atomicity, small_writes),
            _ => {
                let count = parts.len();
                return Err(wrong(format!(
                    "it has {count} parts; path,order,atomicity are three, and a fourth may say how small writes are made"
                )));
            }
        };
        let protocol = Protocol {
            path: path.parse().map_err(|error: crate::UnknownName| wrong(error.to_string()))?,
            order: order.parse().map_err(|error: crate::UnknownName| wrong(error.to_string()))?,
            atomicity: atomicity.parse().map_err(wrong)?,
            small_writes: small_writes
                .parse()
                .map_err(|error: crate::UnknownName| wrong(error.to_string()))?,
        };
        protocol.is_possible().map(|()| protocol).map_err(|why| wrong(why.to_owned()))
    }
}

/// In the place of a number, where there was one number for each protocol: its parts follow.
const PARTS: u8 = 2;
/// The same, and how small writes are made.
const PARTS_AND_SMALL_WRITES: u8 = 3;

/// In the place of a truth value, which said whether reads are checked when there was only `2pcw`.
impl Wire for Atomicity {
    fn encode(&self, out: &mut Writer<'_>) {
        out.push(match self {
            Atomicity::TwoPhase { checks_reads, links: false } => u8::from(*checks_reads),
            Atomicity::TwoPhase { checks_reads, links: true } => 5 + u8::from(*checks_reads),
            Atomicity::None => 2,
            Atomicity::Log { checks_reads } => 3 + u8::from(*checks_reads),
        });
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Atomicity, DecodeError> {
        match u8::decode(reader)? {
            tag @ (0 | 1) => Ok(Atomicity::TwoPhase { checks_reads: tag == 1, links: false }),
            tag @ (5 | 6) => Ok(Atomicity::TwoPhase { checks_reads: tag == 6, links: true }),
            2 => Ok(Atomicity::None),
            tag @ (3 | 4) => Ok(Atomicity::Log { checks_reads: tag == 4 }),
            tag => Err(DecodeError::UnknownTag { what: "atomicity", tag }),
        }
    }
}

/// The default protocol is what it was when it was the only one; a reader that knows no other takes all for it. That is safe: what such
/// a gateway writes goes by the default order, which members keep beside any other, and it checks reads.
impl Wire for Protocol {
    fn encode(&self, out: &mut Writer<'_>) {
        if *self == Protocol::default() || !out.knows(self.since().0) {
            return out.push(1);
        }
        let is_delta = self.small_writes == SmallWrites::Delta;
        out.push(if is_delta { PARTS } else { PARTS_AND_SMALL_WRITES });
        self.path.encode(out);
        self.order.encode(out);
        self.atomicity.encode(out);
        if !is_delta {
            self.small_writes.encode(out);
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Protocol, DecodeError> {
        match u8::decode(reader)? {
            0 | 1 => Ok(Protocol::default()),
            tag @ (PARTS | PARTS_AND_SMALL_WRITES) => Ok(Protocol {
                path: Wire::decode(reader)?,
                order: Wire::decode(reader)?,
                atomicity: Wire::decode(reader)?,
                small_writes: if tag == PARTS { SmallWrites::Delta } else { Wire::decode(reader)? },
            }),
            tag => Err(DecodeError::UnknownTag { what: "protocol", tag }),
        }
    }
}

choices! {
    /// How a family's groups are made of bricks, and which of them gets an extent. What each does is in `rules::layout::placement`.
    Placement, "placement rule";
    /// Bricks are drawn by hashing, in proportion to their capacity; an extent's group is drawn by its number.
    Hashed = "hashed",
    /// Bricks are taken by the formula of replicated declustering, equally often; consecutive extents lie on consecutive groups.
    Periodic = "periodic",
    /// Bricks are drawn so that each is in as many groups as its capacity says, or one more or less; extents are placed as by `hashed`.
    Weighted = "weighted",
    ; known_to known_to
}

choices! {
    /// What a read counts on. What each promises is on the page of the architecture on clocks.
    Reads, "way to read";
    /// On the lease of the brick that serves it, which ends by that brick's clock.
    Leased = "leased",
    /// On other members that confirm, after it was asked, that the view is still in force: on no clock (`volume::netraid::confirm`).
    Confirmed = "confirmed",
}

impl Reads {
    /// The version of a directory that makes volumes which are read so.
    pub fn since(self) -> Version {
        if self == Reads::Leased { Version::OLDEST } else { Version(READS) }
    }
}

/// The version that brought confirmed reads.
pub(crate) const READS: u32 = 20;

/// The version that brought rules other than `hashed`.
const RULES: u32 = 7;

impl Placement {
    /// Whether the reader finds extents that are placed by it. One that knows no rules finds those of `weighted` volumes, which
    /// lie on groups as those of `hashed` ones do; which bricks make a group it reads in the group's view.
    pub(crate) fn is_clear_to(self, out: &Writer<'_>) -> bool {
        out.knows(RULES) || self != Placement::Periodic
    }

    /// The version of a directory that makes volumes by it.
    pub(crate) fn since(self) -> Version {
        if self == Placement::Hashed { Version::OLDEST } else { Version(RULES) }
    }
}

/// The rule itself, or what a reader that knows no rules takes all for.
fn known_to(version: Version, placement: Placement) -> Placement {
    if version >= Version(RULES) { placement } else { Placement::Hashed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_protocol_comes_back_from_its_name_and_its_bytes() {
        assert_eq!(Protocol::default().to_string(), "gw,ts-wait,2pcw+read");
        for protocol in Protocol::all() {
            assert_eq!(protocol.to_string().parse(), Ok(protocol));
            assert_eq!(Protocol::from_bytes(&protocol.to_bytes()), Ok(protocol));
        }
        for before in [0, 1] {
            assert_eq!(Protocol::from_bytes(&[before]), Ok(Protocol::default()));
        }
        assert_eq!("gw,ts,2pcw,delta".parse(), "gw,ts,2pcw".parse::<Protocol>());
        assert_eq!("gw, ts, read+2pcw".parse(), "gw,ts,2pcw+read".parse::<Protocol>());
    }

    #[test]
    fn a_reader_of_before_takes_all_for_the_default_one() {
        for protocol in Protocol::all() {
            for version in (7..LINKS).filter(|version| *version < protocol.since().0) {
                let mut bytes = Vec::new();
                protocol.encode(&mut Writer::of(Version(version), &mut bytes));
                assert_eq!(bytes, [1], "{protocol} for version {version}");
            }
        }
    }

    #[test]
    fn what_is_no_protocol_is_refused_with_the_reason() {
        let why = |name: &str| name.parse::<Protocol>().expect_err(name).to_string();
        assert!(why("gw,ts").contains("2 parts"), "{}", why("gw,ts"));
        assert!(why("gw,tsx,2pcw").contains("'tsx' is no order: there are ts-wait, ts, none"));
        assert!(why("gw,ts,3pcw").contains("'3pcw' is no atomicity: there are none, 2pcw, log, read, link"));
        assert!(why("gw,ts,none+read").contains("none goes with nothing"));
        assert!(why("gw,ts,read").contains("lacks 2pcw"));
        assert!(why("gw,ts,2pcw+log").contains("goes back"));
        assert!(why("gw,version,2pcw").contains("goes with log"));
        assert!(why("gw,slock,2pcw+link").contains("orders ts-wait, ts and none"));
        assert!(why("gw,ts,log+link").contains("decided by its record"));
        assert!(why("gw,ts,2pcw+2pcw").contains("has 2pcw twice"));
        assert!(why("cord,ts,2pcw").contains("'cord' is no data path: there are gw, direct, coord, amongst"));
    }
}
