//! How a machine becomes part of a cluster. It shows the secret of a join token to the directory's join service and
//! gets its certificate (and, if it is a brick, its id). The machine trusts the service because the token pins the
//! authority's certificate; the service trusts the machine because of the secret. Nobody else learns anything.
//!
//! Reading order: this file (what is said), [`client`], [`service`].

pub mod client;
pub mod service;

use crate::security::token::JoinRole;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::time::Duration;

/// The longest message, in bytes. A certificate request takes less than 1 KiB.
const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// How long either side waits for the other.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a machine asks.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinRequest {
    pub secret: String,
    /// What the machine wants to be.
    pub role: JoinRole,
    /// The same at each attempt of one machine, so that a retry gets the same id.
    pub nonce: u64,
    /// A certificate request, PEM; none in a cluster without TLS.
    pub request: Option<String>,
    /// Further names for the certificate: addresses under which clients reach this machine.
    pub addresses: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Admission {
    /// The cluster's id, 32 hexadecimal digits.
    pub cluster: String,
    /// Where the directory is reached.
    pub directory: String,
    /// The id of a new brick.
    pub brick: Option<u32>,
    /// The authority's certificate, PEM.
    pub authority: Option<String>,
    /// The machine's certificate, PEM.
    pub certificate: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JoinAnswer {
    Admitted(Admission),
    /// No: why, without a hint for a stranger.
    Refused(String),
}

fn send(stream: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let body = serde_json::to_vec(message)?;
    let length = u32::try_from(body.len()).map_err(io::Error::other)?;
    stream.write_all(&length.to_be_bytes())?;
    stream.write_all(&body)?;
    stream.flush()
}

fn receive<M: serde::de::DeserializeOwned>(stream: &mut impl Read) -> io::Result<M> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > MESSAGE_BYTES_MAX {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("a message of {length} bytes is too long"),
        ));
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(serde_json::from_slice(&body)?)
}
