//! The node: runs the pods bound to it and tells the API server how they are.
//!
//! `run` enrols the node, registers it and keeps its pods until it is stopped; containers outlive
//! it and are adopted by the next run. Meets the control plane in API objects alone.

mod config; // What the binary tells the agent.
pub use config::{Config, Joining, LogBounds, PodDns, Resources, Routing};

mod error;
pub use error::{AgentError, WipeError};

mod kubelet_dir; // A link for drivers.
pub use kubelet_dir::KubeletDir;

mod run; // The order of start and stop.
pub use run::run;

mod wipe; // Takes away what a node made on its machine.
pub use wipe::wipe;

pub mod enrol; // Token, certificates and their renewal.

mod node; // The Node object, its status and lease.

mod pods; // Runs the pods bound to this node.
pub use pods::admission::check_pattern as check_sysctl_pattern;

pub mod usage; // What the node and its pods use.

pub mod pressure; // Acts when the node runs short of something.

pub mod collect; // Removes images and containers that nobody needs.
mod stats; // What the node tells of what is used.

mod local_path; // Directories for volumes that are made of this disk.
mod volumes; // What pods keep files in.

mod csi; // Drivers of volumes, beside this process.

mod mounts; // What is mounted.

mod beneath; // Paths that containers may tamper with.
mod tree; // Removes what they leave.

mod families; // One of each IP family.
pub use families::Families;

mod network; // A bridge, and the addresses of a pod.
pub use network::CniSettings;

mod dns; // Names of the cluster.
pub use dns::DOMAIN_DEFAULT as CLUSTER_DOMAIN_DEFAULT;

mod atomic_file; // Replaces a file as a whole.
mod file_watch; // Waits for changes of files.
pub use file_watch::FileWatch;
mod packed_file; // What is kept for a start without the server.

mod port;
mod stream; // Logs and exec, over a connection that the node dialled. // The same on the kubelet's own port, for API servers that dial.

mod kernel; // What it can do.

pub mod abilities; // The same, tried out.

pub mod grpc; // Calls of other services on this machine.

pub mod images; // Content store, import and pull.
pub mod runtime; // The container runtime.
