//! The order in which a node starts and stops.

use crate::collect::Collector;
use crate::csi::Csi;
use crate::enrol::{self, Enrolled};
use crate::local_path::Directories;
use crate::network::services::{self, Services};
use crate::network::table::Table;
use crate::network::view::{self, Feed, View};
use crate::network::{Network, Site};
use crate::node::{Facts, Heartbeat, Lease, OwnAddresses, register};
use crate::pods::ledger::Ledger;
use crate::pods::sizes::Amounts;
use crate::pods::{
    Confines, Context, PODS, Pods, Puller, Tallies, Tokens, VolumeWrites, admission,
};
use crate::port::{self, Serving, Source};
use crate::runtime::{self, Runtime, RuntimeError, SandboxStatus};
use crate::stats::Stats;
use crate::{AgentError, Config, dns, kubelet_dir, node, pressure, stream, volumes};
use coracle_client::Client;
use coracle_client::clock::Clock;
use coracle_client::connect::{self, Endpoint};
use coracle_client::events::Recorder;
use coracle_client::informer::{Filter, Informers};
use coracle_client::lease::NodeLease;
use k8s_openapi::api::core::v1::{Node, Pod};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Of the agent's directory, where drivers have their sockets and stage volumes.
const PLUGINS: &str = "plugins";

/// Workers that do not end within this are left behind; their containers run on either way.
const DRAIN_MAX: Duration = Duration::from_secs(10);

/// Runs the node until `stop`; its containers run on. `ready` is told once the Node is registered
/// and pods are being run.
pub async fn run(
    config: Config,
    stop: CancellationToken,
    ready: oneshot::Sender<()>,
) -> Result<(), AgentError> {
    // Ends what was started when a later step fails.
    let stop = stop.child_token();
    let _ends_all = stop.clone().drop_guard();
    tokio::select! {
        biased;
        () = stop.cancelled() => return Ok(()),
        started = start(config, stop.clone()) => {
            let (pods, tasks) = started?;
            let _ = ready.send(());
            stop.cancelled().await;
            tasks.close();
            let drained = async { tokio::join!(pods.drained(), tasks.wait()) };
            if tokio::time::timeout(DRAIN_MAX, drained).await.is_err() {
                tracing::warn!("some tasks of the node did not end in time");
            }
        }
    }
    Ok(())
}

fn drivers(client: &Client, config: &Config, shown: &Path) -> Arc<Csi> {
    let (name, directory) = (&config.node_name, &config.data_dir);
    Arc::new(Csi::new(client.clone(), name, directory, shown))
}

