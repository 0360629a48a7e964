//! `nodes/proxy`, `pods/proxy` and `services/proxy`: a request of the API passed on to what listens
//! in the cluster.
//!
//! The server need not reach a pod itself: a node that is connected dials for it. What comes back
//! is passed on as it arrives, with links in HTML and redirects turned so that they lead through
//! the proxy again. Credentials of the caller never leave the server.

mod dial; // Connections: over a node, or from here; TLS that trusts anybody.
mod endpoint; // The kubelet's endpoints, and the rights that each asks for. Pure.
mod headers; // What a proxy takes from a request and adds to it. Pure.
mod html; // Links of a page as it streams by. Pure.
mod path; // Paths below `proxy`. Pure.
mod rewrite; // Where links and redirects lead. Pure.
mod target; // Which address a name stands for.
mod upgrade; // WebSockets and other protocols through the proxy.

use crate::request_info::RequestInfo;
use crate::respond;
use crate::tunnel::{Body, Tunnels};
use crate::view::View;
use coracle_api::status::Status;
use html::Links;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, LOCATION};
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Incoming;
use rewrite::Rewriter;
use std::sync::Arc;
use target::Target;

pub use dial::{DialError, Duplex, anybody, raw};
pub use endpoint::{OfAgentAlone, finer};
pub use headers::{
    is_upgrade, is_upgrade_to_requests, prepare_passed_on, prepare_upgrade, strip_answer,
};
pub use path::{below, encode};
pub use target::{Place, allowed, owns_address, place_of};
pub use upgrade::switch;

pub const SUBRESOURCE: &str = "proxy";

/// The methods that are passed on.
const METHODS: &[Method] = &[
    Method::GET,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::HEAD,
    Method::OPTIONS,
];

pub struct Proxy {
    view: Arc<dyn View>,
    dialer: dial::Dialer,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy").finish_non_exhaustive()
    }
}

/// What can stop a request on its way: upstream's 503.
fn unreachable(why: impl std::fmt::Display) -> Status {
    Status::service_unavailable(format!("error trying to reach service: {why}"))
}

impl Proxy {
    pub fn new(view: Arc<dyn View>, tunnels: Tunnels) -> Self {
        Self {
            view,
            dialer: dial::Dialer::new(tunnels),
        }
    }

    /// Answers an authorized request for the subresource `proxy`.
    pub async fn connect(
        &self,
        mut request: Parts,
        body: Body,
        info: &RequestInfo,
    ) -> Result<Response<Body>, Status> {
        if !METHODS.contains(&request.method) {
            let (group, resource) = (&info.group, &info.resource);
            return Err(Status::method_not_supported(group, resource, &info.verb));
        }
        let target = target::find(self.view.as_ref(), &self.dialer.tunnels, info)?;
        let is_agent = matches!(target.place, Place::Agent(_));
        if let Some(OfAgentAlone(refusal)) = request.extensions.remove::<OfAgentAlone>()
            && !is_agent
        {
            return Err(refusal);
        }
        let path = path::below(info);
        if headers::is_upgrade(&request.headers) {
            return self.upgrade(request, body, &target, &path).await;
        }
        if path.is_empty() && matches!(request.method, Method::GET | Method::HEAD) {
            return Ok(moved(info, request.uri.query()));
        }
        let rewriter = Rewriter {
            prefix: path::prefix(&info.path, &path),
            target: target.authority.clone(),
            asked: host(&request),
        };
        headers::prepare(&mut request, &rewriter, &path);
        let method = request.method.clone();
        let outgoing = outgoing(request, body, &path)?;
        let answer = match &target.place {
            Place::Agent(node) => {
                let answer = self.dialer.tunnels.request(node, at_agent(outgoing)).await;
                answer.map_err(unreachable)?
            }
            place => self.send(place, &target, outgoing).await?,
        };
        Ok(passed_on(answer, &method, rewriter))
    }

    /// One request on a connection of its own, which ends with the answer's body.
    async fn send(
        &self,
        place: &Place,
        target: &Target,
        request: Request<Body>,
    ) -> Result<Response<Incoming>, Status> {
        let stream = self.dialer.dial(place, target).await.map_err(unreachable)?;
        let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
            .handshake(stream)
            .await
            .map_err(unreachable)?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a proxied connection broke off");
            }
        });
        sender.send_request(request).await.map_err(unreachable)
    }
}

