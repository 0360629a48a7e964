//! The phase of a pod from its containers' statuses, by upstream's rules.

use super::super::state::{View, init_containers, is_sidecar, restarts};
use super::containers::RESTARTING_ALL;
use k8s_openapi::api::core::v1::{Container, ContainerStateTerminated, ContainerStatus};

#[derive(Default)]
struct Counts {
    waiting: usize,
    running: usize,
    stopped: usize,
    stopped_for_good: usize,
    succeeded: usize,
}

/// `is_ending`: no container is started again, whatever its restart policy.
pub fn of(
    view: &View<'_>,
    inits: &[ContainerStatus],
    regular: &[ContainerStatus],
    is_ending: bool,
) -> &'static str {
    if view.memory.verdict.is_some() {
        return "Failed";
    }
    let old = view
        .pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    match old {
        Some("Failed") => return "Failed",
        Some("Succeeded") => return "Succeeded",
        _ => {}
    }
    let spec = view.spec();
    let mut pending_init = 0;
    let mut counts = Counts::default();
    let has_started = view
        .spec()
        .containers
        .iter()
        .any(|container| view.observed.latest(&container.name).is_some());
    for (container, status) in init_containers(spec).iter().zip(inits) {
        if is_sidecar(container) {
            let state = status.state.as_ref();
            if state.is_some_and(|state| state.running.is_some()) {
                counts.running += 1;
                pending_init += usize::from(status.started != Some(true) && !has_started);
            } else if ended(status).is_none() {
                pending_init += usize::from(!has_started);
                counts.waiting += 1;
            }
            continue;
        }
        match ended(status) {
            None => pending_init += 1,
            Some(0) => {}
            Some(_) if is_stopped_for_good(view, container, status) => return "Failed",
            // Those that wait for it say so themselves.
            Some(_) => {}
        }
    }
    for container in &spec.containers {
        let status = regular.iter().find(|status| status.name == container.name);
        count(view, container, status, &mut counts);
    }
    decide(pending_init, &counts, is_ending)
}

/// How a container ended: now, or before it came to wait for its next start.
fn last_end(status: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    let state = status.state.as_ref()?;
    if let Some(terminated) = &state.terminated {
        return Some(terminated);
    }
    state.waiting.as_ref()?;
    status.last_state.as_ref()?.terminated.as_ref()
}

fn ended(status: &ContainerStatus) -> Option<i32> {
    last_end(status).map(|end| end.exit_code)
}

/// What was ended to begin again with all others is not.
fn is_stopped_for_good(view: &View<'_>, container: &Container, status: &ContainerStatus) -> bool {
    let Some(end) = last_end(status) else {
        return false;
    };
    let is_reset = end.reason.as_deref() == Some(RESTARTING_ALL);
    !is_reset && !restarts(container, view.spec(), end.exit_code)
}

fn count(
    view: &View<'_>,
    container: &Container,
    status: Option<&ContainerStatus>,
    counts: &mut Counts,
) {
    let Some(status) = status else {
        counts.waiting += 1;
        return;
    };
    let state = status.state.as_ref();
    if state.is_some_and(|state| state.running.is_some()) {
        counts.running += 1;
        return;
    }
    let Some(code) = ended(status) else {
        counts.waiting += 1;
        return;
    };
    counts.stopped += 1;
    counts.stopped_for_good += usize::from(is_stopped_for_good(view, container, status));
    let is_terminated = state.is_some_and(|state| state.terminated.is_some());
    counts.succeeded += usize::from(is_terminated && code == 0);
}

fn decide(pending_init: usize, counts: &Counts, is_ending: bool) -> &'static str {
    let outcome = if counts.stopped == counts.succeeded {
        "Succeeded"
    } else {
        "Failed"
    };
    if pending_init > 0 || counts.waiting > 0 {
        "Pending"
    } else if counts.running > 0 {
        "Running"
    } else if counts.stopped == 0 {
        "Pending"
    } else if is_ending || counts.stopped == counts.stopped_for_good {
        outcome
    } else {
        "Running"
    }
}
