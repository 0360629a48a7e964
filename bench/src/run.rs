//! From the arguments to what is told: sides, rounds, and one piece of work.

use crate::about::About;
use crate::arguments::{Arguments, Work};
use crate::pairs::{self, Pairs};
use crate::patience::{unless_interrupted, within};
use crate::scratch::Scratch;
use crate::side::Side;
use crate::stats::Report;
use crate::tell::Measured;
use crate::{coldstart, configmaps, connect, dns, fake_nodes, footprint};
use crate::{idle, pods, rollout, schedule, suite};
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
    let about = About::now();
    let sides = arguments.sides()?;
    if !matches!(arguments.work, Work::Coldstart { .. }) {
        for side in &sides {
            side.meet().await;
        }
    }
    let measured = Box::pin(measure_all(&arguments, &sides)).await?;
    measured.tell(&arguments.common, &sides, &about)
}

async fn measure_all(arguments: &Arguments, sides: &[Side]) -> anyhow::Result<Measured> {
    let common = &arguments.common;
    if let Some(plan) = arguments.coldstart() {
        let pairs = Box::pin(coldstart::run(sides, &plan, &progress)).await?;
        return Ok(Measured::Pairs(pairs));
    }
    if let Some(plan) = arguments.footprint() {
        let pairs = Box::pin(footprint::run(sides, &plan, &progress)).await?;
        return Ok(Measured::Pairs(pairs));
    }
    if let Some(kind) = arguments.work.suite() {
        let (rounds, timeout) = (common.rounds(), common.timeout());
        let cases = suite::cases(kind, &common.sizes());
        let plan = suite::Plan { rounds, timeout };
        let pairs = suite::run(sides, &cases, &plan, &progress).await?;
        return Ok(Measured::Pairs(pairs));
    }
    match sides {
        [] => Ok(Measured::Reports(vec![without_server(arguments)?])),
        [one] => Ok(Measured::Reports(Box::pin(measure(arguments, one)).await?)),
        sides => Ok(Measured::Pairs(Box::pin(in_turn(arguments, sides)).await?)),
    }
}

/// What is no suite, of both sides.
async fn in_turn(arguments: &Arguments, sides: &[Side]) -> anyhow::Result<Pairs> {
    let mut pairs = Pairs::new(sides.len());
    let rounds = arguments.common.rounds();
    for round in 0..rounds {
        for side in pairs::turn(sides.len(), round) {
            let name = &sides[side].name;
            for report in measure(arguments, &sides[side]).await? {
                let (work, rate) = (&report.work, report.rate());
                progress(format!(
                    "round {} of {rounds}, {name}: {work}, {rate:.0}/s",
                    round + 1
                ));
                for figure in pairs::figures(&report) {
                    pairs.add(side, round, figure);
                }
            }
        }
    }
    pairs.end(rounds);
    Ok(pairs)
}

/// What is being done, beside the output.
#[allow(clippy::print_stderr)]
fn progress(what: String) {
    eprintln!("{what}");
}

/// Of this machine's network.
fn without_server(arguments: &Arguments) -> anyhow::Result<Report> {
    let common = &arguments.common;
    match &arguments.work {
        Work::Dns { server, name } => dns::run(&dns::Plan {
            server: *server,
            name: name.clone(),
            count: common.count as usize,
            sockets: common.connections as usize,
        }),
        Work::Connect { direct, service } => connect::run(&connect::Plan {
            direct: *direct,
            service: *service,
            count: common.count as usize,
        }),
        Work::Accept { at } => {
            connect::accept(at)?;
            Ok(Report::new("accept", Vec::new(), 0, Duration::ZERO))
        }
        _ => unreachable!("all else has a side"),
    }
}

async fn measure(arguments: &Arguments, side: &Side) -> anyhow::Result<Vec<Report>> {
    let common = &arguments.common;
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
    let result = unless_interrupted(within(common.timeout(), work)).await;
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
) -> anyhow::Result<Vec<Report>> {
    let common = &arguments.common;
    let (count, bytes) = (common.count as usize, common.size as usize);
    let report = match &arguments.work {
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
            return pods::run(scratch, &plan).await;
        }
    };
    Ok(vec![report?])
}
