//! The order in which a node starts and stops.

use crate::enrol::{self, Enrolled};
use crate::network::Network;
use crate::node::{Facts, Heartbeat, Lease, node_address, register};
use crate::pods::{Confines, Context, PODS, Pods, Puller, Tokens, VolumeWrites, admission};
use crate::runtime::Runtime;
use crate::runtime::embedded::{self, EmbeddedRuntime};
use crate::{AgentError, Config, stream, volumes};
use coracle_client::Client;
use coracle_client::clock::Clock;
use coracle_client::connect::{self, Endpoint};
use coracle_client::events::Recorder;
use coracle_client::informer::{Filter, Informers};
use coracle_client::lease::NodeLease;
use k8s_openapi::api::core::v1::{Node, Pod, Service};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

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

async fn start(config: Config, stop: CancellationToken) -> Result<(Pods, TaskTracker), AgentError> {
    let clock = Clock::system();
    let runtime: Arc<dyn Runtime> = Arc::new(EmbeddedRuntime::open(embedded::Config::new(
        &config.data_dir,
    ))?);
    make_pods_directory(config.data_dir.join(PODS))?;
    let network = Network::open(config.data_dir.join("network"));
    let network = Arc::new(network.map_err(|error| AgentError::Network(Box::new(error)))?);
    let facts = facts(&config, runtime.as_ref()).await;
    let (enrolled, client) = join(&config, &facts, &clock).await?;
    let address = address(&config, &enrolled.endpoint).await;

    let tasks = TaskTracker::new();
    let informers = Informers::new(client.clone(), stop.clone());
    let own_name = Filter::fields(format!("metadata.name={}", config.node_name));
    let node = informers.get_filtered::<Node>(own_name);
    let services = informers.get::<Service>();
    let recorder = Recorder::new(client.clone(), "kubelet", &config.node_name);
    let lease = NodeLease::new(client.clone(), &config.node_name, clock.clone());
    tasks.spawn(Lease::run(lease, node.clone(), stop.clone()));
    let heartbeat = Heartbeat {
        client: client.clone(),
        config: config.clone(),
        facts: facts.clone(),
        address,
        runtime: runtime.clone(),
        network: network.clone(),
        recorder: recorder.clone(),
        clock: clock.clone(),
        informer: node,
    };
    tasks.spawn(heartbeat.run(stop.clone()));
    let keeper = enrol::Keeper {
        client: client.clone(),
        node_name: config.node_name.clone(),
        files: enrolled.files,
        clock: clock.clone(),
        stop: stop.clone(),
    };
    let renewing = keeper.clone().keep_client_certificate(enrolled.identity);
    tasks.spawn(renewing);
    tasks.spawn(keeper.keep_serving_certificate(address));
    let context = Arc::new(Context {
        client,
        runtime,
        network,
        recorder,
        clock,
        services: services.clone(),
        images: Puller::default(),
        tokens: Tokens::default(),
        volume_writes: VolumeWrites::default(),
        host_ip: address,
        cpu_milli: facts.cpus * 1000,
        memory_bytes: facts.memory_bytes,
        data_dir: config.data_dir.clone(),
        confines: confines(&config),
    });
    let pods = Pods::new(context.clone(), stop.clone());
    let tunnel = stream::Tunnel {
        endpoint: enrolled.endpoint,
        node_name: config.node_name.clone(),
        context,
        pods: pods.clone(),
    };
    tasks.spawn(tunnel.run(stop.clone()));
    // Containers need the services' variables; an incomplete list would leave some out.
    let _ = services.synced().await;
    let bound_here = Filter::fields(format!("spec.nodeName={}", config.node_name));
    pods.run(informers.get_filtered::<Pod>(bound_here)).await?;
    Ok((pods, tasks))
}

fn make_pods_directory(path: PathBuf) -> Result<(), AgentError> {
    let made = volumes::make_pods_directory(&path);
    made.map_err(|source| AgentError::Disk {
        action: "make",
        path,
        source,
    })
}

async fn facts(config: &Config, runtime: &dyn Runtime) -> Facts {
    Facts {
        has_user_namespaces: runtime.has_user_namespaces().await,
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

/// An identity, then the Node.
async fn join(
    config: &Config,
    facts: &Facts,
    clock: &Clock,
) -> Result<(Enrolled, Client), AgentError> {
    let enrolled = enrol::enrol(config, clock).await?;
    let client = connect::client(&enrolled.endpoint);
    let registered = register(&client, config, facts, enrolled.is_new).await;
    if matches!(registered, Err(AgentError::NameTaken { .. })) {
        // Else the next start would take the name for its own.
        enrolled.forget()?;
    }
    registered?;
    Ok((enrolled, client))
}

async fn address(config: &Config, endpoint: &Endpoint) -> IpAddr {
    let server = match endpoint.host().parse::<IpAddr>() {
        Ok(ip) => Some(SocketAddr::new(ip, endpoint.port())),
        Err(_) => None,
    };
    let found = node_address(config.node_ip, server);
    found.unwrap_or_else(|| {
        tracing::warn!("this machine has no address but its own; others cannot reach its pods");
        IpAddr::V4(Ipv4Addr::LOCALHOST)
    })
}
