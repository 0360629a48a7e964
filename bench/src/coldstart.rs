//! From the start of a server's command until it says that it is ready, or has a node that is, empty
//! and with objects.
//!
//! The command runs in the foreground in a process group of its own, which is told to end (SIGTERM)
//! and has to, and which outlives no error and no interrupt. Where its data is kept is the command's
//! matter: rounds find what those before left.

use crate::configmaps;
use crate::group::Group;
use crate::pairs::{self, Figure, Pairs};
use crate::patience::{unless_interrupted, within};
use crate::scratch::Scratch;
use crate::side::Side;
use anyhow::Context;
use coracle_client::clock::Clock;
use coracle_client::connect as server;
use http::Request;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::ListParams;
use kube::client::Body;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

const OBJECTS: [usize; 2] = [10_000, 100_000];
const CONNECTIONS: usize = 64;
const READY_POLL: Duration = Duration::from_millis(5);
const READY_MAX: Duration = Duration::from_secs(120);

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Until {
    /// `/readyz` answers.
    Ready,
    /// A node says that it is ready; of first starts alone.
    Node,
}

pub struct Plan {
    /// One a side.
    pub commands: Vec<String>,
    /// One a side, or none: they empty what the commands keep.
    pub empty: Vec<String>,
    pub until: Until,
    pub rounds: usize,
    pub bytes: usize,
    /// Not measured with more objects than that.
    pub most: usize,
    /// For making the objects of one size on one side.
    pub timeout: Duration,
}

pub async fn run(sides: &[Side], plan: &Plan, said: &dyn Fn(String)) -> anyhow::Result<Pairs> {
    anyhow::ensure!(
        plan.commands.len() == sides.len(),
        "{} servers need as many commands: --start, and --start-against for the second",
        sides.len()
    );
    anyhow::ensure!(
        plan.empty.is_empty() || plan.empty.len() == sides.len(),
        "where one server begins empty each time both do: --empty, and --empty-against"
    );
    unless_interrupted(measure(sides, plan, said)).await
}

async fn measure(sides: &[Side], plan: &Plan, said: &dyn Fn(String)) -> anyhow::Result<Pairs> {
    let mut run = Run {
        sides,
        plan,
        said,
        pairs: Pairs::new(sides.len()),
    };
    run.empty().await?;
    let mut scratches: Vec<Option<Scratch>> = sides.iter().map(|_| None).collect();
    let mut have = 0;
    // Of a node that is known from before, what it says is of before.
    let measured = |some: &usize| *some <= plan.most && plan.until == Until::Ready;
    for objects in OBJECTS.into_iter().filter(measured) {
        for (number, side) in sides.iter().enumerate() {
            said(format!("{}: {objects} objects are made", side.name));
            let (group, _) = run.start(number).await?;
            let making = fill(side, &mut scratches[number], have..objects, plan.bytes);
            let made = within(plan.timeout, making).await;
            group.end().await?;
            made.with_context(|| format!("{objects} objects on {}", side.name))?;
        }
        have = objects;
        run.rounds(objects).await?;
    }
    Ok(run.pairs)
}

struct Run<'a> {
    sides: &'a [Side],
    plan: &'a Plan,
    said: &'a dyn Fn(String),
    pairs: Pairs,
}

