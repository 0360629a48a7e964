//! Store, API server, controllers and scheduler as one thing to start and to drain.
//!
//! Drains in the order in which they depend on each other: controllers and scheduler, then the
//! API server, then the store.

use crate::cli::ServerCommand;
use crate::controllers::{self, ClientFor};
use crate::leading::of_server;
use crate::settings::{self, ServerSettings, file};
use crate::{Failure, logging, manifests, node, notify, runtime, settled, snapshots};
use anyhow::Context;
use coracle_apiserver::Server;
use coracle_apiserver::at_rest::AtRest;
use coracle_apiserver::authenticate::User;
use coracle_apiserver::authenticate::user::MASTERS;
use coracle_apiserver::pki::ADMIN_USER;
use coracle_apiserver::tokens::claims::Reference;
use coracle_apiserver::tokens::legacy;
use coracle_client::lease::let_go;
use coracle_client::{Client, clock::Clock};
use coracle_controllers::{INFORMERS_USER, SignToken};
use coracle_store::Store;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub mod kubeconfig;

/// Past this a component that does not stop is left behind, so that a stop always ends.
const DRAIN_MAX: Duration = Duration::from_secs(15);

pub struct ControlPlane {
    pub server: Arc<Server>,
    pub address: SocketAddr,
    store: Store,
    stop_loops: CancellationToken,
    stop_server: CancellationToken,
    loops: Vec<JoinHandle<()>>,
    serving: JoinHandle<()>,
}

impl std::fmt::Debug for ControlPlane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControlPlane")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// `coracle server`.
pub fn run(mut args: ServerCommand) -> Result<(), Failure> {
    file::merge(file::Targets {
        common: &mut args.common,
        server: Some(&mut args.server),
        agent: None,
        dns: None,
    })?;
    let settings = settings::server(&args.common, &args.server)?;
    logging::start(args.common.log.as_deref(), "info")?;
    if args.restore_snapshot {
        restore(&settings)?;
    }
    runtime()?.block_on(async {
        let plane = start(&settings).await?;
        notify::send("READY=1");
        settled::soon();
        until_signalled().await?;
        notify::send("STOPPING=1");
        plane.drain().await;
        Ok::<(), anyhow::Error>(())
    })?;
    Ok(())
}

/// Returns on SIGINT or SIGTERM.
pub async fn until_signalled() -> anyhow::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

pub fn store_directory(data_dir: &Path) -> std::path::PathBuf {
    data_dir.join("server/store")
}

/// Puts the newest snapshot of the store in the place of what is there.
fn restore(settings: &ServerSettings) -> anyhow::Result<()> {
    let at_rest = AtRest::open(settings.at_rest.clone())?;
    let directory = store_directory(&settings.data_dir);
    let restored = coracle_store::restore_newest_snapshot(
        &directory,
        Some(at_rest.seal()),
        snapshots::revision_floor(Clock::system().now()),
    )
    .context("the store was not restored")?;
    tracing::info!(snapshot = %restored.display(), "restored the store");
    Ok(())
}

