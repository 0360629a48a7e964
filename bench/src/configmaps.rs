//! Creating, reading and listing ConfigMaps, and how fast watchers hear of them.

use crate::pool;
use crate::scratch::Scratch;
use crate::stats::Report;
use crate::wire::{self, Template};
use anyhow::Context;
use coracle_client::Client;
use coracle_client::clock::Clock;
use futures::StreamExt;
use http::{Method, Request};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ListParams, ObjectMeta, PostParams, WatchEvent, WatchParams};
use kube::client::Body;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Events between the watchers and the one that counts them; a watcher waits when it is full.
const HEARD_MAX: usize = 1024;
/// How long a watcher may hear nothing before the rest counts as lost.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// The longest watch that every API server accepts without a setting.
const WATCH_SECONDS: u32 = 290;

pub fn name_of(number: usize) -> String {
    format!("c-{number}")
}

/// Of all of a namespace.
pub fn path_in(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

pub fn config_map(scratch: &Scratch, number: usize, bytes: usize) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name_of(number)),
            labels: Some(scratch.labels()),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([("value".to_owned(), "x".repeat(bytes))])),
        ..ConfigMap::default()
    }
}

pub async fn create(
    scratch: &Scratch,
    clients: &[Client],
    count: usize,
    bytes: usize,
) -> anyhow::Result<Report> {
    create_numbered(scratch, clients, 0..count, bytes).await
}

/// Those of these numbers.
pub async fn create_numbered(
    scratch: &Scratch,
    clients: &[Client],
    numbers: std::ops::Range<usize>,
    bytes: usize,
) -> anyhow::Result<Report> {
    let path: Arc<str> = path_in(&scratch.name).into();
    let template = Arc::new(Template::new(config_map(scratch, 0, bytes))?);
    let first = numbers.start;
    pool::run("create", clients, numbers.len(), move |client, number| {
        let (path, body) = (Arc::clone(&path), template.named(&name_of(first + number)));
        async move { wire::send(&client, Method::POST, &path, wire::JSON, body).await }
    })
    .await
}

/// The first `count`, whose answers may come in any order.
pub async fn delete(scratch: &Scratch, clients: &[Client], count: usize) -> anyhow::Result<()> {
    let path: Arc<str> = path_in(&scratch.name).into();
    let gone = pool::run("delete", clients, count, move |client, number| {
        let path = format!("{path}/{}", name_of(number));
        async move { wire::send(&client, Method::DELETE, &path, wire::JSON, Vec::new()).await }
    });
    let failed = gone.await?.failed;
    anyhow::ensure!(failed == 0, "{failed} ConfigMaps could not be deleted");
    Ok(())
}

/// Reads one object over and over.
pub async fn get(
    scratch: &Scratch,
    clients: &[Client],
    count: usize,
    bytes: usize,
) -> anyhow::Result<Report> {
    create(scratch, clients, 1, bytes).await?;
    let namespace: Arc<str> = scratch.name.as_str().into();
    pool::run("get", clients, count, move |client, _| {
        let api: Api<ConfigMap> = Api::namespaced(client, &namespace);
        async move { api.get(&name_of(0)).await.map(drop) }
    })
    .await
}

/// Lists `objects` of them whole, over and over. Answers are taken in and not decoded, so that the
/// server is measured and not this program.
pub async fn list(
    scratch: &Scratch,
    clients: &[Client],
    count: usize,
    bytes: usize,
    objects: usize,
) -> anyhow::Result<Report> {
    let made = create(scratch, clients, objects, bytes).await?;
    anyhow::ensure!(made.failed == 0, "{} creates failed", made.failed);
    let path: Arc<str> = path_in(&scratch.name).into();
    pool::run("list", clients, count, move |client, _| {
        let request = Request::get(&*path).body(Body::empty());
        async move {
            let answer = client
                .send(request.map_err(kube::Error::HttpError)?)
                .await?;
            wire::drain(answer).await
        }
    })
    .await
}

/// One watcher a connection; `count` objects are created one after another. A latency is from
/// the sending of a create to a watcher's event, so each create counts once for every watcher.
pub async fn watch(
    scratch: &Scratch,
    clients: &[Client],
    count: usize,
    bytes: usize,
) -> anyhow::Result<Report> {
    let clock = Clock::system();
    let (heard, mut events) = mpsc::channel(HEARD_MAX);
    let api: Api<ConfigMap> = Api::namespaced(scratch.client.clone(), &scratch.name);
    let from = api.list(&ListParams::default()).await?;
    let from = from
        .metadata
        .resource_version
        .context("a list without a version")?;
    let mut watchers = JoinSet::new();
    for client in clients {
        let api: Api<ConfigMap> = Api::namespaced(client.clone(), &scratch.name);
        watchers.spawn(follow(api, from.clone(), heard.clone()));
    }
    drop(heard);
    let begun = clock.monotonic();
    let creator = async {
        let mut sent = HashMap::new();
        for number in 0..count {
            sent.insert(name_of(number), clock.monotonic());
            let object = config_map(scratch, number, bytes);
            api.create(&PostParams::default(), &object).await?;
        }
        Ok::<_, kube::Error>(sent)
    };
    let expected = count * clients.len();
    let counter = async {
        let mut seen: Vec<(String, Instant)> = Vec::new();
        while seen.len() < expected {
            match tokio::time::timeout(SILENCE_MAX, events.recv()).await {
                // Others add to a namespace too: its root certificate, for one.
                Ok(Some((name, at))) if name.starts_with("c-") => seen.push((name, at)),
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => break,
            }
        }
        Ok(seen)
    };
    let (sent, seen) = tokio::try_join!(creator, counter).context("cannot create")?;
    let elapsed = clock.monotonic() - begun;
    let latencies: Vec<_> = seen
        .into_iter()
        .filter_map(|(name, at)| Some(at - *sent.get(&name)?))
        .collect();
    let lost = expected - latencies.len();
    Ok(Report::new("watch", latencies, lost, elapsed))
}

/// Ends with its stream; what it did not hear counts as lost.
async fn follow(api: Api<ConfigMap>, from: String, heard: mpsc::Sender<(String, Instant)>) {
    let clock = Clock::system();
    let params = WatchParams::default().timeout(WATCH_SECONDS);
    let Ok(stream) = api.watch(&params, &from).await else {
        return;
    };
    let mut stream = std::pin::pin!(stream);
    while let Some(Ok(event)) = stream.next().await {
        let WatchEvent::Added(object) = event else {
            continue;
        };
        let name = object.metadata.name.unwrap_or_default();
        if heard.send((name, clock.monotonic())).await.is_err() {
            return;
        }
    }
}