async fn start(config: Config, stop: CancellationToken) -> Result<(Pods, TaskTracker), AgentError> {
    let clock = Clock::system();
    let listener = port::bind(&config).await?;
    let runtime = runtime::open(&config.data_dir, config.container_runtime.as_ref()).await?;
    make_pods_directory(config.data_dir.join(PODS))?;
    make_shared(&config.data_dir);
    let shown = kubelet_dir::link(&config.data_dir, &config.kubelet_dir)?;
    let network = Arc::new(network(&config, runtime.as_ref()).await?);
    let facts = facts(&config, runtime.as_ref()).await;
    let allocatable = node::allocatable::of_machine(&facts, &config.resources);
    let allocatable = allocatable.map_err(AgentError::Reservations)?;
    let enrolled = enrol::enrol(&config, &clock).await?;
    let client = connect::client(&enrolled.endpoint);
    if enrolled.is_new {
        register_first(&config, &facts, &enrolled, &client).await?;
    }
    let csi = drivers(&client, &config, &shown);
    let informers = Informers::new(client.clone(), stop.clone());
    let (tasks, view) = begin_names(&config, &client, &clock, &stop);
    let own_name = Filter::fields(format!("metadata.name={}", config.node_name));
    let context = Arc::new(Context {
        recorder: Recorder::new(client.clone(), "kubelet", &config.node_name),
        client: client.clone(),
        csi: csi.clone(),
        runtime,
        network,
        clock,
        view: view.clone(),
        dns: config.dns.clone(),
        resolv_conf: config.resolv_conf.clone(),
        images: Puller::default(),
        tokens: Tokens::default(),
        volume_writes: VolumeWrites::default(),
        ledger: ledger(&allocatable),
        disks: crate::usage::Disks::default(),
        pressures: pressure::Conditions::default(),
        node_name: config.node_name.clone(),
        node: informers.get_filtered::<Node>(own_name),
        allocatable,
        logs: config.resources.logs,
        tallies: Tallies::default(),
        host: own_addresses(&config, &enrolled.endpoint),
        cpu_milli: facts.cpus * 1000,
        memory_bytes: facts.memory_bytes,
        data_dir: config.data_dir.clone(),
        local_path: Directories::new(config.local_path_dir.clone()),
        confines: confines(&config),
    });
    begin_network(&context, &config, &enrolled, &tasks, &stop).await?;
    let pods = Pods::new(context.clone(), stop.clone());
    let care = Care::begin(&context, &pods, &config).await;
    pods.begin();
    begin_statics(&pods, &config).await?;
    if !enrolled.is_new {
        register(&client, &config, &facts, false).await?;
    }
    let node_name = config.node_name.clone();
    let stats = Arc::new(Stats::new(context.clone(), pods.clone(), node_name.clone()));
    let serving = open_ways(listener, &config, &enrolled, stats, &tasks, &stop)?;
    tasks.spawn(csi.run(stop.clone()));
    tend_node(&tasks, config, facts, &context, &enrolled, serving, &stop);
    // Containers need the services' variables; an incomplete list would leave some out.
    view.services_synced().await;
    // Pods are compared with it.
    let _ = context.node.synced().await;
    let bound_here = Filter::fields(format!("spec.nodeName={node_name}"));
    pods.run(informers.get_filtered::<Pod>(bound_here)).await?;
    pods.mirror_statics(&node_name);
    tasks.spawn(care.collector.run(stop.clone()));
    tasks.spawn(care.keeper.run(pods.clone(), stop));
    Ok((pods, tasks))
}

/// Services as they were known last, until the server tells, and the names that are made of them.
/// Of a cluster of others a node sees Services alone, and names are answered by others.
fn begin_names(
    config: &Config,
    client: &Client,
    clock: &Clock,
    stop: &CancellationToken,
) -> (TaskTracker, View) {
    let (tasks, view) = (TaskTracker::new(), View::new());
    let keeper = view::Keeper::open(view.clone(), config.data_dir.join(view::FILE));
    tasks.spawn(keeper.run(stop.clone()));
    let feed = match config.joining {
        Some(_) => Feed::Services,
        None => Feed::All,
    };
    tasks.spawn(view::follow(
        view.clone(),
        client.clone(),
        feed,
        stop.clone(),
    ));
    if feed == Feed::All {
        let names = dns::Service {
            view: view.clone(),
            clock: clock.clone(),
            resolv_conf: match &config.resolv_conf {
                Some(path) => path.clone(),
                None => "/etc/resolv.conf".into(),
            },
        };
        tasks.spawn(names.run(stop.clone()));
    }
    (tasks, view)
}

/// Services are routed from what is known of them, be it from before a restart; or not any more.
fn begin_services(
    context: &Context,
    config: &Config,
    table: Table,
    tasks: &TaskTracker,
    stop: &CancellationToken,
) {
    let Some(routing) = &config.routing else {
        tasks.spawn(services::clear(table, stop.clone()));
        return;
    };
    let services = Services {
        table,
        view: context.view.clone(),
        node_name: config.node_name.clone(),
        node: context.node.clone(),
        pod_cidrs: context.network.kept_cidrs(),
        recorder: Recorder::new(context.client.clone(), "kube-proxy", &config.node_name),
        clock: context.clock.clone(),
        health_address: routing.health_address,
        mode_address: routing.mode_address,
    };
    services.run(tasks, stop);
}

fn ledger(allocatable: &coracle_api::amounts::Amounts) -> Ledger {
    Ledger::new(Amounts {
        cpu_milli: node::allocatable::cpu_milli(allocatable),
        memory_bytes: node::allocatable::memory_bytes(allocatable),
    })
}

/// Static pods run before the server is asked for anything.
async fn begin_statics(pods: &Pods, config: &Config) -> Result<(), AgentError> {
    let Some(directory) = &config.static_pods else {
        return Ok(());
    };
    pods.run_static(directory, &config.node_name).await?;
    Ok(())
}

