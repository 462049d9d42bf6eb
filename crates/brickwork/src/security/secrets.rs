//! What the directory keeps of join tokens: hashes, never secrets. The file is read anew at each attempt to join, so
//! that a token made or revoked while the directory runs counts at once.

use super::token::JoinRole;
use super::{files, hex, sha256};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use subtle::ConstantTimeEq;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Names the token to an operator; not secret.
    pub id: String,
    /// SHA-256 of the secret, in hexadecimal.
    pub hash: String,
    /// What it admits to; anything when absent.
    pub role: Option<JoinRole>,
    /// When it stops to admit, in seconds since the Unix epoch.
    pub expires_unix_s: u64,
}

/// The records of one cluster, in `tokens.json`.
pub struct Secrets {
    path: PathBuf,
}

impl Secrets {
    /// The records kept in `dir`; there need not be any yet.
    pub fn at(dir: &Path) -> Secrets {
        Secrets { path: dir.join("tokens.json") }
    }

    /// Records `secret`, and forgets records that have expired. Returns the token's id.
    pub fn add(&self, secret: &str, role: Option<JoinRole>, lifetime: Duration) -> Result<String> {
        let hash = hex(&sha256(secret.as_bytes()));
        let id = hash[..8].to_owned();
        let now = unix_s();
        let mut records = self.list()?;
        records.retain(|record| record.expires_unix_s > now);
        records.push(Record {
            id: id.clone(),
            hash,
            role,
            expires_unix_s: now.saturating_add(lifetime.as_secs()),
        });
        self.write(&records)?;
        Ok(id)
    }

    pub fn list(&self) -> Result<Vec<Record>> {
        match std::fs::read(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", self.path.display())),
            Ok(bytes) => serde_json::from_slice(&bytes).with_context(|| {
                format!("{} is damaged; remove it and make new tokens", self.path.display())
            }),
        }
    }

    /// Makes the token `id` worthless. Returns whether there was one.
    pub fn revoke(&self, id: &str) -> Result<bool> {
        let mut records = self.list()?;
        let before = records.len();
        records.retain(|record| record.id != id);
        self.write(&records)?;
        Ok(records.len() < before)
    }

    /// Whether `secret` admits to `role` now. Takes the same time for every wrong secret.
    pub fn admits(&self, secret: &str, role: JoinRole) -> Result<bool> {
        let hash = hex(&sha256(secret.as_bytes()));
        let now = unix_s();
        let mut admitted = false;
        for record in self.list()? {
            let equal = bool::from(record.hash.as_bytes().ct_eq(hash.as_bytes()));
            admitted |= equal & (record.expires_unix_s > now) & record.role.is_none_or(|only| only == role);
        }
        Ok(admitted)
    }

    fn write(&self, records: &[Record]) -> Result<()> {
        files::replace(&self.path, &serde_json::to_vec_pretty(records)?)
    }
}

fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_admits_to_its_role_until_it_expires_or_is_revoked() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let secrets = Secrets::at(dir.path());
        let hour = Duration::from_secs(3600);
        assert!(!secrets.admits("one", JoinRole::Brick).expect("no file yet"));
        let one = secrets.add("one", Some(JoinRole::Brick), hour).expect("add");
        secrets.add("two", None, Duration::ZERO).expect("add");
        assert!(secrets.admits("one", JoinRole::Brick).expect("read"));
        assert!(!secrets.admits("one", JoinRole::Gateway).expect("read"), "another role");
        assert!(!secrets.admits("two", JoinRole::Brick).expect("read"), "expired");
        assert!(!secrets.admits("three", JoinRole::Brick).expect("read"), "unknown");
        let text = std::fs::read_to_string(dir.path().join("tokens.json")).expect("file");
        assert!(!text.contains("\"one\""), "secrets are kept hashed");
        assert!(secrets.revoke(&one).expect("revoke"));
        assert!(!secrets.admits("one", JoinRole::Brick).expect("read"), "revoked");
    }
}
