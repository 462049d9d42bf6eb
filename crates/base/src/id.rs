//! Identifiers. Each is a newtype, so that a brick's number is never taken for a volume's.

use core::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($int:ty), $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $int);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

id!(
    /// A storage server. Given by the directory when it joins; never used again after it is removed.
    BrickId(u32), "brick-"
);
id!(
    /// One run of a gateway process. Given by the directory when the gateway registers, so that a restarted
    /// gateway is a new one.
    GatewayId(u64), "gateway-"
);
id!(
    /// One run of a client (an `attach` process, or a gateway acting for its plain NBD clients).
    ClientId(u64), "client-"
);
/// Who may change a cluster is known wherever an id is: the transport lets only those have an operator's id who have an operator's certificate.
impl ClientId {
    /// So many that hardly any id which an earlier release draws begins with them.
    const OPERATOR: u64 = 0xffff << 48;

    /// An operator's id of these bits.
    pub const fn operator(drawn: u64) -> ClientId {
        ClientId(drawn | ClientId::OPERATOR)
    }

    /// The id of any other client.
    pub const fn plain(drawn: u64) -> ClientId {
        ClientId(drawn & u64::MAX >> 2)
    }

    pub const fn is_operator(self) -> bool {
        self.0 & ClientId::OPERATOR == ClientId::OPERATOR
    }
}
id!(
    /// A volume. Never used again after the volume is deleted.
    VolumeId(u64), "volume-"
);
id!(
    /// A version of an object. Given out once, and never again.
    ObjectVersion(u64), "version-"
);
id!(
    /// A group of bricks that hold extents of one volume.
    GroupId(u64), "group-"
);
id!(
    /// A service class with a weight. Volumes, buckets and background work belong to one; what names none is of stream 0.
    StreamId(u32), "stream-"
);

/// Streams of background work: the last numbers.
impl StreamId {
    /// What bricks do to catch up, to check their blocks and to mend them.
    pub const MAINTENANCE: StreamId = StreamId(u32::MAX);
    /// What gateways mend by the way.
    pub const REPAIR: StreamId = StreamId(u32::MAX - 1);
    /// What stores bring from their journals to its final places.
    pub const DESTAGE: StreamId = StreamId(u32::MAX - 2);
}

id!(
    /// The number of a view of a group's membership. Higher is newer.
    ViewNumber(u64), "view-"
);

/// The cluster that a disk or a peer belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ClusterId(pub [u8; 16]);

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A client's request. A retry, also through another gateway, carries the same one, so that it takes effect once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct RequestId {
    pub client: ClientId,
    /// Its sequence number, from 1 upward.
    pub sequence: u64,
}

/// Who can send and receive messages.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeId {
    Directory,
    Brick(BrickId),
    /// A run of a gateway.
    Gateway(GatewayId),
    /// A run of a client.
    Client(ClientId),
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeId::Directory => f.write_str("directory"),
            NodeId::Brick(id) => id.fmt(f),
            NodeId::Gateway(id) => id.fmt(f),
            NodeId::Client(id) => id.fmt(f),
        }
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
