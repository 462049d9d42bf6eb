//! The cluster's own certificate authority (ECDSA P-256) and the certificates it signs.
//!
//! A node is known by the DNS name in its certificate: `brick-3.bricks.brickwork`, `directory.brickwork`,
//! `gateway.brickwork`, `client.brickwork`. An operator's certificate names `operator.brickwork` beside `client.brickwork`, and a client's may also
//! name the stream of its requests, `stream-12.streams.brickwork`. Only the authority chooses these names; a machine that
//! joins may merely add addresses under which NBD clients reach it. Certificates do not expire: an authority is
//! replaced by a new `cluster init`, never silently by a date.

use super::files;
use anyhow::{Context, Result, bail};
use base::{BrickId, StreamId};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DnType, ExtendedKeyUsagePurpose,
    IsCa, Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, SanType,
};
use std::net::IpAddr;
use std::path::Path;

/// Names under this domain say who a node is.
const DOMAIN: &str = "brickwork";

/// What a certificate lets its owner be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    Directory,
    Brick(BrickId),
    /// Any run of a gateway.
    Gateway,
    /// Any run of a client, and commands that change nothing.
    Client,
    /// The same, and commands that change the cluster.
    Operator,
    /// The same, of whom all requests belong to this stream, whichever streams their volumes belong to.
    ClientOf(StreamId),
}

impl Role {
    /// The name that says so in a certificate.
    pub fn name(self) -> String {
        match self {
            Role::Directory => format!("directory.{DOMAIN}"),
            Role::Brick(id) => format!("{id}.bricks.{DOMAIN}"),
            Role::Gateway => format!("gateway.{DOMAIN}"),
            Role::Client | Role::ClientOf(_) | Role::Operator => format!("client.{DOMAIN}"),
        }
    }

    /// All names that its certificate has of the cluster's own.
    fn names(self) -> Vec<String> {
        let more = match self {
            Role::ClientOf(stream) => Some(host::stream_name(stream)),
            Role::Operator => Some(host::OPERATOR_NAME.to_owned()),
            Role::Directory | Role::Brick(_) | Role::Gateway | Role::Client => None,
        };
        std::iter::once(self.name()).chain(more).collect()
    }
}

/// The authority: its certificate and its key.
pub struct Authority {
    certificate_pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Makes an authority for the cluster `name` and writes `ca.pem` and `ca.key` into `dir`.
    pub fn create(dir: &Path, name: &str) -> Result<Authority> {
        let key = KeyPair::generate().context("cannot generate the authority's key")?;
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, format!("Brickwork authority of {name}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate_pem =
            params.self_signed(&key).context("cannot sign the authority's certificate")?.pem();
        files::replace(&dir.join("ca.key"), key.serialize_pem().as_bytes())?;
        files::replace(&dir.join("ca.pem"), certificate_pem.as_bytes())?;
        Authority::open(dir)
    }

    /// Reads the authority that [`create`](Authority::create) wrote into `dir`.
    pub fn open(dir: &Path) -> Result<Authority> {
        let certificate_pem = files::read(&dir.join("ca.pem"))?;
        let key = KeyPair::from_pem(&files::read(&dir.join("ca.key"))?)
            .with_context(|| format!("{} is not a private key", dir.join("ca.key").display()))?;
        let issuer = Issuer::from_ca_cert_pem(&certificate_pem, key)
            .with_context(|| format!("{} is not a certificate", dir.join("ca.pem").display()))?;
        Ok(Authority { certificate_pem, issuer })
    }

    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// SHA-256 of its certificate (DER): what a join token pins.
    pub fn fingerprint(&self) -> Result<[u8; 32]> {
        let der = first_certificate(&self.certificate_pem)?;
        Ok(super::sha256(&der))
    }

    /// Makes a key and its certificate, writes `<stem>.key`, `<stem>.pem` and `ca.pem` into `dir`.
    pub fn issue(&self, dir: &Path, stem: &str, role: Role, addresses: &[String]) -> Result<()> {
        let key =
            KeyPair::generate().with_context(|| format!("cannot generate the key of {}", role.name()))?;
        let certificate = self.sign(&key, role, addresses)?;
        files::make_dir(dir)?;
        files::replace(&dir.join(format!("{stem}.key")), key.serialize_pem().as_bytes())?;
        files::replace(&dir.join(format!("{stem}.pem")), certificate.as_bytes())?;
        files::replace(&dir.join("ca.pem"), self.certificate_pem.as_bytes())
    }

    /// Signs a request made elsewhere. Of the request only its key counts: names are the authority's to give.
    pub fn sign_request(&self, request_pem: &str, role: Role, addresses: &[String]) -> Result<String> {
        let request = CertificateSigningRequestParams::from_pem(request_pem)
            .context("the certificate request is malformed or not signed by its own key")?;
        self.sign(&request.public_key, role, addresses)
    }

    fn sign(&self, key: &impl PublicKeyData, role: Role, addresses: &[String]) -> Result<String> {
        let mut params = CertificateParams::new(role.names())?;
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, role.name());
        for address in addresses {
            params.subject_alt_names.push(address_name(address)?);
        }
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        Ok(params.signed_by(key, &self.issuer).with_context(|| format!("cannot sign {}", role.name()))?.pem())
    }
}

/// A new private key, PEM.
pub fn new_key() -> Result<String> {
    Ok(KeyPair::generate().context("cannot generate a key")?.serialize_pem())
}