/// Starts everything; what `--disable` names is left out.
pub async fn start(settings: &ServerSettings) -> anyhow::Result<ControlPlane> {
    let directory = store_directory(&settings.data_dir);
    std::fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make the directory {}", directory.display()))?;
    let at_rest = Arc::new(AtRest::open(settings.at_rest.clone())?);
    let config = coracle_store::Config {
        seal: Some(at_rest.seal()),
        snapshot_every: settings.ring.every,
        snapshots_kept: settings.ring.kept,
        ..coracle_store::Config::new(directory)
    };
    let store = Store::open(config).context("cannot open the store")?;
    at_rest.settle()?;
    tokio::spawn(catch_up(Arc::clone(&at_rest), store.clone()));
    let server = Arc::new(build(settings, store.clone(), at_rest).await?);
    let address = server.local_addr();
    let admin = server.admin_kubeconfig()?;
    kubeconfig::write(&settings.write_kubeconfig, &admin.text)?;

    let stop_server = CancellationToken::new();
    let serving = tokio::spawn({
        let (server, stop) = (Arc::clone(&server), stop_server.clone());
        async move { server.run(stop).await }
    });
    server.report_metrics(Box::new(controllers::metrics));
    let stop_loops = CancellationToken::new();
    let mut loops = start_loops(settings, &server, &stop_loops);
    loops.extend(keep_manifests(settings, &server, &stop_loops));
    let path = settings.write_kubeconfig.clone();
    let issuer = Arc::clone(&server);
    let issue = move || issuer.admin_kubeconfig();
    let keeping = kubeconfig::keep(issue, path, admin.renew_at, Clock::system());
    let stop = stop_loops.clone();
    loops.push(tokio::spawn(async move {
        stop.run_until_cancelled(keeping).await;
    }));
    tracing::info!(
        %address,
        kubeconfig = %settings.write_kubeconfig.display(),
        "the API server is ready"
    );
    Ok(ControlPlane {
        server,
        address,
        store,
        stop_loops,
        stop_server,
        loops,
        serving,
    })
}

/// Encrypts what is on disk in another form, while requests are served.
async fn catch_up(at_rest: Arc<AtRest>, store: Store) {
    match at_rest.catch_up(&store).await {
        Ok(None) => {}
        Ok(Some(done)) => {
            tracing::info!(
                records = done.records,
                "the store was written anew: everything has today's key"
            );
        }
        Err(error) => tracing::error!(%error, "the store keeps values of another form"),
    }
}

async fn build(
    settings: &ServerSettings,
    store: Store,
    at_rest: Arc<AtRest>,
) -> anyhow::Result<Server> {
    let clock = Clock::system();
    let config = coracle_apiserver::Config {
        data_dir: settings.data_dir.join("server"),
        listen: settings.listen,
        advertise_address: settings.advertise_address,
        host_name: node::host_name()?,
        tls_sans: settings.tls_sans.clone(),
        service_cidr: settings.service_cidr.clone(),
        cluster_dns: settings.cluster_dns.clone(),
        pod_encryption: settings.pod_encryption.clone(),
        limits: settings.limits,
        event_ttl: settings.event_ttl,
        audit: settings.audit.clone(),
        metrics: settings.metrics,
        at_rest: Some(at_rest),
        access: settings.access.clone(),
        admission: settings.admission.clone(),
        clock: Arc::new(move || clock.now()),
    };
    Ok(Server::build(config, store).await?)
}

fn start_loops(
    settings: &ServerSettings,
    server: &Arc<Server>,
    stop: &CancellationToken,
) -> Vec<JoinHandle<()>> {
    let mut loops = Vec::new();
    if !settings.disabled.contains("controllers") {
        let config = coracle_controllers::Config {
            cluster_cidr: settings.cluster_cidr.clone(),
            load_balancer_pool: settings.load_balancer_pool.clone(),
            node_monitor_grace_period: settings.node_monitor_grace_period,
            ca_cert_pem: server.ca_pem(),
            signing_cert_pem: server.ca_pem(),
            signing_key_pem: server.ca_key_pem(),
            server_names: server.names(),
            sign_token: Some(sign_tokens(server)),
            legacy_token_clean_up_period: settings.legacy_token_clean_up_period,
            disabled: settings.disabled.clone(),
            clock: Clock::system(),
        };
        let acting = Arc::clone(server);
        let client_for: ClientFor = Arc::new(move |user| client_as(&acting, user));
        let client = client_for(INFORMERS_USER);
        let leading = controllers::elected(
            of_server(controllers::LEASE),
            config,
            client,
            client_for,
            stop.clone(),
        );
        let running = tokio::spawn(async move {
            if let Err(error) = leading.await {
                tracing::error!(%error, "the controllers ended");
            }
        });
        report(server, "controller-manager", &running);
        loops.push(running);
    } else {
        let client = client_as(server, INFORMERS_USER);
        loops.push(let_others(client, controllers::LEASE, stop));
    }
    if !settings.disabled.contains("scheduler") {
        let client = client_as(server, "system:kube-scheduler");
        let config = coracle_scheduler::Config {
            configuration: settings.scheduler.clone(),
            ..coracle_scheduler::Config::default()
        };
        let metrics = Arc::clone(&config.metrics);
        server.report_metrics(Box::new(move |text| metrics.text(text)));
        let running = tokio::spawn(coracle_scheduler::run(config, client, stop.clone()));
        report(server, "scheduler", &running);
        loops.push(running);
    }
    loops
}

