//! The directory's side: a few plain threads, since joining is rare. Every message is bounded and every wait has an
//! end, so that a stranger costs one thread for seconds at most. Who is let in is decided in `host::admission`.

use super::{Admission, JoinAnswer, JoinRequest, PATIENCE, receive, send};
use crate::security::token::{Grant, JoinRole};
use crate::security::{Authority, Role, Secrets};
use anyhow::{Context, Result};
use base::BrickId;
use host::admission::{Bound, Bounds};
use host::refusals::refused;
use host::threads::{self, Caller};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Joiners at a time: a rack of machines that are set up together. Those who have shown a valid secret are never sent away.
const BOUNDS: Bounds = Bounds {
    strangers: Bound { in_all: 64, per_origin: 16, gives_way: true },
    clients: Bound { in_all: 64, per_origin: 32, gives_way: false },
    members: Bound { in_all: 0, per_origin: 0, gives_way: false },
};
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
    let answer = move |caller| {
        if let Err(error) = service.answer(caller, tls.clone()) {
            refused(|| eprintln!("a machine that tried to join got no answer: {error:#}"));
        }
    };
    threads::serve("join", listener, BOUNDS, PATIENCE, answer)?;
    Ok(())
}

impl JoinService {
    fn answer(&self, mut caller: Caller, tls: Option<Arc<ServerConfig>>) -> Result<()> {
        match tls {
            None => {
                let request = receive(&mut caller).context("no request that makes sense")?;
                let answer = self.reply(&request, &mut caller);
                Ok(send(&mut caller, &answer)?)
            }
            Some(tls) => {
                let mut stream = StreamOwned::new(ServerConnection::new(tls)?, caller);
                let request = receive(&mut stream).context("no request that makes sense")?;
                let answer = self.reply(&request, &mut stream.sock);
                Ok(send(&mut stream, &answer)?)
            }
        }
    }

    fn reply(&self, request: &JoinRequest, caller: &mut Caller) -> JoinAnswer {
        let admitted = self.granted(request).and_then(|grant| {
            // It has proved itself, and nobody who calls takes its place from here on.
            caller.is_known().map_err(anyhow::Error::from)?;
            self.consider(request, grant)
        });
        match admitted {
            Ok(admission) => JoinAnswer::Admitted(admission),
            Err(Refusal::Stranger) => JoinAnswer::Refused(REFUSAL.to_owned()),
            Err(Refusal::Trouble(error)) => {
                JoinAnswer::Refused(format!("the directory cannot admit it now: {error:#}"))
            }
        }
    }

    fn granted(&self, request: &JoinRequest) -> Result<Grant, Refusal> {
        let granted = Secrets::at(&self.authority).admits(&request.secret, request.role)?;
        granted.ok_or(Refusal::Stranger)
    }

    fn consider(&self, request: &JoinRequest, grant: Grant) -> Result<Admission, Refusal> {
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
