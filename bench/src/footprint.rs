//! What a server costs: memory at rest, after load and for each object, node and pod; processor time
//! and bytes written while nothing but heartbeats happens.

use crate::configmaps;
use crate::fake_nodes;
use crate::pairs::{Figure, Pairs};
use crate::patience::{unless_interrupted, within};
use crate::pool;
use crate::process::{self, Usage};
use crate::scratch::Scratch;
use crate::suite::Side;
use anyhow::Context;
use coracle_client::Client;
use coracle_client::connect as server;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use std::sync::Arc;
use std::time::Duration;

const CONNECTIONS: usize = 16;
const OBJECTS: usize = 27_000;
const NODES: [usize; 3] = [1, 10, 100];
const PODS: usize = 1_000;
/// After load: caches are given back and writes gathered until then.
const REST: Duration = Duration::from_secs(10);
const HOUR_SECONDS: f64 = 3600.0;

pub struct Plan {
    /// One list a side: names or ids.
    pub processes: Vec<Vec<String>>,
    /// How long the idle server is watched, each time.
    pub period: Duration,
    pub bytes: usize,
    /// Not with more objects, nodes or pods than that.
    pub most: usize,
    /// For each load that is put on it.
    pub timeout: Duration,
}

/// A side and what was learned of it.
struct Measured<'a> {
    names: &'a [String],
    plan: &'a Plan,
    figures: Vec<Figure>,
    said: &'a dyn Fn(String),
    side: &'a str,
}

/// One side after the other, once: each is looked at while it does nothing.
pub async fn run(sides: &[Side], plan: &Plan, said: &dyn Fn(String)) -> anyhow::Result<Pairs> {
    anyhow::ensure!(
        plan.processes.len() == sides.len() && plan.processes.iter().all(|some| !some.is_empty()),
        "each server needs its processes: --processes, and --processes-against for the second"
    );
    let mut pairs = Pairs::new(sides.len());
    for (number, side) in sides.iter().enumerate() {
        let endpoint = side.endpoint()?;
        let scratch = Scratch::create(server::client(&endpoint)).await?;
        let clients: Vec<_> = (0..CONNECTIONS)
            .map(|_| server::client(&endpoint))
            .collect();
        let most = NODES.into_iter().filter(|some| *some <= plan.most).max();
        let nodes = fake_nodes::node_names(&scratch, most.unwrap_or_default());
        let mut measured = Measured {
            names: &plan.processes[number],
            plan,
            figures: Vec::new(),
            said,
            side: &side.name,
        };
        let done = unless_interrupted(measured.all(&scratch, &clients, &nodes)).await;
        let removed = scratch.remove(&nodes).await;
        done?;
        removed?;
        for figure in measured.figures {
            pairs.add(number, figure);
        }
    }
    Ok(pairs)
}