/// A request, PEM, for the certificate of a key. It names nobody: names are the authority's to give.
pub fn request(key_pem: &str) -> Result<String> {
    let key = KeyPair::from_pem(key_pem).context("the key file does not hold a private key")?;
    let params = CertificateParams::default();
    Ok(params.serialize_request(&key).context("cannot make the certificate request")?.pem()?)
}

/// The first certificate of a PEM text, DER.
pub fn first_certificate(pem: &str) -> Result<Vec<u8>> {
    use rustls::pki_types::{CertificateDer, pem::PemObject};
    Ok(CertificateDer::from_pem_slice(pem.as_bytes())
        .context("there is no certificate in the PEM text")?
        .to_vec())
}

/// An address as a certificate's name. A name in the cluster's own domain would make a stranger a node.
fn address_name(address: &str) -> Result<SanType> {
    if let Ok(ip) = address.parse::<IpAddr>() {
        return Ok(SanType::IpAddress(ip));
    }
    let name = address.trim_end_matches('.').to_ascii_lowercase();
    if name == DOMAIN || name.ends_with(&format!(".{DOMAIN}")) {
        bail!("'{address}' is a name of the cluster itself and cannot be asked for");
    }
    let valid = !name.is_empty()
        && name.len() <= 253
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.');
    if !valid {
        bail!("'{address}' is neither an IP address nor a host name");
    }
    Ok(SanType::DnsName(name.try_into()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn private_files_are_their_owners_only() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let authority = Authority::create(dir.path(), "test").expect("authority");
        authority.issue(dir.path(), "directory", Role::Directory, &[]).expect("certificate");
        for file in ["ca.key", "ca.pem", "directory.key", "directory.pem"] {
            let mode = dir.path().join(file).metadata().expect("file").permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{file}");
        }
    }

    #[test]
    fn a_request_cannot_choose_a_name_of_the_cluster() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let authority = Authority::create(dir.path(), "test").expect("authority");
        let request = request(&new_key().expect("key")).expect("request");
        let names = [
            "directory.brickwork",
            "operator.brickwork",
            "Brick-1.bricks.BRICKWORK.",
            "stream-1.streams.brickwork",
        ];
        for name in names.into_iter().chain(["Stream-1.Streams.Brickwork.", "brickwork", "a b", ""]) {
            for role in [Role::Gateway, Role::Client, Role::Operator] {
                assert!(authority.sign_request(&request, role, &[name.to_owned()]).is_err(), "{name}");
            }
        }
        let addresses = ["10.0.0.3".to_owned(), "nbd.example.org".to_owned()];
        assert!(authority.sign_request(&request, Role::Gateway, &addresses).is_ok());
        assert!(authority.sign_request("noise", Role::Gateway, &[]).is_err());
    }

    /// An authority, and the stream that a certificate names which it has signed.
    fn named(request: &str, role: Role) -> Option<StreamId> {
        let dir = tempfile::tempdir().expect("temporary directory");
        let authority = Authority::create(dir.path(), "test").expect("authority");
        let address = ["nbd.example.org".to_owned()];
        let certificate = authority.sign_request(request, role, &address).expect("signed");
        host::stream_named_by(&first_certificate(&certificate).expect("PEM"))
    }

    #[test]
    fn a_client_s_certificate_names_its_stream_and_others_name_none() {
        let request = request(&new_key().expect("key")).expect("request");
        for stream in [0, 12, u32::MAX].map(StreamId) {
            assert_eq!(named(&request, Role::ClientOf(stream)), Some(stream));
        }
        for role in [Role::Client, Role::Operator, Role::Gateway, Role::Directory, Role::Brick(BrickId(12))] {
            assert_eq!(named(&request, role), None, "{role:?}");
        }
    }

    #[test]
    fn only_an_operators_certificate_is_one() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let authority = Authority::create(dir.path(), "test").expect("authority");
        let request = request(&new_key().expect("key")).expect("request");
        let is_operators = |role| {
            let certificate = authority.sign_request(&request, role, &[]).expect("signed");
            host::is_operators(&first_certificate(&certificate).expect("PEM"))
        };
        assert!(is_operators(Role::Operator));
        let others = [Role::Client, Role::ClientOf(StreamId(1)), Role::Gateway, Role::Directory];
        assert!(!others.into_iter().any(is_operators) && !is_operators(Role::Brick(BrickId(1))));
    }

    #[test]
    fn a_stream_that_a_certificate_request_names_is_not_given() {
        let key = KeyPair::generate().expect("key");
        let params = CertificateParams::new(vec![host::stream_name(StreamId(3))]).expect("names");
        let request = params.serialize_request(&key).expect("request").pem().expect("PEM");
        assert_eq!(named(&request, Role::Client), None);
        assert_eq!(named(&request, Role::ClientOf(StreamId(4))), Some(StreamId(4)));
    }

    /// No authority of ours signs such certificates; `nbd_tls` may name another one.
    #[test]
    fn a_certificate_of_two_streams_or_of_a_misspelt_one_names_none() {
        let key = KeyPair::generate().expect("key");
        let of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let params = CertificateParams::new(names).expect("names");
            host::stream_named_by(params.self_signed(&key).expect("signed").der())
        };
        let (three, four) = ("stream-3.streams.brickwork", "stream-4.streams.brickwork");
        assert_eq!(of(&["client.brickwork", three]), Some(StreamId(3)));
        assert_eq!(of(&["client.brickwork", three, four]), None);
        for name in
            ["stream-03.streams.brickwork", "stream-+3.streams.brickwork", "stream-3.streams.brickwork.org"]
        {
            assert_eq!(of(&[name]), None, "{name}");
        }
        assert_eq!(host::stream_named_by(b"noise"), None);
    }
}
