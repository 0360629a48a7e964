//! `coracle up --demo`: three pods, a tour of them, and nothing left behind at the end.

use crate::cli::CommonArgs;
use crate::control_plane::told;
use crate::settings::{AgentSettings, BadSetting, ServerSettings};
use crate::{control_plane, settled, show, up};
use anyhow::{Context, bail};
use coracle_client::Client;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use seen::Seen;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub mod image;
mod seen; // What it waits for.
pub mod visit;
mod waiting; // Why pods do not run yet.

const REPLICAS: i32 = 3;
const NAME: &str = "demo";
/// Long enough for a slow board to unpack the image from a slow card.
const STEP_MAX: Duration = Duration::from_secs(180);
/// Grace of the demo's pods plus what it takes to unmount them.
const TAKE_DOWN_MAX: Duration = Duration::from_secs(60);
/// Who waits longer than pods take is told why.
const TELL_AFTER: Duration = Duration::from_secs(3);

/// Where the demo keeps its data unless told: a new directory, removed at the end. A directory
/// that was named must be empty, since the demo removes what it finds there at the end.
pub fn scratch(common: &mut CommonArgs) -> Result<Option<PathBuf>, BadSetting> {
    let path = match &common.data_dir {
        Some(text) => {
            let path = PathBuf::from(text);
            let is_empty = std::fs::read_dir(&path).map_or(true, |mut dir| dir.next().is_none());
            if !is_empty {
                let expected = "must be empty or absent: the demo removes it at the end";
                return Err(BadSetting::new("data-dir", text, expected));
            }
            path
        }
        None => PathBuf::from(format!("/var/tmp/coracle-demo-{}", std::process::id())),
    };
    common.data_dir = Some(path.display().to_string());
    Ok(Some(path))
}

pub fn remove(directory: &Path) -> anyhow::Result<()> {
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("{} was not removed", directory.display()))
        }
        _ => Ok(()),
    }
}

pub async fn run(server: &ServerSettings, agent: &AgentSettings) -> anyhow::Result<()> {
    image::import(&agent.data_dir.join("agent/images")).context("cannot make the demo image")?;
    let mut cluster = up::start(server, agent).await?;
    let client = control_plane::admin(&cluster.plane.server);
    let seen = Seen::new(&client);
    // One for the whole of it: a signal between two of them would be heard by none.
    let mut signalled = std::pin::pin!(control_plane::until_signalled());
    // True when the tour came to its end, and the cluster is to stay.
    let toured = tokio::select! {
        toured = tour(&cluster, &client, &seen) => toured.map(|()| true),
        signalled = &mut signalled => signalled.map(|()| false),
    };
    let result = match toured {
        Ok(true) => {
            settled::soon();
            tokio::select! {
                ended = cluster.agent_ended() => Err(ended),
                signalled = signalled => signalled,
            }
        }
        Ok(false) => Ok(()),
        Err(error) => Err(error),
    };
    show::line("\nTaking the demo down ...");
    if let Err(error) = take_down(&client, &seen).await {
        tracing::warn!("{error:#}");
    }
    cluster.drain().await;
    coracle_agent::wipe(&agent.data_dir.join("agent"))
        .await
        .context("not all was taken away")?;
    show::line("Nothing is left behind.");
    result
}

#[allow(clippy::disallowed_methods)] // Shows people how long each step took.
async fn tour(cluster: &up::Cluster, client: &Client, seen: &Seen) -> anyhow::Result<()> {
    let begun = Instant::now();
    let step = |text: &str| {
        show::line(&format!("{:>6.2} s  {text}", begun.elapsed().as_secs_f64()));
    };
    step(&format!(
        "control plane is up at {}",
        cluster.plane.server.url()
    ));
    let name = &cluster.node_name;
    if !seen.until(STEP_MAX, |seen| seen.is_ready(name)).await {
        bail!("the node {name} did not become Ready within {STEP_MAX:?}");
    }
    step(&format!("node {} is Ready", cluster.node_name));
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    deployments
        .create(&PostParams::default(), &deployment()?)
        .await
        .context("no Deployment")?;
    step(&format!("Deployment {NAME} asks for {REPLICAS} pods"));
    let pods = wait_pods(cluster, seen, &step);
    if tokio::time::timeout(STEP_MAX, pods).await.is_err() {
        bail!("the pods did not become ready within {STEP_MAX:?}");
    }
    show_around(cluster, client).await
}

