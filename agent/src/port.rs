//! The kubelet's own port, for an API server that dials its nodes: TLS, and every request
//! authenticated and authorized by that server before it is answered as those of the tunnel are.
//!
//! Not there in the usual mode: a node of ours listens nowhere. Knows nothing of the endpoints but
//! the right that each asks for. Who shows neither a certificate nor a token gets 401 and nothing
//! else.

mod access; // Who asks, and whether they may.
mod certificate; // The node's own, as it is renewed.
mod clients; // Whose certificates clients may show.
mod rights; // What a path asks for. Pure.

pub use certificate::Serving;
pub use clients::Source;

use crate::stream::{Body, Server, Way, refuse};
use crate::{AgentError, Config};
use access::{Access, Caller};
use clients::Authorities;
use coracle_streams::serving;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use rights::Right;
use rustls::ServerConfig;
use rustls::server::WebPkiClientVerifier;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// Connections at one time that speak HTTP; more of them wait to be accepted. What was upgraded to
/// streams is no longer counted: its client was let in.
const CONNECTIONS_MAX: usize = 256;
/// For a client that says nothing.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// A connection on which nobody was let in for this long makes room for another.
const STRANGER_MAX: Duration = Duration::from_secs(30);
/// Before accepting again when the machine has no descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);
/// Before looking again for an authority that could not be had.
const RETRY: Duration = Duration::from_secs(60);

/// Taken before the node is told of anywhere, so that a port in use is found out first. None in the
/// usual mode.
pub async fn bind(config: &Config) -> Result<Option<TcpListener>, AgentError> {
    let Some(joining) = &config.joining else {
        return Ok(None);
    };
    let any = match config.node_ips.first() {
        Some(IpAddr::V6(_)) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
        _ => IpAddr::from(Ipv4Addr::UNSPECIFIED),
    };
    let address = SocketAddr::new(any, joining.port);
    match TcpListener::bind(address).await {
        Ok(listener) => Ok(Some(listener)),
        Err(source) => Err(AgentError::Listen { address, source }),
    }
}

/// What answers on the port.
pub struct Port {
    tcp: TcpListener,
    clients: Source,
    shared: Arc<Shared>,
}

struct Shared {
    server: Server,
    access: Access,
    serving: Arc<Serving>,
    /// Replaced when the clients' authority is; who came before is asked to come again.
    tls: watch::Sender<Arc<ServerConfig>>,
}

impl std::fmt::Debug for Port {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Port").finish_non_exhaustive()
    }
}

impl Port {
    pub fn new(
        tcp: TcpListener,
        clients: Source,
        serving: Arc<Serving>,
        server: Server,
    ) -> Result<Self, AgentError> {
        let tls = tls(&serving, None).map_err(AgentError::Tls)?;
        let stats = &server.stats;
        let (context, node) = (&stats.context, stats.node_name.clone());
        let access = Access::new(context.client.clone(), node, context.clock.clone());
        Ok(Self {
            tcp,
            clients,
            shared: Arc::new(Shared {
                server,
                access,
                serving,
                tls: watch::Sender::new(tls),
            }),
        })
    }

    /// Serves until `stop`; what streams then ends with the process.
    pub async fn run(self, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = keep_authorities(&self.clients, &self.shared) => {}
            () = self.accept(&stop) => {}
        }
    }

    async fn accept(&self, stop: &CancellationToken) {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        while let Ok(place) = Arc::clone(&places).acquire_owned().await {
            let stream = match self.tcp.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::debug!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let (shared, stop) = (Arc::clone(&self.shared), stop.clone());
            tokio::spawn(async move {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = serve(stream, shared) => {}
                }
                drop(place);
            });
        }
    }
}

