//! The ids of gateways' and clients' runs, and which of them a certificate lets a process have.
//!
//! ```text
//!        63..62   61..34                                        33..0
//! id     00       28 bits of the SHA-256 of its certificate     drawn for each run
//!        63..48   47..20                                        19..0
//! ...    all 1    the same, of an operator's certificate        drawn
//! ```
//! A certificate therefore names the ids of its owner alone: whoever shows another one cannot have them. It is the certificate that counts and not its
//! key: the authority's signature is in it, so that nobody can try keys until the bits are those of somebody else, but by being signed 2^28 times.
//! Where there are no certificates all bits are drawn. Bricks have their id in their certificate's name, and the directory has none.

use crate::{HostError, Security, tls};
use base::{ClientId, GatewayId, NodeId};
use ring::digest::{SHA256, digest};
use rustls::pki_types::CertificateDer;
use wire::Version;

/// Releases that speak an older version draw all bits.
pub(crate) const SINCE: Version = Version(20);

const MARK_BITS: u32 = 28;

/// Where the mark of a certificate begins in an id, and which bits are above it.
#[derive(Clone, Copy)]
struct Layout {
    shift: u32,
    above: u64,
}

const USUAL: Layout = Layout { shift: 34, above: 0 };
const OF_OPERATORS: Layout = Layout { shift: 20, above: ClientId::operator(0).0 };

impl Layout {
    fn id(self, mark: u64, drawn: u64) -> u64 {
        self.above | mark << self.shift | drawn & ((1 << self.shift) - 1)
    }

    fn has(self, mark: u64, id: u64) -> bool {
        id >> self.shift == self.id(mark, 0) >> self.shift
    }
}

fn mark(certificate: &[u8]) -> u64 {
    let hash = digest(&SHA256, certificate);
    let first = hash.as_ref().first_chunk().expect("SHA-256 has 32 bytes");
    u64::from_be_bytes(*first) >> (u64::BITS - MARK_BITS)
}

/// An id for a run of a gateway.
///
/// # Errors
/// When the certificate cannot be read.
pub fn of_gateway(security: &Security, drawn: u64) -> Result<GatewayId, HostError> {
    let own = tls::own_certificate(security)?;
    Ok(GatewayId(own.map_or(ClientId::plain(drawn).0, |own| USUAL.id(mark(&own), drawn))))
}

/// An id for a run of a client.
///
/// # Errors
/// When the certificate cannot be read.
pub fn of_client(security: &Security, drawn: u64) -> Result<ClientId, HostError> {
    let own = tls::own_certificate(security)?;
    Ok(ClientId(own.map_or(ClientId::plain(drawn).0, |own| USUAL.id(mark(&own), drawn))))
}

/// An id for a command: an operator's, where the certificate lets it be one. Without certificates anybody may be.
///
/// # Errors
/// When the certificate cannot be read.
pub fn of_command(security: &Security, drawn: u64) -> Result<ClientId, HostError> {
    match tls::own_certificate(security)? {
        None => Ok(ClientId::operator(drawn)),
        Some(own) if tls::is_operators(&own) => Ok(ClientId(OF_OPERATORS.id(mark(&own), drawn))),
        Some(_) => of_client(security, drawn),
    }
}

/// Whether the owner of a certificate may have this id.
pub(crate) fn may_be(certificate: &CertificateDer<'_>, node: NodeId) -> bool {
    match node {
        NodeId::Directory | NodeId::Brick(_) => true,
        NodeId::Gateway(id) => USUAL.has(mark(certificate), id.0),
        NodeId::Client(id) if id.is_operator() => OF_OPERATORS.has(mark(certificate), id.0),
        NodeId::Client(id) => USUAL.has(mark(certificate), id.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_has_ids_that_no_other_has() {
        let (ours, other) = (CertificateDer::from(vec![1; 300]), CertificateDer::from(vec![2; 300]));
        for drawn in [0, 1, u64::MAX] {
            let gateway = NodeId::Gateway(GatewayId(USUAL.id(mark(&ours), drawn)));
            let client = NodeId::Client(ClientId(USUAL.id(mark(&ours), drawn)));
            let operator = ClientId(OF_OPERATORS.id(mark(&ours), drawn));
            assert!(operator.is_operator() && !ClientId(USUAL.id(mark(&ours), drawn)).is_operator());
            for node in [gateway, client, NodeId::Client(operator)] {
                assert!(may_be(&ours, node) && !may_be(&other, node), "{node}");
            }
        }
        assert!(!may_be(&ours, NodeId::Gateway(GatewayId(1 << 62 | USUAL.id(mark(&ours), 5)))));
    }
}
