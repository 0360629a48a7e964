//! Load for any API server that a kubeconfig reaches, and what it took: the same work against
//! ours and against others. Works in a namespace of its own and removes what it made.

use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use coracle_client::Client;
use coracle_client::connect as server;
use pairs::Pairs;
use patience::{unless_interrupted, within};
use scratch::Scratch;
use stats::Report;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use suite::{Kind, Side};

mod pairs; // Two servers side by side, pure.
mod stats; // Percentiles and rates, pure.

mod about; // Machine and versions.
mod patience; // What takes too long, and interrupts.

mod pool; // Many timed calls over connections.
mod scratch; // The namespace, and cleaning up.

mod connect;
mod dns;

mod coldstart;
mod footprint;
mod group; // A command, and all that it starts.
mod process; // What the kernel counts of processes.

mod configmaps; // create, get, list, watch
mod fake_nodes;
mod idle;
mod pods;
mod rollout;
mod schedule;
mod suite; // writes, reads, fanout, nodes: many sizes in turn

/// Calls, objects, watchers and nodes of a quick run, at most.
const QUICK: usize = 100;

/// Measures an API server.
#[derive(Debug, Parser)]
#[command(name = "coracle-bench", version)]
struct Arguments {
    #[command(subcommand)]
    work: Work,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
struct Common {
    /// The cluster to load.
    #[arg(long, global = true, env = "KUBECONFIG", default_value = "kubeconfig")]
    kubeconfig: PathBuf,
    /// Another cluster, which does the same work in turn: A B, B A, ...
    #[arg(long, global = true, value_name = "KUBECONFIG")]
    against: Option<PathBuf>,
    /// How often each is measured, for a suite or with `--against`.
    #[arg(long, global = true, default_value_t = 3, value_parser = bounded(100))]
    rounds: u64,
    /// A small run of a suite, to see that it works: one round, its smallest numbers.
    #[arg(long, global = true)]
    quick: bool,
    /// None with more objects, watchers or nodes is measured by a suite.
    #[arg(long, global = true, default_value_t = 27_000, value_parser = bounded(100_000))]
    most: u64,
    /// How many calls in all (watch: objects; schedule, rollout, pods: pods).
    #[arg(long, global = true, default_value_t = 1000, value_parser = bounded(100_000))]
    count: u64,
    /// Connections, each with one call in flight (watch: one watcher each).
    #[arg(long, global = true, default_value_t = 8, value_parser = bounded(1000))]
    connections: u64,
    /// Bytes of data in each ConfigMap.
    #[arg(long, global = true, default_value_t = 1000, value_parser = bounded(1_000_000))]
    size: u64,
    /// Seconds after which the run is given up; of a suite one size, of `coldstart` and `footprint`
    /// each load that is put on the server.
    #[arg(long, global = true, default_value_t = 240, value_parser = bounded(280))]
    timeout: u64,
    /// JSON instead of a table or, in a file, beside it.
    #[arg(long, global = true, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    json: Option<Option<PathBuf>>,
}

#[derive(Debug, Subcommand)]
enum Work {
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

#[allow(clippy::print_stderr)] // Errors are for the terminal.
#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match Box::pin(measure_all(&arguments)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("coracle-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn measure_all(arguments: &Arguments) -> anyhow::Result<()> {
    let common = &arguments.common;
    let sides: Vec<_> = std::iter::once(&common.kubeconfig)
        .chain(&common.against)
        .map(|kubeconfig| Side::new(kubeconfig))
        .collect();
    let rounds = if common.quick {
        1
    } else {
        common.rounds as usize
    };
    let sizes = common.sizes();
    let timeout = Duration::from_secs(common.timeout);
    let pairs = match &arguments.work {
        Work::Coldstart {
            start,
            start_against,
        } => {
            let plan = coldstart::Plan {
                commands: std::iter::once(start)
                    .chain(start_against)
                    .cloned()
                    .collect(),
                rounds,
                bytes: sizes.bytes,
                most: sizes.most,
                timeout,
            };
            Box::pin(coldstart::run(&sides, &plan, &progress)).await?
        }
        Work::Footprint {
            processes,
            processes_against,
            seconds,
        } => {
            let all = [processes, processes_against].map(Vec::clone);
            let plan = footprint::Plan {
                processes: all.into_iter().take(sides.len()).collect(),
                period: Duration::from_secs(*seconds),
                bytes: sizes.bytes,
                most: sizes.most,
                timeout,
            };
            Box::pin(footprint::run(&sides, &plan, &progress)).await?
        }
        work => match work.suite() {
            Some(kind) => {
                let plan = suite::Plan { rounds, timeout };
                suite::run(&sides, &suite::cases(kind, &sizes), &plan, &progress).await?
            }
            None if common.against.is_none() => {
                let report = Box::pin(measure(arguments, &sides[0])).await?;
                let (table, json) = (report.table(), report.json());
                return output(arguments, &sides, &table, json).await;
            }
            None => Box::pin(in_turn(arguments, &sides)).await?,
        },
    };
    let names: Vec<_> = sides.iter().map(|side| side.name.clone()).collect();
    let (table, json) = (pairs.table(&names), pairs.json(&names));
    output(arguments, &sides, &table, json).await
}

/// What is no suite, of both sides.
async fn in_turn(arguments: &Arguments, sides: &[Side]) -> anyhow::Result<Pairs> {
    anyhow::ensure!(
        arguments.work.is_of_servers(),
        "--against is for work that a kubeconfig leads to"
    );
    let mut pairs = Pairs::new(sides.len());
    for round in 0..arguments.common.rounds as usize {
        for side in pairs::turn(sides.len(), round) {
            progress(format!("round {}, {}", round + 1, sides[side].name));
            let report = measure(arguments, &sides[side]).await?;
            for figure in pairs::figures(&report) {
                pairs.add(side, figure);
            }
        }
    }
    Ok(pairs)
}

/// What is being done, beside the output.
#[allow(clippy::print_stderr)]
fn progress(what: String) {
    eprintln!("{what}");
}

#[allow(clippy::print_stdout)] // The report is for the terminal.
async fn output(
    arguments: &Arguments,
    sides: &[Side],
    table: &str,
    mut json: serde_json::Value,
) -> anyhow::Result<()> {
    if arguments.common.json.is_some() {
        let asked = if arguments.work.is_of_servers() {
            sides
        } else {
            &[]
        };
        json["run"] = about::run(asked).await;
    }
    match &arguments.common.json {
        None => println!("{table}"),
        Some(None) => println!("{json}"),
        Some(Some(file)) => {
            println!("{table}");
            std::fs::write(file, format!("{json:#}\n"))
                .with_context(|| format!("cannot write {}", file.display()))?;
        }
    }
    Ok(())
}

impl Work {
    /// Whether a kubeconfig leads to what is measured.
    fn is_of_servers(&self) -> bool {
        !matches!(
            self,
            Self::Dns { .. } | Self::Connect { .. } | Self::Accept { .. }
        )
    }