/// Without an authority there are only tokens.
fn tls(
    serving: &Arc<Serving>,
    clients: Option<&Authorities>,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?;
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(clients) => {
            let roots = Arc::clone(&clients.roots);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider)
                .allow_unauthenticated()
                .build();
            let verifier = verifier.map_err(|error| rustls::Error::General(error.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut tls = builder.with_cert_resolver(serving.clone());
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(tls))
}

/// Never ends. An authority that cannot be had any more stays the one that it was.
async fn keep_authorities(source: &Source, shared: &Shared) {
    let mut known = String::new();
    let mut is_told = false;
    loop {
        let pause = match source.read().await {
            Ok(authorities) => {
                if authorities.pem != known {
                    match tls(&shared.serving, Some(&authorities)) {
                        Ok(tls) => drop(shared.tls.send_replace(tls)),
                        Err(error) => tracing::error!(%error, "clients cannot be authenticated"),
                    }
                    known = authorities.pem;
                }
                source.every()
            }
            Err(error) => {
                if known.is_empty() && !is_told {
                    let error = crate::error::chain(&error);
                    tracing::warn!(
                        error,
                        "certificates of clients are not taken on the node's port, only tokens; \
                         --client-ca-file names the cluster's authority"
                    );
                    is_told = true;
                }
                RETRY
            }
        };
        tokio::time::sleep(pause).await;
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    // Only a matter of speed.
    drop(stream.set_nodelay(true));
    let mut configured = shared.tls.subscribe();
    let tls = TlsAcceptor::from(configured.borrow_and_update().clone());
    let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_MAX, tls.accept(stream)).await else {
        return;
    };
    let certificates = stream.get_ref().1.peer_certificates();
    let certified = certificates.and_then(|chain| Caller::of_certificate(chain.first()?));
    let is_known = Arc::new(AtomicBool::new(false));
    let mark = Arc::clone(&is_known);
    let service = service_fn(move |request| {
        let (shared, certified) = (Arc::clone(&shared), certified.clone());
        let mark = Arc::clone(&mark);
        async move { Ok::<_, Infallible>(shared.answer(request, certified, &mark).await) }
    });
    let builder = serving::builder();
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    let served = async {
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            served = connection.as_mut() => return served,
            _ = configured.changed() => connection.as_mut().graceful_shutdown(),
        }
        connection.await
    };
    let stranger = async {
        tokio::time::sleep(STRANGER_MAX).await;
        if is_known.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = stranger => {}
        served = served => {
            if let Err(error) = served {
                tracing::debug!(%error, "a connection to the node's port broke off");
            }
        }
    }
}

impl Shared {
    async fn answer(
        &self,
        request: Request<Incoming>,
        certified: Option<(Caller, Timestamp)>,
        is_known: &AtomicBool,
    ) -> Response<Body> {
        // A certificate may run out while its connection lasts.
        let now = self.server.stats.context.clock.now();
        let caller = match certified.filter(|(_, until)| now <= *until) {
            Some((caller, _)) => Some(caller),
            None => self.access.authenticate(request.headers()).await,
        };
        let Some(caller) = caller else {
            return refuse(StatusCode::UNAUTHORIZED, "Unauthorized");
        };
        let right = Right::of(request.method(), request.uri().path());
        match self.access.allows(&caller, right).await {
            Ok(true) => {
                is_known.store(true, Ordering::Relaxed);
                self.server.answer(request, Way::Port).await
            }
            Ok(false) => {
                let text = format!(
                    "Forbidden (user={}, verb={}, resource=nodes, subresource(s)=[{}])\n",
                    caller.name,
                    right.verb,
                    right.subresources.join(" ")
                );
                refuse(StatusCode::FORBIDDEN, text)
            }
            Err(error) => {
                tracing::warn!(%error, user = caller.name, "the server does not authorize");
                let text = format!(
                    "Authorization error (user={}, verb={}, resource=nodes, subresource={})",
                    caller.name, right.verb, right.subresources[0]
                );
                refuse(StatusCode::INTERNAL_SERVER_ERROR, text)
            }
        }
    }
}
