//! A join token: one line that an operator carries to a new machine. It says where to join, whom to trust there, and
//! holds a secret that proves that the operator meant it.

use super::{hex, random};
use base::StreamId;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What a token lets a machine become.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum JoinRole {
    /// A storage server.
    Brick,
    /// A gateway.
    Gateway,
    /// A client: `brickwork attach`, or NBD over TLS. It changes nothing but content of volumes
    Client,
    /// A client that may also administer the cluster
    Operator,
}

impl JoinRole {
    /// As what a machine asks that joins with a token of this role: `client init` knows of no operators.
    pub fn asks_as(self) -> JoinRole {
        match self {
            JoinRole::Operator => JoinRole::Client,
            JoinRole::Brick | JoinRole::Gateway | JoinRole::Client => self,
        }
    }
}

/// What a token admits to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grant {
    Anything,
    /// Machines in this role. A client's requests belong to the streams of its volumes.
    Role(JoinRole),
    /// Clients whose requests belong to this stream.
    ClientOf(StreamId),
}

impl Grant {
    /// The role to which it is restricted, if it is.
    pub fn role(self) -> Option<JoinRole> {
        match self {
            Grant::Anything => None,
            Grant::Role(role) => Some(role),
            Grant::ClientOf(_) => Some(JoinRole::Client),
        }
    }

    /// The stream to which requests of those belong that it admits; none leaves them to the streams of their volumes.
    pub fn stream(self) -> Option<StreamId> {
        match self {
            Grant::ClientOf(stream) => Some(stream),
            Grant::Anything | Grant::Role(_) => None,
        }
    }
}

/// A join token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// The cluster's id, 32 hexadecimal digits.
    pub cluster: String,
    /// Where the directory's join service listens.
    pub join: String,
    /// SHA-256 of the authority's certificate, in hexadecimal; none in a cluster without TLS.
    pub authority: Option<String>,
    /// What it admits to; anything when absent.
    pub role: Option<JoinRole>,
    /// The secret, 64 hexadecimal digits.
    pub secret: String,
}

/// Why a token is no token.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TokenError {
    /// It is something else.
    #[error("this is not a join token; `brickwork cluster token` prints one, beginning with '{PREFIX}'")]
    NotAToken,
    /// It was cut or changed on the way.
    #[error("the join token is damaged; copy the whole line that `brickwork cluster token` printed")]
    Damaged,
}

const PREFIX: &str = "bwt1_";
const CHECKSUM_BYTES: usize = 4;

impl Token {
    /// A token with a fresh secret.
    pub fn new(cluster: String, join: String, authority: Option<[u8; 32]>, grant: Grant) -> Token {
        Token {
            cluster,
            join,
            authority: authority.map(|bytes| hex(&bytes)),
            role: grant.role(),
            secret: hex(&random::<32>()),
        }
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = serde_json::to_vec(self).map_err(|_| fmt::Error)?;
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
        write!(f, "{PREFIX}{}", BASE64.encode(bytes))
    }
}

/// Without the secret, so that no log holds it.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({} at {})", self.cluster, self.join)
    }
}

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Token, TokenError> {
        let body = text.trim().strip_prefix(PREFIX).ok_or(TokenError::NotAToken)?;
        let bytes = BASE64.decode(body).map_err(|_| TokenError::Damaged)?;
        let split = bytes.len().checked_sub(CHECKSUM_BYTES).ok_or(TokenError::Damaged)?;
        let (json, checksum) = bytes.split_at(split);
        if crc32c::crc32c(json).to_le_bytes() != checksum {
            return Err(TokenError::Damaged);
        }
        serde_json::from_slice(json).map_err(|_| TokenError::Damaged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn token() -> Token {
        Token::new("00".repeat(16), "10.0.0.1:7001".to_owned(), Some([7; 32]), Grant::Role(JoinRole::Brick))
    }

    #[test]
    fn a_token_survives_the_way_and_does_not_show_its_secret() {
        let token = token();
        assert_eq!(format!("  {token}\n").parse(), Ok(token.clone()));
        assert!(!format!("{token:?}").contains(&token.secret));
        assert_eq!("hello".parse::<Token>(), Err(TokenError::NotAToken));
    }

    proptest! {
        #[test]
        fn a_changed_token_is_refused(at in 0usize..200, with in "[A-Za-z0-9_-]") {
            let text = token().to_string();
            let at = PREFIX.len() + at % (text.len() - PREFIX.len());
            let changed = format!("{}{with}{}", &text[..at], &text[at + 1..]);
            prop_assume!(changed != text);
            prop_assert_eq!(changed.parse::<Token>(), Err(TokenError::Damaged));
        }

        #[test]
        fn a_cut_token_is_refused(keep in 0usize..200) {
            let text = token().to_string();
            prop_assert!(text[..keep % text.len()].parse::<Token>().is_err());
        }
    }
}
