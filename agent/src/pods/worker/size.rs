//! The sizes of the pod: what it was given, what it waits for, what it has.

use super::super::ledger::Ask;
use super::super::plan::resize::is_in_progress;
use super::super::resize::{Target, Try, resize};
use super::super::sizes::{Kept, Sizes, requests};
use super::super::state::{Note, Sizing, has_ended, init_containers, spec};
use super::super::{start, status};
use super::Worker;
use crate::runtime::ContainerState;
use coracle_client::clock::seconds;
use coracle_client::events::EventType;
use k8s_openapi::api::core::v1::{Container, Pod, ResourceRequirements};
use serde::Serialize;
use std::sync::Arc;

/// Upstream's pause after a failure.
const RETRY_SECONDS: i64 = 10;

/// What an event says of a resize; the order of the fields is upstream's.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    init_containers: Vec<Size<'a>>,
    containers: Vec<Size<'a>>,
    generation: i64,
    #[serde(skip_serializing_if = "str::is_empty")]
    error: &'a str,
}

#[derive(Serialize)]
struct Size<'a> {
    name: &'a str,
    resources: ResourceRequirements,
}

impl<'a> Size<'a> {
    fn of(container: &'a Container) -> Self {
        Self {
            name: &container.name,
            resources: container.resources.clone().unwrap_or_default(),
        }
    }
}

fn message(prefix: &str, pod: &Pod, generation: Option<i64>, error: &str) -> String {
    let spec = spec(pod);
    let summary = Summary {
        init_containers: init_containers(spec).iter().map(Size::of).collect(),
        containers: spec.containers.iter().map(Size::of).collect(),
        generation: generation.unwrap_or(0),
        error,
    };
    let text = serde_json::to_string(&summary).unwrap_or_default();
    format!("{prefix}: {text}")
}

/// What is known from a former agent, or else what the pod asks for.
pub fn remembered(kept: Option<Kept>, pod: &Pod) -> Sizing {
    let fresh = || Kept {
        allocated: Sizes::of(pod),
        ..Kept::default()
    };
    let status = pod.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let note = |type_: &str| {
        let mut conditions = conditions.into_iter().flatten();
        let known = conditions.find(|known| known.type_ == type_)?;
        let since = known.last_transition_time.as_ref()?.0;
        Some(Note {
            reason: match known.reason.as_deref() {
                Some("Deferred") => "Deferred",
                Some("Error") => "Error",
                _ => "",
            },
            message: known.message.clone().unwrap_or_default(),
            generation: known.observed_generation,
            since,
            at: known.last_probe_time.as_ref().map_or(since, |time| time.0),
        })
    };
    Sizing {
        pending: note("PodResizePending"),
        in_progress: note("PodResizeInProgress"),
        kept: kept.unwrap_or_else(fresh),
        ..Sizing::default()
    }
}

impl Worker {
    fn uid(&self) -> String {
        self.wanted.metadata.uid.clone().unwrap_or_default()
    }

    /// What the pod has of the node counts for the others from now on; it waits for no more.
    pub(super) fn enter_ledger(&self) {
        if has_ended(&self.wanted) {
            return self.context.ledger.release(&self.uid());
        }
        let given = self.memory.sizing.kept.allocated.applied_to(&self.wanted);
        self.context.ledger.hold(&self.uid(), requests(&given));
    }

    /// Takes the pod as it is wanted, with the sizes that it was given: others if the node has
    /// room for them.
    pub(super) fn settle_size(&mut self) {
        let wanted = self.wanted.clone();
        if self.memory.sizing.kept.allocated.fits(&wanted) {
            self.pod = wanted;
            if self.memory.sizing.pending.take().is_some() {
                self.enter_ledger();
            }
            return;
        }
        let is_over =
            self.is_gone || wanted.metadata.deletion_timestamp.is_some() || has_ended(&wanted);
        let refusal = if is_over {
            if self.memory.sizing.pending.is_some() {
                // It may have been given meanwhile, unseen: that goes back.
                self.enter_ledger();
            }
            None
        } else {
            match self.context.ledger.ask(self.ask()) {
                Ok(()) => return self.allocate(wanted),
                Err(message) => Some(message),
            }
        };
        if let Some(message) = refusal {
            self.defer(message);
        }
        self.pod = Arc::new(self.memory.sizing.kept.allocated.applied_to(&wanted));
    }

