//! From an address, a trust and an identity to a `kube::Client` over HTTP/2.
//!
//! One connection carries all requests and watches; pings find out when it died. A new client
//! certificate is used from the next request on, without a restart: the old connection finishes
//! what it carries. Names are resolved by hickory, because a static glibc cannot.
//! Never reads a setting from the environment.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Uri};

use crate::Client;

mod dial;
mod enrol;
mod identity;
pub mod kubeconfig;
mod resolve;
mod service;
mod tls;

pub use dial::{DialError, Stream, dial};
pub use enrol::{EnrolError, fetch_pinned_ca};
pub use identity::{Identity, IdentityError};
pub use tls::{Trust, TrustError, tls_config};

/// What every request says about its sender.
pub(crate) const USER_AGENT: &str = concat!("coracle/", env!("CARGO_PKG_VERSION"));

/// Where a server is, why it is believed, and who we are. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Endpoint {
    url: Uri,
    host: String,
    port: u16,
    trust: Trust,
    /// Checked against the server's certificate in place of the host.
    server_name: Option<String>,
    identity: Identity,
    /// As whom the identity acts, if not as itself.
    acting_as: Option<HeaderValue>,
    timeouts: Timeouts,
}

/// How long to wait for a server that is slow or gone.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// For TCP and TLS together, for one address.
    pub connect: Duration,
    /// From sending a request to the head of its response. Bodies, such as watches, may go on.
    pub response: Duration,
    /// Between pings on a connection, idle or not.
    pub ping_interval: Duration,
    /// For the answer to a ping; then the connection is given up with all that it carries.
    pub ping_timeout: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            response: Duration::from_secs(60),
            ping_interval: Duration::from_secs(15),
            ping_timeout: Duration::from_secs(15),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    #[error("{url:?} is not a URL")]
    Url {
        url: String,
        source: http::uri::InvalidUri,
    },
    #[error("{url:?} must be https://HOST[:PORT], or http:// where the link itself is safe")]
    Form { url: String },
    #[error("no user can be called {user:?}")]
    User { user: String },
}

impl Endpoint {
    /// `url` is `https://HOST[:PORT]`; `http` is for tests and for proxies on this machine.
    pub fn new(url: &str, trust: Trust, identity: Identity) -> Result<Self, EndpointError> {
        let text = url.trim_end_matches('/');
        let parsed: Uri = text.parse().map_err(|source| EndpointError::Url {
            url: url.to_owned(),
            source,
        })?;
        let form = || EndpointError::Form {
            url: url.to_owned(),
        };
        let default_port = match parsed.scheme_str() {
            Some("https") => 443,
            Some("http") => 80,
            _ => return Err(form()),
        };
        let host = parsed
            .host()
            .filter(|host| !host.is_empty())
            .ok_or_else(form)?;
        let host = host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        let port = parsed.port_u16().unwrap_or(default_port);
        Ok(Self {
            url: parsed,
            host,
            port,
            trust,
            server_name: None,
            identity,
            acting_as: None,
            timeouts: Timeouts::default(),
        })
    }

    /// Expects this name in the server's certificate instead of the host of the URL.
    #[must_use]
    pub fn with_server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }

    #[must_use]
    pub fn with_timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// The same server under another identity.
    #[must_use]
    pub fn with_identity(mut self, identity: Identity) -> Self {
        self.identity = identity;
        self
    }

    /// Acts as this user, which the identity must be allowed to impersonate.
    pub fn acting_as(mut self, user: &str) -> Result<Self, EndpointError> {
        let name = HeaderValue::from_str(user).map_err(|_| EndpointError::User {
            user: user.to_owned(),
        })?;
        self.acting_as = Some(name);
        Ok(self)
    }

    pub fn url(&self) -> &Uri {
        &self.url
    }

    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    pub fn timeouts(&self) -> &Timeouts {
        &self.timeouts
    }

    fn is_tls(&self) -> bool {
        self.url.scheme_str() == Some("https")
    }

    /// What the certificate must name.
    fn expected_name(&self) -> &str {
        self.server_name.as_deref().unwrap_or(&self.host)
    }
}

/// A client for the endpoint. Connects on first use and again whenever needed; needs a running
/// tokio runtime.
pub fn client(endpoint: &Endpoint) -> Client {
    client_in(endpoint, "default")
}

/// The same with another default namespace.
pub fn client_in(endpoint: &Endpoint, namespace: &str) -> Client {
    Client::new(service::Http::new(Arc::new(endpoint.clone())), namespace)
}

#[cfg(test)]
mod tests;
