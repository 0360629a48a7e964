//! One connection: TLS, then HTTP/1.1 or HTTP/2, until either side ends it.

mod beginning; // The first bytes, bounded in time.

use super::places::{Place, Places, Work};
use crate::api::{Api, Caller, PeerAddress};
use crate::authenticate::PeerCertificate;
use crate::tunnel::{Body, BoxError};
use beginning::Beginning;
use bytes::Bytes;
use coracle_streams::serving::{self, HEADER_READ_MAX};
use http::Request;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A client that does not finish its handshake holds a place for this long at most.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// After a failure to accept, such as no free file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Accepts until `stop`; gives back the connections that are still open.
pub async fn accept(
    listener: &TcpListener,
    tls: &Arc<ServerConfig>,
    api: &Arc<Api>,
    places: &Arc<Places>,
    stop: CancellationToken,
) -> TaskTracker {
    let connections = TaskTracker::new();
    let acceptor = TlsAcceptor::from(Arc::clone(tls));
    loop {
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
        let place = tokio::select! {
            () = stop.cancelled() => return connections,
            place = places.take(peer.0) => Arc::new(place),
        };
        let (acceptor, api, stop) = (acceptor.clone(), Arc::clone(api), stop.clone());
        connections.spawn(async move {
            let serving = serve(stream, peer, acceptor, api, Arc::clone(&place), stop);
            // Newcomers do not wait for whoever reads nothing any more.
            tokio::select! {
                () = serving => {}
                () = place.taken() => {}
            }
        });
    }
}

/// A body whose connection is at work until all of it is sent.
struct Sent {
    body: Body,
    _work: Work,
}

impl http_body::Body for Sent {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

async fn serve(
    stream: TcpStream,
    peer: PeerAddress,
    acceptor: TlsAcceptor,
    api: Arc<Api>,
    place: Arc<Place>,
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
        let work = place.work();
        let answered = api.handle(request, caller.clone());
        async move { Ok::<_, Infallible>(answered.await.map(|body| Sent { body, _work: work })) }
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
