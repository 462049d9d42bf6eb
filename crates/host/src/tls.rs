//! TLS with certificates in both directions, by the cluster's own authority (rustls; TLS 1.3 only). Who is accepted is decided here;
//! what a refused stranger meets is in `transport::connection`, and how refusals are counted and logged in `refusals`.

use crate::{HostError, Security, TlsFiles, identity};
use base::{NodeId, StreamId};
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig, ServerConnection, version,
};
use std::path::Path;
use std::sync::Arc;
use wire::Version;

/// Plain bytes that may wait inside a connection to be encrypted, or encrypted to be sent.
const BUFFERED_BYTES_MAX: usize = 256 << 10;

/// What the certificates of clients name, and those of operators beside it.
const CLIENT_NAME: &str = "client.brickwork";
pub const OPERATOR_NAME: &str = "operator.brickwork";
/// Names in this domain are the cluster's own.
const DOMAIN: &str = ".brickwork";

/// Names in this domain say to which stream the requests of a certificate's owner belong.
const STREAMS_DOMAIN: &str = "streams.brickwork";

/// Both sides of a node's TLS.
#[derive(Clone, Debug)]
pub(crate) struct TlsConfigs {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl TlsConfigs {
    pub(crate) fn load(files: &TlsFiles) -> Result<TlsConfigs, HostError> {
        let provider = Arc::new(ring::default_provider());
        let roots = Arc::new(load_roots(&files.ca)?);
        let chain = load_certificates(&files.cert)?;
        let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| failed(&files.key, &error))?;
        Ok(TlsConfigs {
            client: Arc::new(client_config(&provider, &roots, chain.clone(), key.clone_key(), files)?),
            server: Arc::new(server_config(&provider, &roots, chain, key, files)?),
        })
    }

    /// The accepting side of a connection.
    pub(crate) fn accept(&self) -> Result<Connection, rustls::Error> {
        let mut connection = ServerConnection::new(self.server.clone())?;
        connection.set_buffer_limit(Some(BUFFERED_BYTES_MAX));
        Ok(connection.into())
    }

    /// The connecting side of a connection; the other must be `node`.
    pub(crate) fn connect(&self, node: NodeId) -> Result<Connection, rustls::Error> {
        let mut connection = ClientConnection::new(self.client.clone(), certificate_name(node))?;
        connection.set_buffer_limit(Some(BUFFERED_BYTES_MAX));
        Ok(connection.into())
    }
}

/// The certificate under which a node runs; none in a cluster without certificates.
pub(crate) fn own_certificate(security: &Security) -> Result<Option<CertificateDer<'static>>, HostError> {
    let Security::Tls(files) = security else { return Ok(None) };
    Ok(load_certificates(&files.cert)?.into_iter().next())
}

/// The name in the certificate of `node`. The ids of gateways' and clients' runs follow from the certificate (see [`crate::identity`]), so that only
/// their role is named.
pub(crate) fn certificate_name(node: NodeId) -> ServerName<'static> {
    let name = match node {
        NodeId::Directory => "directory.brickwork".to_owned(),
        NodeId::Brick(id) => format!("{id}.bricks.brickwork"),
        NodeId::Gateway(_) => "gateway.brickwork".to_owned(),
        NodeId::Client(id) if id.is_operator() => OPERATOR_NAME.to_owned(),
        NodeId::Client(_) => CLIENT_NAME.to_owned(),
    };
    ServerName::try_from(name).expect("a valid DNS name")
}

/// Whether the certificate that the other side has shown (and that was verified) names `node`, which speaks `version`.
pub(crate) fn names(connection: &Connection, node: NodeId, version: Version) -> bool {
    let Some([certificate, ..]) = connection.peer_certificates() else { return false };
    is_named(certificate, &certificate_name(node))
        && (version < identity::SINCE || identity::may_be(certificate, node))
}

