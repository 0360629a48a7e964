//! The server: opened over a store, made ready, served until it is told to stop, then drained.

use crate::access::{self, Access};
use crate::admission::resource_quota::Quotas;
use crate::aggregation;
use crate::allocate::{Allocator, repair};
use crate::api::{Api, Caller};
use crate::api_services;
use crate::audit::{self, Audit};
use crate::authenticate::User;
use crate::authenticate::user::MASTERS;
use crate::bootstrap::{self, ReconcileError};
use crate::config::Config;
use crate::custom::{self, convert::Converter};
use crate::default_objects;
use crate::endpoints::Endpoints;
use crate::event_ttl;
use crate::fairness::{self, Fairness};
use crate::flow_configuration;
use crate::identity::{self, Identity};
use crate::metrics::{Metrics, Others};
use crate::pki::PkiError;
use crate::pki::kubeconfig::Kubeconfig;
use crate::pki::names::ServerNames;
use crate::registry::Registry;
use crate::snapshots::{KeySource, Snapshots};
use crate::tokens::legacy;
use crate::tunnel::{Body, BoxError};
use crate::usage::Usage;
use crate::verbs::components::{Components, Probe};
use crate::verbs::measured;
use crate::{advertise, bootstrap_tokens};
use bytes::Bytes;
use coracle_store::Store;
use http::header::USER_AGENT;
use http::{HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use jiff::Timestamp;
use places::Places;
use rustls::ServerConfig;
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower::Service;

mod connection; // One connection: TLS, then HTTP.
mod places; // Who has one.

/// Answers and streams under way get this long to end when the server drains.
const DRAIN_MAX: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error("cannot listen on {address}")]
    Listen {
        address: SocketAddr,
        source: std::io::Error,
    },
    #[error(transparent)]
    Audit(#[from] audit::OpenError),
    #[error(transparent)]
    Access(#[from] access::OpenError),
    #[error(transparent)]
    Pki(#[from] PkiError),
    #[error("cannot bring what the server brings itself in line")]
    Bootstrap(#[from] ReconcileError),
    #[error("cannot make what exists from the start")]
    DefaultObjects(#[from] default_objects::ReconcileError),
    #[error("--service-cidr {cidr} cannot be used: {why}")]
    ServiceCidr { cidr: String, why: String },
}

#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("the token was not kept: {0}")]
    Refused(String),
    #[error(transparent)]
    Ca(#[from] bootstrap_tokens::UnreadableCa),
}

pub struct Server {
    pub(crate) api: Arc<Api>,
    listener: TcpListener,
    address: SocketAddr,
    tls: Arc<ServerConfig>,
    places: Arc<Places>,
    url: String,
    /// Ends what runs beside the requests.
    stop: CancellationToken,
    event_ttl: Duration,
    /// What the objects depend on that exist from the start.
    settings: default_objects::Settings,
    host_name: String,
}

fn open_access(
    config: &Config,
    names: ServerNames,
    store: Store,
    streams: CancellationToken,
) -> Result<Arc<Access>, access::OpenError> {
    let access = Access::open(
        &config.data_dir.join("pki"),
        names,
        &config.access,
        store,
        (config.clock)(),
        config.admission.clone(),
        streams,
    );
    access.map(Arc::new)
}

/// What a snapshot has beside the store.
fn snapshots(config: &Config) -> Snapshots {
    let at_rest = config.at_rest.as_deref();
    Snapshots::new(KeySource {
        pki: config.data_dir.join("pki"),
        at_rest: at_rest.map(|at_rest| at_rest.settings().clone()),
    })
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Opens everything and makes what exists from the start. Serves nobody yet.
    pub async fn build(config: Config, store: Store) -> Result<Self, BuildError> {
        let listen = |source| BuildError::Listen {
            address: config.listen,
            source,
        };
        let listener = TcpListener::bind(config.listen).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let advertised = config
            .advertise_address
            .unwrap_or_else(|| advertise::address(address.ip()));
        let names = names(&config, vec![address.ip(), advertised]);
        let allocator = allocator(&config)?;
        let (stop, streams) = (CancellationToken::new(), CancellationToken::new());
        let now = (config.clock)();
        let access = open_access(&config, names, store.clone(), streams.clone())?;
        let fairness = Arc::new(Fairness::new(config.limits.seats(), store.clone()));
        let audit = open_audit(&config)?;
        let metrics = counted(now, &access, audit.clone());
        let (registry, converter) = registry(store, &access);
        let endpoints = Endpoints::new(
            registry.clone(),
            Arc::clone(&metrics),
            Arc::clone(&fairness),
            access.tunnels.clone(),
            Arc::clone(&access.tokens),
            access.pki.ca_pem().to_owned(),
            format!("{}", SocketAddr::new(advertised, address.port())),
        );
        let usage = usage(&config, &access);
        let tls = Arc::new(access.pki.server_config()?);
        let api = Api {
            registry,
            endpoints: endpoints
                .without(left_out(usage.as_deref()))
                .beside(Arc::clone(&access.aggregation)),
            access,
            allocator,
            quotas: Quotas::default(),
            converter,
            metrics,
            clock: Arc::clone(&config.clock),
            components: Components::default(),
            shutdown: streams,
            fairness,
            audit,
            usage,
            snapshots: snapshots(&config),
            at_rest: config.at_rest.clone(),
        };
        let advertised = SocketAddr::new(advertised, address.port());
        let settings = default_settings(&config, &api, advertised);
        let server = Self {
            api: Arc::new(api),
            listener,
            address,
            tls,
            places: Places::new(config.limits.connections as usize),
            url: format!("https://{advertised}"),
            stop,
            event_ttl: config.event_ttl,
            settings,
            host_name: config.host_name,
        };
        server.make_ready().await?;
        Ok(server)
    }

    async fn make_ready(&self) -> Result<(), BuildError> {
        let inside = self.in_process(Self::master());
        default_objects::reconcile_namespaces(inside.clone()).await?;
        // Together, so that they share flushes of the store.
        tokio::try_join!(
            bootstrap::reconcile(inside.clone()),
            flow_configuration::reconcile(inside.clone()),
        )?;
        self.api.access.load();
        default_objects::reconcile(inside, &self.settings, (self.api.clock)()).await?;
        fairness::follow::load(&self.api.fairness, &self.api.registry.store);
        self.api.access.load_webhooks();
        Ok(())
    }

    fn master() -> User {
        let mut user = User::named("system:apiserver");
        user.groups.push(MASTERS.to_owned());
        user
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Where clients reach the server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A kubeconfig with a fresh client certificate in `system:masters`.
    pub fn admin_kubeconfig(&self) -> Result<Kubeconfig, PkiError> {
        self.api
            .access
            .pki
            .admin_kubeconfig(&self.url, (self.api.clock)())
    }

    pub fn ca_pem(&self) -> String {
        self.api.access.pki.ca_pem().to_owned()
    }

    pub fn ca_key_pem(&self) -> String {
        self.api.access.pki.ca_key_pem().to_owned()
    }

    /// What its certificate is for: names and addresses.
    pub fn names(&self) -> Vec<String> {
        self.api.access.pki.names().texts()
    }

    /// The token of a service account that a Secret of it holds.
    pub fn legacy_token(&self, claims: &legacy::Claims) -> Result<String, String> {
        let signed = self.api.access.tokens.issue_legacy(claims);
        signed.map_err(|status| status.message)
    }

    /// Names a part of the control plane that runs in this process (`scheduler`,
    /// `controller-manager`); `probe` says whether it still does.
    pub fn report_component(&self, name: &'static str, probe: Probe) {
        self.api.components.register(name, probe);
    }

    /// Shows the metrics of another part of the process with its own.
    pub fn report_metrics(&self, others: Others) {
        self.api.metrics.show_others(others);
    }

    /// The API as a service in this process, acting as a user; authorized like anybody.
    pub fn in_process(&self, user: User) -> InProcess {
        InProcess {
            api: Arc::clone(&self.api),
            caller: Caller::Inside(Arc::new(user)),
        }
    }

    /// Makes a token that enrols nodes, good for `life`; for ever without one.
    pub async fn create_token(
        &self,
        description: &str,
        life: Option<Duration>,
    ) -> Result<String, TokenError> {
        let token = bootstrap_tokens::generate();
        let secret = bootstrap_tokens::secret(&token, description, life, (self.api.clock)());
        let body = Full::new(Bytes::from(secret.into_value().to_string()));
        let request = Request::builder()
            .method(Method::POST)
            .uri("/api/v1/namespaces/kube-system/secrets")
            .body(body)
            .expect("a constant request is well formed");
        let caller = Caller::Inside(Arc::new(Self::master()));
        let response = self.api.handle(request, caller).await;
        if !response.status().is_success() {
            let status = response.status();
            let body = response.into_body().collect().await;
            let text = body.map(|body| String::from_utf8_lossy(&body.to_bytes()).into_owned());
            return Err(TokenError::Refused(
                text.unwrap_or_else(|_| status.to_string()),
            ));
        }
        Ok(bootstrap_tokens::join(&token, &self.ca_pem())?)
    }

    fn left_out(&self) -> Option<&'static str> {
        left_out(self.api.usage.as_deref())
    }

    /// Keeps priority levels in step with their objects until the server stops.
    fn follow_fairness(&self) -> impl Future<Output = ()> + Send + 'static {
        let api = &self.api;
        let (fairness, store) = (Arc::clone(&api.fairness), api.registry.store.clone());
        let (inside, clock) = (self.in_process(Self::master()), Arc::clone(&api.clock));
        let stop = self.stop.clone();
        fairness::follow::follow(fairness, store, inside, move || clock(), stop)
    }

    /// Keeps IPAddress objects in line with the Services until the server stops.
    fn repair_addresses(&self) -> impl Future<Output = ()> + Send + 'static {
        let (api, stop) = (Arc::clone(&self.api), self.stop.clone());
        let (inside, host_name) = (self.in_process(Self::master()), self.host_name.clone());
        async move {
            let clock = Arc::clone(&api.clock);
            let (allocator, registry) = (&api.allocator, &api.registry);
            repair::run(allocator, registry, inside, &host_name, clock, stop).await;
        }
    }

    /// Looks after the servers of other APIs until the server stops.
    fn follow_aggregation(&self) -> impl Future<Output = ()> + Send + 'static {
        let aggregation = Arc::clone(&self.api.access.aggregation);
        let (inside, store) = (
            self.in_process(Self::master()),
            self.api.registry.store.clone(),
        );
        let (clock, stop) = (Arc::clone(&self.api.clock), self.stop.clone());
        async move {
            let following = aggregation::follow::run(aggregation, store, inside, move || clock());
            stop.run_until_cancelled(following).await;
        }
    }

    /// Labels Secrets of tokens with the day of their last use until the server stops.
    fn label_legacy_uses(&self) -> impl Future<Output = ()> + Send + 'static {
        let uses = self.api.access.legacy_uses.take();
        let mut inside = self.in_process(Self::master());
        let (clock, stop) = (Arc::clone(&self.api.clock), self.stop.clone());
        async move {
            let Some(mut uses) = uses else { return };
            while let Some(Some(used)) = stop.run_until_cancelled(uses.recv()).await {
                let Some(request) = used.label(clock()) else {
                    continue;
                };
                let Ok(response) = inside.call(request).await;
                if !response.status().is_success() {
                    let (secret, status) = (used.secret, response.status());
                    tracing::warn!(secret, %status, "the last use of a token was not written");
                }
            }
        }
    }

    /// Keeps the Service `kubernetes` and its endpoints until the server stops.
    fn look_after_own_service(&self) -> impl Future<Output = ()> + Send + 'static {
        let (inside, settings) = (self.in_process(Self::master()), self.settings.clone());
        let clock = Arc::clone(&self.api.clock);
        default_objects::look_after(inside, settings, clock, self.stop.clone())
    }

    /// Says that this server is there until it stops.
    fn hold_identity(&self) -> impl Future<Output = ()> + Send + 'static {
        identity::run(
            Identity::new(&self.host_name),
            self.api.registry.clone(),
            self.in_process(Self::master()),
            Arc::clone(&self.api.clock),
            self.stop.clone(),
        )
    }

    fn delete_old_events(&self) -> impl Future<Output = ()> + Send + 'static {
        let (registry, clock) = (self.api.registry.clone(), Arc::clone(&self.api.clock));
        event_ttl::run(registry, self.event_ttl, clock, self.stop.clone())
    }

    /// Serves until `stop`, then lets what is under way end, within a bound.
    pub async fn run(&self, stop: CancellationToken) {
        let (access, clock) = (Arc::clone(&self.api.access), Arc::clone(&self.api.clock));
        let beside = self.stop.clone();
        let keeping = flow_configuration::keep(self.in_process(Self::master()), self.stop.clone());
        let keeping = tokio::spawn(keeping);
        let settling = custom::settle::run(
            self.api.registry.clone(),
            self.in_process(Self::master()),
            Arc::clone(&self.api.clock),
            self.stop.clone(),
        );
        let settling = tokio::spawn(settling);
        let inside = self.in_process(Self::master());
        let registering = api_services::register(inside, self.left_out(), self.stop.clone());
        let registering = tokio::spawn(registering);
        let following = tokio::spawn(async move { access.run(move || clock(), beside).await });
        let fair = tokio::spawn(self.follow_fairness());
        let repair = tokio::spawn(self.repair_addresses());
        let labelling = tokio::spawn(self.label_legacy_uses());
        let looking = tokio::spawn(self.look_after_own_service());
        let holding = tokio::spawn(self.hold_identity());
        let expiring = tokio::spawn(self.delete_old_events());
        let aggregating = tokio::spawn(self.follow_aggregation());
        self.api.endpoints.set_ready();
        let connections = connection::accept(
            &self.listener,
            &self.tls,
            &self.api,
            &self.places,
            stop.clone(),
        )
        .await;
        self.api.endpoints.set_shutting_down();
        // Watches and other streams end at once: their clients begin again elsewhere or later.
        self.api.shutdown.cancel();
        connections.close();
        if tokio::time::timeout(DRAIN_MAX, connections.wait())
            .await
            .is_err()
        {
            tracing::warn!("some requests did not end in time");
        }
        self.stop.cancel();
        drop(following.await);
        drop(keeping.await);
        drop(registering.await);
        drop(settling.await);
        drop(fair.await);
        drop(repair.await);
        drop(labelling.await);
        drop(looking.await);
        drop(holding.await);
        drop(expiring.await);
        drop(aggregating.await);
    }
}

