//! The cluster's own certificate authority (ECDSA P-256) and the certificates it signs.
//!
//! A node is known by the DNS name in its certificate: `brick-3.bricks.brickwork`, `directory.brickwork`,
//! `gateway.brickwork`, `client.brickwork` (clients and operators). Only the authority chooses these names; a machine that
//! joins may merely add addresses under which NBD clients reach it. Certificates do not expire: an authority is
//! replaced by a new `cluster init`, never silently by a date.

use super::files;
use anyhow::{Context, Result, bail};
use base::BrickId;
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
    /// Any run of a client, and an operator's commands.
    Client,
}

impl Role {
    /// The name that says so in a certificate.
    pub fn name(self) -> String {
        match self {
            Role::Directory => format!("directory.{DOMAIN}"),
            Role::Brick(id) => format!("{id}.bricks.{DOMAIN}"),
            Role::Gateway => format!("gateway.{DOMAIN}"),
            Role::Client => format!("client.{DOMAIN}"),
        }
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
        let mut params = CertificateParams::new(vec![role.name()])?;
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
        for name in ["directory.brickwork", "Brick-1.bricks.BRICKWORK.", "brickwork", "a b", ""] {
            assert!(authority.sign_request(&request, Role::Gateway, &[name.to_owned()]).is_err(), "{name}");
        }
        let addresses = ["10.0.0.3".to_owned(), "nbd.example.org".to_owned()];
        assert!(authority.sign_request(&request, Role::Gateway, &addresses).is_ok());
        assert!(authority.sign_request("noise", Role::Gateway, &[]).is_err());
    }
}
