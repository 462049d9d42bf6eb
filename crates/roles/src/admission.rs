//! Who may say what to whom, and about whose data: the one table by which every machine, in both worlds, refuses a message before it looks at it.
//!
//! The sender is what the transport has authenticated, so that a certificate of one role speaks for that role only. What a sender says of itself it says
//! under its own id. What follows needs more than the message and is decided where it is known: which members a group has (`view`), and what a
//! brick may say of where fragments are ([`objects::object`]).

use base::NodeId;
use wire::{AdminRequest, IndexRequest, Message};

/// What a node is to others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    Directory,
    Brick,
    Gateway,
    Client,
    /// A client who may change the cluster.
    Operator,
}

impl Role {
    pub fn of(node: NodeId) -> Role {
        match node {
            NodeId::Directory => Role::Directory,
            NodeId::Brick(_) => Role::Brick,
            NodeId::Gateway(_) => Role::Gateway,
            NodeId::Client(client) if client.is_operator() => Role::Operator,
            NodeId::Client(_) => Role::Client,
        }
    }

    /// Whether whoever has this role may do what `other` may.
    fn is(self, other: Role) -> bool {
        self == other || (self, other) == (Role::Operator, Role::Client)
    }
}

/// Why a message is not looked at. For people, and for whoever asked and waits for an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refused {
    #[error(
        "this changes the cluster, which takes an operator's certificate: `brickwork cluster token --role operator` prints a token for `brickwork client init`"
    )]
    NotAnOperator,
    #[error("a {from:?} does not say this to a {to:?}")]
    NotItsWord { from: Role, to: Role },
    #[error("it speaks in the name of another node")]
    NotItself,
}

/// Whether a node whose role is `to` looks at what `from` says.
///
/// # Errors
/// Why it does not.
pub fn admit(to: Role, from: NodeId, message: &Message) -> Result<(), Refused> {
    admit_as(Role::of(from), to, from, message)
}

/// The same where whoever comes as a client may administer: in clusters without certificates.
///
/// # Errors
/// Why it does not.
pub fn admit_anyone(to: Role, from: NodeId, message: &Message) -> Result<(), Refused> {
    let role = Role::of(from);
    admit_as(if role == Role::Client { Role::Operator } else { role }, to, from, message)
}

fn admit_as(role: Role, to: Role, from: NodeId, message: &Message) -> Result<(), Refused> {
    let (senders, own) = row(message);
    let may_say = |(sender, receiver): &(Role, Role)| role.is(*sender) && to == *receiver;
    match () {
        () if !senders.iter().any(may_say) => match senders {
            [(Role::Operator, _)] if role == Role::Client => Err(Refused::NotAnOperator),
            _ => Err(Refused::NotItsWord { from: role, to }),
        },
        () if own.is_some_and(|own| own != from) => Err(Refused::NotItself),
        () => Ok(()),
    }
}

use Role::{Brick, Client, Directory, Gateway, Operator};

type Ways = &'static [(Role, Role)];
const OF_GATEWAYS: Ways = &[(Gateway, Brick)];
/// What whoever coordinates asks bricks: gateways, and bricks that catch up or look after fragments.
const OF_COORDINATORS: Ways = &[(Gateway, Brick), (Brick, Brick)];
const TO_COORDINATORS: Ways = &[(Brick, Gateway), (Brick, Brick)];
const AMONG_BRICKS: Ways = &[(Brick, Brick)];
const TO_DIRECTORY: Ways = &[(Brick, Directory)];
const OF_DIRECTORY: Ways = &[(Directory, Brick)];
const TO_GATEWAYS: Ways = &[(Brick, Gateway)];
const TO_CLIENTS: Ways = &[(Gateway, Client)];
const OF_CLIENTS: Ways = &[(Client, Gateway)];

