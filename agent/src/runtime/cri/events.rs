//! Who started and ended: as the runtime tells it, with a look at all now and then, or else by
//! listing all once a second and comparing, as upstream does.
//!
//! A runtime that is away is waited for. What happened meanwhile is seen by comparing.

use super::super::{RuntimeError, contract::*};
use super::Inner;
use super::messages::{self as cri, *};
use super::sandboxes::UID_LABEL;
use crate::grpc::{Code, Status};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Upstream's pace.
const RELIST_EVERY: Duration = Duration::from_secs(1);
/// While events are told.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// Before a stream of events that broke off is asked for again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// What was seen last of everything that runs, or waits to.
pub type Seen = HashMap<String, Alive>;

#[derive(Clone, Debug, PartialEq)]
pub struct Alive {
    uid: String,
    sandbox: String,
    is_running: bool,
}

/// `seen` is what there was at first.
pub async fn follow(runtime: Arc<Inner>, mut seen: Seen, stop: CancellationToken) {
    let mut is_streaming = true;
    let mut is_away = false;
    while !stop.is_cancelled() {
        match relist(&runtime, &mut seen).await {
            Ok(()) if is_away => {
                is_away = false;
                tracing::info!("the container runtime is back");
            }
            Ok(()) => {}
            Err(error) if !is_away => {
                is_away = true;
                tracing::warn!(%error, "the container runtime does not answer");
            }
            Err(_) => {}
        }
        if is_streaming && !is_away {
            let ended = tokio::select! {
                () = stop.cancelled() => return,
                ended = listen(&runtime, &mut seen) => ended,
            };
            match ended {
                Err(status) if status.code == Code::UNIMPLEMENTED => is_streaming = false,
                Err(status) => tracing::debug!(%status, "the events of the runtime broke off"),
                Ok(()) => {}
            }
        }
        let pause = if is_streaming {
            ASK_AGAIN
        } else {
            RELIST_EVERY
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Passes on what the runtime tells, until it ends that. What happened before it began to tell is
/// found by listing, as is what it may have left out: whoever waits for an end would wait for ever.
async fn listen(runtime: &Inner, seen: &mut Seen) -> Result<(), Status> {
    let request = GetEventsRequest {};
    let path = GetEventsRequest::PATH;
    let mut events = runtime
        .runtime
        .stream::<ContainerEventResponse>(path, &request)
        .await?;
    let mut next_look = Box::pin(tokio::time::sleep(ASK_AGAIN));
    loop {
        let event = tokio::select! {
            event = events.next() => event?,
            () = &mut next_look => {
                if let Err(error) = relist(runtime, seen).await {
                    tracing::debug!(%error, "what runs is not listed");
                }
                next_look = Box::pin(tokio::time::sleep(LOOK_EVERY));
                continue;
            }
        };
        let Some(event) = event else {
            return Ok(());
        };
        let Some(sandbox) = event.pod_sandbox_status else {
            continue;
        };
        let uid = sandbox.metadata.map(|metadata| metadata.uid);
        let alive = Alive {
            uid: uid.unwrap_or_default(),
            sandbox: sandbox.id,
            is_running: event.container_event_type == EVENT_STARTED,
        };
        match event.container_event_type {
            EVENT_STARTED => tell(runtime, &event.container_id, &alive, EventKind::Started),
            EVENT_STOPPED => {
                let mut all = event.containers_statuses.iter();
                let ended = all.find(|status| status.id == event.container_id);
                tell(runtime, &event.container_id, &alive, end(ended));
            }
            _ => {}
        }
    }
}

fn end(status: Option<&cri::ContainerStatus>) -> EventKind {
    EventKind::Exited {
        exit_code: status.map_or(0, |status| status.exit_code),
        reason: status
            .map(|status| status.reason.clone())
            .unwrap_or_default(),
    }
}

async fn relist(runtime: &Inner, seen: &mut Seen) -> Result<(), RuntimeError> {
    let now = all_alive(runtime).await?;
    let before = std::mem::replace(seen, now.clone());
    for (id, kind) in compare(&before, &now) {
        let alive = now.get(&id).or_else(|| before.get(&id));
        let Some(alive) = alive else { continue };
        let kind = match kind {
            Change::Started => EventKind::Started,
            Change::Ended => {
                let container_id = id.clone();
                let asked = runtime.call(ContainerStatusRequest { container_id }).await;
                end(asked.ok().and_then(|answer| answer.status).as_ref())
            }
        };
        tell(runtime, &id, alive, kind);
    }
    Ok(())
}

/// Sandboxes too: they have a process each, which may end.
pub async fn all_alive(runtime: &Inner) -> Result<Seen, RuntimeError> {
    let filter = None;
    let sandboxes = runtime.call(ListPodSandboxRequest { filter }).await;
    let mut alive = Seen::new();
    for sandbox in sandboxes.map_err(super::failed)?.items {
        if let Some(uid) = sandbox.labels.get(UID_LABEL)
            && sandbox.state == SANDBOX_READY
        {
            let is_running = true;
            let (uid, sandbox) = (uid.clone(), sandbox.id);
            let one = Alive {
                uid,
                sandbox: sandbox.clone(),
                is_running,
            };
            alive.insert(sandbox, one);
        }
    }
    for container in runtime.listed(None).await? {
        if container.state != CONTAINER_EXITED {
            let one = Alive {
                uid: container.labels.get(UID_LABEL).cloned().unwrap_or_default(),
                sandbox: container.pod_sandbox_id,
                is_running: container.state == CONTAINER_RUNNING,
            };
            alive.insert(container.id, one);
        }
    }
    Ok(alive)
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Change {
    Started,
    Ended,
}

/// Pure. What came and went between two looks is not seen, as with upstream.
fn compare(before: &Seen, now: &Seen) -> Vec<(String, Change)> {
    let mut changes = Vec::new();
    for (id, alive) in now {
        let was_running = before.get(id).is_some_and(|before| before.is_running);
        if alive.is_running && !was_running {
            changes.push((id.clone(), Change::Started));
        }
    }
    let gone = before.keys().filter(|id| !now.contains_key(*id));
    changes.extend(gone.map(|id| (id.clone(), Change::Ended)));
    changes
}

fn tell(runtime: &Inner, id: &str, alive: &Alive, kind: EventKind) {
    // Nobody listening is as good as anybody.
    let _ = runtime.events.send(ContainerEvent {
        container: ContainerId(id.to_owned()),
        sandbox: SandboxId(alive.sandbox.clone()),
        pod_uid: alive.uid.clone(),
        kind,
    });
}

#[cfg(test)]
mod tests;