impl Measured<'_> {
    async fn all(
        &mut self,
        scratch: &Scratch,
        clients: &[Client],
        nodes: &[String],
    ) -> anyhow::Result<()> {
        let idle = self.resident("resident, idle")?;
        self.rest("idle").await?;
        let mut renewals = Vec::new();
        let mut joined = 0;
        for count in NODES.into_iter().filter(|some| *some <= nodes.len()) {
            let more = &nodes[joined..count];
            let joining = fake_nodes::join(scratch, clients, more);
            renewals.push(self.loaded("nodes", joining).await?);
            joined = count;
            settle().await;
            self.rest(&format!("{count} nodes")).await?;
        }
        let with_nodes = self.resident(&format!("resident, {joined} nodes"))?;
        self.each("per node", idle, with_nodes, joined);
        let pods = PODS.min(self.plan.most);
        let making = make_pods(scratch, clients, nodes, pods);
        self.loaded("pods", making).await?;
        settle().await;
        let with_pods = self.resident(&format!("resident, {pods} pods more"))?;
        self.each("per pod", with_nodes, with_pods, pods);
        let objects = OBJECTS.min(self.plan.most);
        let making = configmaps::create(scratch, clients, objects, self.plan.bytes);
        let made = self.loaded("objects", making).await?;
        anyhow::ensure!(made.failed == 0, "{} creates failed", made.failed);
        settle().await;
        let loaded = self.resident(&format!("resident, {objects} objects more"))?;
        self.each("per object", with_pods, loaded, objects);
        let removing = scratch.remove_config_maps();
        self.loaded("objects deleted", removing).await?;
        settle().await;
        self.resident("resident, objects deleted").map(drop)
    }

    async fn loaded<T>(
        &self,
        what: &str,
        work: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        let done = within(self.plan.timeout, work).await;
        done.with_context(|| format!("{what}, {}", self.side))
    }

    fn resident(&mut self, what: &str) -> anyhow::Result<Usage> {
        let usage = process::usage(self.names)?;
        (self.said)(format!("{}: {what}: {} KB", self.side, usage.resident_kb));
        let kb = usage.resident_kb as f64;
        self.figures.push(Figure::new(what, "KB", kb));
        Ok(usage)
    }

    fn each(&mut self, what: &str, before: Usage, after: Usage, count: usize) {
        let more = after.resident_kb as f64 - before.resident_kb as f64;
        let each = more / count.max(1) as f64;
        let what = format!("resident, {what}");
        self.figures.push(Figure::new(what, "KB", each));
    }

    /// What is spent while only heartbeats happen.
    async fn rest(&mut self, what: &str) -> anyhow::Result<()> {
        let seconds = self.plan.period.as_secs();
        (self.said)(format!("{}: {what}, for {seconds} s", self.side));
        let before = process::usage(self.names)?;
        tokio::time::sleep(self.plan.period).await;
        let after = process::usage(self.names)?;
        self.figures
            .extend(spent(what, before, after, self.plan.period));
        Ok(())
    }
}

/// Of a period, as a share of a core and for an hour.
fn spent(what: &str, before: Usage, after: Usage, period: Duration) -> [Figure; 2] {
    let seconds = period.as_secs_f64();
    let processor = after.processor.saturating_sub(before.processor);
    let share = processor.as_secs_f64() / seconds * 100.0;
    let written = after.written_bytes.saturating_sub(before.written_bytes);
    let an_hour = written as f64 / 1024.0 / seconds * HOUR_SECONDS;
    [
        Figure::new(format!("processor, {what}"), "%", share),
        Figure::new(format!("written an hour, {what}"), "KB", an_hour),
    ]
}

async fn settle() {
    tokio::time::sleep(REST).await;
}

/// Pods that nobody runs, on nodes that are only objects.
async fn make_pods(
    scratch: &Scratch,
    clients: &[Client],
    nodes: &[String],
    count: usize,
) -> anyhow::Result<()> {
    scratch.ensure_account().await?;
    let namespace: Arc<str> = scratch.name.as_str().into();
    let (labels, nodes) = (scratch.labels(), Arc::<[String]>::from(nodes));
    let made = pool::run("pod create", clients, count, move |client, number| {
        let api: Api<Pod> = Api::namespaced(client, &namespace);
        let node = nodes.get(number % nodes.len().max(1)).cloned();
        let pod = Pod {
            metadata: ObjectMeta {
                name: Some(format!("p-{number}")),
                labels: Some(labels.clone()),
                ..ObjectMeta::default()
            },
            spec: Some(PodSpec {
                automount_service_account_token: Some(false),
                node_name: node,
                containers: vec![Container {
                    name: "idle".to_owned(),
                    image: Some("registry.example/idle:1".to_owned()),
                    ..Container::default()
                }],
                ..PodSpec::default()
            }),
            ..Pod::default()
        };
        async move { api.create(&PostParams::default(), &pod).await.map(drop) }
    });
    let failed = made.await?.failed;
    anyhow::ensure!(failed == 0, "{failed} pods could not be made");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Duration, Usage, spent};

    #[test]
    fn a_period_is_told_as_a_share_and_for_an_hour() {
        let usage = |milliseconds, written_bytes| Usage {
            resident_kb: 1,
            processor: Duration::from_millis(milliseconds),
            written_bytes,
        };
        let period = Duration::from_secs(60);
        let figures = spent("idle", usage(500, 1024), usage(800, 3072), period);
        let found = figures.map(|figure| (figure.what, figure.value));
        let expected = [("processor, idle", 0.5), ("written an hour, idle", 120.0)];
        for ((what, value), (name, right)) in found.into_iter().zip(expected) {
            assert_eq!(what, name);
            assert!((value - right).abs() < 1e-9, "{what}: {value}");
        }
    }
}