/// Who says it to whom; and which node alone, where it says something of a node.
#[expect(clippy::too_many_lines, reason = "one table of all messages")]
fn row(message: &Message) -> (Ways, Option<NodeId>) {
    let ways: Ways = match message {
        Message::Prepare { .. }
        | Message::Lock { .. }
        | Message::Unlock { .. }
        | Message::AreDecided { .. }
        | Message::Elsewhere { .. }
        | Message::Allocation { .. } => OF_GATEWAYS,
        Message::Read { .. }
        | Message::Repair { .. }
        | Message::Cancel { .. }
        | Message::PutFragment { .. }
        | Message::GetFragment { .. }
        | Message::CheckFragment { .. } => OF_COORDINATORS,
        // The directory settles what is in doubt before it begins a view.
        Message::Query { .. } | Message::Decide { .. } => {
            &[(Gateway, Brick), (Brick, Brick), (Directory, Brick)]
        }
        Message::QueryDone { .. } => &[(Brick, Gateway), (Brick, Brick), (Brick, Directory)],
        Message::Prepared { .. }
        | Message::Locked { .. }
        | Message::AreDecidedDone { .. }
        | Message::AllocationDone { .. } => TO_GATEWAYS,
        Message::ReadDone { .. }
        | Message::Repaired { .. }
        | Message::Cancelled { .. }
        | Message::Waiting { .. }
        | Message::FragmentPut { .. }
        | Message::Fragment { .. } => TO_COORDINATORS,
        Message::Doubtful { .. } => &[(Brick, Gateway), (Brick, Directory)],
        Message::Inventory { .. }
        | Message::InventoryDone { .. }
        | Message::GetCompletions { .. }
        | Message::CompletionsDone { .. }
        | Message::Claims { .. } => AMONG_BRICKS,
        Message::Fenced { .. } | Message::Resolved { .. } | Message::Activated { .. } => TO_DIRECTORY,
        Message::Heartbeat { brick, .. }
        | Message::Renew { brick, .. }
        | Message::Yielded { brick, .. }
        | Message::Recounted { brick, .. }
        | Message::Held { brick, .. } => {
            return (TO_DIRECTORY, Some(NodeId::Brick(*brick)));
        }
        Message::HeartbeatDone { .. }
        | Message::Renewed { .. }
        | Message::Yield { .. }
        | Message::HeldDone { .. }
        | Message::Recount { .. }
        | Message::Fence { .. }
        | Message::Resolve { .. }
        | Message::Activate { .. }
        | Message::DropVersions { .. } => OF_DIRECTORY,
        Message::Index { request, .. } => of_index(request),
        Message::GetBricks { .. } => &[(Gateway, Directory), (Brick, Directory)],
        Message::IndexDone { .. } | Message::Bricks { .. } => &[(Directory, Gateway), (Directory, Brick)],
        Message::Register { gateway, .. } => {
            return (&[(Gateway, Directory)], Some(NodeId::Gateway(*gateway)));
        }
        Message::GetView { .. } | Message::Observed { .. } => &[(Gateway, Directory)],
        Message::Registered { .. } | Message::Published { .. } => &[(Directory, Gateway)],
        Message::OpenVolume { .. } => &[(Gateway, Directory), (Client, Directory)],
        Message::VolumeOpened { .. } => &[(Directory, Gateway), (Directory, Client)],
        Message::Admin { request, .. } => of_administration(request),
        Message::AdminDone { .. } => &[(Directory, Gateway), (Directory, Client)],
        Message::Attach { .. } => OF_CLIENTS,
        Message::Request { id, .. } => return (OF_CLIENTS, Some(NodeId::Client(id.client))),
        Message::Attached { .. } | Message::Reply { .. } => TO_CLIENTS,
        Message::Ping { .. } => {
            &[(Client, Gateway), (Client, Directory), (Gateway, Directory), (Brick, Directory)]
        }
        Message::Pong { .. } => {
            &[(Gateway, Client), (Directory, Client), (Directory, Gateway), (Directory, Brick)]
        }
    };
    (ways, None)
}

fn of_index(request: &IndexRequest) -> Ways {
    match request {
        IndexRequest::Open { .. }
        | IndexRequest::Commit { .. }
        | IndexRequest::Look { .. }
        | IndexRequest::Remove { .. }
        | IndexRequest::List { .. }
        | IndexRequest::Hold { .. }
        | IndexRequest::Abandon { .. }
        | IndexRequest::Patch { .. } => &[(Gateway, Directory)],
        IndexRequest::Gone { .. } | IndexRequest::Manifest { .. } => {
            &[(Gateway, Directory), (Brick, Directory)]
        }
        IndexRequest::Amend { .. } => TO_DIRECTORY,
    }
}

