//! A server with two nodes that run nothing, and the loops in a runtime that dies with them.

use crate::faults::Faults;
use coracle_apiserver::authenticate::{User, user::MASTERS};
use coracle_apiserver::{Config, Server, config::Limits};
use coracle_client::Client;
use coracle_store::Store;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

pub const PATIENCE: Duration = Duration::from_secs(100);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Their nodes never report, and nobody enrols.
const WITHOUT: [&str; 4] = ["node-lifecycle", "csr-sign", "root-ca", "load-balancer"];

/// Clients of the loops, by their users.
type ClientFor = Arc<dyn Fn(&str) -> Client + Send + Sync>;

pub struct Site {
    runtime: Runtime,
    server: Arc<Server>,
    stop: CancellationToken,
    pub faults: Faults,
    pub admin: Client,
    life: Option<Runtime>,
    dead: CancellationToken,
    _directory: TempDir,
}

impl Site {
    pub fn new(seed: u64) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let directory = tempfile::tempdir().expect("a directory");
        let server = runtime.block_on(serve(&directory));
        let entered = runtime.enter();
        let admin = Client::new(server.in_process(admin()), "default");
        let stop = CancellationToken::new();
        let (serving, stopped) = (Arc::clone(&server), stop.clone());
        runtime.spawn(async move { serving.run(stopped).await });
        let scheduler = Client::new(
            server.in_process(User::named("system:kube-scheduler")),
            "default",
        );
        let config = coracle_scheduler::Config::default();
        let metrics = Arc::clone(&config.metrics);
        server.report_metrics(Box::new(move |text| metrics.text(text)));
        runtime.spawn(coracle_scheduler::run(config, scheduler, stop.clone()));
        runtime.spawn(nodes_work(admin.clone()));
        drop(entered);
        let site = Self {
            faults: Faults::new(seed, runtime.handle().clone()),
            runtime,
            server,
            stop,
            admin,
            life: None,
            dead: CancellationToken::new(),
            _directory: directory,
        };
        site.add_node("one");
        site.add_node("two");
        site
    }

    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    pub fn add_node(&self, name: &str) {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
        let node: Node = serde_json::from_value(node).expect("a node");
        let status = json!({"status": {
            "capacity": {"cpu": "4", "memory": "4Gi", "pods": "110"},
            "allocatable": {"cpu": "4", "memory": "4Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady",
                            "message": ""}],
        }});
        let nodes: Api<Node> = Api::all(self.admin.clone());
        self.block_on(async {
            nodes
                .create(&PostParams::default(), &node)
                .await
                .expect("a node");
            let params = PatchParams::default();
            let patch = Patch::Merge(&status);
            nodes
                .patch_status(name, &params, &patch)
                .await
                .expect("a node");
            // Nobody here finds the node ready and takes its taint away.
            let bare = json!({"spec": {"taints": null}});
            nodes
                .patch(name, &params, &Patch::Merge(&bare))
                .await
                .expect("a node");
        });
    }

    /// The loops begin anew, with nothing in memory.
    pub fn live(&mut self) {
        self.die();
        self.faults.wait_idle();
        let dead = self.faults.begin();
        let (server, faults) = (Arc::clone(&self.server), self.faults.clone());
        let of_life = dead.clone();
        let client_for: ClientFor = Arc::new(move |user: &str| {
            faults.client(server.in_process(User::named(user)), of_life.clone())
        });
        self.begin(dead, client_for);
    }

    /// As they do, and nothing befalls them.
    pub fn live_unharmed(&mut self) {
        self.die();
        self.faults.wait_idle();
        let server = Arc::clone(&self.server);
        let client_for: ClientFor =
            Arc::new(move |user| Client::new(server.in_process(User::named(user)), "default"));
        self.begin(CancellationToken::new(), client_for);
    }

    fn begin(&mut self, dead: CancellationToken, client_for: ClientFor) {
        let life = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let config = coracle_controllers::Config {
            disabled: WITHOUT.iter().map(|name| (*name).to_owned()).collect(),
            legacy_token_clean_up_period: Duration::from_millis(1),
            ..coracle_controllers::Config::default()
        };
        let running = life.enter();
        drop(coracle_controllers::run(
            config,
            client_for,
            CancellationToken::new(),
        ));
        drop(running);
        self.dead = dead;
        self.life = Some(life);
    }

    pub fn die(&mut self) {
        self.dead.cancel();
        if let Some(life) = self.life.take() {
            life.shutdown_background();
        }
    }

    /// Lets the loops live and die until it holds.
    pub fn until(&mut self, what: &str, mut holds: impl FnMut(&Self) -> Result<(), String>) {
        let end = now() + PATIENCE;
        loop {
            if self.life.is_none() || self.dead.is_cancelled() {
                self.live();
            }
            let Err(found) = holds(self) else { return };
            assert!(now() < end, "waited {PATIENCE:?} for {what}: {found}");
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// For clients that dial.
    pub fn kubeconfig(&self) -> String {
        self.server.admin_kubeconfig().expect("a kubeconfig").text
    }

    /// What the server shows of a metric with these labels; 0 where it shows nothing.
    pub fn metric(&self, sample: &str) -> f64 {
        let request = http::Request::get("/metrics").body(Vec::new());
        let text = self.admin.request_text(request.expect("a request"));
        let text = self.block_on(text).expect("the metrics");
        let found = text.lines().find_map(|line| line.strip_prefix(sample));
        found.map_or(0.0, |value| value.trim().parse().expect("a number"))
    }

    /// Also those that are about to go.
    pub fn pods(&self, namespace: &str) -> Vec<Pod> {
        let pods: Api<Pod> = Api::namespaced(self.admin.clone(), namespace);
        let listed = self.block_on(pods.list(&ListParams::default()));
        listed.expect("the pods").items
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.die();
        self.stop.cancel();
    }
}

#[allow(clippy::disallowed_methods)] // A test's own deadline.
fn now() -> Instant {
    Instant::now()
}

fn admin() -> User {
    let mut user = User::named("kubernetes-admin");
    user.groups.push(MASTERS.to_owned());
    user
}

async fn serve(directory: &TempDir) -> Arc<Server> {
    let store = coracle_store::Config::new(directory.path().join("store"));
    let store = Store::open(store).expect("a store");
    let clock = coracle_client::clock::Clock::system();
    let config = Config {
        data_dir: directory.path().join("server"),
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        advertise_address: Some(Ipv4Addr::LOCALHOST.into()),
        host_name: "edge".to_owned(),
        tls_sans: Vec::new(),
        service_cidr: "10.43.0.0/16".to_owned(),
        cluster_dns: None,
        pod_encryption: None,
        limits: Limits::default(),
        event_ttl: coracle_apiserver::config::EVENT_TTL,
        audit: None,
        metrics: true,
        at_rest: None,
        access: Default::default(),
        admission: Default::default(),
        clock: Arc::new(move || clock.now()),
    };
    Arc::new(Server::build(config, store).await.expect("a server"))
}

/// Brings up what is bound, lets jobs succeed, and lets go what is deleted.
async fn nodes_work(admin: Client) {
    let pods: Api<Pod> = Api::all(admin.clone());
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let Ok(listed) = pods.list(&ListParams::default()).await else {
            continue;
        };
        for pod in listed.items {
            let meta = &pod.metadata;
            let (Some(name), Some(namespace)) = (&meta.name, &meta.namespace) else {
                continue;
            };
            let own: Api<Pod> = Api::namespaced(admin.clone(), namespace);
            if meta.deletion_timestamp.is_some() {
                // Whatever comes between, the next look finds it.
                drop(
                    own.delete(name, &DeleteParams::default().grace_period(0))
                        .await,
                );
            } else if let Some(status) = next_status(&pod) {
                let patch = Patch::Merge(json!({ "status": status }));
                drop(
                    own.patch_status(name, &PatchParams::default(), &patch)
                        .await,
                );
            }
        }
    }
}

fn next_status(pod: &Pod) -> Option<Value> {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    pod.spec.as_ref()?.node_name.as_ref()?;
    if phase != Some("Pending") {
        return None;
    }
    let is_job = pod.spec.as_ref()?.restart_policy.as_deref() == Some("Never");
    if is_job {
        return Some(json!({"phase": "Succeeded", "containerStatuses": [{
            "name": "main", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"terminated": {"exitCode": 0, "reason": "Completed"}},
        }]}));
    }
    #[allow(clippy::disallowed_methods)] // A node may read the clock.
    let now = k8s_openapi::jiff::Timestamp::now();
    let is_true = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now});
    Some(json!({
        "phase": "Running",
        "podIP": "10.42.0.9",
        "podIPs": [{"ip": "10.42.0.9"}],
        "conditions": [is_true("Ready"), is_true("ContainersReady"), is_true("PodScheduled")],
    }))
}
