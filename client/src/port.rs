//! A port of one's own beside an API server: TLS, and every request authenticated, and as its owner
//! asks authorized, by that server's word.
//!
//! A node's when an API server dials it, and that of a scheduler or of controllers that are processes
//! of their own. Knows nothing of what is served. A connection on which nobody was let in is cut off.

mod access; // Who asks, and whether they may.
mod certificate; // What is shown to clients, as it is renewed.
mod clients; // Whose certificates clients may show.

pub use access::{Access, Asked, Caller, Fresh, UnknownToken};
pub use certificate::{CertificateError, Serving};
pub use clients::Source;

use crate::clock::Clock;
use clients::Authorities;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use jiff::Timestamp;
use rustls::ServerConfig;
use rustls::server::WebPkiClientVerifier;
use std::convert::Infallible;
use std::error::Error;
use std::fmt::Debug;
use std::future::Future;
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

/// What a connection stands for.
#[derive(Clone, Debug, Default)]
pub struct Guest(Arc<AtomicBool>);

impl Guest {
    /// The connection may stay.
    pub fn let_in(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_known(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What is served.
pub trait Service: Send + Sync + 'static {
    type Body: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static;

    /// `certified` is whom the connection's certificate names, while it holds.
    fn answer(
        &self,
        request: Request<Incoming>,
        certified: Option<Caller>,
        guest: &Guest,
    ) -> impl Future<Output = Response<Self::Body>> + Send;
}

/// What a port is made of.
pub struct Parts<S> {
    pub tcp: TcpListener,
    /// Of whoever speaks HTTP on it.
    pub http: Builder<TokioExecutor>,
    /// Without one no certificates are asked for.
    pub clients: Option<Source>,
    pub serving: Arc<Serving>,
    pub clock: Clock,
    pub service: S,
}

/// What answers on the port.
pub struct Port<S> {
    tcp: TcpListener,
    clients: Option<Source>,
    shared: Arc<Shared<S>>,
}

struct Shared<S> {
    service: S,
    http: Builder<TokioExecutor>,
    serving: Arc<Serving>,
    clock: Clock,
    /// Replaced when the clients' authority is; who came before is asked to come again.
    tls: watch::Sender<Arc<ServerConfig>>,
}

impl<S> Debug for Port<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Port").finish_non_exhaustive()
    }
}

impl<S> Debug for Parts<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").finish_non_exhaustive()
    }
}

impl<S: Service> Port<S> {
    pub fn new(parts: Parts<S>) -> Result<Self, rustls::Error> {
        let tls = tls(&parts.serving, None)?;
        Ok(Self {
            tcp: parts.tcp,
            clients: parts.clients,
            shared: Arc::new(Shared {
                service: parts.service,
                http: parts.http,
                serving: parts.serving,
                clock: parts.clock,
                tls: watch::Sender::new(tls),
            }),
        })
    }

    /// Serves until `stop`; what streams then ends with the process.
    pub async fn run(self, stop: CancellationToken) {
        let authorities = async {
            match &self.clients {
                Some(source) => keep_authorities(source, &self.shared).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = authorities => {}
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
async fn keep_authorities<S>(source: &Source, shared: &Shared<S>) {
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
                    let error = chain(&error);
                    tracing::warn!(
                        error,
                        "certificates of clients are not taken on this process's port, only \
                         tokens; --client-ca-file names the cluster's authority"
                    );
                    is_told = true;
                }
                RETRY
            }
        };
        tokio::time::sleep(pause).await;
    }
}

fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text.push_str(&format!(": {source}"));
        next = source.source();
    }
    text
}

async fn serve<S: Service>(stream: TcpStream, shared: Arc<Shared<S>>) {
    // Only a matter of speed.
    drop(stream.set_nodelay(true));
    let mut configured = shared.tls.subscribe();
    let tls = TlsAcceptor::from(configured.borrow_and_update().clone());
    let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_MAX, tls.accept(stream)).await else {
        return;
    };
    let certificates = stream.get_ref().1.peer_certificates();
    let certified = certificates.and_then(|chain| Caller::of_certificate(chain.first()?));
    let guest = Guest::default();
    let http = shared.http.clone();
    let service = service_fn(|request| {
        let (shared, certified, guest) = (Arc::clone(&shared), certified.clone(), guest.clone());
        async move {
            let certified = still(certified, shared.clock.now());
            let answer = shared.service.answer(request, certified, &guest).await;
            Ok::<_, Infallible>(answer)
        }
    });
    let connection = http.serve_connection_with_upgrades(TokioIo::new(stream), service);
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
        if guest.is_known() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = stranger => {}
        served = served => {
            if let Err(error) = served {
                tracing::debug!(%error, "a connection to the port broke off");
            }
        }
    }
}

/// A certificate may run out while its connection lasts.
fn still(certified: Option<(Caller, Timestamp)>, now: Timestamp) -> Option<Caller> {
    let (caller, until) = certified?;
    (now <= until).then_some(caller)
}

#[cfg(test)]
mod tests;