    fn ask(&self) -> Ask {
        let now = self.context.clock.now();
        let pending = self.memory.sizing.pending.as_ref();
        Ask {
            uid: self.uid(),
            wanted: requests(&self.wanted),
            priority: spec(&self.wanted).priority.unwrap_or(0),
            is_guaranteed: status::quality_of_service(&self.view()) == "Guaranteed",
            since: pending.map_or(now, |pending| pending.since),
            wake: self.wake.clone(),
        }
    }

    fn allocate(&mut self, wanted: Arc<Pod>) {
        let sizing = &mut self.memory.sizing;
        sizing.kept.allocate(&wanted);
        sizing.pending = None;
        sizing.in_progress = None;
        self.memory.resize_after = None;
        self.pod = wanted;
        self.save_sizes();
        self.note_progress("", String::new());
        let text = message(
            "Pod resize started",
            &self.pod,
            self.pod.metadata.generation,
            "",
        );
        let type_ = EventType::Normal;
        self.context.event(&self.pod, type_, "ResizeStarted", text);
    }

    fn defer(&mut self, why: String) {
        let now = seconds(self.context.clock.now());
        let generation = self.wanted.metadata.generation;
        let before = self.memory.sizing.pending.as_ref();
        if before.is_some_and(|before| before.message == why && before.generation == generation) {
            return;
        }
        let is_new = before.is_none_or(|before| before.generation != generation);
        if is_new {
            let text = message("Pod resize Deferred", &self.wanted, generation, &why);
            let type_ = EventType::Warning;
            self.context
                .event(&self.wanted, type_, "ResizeDeferred", text);
        }
        self.memory.sizing.pending = Some(Note {
            reason: "Deferred",
            message: why,
            generation,
            since: before.map_or(now, |before| before.since),
            at: now,
        });
    }

    /// A resize that is under way keeps its generation, and the reason it had if there is no other.
    fn note_progress(&mut self, reason: &'static str, message: String) {
        let now = seconds(self.context.clock.now());
        let generation = self.pod.metadata.generation;
        let before = self.memory.sizing.in_progress.take();
        let note = match before {
            Some(before) if reason.is_empty() => before,
            before => Note {
                reason,
                message,
                generation: before
                    .as_ref()
                    .map_or(generation, |before| before.generation),
                since: before
                    .filter(|before| before.reason == reason)
                    .map_or(now, |before| before.since),
                at: now,
            },
        };
        self.memory.sizing.in_progress = Some(note);
    }

    /// Begins and ends what is told of a resize.
    pub(super) fn follow_resize(&mut self) {
        let goes_on = is_in_progress(&self.view());
        if goes_on {
            self.note_progress("", String::new());
        } else if let Some(done) = self.memory.sizing.in_progress.take() {
            let text = message("Pod resize completed", &self.pod, done.generation, "");
            let type_ = EventType::Normal;
            self.context
                .event(&self.pod, type_, "ResizeCompleted", text);
        }
    }

    pub(super) fn resize(&mut self, targets: Vec<Target>) {
        let Some(sandbox) = self.observed.ready_sandbox() else {
            return;
        };
        let behind = &self.memory.sizing.kept.behind;
        let has = |target: Target| {
            let has = behind.get(&target.name).cloned().unwrap_or_default();
            (target, has)
        };
        let this = Try {
            context: self.context.clone(),
            pod: self.pod.clone(),
            sandbox: sandbox.id.clone(),
            quality: status::quality_of_service(&self.view()),
            targets: targets.into_iter().map(has).collect(),
            updates: self.updates.0.clone(),
        };
        self.memory.is_resizing = true;
        self.tasks.spawn(resize(this));
    }

