//! What the binary tells the agent. Checked by the binary; nothing here is read from elsewhere.

use crate::KubeletDir;
use crate::collect::ImagePolicy;
use crate::families::Families;
use crate::network::CniSettings;
use crate::pressure;
use crate::runtime::Endpoints;
use coracle_api::amounts::Amounts;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

#[derive(Clone, Debug)]
pub struct Config {
    /// `https://HOST[:PORT]`.
    pub server_url: String,
    /// Needed only until the node has its certificate.
    pub token: Option<String>,
    /// An API server that is not one of ours, in place of the URL and the token.
    pub joining: Option<Joining>,
    pub node_name: String,
    /// None: the address from which this machine reaches the server, followed when it changes.
    pub node_ips: Families<IpAddr>,
    pub labels: Vec<(String, String)>,
    /// Key, value, effect.
    pub taints: Vec<(String, String, String)>,
    /// Names, and prefixes that end in `*`, of sysctls that pods may set though they are not safe.
    pub allowed_unsafe_sysctls: Vec<String>,
    /// Containers that say nothing of seccomp run under the runtime's default profile.
    pub seccomp_default: bool,
    /// Processes that a pod may have; 0 for as many as the node has.
    pub pod_pids_max: i64,
    /// Where files of static pods are.
    pub static_pods: Option<PathBuf>,
    pub resources: Resources,
    /// None: the runtime that is built in.
    pub container_runtime: Option<Endpoints>,
    /// Where the node's resolvers are named. None: the usual file.
    pub resolv_conf: Option<PathBuf>,
    /// Of pods' networks, where a configuration is there.
    pub cni: CniSettings,
    /// None: others route Services on this node.
    pub routing: Option<Routing>,
    pub dns: PodDns,
    /// Where drivers of volumes find the agent's own directory.
    pub kubelet_dir: KubeletDir,
    /// Where volumes that are made of this disk are. None: no volume is.
    pub local_path_dir: Option<PathBuf>,
    /// The agent's own directory, `<data-dir>/agent`.
    pub data_dir: PathBuf,
}

/// What pods are told of the cluster's names, in place of what the cluster says of itself.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PodDns {
    pub servers: Vec<IpAddr>,
    pub domain: Option<String>,
}

/// How Services are routed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Routing {
    /// Where load balancers ask whether the node does it. None: nowhere.
    pub health_address: Option<SocketAddr>,
    /// Where others ask how. None: nowhere.
    pub mode_address: Option<SocketAddr>,
}

/// How the node joins a cluster whose API server knows nothing of Coracle, and dials its nodes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Joining {
    pub kubeconfig: PathBuf,
    /// It may ask for the node's certificate and for nothing else.
    pub is_bootstrap: bool,
    /// Where the node listens, on all of its addresses.
    pub port: u16,
    /// Authorities of the clients of that port. None: the one that the API server tells of.
    pub client_ca: Option<PathBuf>,
    /// Where pods of its nodes are, beside this node's own: they see each other's address.
    pub pod_networks: Vec<String>,
}

/// What the node has for pods, and what it does when that runs short.
#[derive(Clone, Debug, PartialEq)]
pub struct Resources {
    /// Kept from pods for the machine's own services: cpu, memory, ephemeral-storage, pid and
    /// hugepages-*.
    pub system_reserved: Amounts,
    /// Kept from pods for the node's agent.
    pub kube_reserved: Amounts,
    pub eviction: pressure::Settings,
    pub pods_max: u32,
    pub images: ImagePolicy,
    pub logs: LogBounds,
}

/// Of the log of one container.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LogBounds {
    /// A file that has grown past this is set aside.
    pub bytes_max: u64,
    /// The one that is written to, and those set aside.
    pub files_max: usize,
}

impl Default for Resources {
    fn default() -> Self {
        Self {
            system_reserved: Amounts::default(),
            kube_reserved: Amounts::default(),
            eviction: pressure::Settings::default(),
            pods_max: 110,
            images: ImagePolicy::default(),
            logs: LogBounds {
                bytes_max: 10 << 20,
                files_max: 5,
            },
        }
    }
}
