//! Sizes of running containers: which are other than allocated, and whether that takes a restart.

use super::super::resize::Target;
use super::super::sizes::{RESIZABLE, same_one};
use super::super::state::View;
use super::{Kill, Plan, spec_grace};
use crate::runtime::{ContainerState, ContainerStatus};
use k8s_openapi::api::core::v1::{Container, ResourceRequirements};

/// What a container has, where that is other than it was given.
fn behind<'a>(view: &View<'a>, name: &str) -> Option<&'a ResourceRequirements> {
    view.memory.sizing.kept.behind.get(name)
}

/// Asks for the restart of a running container whose policy wants that.
pub fn check(
    view: &View<'_>,
    container: &Container,
    running: &ContainerStatus,
    plan: &mut Plan,
) -> Option<Kill> {
    let has = behind(view, &container.name)?;
    if view.memory.killing.contains_key(&running.id) {
        return None;
    }
    let wanted = container.resources.clone().unwrap_or_default();
    let restarts = |name: &&str| {
        let mut policies = container.resize_policy.iter().flatten();
        let policy = policies.find(|policy| policy.resource_name == **name);
        policy.is_some_and(|policy| policy.restart_policy == "RestartContainer")
    };
    let mut changed = RESIZABLE
        .iter()
        .filter(|name| !same_one(has, &wanted, name));
    if changed.any(restarts) {
        return Some(Kill {
            id: running.id.clone(),
            name: container.name.clone(),
            grace_seconds: spec_grace(view),
            message: format!("Container {} resize requires restart", container.name),
            is_for_resize: true,
        });
    }
    plan.resize.push(Target {
        id: running.id.clone(),
        name: container.name.clone(),
    });
    None
}

/// Whether the pod's group and running containers are to be changed now.
pub fn is_due(view: &View<'_>, plan: &mut Plan) -> bool {
    let memory = view.memory;
    let is_wanted = !plan.resize.is_empty() || memory.sizing.kept.is_pod_behind;
    // Those that are restarted let go of what they have first.
    let is_dying = memory.restarting.iter().any(|name| {
        let latest = view.observed.latest(name);
        latest.is_some_and(|latest| latest.state == ContainerState::Running)
    });
    if !is_wanted || is_dying || memory.is_resizing {
        return false;
    }
    if let Some(at) = memory.resize_after.filter(|at| view.now < *at) {
        plan.wake(at);
        return false;
    }
    true
}

/// Containers start when their pod has room for them; after a failure, upstream starts them too.
pub fn holds_starts(view: &View<'_>) -> bool {
    let memory = view.memory;
    memory.sizing.kept.is_pod_behind && memory.resize_after.is_none()
}

/// What runs has other than its size: the resize is in progress.
pub fn is_in_progress(view: &View<'_>) -> bool {
    let kept = &view.memory.sizing.kept;
    view.observed
        .running()
        .any(|running| kept.is_pod_behind || kept.behind.contains_key(&running.config.name))
}