/// The group of the catalogue that is not served.
fn left_out(usage: Option<&Usage>) -> Option<&'static str> {
    usage.is_none().then_some(measured::GROUP)
}

/// What nodes measure, where somebody is to be told.
fn usage(config: &Config, access: &Access) -> Option<Arc<Usage>> {
    let usage = || Arc::new(Usage::new(access.tunnels.clone()));
    config.metrics.then(usage)
}

/// The objects, and what brings some of them from one version to another.
fn registry(store: Store, access: &Access) -> (Registry, Converter) {
    let converter = access.admission.webhooks.converter();
    let registry = Registry::new(store);
    registry.customs.convert_by(converter.clone());
    access.admission.policies.look_up_in(registry.clone());
    (registry, converter)
}

fn default_settings(config: &Config, api: &Api, own: SocketAddr) -> default_objects::Settings {
    default_objects::Settings {
        service_cidr: config.service_cidr.clone(),
        cluster_dns: config.cluster_dns.clone(),
        pod_encryption: config.pod_encryption.clone(),
        advertise_address: own.ip(),
        port: own.port(),
        ca_pem: api.access.pki.ca_pem().to_owned(),
        front_proxy_ca_pem: api.access.pki.front_proxy.ca_pem().to_owned(),
    }
}

/// The metrics, told of what they count beside the requests.
fn counted(now: Timestamp, access: &Access, audit: Option<Arc<Audit>>) -> Arc<Metrics> {
    let metrics = Metrics::new(now);
    metrics.show_too(audit, access);
    if let Some(issuers) = access.authenticator.issuers() {
        metrics.access.set_reloads(Arc::clone(&issuers.reloads));
    }
    Arc::new(metrics)
}

