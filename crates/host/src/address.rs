//! Addresses as they are written: `HOST:PORT`, `tcp:HOST:PORT`, `unix:/path`.

use crate::HostError;
use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

/// Where something listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// Host (name or number) and port.
    Tcp(String),
    /// A socket in the file system.
    Unix(PathBuf),
}

impl FromStr for Address {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Address, HostError> {
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err(malformed(text)) } else { Ok(Address::Unix(path.into())) };
        }
        let place = text.strip_prefix("tcp:").unwrap_or(text);
        let (host, port) = place.rsplit_once(':').ok_or_else(|| malformed(text))?;
        if host.is_empty() || port.parse::<u16>().is_err() {
            return Err(malformed(text));
        }
        Ok(Address::Tcp(place.to_owned()))
    }
}

fn malformed(text: &str) -> HostError {
    let why = "write it as HOST:PORT, tcp:HOST:PORT or unix:/path".to_owned();
    HostError::Address { address: text.to_owned(), why }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(place) => f.write_str(place),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Address {
    /// Whether the host is written in numbers, so that [`resolve`] asks nobody.
    pub fn is_literal(&self) -> bool {
        match self {
            Address::Tcp(place) => place.parse::<SocketAddr>().is_ok(),
            Address::Unix(_) => true,
        }
    }

    /// Whether only this machine reaches it; a host name counts by what it stands for now.
    pub fn is_local(&self) -> bool {
        match self {
            Address::Tcp(place) => {
                place.to_socket_addrs().is_ok_and(|mut found| found.all(|a| a.ip().is_loopback()))
            }
            Address::Unix(_) => true,
        }
    }

    /// Refuses an address that others reach, for a node without TLS.
    ///
    /// # Errors
    /// When it is neither a unix socket nor loopback.
    pub fn require_local(&self) -> Result<(), HostError> {
        if self.is_local() {
            return Ok(());
        }
        let why =
            "plain text is allowed on unix sockets and loopback addresses only; configure TLS".to_owned();
        Err(HostError::Address { address: self.to_string(), why })
    }
}

/// The first number that a host and port stand for. May ask the name service, and so block, unless literal.
pub(crate) fn resolve(place: &str) -> io::Result<SocketAddr> {
    place
        .to_socket_addrs()?
        .next()
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("'{place}' stands for no address")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_back_and_nonsense_is_named() {
        for text in ["127.0.0.1:7000", "[::1]:7000", "host.example:1", "unix:/run/a"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        for text in ["", "host", ":1", "host:", "host:70000", "unix:"] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains("HOST:PORT") && error.contains(text), "{error}");
        }
    }

    #[test]
    fn only_loopback_and_unix_are_local() {
        assert!("127.0.0.1:1".parse::<Address>().unwrap().require_local().is_ok());
        assert!("unix:/x".parse::<Address>().unwrap().require_local().is_ok());
        let error = "0.0.0.0:1".parse::<Address>().unwrap().require_local().unwrap_err().to_string();
        assert!(error.contains("0.0.0.0:1") && error.contains("TLS"), "{error}");
    }
}
