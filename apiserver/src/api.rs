//! From a request to an answer: authenticate, authorize, then the verb.

use crate::access::Access;
use crate::admission::resource_quota::Quotas;
use crate::admission::{Attributes, How, Operation};
use crate::allocate::Allocator;
use crate::at_rest::{self, AtRest};
use crate::audit::{self, Audit};
use crate::authenticate::{PeerCertificate, User, bearer, impersonate};
use crate::authorize::{self, Decision};
use crate::config::Clock;
use crate::custom::convert::Converter;
use crate::deadline;
use crate::endpoints::Endpoints;
use crate::fairness::{self, Fairness, Seat};
use crate::metrics::Metrics;
use crate::policy_feed;
use crate::proxy;
use crate::query::Query;
use crate::registry::Registry;
use crate::request_info::RequestInfo;
use crate::respond::{self, Route, Served, Shape, Wishes};
use crate::routes;
use crate::snapshots::{self, Snapshots};
use crate::streaming;
use crate::tokens::Remarks;
use crate::tunnel::{Body, BoxError};
use crate::usage::Usage;
use crate::verbs::asked::Asked;
use crate::verbs::{
    bind, components, create, delete, delete_collection, evict, get, list, measured, patch, scale,
    token, update, watch,
};
use crate::warnings::{self, Warnings};
use bytes::Bytes;
use coracle_api::resource::{Resource, Subresource, SubresourceKind};
use coracle_api::status::Status;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::request::Parts;
use http::{Method, Request, Response};
use http_body::Body as _;
use http_body_util::BodyExt;
use parking_lot::Mutex;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What a request waits for its seat when there is one is not worth telling apart.
const WAIT_COUNTED: Duration = Duration::from_millis(1);
const NODES_PATH: &str = "/coracle/v1/nodes/";

/// Everything that answering takes.
pub struct Api {
    pub registry: Registry,
    pub access: Arc<Access>,
    pub allocator: Allocator,
    pub quotas: Quotas,
    pub converter: Converter,
    pub endpoints: Endpoints,
    pub metrics: Arc<Metrics>,
    pub clock: Clock,
    /// The parts of the control plane that run in this process.
    pub components: components::Components,
    /// Ends streams when the server drains.
    pub shutdown: CancellationToken,
    pub fairness: Arc<Fairness>,
    /// Absent when nothing is recorded.
    pub audit: Option<Arc<Audit>>,
    /// What nodes and pods use; absent where somebody else tells.
    pub usage: Option<Arc<Usage>>,
    pub snapshots: Snapshots,
    /// Absent when the store is plain.
    pub at_rest: Option<Arc<AtRest>>,
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").finish_non_exhaustive()
    }
}

/// Where a request came from: an extension of it.
#[derive(Clone, Copy, Debug)]
pub struct PeerAddress(pub IpAddr);

/// How long a request waited for its seat: an extension of its answer.
#[derive(Clone, Copy, Debug)]
struct Waited(Duration);

/// Who sends a request.
#[derive(Clone, Debug)]
pub enum Caller {
    /// Somebody on a connection, with the certificate shown in the handshake.
    Peer(Option<Arc<PeerCertificate>>),
    /// A part of this process.
    Inside(Arc<User>),
}

