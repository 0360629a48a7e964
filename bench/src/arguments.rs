//! What can be asked for on the command line, and what that means in sizes.

use crate::schedule;
use crate::suite::{self, Kind};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Calls, objects, watchers and nodes of a quick run, at most.
const QUICK: usize = 100;

/// Measures an API server.
#[derive(Debug, Parser)]
#[command(name = "coracle-bench", version)]
pub struct Arguments {
    #[command(subcommand)]
    pub work: Work,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Debug, Args)]
pub struct Common {
    /// The cluster to load.
    #[arg(long, global = true, env = "KUBECONFIG", default_value = "kubeconfig")]
    pub kubeconfig: PathBuf,
    /// Another cluster, which does the same work in turn: A B, B A, ...
    #[arg(long, global = true, value_name = "KUBECONFIG")]
    pub against: Option<PathBuf>,
    /// How often each is measured, for a suite or with `--against`.
    #[arg(long, global = true, default_value_t = 3, value_parser = bounded(100))]
    pub rounds: u64,
    /// A small run of a suite, to see that it works: one round, its smallest numbers.
    #[arg(long, global = true)]
    pub quick: bool,
    /// None with more objects, watchers or nodes is measured by a suite.
    #[arg(long, global = true, default_value_t = 27_000, value_parser = bounded(100_000))]
    pub most: u64,
    /// How many calls in all (watch: objects; schedule, rollout, pods: pods).
    #[arg(long, global = true, default_value_t = 1000, value_parser = bounded(100_000))]
    pub count: u64,
    /// Connections, each with one call in flight (watch: one watcher each).
    #[arg(long, global = true, default_value_t = 8, value_parser = bounded(1000))]
    pub connections: u64,
    /// Bytes of data in each ConfigMap.
    #[arg(long, global = true, default_value_t = 1000, value_parser = bounded(1_000_000))]
    pub size: u64,
    /// Seconds after which the run is given up; of a suite one size, of `coldstart` and `footprint`
    /// each load that is put on the server.
    #[arg(long, global = true, default_value_t = 240, value_parser = bounded(280))]
    pub timeout: u64,
    /// JSON instead of a table or, in a file, beside it.
    #[arg(long, global = true, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    pub json: Option<Option<PathBuf>>,
}

#[derive(Debug, Subcommand)]
pub enum Work {
    /// Suite: create, replace and patch ConfigMaps of 1 and 10 KB over 1, 16 and 64 connections.
    Writes,
    /// Suite: get one and list 100, 1,000 and 27,000 of `--size`, as JSON, protobuf and in pages.
    Reads,
    /// Suite: from the answer to a create to the event at each of 1, 100 and 1,000 watchers.
    Fanout {
        /// Creates a second, each of which every watcher hears of; else one after the other.
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        rate: Option<u32>,
    },
    /// Suite: 100, 1,000 and 5,000 nodes that are only objects renew their leases.
    Nodes,
    /// From the start of a command to ready, empty and with 10,000 and 100,000 objects (`--most`).
    /// Rounds are of one data directory, which is the command's own and best empty at first.
    Coldstart {
        /// Runs the server in the foreground; it ends at SIGTERM.
        #[arg(long, value_name = "COMMAND")]
        start: String,
        /// The same for `--against`.
        #[arg(long, value_name = "COMMAND", requires = "against")]
        start_against: Option<String>,
    },
    /// Memory idle, for each node, pod and object; processor time and bytes written while 0, 1, 10
    /// and 100 nodes renew their leases. Of processes of this machine.
    Footprint {
        /// Names or ids of all that make up the server; they are summed.
        #[arg(long, value_name = "PROCESS", value_delimiter = ',', required = true)]
        processes: Vec<String>,
        /// The same for `--against`.
        #[arg(
            long,
            value_name = "PROCESS",
            value_delimiter = ',',
            requires = "against"
        )]
        processes_against: Vec<String>,
        /// How long each rest is watched.
        #[arg(long, default_value_t = 60, value_parser = bounded(3600))]
        seconds: u64,
    },
    /// Create ConfigMaps.
    Create,
    /// Read one ConfigMap over and over.
    Get,
    /// List ConfigMaps over and over.
    List {
        /// How many there are to list.
        #[arg(long, default_value_t = 500, value_parser = bounded(100_000))]
        objects: u64,
    },
    /// From a create to the event at each of the watchers.
    Watch,
    /// From a pod's creation to its binding to a node that is only an object.
    Schedule {
        #[arg(long, default_value_t = 10, value_parser = bounded(5000))]
        nodes: u64,
        /// What the pods ask for.
        #[arg(long, value_enum, default_value_t = schedule::shape::Shape::Plain)]
        shape: schedule::shape::Shape,
    },
    /// From the write of a Deployment until all its pods are available, on nodes that are only
    /// objects and whose pods are ready at once. Tells what the server had to write.
    Rollout {
        #[arg(long, default_value_t = 12, value_parser = bounded(1000))]
        nodes: u64,
        /// They share the pods.
        #[arg(long, default_value_t = 100, value_parser = bounded(10_000))]
        deployments: u64,
        /// Measures a new template, once all have settled.
        #[arg(long)]
        update: bool,
        /// Then tells what this process, of the same machine, costs while nothing changes.
        #[arg(long, value_name = "PID")]
        idle: Option<u32>,
        /// For how long that is watched.
        #[arg(long, default_value_t = 180, value_parser = bounded(240))]
        idle_seconds: u64,
    },
    /// Ask a DNS server for the address of one name, over and over; needs no kubeconfig.
    Dns {
        /// Where it listens.
        #[arg(long, default_value = "10.43.0.10:53")]
        server: std::net::SocketAddr,
        #[arg(long, default_value = "kubernetes.default.svc.cluster.local")]
        name: String,
    },
    /// Connect to a pod directly and through a Service, in turn; needs no kubeconfig.
    Connect {
        /// The pod, at a port of its own.
        #[arg(long)]
        direct: std::net::SocketAddr,
        /// A Service that leads to another port of the same pod.
        #[arg(long)]
        service: std::net::SocketAddr,
    },
    /// Take connections and end them, for `connect`, until this is ended.
    Accept {
        #[arg(long, required = true)]
        at: Vec<std::net::SocketAddr>,
    },
    /// From the event that shows a pod bound to the one that shows it running.
    Pods {
        /// One that the nodes have.
        #[arg(long)]
        image: String,
        /// So many at a time: one that runs makes room for the next.
        #[arg(long, default_value_t = 1, value_parser = bounded(1000))]
        at_once: u64,
        /// What to run; the image's own command if nothing is said.
        #[arg(last = true)]
        command: Vec<String>,
    },
}

fn bounded(max: u64) -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=max)
}

impl Work {
    /// Whether a kubeconfig leads to what is measured.
    pub fn is_of_servers(&self) -> bool {
        !matches!(
            self,
            Self::Dns { .. } | Self::Connect { .. } | Self::Accept { .. }
        )
    }

    pub fn suite(&self) -> Option<Kind> {
        match self {
            Self::Writes => Some(Kind::Writes),
            Self::Reads => Some(Kind::Reads),
            Self::Fanout { rate } => Some(Kind::Watch { rate: *rate }),
            Self::Nodes => Some(Kind::Nodes),
            _ => None,
        }
    }
}

impl Common {
    pub fn sizes(&self) -> suite::Sizes {
        let (count, most) = (self.count as usize, self.most as usize);
        suite::Sizes {
            count: if self.quick { count.min(QUICK) } else { count },
            bytes: self.size as usize,
            most: if self.quick { most.min(QUICK) } else { most },
        }
    }
}
