//! Keeps the other servers in step with their APIServices, and says in these whether they answer.
//!
//! Each is looked at when what its APIService asks for changes, every half a minute, and every few
//! seconds while it does not answer. What it tells of its resources and of where its OpenAPI document
//! is, is kept for discovery. Writes nothing else.

use super::check::{self, Available};
use super::{Aggregation, Remote, SendError, aggregator, documents, headers};
use crate::bootstrap::send;
use crate::server::InProcess;
use crate::tunnel::Body;
use crate::view::{decode, partition};
use coracle_api::kinds::api_service::GROUP;
use coracle_api::object::Object;
use coracle_api::timestamp::format_time;
use coracle_store::{Snapshot, Store};
use futures::StreamExt;
use futures::future::select_ok;
use http::header::ACCEPT;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use jiff::Timestamp;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const PLURAL: &str = "apiservices";
/// As upstream.
const CHECK_PERIOD: Duration = Duration::from_secs(30);
/// While one of them does not answer.
const RETRY: Duration = Duration::from_secs(2);
/// Between two rounds, whatever changes meanwhile.
const PAUSE: Duration = Duration::from_millis(500);
/// Servers that are asked at a time.
const CHECKS_AT_ONCE: usize = 32;
/// As upstream, which lets one answer do: a Service may have endpoints that do not answer.
const ATTEMPTS: usize = 5;
/// As upstream: all that a server may take to tell its resources.
const DISCOVERY_MAX: Duration = Duration::from_secs(5);
/// Of that, for the first try.
const FIRST_MAX: Duration = Duration::from_secs(1);
/// Where its OpenAPI document is, a server is asked now and then, as that is known by a hash.
const SCHEMA_PERIOD: Duration = Duration::from_secs(60);
/// Hundreds of resources are some hundred kilobytes.
const DISCOVERY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Reads which there are: to be done before anything is served.
pub fn load(store: &Store, aggregation: &Aggregation) {
    let snapshot = store.snapshot(&partition(GROUP, PLURAL));
    drop(aggregation.refresh(&snapshot));
}

/// Until it is dropped. `api` must act as somebody in `system:masters`.
pub async fn run(
    aggregation: Arc<Aggregation>,
    store: Store,
    api: InProcess,
    clock: impl Fn() -> Timestamp + Send,
) {
    let partition = partition(GROUP, PLURAL);
    loop {
        let snapshot = store.snapshot(&partition);
        let found = aggregation.refresh(&snapshot);
        let watch = store.watch(&partition, snapshot.revision());
        let now = clock();
        let due = found.iter().filter(|(remote, _)| left(remote).is_zero());
        futures::stream::iter(due)
            .for_each_concurrent(CHECKS_AT_ONCE, |(remote, object)| {
                looked_at(&aggregation, &api, remote, object, now)
            })
            .await;
        tokio::time::sleep(PAUSE).await;
        let Ok(mut watch) = watch else { continue };
        match found.iter().map(|(remote, _)| left(remote)).min() {
            Some(left) => drop(tokio::time::timeout(left, watch.ready()).await),
            None => watch.ready().await,
        }
    }
}

/// The time until a server is to be asked again.
fn left(remote: &Remote) -> Duration {
    let period = if remote.is_available {
        CHECK_PERIOD
    } else {
        RETRY
    };
    let checked = remote.told().checked;
    checked.map_or(Duration::ZERO, |at| period.saturating_sub(at.elapsed()))
}

async fn looked_at(
    aggregation: &Aggregation,
    api: &InProcess,
    remote: &Remote,
    object: &Object,
    now: Timestamp,
) {
    let available = aggregation.check(remote, now).await;
    let is_said = said(api, object, &available, now).await;
    remote.tell(|told| told.checked = is_said.then(Instant::now));
    let asked = remote.told().schema_asked;
    if available.is_true && asked.is_none_or(|at| at.elapsed() >= SCHEMA_PERIOD) {
        let found = tokio::time::timeout(DISCOVERY_MAX, aggregation.schema(remote, now));
        let schema = found
            .await
            .unwrap_or_else(|_| Err("it took too long".to_owned()));
        let schema = schema.inspect_err(|why| {
            tracing::debug!(why, object = remote.object, "an API server tells no schema");
        });
        remote.tell(|told| {
            told.schema_asked = Some(Instant::now());
            told.schema = schema.ok();
        });
    }
}

