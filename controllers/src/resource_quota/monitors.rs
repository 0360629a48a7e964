//! One watch for each kind that some quota counts, of metadata alone, for what goes away.
//!
//! Keeps nothing but a revision: after an outage everything is counted anew.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use coracle_client::informer::paced;
use futures::StreamExt;
use kube::api::{Api, ListParams, WatchParams};
use kube::core::{DynamicObject, WatchEvent};
use tokio::task::JoinHandle;

use super::{Controller, Kind};
use crate::discovery::Resource;
use crate::refusal;

/// The first wait after a failure, doubled with each one in a row.
const BACKOFF_MIN: Duration = Duration::from_millis(250);
const BACKOFF_MAX: Duration = Duration::from_secs(30);

/// The watches under way; dropping this ends them.
#[derive(Default)]
pub(super) struct Monitors {
    running: BTreeMap<Kind, (Resource, Monitor)>,
}

struct Monitor(JoinHandle<()>);

impl Drop for Monitor {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Monitors {
    pub(super) fn follow(
        &mut self,
        controller: &Arc<Controller>,
        wanted: BTreeMap<Kind, Resource>,
    ) {
        self.running
            .retain(|kind, (resource, _)| wanted.get(kind) == Some(resource));
        for (kind, resource) in wanted {
            self.running.entry(kind.clone()).or_insert_with(|| {
                let watched = run(Arc::clone(controller), kind, resource.clone());
                (resource, Monitor(tokio::spawn(watched)))
            });
        }
    }
}

async fn run(controller: Arc<Controller>, kind: Kind, resource: Resource) {
    let client = paced(controller.live.client().clone());
    let objects = Api::<DynamicObject>::all_with(client, &resource.api);
    let mut failures = 0;
    loop {
        match watch(&controller, &kind, &objects, &mut failures).await {
            Ok(()) => {}
            Err(error) if refusal::is_not_found(&error) => {
                // The kind is gone, or has another version now.
                controller.kinds.forget(&kind).await;
                controller.recounted.notify_one();
                return std::future::pending().await;
            }
            Err(error) => {
                tracing::debug!(resource = %resource.text(), %error, "watch interrupted");
                let factor = 1_u32.checked_shl(failures).unwrap_or(u32::MAX);
                let wait = BACKOFF_MIN.saturating_mul(factor).min(BACKOFF_MAX);
                tokio::time::sleep(wait).await;
                failures = failures.saturating_add(1);
            }
        }
    }
}

/// Until the revision to go on from is lost.
async fn watch(
    controller: &Controller,
    kind: &Kind,
    objects: &Api<DynamicObject>,
    failures: &mut u32,
) -> Result<(), kube::Error> {
    let newest = ListParams::default().limit(1);
    let newest = objects.list_metadata(&newest).await?;
    let mut revision = newest.metadata.resource_version.unwrap_or_default();
    // What went before the watch began.
    controller.replenish_all(kind);
    loop {
        let params = WatchParams::default();
        let mut events = pin!(objects.watch_metadata(&params, &revision).await?);
        while let Some(event) = events.next().await {
            *failures = 0;
            let (object, frees) = match event? {
                WatchEvent::Deleted(object) => (object, true),
                // What an update gives back is not to be told without what was there before.
                WatchEvent::Modified(object) => (object, matters_when_changed(kind)),
                WatchEvent::Added(object) => (object, false),
                WatchEvent::Bookmark(mark) => {
                    revision = mark.metadata.resource_version;
                    continue;
                }
                WatchEvent::Error(status) if status.code == 410 => return Ok(()),
                WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
            };
            if frees {
                let namespace = object.metadata.namespace.as_deref();
                controller.replenish(kind, namespace.unwrap_or_default());
            }
            revision = object.metadata.resource_version.unwrap_or(revision);
        }
    }
}

/// Of other kinds only the number counts.
fn matters_when_changed(kind: &Kind) -> bool {
    matches!(
        (kind.0.as_str(), kind.1.as_str()),
        ("", "services" | "persistentvolumeclaims") | ("resource.k8s.io", "resourceclaims")
    )
}