/// Others may lead: a server that was killed may have held the Lease.
fn let_others(client: Client, lease: &str, stop: &CancellationToken) -> JoinHandle<()> {
    let (election, stop) = (of_server(lease), stop.clone());
    tokio::spawn(async move {
        let letting_go = let_go(client, election, Clock::system());
        stop.run_until_cancelled(letting_go).await;
    })
}

/// Keeps the cluster in line with the directory of manifests.
fn keep_manifests(
    settings: &ServerSettings,
    server: &Server,
    stop: &CancellationToken,
) -> Option<JoinHandle<()>> {
    if settings.disabled.contains("manifests") {
        return None;
    }
    let data_dir = settings.data_dir.clone();
    let (client, stop) = (admin(server), stop.clone());
    Some(tokio::spawn(async move {
        manifests::run(&data_dir, client, stop).await;
    }))
}

/// Signs tokens that are kept in Secrets, with the server's key.
fn sign_tokens(server: &Arc<Server>) -> SignToken {
    let server = Arc::clone(server);
    Arc::new(move |token| {
        server.legacy_token(&legacy::Claims {
            namespace: token.namespace.to_owned(),
            account: Reference {
                name: token.account.to_owned(),
                uid: token.account_uid.to_owned(),
            },
            secret: token.secret.to_owned(),
        })
    })
}

/// Lets the server say whether a part of this process runs.
fn report(server: &Server, name: &'static str, running: &JoinHandle<()>) {
    let running = running.abort_handle();
    server.report_component(name, Arc::new(move || !running.is_finished()));
}

/// An in-process client that acts, and is authorized, as a user.
pub fn client_as(server: &Server, user: &str) -> Client {
    Client::new(server.in_process(User::named(user)), "default")
}

/// An in-process client of the admin.
pub fn admin(server: &Server) -> Client {
    let mut user = User::named(ADMIN_USER);
    user.groups.push(MASTERS.to_owned());
    Client::new(server.in_process(user), "default")
}

/// What the server said, without the wrapping that kube's errors print.
pub fn told(error: kube::Error) -> anyhow::Error {
    match error {
        kube::Error::Api(status) => anyhow::anyhow!(status.message),
        kube::Error::Service(error) => anyhow::anyhow!(unreached(error.as_ref())),
        other => other.into(),
    }
}

/// What went wrong, without the layers between that only say that something did.
fn unreached(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let mut texts: Vec<String> = causes.map(ToString::to_string).collect();
    if let Some(told) = texts
        .iter()
        .position(|text| !text.starts_with("client error ("))
    {
        texts.drain(..told);
    }
    texts.dedup();
    texts.join(": ")
}

impl ControlPlane {
    /// Stops loops, then the API server, then the store; each within a bound.
    pub async fn drain(self) {
        self.stop_loops.cancel();
        for handle in self.loops {
            within(handle, "control loops").await;
        }
        self.stop_server.cancel();
        within(self.serving, "API server").await;
        self.store.close().await;
    }
}

async fn within(handle: JoinHandle<()>, what: &str) {
    match tokio::time::timeout(DRAIN_MAX, handle).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, what, "ended badly"),
        Err(_) => tracing::warn!(what, "did not stop in time"),
    }
}
