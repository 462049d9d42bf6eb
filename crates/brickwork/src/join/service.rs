//! The directory's side: a few plain threads, since joining is rare. Every message is bounded and every wait has an
//! end, so that a stranger costs one thread for seconds at most.

use super::{Admission, JoinAnswer, JoinRequest, PATIENCE, receive, send};
use crate::security::token::{Grant, JoinRole};
use crate::security::{Authority, Role, Secrets};
use anyhow::{Context, Result};
use base::BrickId;
use host::refusals::refused;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Joiners served at a time; the next ones wait in the kernel's queue.
const AT_ONCE_MAX: usize = 16;
/// What a stranger is told, whatever was wrong.
const REFUSAL: &str = "refused: the token is unknown, expired, revoked, or for another role; ask for a new one \
                       (`brickwork cluster token`)";

/// Gives a new brick its id; the same nonce gives the same id.
pub type Admit = Box<dyn Fn(u64) -> Result<BrickId, String> + Send + Sync>;

/// What the service knows.
pub struct JoinService {
    /// The cluster's id, 32 hexadecimal digits.
    pub cluster: String,
    /// Where members reach the directory.
    pub directory: String,
    /// Where tokens are kept, and the authority's key in a cluster with TLS.
    pub authority: PathBuf,
    /// The directory's certificate and key, PEM; none in a cluster without TLS.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Asks the directory for a brick's id.
    pub admit: Admit,
}

/// Serves joiners on `listener` until the process ends.
pub fn serve(service: JoinService, listener: TcpListener) -> Result<()> {
    let tls = service
        .identity
        .as_ref()
        .map(|(cert, key)| server_config(&service.authority, cert, key))
        .transpose()?;
    let (service, busy) = (Arc::new(service), Arc::new(AtomicUsize::new(0)));
    std::thread::Builder::new().name("join".to_owned()).spawn(move || {
        for stream in listener.incoming() {
            let (service, tls, slot) = (service.clone(), tls.clone(), Slot::take(&busy));
            let answer = move || {
                let _slot = slot;
                if let Ok(Err(error)) = stream.map(|stream| service.answer(stream, tls)) {
                    refused(|| eprintln!("a machine that tried to join got no answer: {error:#}"));
                }
            };
            if let Err(error) = std::thread::Builder::new().name("joiner".to_owned()).spawn(answer) {
                eprintln!("cannot start a thread for a machine that joins: {error}");
            }
        }
    })?;
    Ok(())
}

/// One of the places for joiners; freed when dropped.
struct Slot(Arc<AtomicUsize>);

impl Slot {
    /// Waits for a place. Joiners have [`PATIENCE`], so a place is free soon.
    fn take(busy: &Arc<AtomicUsize>) -> Slot {
        while busy.load(Ordering::Acquire) >= AT_ONCE_MAX {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        busy.fetch_add(1, Ordering::AcqRel);
        Slot(busy.clone())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl JoinService {
    fn answer(&self, stream: TcpStream, tls: Option<Arc<ServerConfig>>) -> Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let stream = Deadline { stream, end: Instant::now() + PATIENCE };
        match tls {
            None => self.converse(stream),
            Some(tls) => self.converse(StreamOwned::new(ServerConnection::new(tls)?, stream)),
        }
    }

    fn converse(&self, mut stream: impl Read + Write) -> Result<()> {
        let request: JoinRequest = receive(&mut stream).context("no request that makes sense")?;
        let answer = match self.consider(&request) {
            Ok(admission) => JoinAnswer::Admitted(admission),
            Err(Refusal::Stranger) => JoinAnswer::Refused(REFUSAL.to_owned()),
            Err(Refusal::Trouble(error)) => {
                JoinAnswer::Refused(format!("the directory cannot admit it now: {error:#}"))
            }
        };
        Ok(send(&mut stream, &answer)?)
    }

    fn consider(&self, request: &JoinRequest) -> Result<Admission, Refusal> {
        let granted = Secrets::at(&self.authority).admits(&request.secret, request.role)?;
        let grant = granted.ok_or(Refusal::Stranger)?;
        let (role, brick) = match (request.role, grant) {
            (JoinRole::Brick, _) => {
                let admitted = (self.admit)(request.nonce);
                let id = admitted.map_err(|why| Refusal::Trouble(anyhow::anyhow!(why)))?;
                (Role::Brick(id), Some(id))
            }
            (JoinRole::Gateway, _) => (Role::Gateway, None),
            (JoinRole::Client, Grant::ClientOf(stream)) => (Role::ClientOf(stream), None),
            (JoinRole::Client, Grant::Role(JoinRole::Operator)) => (Role::Operator, None),
            (JoinRole::Client, Grant::Anything | Grant::Role(_)) => (Role::Client, None),
            (JoinRole::Operator, _) => return Err(Refusal::Stranger),
        };
        let (authority, certificate) = self.certify(request, role)?;
        Ok(Admission {
            cluster: self.cluster.clone(),
            directory: self.directory.clone(),
            brick: brick.map(|id| id.0),
            authority,
            certificate,
        })
    }

    fn certify(&self, request: &JoinRequest, role: Role) -> Result<(Option<String>, Option<String>)> {
        if self.identity.is_none() {
            return Ok((None, None));
        }
        let wanted = request.request.as_ref().context("the request has no certificate request")?;
        let authority = Authority::open(&self.authority)?;
        let certificate = authority.sign_request(wanted, role, &request.addresses)?;
        Ok((Some(authority.certificate_pem().to_owned()), Some(certificate)))
    }
}

enum Refusal {
    /// It did not prove anything, so it learns nothing.
    Stranger,
    /// It proved itself, so it may know what is wrong.
    Trouble(anyhow::Error),
}

impl From<anyhow::Error> for Refusal {
    fn from(error: anyhow::Error) -> Refusal {
        Refusal::Trouble(error)
    }
}

/// A stream that ends at a moment, however slowly its peer drips.
struct Deadline {
    stream: TcpStream,
    end: Instant,
}

impl Deadline {
    fn check(&self) -> io::Result<()> {
        if Instant::now() < self.end { Ok(()) } else { Err(io::ErrorKind::TimedOut.into()) }
    }
}

impl Read for Deadline {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.check()?;
        self.stream.read(buffer)
    }
}

impl Write for Deadline {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.check()?;
        self.stream.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// TLS for the service. The chain holds the authority's certificate too, for the joiner to compare with its token.
fn server_config(authority: &Path, certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>> {
    let read = |path: &Path| {
        CertificateDer::from_pem_file(path)
            .with_context(|| format!("cannot read the certificate {}", path.display()))
    };
    let chain = vec![read(certificate)?, read(&authority.join("ca.pem"))?];
    let key = PrivateKeyDer::from_pem_file(key)
        .with_context(|| format!("cannot read the key {}", key.display()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .context("the directory's certificate and key do not belong together")?;
    Ok(Arc::new(config))
}