/// How the server's requests get here: a server of ours over the connection that this node dials,
/// another over this node's port, whose certificate is given back.
fn open_ways(
    listener: Option<tokio::net::TcpListener>,
    config: &Config,
    enrolled: &Enrolled,
    stats: Arc<Stats>,
    tasks: &TaskTracker,
    stop: &CancellationToken,
) -> Result<Option<Arc<Serving>>, AgentError> {
    let Some(listener) = listener else {
        let endpoint = enrolled.endpoint.clone();
        tasks.spawn(stream::Tunnel { endpoint, stats }.run(stop.clone()));
        return Ok(None);
    };
    let context = &stats.context;
    let serving = Serving::self_signed(&config.node_name, context.host.all().iter());
    let serving = Arc::new(serving.map_err(|error| AgentError::Serving(Box::new(error)))?);
    let file = config
        .joining
        .as_ref()
        .and_then(|joining| joining.client_ca.clone());
    let clients = match file {
        Some(path) => Source::File(path),
        None => Source::Server(context.client.clone()),
    };
    let server = stream::Server { stats };
    let port = port::new(listener, clients, serving.clone(), server)?;
    tasks.spawn(port.run(stop.clone()));
    Ok(Some(serving))
}

/// What looks after the node itself, once its pods are known.
struct Care {
    collector: Arc<Collector>,
    keeper: pressure::Keeper,
}

impl Care {
    /// Looks at the node once, so that the first pods and the first report know how it is.
    async fn begin(context: &Arc<Context>, pods: &Pods, config: &Config) -> Self {
        let reference = node::reference(&config.node_name);
        let policy = config.resources.images;
        let collector = Collector::new(context.clone(), pods.clone(), policy, reference.clone());
        let collector = Arc::new(collector);
        let settings = config.resources.eviction.clone();
        let keeper =
            pressure::Keeper::begin(context.clone(), collector.clone(), settings, reference);
        Self {
            keeper: keeper.await,
            collector,
        }
    }
}

/// Keeps the Node, its lease and its certificates.
fn tend_node(
    tasks: &TaskTracker,
    config: Config,
    facts: Facts,
    context: &Arc<Context>,
    enrolled: &Enrolled,
    serving: Option<Arc<Serving>>,
    stop: &CancellationToken,
) {
    let (client, clock) = (context.client.clone(), context.clock.clone());
    let node = context.node.clone();
    let reference = node::reference(&config.node_name);
    let watching = node::oom::watch(context.recorder.clone(), reference, stop.clone());
    tasks.spawn(watching);
    let (limited, machine) = (config.clone(), facts.clone());
    let limiting = node::limit_pods(context.clone(), limited, machine, stop.clone());
    tasks.spawn(limiting);
    let lease = NodeLease::new(client.clone(), &config.node_name, clock.clone());
    tasks.spawn(Lease::run(lease, node.clone(), stop.clone()));
    let keeper = enrol::Keeper {
        client: client.clone(),
        node_name: config.node_name.clone(),
        files: enrolled.files.clone(),
        clock: clock.clone(),
        stop: stop.clone(),
    };
    let show = move |pair: &enrol::Pair| {
        if let Some(serving) = &serving
            && let Err(error) = serving.set(&pair.certificate, &pair.key)
        {
            tracing::error!(%error, "the node's certificate cannot be shown");
        }
    };
    tasks.spawn(keeper.run(enrolled.identity.clone(), context.host.clone(), show));
    let heartbeat = Heartbeat {
        client,
        config,
        facts,
        addresses: context.host.clone(),
        runtime: context.runtime.clone(),
        network: context.network.clone(),
        recorder: context.recorder.clone(),
        clock,
        pressures: context.pressures.clone(),
        csi: context.csi.clone(),
        informer: node,
    };
    tasks.spawn(heartbeat.run(stop.clone()));
}