fn of_administration(request: &AdminRequest) -> Ways {
    match request {
        AdminRequest::ListVolumes { .. } => &[(Client, Directory), (Gateway, Directory)],
        AdminRequest::VolumeMap { .. }
        | AdminRequest::Status { .. }
        | AdminRequest::ListEvents { .. }
        | AdminRequest::ListStreams => &[(Client, Directory)],
        AdminRequest::CreateVolume { .. }
        | AdminRequest::DeleteVolume { .. }
        | AdminRequest::ResizeVolume { .. }
        | AdminRequest::SetReadOnly { .. }
        | AdminRequest::SetReadPolicy { .. }
        | AdminRequest::SetIoTimeout { .. }
        | AdminRequest::SetReads { .. }
        | AdminRequest::Snapshot { .. }
        | AdminRequest::Clone { .. }
        | AdminRequest::Rollback { .. }
        | AdminRequest::EvictBrick { .. }
        | AdminRequest::ReadmitBrick { .. }
        | AdminRequest::ReplaceBrick { .. }
        | AdminRequest::SetCare { .. }
        | AdminRequest::Scrub
        | AdminRequest::AdmitBrick { .. }
        | AdminRequest::ForgetBrick { .. }
        | AdminRequest::ForgetLost { .. }
        | AdminRequest::MayEvict { .. }
        | AdminRequest::CreateStream { .. }
        | AdminRequest::SetStream { .. }
        | AdminRequest::DeleteStream { .. }
        | AdminRequest::SetVolumeStream { .. }
        | AdminRequest::SetBucketStream { .. }
        | AdminRequest::SetPlaces { .. } => &[(Operator, Directory)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{BrickId, ClientId, GatewayId, RequestId, VolumeId};
    use wire::{Io, ObjectName, Service};

    const BRICK: NodeId = NodeId::Brick(BrickId(3));
    const GATEWAY: NodeId = NodeId::Gateway(GatewayId(4));
    const CLIENT: NodeId = NodeId::Client(ClientId(5));

    fn operator() -> NodeId {
        NodeId::Client(ClientId::operator(5))
    }

    fn senders(to: Role, message: &Message) -> Vec<NodeId> {
        let all = [NodeId::Directory, BRICK, GATEWAY, CLIENT, operator()];
        all.into_iter().filter(|from| admit(to, *from, message).is_ok()).collect()
    }

    #[test]
    fn who_destroys_or_moves_objects_is_who_knows_of_them() {
        assert_eq!(senders(Brick, &Message::DropVersions { versions: Vec::new() }), [NodeId::Directory]);
        let ask = |request| Message::Index { operation: 1, request: Box::new(request) };
        let version = base::ObjectVersion(7);
        let amend = ask(IndexRequest::Amend { version, was: 0, manifest: Vec::new() });
        assert_eq!(senders(Directory, &amend), [BRICK]);
        let name = ObjectName { bucket: "abc".to_owned(), key: "k".to_owned() };
        assert_eq!(senders(Directory, &ask(IndexRequest::Remove { name, version })), [GATEWAY]);
    }

    #[test]
    fn whoever_changes_the_cluster_is_an_operator() {
        let ask = |request| Message::Admin { operation: 1, request };
        let evict = ask(AdminRequest::EvictBrick { brick: BrickId(1) });
        assert_eq!(senders(Directory, &evict), [operator()]);
        assert_eq!(senders(Directory, &ask(AdminRequest::AdmitBrick { nonce: 1 })), [operator()]);
        assert_eq!(admit(Directory, CLIENT, &evict), Err(Refused::NotAnOperator));
        assert_eq!(admit_anyone(Directory, CLIENT, &evict), Ok(()));
        assert!(admit_anyone(Directory, GATEWAY, &evict).is_err());
        for look in [AdminRequest::STATUS, AdminRequest::ListEvents { after: 0, most: 50 }] {
            assert_eq!(senders(Directory, &ask(look)), [CLIENT, operator()]);
        }
    }

    #[test]
    fn nobody_speaks_in_the_name_of_another() {
        let request = |client| Message::Request {
            id: RequestId { client, sequence: 1 },
            floor: 1,
            volume: VolumeId(1),
            io: Io::Write { offset: 0 },
            service: Service::default(),
        };
        assert_eq!(admit(Gateway, CLIENT, &request(ClientId(5))), Ok(()));
        assert_eq!(admit(Gateway, CLIENT, &request(ClientId(6))), Err(Refused::NotItself));
        let counted = |brick| Message::Recounted {
            brick: BrickId(brick),
            known: 0,
            groups: Vec::new(),
            families: Vec::new(),
            time: base::ClusterTime::FIRST,
            from: None,
            next: None,
        };
        assert_eq!(admit(Directory, BRICK, &counted(3)), Ok(()));
        assert_eq!(admit(Directory, BRICK, &counted(4)), Err(Refused::NotItself));
    }

    #[test]
    fn what_bricks_are_told_comes_from_those_who_may_tell_them() {
        let group = base::GroupId(1);
        let resolve = Message::Resolve { group, number: base::ViewNumber(1), writes: Vec::new(), run: 0 };
        assert_eq!(senders(Brick, &resolve), [NodeId::Directory]);
        assert_eq!(senders(Brick, &Message::Claims { claims: Vec::new() }), [BRICK]);
        assert_eq!(senders(Brick, &Message::Unlock { holders: Vec::new() }), [GATEWAY]);
        assert_eq!(senders(Gateway, &Message::Ping { nonce: 1 }), [CLIENT, operator()]);
        assert_eq!(senders(Client, &Message::Ping { nonce: 1 }), []);
    }
}
