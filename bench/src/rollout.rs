//! How fast Deployments settle, on nodes whose pods are ready at once, and what that takes in writes.

use crate::fake_nodes::{self, PODS_PER_NODE};
use crate::idle;
use crate::scratch::Scratch;
use crate::stats::Report;
use anyhow::Context;
use coracle_client::Client;
use coracle_client::clock::Clock;
use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
use tokio::time::Instant;

/// How long nothing may be heard of any Deployment.
const SILENCE_MAX: Duration = Duration::from_secs(60);
const WATCH_SECONDS: u32 = 290;
/// Asked of the server's own metrics.
const REQUESTS: &str = "apiserver_request_total{";

pub struct Plan {
    pub deployments: usize,
    pub pods: usize,
    /// Measures a new template once all have settled.
    pub update: bool,
    /// Of whom to tell the cost while nothing changes.
    pub idle: Option<idle::Plan>,
}

/// A latency is from a Deployment's write to the event that shows all its pods available.
pub async fn run(
    scratch: &Scratch,
    clients: &[Client],
    nodes: &[String],
    plan: &Plan,
) -> anyhow::Result<Report> {
    let replicas = plan.pods / plan.deployments;
    // A rollout has a quarter more for a while.
    let room = nodes.len() * PODS_PER_NODE * 4 / 5;
    anyhow::ensure!(
        plan.pods.is_multiple_of(plan.deployments),
        "{} Deployments cannot share {} pods evenly",
        plan.deployments,
        plan.pods
    );
    anyhow::ensure!(
        replicas > 0 && replicas * plan.deployments <= room,
        "{} pods of {} Deployments do not fit on {} nodes: at most {room}, at least one each",
        plan.pods,
        plan.deployments,
        nodes.len()
    );
    let _nodes = fake_nodes::join(scratch, clients, nodes).await?;
    scratch.wait_for_account().await?;
    let _kubelets = fake_nodes::kubelets(scratch, clients).await?;
    let api: Api<Deployment> = Api::namespaced(scratch.client.clone(), &scratch.name);
    let before = writes(&scratch.client).await?;
    let made = settle(&api, plan.deployments, |number| {
        let api = Api::namespaced(clients[number % clients.len()].clone(), &scratch.name);
        let object = deployment(scratch, number, replicas);
        async move { api.create(&PostParams::default(), &object).await.map(drop) }
    });
    let made = made.await?;
    if !plan.update {
        let report = report("rollout", scratch, plan, made, &before).await?;
        return with_idle(scratch, plan, report).await;
    }
    let before = writes(&scratch.client).await?;
    let changed = settle(&api, plan.deployments, |number| {
        let client = clients[number % clients.len()].clone();
        let api: Api<Deployment> = Api::namespaced(client, &scratch.name);
        let patch = json!({"spec": {"template": {"metadata": {"annotations": {"round": "2"}}}}});
        async move {
            let (name, params) = (name(number), PatchParams::default());
            api.patch(&name, &params, &Patch::Merge(patch))
                .await
                .map(drop)
        }
    });
    let report = report("update", scratch, plan, changed.await?, &before).await?;
    with_idle(scratch, plan, report).await
}

/// Writes are counted too: there should be none.
async fn with_idle(scratch: &Scratch, plan: &Plan, mut report: Report) -> anyhow::Result<Report> {
    let Some(plan) = &plan.idle else {
        return Ok(report);
    };
    idle::rest().await;
    let before = writes(&scratch.client).await?;
    report.notes.extend(idle::cost(plan).await?);
    let after = writes(&scratch.client).await?;
    let written = after.values().sum::<u64>() - before.values().sum::<u64>();
    report.notes.push(("writes meanwhile".to_owned(), written));
    Ok(report)
}

type Settled = (Vec<Duration>, Duration);

