//! Load for any API server that a kubeconfig reaches, and what it took: the same work against
//! ours and against others. Works in a namespace of its own and removes what it made.

use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use coracle_client::Client;
use coracle_client::connect as server;
use scratch::Scratch;
use stats::Report;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

mod stats; // Percentiles and rates, pure.

mod pool; // Many timed calls over connections.
mod scratch; // The namespace, and cleaning up.

mod connect;
mod dns;

mod configmaps; // create, get, list, watch
mod fake_nodes;
mod idle;
mod pods;
mod rollout;
mod schedule;

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
    /// How many calls in all (watch: objects; schedule, rollout, pods: pods).
    #[arg(long, global = true, default_value_t = 1000, value_parser = bounded(100_000))]
    count: u64,
    /// Connections, each with one call in flight (watch: one watcher each).
    #[arg(long, global = true, default_value_t = 8, value_parser = bounded(1000))]
    connections: u64,
    /// Bytes of data in each ConfigMap.
    #[arg(long, global = true, default_value_t = 1000, value_parser = bounded(1_000_000))]
    size: u64,
    /// Seconds after which the run is given up.
    #[arg(long, global = true, default_value_t = 240, value_parser = bounded(280))]
    timeout: u64,
    /// One line of JSON instead of a table.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Work {
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

#[allow(clippy::print_stdout, clippy::print_stderr)] // The report is for the terminal.
#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match measure(&arguments).await {
        Ok(report) if arguments.common.json => println!("{}", report.json()),
        Ok(report) => println!("{}", report.table()),
        Err(error) => {
            eprintln!("coracle-bench: {error:#}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

async fn measure(arguments: &Arguments) -> anyhow::Result<Report> {
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
    let loaded = server::kubeconfig::load(&common.kubeconfig, None)
        .with_context(|| format!("kubeconfig {}", common.kubeconfig.display()))?;
    // A client has connections of its own: as many clients, as many connections.
    let clients: Vec<_> = (0..common.connections)
        .map(|_| server::client(&loaded.endpoint))
        .collect();
    let scratch = Scratch::create(server::client(&loaded.endpoint)).await?;
    let nodes = match &arguments.work {
        Work::Schedule { nodes, .. } | Work::Rollout { nodes, .. } => {
            fake_nodes::node_names(&scratch, *nodes as usize)
        }
        _ => Vec::new(),
    };
    let work = ask(arguments, &scratch, &clients, &nodes);
    let limit = Duration::from_secs(common.timeout);
    let result = tokio::select! {
        done = tokio::time::timeout(limit, Box::pin(work)) => {
            done.unwrap_or_else(|_| Err(anyhow::anyhow!("not done in {} s", common.timeout)))
        }
        _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("interrupted")),
    };
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
        Work::Dns { .. } | Work::Connect { .. } | Work::Accept { .. } => {
            unreachable!("measured above")
        }
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
