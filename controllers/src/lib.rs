//! The control loops: one module a loop, one list that names them all.
//!
//! Every loop is an ordinary Kubernetes client under the identity upstream gives it. Loops meet
//! only in API objects; they share read-only informers and nothing else. Each is level-triggered:
//! a key says where to look, not what changed, and looking twice is harmless.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use coracle_client::Client;
use coracle_client::clock::Clock;
use coracle_client::events::Recorder;
use coracle_client::informer::Informers;
use futures::future::BoxFuture;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

mod supervise;

mod cron_job;
mod daemonset;
mod deployment;
mod job;
mod replicaset;
mod statefulset;
mod ttl_after_finished;

mod disruption;
mod pod_autoscaler;

mod bootstrap_tokens;
mod clusterrole_aggregation;
mod legacy_token_cleaner;
mod policy_status; // What does not fit in admission policies.
mod root_ca;
mod service_account;
mod service_account_tokens;

mod garbage_collector;
mod namespace;
mod pod_gc;
mod storage_protection;

mod attach_detach;
mod ephemeral_volume;
mod local_path;
mod volume_binder;
mod volume_expander;

mod load_balancer;
mod resource_claims;
mod resource_quota;
mod service_cidr;

mod device_taint_eviction;
mod node_ipam;
mod node_lifecycle;
mod node_ttl;
mod taint_eviction;

mod endpoints;
mod endpointslice;
mod endpointslice_mirroring;

mod csr; // What a certificate request asks for; shared by the three below.
mod csr_approve;
mod csr_clean;
mod csr_sign;

mod discovery;
mod disruption_target; // Why a pod is made to go.
mod endpoint_slices; // What both loops that write slices have in common.
mod evictions; // What is counted of both loops that look at taints.
mod history; // What DaemonSets and StatefulSets were before.
mod labels;
mod node_pods;
mod nodes;
mod ownership;
mod pod_control;
mod pods;
mod refusal;
mod scalable; // The resource of a kind, and whether it has a scale.
mod scaled;
mod services; // Services as the loops of endpoints know them.
mod subsets; // The canonical form of Endpoints.
mod templates;
mod trigger_time;
mod wire_order; // How upstream sorts ports and subsets.

pub use evictions::metrics_text as eviction_metrics;
pub use load_balancer::{AddressPool, PoolError};
pub use pod_autoscaler::metrics_text as autoscaler_metrics;

/// The identity under which the shared informers read.
pub const INFORMERS_USER: &str = "system:kube-controller-manager";

/// The token of which account a Secret shall hold.
#[derive(Clone, Copy, Debug)]
pub struct TokenFor<'a> {
    pub namespace: &'a str,
    pub account: &'a str,
    pub account_uid: &'a str,
    pub secret: &'a str,
}

/// Signs a token of a service account that is kept in a Secret.
pub type SignToken = Arc<dyn Fn(&TokenFor<'_>) -> Result<String, String> + Send + Sync>;

/// What the loops are told at start.
#[derive(Clone)]
pub struct Config {
    /// The range that node pod ranges are cut from, such as `10.42.0.0/16`.
    pub cluster_cidr: String,
    /// For Services of type LoadBalancer; empty for the nodes' own addresses.
    pub load_balancer_pool: AddressPool,
    /// How long a node may be silent before its conditions become Unknown.
    pub node_monitor_grace_period: Duration,
    /// The CA that is published to every namespace.
    pub ca_cert_pem: String,
    /// The CA that signs certificates of nodes, and its key.
    pub signing_cert_pem: String,
    pub signing_key_pem: String,
    /// Names and addresses that the API server answers to: no node gets a certificate for them.
    pub server_names: Vec<String>,
    /// Secrets for tokens stay empty without it.
    pub sign_token: Option<SignToken>,
    /// How long a token in a Secret may go unused, and then be marked.
    pub legacy_token_clean_up_period: Duration,
    /// Names of loops that are not run.
    pub disabled: BTreeSet<String>,
    pub clock: Clock,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            cluster_cidr: "10.42.0.0/16".to_owned(),
            load_balancer_pool: AddressPool::default(),
            node_monitor_grace_period: Duration::from_secs(50),
            ca_cert_pem: String::new(),
            signing_cert_pem: String::new(),
            signing_key_pem: String::new(),
            server_names: Vec::new(),
            sign_token: None,
            legacy_token_clean_up_period: legacy_token_cleaner::PERIOD_DEFAULT,
            disabled: BTreeSet::new(),
            clock: Clock::system(),
        }
    }
}

