//! Where a service is: a socket in the file system, or an address.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Endpoint {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

impl Endpoint {
    /// `unix:///run/x.sock`, `tcp://127.0.0.1:1`, or a path alone.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (scheme, rest) = text.split_once(':').unwrap_or(("unix", text));
        match scheme {
            "unix" => {
                let path = rest.strip_prefix("//").unwrap_or(rest);
                if path.starts_with('/') && path.len() > 1 {
                    Ok(Self::Unix(PathBuf::from(path)))
                } else {
                    Err(format!("{text:?} is no absolute path of a socket"))
                }
            }
            "tcp" => {
                let address = rest.trim_start_matches('/').parse();
                address
                    .map(Self::Tcp)
                    .map_err(|_| format!("{text:?} is no address and port"))
            }
            scheme => Err(format!("protocol {scheme:?} is not known here")),
        }
    }

    /// Of requests; peers at a socket do not look at it.
    pub fn authority(&self) -> String {
        match self {
            Self::Unix(_) => "localhost".to_owned(),
            Self::Tcp(address) => address.to_string(),
        }
    }

    /// As Go's `net` names it in errors.
    pub fn dialed(&self) -> String {
        match self {
            Self::Unix(path) => format!("unix {}", path.display()),
            Self::Tcp(address) => format!("tcp {address}"),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp://{address}"),
        }
    }
}
