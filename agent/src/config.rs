//! What the binary tells the agent. Checked by the binary; nothing here is read from elsewhere.

use std::net::IpAddr;
use std::path::PathBuf;

#[derive(Clone, Debug)]
pub struct Config {
    /// `https://HOST[:PORT]`.
    pub server_url: String,
    /// Needed only until the node has its certificate.
    pub token: Option<String>,
    pub node_name: String,
    /// None: the address from which this machine reaches the server.
    pub node_ip: Option<IpAddr>,
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
    /// The agent's own directory, `<data-dir>/agent`.
    pub data_dir: PathBuf,
}