impl Api {
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
        let (mut parts, body) = request.into_parts();
        let query = Query::parse(parts.uri.query().unwrap_or(""));
        let info = Arc::new(RequestInfo::of(&parts.method, &parts.uri, &query));
        let audit_id = audit::id(&parts);
        let trail = self.audit.as_ref();
        let trail = trail.map(|audit| audit.follow(&mut parts, &info, &audit_id));
        let begun = Instant::now();
        let is_dry_run = !query.text("dryRun").is_empty();
        let recording = self.metrics.begin(&info, self.row(&info), is_dry_run);
        let warnings = Warnings::default();
        parts.extensions.insert(warnings.clone());
        let wishes = Wishes::of(&parts);
        let deadline = deadline::of(&info, &query, begun);
        deadline::note(&mut parts, deadline.as_ref().ok().copied().flatten());
        let routed = self.route(parts, body, query, &info, caller, &wishes);
        let routed = async { deadline::meet(deadline?, routed).await };
        let answered = AssertUnwindSafe(routed).catch_unwind();
        let mut response = match answered.await {
            Ok(Ok(response)) => response,
            Ok(Err(status)) => wishes.failure(&status),
            Err(_) => {
                self.metrics.count_panic();
                tracing::error!(path = info.path, "a request panicked");
                trail.iter().for_each(|trail| trail.panicked());
                wishes.failure(&Status::internal("the request panicked"))
            }
        };
        warnings.put(response.headers_mut());
        let response = match trail {
            Some(trail) => trail.answered(response),
            None => response,
        };
        let mut response = wishes.finish(response);
        response.headers_mut().insert(audit::AUDIT_ID, audit_id);
        let size = response.body().size_hint().exact();
        let waited = response.extensions_mut().remove::<Waited>();
        let waited = waited.map_or(Duration::ZERO, |waited| waited.0);
        let code = response.status().as_u16();
        recording.finish(code, begun.elapsed(), waited, size);
        response
    }

    /// The row that a request names, if there is one.
    fn row(&self, info: &RequestInfo) -> Option<&'static Resource> {
        let registry = &self.registry;
        registry.find(&info.group, &info.version, &info.resource)
    }

    /// Who asks, and what they are answered.
    async fn route(
        &self,
        parts: Parts,
        body: Body,
        query: Query,
        info: &Arc<RequestInfo>,
        caller: &Caller,
        wishes: &Wishes,
    ) -> Result<Response<Body>, Status> {
        let user = self.recognize(&parts, caller).await?;
        let user = match self.acting_as(user, &parts, info) {
            Ok(user) => user,
            Err(status) => return Ok(wishes.refusal(&status)),
        };
        Box::pin(self.placed(parts, body, query, info, user, wishes)).await
    }

    /// When it is their turn.
    async fn placed(
        &self,
        parts: Parts,
        body: Body,
        query: Query,
        info: &Arc<RequestInfo>,
        user: User,
        wishes: &Wishes,
    ) -> Result<Response<Body>, Status> {
        let user = Arc::new(user);
        let body = match audit::trail::of(&parts) {
            Some(trail) => trail.keep_request(&parts.headers, body),
            None => body,
        };
        if fairness::is_stream(info) || tunnel_node(info).is_some() {
            return self.allowed(parts, body, info, &user, query, None).await;
        }
        let asked_at = Instant::now();
        let seat = match self.fairness.admit(&user, info, &query).await {
            Ok(seat) => seat,
            Err(refused) => return Ok(refused.response()),
        };
        let waited = Waited(asked_at.elapsed());
        let placed = seat.placed();
        let answer = self.allowed(parts, body, info, &user, query, Some(seat));
        let mut response = match answer.await {
            Ok(response) => response,
            Err(status) => wishes.failure(&status),
        };
        placed.mark(response.headers_mut());
        if waited.0 > WAIT_COUNTED {
            response.extensions_mut().insert(waited);
        }
        Ok(response)
    }

    /// Where a node's endpoint has a right of its own, that one will do.
    fn decide(&self, parts: &mut Parts, info: &RequestInfo, user: &User) -> Decision {
        let decision = self.access.authorizer.authorize(user, info);
        if decision.is_allowed() {
            return decision;
        }
        let Some(finer) = proxy::finer(info) else {
            return decision;
        };
        let of_endpoint = self.access.authorizer.authorize(user, &finer);
        if !of_endpoint.is_allowed() {
            return decision;
        }
        let refusal = authorize::forbidden(user, info, decision.reason());
        parts.extensions.insert(proxy::OfAgentAlone(refusal));
        of_endpoint
    }

    async fn allowed(
        &self,
        mut parts: Parts,
        body: Body,
        info: &RequestInfo,
        user: &User,
        query: Query,
        seat: Option<Seat>,
    ) -> Result<Response<Body>, Status> {
        let now = (self.clock)();
        let asked_at = Instant::now();
        let decision = self.decide(&mut parts, info, user);
        let took = asked_at.elapsed();
        if let Some(trail) = audit::trail::of(&parts) {
            trail.decided(&decision);
        }
        self.metrics.access.decided(decision.is_allowed(), took);
        if !decision.is_allowed() {
            let refused = authorize::forbidden(user, info, decision.reason());
            return Ok(Wishes::of(&parts).refusal(&refused));
        }
        if let Some(remote) = self.access.aggregation.find(info) {
            let aggregation = &self.access.aggregation;
            let passed = aggregation.pass(&remote, parts, body, info, user, now);
            return Ok(Box::pin(passed).await);
        }
        if !info.is_resource_request {
            return self.other(parts, body, &query, info, user).await;
        }
        let found = routes::find(self.row(info), &parts, info);
        let is_left_out = info.group == measured::GROUP && self.usage.is_none();
        if is_left_out || found.is_err() && !routes::has_group(&self.registry.kinds(), info) {
            return Ok(respond::page_not_found());
        }
        let (resource, subresource) = found?;
        if subresource.is_some_and(|one| one.kind == SubresourceKind::Connect) {
            return self
                .connect(parts, &query, body, info, user, resource)
                .await;
        }
        // An update looks at its body first.
        if info.verb != "update" {
            routes::check_name(info)?;
        }
        let served = Served {
            table: has_table(resource, subresource),
            route: match info.verb.as_str() {
                "watch" => Route::Watch,
                "list" => Route::List,
                _ => Route::One,
            },
        };
        let shape = Shape::of(&parts, served, now.as_second())?;
        let asked = Asked {
            request: &parts,
            info,
            user,
            resource,
            subresource,
            query,
            shape,
            now,
            warnings: warnings::of(&parts),
            seat: Mutex::new(seat),
        };
        if let Some(warning) = resource.rules.deprecation() {
            asked.warnings.add([warning.to_owned()]);
            if let Some(trail) = audit::trail::of(&parts) {
                trail.annotate("k8s.io/deprecated", "true");
            }
        }
        self.verb(&asked, body).await
    }

    /// The user behind a request.
    async fn recognize(&self, parts: &Parts, caller: &Caller) -> Result<User, Status> {
        let asked_at = Instant::now();
        let user = match caller {
            Caller::Inside(user) => User::clone(user),
            Caller::Peer(peer) => {
                let peer = peer.as_deref();
                self.authenticate(parts, peer, asked_at).await?
            }
        };
        self.metrics.access.recognized(&user, asked_at.elapsed());
        if let Some(trail) = audit::trail::of(parts) {
            trail.identified(&user);
        }
        Ok(user)
    }

    /// Says what is to be said about a token, in all places where it is told.
    pub fn remark(&self, parts: &Parts, remarks: &Remarks) {
        self.metrics.access.shown(remarks);
        warnings::of(parts).add(remarks.warning.map(str::to_owned));
        if let Some(trail) = audit::trail::of(parts) {
            for (key, value) in &remarks.audit {
                trail.annotate(key, value);
            }
        }
        if let Some(used) = &remarks.used {
            self.access.legacy_uses.tell(used.clone());
        }
    }

    /// Whom they act as: themselves, unless they ask for another.
    fn acting_as(&self, user: User, parts: &Parts, info: &RequestInfo) -> Result<User, Status> {
        let (authorizer, modes) = (&self.access.authorizer, &self.access.last_modes);
        let acting = impersonate::acting_as(authorizer, modes, user, &parts.headers, info);
        let acting = acting.inspect_err(|_| self.metrics.access.impersonated(None))?;
        if let Some(mode) = acting.by {
            self.metrics.access.impersonated(Some(mode));
            if let Some(trail) = audit::trail::of(parts) {
                trail.impersonated(&acting.user, mode);
            }
        }
        Ok(acting.user)
    }

    async fn authenticate(
        &self,
        parts: &Parts,
        peer: Option<&PeerCertificate>,
        asked_at: Instant,
    ) -> Result<User, Status> {
        let authenticator = &self.access.authenticator;
        let mut remarks = Remarks::default();
        let found = authenticator
            .authenticate(parts, peer, (self.clock)(), &mut remarks)
            .await;
        self.remark(parts, &remarks);
        if found.is_err() {
            if let Some(trail) = audit::trail::of(parts) {
                trail.unrecognized(&parts.headers, peer.is_some());
            }
            let has_shown = peer.is_some() || bearer::token(&parts.headers).is_some();
            let took = asked_at.elapsed();
            self.metrics.access.unrecognized(has_shown, took);
        }
        found
    }

    async fn other(
        &self,
        parts: Parts,
        body: Body,
        query: &Query,
        info: &RequestInfo,
        user: &User,
    ) -> Result<Response<Body>, Status> {
        let store = &self.registry.store;
        if info.path == at_rest::ROTATE_PATH && parts.method == Method::POST {
            return at_rest::rotate(self.at_rest.clone(), store.clone()).await;
        }
        if snapshots::is_path(info) {
            let now = (self.clock)();
            let answer = self.snapshots.answer(
                &parts.method,
                body,
                user,
                store,
                (now, self.shutdown.clone()),
            );
            return answer.await;
        }
        if let Some(node) = tunnel_node(info) {
            let response = self.access.tunnels.accept(parts, user, node)?;
            return Ok(response.map(|()| respond::full(Bytes::new())));
        }
        if policy_feed::is_asked(&parts.method, info) {
            let shutdown = self.shutdown.clone();
            return Ok(policy_feed::follow(store.clone(), shutdown));
        }
        if let Some(response) = self.endpoints.answer(&parts, query, info) {
            return Ok(response);
        }
        // Below what has a router a Status says so, elsewhere plain text.
        if routes::is_below_router(&self.registry.kinds(), &info.path) {
            Err(Status::path_not_found())
        } else {
            Ok(respond::page_not_found())
        }
    }

    async fn connect(
        &self,
        parts: Parts,
        query: &Query,
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
            warnings: &warnings::of(&parts),
            trail: audit::trail::of(&parts).map(AsRef::as_ref),
            how: How::Connection {
                query,
                path: &proxy::below(info),
            },
            deadline: deadline::noted(&parts),
        };
        self.access.admission.pass(&attributes).await?;
        if info.subresource == proxy::SUBRESOURCE {
            return self.access.proxy.connect(parts, body, info).await;
        }
        if info.subresource == streaming::LOG {
            // What goes wrong with it is an object, so that one must be acceptable too.
            let accept = respond::accepted(&parts);
            respond::check_produced(&accept, &streaming::LOG_TYPES)?;
            let served = Served {
                table: false,
                route: Route::One,
            };
            respond::best(&accept, served)?;
        }
        self.access.streams.connect(parts, query, info, user).await
    }

    async fn verb(&self, asked: &Asked<'_>, body: Body) -> Result<Response<Body>, Status> {
        let kind = asked.subresource.map(|one| one.kind);
        match (asked.info.verb.as_str(), kind) {
            ("get", Some(SubresourceKind::Scale)) => scale::get(self, asked).await,
            ("update", Some(SubresourceKind::Scale)) => scale::update(self, asked, body).await,
            ("patch", Some(SubresourceKind::Scale)) => scale::patch(self, asked, body).await,
            ("create", Some(SubresourceKind::Action)) => self.act(asked, body).await,
            ("get", None) if asked.resource.kind == components::KIND => {
                components::get(self, asked)
            }
            ("list", None) if asked.resource.kind == components::KIND => {
                components::list(self, asked)
            }
            ("get", None) if asked.resource.group == measured::GROUP => {
                measured::get(self, asked).await
            }
            ("list", None) if asked.resource.group == measured::GROUP => {
                measured::list(self, asked).await
            }
            ("get", _) => get::get(self, asked).await,
            ("list", None) => list::list(self, asked).await,
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
            _ => Err(routes::not_supported()),
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

/// The node whose agent asks to keep a connection.
fn tunnel_node(info: &RequestInfo) -> Option<&str> {
    let rest = info.path.strip_prefix(NODES_PATH)?;
    let node = rest.strip_suffix("/tunnel")?;
    (!node.is_empty() && !node.contains('/')).then_some(node)
}

/// False for what is answered and never stored: upstream has no columns for it.
fn has_table(resource: &Resource, subresource: Option<&Subresource>) -> bool {
    match subresource {
        Some(subresource) => subresource.kind != SubresourceKind::Action,
        None => resource.verbs.contains(&"get"),
    }
}
