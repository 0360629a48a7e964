//! All containers of a pod begin again, because one of them ended as a rule of it says.
//!
//! What runs is ended without its grace, everything is removed, and the pod goes on in its sandbox
//! from the first init container. Whoever asked for it is removed last: until then an agent that
//! starts anew finds it and goes on.

use super::super::state::{View, init_containers, is_alive, restarts_all};
use super::{Action, Plan, exit_code, kill};
use crate::runtime::ContainerStatus;
use k8s_openapi::api::core::v1::Container;

/// Init and regular containers with what there is of them; ephemeral ones are let be.
fn concerned<'a>(
    view: &View<'a>,
) -> impl Iterator<Item = (&'a Container, &'a ContainerStatus)> + use<'a> {
    let (spec, observed) = (view.spec(), view.observed);
    let all = init_containers(spec).iter().chain(&spec.containers);
    all.flat_map(move |container| {
        let instances = observed.instances(&container.name).into_iter();
        instances.map(move |instance| (container, instance))
    })
}

fn asks(container: &Container, instance: &ContainerStatus) -> bool {
    exit_code(instance).is_some_and(|code| restarts_all(container, code))
}

/// Whether a container's last end asks for it.
pub fn is_due(view: &View<'_>) -> bool {
    concerned(view).any(|(container, instance)| {
        let latest = view.observed.latest(&container.name);
        latest.is_some_and(|latest| latest.id == instance.id) && asks(container, instance)
    })
}

pub fn reset(view: &View<'_>, plan: &mut Plan) {
    let memory = view.memory;
    let alive: Vec<_> = concerned(view).filter(|(_, one)| is_alive(one)).collect();
    for (_, running) in &alive {
        // Upstream's word for it.
        kill(view, running, 0, "killing".to_owned(), plan);
    }
    let is_busy = memory.is_starting || memory.is_resizing || !memory.killing.is_empty();
    if !alive.is_empty() || is_busy {
        return;
    }
    let (sources, others): (Vec<_>, Vec<_>) =
        concerned(view).partition(|(container, instance)| asks(container, instance));
    let next = if others.is_empty() { sources } else { others };
    for (_, instance) in next {
        if !memory.removing.contains(&instance.id) {
            plan.actions.push(Action::Reset(instance.id.clone()));
        }
    }
}
