//! What several tests need.

// Each test file is a program of its own, and none uses all of this.
#![allow(dead_code, unreachable_pub, missing_docs)]

pub mod daemon;
pub mod small_disk;

use host::{Security, TlsFiles};
use std::path::Path;

/// Certificates of one authority, as PEM files.
pub struct Authority {
    ca: rcgen::CertifiedIssuer<'static, rcgen::KeyPair>,
    folder: tempfile::TempDir,
}

impl Authority {
    pub fn new() -> Authority {
        let mut params = rcgen::CertificateParams::new(vec![]).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        let ca = rcgen::CertifiedIssuer::self_signed(params, key).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), ca.pem()).unwrap();
        Authority { ca, folder }
    }

    /// A certificate for `name`.
    pub fn certify(&self, name: &str) -> TlsFiles {
        self.certify_all(&[name])
    }

    /// A certificate for all these names.
    pub fn certify_all(&self, names: &[&str]) -> TlsFiles {
        let key = rcgen::KeyPair::generate().unwrap();
        let owned: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let params = rcgen::CertificateParams::new(owned).unwrap();
        let certificate = params.signed_by(&key, &self.ca).unwrap();
        let file = |kind: &str| self.folder.path().join(format!("{}.{kind}.pem", names.join("+")));
        write_pem(&file("cert"), &certificate.pem());
        write_pem(&file("key"), &key.serialize_pem());
        let ca = self.folder.path().join("ca.pem");
        TlsFiles { ca, cert: file("cert"), key: file("key") }
    }

    /// The same, for a node.
    pub fn security(&self, name: &str) -> Security {
        Security::Tls(self.certify(name))
    }
}

fn write_pem(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}