/// Says it in the object, where that does not say it yet. False when somebody else changed that
/// meanwhile: then it is to be looked at anew.
async fn said(api: &InProcess, object: &Object, available: &Available, now: Timestamp) -> bool {
    let Some(changed) = available.put(object, &format_time(now)) else {
        return true;
    };
    let path = format!("/apis/{GROUP}/v1/{PLURAL}/{}/status", object.name());
    match send(api, Method::PUT, &path, Some(&changed)).await {
        Ok((status, _)) if status == StatusCode::CONFLICT => return false,
        Ok((status, _)) if status.is_success() => {}
        Ok((status, _)) => tracing::warn!(%status, path, "the status was not written"),
        Err(error) => tracing::warn!(%error, path, "the status was not written"),
    }
    true
}

impl Aggregation {
    /// The other servers that there are, with their objects.
    fn refresh(&self, snapshot: &Snapshot) -> Vec<(Arc<Remote>, Object)> {
        let before = self.all();
        let objects = snapshot
            .iter()
            .filter_map(|(_, entry)| decode(&entry.value));
        let mut found: Vec<(Arc<Remote>, Object)> = objects
            .filter_map(|object| {
                let mut known = before.iter();
                let known = known.find(|known| known.object == object.name());
                let remote = Remote::of(&object, known.map(AsRef::as_ref))?;
                Some((Arc::new(remote), object))
            })
            .collect();
        found.sort_by_key(|(remote, _)| {
            let first = std::cmp::Reverse((remote.group_priority, remote.version_priority));
            (first, remote.group.clone(), remote.version.clone())
        });
        self.put(found.iter().map(|(remote, _)| Arc::clone(remote)).collect());
        found
    }

    pub(super) async fn check(&self, remote: &Remote, now: Timestamp) -> Available {
        if let Err(available) = check::of_service(self.view.as_ref(), remote) {
            return available;
        }
        let path = format!("/apis/{}", remote.group_version());
        let url = format!("https://{}{path}", remote.authority());
        let attempt = || Box::pin(self.ask(remote, &path, now));
        let discovered = async {
            // Nearly always the first will do. One that hangs must leave time for the others.
            match tokio::time::timeout(FIRST_MAX, attempt()).await {
                Ok(Ok(list)) => Ok(list),
                Ok(Err(_)) | Err(_) => {
                    let others = select_ok((1..ATTEMPTS).map(|_| attempt()));
                    others.await.map(|(list, _)| list)
                }
            }
        };
        match tokio::time::timeout(DISCOVERY_MAX, discovered).await {
            Ok(Ok(list)) => {
                if list["resources"].is_array() {
                    remote.tell(|told| told.resources = Some(list));
                }
                Available::passed()
            }
            Ok(Err(why)) => {
                let why = format!("failing or missing response from {url}: {why}");
                Available::undiscovered(why)
            }
            Err(_) => Available::undiscovered(format!("timed out waiting for {url}")),
        }
    }

    /// Where the server has its OpenAPI document.
    pub(super) async fn schema(&self, remote: &Remote, now: Timestamp) -> Result<String, String> {
        let index = self.ask(remote, "/openapi/v3", now).await?;
        let found = documents::schema_in(&index, &remote.group_version());
        found.ok_or_else(|| "its index does not have it".to_owned())
    }

    /// One document, as the other server tells it to this one; null for what is no JSON.
    async fn ask(&self, remote: &Remote, path: &str, now: Timestamp) -> Result<Value, String> {
        let nothing: Body = crate::respond::full("");
        let mut request = Request::get(path)
            .header(ACCEPT, "application/json")
            .body(nothing)
            .map_err(|error| error.to_string())?;
        headers::put_user(request.headers_mut(), &aggregator());
        let url = format!("https://{}{path}", remote.authority());
        let answer = self.send(remote, request, now).await;
        let answer = answer.map_err(|error| match error {
            SendError::Unresolved(why) => why,
            SendError::Broken(why) => format!("Get {url:?}: {why}"),
        })?;
        let status = answer.status();
        if !status.is_success() {
            return Err(format!("bad status from {url}: {}", status.as_u16()));
        }
        let body = Limited::new(answer.into_body(), DISCOVERY_BYTES_MAX).collect();
        let body = body.await.map_err(|error| error.to_string())?.to_bytes();
        Ok(serde_json::from_slice(&body).unwrap_or_default())
    }
}
