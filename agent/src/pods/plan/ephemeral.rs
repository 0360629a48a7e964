//! Ephemeral containers: started once, whatever state the others are in, and never again.

use super::super::ephemeral;
use super::super::state::View;
use super::{Plan, Start};
use crate::runtime::ContainerState;

pub fn starts(view: &View<'_>, plan: &mut Plan) -> Vec<Start> {
    let mut starts = Vec::new();
    for container in ephemeral::all(view.spec()) {
        let name = &container.name;
        let latest = view.observed.latest(name);
        // One that was made and never ran is made anew.
        let replaces = latest
            .filter(|latest| latest.state == ContainerState::Created)
            .map(|latest| latest.id.clone());
        let has_run = latest.is_some() && replaces.is_none();
        if has_run || has_ended(view, name) {
            continue;
        }
        let waiting = view.memory.waiting.get(name);
        if let Some(waiting) = waiting.filter(|waiting| view.now < waiting.retry_at) {
            plan.wake(waiting.retry_at);
            continue;
        }
        starts.push(Start {
            name: name.clone(),
            attempt: 0,
            replaces,
            ended_at: None,
        });
    }
    starts
}

/// The runtime has forgotten it, the API server has not.
fn has_ended(view: &View<'_>, name: &str) -> bool {
    let status = view.pod.status.as_ref();
    let statuses = status.and_then(|status| status.ephemeral_container_statuses.as_ref());
    let mut statuses = statuses.into_iter().flatten();
    let known = statuses.find(|status| status.name == name);
    let state = known.and_then(|status| status.state.as_ref());
    state.is_some_and(|state| state.terminated.is_some())
}
