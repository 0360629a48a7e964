//! From a request to an answer: authenticate, authorize, then the verb.

use crate::access::Access;
use crate::admission::{Attributes, Operation};
use crate::allocate::Allocator;
use crate::authenticate::{PeerCertificate, User, impersonate};
use crate::config::Clock;
use crate::endpoints::Endpoints;
use crate::metrics::Metrics;
use crate::proxy;
use crate::query::Query;
use crate::registry::Registry;
use crate::request_info::RequestInfo;
use crate::respond::{self, Shape};
use crate::tunnel::{Body, BoxError};
use crate::verbs::asked::Asked;
use crate::verbs::{
    bind, create, delete, delete_collection, evict, get, list, patch, scale, token, update, watch,
};
use bytes::Bytes;
use coracle_api::catalogue;
use coracle_api::resource::{Resource, Subresource, SubresourceKind};
use coracle_api::status::Status;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::request::Parts;
use http::{Request, Response};
use http_body_util::BodyExt;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Requests worked on at a time, streams aside: upstream's read and write bounds together.
const IN_FLIGHT_MAX: usize = 600;
const NODES_PATH: &str = "/coracle/v1/nodes/";

/// Everything that answering takes.
pub struct Api {
    pub registry: Registry,
    pub access: Arc<Access>,
    pub allocator: Allocator,
    pub endpoints: Endpoints,
    pub metrics: Arc<Metrics>,
    pub clock: Clock,
    /// Ends streams when the server drains.
    pub shutdown: CancellationToken,
    places: Semaphore,
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").finish_non_exhaustive()
    }
}

/// Where a request came from: an extension of it.
#[derive(Clone, Copy, Debug)]
pub struct PeerAddress(pub IpAddr);

/// Who sends a request.
#[derive(Clone, Debug)]
pub enum Caller {
    /// Somebody on a connection, with the certificate shown in the handshake.
    Peer(Option<Arc<PeerCertificate>>),
    /// A part of this process.
    Inside(Arc<User>),
}

impl Api {
    pub fn new(
        registry: Registry,
        access: Arc<Access>,
        allocator: Allocator,
        endpoints: Endpoints,
        metrics: Arc<Metrics>,
        clock: Clock,
        shutdown: CancellationToken,
    ) -> Self {
        let places = Semaphore::new(IN_FLIGHT_MAX);
        Self {
            registry,
            access,
            allocator,
            endpoints,
            metrics,
            clock,
            shutdown,
            places,
        }
    }