/// Says what is short and no secret.
impl Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config")
            .field("cluster_cidr", &self.cluster_cidr)
            .field("node_monitor_grace_period", &self.node_monitor_grace_period)
            .field("disabled", &self.disabled)
            .finish_non_exhaustive()
    }
}

/// What one loop works with.
#[derive(Clone)]
pub struct Context {
    /// Writes under the loop's own identity.
    pub client: Client,
    /// Shared by all loops, read-only.
    pub informers: Informers,
    pub config: Arc<Config>,
    pub clock: Clock,
    /// The loop returns soon after this is cancelled.
    pub shutdown: CancellationToken,
}

impl Context {
    /// A recorder that writes under the loop's identity, with upstream's component name.
    pub fn recorder(&self, component: &str) -> Recorder {
        Recorder::with_clock(self.client.clone(), component, "", self.clock.clone())
    }

    /// One that writes as the controller manager itself, for what fails again and again: upstream's
    /// roles let only some of the loops' own identities write events.
    fn failures(&self, component: &str) -> Recorder {
        let client = self.informers.client();
        Recorder::with_clock(client, component, "", self.clock.clone())
    }
}

impl Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

/// One entry of the list.
#[derive(Clone, Copy, Debug)]
pub struct Loop {
    /// The name by which it is disabled.
    pub name: &'static str,
    /// The service account of kube-system under which it acts, as upstream names it; empty for
    /// one that acts as the controller manager itself.
    pub identity: &'static str,
    /// Runs until the context's shutdown; a panic restarts it.
    pub run: fn(Context) -> BoxFuture<'static, ()>,
}

impl Loop {
    /// The user name that goes with the identity.
    pub fn user(&self) -> String {
        match self.identity {
            "" => INFORMERS_USER.to_owned(),
            name => format!("system:serviceaccount:kube-system:{name}"),
        }
    }
}

