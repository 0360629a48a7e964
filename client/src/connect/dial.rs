//! Opens a connection to an endpoint: resolve, TCP, TLS.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{Endpoint, resolve, tls};

/// A connection to a server, secured if its URL says so.
#[derive(Debug)]
pub enum Stream {
    Tls(Box<TlsStream<TcpStream>>),
    Plain(TcpStream),
}

#[derive(Debug, thiserror::Error)]
pub enum DialError {
    #[error("cannot resolve {host}")]
    Resolve {
        host: String,
        source: hickory_resolver::net::NetError,
    },
    #[error("cannot connect to {address}")]
    Connect {
        address: SocketAddr,
        source: io::Error,
    },
    #[error("{name:?} cannot be the name of a server")]
    ServerName { name: String },
    #[error("no secure connection to {address}")]
    Tls {
        address: SocketAddr,
        source: io::Error,
    },
    #[error("{address} did not answer within {} s", waited.as_secs())]
    Timeout {
        address: SocketAddr,
        waited: Duration,
    },
}

/// Connects to the first address of the endpoint that answers, offering these ALPN protocols.
pub async fn dial(endpoint: &Endpoint, protocols: &[&[u8]]) -> Result<Stream, DialError> {
    let addresses =
        resolve::resolve(&endpoint.host)
            .await
            .map_err(|source| DialError::Resolve {
                host: endpoint.host.clone(),
                source,
            })?;
    let config = endpoint
        .is_tls()
        .then(|| tls::tls_config(&endpoint.trust, &endpoint.identity, protocols));
    let mut failure = None;
    for address in addresses {
        let address = SocketAddr::new(address, endpoint.port);
        match dial_address(endpoint, address, config.clone()).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    Err(failure.expect("a name resolves to at least one address"))
}

async fn dial_address(
    endpoint: &Endpoint,
    address: SocketAddr,
    config: Option<Arc<rustls::ClientConfig>>,
) -> Result<Stream, DialError> {
    let waited = endpoint.timeouts.connect;
    let work = async {
        let tcp = TcpStream::connect(address).await;
        let tcp = tcp.map_err(|source| DialError::Connect { address, source })?;
        // Requests are small and complete when written: never hold them back.
        let _ = tcp.set_nodelay(true);
        let Some(config) = config else {
            return Ok(Stream::Plain(tcp));
        };
        let name = endpoint.expected_name();
        let name = ServerName::try_from(name.to_owned()).map_err(|_| DialError::ServerName {
            name: name.to_owned(),
        })?;
        let stream = TlsConnector::from(config).connect(name, tcp).await;
        let stream = stream.map_err(|source| DialError::Tls { address, source })?;
        Ok(Stream::Tls(Box::new(stream)))
    };
    tokio::time::timeout(waited, work)
        .await
        .unwrap_or(Err(DialError::Timeout { address, waited }))
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
