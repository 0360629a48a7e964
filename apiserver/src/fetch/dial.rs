//! A connection over TLS to a name: /etc/hosts and the name servers are read anew each time, as a
//! machine at the edge often gets its name servers late.

use hickory_resolver::TokioResolver;
use hickory_resolver::config::ResolverConfig;
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// An address that does not answer must leave time for the next one.
const ADDRESS_TIME_MAX: Duration = Duration::from_secs(10);

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
    #[error("dial tcp {0}: i/o timeout")]
    Timeout(SocketAddr),
}

/// Over the first address of the name that answers as the name.
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
    let addresses = resolve(host).await.map_err(lookup)?;
    let addresses = addresses.into_iter();
    first(tls, &name, addresses.map(|address| (address, port).into())).await
}

/// The failure of the first one is told.
async fn first(
    tls: &Arc<ClientConfig>,
    name: &ServerName<'static>,
    addresses: impl Iterator<Item = SocketAddr>,
) -> Result<TlsStream<TcpStream>, DialError> {
    let mut failure = None;
    for address in addresses {
        let connecting = connect(tls, name.clone(), address);
        let connected = tokio::time::timeout(ADDRESS_TIME_MAX, connecting).await;
        match connected.unwrap_or(Err(DialError::Timeout(address))) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    let none = || DialError::Connect(io::ErrorKind::AddrNotAvailable.into());
    Err(failure.unwrap_or_else(none))
}

async fn connect(
    tls: &Arc<ClientConfig>,
    name: ServerName<'static>,
    address: SocketAddr,
) -> Result<TlsStream<TcpStream>, DialError> {
    let stream = TcpStream::connect(address).await;
    let stream = stream.map_err(DialError::Connect)?;
    let connected = TlsConnector::from(Arc::clone(tls)).connect(name, stream);
    connected.await.map_err(DialError::Tls)
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

#[cfg(test)]
mod tests;