/// The network as it was last, before the server is asked for anything; and what it does beside
/// the pods. That needs nf_tables, which a kernel may not have.
async fn begin_network(
    context: &Context,
    config: &Config,
    enrolled: &Enrolled,
    tasks: &TaskTracker,
    stop: &CancellationToken,
) -> Result<(), AgentError> {
    context.network.tend(tasks, stop);
    tasks.spawn(context.host.clone().follow(stop.clone()));
    if let Err(error) = context.network.use_kept_cidrs().await {
        tracing::warn!(%error, "pods wait for their network");
    }
    let (table, keeper) = match Table::open() {
        Ok(opened) => opened,
        Err(error) => {
            let error: &dyn std::error::Error = &error;
            tracing::error!(error, "this kernel cannot do the network of a node");
            return Ok(());
        }
    };
    tasks.spawn(keeper.run(stop.clone()));
    let site = Site {
        client: context.client.clone(),
        pod_networks: config
            .joining
            .as_ref()
            .map(|joining| joining.pod_networks.clone()),
        clock: context.clock.clone(),
        left: left(context).await?,
        recorder: context.recorder.clone(),
        node_name: config.node_name.clone(),
        addresses: context.host.clone(),
        server: server_address(&enrolled.endpoint),
        view: context.view.clone(),
        directory: config.data_dir.join("network"),
        tasks: tasks.clone(),
        stop: stop.clone(),
    };
    context.network.begin(site, &table);
    begin_services(context, config, table, tasks, stop);
    Ok(())
}

/// Sandboxes that have the network from here, before the server is asked for their pods. A node
/// that does not know them does not begin: their NetworkPolicies would be taken away.
async fn left(context: &Context) -> Result<Vec<SandboxStatus>, RuntimeError> {
    match context.network.is_of_runtime() {
        true => Ok(Vec::new()),
        false => context.first_sandboxes().await,
    }
}

async fn network(config: &Config, runtime: &dyn Runtime) -> Result<Network, AgentError> {
    if runtime.makes_networks() {
        let network = Network::of_runtime();
        network.heard(runtime.health().await.network);
        return Ok(network);
    }
    let network = Network::open(config.data_dir.join("network"), config.cni.clone());
    network.map_err(|error| AgentError::Network(Box::new(error)))
}

fn make_pods_directory(path: PathBuf) -> Result<(), AgentError> {
    let made = volumes::make_pods_directory(&path);
    made.map_err(|source| AgentError::Disk {
        action: "make",
        path,
        source,
    })
}

/// What drivers mount in their containers is to show on the node, and the other way.
fn make_shared(data_dir: &Path) {
    for directory in [PODS, PLUGINS].map(|name| data_dir.join(name)) {
        let made = std::fs::create_dir_all(&directory);
        let made = made.and_then(|()| crate::mounts::make_shared(&directory));
        if let Err(error) = made {
            let directory = directory.display();
            tracing::warn!(%error, "{directory} is no shared mount: drivers' mounts stay theirs");
        }
    }
}

async fn facts(config: &Config, runtime: &dyn Runtime) -> Facts {
    Facts {
        has_strict_groups: runtime.has_strict_groups(),
        handlers: runtime.handlers().await,
        ..Facts::of_machine(&config.data_dir)
    }
}

fn confines(config: &Config) -> Confines {
    Confines {
        seccomp_default: config.seccomp_default,
        pod_pids_max: config.pod_pids_max,
        seccomp_root: config.data_dir.join("seccomp"),
        admission: admission::Rules::new(
            &config.allowed_unsafe_sysctls,
            crate::kernel::version(),
            crate::kernel::has_app_armor(),
        ),
        ..Confines::default()
    }
}

/// The Node of a machine that has just enrolled: its name must not be that of another one.
async fn register_first(
    config: &Config,
    facts: &Facts,
    enrolled: &Enrolled,
    client: &Client,
) -> Result<(), AgentError> {
    let registered = register(client, config, facts, true).await;
    if matches!(registered, Err(AgentError::NameTaken { .. })) {
        // Else the next start would take the name for its own.
        enrolled.forget()?;
    }
    registered
}

fn own_addresses(config: &Config, endpoint: &Endpoint) -> OwnAddresses {
    let server = server_address(endpoint).map(|ip| SocketAddr::new(ip, endpoint.port()));
    OwnAddresses::find(config.node_ips, server)
}

/// None when the server goes by a name.
fn server_address(endpoint: &Endpoint) -> Option<IpAddr> {
    endpoint.host().parse().ok()
}