/// Writes all and waits until all have settled.
async fn settle<Fut>(
    api: &Api<Deployment>,
    count: usize,
    write: impl Fn(usize) -> Fut,
) -> anyhow::Result<Settled>
where
    Fut: Future<Output = Result<(), kube::Error>>,
{
    let from = api.list(&ListParams::default()).await?.metadata;
    let from = from.resource_version.context("a list without a version")?;
    let params = WatchParams::default().timeout(WATCH_SECONDS);
    let stream = api.watch(&params, &from).await;
    let mut stream = std::pin::pin!(stream.context("cannot watch Deployments")?);
    let clock = Clock::system();
    let begun = clock.monotonic();
    let writing = futures::future::try_join_all((0..count).map(|number| {
        let write = write(number);
        let clock = clock.clone();
        async move {
            let at = clock.monotonic();
            write.await.map(|()| (name(number), at))
        }
    }));
    let watching = async {
        let mut settled: HashMap<String, Instant> = HashMap::with_capacity(count);
        while settled.len() < count {
            let event = tokio::time::timeout(SILENCE_MAX, stream.next()).await;
            let Ok(Some(event)) = event else { break };
            if let WatchEvent::Modified(object) = event?
                && is_settled(&object)
            {
                let name = object.metadata.name.unwrap_or_default();
                settled.entry(name).or_insert_with(|| clock.monotonic());
            }
        }
        Ok::<_, anyhow::Error>(settled)
    };
    let writing = async { writing.await.context("cannot write a Deployment") };
    let (written, settled) = futures::future::try_join(writing, watching).await?;
    let last = settled.values().max().copied();
    let last = last.context("no Deployment settled")?;
    let latencies = written
        .iter()
        .filter_map(|(name, at)| Some(*settled.get(name)? - *at))
        .collect();
    Ok((latencies, last - begun))
}

fn is_settled(object: &Deployment) -> bool {
    let wanted = object.spec.as_ref().and_then(|spec| spec.replicas);
    let Some(status) = &object.status else {
        return false;
    };
    status.observed_generation == object.metadata.generation
        && [
            status.replicas,
            status.updated_replicas,
            status.available_replicas,
        ]
        .iter()
        .all(|count| *count == wanted)
}

async fn report(
    work: &'static str,
    scratch: &Scratch,
    plan: &Plan,
    (latencies, elapsed): Settled,
    before: &BTreeMap<String, u64>,
) -> anyhow::Result<Report> {
    let failed = plan.deployments - latencies.len();
    let after = writes(&scratch.client).await?;
    let notes = after.into_iter().filter_map(|(what, count)| {
        let made = count.saturating_sub(before.get(&what).copied().unwrap_or(0));
        (made > 0).then_some((what, made))
    });
    let report = Report::new(work, latencies, failed, elapsed);
    Ok(report.with_notes(notes.collect()))
}

fn name(number: usize) -> String {
    format!("d-{number}")
}

fn deployment(scratch: &Scratch, number: usize, replicas: usize) -> Deployment {
    let mut labels = scratch.labels();
    labels.insert("app".to_owned(), name(number));
    let object: Value = json!({
        "metadata": {"name": name(number), "labels": scratch.labels()},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name(number)}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "automountServiceAccountToken": false,
                    "nodeSelector": scratch.labels(),
                    "containers": [{"name": "idle", "image": "registry.k8s.io/pause:3.10"}],
                    "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
                },
            },
        },
    });
    serde_json::from_value(object).expect("the object above is a Deployment")
}

/// Writes that the server has done, by verb and resource, but for leases and events.
async fn writes(client: &Client) -> anyhow::Result<BTreeMap<String, u64>> {
    let request = http::Request::get("/metrics").body(Vec::new())?;
    let text = client.request_text(request).await;
    Ok(count_writes(
        &text.context("cannot read the server's metrics")?,
    ))
}

fn count_writes(metrics: &str) -> BTreeMap<String, u64> {
    let mut counted = BTreeMap::new();
    for line in metrics.lines() {
        let Some((labels, value)) = line
            .strip_prefix(REQUESTS)
            .and_then(|rest| rest.rsplit_once("} "))
        else {
            continue;
        };
        let label = |name: &str| {
            let start = labels.split(',').find_map(|one| one.strip_prefix(name));
            start.map_or("", |value| value.trim_start_matches('=').trim_matches('"'))
        };
        let (verb, resource) = (label("verb"), label("resource"));
        let is_write = matches!(verb, "POST" | "PUT" | "PATCH" | "APPLY" | "DELETE");
        let Ok(value) = value.trim().parse::<f64>() else {
            continue;
        };
        if is_write && !matches!(resource, "leases" | "events" | "") {
            let subresource = label("subresource");
            let slash = if subresource.is_empty() { "" } else { "/" };
            let what = format!("{verb} {resource}{slash}{subresource}");
            *counted.entry(what).or_insert(0) += value as u64;
        }
    }
    counted
}

#[cfg(test)]
mod tests;
