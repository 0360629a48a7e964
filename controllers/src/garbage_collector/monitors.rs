//! One watch for each resource of the server, of metadata alone, that feeds the graph.

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use coracle_client::informer::paced;
use futures::StreamExt;
use kube::runtime::watcher::{self, Event};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::Collector;
use super::graph::{Kind, Uid};
use crate::discovery::{Discovered, Meta, Resource};

/// The first wait after a failure, doubled with each one in a row.
const BACKOFF_MIN: Duration = Duration::from_millis(250);
const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// Objects of one page of a list: bounds the memory of a list of any size.
const PAGE_SIZE: u32 = 500;
/// Upstream's patience with resources that cannot be listed at start.
const SYNC_TIMEOUT: Duration = Duration::from_secs(30);

/// The watches under way; dropping this ends them.
#[derive(Default)]
pub(super) struct Monitors {
    running: HashMap<Resource, Monitor>,
}

struct Monitor {
    task: JoinHandle<()>,
    synced: watch::Receiver<bool>,
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Events are many and own nothing; the rest can be followed and deleted, or is of no use.
fn is_collectable(resource: &Resource) -> bool {
    let is_events = resource.api.plural == "events"
        && matches!(resource.api.group.as_str(), "" | "events.k8s.io");
    let mut verbs = ["delete", "list", "watch"].iter();
    !is_events && verbs.all(|verb| resource.supports(verb))
}

impl Monitors {
    /// Follows what the server serves now. What a failed discovery hides goes on.
    pub(super) fn follow(&mut self, collector: &Arc<Collector>, discovered: &Discovered) {
        let wanted = discovered.resources.iter();
        let wanted: HashSet<_> = wanted.filter(|one| is_collectable(one)).collect();
        let failed = &discovered.failures;
        let ended = self.running.extract_if(|resource, _| {
            !wanted.contains(resource) && !failed.contains_key(&resource.api.api_version)
        });
        for (Resource { api, .. }, _) in ended {
            let is_same =
                |other: &&Resource| other.api.group == api.group && other.api.plural == api.plural;
            // In another version they are known by the same uids.
            if !wanted.iter().any(is_same) {
                collector.change(|graph| {
                    let kind = graph.kind(&api.api_version, &api.kind);
                    graph.forget(&kind);
                });
            }
        }
        for resource in wanted {
            if self.running.contains_key(resource) {
                continue;
            }
            let (sender, synced) = watch::channel(false);
            let task = tokio::spawn(run(collector.clone(), resource.clone(), sender));
            self.running
                .insert(resource.clone(), Monitor { task, synced });
        }
    }

    /// Waits for a first list of everything: who acts on a part of the graph deletes too early.
    pub(super) async fn synced(&self) {
        let all = async {
            for monitor in self.running.values() {
                let mut synced = monitor.synced.clone();
                let _ = synced.wait_for(|synced| *synced).await; // An error: it has ended.
            }
        };
        if tokio::time::timeout(SYNC_TIMEOUT, all).await.is_err() {
            let late = self.running.iter();
            let late = late.filter(|(_, monitor)| !*monitor.synced.borrow());
            let late: Vec<_> = late.map(|(resource, _)| resource.text()).collect();
            tracing::warn!(resources = ?late, "collecting garbage without some resources");
        }
    }
}

async fn run(collector: Arc<Collector>, resource: Resource, synced: watch::Sender<bool>) {
    let client = paced(collector.live.client().clone());
    let objects = kube::Api::<Meta>::all_with(client, &resource.api);
    let config = watcher::Config::default().page_size(PAGE_SIZE);
    let kind = collector.change(|graph| graph.kind(&resource.api.api_version, &resource.api.kind));
    let mut feed = Feed {
        collector,
        kind,
        changes_discovery: changes_discovery(&resource),
        listed: HashSet::new(),
        synced,
    };
    let mut failures = 0;
    loop {
        let mut events = pin!(watcher::watcher(objects.clone(), config.clone()));
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    if !matches!(event, Event::Init) {
                        failures = 0;
                    }
                    feed.apply(event);
                }
                Err(error) => {
                    tracing::debug!(resource = %resource.text(), %error, "watch interrupted");
                    tokio::time::sleep(backoff(failures)).await;
                    failures = failures.saturating_add(1);
                    if is_expired(&error) {
                        break;
                    }
                }
            }
        }
    }
}

fn backoff(failures: u32) -> Duration {
    let factor = 1_u32.checked_shl(failures).unwrap_or(u32::MAX);
    BACKOFF_MIN.saturating_mul(factor).min(BACKOFF_MAX)
}

/// The revision to resume from is gone, and asking again for it would fail forever.
fn is_expired(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status.code == 410,
        _ => false,
    }
}

/// Objects of these add resources to the server, or take them away.
fn changes_discovery(resource: &Resource) -> bool {
    matches!(
        (resource.api.group.as_str(), resource.api.plural.as_str()),
        ("apiextensions.k8s.io", "customresourcedefinitions")
            | ("apiregistration.k8s.io", "apiservices")
    )
}

struct Feed {
    collector: Arc<Collector>,
    kind: Arc<Kind>,
    changes_discovery: bool,
    /// What the list under way has shown so far.
    listed: HashSet<Uid>,
    synced: watch::Sender<bool>,
}

impl Feed {
    fn apply(&mut self, event: Event<Meta>) {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(object) => {
                if let Some(uid) = &object.metadata.uid {
                    self.listed.insert(uid.as_str().into());
                }
                self.upsert(&object);
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                let kind = self.kind.clone();
                self.collector
                    .change(|graph| graph.retain_listed(&kind, &listed));
                self.synced.send_replace(true);
            }
            Event::Apply(object) => {
                self.upsert(&object);
                self.discover();
            }
            Event::Delete(object) => {
                if let Some(uid) = &object.metadata.uid {
                    let uid = Uid::from(uid.as_str());
                    self.collector.change(|graph| graph.delete(&uid));
                }
                self.discover();
            }
        }
    }

    fn upsert(&self, object: &Meta) {
        self.collector.change(|graph| {
            if let Some(seen) = graph.seen(&self.kind, &object.metadata) {
                graph.apply(seen);
            }
        });
    }

    fn discover(&self) {
        if self.changes_discovery {
            self.collector.discover_soon();
        }
    }
}
