//! APIs of other servers, served as if they were this server's: what an APIService with a Service
//! names is passed on to that Service, with the name of the user.
//!
//! Who asks, and whether they may, is decided before. The other server learns who it is from headers
//! that this server alone can send, as it shows a certificate with them. Credentials of users never
//! leave, and what is passed on has the path that was decided about.

pub mod documents; // Their groups in discovery, their kinds in OpenAPI. Pure.
pub mod follow; // Which there are, and whether they answer.

mod check; // Whether one can answer. Pure.
mod headers; // What another server is told of a user. Pure.
mod remote; // One of them.

use crate::authenticate::User;
use crate::authenticate::user::MASTERS;
use crate::fairness;
use crate::pki::front_proxy::FrontProxy;
use crate::proxy::{self, Duplex};
use crate::request_info::RequestInfo;
use crate::respond;
use crate::tunnel::{Body, Tunnels};
use crate::view::View;
use crate::webhook;
use futures::StreamExt;
use http::header::{CONTENT_TYPE, HOST, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::request::Parts;
use http::{Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, BodyStream, StreamBody};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;

pub use remote::Remote;

const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
const OPENAPI: &str = "/openapi/v3/apis/";

/// The other servers, and who this one is to them.
pub struct Aggregation {
    view: Arc<dyn View>,
    tunnels: Tunnels,
    front_proxy: Arc<FrontProxy>,
    /// Ends answers that have no end.
    shutdown: CancellationToken,
    count: AtomicUsize,
    remotes: RwLock<Arc<[Arc<Remote>]>>,
}

/// Why another server gave no answer.
#[derive(Debug, thiserror::Error)]
enum SendError {
    /// Nothing is there to be asked.
    #[error("{0}")]
    Unresolved(String),
    #[error("{0}")]
    Broken(String),
}

impl std::fmt::Debug for Aggregation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Aggregation").finish_non_exhaustive()
    }
}

impl Aggregation {
    pub fn new(
        view: Arc<dyn View>,
        tunnels: Tunnels,
        front_proxy: Arc<FrontProxy>,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            view,
            tunnels,
            front_proxy,
            shutdown,
            count: AtomicUsize::new(0),
            remotes: RwLock::new(Arc::from([])),
        }
    }

    /// All of them, the first of a group's versions first.
    pub fn all(&self) -> Arc<[Arc<Remote>]> {
        Arc::clone(&self.remotes.read())
    }

    fn put(&self, remotes: Vec<Arc<Remote>>) {
        let count = remotes.len();
        *self.remotes.write() = remotes.into();
        self.count.store(count, Ordering::Release);
    }

    /// Whose a request is. Where there are none it costs one load.
    pub fn find(&self, info: &RequestInfo) -> Option<Arc<Remote>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let of_document = info.path.strip_prefix(OPENAPI);
        // It is asked for with rights of this server's own: it is read, and nothing else.
        if of_document.is_some() && !matches!(info.verb.as_str(), "get" | "head") {
            return None;
        }
        let mut steps = match of_document {
            Some(rest) => rest.split('/'),
            None => info.path.strip_prefix("/apis/")?.split('/'),
        };
        let (group, version) = (steps.next()?, steps.next()?);
        if of_document.is_some() && steps.next().is_some() {
            return None;
        }
        let all = self.all();
        let mut fitting = all.iter();
        fitting
            .find(|remote| {
                let is_it = remote.group == group && remote.version == version;
                is_it && (of_document.is_none() || remote.told().schema.is_some())
            })
            .map(Arc::clone)
    }

    /// Passes an authorized request on. What stands in the way is a 503 in plain text, as upstream.
    pub async fn pass(
        &self,
        remote: &Remote,
        mut request: Parts,
        body: Body,
        info: &RequestInfo,
        user: &User,
        now: Timestamp,
    ) -> Response<Body> {
        if !remote.is_available {
            return unavailable("service unavailable");
        }
        let Some(uri) = target(info, request.uri.query()) else {
            return respond::page_not_found();
        };
        // A document shows no objects: it is asked for by this server itself, as upstream.
        let own = info.path.starts_with(OPENAPI).then(aggregator);
        let user = own.as_ref().unwrap_or(user);
        // Another protocol by which requests are made would go past the headers that name the user.
        let is_upgrade = own.is_none()
            && proxy::is_upgrade(&request.headers)
            && !proxy::is_upgrade_to_requests(&request.headers);
        let client = request.extensions.remove::<OnUpgrade>();
        if is_upgrade {
            proxy::prepare_upgrade(&mut request);
        } else {
            proxy::prepare_passed_on(&mut request);
        }
        headers::put_user(&mut request.headers, user);
        let mut outgoing = Request::new(body);
        *outgoing.method_mut() = request.method;
        *outgoing.uri_mut() = uri;
        *outgoing.headers_mut() = request.headers;
        let answered = match (is_upgrade, client) {
            (false, _) => {
                let sent = self.send(remote, outgoing, now).await;
                let is_endless = info.verb == "watch" || fairness::is_stream(info);
                let ends = is_endless.then(|| self.shutdown.clone());
                sent.map(|answer| passed_on(answer, ends))
            }
            (true, Some(client)) => self.switch(remote, outgoing, client, now).await,
            (true, None) => {
                let why = "this connection cannot be upgraded: HTTP/1.1 is needed";
                Err(SendError::Broken(why.to_owned()))
            }
        };
        answered.unwrap_or_else(|error| match error {
            SendError::Unresolved(why) => {
                tracing::debug!(why, object = remote.object, "an API service leads nowhere");
                unavailable("service unavailable")
            }
            SendError::Broken(why) => unavailable(&why),
        })
    }

    /// One request on a connection of its own, which ends with the answer's body.
    async fn send(
        &self,
        remote: &Remote,
        mut request: Request<Body>,
        now: Timestamp,
    ) -> Result<Response<Incoming>, SendError> {
        let stream = TokioIo::new(self.dial(remote, now).await?);
        let shaken = http1::handshake(stream).await;
        let (mut sender, connection) = shaken.map_err(|error| broken(&error))?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to another API server broke off");
            }
        });
        name_host(remote, &mut request)?;
        let sent = sender.send_request(request).await;
        sent.map_err(|error| SendError::Broken(webhook::http_words(&error)))
    }

    /// Another protocol, passed through as bytes.
    async fn switch(
        &self,
        remote: &Remote,
        mut request: Request<Body>,
        client: OnUpgrade,
        now: Timestamp,
    ) -> Result<Response<Body>, SendError> {
        name_host(remote, &mut request)?;
        let stream = TokioIo::new(self.dial(remote, now).await?);
        let switched = proxy::switch(stream, request, client).await;
        switched.map_err(|status| SendError::Broken(status.message))
    }

    async fn dial(&self, remote: &Remote, now: Timestamp) -> Result<Box<dyn Duplex>, SendError> {
        let tls = remote.tls(&self.front_proxy, now);
        let tls = tls.map_err(SendError::Broken)?;
        let place = webhook::endpoint(self.view.as_ref(), &self.tunnels, &remote.service);
        let raw = proxy::raw(&self.tunnels, &place.map_err(SendError::Unresolved)?).await;
        let (raw, _) = raw.map_err(|error| broken(&error))?;
        let name = remote.name().map_err(SendError::Broken)?;
        let shaking = TlsConnector::from(tls).connect(name, raw);
        match tokio::time::timeout(HANDSHAKE_MAX, shaking).await {
            Ok(Ok(stream)) => Ok(Box::new(stream)),
            Ok(Err(error)) => Err(SendError::Broken(webhook::tls_words(&error))),
            Err(_) => Err(SendError::Broken(
                "net/http: TLS handshake timeout".to_owned(),
            )),
        }
    }
}