async fn wait_pods(cluster: &up::Cluster, seen: &Seen, step: &impl Fn(&str)) {
    let mut ready_before = 0;
    let mut told_before = None;
    let mut is_late = false;
    let mut patience = std::pin::pin!(tokio::time::sleep(TELL_AFTER));
    loop {
        let ready = seen.ready_replicas(NAME);
        if ready != ready_before {
            step(&format!("{ready} of {REPLICAS} pods are ready"));
            ready_before = ready;
        }
        if ready >= REPLICAS {
            return;
        }
        if is_late {
            let why = hindrance(seen, &cluster.node_name);
            if why != told_before {
                why.iter().for_each(|why| step(&format!("waiting: {why}")));
                told_before = why;
            }
        }
        tokio::select! {
            () = seen.changed() => {}
            () = &mut patience, if !is_late => is_late = true,
        }
    }
}

fn hindrance(seen: &Seen, node_name: &str) -> Option<String> {
    let node = seen.node(node_name);
    let pressure = node.as_deref().and_then(waiting::pressure);
    pressure.or_else(|| waiting::why(&seen.pods.list()))
}

async fn show_around(cluster: &up::Cluster, client: &Client) -> anyhow::Result<()> {
    show::line("");
    show::line(&show::table(
        &visit::table(client, "/api/v1/nodes").await?,
        false,
    ));
    show::line("");
    show::line(&show::table(
        &visit::table(client, "/api/v1/namespaces/default/pods").await?,
        true,
    ));
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let listed = pods.list(&own()).await.map_err(told)?;
    let address = listed
        .iter()
        .find_map(|pod| pod.status.as_ref()?.pod_ip.clone())
        .context("no demo pod has an address")?;
    let answer = visit::page(&address, image::PORT).await?;
    show::line(&format!(
        "\nGET http://{address}:{}/\n  {}",
        image::PORT,
        answer.trim_end()
    ));
    show::line(&format!("\nkubeconfig: {}", cluster.kubeconfig.display()));
    let kubectl = format!(
        "kubectl --kubeconfig {} get pods",
        cluster.kubeconfig.display()
    );
    show::line(&format!("try:        {kubectl}"));
    show::line("stop:       Ctrl-C, which takes everything down and leaves nothing behind");
    Ok(())
}

async fn take_down(client: &Client, seen: &Seen) -> anyhow::Result<()> {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    match deployments.delete(NAME, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        result => drop(result.map_err(told)?),
    }
    match tokio::time::timeout(TAKE_DOWN_MAX, no_pods(client, seen)).await {
        Ok(gone) => gone,
        Err(_) => bail!("the pods were not gone within {TAKE_DOWN_MAX:?}"),
    }
}

/// None of the demo's own: what people made beside it ends with the node.
async fn no_pods(client: &Client, seen: &Seen) -> anyhow::Result<()> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    loop {
        // What was made just now may not be seen yet: the server has the last word.
        if !seen.pods.list().iter().any(|pod| is_own(pod)) {
            let left = pods.list(&own()).await.map_err(told)?;
            if left.items.is_empty() {
                return Ok(());
            }
        }
        seen.changed().await;
    }
}

fn own() -> ListParams {
    ListParams::default().labels(&format!("app={NAME}"))
}

fn is_own(pod: &Pod) -> bool {
    let labels = pod.metadata.labels.as_ref();
    labels
        .and_then(|labels| labels.get("app"))
        .is_some_and(|app| app == NAME)
}

fn deployment() -> anyhow::Result<Deployment> {
    Ok(serde_json::from_value(json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": NAME, "labels": { "app": NAME } },
        "spec": {
            "replicas": REPLICAS,
            "selector": { "matchLabels": { "app": NAME } },
            "template": {
                "metadata": { "labels": { "app": NAME } },
                "spec": {
                    "terminationGracePeriodSeconds": 5,
                    "containers": [{
                        "name": "page",
                        "image": image::REFERENCE,
                        "imagePullPolicy": "Never",
                        "ports": [{ "containerPort": image::PORT }],
                        "readinessProbe": {
                            "httpGet": { "path": "/", "port": image::PORT },
                            "periodSeconds": 1,
                        },
                    }],
                },
            },
        },
    }))?)
}
