//! What the server is told at start.

use crate::access;
use crate::admission;
use crate::at_rest::AtRest;
use crate::audit;
use crate::default_objects::{ClusterDns, PodEncryption};
use jiff::Timestamp;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The one clock, handed in: time is an argument here.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

#[derive(Clone)]
pub struct Config {
    /// The CA and its key live under `pki` in here.
    pub data_dir: PathBuf,
    /// Port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where clients and nodes reach the server; found on this machine when absent.
    pub advertise_address: Option<IpAddr>,
    /// Of this machine; names the Lease that says that the server is there.
    pub host_name: String,
    /// More names and addresses for the server's certificate.
    pub tls_sans: Vec<String>,
    /// Services get their addresses from this network, such as `10.43.0.0/16`.
    pub service_cidr: String,
    /// None: names are the affair of others.
    pub cluster_dns: Option<ClusterDns>,
    /// None: what pods of different nodes send each other is not encrypted.
    pub pod_encryption: Option<PodEncryption>,
    pub limits: Limits,
    /// Events are deleted so long after their last write; zero for never.
    pub event_ttl: Duration,
    /// Nothing is recorded without them.
    pub audit: Option<audit::Settings>,
    /// Whether `metrics.k8s.io` is served here.
    pub metrics: bool,
    /// The keys that the store was opened with; without them its values are plain.
    pub at_rest: Option<Arc<AtRest>>,
    pub access: access::Settings,
    /// Which admission plugins are asked, and what they take.
    pub admission: admission::Settings,
    pub clock: Clock,
}

/// How much at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests that read, and those that write: together they are the seats that priority levels
    /// share.
    pub reading: u32,
    pub mutating: u32,
    /// Connections from outside.
    pub connections: u32,
}

impl Limits {
    pub fn seats(self) -> u32 {
        self.reading.saturating_add(self.mutating)
    }
}

/// As upstream's.
pub const EVENT_TTL: Duration = Duration::from_secs(60 * 60);

impl Default for Limits {
    /// Half of upstream's seats: a request under way is memory, which a small machine has little of.
    fn default() -> Self {
        Self {
            reading: 200,
            mutating: 100,
            connections: 4096,
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("data_dir", &self.data_dir)
            .field("listen", &self.listen)
            .field("advertise_address", &self.advertise_address)
            .field("service_cidr", &self.service_cidr)
            .finish_non_exhaustive()
    }
}
