//! The HTTP service below `kube::Client`: one pooled connection to one endpoint.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::{AUTHORIZATION, USER_AGENT};
use http::{HeaderName, HeaderValue, Request, Response, Uri};
use hyper::body::Incoming;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use kube::client::Body;
use parking_lot::Mutex;
use tower::{BoxError, Service};

use super::dial::{DialError, Stream, dial};
use super::{Endpoint, USER_AGENT as USER_AGENT_TEXT};

const IMPERSONATE_USER: HeaderName = HeaderName::from_static("impersonate-user");
/// Buffered per stream: a watch that is read slowly holds this much, not more.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
/// For all streams of the connection together.
const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;

pub(super) struct Http {
    endpoint: Arc<Endpoint>,
    /// The pool and the generation of the identity its connection was made with.
    pool: Mutex<(u64, Pool)>,
}

type Pool = HyperClient<Connector, Body>;

impl Http {
    pub(super) fn new(endpoint: Arc<Endpoint>) -> Self {
        let generation = endpoint.identity.generation();
        let pool = Mutex::new((generation, pool(endpoint.clone())));
        Self { endpoint, pool }
    }

    /// After a new certificate a fresh pool; the old one ends with its last response.
    fn pool(&self) -> Pool {
        let generation = self.endpoint.identity.generation();
        let mut current = self.pool.lock();
        if current.0 != generation {
            *current = (generation, pool(self.endpoint.clone()));
        }
        current.1.clone()
    }

    fn address(&self, uri: &Uri) -> Result<Uri, http::Error> {
        let base = &self.endpoint.url;
        let prefix = base.path().trim_end_matches('/');
        let tail = uri.path_and_query().map_or("/", |path| path.as_str());
        let mut parts = base.clone().into_parts();
        parts.path_and_query = Some(format!("{prefix}{tail}").parse()?);
        Ok(Uri::from_parts(parts)?)
    }
}

fn pool(endpoint: Arc<Endpoint>) -> Pool {
    let timeouts = endpoint.timeouts;
    let mut builder = HyperClient::builder(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new());
    // TLS endpoints speak HTTP/2, which lets one connection carry everything.
    builder
        .http2_only(endpoint.is_tls())
        .http2_initial_stream_window_size(STREAM_WINDOW_BYTES)
        .http2_initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .http2_keep_alive_interval(timeouts.ping_interval)
        .http2_keep_alive_timeout(timeouts.ping_timeout)
        .http2_keep_alive_while_idle(true);
    builder.build(Connector { endpoint })
}

impl Service<Request<Body>> for Http {
    type Response = Response<Incoming>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        match self.address(request.uri()) {
            Ok(uri) => *request.uri_mut() = uri,
            Err(error) => return async move { Err(error.into()) }.boxed(),
        }
        let headers = request.headers_mut();
        headers.insert(USER_AGENT, HeaderValue::from_static(USER_AGENT_TEXT));
        if let Some(authorization) = self.endpoint.identity.authorization() {
            headers.insert(AUTHORIZATION, authorization);
        }
        if let Some(user) = &self.endpoint.acting_as {
            headers.insert(IMPERSONATE_USER, user.clone());
        }
        let response = self.pool().request(request);
        let waited = self.endpoint.timeouts.response;
        async move {
            match tokio::time::timeout(waited, response).await {
                Ok(response) => Ok(response?),
                Err(_) => Err(format!("no response within {} s", waited.as_secs()).into()),
            }
        }
        .boxed()
    }
}

#[derive(Clone)]
struct Connector {
    endpoint: Arc<Endpoint>,
}

impl Service<Uri> for Connector {
    type Response = Dialled;
    type Error = DialError;
    type Future = BoxFuture<'static, Result<Self::Response, DialError>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), DialError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _uri: Uri) -> Self::Future {
        let endpoint = self.endpoint.clone();
        async move {
            dial(&endpoint, &[b"h2"])
                .await
                .map(|stream| Dialled(TokioIo::new(stream)))
        }
        .boxed()
    }
}

/// A dialled stream in the form the pool wants.
struct Dialled(TokioIo<Stream>);

impl Connection for Dialled {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for Dialled {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_read(context, buffer)
    }
}

impl Write for Dialled {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_shutdown(context)
    }
}
