//! Ends one container: preStop, the stop signal, the grace, the kill.

use super::context::Context;
use super::hook;
use super::plan::Kill;
use super::state;
use super::worker::Update;
use crate::runtime::RuntimeError;
use coracle_client::events::EventType;
use k8s_openapi::api::core::v1::Pod;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// What is left for the signal when the hook took all of the grace.
const GRACE_SECONDS_MIN: i64 = 2;
const RETRY: Duration = Duration::from_secs(1);

pub async fn kill(
    context: Arc<Context>,
    pod: Arc<Pod>,
    kill: Kill,
    ip: Option<IpAddr>,
    updates: mpsc::Sender<Update>,
) {
    let (name, type_) = (&kill.name, EventType::Normal);
    context.container_event(&pod, name, type_, "Killing", kill.message.clone());
    let took = pre_stop(&context, &pod, &kill, ip).await;
    let grace = (kill.grace_seconds - took).max(GRACE_SECONDS_MIN);
    match context.runtime.stop_container(&kill.id, grace).await {
        Ok(()) | Err(RuntimeError::NotFound { .. }) => {}
        Err(error) => {
            tracing::warn!(container = name, %error, "cannot stop a container");
            let message = format!("error killing pod: {error}");
            context.event(&pod, EventType::Warning, "FailedKillPod", message);
            // Not at once again.
            tokio::time::sleep(RETRY).await;
        }
    }
    let update = match context.runtime.container_status(&kill.id).await {
        Ok(status) => Update::Container(Box::new(status)),
        Err(_) => Update::Removed(kill.id.clone()),
    };
    let _ = updates.send(update).await;
    let _ = updates.send(Update::Killed(kill.id)).await;
}

/// How many seconds the hook took.
async fn pre_stop(context: &Context, pod: &Pod, kill: &Kill, ip: Option<IpAddr>) -> i64 {
    let container = state::find(state::spec(pod), &kill.name);
    let hook = container.and_then(|container| {
        let hook = container.lifecycle.as_ref()?.pre_stop.clone()?;
        Some((container, hook))
    });
    let Some((container, handler)) = hook else {
        return 0;
    };
    let begun = context.clock.monotonic();
    let target = hook::Target {
        context,
        container: &container,
        id: &kill.id,
        ip,
    };
    let bound = Duration::from_secs(u64::try_from(kill.grace_seconds).unwrap_or(0));
    let failed = match tokio::time::timeout(bound, hook::run(&target, &handler)).await {
        Ok(Ok(())) => None,
        Ok(Err(message)) => Some(message),
        Err(_) => Some("it did not end within the grace".to_owned()),
    };
    if let Some(message) = failed {
        tracing::info!(container = container.name, message, "preStop hook failed");
        let (name, type_) = (&container.name, EventType::Warning);
        let event = "PreStopHook failed";
        context.container_event(pod, name, type_, "FailedPreStopHook", event);
    }
    i64::try_from(begun.elapsed().as_secs()).unwrap_or(i64::MAX)
}
