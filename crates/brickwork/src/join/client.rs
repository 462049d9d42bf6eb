//! The joiner's side: trusts exactly the authority that the token pins.

use super::{Admission, JoinAnswer, JoinRequest, PATIENCE, receive, send};
use crate::security::{Token, sha256};
use anyhow::{Context, Error, Result, anyhow, bail};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
    StreamOwned,
};
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Whoever calls beside a crowd from the same address may have to make way before it has said who it is, and calls again.
const TRIES: u32 = 10;
/// Before the second try; each time it is so much longer.
const PAUSE: Duration = Duration::from_millis(20);

/// The request did not get there as a whole, so that nothing was done.
#[derive(Debug)]
struct NotAsked;

impl fmt::Display for NotAsked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the service does not prove to be the cluster that the token names, or hung up")
    }
}

fn was_hung_up_on(error: &Error) -> bool {
    let kind = error.root_cause().downcast_ref::<io::Error>().map(io::Error::kind);
    let hung_up = [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
    error.downcast_ref::<NotAsked>().is_some() && kind.is_some_and(|kind| hung_up.contains(&kind))
}

/// Asks the join service that `token` names for admission.
pub fn join(token: &Token, request: &JoinRequest) -> Result<Admission> {
    let mut tries = 1;
    let admission = loop {
        let stream = connect(&token.join)?;
        let admission = match &token.authority {
            None => converse(stream, request),
            Some(fingerprint) => converse(secure(stream, fingerprint)?, request),
        };
        match admission {
            Err(error) if tries < TRIES && was_hung_up_on(&error) => thread::sleep(PAUSE * tries),
            admission => break admission,
        }
        tries += 1;
    };
    let admission = admission.with_context(|| format!("joining through {} failed", token.join))?;
    if admission.cluster != token.cluster {
        bail!("{} belongs to cluster {}, and the token to {}", token.join, admission.cluster, token.cluster);
    }
    Ok(admission)
}

fn connect(address: &str) -> Result<TcpStream> {
    let hint =
        || format!("cannot reach the join service at {address}; is `brickwork directory` running there?");
    let mut last = None;
    for address in address.to_socket_addrs().with_context(hint)? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => {
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                return Ok(stream);
            }
            Err(error) => last = Some(error),
        }
    }
    Err(last.map_or_else(|| anyhow!("the name has no address"), Into::into)).with_context(hint)
}

fn converse(mut stream: impl Read + Write, request: &JoinRequest) -> Result<Admission> {
    send(&mut stream, request).context(NotAsked)?;
    match receive(&mut stream).context("the service gave no answer")? {
        JoinAnswer::Admitted(admission) => Ok(admission),
        JoinAnswer::Refused(why) => bail!("{why}"),
    }
}

fn secure(stream: TcpStream, fingerprint: &str) -> Result<StreamOwned<ClientConnection, TcpStream>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Pinned { fingerprint: fingerprint.to_owned(), provider: provider.clone() };
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    let name = ServerName::try_from("directory.brickwork")?;
    Ok(StreamOwned::new(ClientConnection::new(Arc::new(config), name)?, stream))
}

/// Trusts a chain whose root has this fingerprint, and checks it as any chain under that root.
#[derive(Debug)]
struct Pinned {
    fingerprint: String,
    provider: Arc<rustls::crypto::CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let pinned =
            chain.iter().find(|certificate| crate::security::hex(&sha256(certificate)) == self.fingerprint);
        let root = pinned.ok_or(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer))?;
        let mut roots = RootCertStore::empty();
        roots.add(root.clone().into_owned())?;
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), self.provider.clone())
            .build()
            .map_err(|error| rustls::Error::General(error.to_string()))?
            .verify_server_cert(leaf, &[], name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("only TLS 1.3 is spoken here".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
