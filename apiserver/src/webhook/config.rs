//! Where a webhook is: the `clientConfig` that configurations of admission and of conversion share.
//!
//! What the API took was checked when it was written; what was stored otherwise is refused here.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_api::json;
use http::Uri;
use serde_json::Value;

const PORT_DEFAULT: u16 = 443;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientConfig {
    pub address: Address,
    /// Begins with a slash and has none at its end.
    pub path: String,
    /// PEM. Without one the machine's own authorities are trusted.
    pub ca_bundle: Option<String>,
    /// Whether the URL names its port.
    names_port: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Address {
    /// The host with its brackets, where it has some.
    Url {
        host: String,
        port: u16,
    },
    Service(Service),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Service {
    pub namespace: String,
    pub name: String,
    pub port: u16,
}

impl Address {
    /// The name that the server's certificate must have.
    pub fn host(&self) -> String {
        match self {
            Self::Url { host, .. } => host.clone(),
            Self::Service(service) => format!("{}.{}.svc", service.name, service.namespace),
        }
    }
}

impl ClientConfig {
    /// Reads `clientConfig`.
    pub fn read(config: &Value) -> Result<Self, String> {
        let ca_bundle = match json::text(config, "caBundle") {
            "" => None,
            text => Some(pem(text)?),
        };
        if let Some(service) = json::some(config, "service") {
            let port = json::int(service, "port").unwrap_or(i64::from(PORT_DEFAULT));
            return Ok(Self {
                address: Address::Service(Service {
                    namespace: json::text(service, "namespace").to_owned(),
                    name: json::text(service, "name").to_owned(),
                    port: u16::try_from(port).map_err(|_| format!("invalid port {port}"))?,
                }),
                path: joined(json::text(service, "path"))?,
                ca_bundle,
                names_port: true,
            });
        }
        let url = json::text(config, "url");
        if url.is_empty() {
            return Err("webhook configuration must have either service or URL".to_owned());
        }
        Self::of_url(url, ca_bundle)
    }

    fn of_url(url: &str, ca_bundle: Option<String>) -> Result<Self, String> {
        let unreadable = |why: &str| format!("Unparsable URL: parse {url:?}: {why}");
        let uri: Uri = url
            .parse()
            .map_err(|error: http::uri::InvalidUri| unreadable(&error.to_string()))?;
        if uri.scheme_str() != Some("https") {
            return Err(unreadable("the scheme is not https"));
        }
        let authority = uri
            .authority()
            .ok_or_else(|| unreadable("there is no host"))?;
        Ok(Self {
            address: Address::Url {
                host: authority.host().to_owned(),
                port: authority.port_u16().unwrap_or(PORT_DEFAULT),
            },
            path: joined(uri.path())?,
            ca_bundle,
            names_port: authority.port_u16().is_some(),
        })
    }

    /// Host and port as they stand in the URL of a request.
    pub fn authority(&self) -> String {
        let port = match &self.address {
            Address::Url { port, .. } => *port,
            Address::Service(service) => service.port,
        };
        let host = self.address.host();
        if self.names_port {
            format!("{host}:{port}")
        } else {
            host
        }
    }
}

fn pem(text: &str) -> Result<String, String> {
    let bytes = STANDARD.decode(text);
    let bytes = bytes.map_err(|error| format!("caBundle: {error}"))?;
    String::from_utf8(bytes).map_err(|_| {
        "unable to load root certificates: unable to parse bytes as PEM block".to_owned()
    })
}

/// As Go's `path.Join("/", path)`: without empty steps and a slash at the end.
fn joined(path: &str) -> Result<String, String> {
    let mut steps: Vec<&str> = Vec::new();
    for step in path.split('/') {
        match step {
            "" | "." => {}
            ".." => drop(steps.pop()),
            step => steps.push(step),
        }
    }
    let joined = format!("/{}", steps.join("/"));
    match joined.parse::<Uri>() {
        Ok(_) => Ok(joined),
        Err(error) => Err(format!("Unparsable URL: parse {path:?}: {error}")),
    }
}

#[cfg(test)]
mod tests;