    pub(super) fn note_resized(
        &mut self,
        containers: &[String],
        result: Result<(), String>,
        pod: &Pod,
    ) {
        self.memory.is_resizing = false;
        let sizing = &mut self.memory.sizing;
        sizing.of_pod = None;
        sizing.of_containers.clear();
        let sizes = Sizes::of(pod);
        match result {
            Ok(()) => {
                for name in containers {
                    if let Some(size) = sizes.containers.get(name) {
                        sizing.kept.has(name, size);
                    }
                }
                // Else another resize came meanwhile.
                sizing.kept.is_pod_behind &= !sizing.kept.allocated.fits(pod);
                self.memory.resize_after = None;
                self.save_sizes();
            }
            Err(error) => {
                let now = self.context.clock.now();
                self.memory.resize_after = Some(start::after(now, RETRY_SECONDS));
                let before = sizing.in_progress.clone();
                self.note_progress("Error", error.clone());
                let after = self.memory.sizing.in_progress.as_ref();
                let is_told = before.zip(after.cloned()).is_some_and(|(before, after)| {
                    (before.reason, &before.message) == (after.reason, &after.message)
                });
                if !is_told {
                    let generation = after.and_then(|note| note.generation);
                    let text = message("Pod resize error", &self.pod, generation, &error);
                    let type_ = EventType::Warning;
                    self.context.event(&self.pod, type_, "ResizeError", text);
                }
            }
        }
    }

    /// A container was made with this size.
    pub(super) fn note_size(&mut self, name: &str, size: &ResourceRequirements) {
        self.memory.restarting.remove(name);
        let before = self.memory.sizing.kept.clone();
        self.memory.sizing.kept.has(name, size);
        if self.memory.sizing.kept != before {
            self.save_sizes();
        }
    }

    pub(super) fn save_sizes(&self) {
        let directory = self.context.pod_directory(&self.pod);
        if let Err(error) = self.memory.sizing.kept.save(&directory) {
            tracing::warn!(%error, "the sizes of a pod are not written down");
        }
    }

    /// Looks at what the pod and its running containers have, once after each change.
    pub(super) async fn read_sizes(&mut self) {
        let sizing = &mut self.memory.sizing;
        if sizing.kept.allocated.is_nothing() || self.memory.is_resizing {
            return;
        }
        let runtime = &self.context.runtime;
        let containers = &self.observed.containers;
        sizing
            .of_containers
            .retain(|id, _| containers.iter().any(|one| one.id == *id));
        let running = containers
            .iter()
            .filter(|container| container.state == ContainerState::Running);
        for container in running {
            if !sizing.of_containers.contains_key(&container.id)
                && let Ok(limits) = runtime.container_limits(&container.id).await
            {
                let id = container.id.clone();
                sizing.of_containers.insert(id, limits.resources);
            }
        }
        if sizing.of_pod.is_none()
            && let Some(sandbox) = self.observed.ready_sandbox()
            && let Ok(limits) = runtime.sandbox_limits(&sandbox.id).await
        {
            sizing.of_pod = Some(limits.resources);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::message;
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    #[test]
    fn events_tell_the_sizes_in_upstreams_order() {
        let pod: Pod = serde_json::from_value(json!({"spec": {
            "initContainers": [{"name": "i"}],
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "100m"}}}],
        }}))
        .unwrap();
        assert_eq!(
            message("Pod resize error", &pod, Some(2), "why"),
            r#"Pod resize error: {"initContainers":[{"name":"i","resources":{}}],"containers":[{"name":"c","resources":{"requests":{"cpu":"100m"}}}],"generation":2,"error":"why"}"#
        );
    }
}