fn broken(error: &dyn std::fmt::Display) -> SendError {
    SendError::Broken(error.to_string())
}

fn name_host(remote: &Remote, request: &mut Request<Body>) -> Result<(), SendError> {
    let host = HeaderValue::try_from(remote.authority()).map_err(|error| broken(&error))?;
    request.headers_mut().insert(HOST, host);
    Ok(())
}

/// Who asks where no user does.
fn aggregator() -> User {
    let mut user = User::named("system:kube-aggregator");
    user.groups = vec![MASTERS.to_owned()];
    user
}

/// The path that was decided about, written anew, so that the other server cannot take another one
/// out of it. `None` for one that leads back up.
fn target(info: &RequestInfo, query: Option<&str>) -> Option<Uri> {
    let mut steps = info.path.split('/');
    if steps.any(|step| matches!(step, "." | "..")) {
        return None;
    }
    let path = proxy::encode(&info.path);
    let whole = match query {
        Some(query) => format!("{path}?{query}"),
        None => path,
    };
    whole.parse().ok()
}

fn unavailable(why: &str) -> Response<Body> {
    let mut response = Response::new(respond::full(format!("{why}\n")));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let headers = response.headers_mut();
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(CONTENT_TYPE, text);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// The answer as the client gets it: as it comes; one that has no end by itself until this server
/// stops.
fn passed_on(answer: Response<Incoming>, ends: Option<CancellationToken>) -> Response<Body> {
    let (mut parts, body) = answer.into_parts();
    proxy::strip_answer(&mut parts.headers);
    parts.version = http::Version::default();
    parts.extensions.clear();
    let body = body.map_err(Into::into).boxed_unsync();
    let body = match ends {
        None => body,
        Some(ends) => {
            let frames = BodyStream::new(body).take_until(ends.cancelled_owned());
            StreamBody::new(frames).boxed_unsync()
        }
    };
    Response::from_parts(parts, body)
}

#[cfg(test)]
mod tests;
