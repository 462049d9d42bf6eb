//! What the directory keeps of join tokens: hashes, never secrets. The file is read anew at each attempt to join, so
//! that a token made or revoked while the directory runs counts at once.

use super::token::{Grant, JoinRole};
use super::{files, hex, sha256};
use anyhow::{Context, Result};
use base::StreamId;
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
    /// The number of the stream to which requests of the clients belong that it admits. Tokens of releases that knew none have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<u32>,
    /// When it stops to admit, in seconds since the Unix epoch.
    pub expires_unix_s: u64,
}

impl Record {
    /// What it admits to. A stream is that of a client, so a record that names one admits nobody else.
    pub fn grant(&self) -> Grant {
        match self.stream {
            Some(stream) => Grant::ClientOf(StreamId(stream)),
            None => self.role.map_or(Grant::Anything, Grant::Role),
        }
    }
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
    pub fn add(&self, secret: &str, grant: Grant, lifetime: Duration) -> Result<String> {
        let hash = hex(&sha256(secret.as_bytes()));
        let id = hash[..8].to_owned();
        let now = unix_s();
        let mut records = self.list()?;
        records.retain(|record| record.expires_unix_s > now);
        records.push(Record {
            id: id.clone(),
            hash,
            role: grant.role(),
            stream: grant.stream().map(|stream| stream.0),
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

    /// What `secret` admits to, if it admits a machine in `role` now. Takes the same time for every wrong secret.
    pub fn admits(&self, secret: &str, role: JoinRole) -> Result<Option<Grant>> {
        let hash = hex(&sha256(secret.as_bytes()));
        let now = unix_s();
        let mut admitted = None;
        for record in self.list()? {
            let (equal, grant) = (bool::from(record.hash.as_bytes().ct_eq(hash.as_bytes())), record.grant());
            if equal & (record.expires_unix_s > now) & grant.role().is_none_or(|only| only.asks_as() == role)
            {
                admitted = Some(grant);
            }
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

    /// What a secret admits a machine in a role to.
    fn admits(secrets: &Secrets, secret: &str, role: JoinRole) -> Option<Grant> {
        secrets.admits(secret, role).expect("the records are read")
    }

    #[test]
    fn a_secret_admits_to_its_role_until_it_expires_or_is_revoked() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let secrets = Secrets::at(dir.path());
        let (hour, brick) = (Duration::from_secs(3600), Grant::Role(JoinRole::Brick));
        assert_eq!(admits(&secrets, "one", JoinRole::Brick), None, "no file yet");
        let one = secrets.add("one", brick, hour).expect("add");
        secrets.add("two", Grant::Anything, Duration::ZERO).expect("add");
        assert_eq!(admits(&secrets, "one", JoinRole::Brick), Some(brick));
        assert_eq!(admits(&secrets, "one", JoinRole::Gateway), None, "another role");
        assert_eq!(admits(&secrets, "two", JoinRole::Brick), None, "expired");
        assert_eq!(admits(&secrets, "three", JoinRole::Brick), None, "unknown");
        let text = std::fs::read_to_string(dir.path().join("tokens.json")).expect("file");
        assert!(!text.contains("\"one\""), "secrets are kept hashed");
        assert!(secrets.revoke(&one).expect("revoke"));
        assert_eq!(admits(&secrets, "one", JoinRole::Brick), None, "revoked");
    }

    #[test]
    fn a_secret_of_a_stream_admits_its_clients_and_nobody_else() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let secrets = Secrets::at(dir.path());
        let grant = Grant::ClientOf(StreamId(12));
        secrets.add("one", grant, Duration::from_secs(3600)).expect("add");
        assert_eq!(admits(&secrets, "one", JoinRole::Client), Some(grant));
        assert_eq!(admits(&secrets, "one", JoinRole::Gateway), None);
        assert_eq!(admits(&secrets, "one", JoinRole::Brick), None);
    }

    /// Records of releases that knew no streams are read, and what names no stream is written as they read it.
    #[test]
    fn records_without_a_stream_are_read_and_written_as_before() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let secrets = Secrets::at(dir.path());
        let hash = hex(&sha256(b"old"));
        let record =
            format!(r#"[{{"id":"1","hash":"{hash}","role":"client","expires_unix_s":{}}}]"#, u64::MAX);
        std::fs::write(dir.path().join("tokens.json"), record).expect("written");
        assert_eq!(admits(&secrets, "old", JoinRole::Client), Some(Grant::Role(JoinRole::Client)));
        secrets.add("new", Grant::Anything, Duration::from_secs(3600)).expect("add");
        let text = std::fs::read_to_string(dir.path().join("tokens.json")).expect("file");
        assert!(!text.contains("stream"), "{text}");
    }
}
