//! From the start of a server's command until it says that it is ready, empty and with objects.
//!
//! The command runs in the foreground in a process group of its own, which is told to end (SIGTERM)
//! and has to, and which outlives no error and no interrupt. Where its data is kept is the command's
//! matter: rounds find what those before left.

use crate::configmaps;
use crate::group::Group;
use crate::pairs::{self, Figure, Pairs};
use crate::patience::{unless_interrupted, within};
use crate::scratch::Scratch;
use crate::suite::Side;
use anyhow::Context;
use coracle_client::clock::Clock;
use coracle_client::connect as server;
use http::Request;
use kube::client::Body;
use std::time::Duration;

const OBJECTS: [usize; 3] = [0, 10_000, 100_000];
const CONNECTIONS: usize = 64;
const READY_POLL: Duration = Duration::from_millis(5);
const READY_MAX: Duration = Duration::from_secs(120);

pub struct Plan {
    /// One a side.
    pub commands: Vec<String>,
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
    unless_interrupted(measure(sides, plan, said)).await
}

async fn measure(sides: &[Side], plan: &Plan, said: &dyn Fn(String)) -> anyhow::Result<Pairs> {
    let mut pairs = Pairs::new(sides.len());
    let mut scratches: Vec<Option<Scratch>> = sides.iter().map(|_| None).collect();
    let mut have = 0;
    for objects in OBJECTS.into_iter().filter(|some| *some <= plan.most) {
        for (number, side) in sides.iter().enumerate() {
            if objects == 0 {
                continue;
            }
            said(format!("{}: {objects} objects are made", side.name));
            let (group, _) = start(side, &plan.commands[number]).await?;
            let making = fill(side, &mut scratches[number], have..objects, plan.bytes);
            let made = within(plan.timeout, making).await;
            group.end().await?;
            made.with_context(|| format!("{objects} objects on {}", side.name))?;
        }
        have = objects;
        for round in 0..plan.rounds {
            for number in pairs::turn(sides.len(), round) {
                let (group, took) = start(&sides[number], &plan.commands[number]).await?;
                let ms = took.as_secs_f64() * 1e3;
                group.end().await?;
                said(format!(
                    "{}: {objects} objects, {ms:.0} ms",
                    sides[number].name
                ));
                let first = round == 0 && objects == 0;
                let what = match first {
                    true => "first start, empty".to_owned(),
                    false => format!("start with {objects} objects"),
                };
                pairs.add(number, Figure::new(what, "ms", ms));
            }
        }
    }
    Ok(pairs)
}

/// Runs the command and waits until `/readyz` answers, which took so long; a kubeconfig may come with
/// the first start.
async fn start(side: &Side, command: &str) -> anyhow::Result<(Group, Duration)> {
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
            if is_ready(side).await {
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

async fn is_ready(side: &Side) -> bool {
    let (Ok(endpoint), Ok(request)) =
        (side.endpoint(), Request::get("/readyz").body(Body::empty()))
    else {
        return false;
    };
    let answer = server::client(&endpoint).send(request).await;
    answer.is_ok_and(|answer| answer.status().is_success())
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
