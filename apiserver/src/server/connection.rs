//! One connection: TLS, then HTTP/1.1 or HTTP/2, until either side ends it.

mod beginning; // The first bytes, bounded in time.

use crate::api::{Api, Caller, PeerAddress};
use crate::authenticate::PeerCertificate;
use beginning::Beginning;
use coracle_streams::serving::{self, HEADER_READ_MAX};
use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Past this, callers wait in the listen queue: bounds memory on a small machine.
const CONNECTIONS_MAX: usize = 4096;
/// A client that does not finish its handshake holds a place for this long at most.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// After a failure to accept, such as no free file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Accepts until `stop`; gives back the connections that are still open.
pub async fn accept(
    listener: &TcpListener,
    tls: &Arc<ServerConfig>,
    api: &Arc<Api>,
    stop: CancellationToken,
) -> TaskTracker {
    let connections = TaskTracker::new();
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let acceptor = TlsAcceptor::from(Arc::clone(tls));
    loop {
        let place = tokio::select! {
            () = stop.cancelled() => return connections,
            place = Arc::clone(&places).acquire_owned() => place,
        };
        let accepted = tokio::select! {
            () = stop.cancelled() => return connections,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok((stream, peer)) => (stream, PeerAddress(peer.ip())),
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (acceptor, api, stop) = (acceptor.clone(), Arc::clone(api), stop.clone());
        connections.spawn(async move {
            serve(stream, peer, acceptor, api, stop).await;
            drop(place);
        });
    }
}

async fn serve(
    stream: TcpStream,
    peer: PeerAddress,
    acceptor: TlsAcceptor,
    api: Arc<Api>,
    stop: CancellationToken,
) {
    drop(stream.set_nodelay(true));
    let handshake = tokio::time::timeout(HANDSHAKE_MAX, acceptor.accept(stream));
    let stream = match handshake.await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => return tracing::debug!("TLS handshake took too long"),
    };
    let chain = stream.get_ref().1.peer_certificates().unwrap_or(&[]);
    let caller = Caller::Peer(PeerCertificate::new(chain).map(Arc::new));
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        let answered = api.handle(request, caller.clone());
        async move { Ok::<_, Infallible>(answered.await) }
    });
    let builder = serving::builder();
    let stream = TokioIo::new(Beginning::new(stream, HEADER_READ_MAX));
    let connection = builder.serve_connection_with_upgrades(stream, service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.as_mut().await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error, "connection ended");
    }
}