    fn suite(&self) -> Option<Kind> {
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
    fn sizes(&self) -> suite::Sizes {
        let (count, most) = (self.count as usize, self.most as usize);
        suite::Sizes {
            count: if self.quick { count.min(QUICK) } else { count },
            bytes: self.size as usize,
            most: if self.quick { most.min(QUICK) } else { most },
        }
    }
}

async fn measure(arguments: &Arguments, side: &Side) -> anyhow::Result<Report> {
    let common = &arguments.common;
    match &arguments.work {
        Work::Dns { server, name } => {
            return dns::run(&dns::Plan {
                server: *server,
                name: name.clone(),
                count: common.count as usize,
                sockets: common.connections as usize,
            });
        }
        Work::Connect { direct, service } => {
            return connect::run(&connect::Plan {
                direct: *direct,
                service: *service,
                count: common.count as usize,
            });
        }
        Work::Accept { at } => {
            connect::accept(at)?;
            return Ok(Report::new("accept", Vec::new(), 0, Duration::ZERO));
        }
        _ => {}
    }
    let endpoint = side.endpoint()?;
    // A client has connections of its own: as many clients, as many connections.
    let clients: Vec<_> = (0..common.connections)
        .map(|_| server::client(&endpoint))
        .collect();
    let scratch = Scratch::create(server::client(&endpoint)).await?;
    let nodes = match &arguments.work {
        Work::Schedule { nodes, .. } | Work::Rollout { nodes, .. } => {
            fake_nodes::node_names(&scratch, *nodes as usize)
        }
        _ => Vec::new(),
    };
    let work = ask(arguments, &scratch, &clients, &nodes);
    let limit = Duration::from_secs(common.timeout);
    let result = unless_interrupted(within(limit, work)).await;
    let removed = scratch.remove(&nodes).await;
    match (result, removed) {
        (Err(error), Err(left)) => Err(error.context(format!("{left:#}; before that"))),
        (result, removed) => removed.and(result),
    }
}

async fn ask(
    arguments: &Arguments,
    scratch: &Scratch,
    clients: &[Client],
    nodes: &[String],
) -> anyhow::Result<Report> {
    let common = &arguments.common;
    let (count, bytes) = (common.count as usize, common.size as usize);
    match &arguments.work {
        Work::Create => configmaps::create(scratch, clients, count, bytes).await,
        Work::Get => configmaps::get(scratch, clients, count, bytes).await,
        Work::List { objects } => {
            configmaps::list(scratch, clients, count, bytes, *objects as usize).await
        }
        Work::Dns { .. }
        | Work::Connect { .. }
        | Work::Accept { .. }
        | Work::Writes
        | Work::Reads
        | Work::Fanout { .. }
        | Work::Nodes
        | Work::Coldstart { .. }
        | Work::Footprint { .. } => unreachable!("measured above"),
        Work::Watch => configmaps::watch(scratch, clients, count, bytes).await,
        Work::Schedule { shape, .. } => schedule::run(scratch, clients, count, nodes, *shape).await,
        Work::Rollout {
            deployments,
            update,
            idle,
            idle_seconds,
            ..
        } => {
            let plan = rollout::Plan {
                deployments: *deployments as usize,
                pods: count,
                update: *update,
                idle: idle.map(|pid| idle::Plan {
                    pid,
                    period: Duration::from_secs(*idle_seconds),
                }),
            };
            rollout::run(scratch, clients, nodes, &plan).await
        }
        Work::Pods {
            image,
            at_once,
            command,
        } => {
            let plan = pods::Plan {
                count,
                at_once: *at_once as usize,
                image: image.clone(),
                command: command.clone(),
            };
            pods::run(scratch, &plan).await
        }
    }
}