    /// Answers any request. Never fails: what goes wrong is an answer too. Boxed, so that callers
    /// need not name a future as large as this one.
    pub fn handle<B>(
        self: &Arc<Self>,
        request: Request<B>,
        caller: Caller,
    ) -> BoxFuture<'static, Response<Body>>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
        let this = Arc::clone(self);
        Box::pin(async move { this.answer(request, &caller).await })
    }

    async fn answer(&self, request: Request<Body>, caller: &Caller) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let info = RequestInfo::parse(&parts.method, &parts.uri);
        let begun = Instant::now();
        let recording = self.metrics.begin(&info);
        let answered = AssertUnwindSafe(self.route(parts, body, &info, caller)).catch_unwind();
        let response = match answered.await {
            Ok(Ok(response)) => response,
            Ok(Err(status)) => respond::failure(&status),
            Err(_) => {
                self.metrics.count_panic();
                tracing::error!(path = info.path, "a request panicked");
                respond::failure(&Status::internal("the request panicked"))
            }
        };
        recording.finish(response.status().as_u16(), begun.elapsed());
        response
    }

    async fn route(
        &self,
        parts: Parts,
        body: Body,
        info: &RequestInfo,
        caller: &Caller,
    ) -> Result<Response<Body>, Status> {
        let now = (self.clock)();
        let user = self.identify(&parts, caller)?;
        self.access.authorizer.check(&user, info)?;
        if !info.is_resource_request {
            return self.other(parts, info, &user);
        }
        let (resource, subresource) = find(info)?;
        if subresource.is_some_and(|one| one.kind == SubresourceKind::Connect) {
            return self.connect(parts, body, info, &user, resource).await;
        }
        let is_long = info.verb == "watch";
        let place = if is_long {
            None
        } else {
            Some(self.place().await?)
        };
        let query = Query::parse(parts.uri.query().unwrap_or(""));
        let shape = Shape::of(&parts, has_table(resource, subresource), now.as_second())?;
        let asked = Asked {
            request: &parts,
            info,
            user: &user,
            resource,
            subresource,
            query,
            shape,
            now,
        };
        let mut answer = self.verb(&asked, body).await;
        drop(place);
        if let (Some(warning), Ok(response)) = (resource.rules.deprecation(), &mut answer) {
            respond::warn(response.headers_mut(), &[warning.to_owned()]);
        }
        answer
    }

    fn identify(&self, parts: &Parts, caller: &Caller) -> Result<User, Status> {
        let user = match caller {
            Caller::Inside(user) => User::clone(user),
            Caller::Peer(peer) => {
                let now = (self.clock)();
                self.access
                    .authenticator
                    .authenticate(parts, peer.as_deref(), now)?
            }
        };
        impersonate::acting_as(&self.access.authorizer, user, &parts.headers)
    }

    /// Too many at once are told to come back, which is kinder than a queue without end.
    async fn place(&self) -> Result<tokio::sync::SemaphorePermit<'_>, Status> {
        self.places
            .try_acquire()
            .map_err(|_| Status::too_many_requests("too many requests, please try again later", 1))
    }

    fn other(
        &self,
        parts: Parts,
        info: &RequestInfo,
        user: &User,
    ) -> Result<Response<Body>, Status> {
        let node = info
            .path
            .strip_prefix(NODES_PATH)
            .and_then(|rest| rest.strip_suffix("/tunnel"));
        if let Some(node) = node.filter(|node| !node.is_empty() && !node.contains('/')) {
            let response = self.access.tunnels.accept(parts, user, node)?;
            return Ok(response.map(|()| respond::full(Bytes::new())));
        }
        self.endpoints
            .answer(&parts, info)
            .ok_or_else(Status::path_not_found)
    }

    async fn connect(
        &self,
        parts: Parts,
        body: Body,
        info: &RequestInfo,
        user: &User,
        resource: &'static Resource,
    ) -> Result<Response<Body>, Status> {
        let attributes = Attributes {
            user,
            operation: Operation::Connect,
            resource,
            subresource: &info.subresource,
            namespace: &info.namespace,
            name: &info.name,
            old: None,
            dry_run: false,
        };
        self.access.admission.validate(None, &attributes)?;
        if info.subresource == proxy::SUBRESOURCE {
            return self.access.proxy.connect(parts, body, info).await;
        }
        self.access.streams.connect(parts, info, user).await
    }

    async fn verb(&self, asked: &Asked<'_>, body: Body) -> Result<Response<Body>, Status> {
        let kind = asked.subresource.map(|one| one.kind);
        match (asked.info.verb.as_str(), kind) {
            ("get", Some(SubresourceKind::Scale)) => scale::get(self, asked),
            ("update", Some(SubresourceKind::Scale)) => scale::update(self, asked, body).await,
            ("patch", Some(SubresourceKind::Scale)) => scale::patch(self, asked, body).await,
            ("create", Some(SubresourceKind::Action)) => self.act(asked, body).await,
            ("get", _) => get::get(self, asked),
            ("list", None) => list::list(self, asked),
            ("watch", None) => watch::watch(self, asked),
            ("create", None) if asked.resource.kind == bind::KIND => {
                bind::bind(self, asked, body).await
            }
            ("create", None) => create::create(self, asked, body).await,
            ("update", _) => update::update(self, asked, body).await,
            ("patch", _) => patch::patch(self, asked, body).await,
            ("delete", None) => delete::delete(self, asked, body).await,
            ("deletecollection", None) => {
                delete_collection::delete_collection(self, asked, body).await
            }
            _ => Err(not_supported(asked.info)),
        }
    }

    /// A create of a small object that acts on the named one.
    async fn act(&self, asked: &Asked<'_>, body: Body) -> Result<Response<Body>, Status> {
        match asked.subresource.map(|one| one.name) {
            Some(bind::SUBRESOURCE) => bind::bind(self, asked, body).await,
            Some(evict::SUBRESOURCE) => evict::evict(self, asked, body).await,
            Some(token::SUBRESOURCE) => token::create(self, asked, body).await,
            _ => Err(Status::path_not_found()),
        }
    }
}

fn not_supported(info: &RequestInfo) -> Status {
    Status::method_not_supported(&info.group, &info.resource, &info.verb)
}

type Found = (&'static Resource, Option<&'static Subresource>);

/// The row of what is asked for; a verb that it does not have is 405.
/// False for what is answered and never stored: upstream has no columns for it.
fn has_table(resource: &Resource, subresource: Option<&Subresource>) -> bool {
    match subresource {
        Some(subresource) => subresource.kind != SubresourceKind::Action,
        None => resource.verbs.contains(&"get"),
    }
}

fn find(info: &RequestInfo) -> Result<Found, Status> {
    let resource = catalogue::find(&info.group, &info.version, &info.resource)
        .ok_or_else(Status::path_not_found)?;
    // One object of a namespaced resource needs its namespace; a list may name one in a selector.
    let is_of_many = matches!(info.verb.as_str(), "list" | "watch" | "deletecollection");
    let lacks_namespace = resource.is_namespaced() && info.namespace.is_empty();
    if lacks_namespace && !info.name.is_empty() && !is_of_many {
        return Err(Status::path_not_found());
    }
    if info.subresource.is_empty() {
        let verb = info.verb.as_str();
        // A collection takes what makes one more, an object what is about itself.
        let fits = match verb {
            "create" => info.name.is_empty(),
            "update" | "patch" => !info.name.is_empty(),
            _ => true,
        };
        let has = fits && resource.verbs.contains(&verb);
        return if has {
            Ok((resource, None))
        } else {
            Err(not_supported(info))
        };
    }
    let subresource = resource
        .subresource(&info.subresource)
        .ok_or_else(Status::path_not_found)?;
    let has = subresource.kind == SubresourceKind::Connect
        || subresource.verbs.contains(&info.verb.as_str());
    if has {
        Ok((resource, Some(subresource)))
    } else {
        Err(not_supported(info))
    }
}