/// Every loop there is.
pub static LOOPS: &[Loop] = &[
    Loop {
        name: "deployment",
        identity: "deployment-controller",
        run: deployment::run,
    },
    Loop {
        name: "replicaset",
        identity: "replicaset-controller",
        run: replicaset::run_replica_sets,
    },
    Loop {
        name: "replicationcontroller",
        identity: "replication-controller",
        run: replicaset::run_replication_controllers,
    },
    Loop {
        name: "daemonset",
        identity: "daemon-set-controller",
        run: daemonset::run,
    },
    Loop {
        name: "statefulset",
        identity: "statefulset-controller",
        run: statefulset::run,
    },
    Loop {
        name: "job",
        identity: "job-controller",
        run: job::run,
    },
    Loop {
        name: "cronjob",
        identity: "cronjob-controller",
        run: cron_job::run,
    },
    Loop {
        name: "ttl-after-finished",
        identity: "ttl-after-finished-controller",
        run: ttl_after_finished::run,
    },
    Loop {
        name: "disruption",
        identity: "disruption-controller",
        run: disruption::run,
    },
    Loop {
        name: "horizontalpodautoscaler",
        identity: "horizontal-pod-autoscaler",
        run: pod_autoscaler::run,
    },
    Loop {
        name: "service-account",
        identity: "service-account-controller",
        run: service_account::run,
    },
    Loop {
        name: "clusterrole-aggregation",
        identity: "clusterrole-aggregation-controller",
        run: clusterrole_aggregation::run,
    },
    Loop {
        name: "validatingadmissionpolicy-status",
        identity: "validatingadmissionpolicy-status-controller",
        run: policy_status::run,
    },
    Loop {
        name: "service-account-token",
        identity: "",
        run: service_account_tokens::run,
    },
    Loop {
        name: legacy_token_cleaner::NAME,
        identity: "legacy-service-account-token-cleaner",
        run: legacy_token_cleaner::run,
    },
    Loop {
        name: "root-ca",
        identity: "root-ca-cert-publisher",
        run: root_ca::run,
    },
    Loop {
        name: "garbage-collector",
        identity: "generic-garbage-collector",
        run: garbage_collector::run,
    },
    Loop {
        name: "namespace",
        identity: "namespace-controller",
        run: namespace::run,
    },
    Loop {
        name: "resource-quota",
        identity: "resourcequota-controller",
        run: resource_quota::run,
    },
    Loop {
        name: "endpointslice",
        identity: "endpointslice-controller",
        run: endpointslice::run,
    },
    Loop {
        name: "endpoints",
        identity: "endpoint-controller",
        run: endpoints::run,
    },
    Loop {
        name: "endpointslice-mirroring",
        identity: "endpointslicemirroring-controller",
        run: endpointslice_mirroring::run,
    },
    Loop {
        name: "pod-gc",
        identity: "pod-garbage-collector",
        run: pod_gc::run,
    },
    Loop {
        name: "pvc-protection",
        identity: "pvc-protection-controller",
        run: storage_protection::run_claims,
    },
    Loop {
        name: "pv-protection",
        identity: "pv-protection-controller",
        run: storage_protection::run_volumes,
    },
    Loop {
        name: "persistentvolume-binder",
        identity: "persistent-volume-binder",
        run: volume_binder::run,
    },
    Loop {
        name: volume_expander::NAME,
        identity: "expand-controller",
        run: volume_expander::run,
    },
    Loop {
        name: "ephemeral-volume",
        identity: "ephemeral-volume-controller",
        run: ephemeral_volume::run,
    },
    Loop {
        name: "persistentvolume-attach-detach",
        identity: "attachdetach-controller",
        run: attach_detach::run,
    },
    Loop {
        name: "local-path",
        identity: "local-path-provisioner",
        run: local_path::run,
    },
    Loop {
        name: "vac-protection",
        identity: "volumeattributesclass-protection-controller",
        run: storage_protection::run_classes,
    },
    Loop {
        name: "node-ipam",
        identity: "node-controller",
        run: node_ipam::run,
    },
    Loop {
        name: "node-lifecycle",
        identity: "node-controller",
        run: node_lifecycle::run,
    },
    Loop {
        name: "taint-eviction",
        identity: "node-controller",
        run: taint_eviction::run,
    },
    Loop {
        name: node_ttl::NAME,
        identity: "ttl-controller",
        run: node_ttl::run,
    },
    Loop {
        name: device_taint_eviction::NAME,
        identity: "device-taint-eviction-controller",
        run: device_taint_eviction::run,
    },
    Loop {
        name: "service-cidr-controller",
        identity: "service-cidrs-controller",
        run: service_cidr::run,
    },
    Loop {
        name: "resourceclaim-controller",
        identity: "resource-claim-controller",
        run: resource_claims::run,
    },
    Loop {
        name: "load-balancer",
        identity: "service-controller",
        run: load_balancer::run,
    },
    Loop {
        name: "csr-approve",
        identity: "certificate-controller",
        run: csr_approve::run,
    },
    Loop {
        name: "csr-sign",
        identity: "certificate-controller",
        run: csr_sign::run,
    },
    Loop {
        name: "csr-clean",
        identity: "certificate-controller",
        run: csr_clean::run,
    },
    Loop {
        name: "token-cleaner",
        identity: "token-cleaner",
        run: bootstrap_tokens::run_cleaner,
    },
    Loop {
        name: "bootstrap-signer",
        identity: "bootstrap-signer",
        run: bootstrap_tokens::run_signer,
    },
];

/// Runs every loop that is not disabled. `client_for` gives a client that acts as a user.
/// The handle ends when all loops have, after `shutdown`.
pub fn run(
    config: Config,
    client_for: Arc<dyn Fn(&str) -> Client + Send + Sync>,
    shutdown: CancellationToken,
) -> JoinHandle<()> {
    let informers = Informers::new(client_for(INFORMERS_USER), shutdown.clone());
    let config = Arc::new(config);
    let enabled = LOOPS
        .iter()
        .filter(|one| !config.disabled.contains(one.name));
    let running: Vec<_> = enabled
        .map(|one| {
            let context = Context {
                client: client_for(&one.user()),
                informers: informers.clone(),
                clock: config.clock.clone(),
                config: config.clone(),
                shutdown: shutdown.clone(),
            };
            tokio::spawn(supervise::keep_running(*one, context))
        })
        .collect();
    tokio::spawn(async move {
        futures::future::join_all(running).await;
    })
}

/// The client's own: whole loops are tested against the server that informers are tested against.
#[cfg(test)]
#[allow(dead_code)] // Each crate uses a part of it.
#[path = "../../client/src/fake_api.rs"]
mod fake_api;

/// Which of upstream's loops is which.
#[cfg(test)]
mod upstream;

/// Loops that die at each of their calls.
#[cfg(test)]
mod deaths;
/// The same server, for loops that look at everything it serves.
#[cfg(test)]
mod fake_cluster;
#[cfg(test)]
mod fixture_text;
