//! The statuses of containers: state, last state, counts, readiness.

use super::super::start::mounts::recursive_read_only;
use super::super::state::{View, is_sidecar, restarts};
use super::resources;
use crate::runtime::{ContainerState as Runs, ContainerStatus as Instance};
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated,
    ContainerStateWaiting, ContainerStatus, ContainerUser, LinuxContainerUser, VolumeMount,
    VolumeMountStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Of a container that was removed because all of its pod begin again.
pub const RESTARTING_ALL: &str = "RestartingAllContainers";
const RESTARTING_ALL_MESSAGE: &str =
    "The container is removed because RestartAllContainers in place";

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Part {
    Init,
    Regular { has_init: bool },
    Ephemeral { has_init: bool },
}

pub fn make(
    view: &View<'_>,
    containers: &[Container],
    old: &[ContainerStatus],
    part: Part,
) -> Vec<ContainerStatus> {
    let mut made: Vec<_> = containers
        .iter()
        .map(|container| {
            let old = old.iter().find(|status| status.name == container.name);
            one(view, container, old, part)
        })
        .collect();
    if part != Part::Init {
        made.sort_by(|left, right| left.name.cmp(&right.name));
    }
    made
}

fn one(
    view: &View<'_>,
    container: &Container,
    old: Option<&ContainerStatus>,
    part: Part,
) -> ContainerStatus {
    let instances = view.observed.instances(&container.name);
    let mut status = ContainerStatus {
        name: container.name.clone(),
        image: container.image.clone().unwrap_or_default(),
        started: (!matches!(part, Part::Ephemeral { .. })).then_some(false),
        volume_mounts: volume_mounts(container),
        ..ContainerStatus::default()
    };
    match instances.first() {
        Some(latest) => {
            fill(view, container, latest, &instances, &mut status, part);
            resources::of_container(view, container, latest, old, &mut status);
        }
        None => absent(view, old, &mut status, part),
    }
    apply_waiting(
        view,
        container,
        instances.first().copied(),
        &mut status,
        part,
    );
    status
}

fn volume_mounts(container: &Container) -> Option<Vec<VolumeMountStatus>> {
    let mounts = container.volume_mounts.as_ref()?;
    let status = |mount: &VolumeMount| VolumeMountStatus {
        name: mount.name.clone(),
        mount_path: mount.mount_path.clone(),
        read_only: mount.read_only,
        recursive_read_only: (mount.read_only == Some(true)).then(|| recursive(mount).to_owned()),
        ..VolumeMountStatus::default()
    };
    Some(mounts.iter().map(status).collect())
}

/// What became of `recursiveReadOnly`.
fn recursive(mount: &VolumeMount) -> &'static str {
    match recursive_read_only(mount, crate::kernel::has_recursive_read_only()) {
        Ok(true) => "Enabled",
        _ => "Disabled",
    }
}

fn fill(
    view: &View<'_>,
    container: &Container,
    latest: &Instance,
    instances: &[&Instance],
    status: &mut ContainerStatus,
    part: Part,
) {
    status.restart_count = i32::try_from(latest.config.attempt).unwrap_or(i32::MAX);
    status.container_id = Some(container_id(view, latest));
    status.image_id.clone_from(&latest.image_id);
    status.state = Some(state(view, latest));
    status.user = latest.user.as_ref().map(user);
    status.last_state = match instances.get(1) {
        Some(previous) => Some(state(view, previous)).filter(|last| last.terminated.is_some()),
        None => {
            let reset = view.memory.reset.get(&container.name);
            let is_next = reset.is_some_and(|attempt| attempt + 1 == latest.config.attempt);
            is_next.then(reset_state)
        }
    };
    let is_running = latest.state == Runs::Running;
    let is_started = is_running && view.memory.is_started(&latest.id);
    let health = view.memory.health.get(&latest.id);
    let is_ready = health.is_some_and(|health| health.ready.unwrap_or(true));
    match part {
        Part::Init if !is_sidecar(container) => {
            status.started = Some(is_running);
            status.ready = latest.state == Runs::Exited && latest.exit_code == Some(0);
        }
        // Nothing asks whether they are ready.
        Part::Ephemeral { .. } => status.started = None,
        _ => {
            status.started = Some(is_started);
            status.ready = is_started && is_ready;
        }
    }
}