/// Whether an NBD client may use the certificate that it has shown: it is that of a client or an operator, or of an authority that knows nothing of the
/// cluster's names. The cluster's own daemons have no business at an NBD server.
pub(crate) fn is_of_a_client(connection: &Connection) -> bool {
    let Some([certificate, ..]) = connection.peer_certificates() else { return false };
    let Ok(entity) = webpki::EndEntityCert::try_from(certificate) else { return false };
    let mut own = entity.valid_dns_names().filter(|name| name.ends_with(DOMAIN)).peekable();
    own.peek().is_none() || own.any(|name| name == CLIENT_NAME)
}

/// Whether a certificate (DER) is an operator's.
pub fn is_operators(certificate: &[u8]) -> bool {
    is_named(
        &CertificateDer::from(certificate),
        &ServerName::try_from(OPERATOR_NAME).expect("a valid DNS name"),
    )
}

fn is_named(certificate: &CertificateDer<'_>, name: &ServerName<'_>) -> bool {
    webpki::EndEntityCert::try_from(certificate)
        .is_ok_and(|entity| entity.verify_is_valid_for_subject_name(name).is_ok())
}

/// Whether a certificate (DER) is one of clients and operators.
pub fn is_of_client(certificate: &[u8]) -> bool {
    is_named(
        &CertificateDer::from(certificate),
        &ServerName::try_from(CLIENT_NAME).expect("a valid DNS name"),
    )
}

/// The name by which a certificate says that the requests of its owner belong to a stream. Only the authority gives it.
pub fn stream_name(stream: StreamId) -> String {
    format!("{stream}.{STREAMS_DOMAIN}")
}

/// The stream that a certificate (DER) names. One that names several says nothing: which is meant cannot be known.
pub fn stream_named_by(certificate: &[u8]) -> Option<StreamId> {
    let certificate = CertificateDer::from(certificate);
    let entity = webpki::EndEntityCert::try_from(&certificate).ok()?;
    let mut named = entity.valid_dns_names().filter_map(stream_of_name);
    named.next().filter(|_| named.next().is_none())
}

fn stream_of_name(name: &str) -> Option<StreamId> {
    let number = name.strip_prefix("stream-")?.split('.').next()?.parse().ok()?;
    // No name but the one that is given for the number: "stream-007" is none.
    Some(StreamId(number)).filter(|stream| stream_name(*stream) == name)
}

/// The stream that the certificate names which the other side has shown (and that was verified).
pub(crate) fn stream_of_peer(connection: &Connection) -> Option<StreamId> {
    stream_named_by(connection.peer_certificates()?.first()?)
}

fn client_config(
    provider: &Arc<CryptoProvider>,
    roots: &Arc<RootCertStore>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    files: &TlsFiles,
) -> Result<ClientConfig, HostError> {
    let verifier = WebPkiServerVerifier::builder_with_provider(roots.clone(), provider.clone())
        .build()
        .map_err(|error| failed(&files.ca, &error))?;
    ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&version::TLS13])
        .expect("the provider has TLS 1.3")
        .with_webpki_verifier(verifier)
        .with_client_auth_cert(chain, key)
        .map_err(|error| failed(&files.cert, &error))
}

fn server_config(
    provider: &Arc<CryptoProvider>,
    roots: &Arc<RootCertStore>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    files: &TlsFiles,
) -> Result<ServerConfig, HostError> {
    let verifier = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone())
        .build()
        .map_err(|error| failed(&files.ca, &error))?;
    let mut config = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&version::TLS13])
        .expect("the provider has TLS 1.3")
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .map_err(|error| failed(&files.cert, &error))?;
    // Connections live long; tickets to resume them would be memory for nothing.
    config.send_tls13_tickets = 0;
    Ok(config)
}

fn load_roots(path: &Path) -> Result<RootCertStore, HostError> {
    let mut roots = RootCertStore::empty();
    for certificate in load_certificates(path)? {
        roots.add(certificate).map_err(|error| failed(path, &error))?;
    }
    Ok(roots)
}

fn load_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, HostError> {
    let certificates: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| failed(path, &error))?;
    if certificates.is_empty() {
        return Err(failed(path, &"no certificate in it"));
    }
    Ok(certificates)
}

fn failed(path: &Path, why: &dyn std::fmt::Display) -> HostError {
    HostError::Tls { path: path.to_owned(), why: why.to_string() }
}