/// The request as the target sees it: only the path, and the body as it comes.
fn outgoing(request: Parts, body: Body, path: &str) -> Result<Request<Body>, Status> {
    let mut uri = if path.is_empty() {
        "/".to_owned()
    } else {
        path::encode(path)
    };
    if let Some(query) = request.uri.query() {
        uri.push('?');
        uri.push_str(query);
    }
    let mut outgoing = Request::new(body);
    *outgoing.method_mut() = request.method;
    *outgoing.uri_mut() = uri.parse().map_err(Status::internal)?;
    *outgoing.headers_mut() = request.headers;
    Ok(outgoing)
}

/// HTTP/2 to the agent: the host is the URI's.
fn at_agent(mut request: Request<Body>) -> Request<Body> {
    request.headers_mut().remove(HOST);
    let path = request
        .uri()
        .path_and_query()
        .map_or("/", |one| one.as_str());
    // A path that stood in a request stands in another one too.
    if let Ok(uri) = format!("http://node{path}").parse::<Uri>() {
        *request.uri_mut() = uri;
    }
    request
}

/// The host that the client spoke to.
fn host(request: &Parts) -> String {
    let named = request.headers.get(HOST);
    let text = named.and_then(|value| value.to_str().ok());
    text.or_else(|| request.uri.authority().map(|one| one.as_str()))
        .unwrap_or("")
        .to_owned()
}

/// The root without its slash would break relative links.
fn moved(info: &RequestInfo, query: Option<&str>) -> Response<Body> {
    let query = query.map_or(String::new(), |query| format!("?{query}"));
    let location = format!("{}/{query}", path::encode(&info.path));
    let mut response = Response::new(respond::full(""));
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    if let Ok(value) = HeaderValue::from_str(&location) {
        response.headers_mut().insert(LOCATION, value);
    }
    response
}

/// The answer as the client gets it.
fn passed_on(answer: Response<Incoming>, method: &Method, rewriter: Rewriter) -> Response<Body> {
    let (mut parts, body) = answer.into_parts();
    headers::strip_answer(&mut parts.headers);
    parts.version = http::Version::default();
    parts.extensions.clear();
    let text = |name| parts.headers.get(name)?.to_str().ok();
    let body = body.map_err(Into::into).boxed_unsync();
    if let Some(location) = text(LOCATION) {
        let turned = rewriter.turn(location);
        if let Ok(value) = HeaderValue::from_str(&turned) {
            parts.headers.insert(LOCATION, value);
        }
        return Response::from_parts(parts, body);
    }
    let kind = text(CONTENT_TYPE).and_then(|kind| kind.split(';').next());
    let is_page = kind.is_some_and(|kind| kind.trim() == "text/html");
    let coding = html::Coding::of(text(CONTENT_ENCODING).unwrap_or(""));
    let (true, Some(coding), false) = (is_page, coding, method == Method::HEAD) else {
        return Response::from_parts(parts, body);
    };
    parts.headers.remove(CONTENT_LENGTH);
    Response::from_parts(parts, page(body, Links::new(rewriter, coding)))
}

/// A page with its links turned, as it arrives.
fn page(body: Body, links: Links) -> Body {
    let chunks = futures::stream::unfold(Some((body, links)), |state| async {
        let (mut body, mut links) = state?;
        loop {
            match body.frame().await {
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else {
                        continue;
                    };
                    match links.push(&data) {
                        Ok(out) if out.is_empty() => {}
                        Ok(out) => return Some((Ok(Frame::data(out)), Some((body, links)))),
                        Err(error) => return Some((Err(error.into()), None)),
                    }
                }
                Some(Err(error)) => return Some((Err(error), None)),
                None => {
                    let last = links.finish().map(Frame::data).map_err(Into::into);
                    return Some((last, None));
                }
            }
        }
    });
    StreamBody::new(chunks).boxed_unsync()
}

#[cfg(test)]
mod tests;