/// The runtime knows nothing of it: not started yet, or removed since.
fn absent(
    view: &View<'_>,
    old: Option<&ContainerStatus>,
    status: &mut ContainerStatus,
    part: Part,
) {
    let reason = match part {
        Part::Regular { has_init: false } | Part::Ephemeral { has_init: false } => {
            "ContainerCreating"
        }
        _ => "PodInitializing",
    };
    status.state = Some(waiting(reason, ""));
    if let Some(attempt) = view.memory.reset.get(&status.name) {
        status.state = Some(waiting(RESTARTING_ALL, RESTARTING_ALL_MESSAGE));
        status.last_state = Some(reset_state());
        status.restart_count = i32::try_from(*attempt + 1).unwrap_or(i32::MAX);
        return;
    }
    let Some(old) = old else {
        return;
    };
    status.restart_count = old.restart_count;
    // The server writes an empty one where there is none.
    let last = old.last_state.clone();
    status.last_state = last.filter(|last| *last != ContainerState::default());
    let old_state = old.state.clone().unwrap_or_default();
    if old_state.terminated.is_some() {
        let started = status.started;
        *status = old.clone();
        status.started = started;
        return;
    }
    if old_state.running.is_some() && !view.is_deleting() {
        status.restart_count += 1;
    }
    if old_state.running.is_some() && status.last_state.is_none() {
        status.last_state = Some(ContainerState {
            terminated: Some(ContainerStateTerminated {
                exit_code: 137,
                reason: Some("ContainerStatusUnknown".to_owned()),
                message: Some(
                    "The container could not be located when the pod was deleted.  The container \
                     used to be Running"
                        .to_owned(),
                ),
                ..ContainerStateTerminated::default()
            }),
            ..ContainerState::default()
        });
    }
}

fn reset_state() -> ContainerState {
    ContainerState {
        terminated: Some(ContainerStateTerminated {
            exit_code: 137,
            reason: Some(RESTARTING_ALL.to_owned()),
            message: Some(RESTARTING_ALL_MESSAGE.to_owned()),
            ..ContainerStateTerminated::default()
        }),
        ..ContainerState::default()
    }
}

/// A container that is to be started and cannot be shows why.
fn apply_waiting(
    view: &View<'_>,
    container: &Container,
    latest: Option<&Instance>,
    status: &mut ContainerStatus,
    part: Part,
) {
    let Some(why) = view.memory.waiting.get(&container.name) else {
        return;
    };
    if let Some(latest) = latest {
        let is_done = match latest.state {
            Runs::Running => true,
            Runs::Exited => {
                let code = latest.exit_code.unwrap_or(137);
                let is_done_init = part == Part::Init && !is_sidecar(container) && code == 0;
                is_done_init || !restarts(container, view.spec(), code)
            }
            Runs::Created | Runs::Unknown => false,
        };
        if is_done {
            return;
        }
    }
    let state = status.state.take().unwrap_or_default();
    if state.terminated.is_some() {
        status.last_state = Some(state);
    }
    status.state = Some(waiting(&why.reason, &why.message));
}

fn waiting(reason: &str, message: &str) -> ContainerState {
    ContainerState {
        waiting: Some(ContainerStateWaiting {
            reason: Some(reason.to_owned()),
            message: (!message.is_empty()).then(|| message.to_owned()),
        }),
        ..ContainerState::default()
    }
}

fn state(view: &View<'_>, instance: &Instance) -> ContainerState {
    match instance.state {
        Runs::Running => ContainerState {
            running: Some(ContainerStateRunning {
                started_at: instance.started_at.map(Time),
            }),
            ..ContainerState::default()
        },
        Runs::Exited => ContainerState {
            terminated: Some(terminated(view, instance)),
            ..ContainerState::default()
        },
        Runs::Created | Runs::Unknown => waiting("ContainerCreating", ""),
    }
}

fn terminated(view: &View<'_>, instance: &Instance) -> ContainerStateTerminated {
    let last_words = view.memory.last_words.get(&instance.id);
    let message = last_words
        .filter(|words| !words.is_empty())
        .unwrap_or(&instance.message);
    ContainerStateTerminated {
        container_id: Some(container_id(view, instance)),
        exit_code: instance.exit_code.unwrap_or(137),
        reason: Some(instance.reason.clone()),
        message: (!message.is_empty()).then(|| message.clone()),
        started_at: instance.started_at.map(Time),
        finished_at: instance.finished_at.map(Time),
        signal: None,
    }
}

fn user(user: &crate::runtime::ContainerUser) -> ContainerUser {
    let groups = user.groups.iter().map(|group| i64::from(*group));
    ContainerUser {
        linux: Some(LinuxContainerUser {
            uid: i64::from(user.uid),
            gid: i64::from(user.gid),
            supplemental_groups: Some(groups.collect()),
        }),
    }
}

fn container_id(view: &View<'_>, instance: &Instance) -> String {
    format!("{}://{}", view.observed.runtime, instance.id)
}
