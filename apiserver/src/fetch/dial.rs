//! A connection over TLS to a name: /etc/hosts and the name servers are read anew each time, as a
//! machine at the edge often gets its name servers late.

use hickory_resolver::TokioResolver;
use hickory_resolver::config::ResolverConfig;
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

#[derive(Debug, thiserror::Error)]
pub enum DialError {
    #[error("{0:?} is no name of a server")]
    Name(String),
    #[error("lookup {host}: {source}")]
    Lookup { host: String, source: NetError },
    #[error("dial tcp: {0}")]
    Connect(io::Error),
    #[error("tls: {0}")]
    Tls(io::Error),
}

pub async fn dial(
    tls: &Arc<ClientConfig>,
    host: &str,
    port: u16,
) -> Result<TlsStream<TcpStream>, DialError> {
    // A URL has brackets around an IPv6 address.
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let name = ServerName::try_from(host.to_owned());
    let name = name.map_err(|_| DialError::Name(host.to_owned()))?;
    let lookup = |source| DialError::Lookup {
        host: host.to_owned(),
        source,
    };
    let mut failed = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in resolve(host).await.map_err(lookup)? {
        match TcpStream::connect((address, port)).await {
            Ok(stream) => {
                let connected = TlsConnector::from(Arc::clone(tls)).connect(name, stream);
                return connected.await.map_err(DialError::Tls);
            }
            Err(error) => failed = error,
        }
    }
    Err(DialError::Connect(failed))
}

async fn resolve(host: &str) -> Result<Vec<IpAddr>, NetError> {
    if let Ok(address) = host.parse() {
        return Ok(vec![address]);
    }
    // RFC 6761: this name never leaves the machine, whether or not /etc/hosts has it.
    if host.eq_ignore_ascii_case("localhost") {
        return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
    }
    Ok(resolver()?.lookup_ip(host).await?.iter().collect())
}

fn resolver() -> Result<TokioResolver, NetError> {
    match TokioResolver::builder_tokio() {
        Ok(builder) => builder.build(),
        // Without a resolv.conf there is still /etc/hosts.
        Err(_) => {
            let provider = TokioRuntimeProvider::default();
            let nowhere = ResolverConfig::from_parts(None, vec![], vec![]);
            TokioResolver::builder_with_config(nowhere, provider).build()
        }
    }
}
