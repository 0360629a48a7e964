//! From the arguments to a report: sides, rounds, and one piece of work.

use crate::arguments::{Arguments, Work};
use crate::pairs::{self, Pairs};
use crate::patience::{unless_interrupted, within};
use crate::schedule;
use crate::scratch::Scratch;
use crate::stats::Report;
use crate::suite::{self, Side};
use crate::{
    about, coldstart, configmaps, connect, dns, fake_nodes, footprint, idle, pods, rollout,
};
use anyhow::Context;
use clap::Parser;
use coracle_client::Client;
use coracle_client::connect as server;
use std::ffi::OsString;
use std::time::Duration;

/// Does what these arguments ask for, the first of which is the program's name, and prints what it
/// took. Those that ask for nothing it can do end the process, as they would on the command line.
pub async fn run<I>(arguments: I) -> anyhow::Result<()>
where
    I: IntoIterator<Item = OsString>,
{
    let arguments = Arguments::parse_from(arguments);
    Box::pin(measure_all(&arguments)).await
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