fn allocator(config: &Config) -> Result<Allocator, BuildError> {
    Allocator::new(&config.service_cidr).map_err(|error| BuildError::ServiceCidr {
        cidr: config.service_cidr.clone(),
        why: error.to_string(),
    })
}

fn names(config: &Config, addresses: Vec<std::net::IpAddr>) -> ServerNames {
    ServerNames {
        addresses,
        extra: config.tls_sans.clone(),
        service_cidr: config.service_cidr.clone(),
    }
}

/// Nothing without settings.
fn open_audit(config: &Config) -> Result<Option<Arc<Audit>>, audit::OpenError> {
    let settings = config.audit.as_ref();
    let audit = settings.map(|settings| Audit::open(settings, Arc::clone(&config.clock)));
    Ok(audit.transpose()?.map(Arc::new))
}

/// The API in this process, as one user. Cheap to clone.
#[derive(Clone, Debug)]
pub struct InProcess {
    api: Arc<Api>,
    caller: Caller,
}

const OWN_USER_AGENT: HeaderValue =
    HeaderValue::from_static(concat!("coracle/", env!("CARGO_PKG_VERSION")));

impl<B> Service<Request<B>> for InProcess
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let this = self;
        // What managers of fields are named by, as for our clients that come over the network.
        let headers = request.headers_mut();
        headers.entry(USER_AGENT).or_insert(OWN_USER_AGENT);
        let answered = this.api.handle(request, this.caller.clone());
        Box::pin(async move { Ok(answered.await) })
    }
}
