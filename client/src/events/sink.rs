//! Writes events, one after the other, and gives up on what the server refuses.

use std::time::Duration;

use k8s_openapi::api::core::v1::Event;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::Request;
use kube::{Api, Resource};
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::sync::mpsc;

use super::correlate::{Correlator, Observed, Source, Write};
use crate::Client;

/// Tries for one event while the server cannot be reached, as upstream's.
const TRIES_MAX: u32 = 12;
/// Between tries; upstream waits ten seconds. The first are shorter: a restart takes about one.
const RETRY_MAX: Duration = Duration::from_secs(10);

pub(super) async fn run(client: Client, source: Source, mut queue: mpsc::Receiver<Observed>) {
    let mut correlator = Correlator::new(source);
    while let Some(observed) = queue.recv().await {
        if let Some(write) = correlator.correlate(observed) {
            deliver(&client, write).await;
        }
    }
}

async fn deliver(client: &Client, write: Write) {
    for attempt in 0..TRIES_MAX {
        let Err(error) = send(client, &write).await else {
            return;
        };
        if let kube::Error::Api(status) = &error
            && status.code < 500
            && status.code != 429
        {
            // The namespace may be gone or ending by now: nobody will look for this event.
            tracing::debug!(error = %error, "event refused");
            return;
        }
        if attempt + 1 == TRIES_MAX {
            tracing::warn!(error = %error, "event given up");
            return;
        }
        tokio::time::sleep(Duration::from_secs(1 << attempt.min(4)).min(RETRY_MAX)).await;
    }
}

async fn send(client: &Client, write: &Write) -> Result<(), kube::Error> {
    let (Write::Create(event) | Write::Count(event)) = write;
    let namespace = event.metadata.namespace.as_deref().unwrap_or("default");
    let api: Api<Event> = Api::namespaced(client.clone(), namespace);
    if matches!(write, Write::Count(_)) {
        let name = event.metadata.name.as_deref().unwrap_or_default();
        let patch = json!({
            "count": event.count,
            "lastTimestamp": event.last_timestamp,
            "message": event.message,
        });
        let params = PatchParams::default();
        match api.patch(name, &params, &Patch::Strategic(patch)).await {
            // The server keeps events for an hour; then the count goes on with a new one.
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            other => return other.map(drop),
        }
    }
    create(client, namespace, event).await
}

/// As `Api::create`, but for the answer: nobody reads it.
async fn create(client: &Client, namespace: &str, event: &Event) -> Result<(), kube::Error> {
    let text = serde_json::to_vec(event).map_err(kube::Error::SerdeError)?;
    let request = Request::new(Event::url_path(&(), Some(namespace)))
        .create(&PostParams::default(), text)
        .map_err(kube::Error::BuildRequest)?;
    client.request::<IgnoredAny>(request).await.map(drop)
}
