//! What can be asked for on the command line, and what that means in sizes.

use crate::coldstart::{self, Until};
use crate::footprint::{self, Rests};
use crate::schedule;
use crate::side::Side;
use crate::suite::{self, Kind, fanout::Pace};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

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
    /// What the servers are called in what is told; else by their kubeconfigs.
    #[arg(long, global = true, value_name = "NAME", value_delimiter = ',')]
    pub names: Vec<String>,
    /// How often each is measured, for a suite or with `--against`.
    #[arg(long, global = true, default_value_t = 3, value_parser = bounded(100))]
    pub rounds: u64,
    /// A small run of a suite, to see that it works: one round, its smallest numbers.
    #[arg(long, global = true)]
    pub quick: bool,
    /// None with more objects, watchers or nodes is measured by a suite.
    #[arg(long, global = true, default_value_t = 100_000, value_parser = bounded(100_000))]
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
    /// A table for a page (Markdown) instead of one for a terminal.
    #[arg(long, global = true)]
    pub markdown: bool,
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
    /// One create after the other, and then at a pace, for the delay at a load that servers stand.
    Fanout {
        /// The pace: so many events a second, of all watchers together.
        #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        events: u32,
        /// So many creates a second instead, of each of which every watcher hears.
        #[arg(long, value_name = "CREATES", value_parser = clap::value_parser!(u32).range(1..=10_000))]
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
        /// Empties what `--start` keeps, before each first start: else only one is measured.
        #[arg(long, value_name = "COMMAND")]
        empty: Option<String>,
        /// The same for `--against`.
        #[arg(long, value_name = "COMMAND", requires = "against")]
        empty_against: Option<String>,
        /// What is waited for.
        #[arg(long, value_enum, default_value_t = Until::Ready)]
        until: Until,
    },
    /// Memory idle, for each node, pod and object, for one more list, and after all is deleted;
    /// processor time, bytes written and flushes while 0, 1, 10 and 100 nodes renew their leases. Of
    /// processes of this machine; flushes are counted by `perf`.
    Footprint {
        /// Names or ids of all that make up the server.
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
    /// From the sending of a pod, and from the event that shows it bound, to the one that shows it
    /// running.
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

impl Arguments {
    /// The servers to be measured; none where it is this machine's network.
    pub fn sides(&self) -> anyhow::Result<Vec<Side>> {
        let common = &self.common;
        if !self.work.is_of_servers() {
            anyhow::ensure!(
                common.against.is_none(),
                "--against is for work that a kubeconfig leads to"
            );
            return Ok(Vec::new());
        }
        let all = std::iter::once(&common.kubeconfig).chain(&common.against);
        let sides = all.enumerate();
        let sides: Vec<_> = sides
            .map(|(number, kubeconfig)| Side::new(kubeconfig, common.names.get(number)))
            .collect();
        anyhow::ensure!(
            common.names.is_empty() || common.names.len() == sides.len(),
            "each server has one name: --names A,B"
        );
        Ok(sides)
    }

    /// The plan of that work.
    pub fn coldstart(&self) -> Option<coldstart::Plan> {
        let Work::Coldstart {
            start,
            start_against,
            empty,
            empty_against,
            until,
        } = &self.work
        else {
            return None;
        };
        let sizes = self.common.sizes();
        Some(coldstart::Plan {
            commands: [start].into_iter().chain(start_against).cloned().collect(),
            empty: empty.iter().chain(empty_against).cloned().collect(),
            until: *until,
            rounds: self.common.rounds(),
            bytes: sizes.bytes,
            most: sizes.most,
            timeout: self.common.timeout(),
        })
    }

    /// The plan of that work.
    pub fn footprint(&self) -> Option<footprint::Plan> {
        let Work::Footprint {
            processes,
            processes_against,
            seconds,
        } = &self.work
        else {
            return None;
        };
        let sizes = self.common.sizes();
        let all = [processes, processes_against].into_iter();
        Some(footprint::Plan {
            processes: all.filter(|some| !some.is_empty()).cloned().collect(),
            period: Duration::from_secs(*seconds),
            rests: match self.common.quick {
                true => Rests::QUICK,
                false => Rests::FULL,
            },
            bytes: sizes.bytes,
            most: sizes.most,
            timeout: self.common.timeout(),
        })
    }
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
            Self::Fanout { events, rate } => Some(Kind::Watch {
                pace: rate.map_or(Pace::Events(*events), Pace::Creates),
            }),
            Self::Nodes => Some(Kind::Nodes),
            _ => None,
        }
    }
}

impl Common {
    /// Of a suite and of what is done in turn.
    pub fn rounds(&self) -> usize {
        match self.quick {
            true => 1,
            false => self.rounds as usize,
        }
    }

    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }

    pub fn sizes(&self) -> suite::Sizes {
        let (count, most) = (self.count as usize, self.most as usize);
        suite::Sizes {
            count: if self.quick { count.min(QUICK) } else { count },
            bytes: self.size as usize,
            most: if self.quick { most.min(QUICK) } else { most },
        }
    }
}

#[cfg(test)]
mod tests;
