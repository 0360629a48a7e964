//! Connections to what is proxied: dialled by a node that is connected, or from here.
//!
//! TLS to a pod takes any certificate, as upstream: pods have none that anybody could check.

use super::target::{Place, Target};
use crate::tunnel::{DialError as TunnelDialError, Tunnels};
use hyper_util::rt::TokioIo;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Upstream's bound on a dial.
const DIAL_MAX: Duration = Duration::from_secs(30);
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// A connection in either direction, whoever dialled it.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

pub type Stream = TokioIo<Box<dyn Duplex>>;

#[derive(Debug, thiserror::Error)]
pub enum DialError {
    #[error(transparent)]
    Tunnel(#[from] TunnelDialError),
    #[error("dial tcp {address}: connect: {}", go_text(source))]
    Connect {
        address: SocketAddr,
        source: io::Error,
    },
    #[error("dial tcp {0}: i/o timeout")]
    Timeout(SocketAddr),
    #[error("tls: {0}")]
    Tls(io::Error),
    #[error("net/http: TLS handshake timeout")]
    TlsTimeout,
    #[error("the node's own endpoints speak HTTP/2 over its connection")]
    Agent,
}

pub struct Dialer {
    pub tunnels: Tunnels,
    tls: Arc<ClientConfig>,
}

impl Dialer {
    pub fn new(tunnels: Tunnels) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring has the default versions of TLS")
            .dangerous()
            .with_custom_certificate_verifier(anybody())
            .with_no_client_auth();
        Self {
            tunnels,
            tls: Arc::new(tls),
        }
    }

    pub async fn dial(&self, place: &Place, target: &Target) -> Result<Stream, DialError> {
        let (raw, address) = raw(&self.tunnels, place).await?;
        if !target.is_https {
            return Ok(TokioIo::new(raw));
        }
        let name = ServerName::from(address.ip());
        let handshake = TlsConnector::from(Arc::clone(&self.tls)).connect(name, raw);
        match tokio::time::timeout(HANDSHAKE_MAX, handshake).await {
            Ok(Ok(stream)) => Ok(TokioIo::new(Box::new(stream))),
            Ok(Err(error)) => Err(DialError::Tls(error)),
            Err(_) => Err(DialError::TlsTimeout),
        }
    }
}

/// Trust in whoever answers.
pub fn anybody() -> Arc<dyn ServerCertVerifier> {
    Arc::new(Anybody(Arc::new(rustls::crypto::ring::default_provider())))
}

/// A connection without TLS, and where it leads.
pub async fn raw(
    tunnels: &Tunnels,
    place: &Place,
) -> Result<(Box<dyn Duplex>, SocketAddr), DialError> {
    Ok(match place {
        Place::Agent(_) => return Err(DialError::Agent),
        Place::Node(node, address) => {
            let stream = tunnels.dial(node, *address, None).await?;
            (Box::new(stream), *address)
        }
        Place::Here(address) => (Box::new(from_here(*address).await?), *address),
    })
}

async fn from_here(address: SocketAddr) -> Result<TcpStream, DialError> {
    let stream = match tokio::time::timeout(DIAL_MAX, TcpStream::connect(address)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(source)) => return Err(DialError::Connect { address, source }),
        Err(_) => return Err(DialError::Timeout(address)),
    };
    // Only a matter of speed.
    drop(stream.set_nodelay(true));
    Ok(stream)
}

/// In the words of Go's `net`, which clients know.
fn go_text(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        ErrorKind::HostUnreachable => "no route to host".to_owned(),
        ErrorKind::NetworkUnreachable => "network is unreachable".to_owned(),
        ErrorKind::TimedOut => "connection timed out".to_owned(),
        _ => error.to_string(),
    }
}

/// Takes any certificate whose key the other side holds.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
