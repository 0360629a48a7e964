//! Makes the API services of what this server serves itself, once at each start.
//!
//! As upstream: one that is missing is made, one that still bears the label of being looked after
//! is brought up to date, and one of a group version that is served no more goes. One that was
//! deleted meanwhile stays away until the next start.

use crate::bootstrap::{ReconcileError, refused, send};
use crate::server::InProcess;
use coracle_api::json;
use coracle_api::kinds::api_service::{GROUP, MANAGED, ON_START, local};
use coracle_api::kinds::metrics;
use coracle_api::object::Object;
use futures::StreamExt;
use http::{Method, StatusCode};
use serde_json::Value;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// After a failure.
const RETRY: Duration = Duration::from_secs(5);
/// Requests under way at a time: they share flushes of the store.
const AT_ONCE: usize = 32;

/// One write that is due.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Create(Object),
    Update(Object),
    Delete(Object),
}

fn plan(existing: &[Object], left_out: Option<&str>) -> Vec<Step> {
    let own = || local().filter(|one| left_out != Some(one.str(&["spec", "group"])));
    let mut steps = Vec::new();
    for wanted in own() {
        match existing.iter().find(|one| one.name() == wanted.name()) {
            None => steps.push(Step::Create(wanted)),
            Some(current) => steps.extend(updated(current, &wanted).map(Step::Update)),
        }
    }
    let is_gone = |one: &&Object| {
        one.label(MANAGED) == Some(ON_START)
            && !is_handed_over(one)
            && !own().any(|wanted| wanted.name() == one.name())
    };
    steps.extend(existing.iter().filter(is_gone).cloned().map(Step::Delete));
    steps
}

/// Metrics may be left to another server. Its manifest, applied over what is here, keeps the label.
fn is_handed_over(one: &Object) -> bool {
    one.str(&["spec", "group"]) == metrics::GROUP
        && one
            .get(&["spec", "service"])
            .is_some_and(|service| !service.is_null())
}

fn updated(current: &Object, wanted: &Object) -> Option<Object> {
    let [is, ought] = [current, wanted].map(|one| one.get(&["spec"]).unwrap_or(&json::NULL));
    let is_kept = current.label(MANAGED) != Some(ON_START) || is_handed_over(current);
    if is_kept || json::same(is, ought) {
        return None;
    }
    let mut updated = current.clone();
    updated.set(&["spec"], ought.clone());
    Some(updated)
}

/// Tries until it is done or until `stop`. A group that is left out has none. `api` must act as somebody in `system:masters`.
pub async fn register(api: InProcess, left_out: Option<&str>, stop: CancellationToken) {
    while let Err(error) = reconcile(&api, left_out).await {
        tracing::warn!(%error, "the API services of this server are not all there");
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(RETRY) => {}
        }
    }
}

async fn reconcile(api: &InProcess, left_out: Option<&str>) -> Result<(), ReconcileError> {
    let path = format!("/apis/{GROUP}/v1/apiservices");
    let (status, answer) = send(api, Method::GET, &path, None).await?;
    if status != StatusCode::OK {
        return Err(refused(Method::GET, &path, status, &answer));
    }
    let list: Value = serde_json::from_slice(&answer).unwrap_or_default();
    let items = json::list(&list, "items").iter().cloned();
    let existing: Vec<Object> = items.filter_map(Object::from_value).collect();
    let mut answers = futures::stream::iter(plan(&existing, left_out))
        .map(|step| write(api, &path, step))
        .buffer_unordered(AT_ONCE);
    while let Some(answer) = answers.next().await {
        answer?;
    }
    Ok(())
}

async fn write(api: &InProcess, collection: &str, step: Step) -> Result<(), ReconcileError> {
    let own = |object: &Object| format!("{collection}/{}", object.name());
    let (method, path, body) = match &step {
        Step::Create(object) => (Method::POST, collection.to_owned(), Some(object)),
        Step::Update(object) => (Method::PUT, own(object), Some(object)),
        Step::Delete(object) => (Method::DELETE, own(object), None),
    };
    let (status, answer) = send(api, method.clone(), &path, body).await?;
    // Somebody else was faster.
    if status.is_success() || matches!(status, StatusCode::CONFLICT | StatusCode::NOT_FOUND) {
        return Ok(());
    }
    Err(refused(method, &path, status, &answer))
}

#[cfg(test)]
mod tests;
