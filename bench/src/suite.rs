//! The same work against one server or two, in turn: A B, B A, A B, ...
//!
//! A case is made ready once a side, measured once a round and side, and taken away at the end,
//! also after an error or an interrupt.

use crate::pairs::{self, Pairs};
use crate::patience::{unless_interrupted, within};
use crate::scratch::Scratch;
use crate::side::Side;
use crate::stats::Report;
use anyhow::Context;
use coracle_client::Client;
use coracle_client::connect as server;
use std::time::Duration;

pub mod fanout; // watch: one writer, many watchers
mod heartbeats; // nodes: leases renewed
mod reads;
mod writes;

use fanout::Fanout;
use heartbeats::Heartbeats;
use reads::Reads;
use writes::Writes;

/// One piece of work, of one size.
#[derive(Clone, Debug, PartialEq)]
pub enum Case {
    Writes(Writes),
    Reads(Reads),
    Fanout(Fanout),
    Heartbeats(Heartbeats),
}

pub struct Plan {
    pub rounds: usize,
    pub timeout: Duration,
}

/// A case on one side, ready to be measured.
struct Stage {
    scratch: Scratch,
    clients: Vec<Client>,
    nodes: Vec<String>,
}

/// Calls of one kind, and bounds that make a run short.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub count: usize,
    pub bytes: usize,
    /// None with more objects, watchers or nodes than this is measured.
    pub most: usize,
}

/// What `coracle-bench` calls a suite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Writes,
    Reads,
    Watch {
        /// For the delay at a load that a server stands.
        pace: fanout::Pace,
    },
    Nodes,
}

pub fn cases(kind: Kind, sizes: &Sizes) -> Vec<Case> {
    let Sizes { count, bytes, most } = *sizes;
    match kind {
        Kind::Writes => writes::cases(count).into_iter().map(Case::Writes).collect(),
        Kind::Reads => {
            let cases = reads::cases(count, bytes, most);
            cases.into_iter().map(Case::Reads).collect()
        }
        Kind::Watch { pace } => {
            let cases = fanout::cases(count, bytes, most, pace);
            cases.into_iter().map(Case::Fanout).collect()
        }
        Kind::Nodes => {
            let cases = heartbeats::cases(most);
            cases.into_iter().map(Case::Heartbeats).collect()
        }
    }
}

impl Case {
    fn connections(&self) -> usize {
        match self {
            Self::Writes(case) => case.connections,
            Self::Reads(_) => reads::CONNECTIONS,
            Self::Fanout(case) => fanout::connections(case.watchers),
            Self::Heartbeats(_) => heartbeats::CONNECTIONS,
        }
    }

    fn nodes(&self) -> usize {
        match self {
            Self::Heartbeats(case) => case.nodes,
            _ => 0,
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Writes(case) => case.name(),
            Self::Reads(case) => format!("reads of {} objects", case.objects),
            Self::Fanout(case) => case.name(),
            Self::Heartbeats(case) => case.name(),
        }
    }

    async fn prepare(&self, stage: &Stage) -> anyhow::Result<()> {
        let (scratch, clients) = (&stage.scratch, stage.clients.as_slice());
        match self {
            Self::Reads(case) => case.prepare(scratch, clients).await,
            Self::Heartbeats(_) => heartbeats::prepare(scratch, clients, &stage.nodes).await,
            Self::Writes(_) | Self::Fanout(_) => Ok(()),
        }
    }

    async fn measure(&self, stage: &Stage, round: usize) -> anyhow::Result<Vec<Report>> {
        let (scratch, clients) = (&stage.scratch, stage.clients.as_slice());
        match self {
            Self::Writes(case) => case.measure(scratch, clients, round).await,
            Self::Reads(case) => case.measure(scratch, clients).await,
            Self::Fanout(case) => Ok(vec![case.measure(scratch, clients, round).await?]),
            Self::Heartbeats(case) => Ok(vec![case.measure(clients, &stage.nodes).await?]),
        }
    }
}

/// `said` hears what is being done.
pub async fn run(
    sides: &[Side],
    cases: &[Case],
    plan: &Plan,
    said: &dyn Fn(String),
) -> anyhow::Result<Pairs> {
    let mut pairs = Pairs::new(sides.len());
    for case in cases {
        let mut stages = Vec::new();
        let work = measure(sides, case, plan, &mut stages, &mut pairs, said);
        let done = unless_interrupted(within(plan.timeout, work)).await;
        let mut removed = Ok(());
        for stage in &stages {
            removed = removed.and(stage.scratch.remove(&stage.nodes).await);
        }
        done.with_context(|| case.name())?;
        removed?;
    }
    pairs.end(plan.rounds);
    Ok(pairs)
}

/// Connections stand before anything is measured.
async fn greet(clients: &[Client]) -> anyhow::Result<()> {
    let greetings = clients.iter().map(|client| client.apiserver_version());
    futures::future::try_join_all(greetings).await?;
    Ok(())
}

async fn measure(
    sides: &[Side],
    case: &Case,
    plan: &Plan,
    stages: &mut Vec<Stage>,
    pairs: &mut Pairs,
    said: &dyn Fn(String),
) -> anyhow::Result<()> {
    for side in sides {
        said(format!("{}: {} is made ready", case.name(), side.name));
        let endpoint = side.endpoint()?;
        let scratch = Scratch::create(server::client(&endpoint)).await?;
        let nodes = crate::fake_nodes::node_names(&scratch, case.nodes());
        // A client has connections of its own: as many clients, as many connections.
        let clients = (0..case.connections()).map(|_| server::client(&endpoint));
        stages.push(Stage {
            clients: clients.collect(),
            scratch,
            nodes,
        });
        let stage = &stages[stages.len() - 1];
        greet(&stage.clients).await?;
        case.prepare(stage).await?;
    }
    for round in 0..plan.rounds {
        for side in pairs::turn(sides.len(), round) {
            let reports = case.measure(&stages[side], round).await?;
            for report in &reports {
                said(format!(
                    "round {} of {}, {}: {}, {:.0}/s",
                    round + 1,
                    plan.rounds,
                    sides[side].name,
                    report.work,
                    report.rate()
                ));
                for figure in pairs::figures(report) {
                    pairs.add(side, round, figure);
                }
            }
        }
    }
    Ok(())
}