impl Run<'_> {
    /// First starts, of which there is one if nobody empties what is kept, and starts after those.
    async fn empty(&mut self) -> anyhow::Result<()> {
        let firsts = match self.plan.empty.is_empty() {
            true => 1,
            false => self.plan.rounds,
        };
        let what = match self.plan.until {
            Until::Ready => "first start, empty",
            Until::Node => "first start, empty, to a Ready node",
        };
        for round in 0..firsts {
            for number in pairs::turn(self.sides.len(), round) {
                if let Some(command) = self.plan.empty.get(number) {
                    done(command).await?;
                }
                self.round(number, round, what.to_owned()).await?;
            }
        }
        match self.plan.until {
            Until::Ready => self.rounds(0).await,
            Until::Node => Ok(()),
        }
    }

    async fn rounds(&mut self, objects: usize) -> anyhow::Result<()> {
        for round in 0..self.plan.rounds {
            for number in pairs::turn(self.sides.len(), round) {
                let what = format!("start with {objects} objects");
                self.round(number, round, what).await?;
            }
        }
        Ok(())
    }

    async fn round(&mut self, number: usize, round: usize, what: String) -> anyhow::Result<()> {
        let (group, took) = self.start(number).await?;
        self.sides[number].meet().await;
        group.end().await?;
        let ms = took.as_secs_f64() * 1e3;
        (self.said)(format!("{}: {what}, {ms:.0} ms", self.sides[number].name));
        self.pairs.add(number, round, Figure::new(what, "ms", ms));
        Ok(())
    }

    /// Runs the command and waits until it is ready, which took so long; a kubeconfig may come with
    /// the first start.
    async fn start(&self, number: usize) -> anyhow::Result<(Group, Duration)> {
        let (side, command) = (&self.sides[number], &self.plan.commands[number]);
        anyhow::ensure!(
            !is_ready(side).await,
            "{} answers already: there is nothing to start",
            side.name
        );
        let clock = Clock::system();
        let begun = clock.monotonic();
        let mut group = Group::start(command)?;
        let ready = async {
            loop {
                let is_done = match self.plan.until {
                    Until::Ready => is_ready(side).await,
                    Until::Node => has_ready_node(side).await,
                };
                if is_done {
                    return Ok(());
                }
                if let Some(status) = group.ended()? {
                    anyhow::bail!("{command:?} ended with {status} and was not ready");
                }
                tokio::time::sleep(READY_POLL).await;
            }
        };
        let ready = within(READY_MAX, ready).await;
        let took = clock.monotonic() - begun;
        ready.with_context(|| format!("{} is not ready", side.name))?;
        Ok((group, took))
    }
}

/// Runs it and waits until it has done what it does.
async fn done(command: &str) -> anyhow::Result<()> {
    let status = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .status()
        .await
        .with_context(|| format!("cannot run {command:?}"))?;
    anyhow::ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

async fn is_ready(side: &Side) -> bool {
    let (Ok(endpoint), Ok(request)) =
        (side.endpoint(), Request::get("/readyz").body(Body::empty()))
    else {
        return false;
    };
    let answer = server::client(&endpoint).send(request).await;
    answer.is_ok_and(|answer| answer.status().is_success())
}

async fn has_ready_node(side: &Side) -> bool {
    let Ok(endpoint) = side.endpoint() else {
        return false;
    };
    let nodes: Api<Node> = Api::all(server::client(&endpoint));
    let listed = nodes.list(&ListParams::default()).await;
    listed.is_ok_and(|nodes| nodes.iter().any(says_ready))
}

fn says_ready(node: &Node) -> bool {
    let status = node.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_deref());
    let mut conditions = conditions.unwrap_or_default().iter();
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Makes the objects that are missing.
async fn fill(
    side: &Side,
    scratch: &mut Option<Scratch>,
    numbers: std::ops::Range<usize>,
    bytes: usize,
) -> anyhow::Result<()> {
    let endpoint = side.endpoint()?;
    let clients: Vec<_> = (0..CONNECTIONS)
        .map(|_| server::client(&endpoint))
        .collect();
    let made = match scratch.take() {
        // The server has been started anew: so has the connection to it.
        Some(old) => Scratch {
            client: server::client(&endpoint),
            name: old.name,
        },
        None => Scratch::create(server::client(&endpoint)).await?,
    };
    let made = scratch.insert(made);
    let report = configmaps::create_numbered(made, &clients, numbers, bytes).await?;
    anyhow::ensure!(report.failed == 0, "{} creates failed", report.failed);
    Ok(())
}
