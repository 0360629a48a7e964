//! Brings the flow schemas and priority levels that every server has in line, at each start and
//! every minute after.
//!
//! As upstream: one that is missing is made anew; the spec of a mandatory one is always upstream's;
//! a suggested one is kept up to date until its operator changes it or annotates it
//! `apf.kubernetes.io/autoupdate-spec: "false"`; what an older server left behind goes.

use crate::bootstrap::{ReconcileError, refused, send};
use crate::server::InProcess;
use coracle_api::json;
use coracle_api::kinds::flow_control::{AUTO_UPDATE, Bootstrap, GROUP, bootstrap};
use coracle_api::object::Object;
use futures::StreamExt;
use http::{Method, StatusCode};
use serde_json::Value;
use std::time::Duration;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

/// Upstream's period.
const EVERY: Duration = Duration::from_secs(60);
/// Requests under way at a time: all of a first start, which then share a flush of the store.
const AT_ONCE: usize = 32;
const PLURALS: [&str; 2] = ["prioritylevelconfigurations", "flowschemas"];

/// One write that is due.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Create(Object),
    Update(Object),
    Delete(Object),
}

/// What is there and what ought to be, as the writes from one to the other.
pub fn plan(existing: &[Object]) -> Vec<Step> {
    let same = |a: &Object, b: &Object| a.kind() == b.kind() && a.name() == b.name();
    let mut steps = Vec::new();
    for wanted in bootstrap() {
        match existing.iter().find(|one| same(one, &wanted.object)) {
            None => steps.push(Step::Create(wanted.object.clone())),
            Some(current) => steps.extend(revised(current, wanted).map(Step::Update)),
        }
    }
    let left_behind = existing.iter().filter(|one| {
        let is_ours = bootstrap().iter().any(|wanted| same(&wanted.object, one));
        !is_ours && auto_update(one) == Some(true)
    });
    steps.extend(left_behind.cloned().map(Step::Delete));
    steps
}

/// The object as it ought to be, when it is not so already.
fn revised(current: &Object, wanted: &Bootstrap) -> Option<Object> {
    let annotated = auto_update(current);
    // Without a say of the operator: their change of the spec is one.
    let follows = wanted.is_mandatory || annotated.unwrap_or(current.generation() == 1);
    let mut revised = current.clone();
    if follows && !same_spec(current, &wanted.object) {
        let spec = wanted.object.get(&["spec"]).cloned().unwrap_or_default();
        revised.set(&["spec"], spec);
    }
    if annotated != Some(follows) {
        let value = follows.to_string().into();
        revised.set(&["metadata", "annotations", AUTO_UPDATE], value);
    }
    (revised != *current).then_some(revised)
}

/// What the exempt level lends is its operator's to say.
fn same_spec(current: &Object, wanted: &Object) -> bool {
    let spec = |object: &Object| object.get(&["spec"]).cloned().unwrap_or_default();
    let (current, mut wanted) = (spec(current), spec(wanted));
    if json::has(&wanted, "exempt") && json::has(&current, "exempt") {
        wanted["exempt"] = json::get(&current, "exempt").clone();
    }
    json::same(&current, &wanted)
}

/// What the annotation says, in any of the forms that Go takes for a boolean.
fn auto_update(object: &Object) -> Option<bool> {
    match object.annotation(AUTO_UPDATE)? {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

/// Does what is due. `api` must act as somebody in `system:masters`.
pub async fn reconcile(api: InProcess) -> Result<(), ReconcileError> {
    let mut existing = Vec::new();
    for plural in PLURALS {
        existing.extend(list(&api, plural).await?);
    }
    let mut answers = futures::stream::iter(plan(&existing))
        .map(|step| write(&api, step))
        .buffer_unordered(AT_ONCE);
    while let Some(answer) = answers.next().await {
        answer?;
    }
    Ok(())
}

/// Reconciles every minute until `stop`.
pub async fn keep(api: InProcess, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first is due at once, and the start did its work.
    ticks.tick().await;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        if let Err(error) = reconcile(api.clone()).await {
            tracing::warn!(%error, "flow schemas and priority levels are not all in line");
        }
    }
}

async fn list(api: &InProcess, plural: &str) -> Result<Vec<Object>, ReconcileError> {
    let path = format!("/apis/{GROUP}/v1/{plural}");
    let (status, answer) = send(api, Method::GET, &path, None).await?;
    let list: Value = serde_json::from_slice(&answer).unwrap_or_default();
    if status != StatusCode::OK {
        return Err(refused(Method::GET, &path, status, &answer));
    }
    let items = json::list(&list, "items").iter().cloned();
    let mut objects: Vec<Object> = items.filter_map(Object::from_value).collect();
    let kind = json::text(&list, "kind").trim_end_matches("List");
    for object in &mut objects {
        object.set(&["kind"], kind.into());
    }
    Ok(objects)
}

async fn write(api: &InProcess, step: Step) -> Result<(), ReconcileError> {
    let (method, object) = match &step {
        Step::Create(object) => (Method::POST, object),
        Step::Update(object) => (Method::PUT, object),
        Step::Delete(object) => (Method::DELETE, object),
    };
    let plural = match object.kind() {
        "FlowSchema" => PLURALS[1],
        _ => PLURALS[0],
    };
    let mut path = format!("/apis/{GROUP}/v1/{plural}");
    if method != Method::POST {
        path = format!("{path}/{}", object.name());
    }
    let body = (method != Method::DELETE).then_some(object);
    let (status, answer) = send(api, method.clone(), &path, body).await?;
    // Somebody else was faster: the next pass looks at what they wrote.
    if status.is_success() || matches!(status, StatusCode::CONFLICT | StatusCode::NOT_FOUND) {
        return Ok(());
    }
    Err(refused(method, &path, status, &answer))
}

#[cfg(test)]
mod tests;
