//! Decides what to do next for one pod. Pure; start reading here.
//!
//! Looks at the pod as the API server has it, at what the runtime has of it and at what the
//! worker remembers, and names the next actions. Running it twice on one state gives the same
//! actions: what is under way is in `Memory` and is not asked for again.
//! Order: sandbox, init containers one by one, then all containers; a sidecar before what
//! follows it. On the way down: containers, then sidecars from the last, then the sandbox.

mod ephemeral;
pub mod resize;
pub mod restart_all;

use super::back_off::go_seconds;
use super::resize::Target;
use super::state::{
    Verdict, View, Waiting, full_name, init_containers, is_alive, is_sidecar, restarts,
};
use crate::runtime::{ContainerId, ContainerState, ContainerStatus, SandboxId, SandboxStatus};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Container;

/// Upstream's default of `terminationGracePeriodSeconds`.
const GRACE_SECONDS: i64 = 30;
/// A container gets this long to end, however little was asked for, as upstream has it.
const GRACE_SECONDS_MIN: i64 = 2;
/// Dead instances of a container that are kept for `lastState` and `logs --previous`.
const DEAD_INSTANCES_KEPT: usize = 1;

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Action {
    /// Volumes, sandbox and network; on `sandbox` when a former try left one.
    Prepare {
        attempt: u32,
        sandbox: Option<SandboxId>,
    },
    /// One after the other, in this order.
    Start(Vec<Start>),
    Kill(Kill),
    /// Changes what the pod's group and these containers have.
    Resize(Vec<Target>),
    Remove(ContainerId),
    /// The same, but its log stays.
    Reset(ContainerId),
    StopSandbox(SandboxId),
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Start {
    pub name: String,
    pub attempt: u32,
    /// An instance that never ran, to be removed first.
    pub replaces: Option<ContainerId>,
    /// When the former instance ended; counts for the back-off.
    pub ended_at: Option<Timestamp>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Kill {
    pub id: ContainerId,
    pub name: String,
    pub grace_seconds: i64,
    /// Of the event.
    pub message: String,
    /// It is started again at once, with another size.
    pub is_for_resize: bool,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Plan {
    pub actions: Vec<Action>,
    /// Running containers with other sizes than they were given.
    resize: Vec<Target>,
    /// Containers that have to wait from now on.
    pub waiting: Vec<(String, Waiting)>,
    pub verdict: Option<Verdict>,
    /// Look again then, if nothing happens before.
    pub wake_at: Option<Timestamp>,
    /// No container will be started again.
    pub is_ending: bool,
    /// Nothing runs, nothing is under way, and the sandbox is down.
    pub is_down: bool,
}

impl Plan {
    fn wake(&mut self, at: Timestamp) {
        self.wake_at = Some(self.wake_at.map_or(at, |known| known.min(at)));
    }
}

pub fn plan(view: &View<'_>) -> Plan {
    let mut plan = Plan::default();
    if view.is_deleting() {
        take_down(view, shortened(view, deletion_grace(view)), &mut plan);
        return plan;
    }
    plan.verdict = verdict(view, &mut plan);
    plan.verdict = plan.verdict.take().or_else(|| evicted(view));
    let has_verdict = plan.verdict.is_some() || view.memory.verdict.is_some();
    if has_verdict || view.is_ended() || has_finished(view) {
        take_down(view, shortened(view, spec_grace(view)), &mut plan);
        return plan;
    }
    if restart_all::is_due(view) {
        restart_all::reset(view, &mut plan);
        return plan;
    }
    run(view, &mut plan);
    remove_old(view, &mut plan);
    plan
}

fn verdict(view: &View<'_>, plan: &mut Plan) -> Option<Verdict> {
    let seconds = view.spec().active_deadline_seconds?;
    if view.memory.verdict.is_some() || view.is_ended() {
        return None;
    }
    let end = view.memory.start_time.as_second() + seconds;
    let end = Timestamp::from_second(end).ok()?;
    if view.now < end {
        plan.wake(end);
        return None;
    }
    Some(Verdict {
        reason: "DeadlineExceeded".to_owned(),
        message: "Pod was active on the node longer than the specified deadline".to_owned(),
    })
}

/// The node takes the pod down; once that is remembered it is no news.
fn evicted(view: &View<'_>) -> Option<Verdict> {
    let eviction = view.memory.eviction.as_ref()?;
    let is_news = view.memory.verdict.is_none() && !view.is_ended();
    is_news.then(|| Verdict {
        reason: eviction.reason.clone(),
        message: eviction.message.clone(),
    })
}

/// A node that evicts a pod may be in a hurry.
fn shortened(view: &View<'_>, grace_seconds: i64) -> i64 {
    let eviction = view.memory.eviction.as_ref();
    let own = eviction.and_then(|eviction| eviction.grace_seconds);
    own.map_or(grace_seconds, |own| own.min(grace_seconds))
}

/// Every container has ended for good, or an init container has failed for good.
fn has_finished(view: &View<'_>) -> bool {
    let spec = view.spec();
    let ended_for_good = |container: &Container| {
        let latest = view.observed.latest(&container.name);
        let is_resized = view.memory.restarting.contains(&container.name);
        latest
            .and_then(exit_code)
            .filter(|code| !is_resized && !restarts(container, spec, *code))
    };
    let failed_init = init_containers(spec)
        .iter()
        .filter(|container| !is_sidecar(container))
        .any(|container| ended_for_good(container).is_some_and(|code| code != 0));
    let containers = &spec.containers;
    let all_ended = !containers.is_empty()
        && containers
            .iter()
            .all(|container| ended_for_good(container).is_some());
    failed_init || all_ended
}

fn exit_code(container: &ContainerStatus) -> Option<i32> {
    (container.state == ContainerState::Exited).then(|| container.exit_code.unwrap_or(137))
}

fn run(view: &View<'_>, plan: &mut Plan) {
    let memory = view.memory;
    let ready = view.observed.ready_sandbox();
    let sandbox = match ready {
        Some(sandbox) if sandbox.config.host_network || !memory.ips.is_empty() => sandbox,
        unfinished => {
            if memory.is_preparing || memory.is_stopping_sandbox {
                return;
            }
            if let Some(at) = memory.prepare_after.filter(|at| view.now < *at) {
                plan.wake(at);
                return;
            }
            let last = view.observed.sandbox();
            plan.actions.push(Action::Prepare {
                attempt: match unfinished {
                    Some(sandbox) => sandbox.config.attempt,
                    None => last.map_or(0, |sandbox| sandbox.config.attempt + 1),
                },
                sandbox: unfinished.map(|sandbox| sandbox.id.clone()),
            });
            return;
        }
    };
    // Also while the pod is not initialized: they are there to find out why.
    let mut starts = ephemeral::starts(view, plan);
    if initialize(view, sandbox, plan, &mut starts) {
        for container in &view.spec().containers {
            tend(view, container, false, plan, &mut starts);
        }
    }
    if resize::is_due(view, plan) {
        plan.actions.push(Action::Resize(plan.resize.clone()));
    }
    if !starts.is_empty() && !memory.is_starting && !resize::holds_starts(view) {
        plan.actions.push(Action::Start(starts));
    }
}

/// True once the init containers let the others start.
fn initialize(
    view: &View<'_>,
    sandbox: &SandboxStatus,
    plan: &mut Plan,
    starts: &mut Vec<Start>,
) -> bool {
    let here = |name: &str| {
        view.observed
            .latest(name)
            .filter(|container| container.sandbox == sandbox.id)
    };
    let is_initialized = view
        .spec()
        .containers
        .iter()
        .any(|container| here(&container.name).is_some());
    for container in init_containers(view.spec()) {
        let latest = here(&container.name);
        if is_sidecar(container) {
            tend(view, container, latest.is_none(), plan, starts);
            let is_started = latest.is_some_and(|latest| {
                latest.state == ContainerState::Running && view.memory.is_started(&latest.id)
            });
            if !is_started && !is_initialized {
                return false;
            }
            continue;
        }
        if is_initialized {
            continue;
        }
        match latest {
            Some(latest) if exit_code(latest) == Some(0) => {}
            _ => {
                tend(view, container, latest.is_none(), plan, starts);
                return false;
            }
        }
    }
    true
}

/// Keeps one container running. `is_forced` starts it however its last instance ended.
fn tend(
    view: &View<'_>,
    container: &Container,
    is_forced: bool,
    plan: &mut Plan,
    starts: &mut Vec<Start>,
) {
    let name = &container.name;
    let latest = view.observed.latest(name);
    if let Some(running) = latest.filter(|latest| latest.state == ContainerState::Running) {
        check_health(view, running, plan);
        if let Some(kill) = resize::check(view, container, running, plan) {
            plan.actions.push(Action::Kill(kill));
        }
        return;
    }
    let waiting = view.memory.waiting.get(name);
    if let Some(waiting) = waiting.filter(|waiting| view.now < waiting.retry_at) {
        plan.wake(waiting.retry_at);
        return;
    }
    let mut start = Start {
        name: name.clone(),
        attempt: 0,
        replaces: None,
        ended_at: None,
    };
    match latest {
        None => start.attempt = attempt_after_loss(view, name),
        Some(latest) => match latest.state {
            ContainerState::Running => return,
            ContainerState::Created | ContainerState::Unknown => {
                start.attempt = latest.config.attempt;
                start.replaces = Some(latest.id.clone());
            }
            ContainerState::Exited => {
                let code = latest.exit_code.unwrap_or(137);
                let is_resized = view.memory.restarting.contains(name);
                if !is_forced && !is_resized && !restarts(container, view.spec(), code) {
                    return;
                }
                start.attempt = latest.config.attempt + 1;
                if is_resized {
                    starts.push(start);
                    return;
                }
                let ended = latest.finished_at.unwrap_or(latest.created_at);
                if let Some(waiting) = crash_loop(view, name, ended) {
                    plan.wake(waiting.retry_at);
                    plan.waiting.push((name.clone(), waiting));
                    return;
                }
                start.ended_at = Some(ended);
            }
        },
    }
    starts.push(start);
}

/// The runtime has forgotten the container, after a wipe for example; the API server has not.
fn attempt_after_loss(view: &View<'_>, name: &str) -> u32 {
    if let Some(attempt) = view.memory.reset.get(name) {
        return attempt + 1;
    }
    let status = view.pod.status.as_ref();
    let all = status.map(|status| {
        let regular = status.container_statuses.iter().flatten();
        regular.chain(status.init_container_statuses.iter().flatten())
    });
    let known = all.into_iter().flatten().find(|status| status.name == name);
    known.map_or(0, |status| {
        let count = u32::try_from(status.restart_count).unwrap_or(0);
        count + u32::from(status.container_id.is_some())
    })
}

fn crash_loop(view: &View<'_>, name: &str, ended: Timestamp) -> Option<Waiting> {
    let back_off = view.memory.crashes.get(name)?;
    let retry_at = back_off.until(ended, view.now)?;
    Some(Waiting {
        reason: "CrashLoopBackOff".to_owned(),
        message: format!(
            "back-off {} restarting failed container={name} pod={}",
            go_seconds(back_off.seconds),
            full_name(view.pod)
        ),
        retry_at,
    })
}

fn check_health(view: &View<'_>, running: &ContainerStatus, plan: &mut Plan) {
    let health = view.memory.health.get(&running.id);
    let Some((health, probe)) = health.and_then(|health| Some((health, health.failed?))) else {
        return;
    };
    let name = &running.config.name;
    let grace = health.failed_grace_seconds.unwrap_or(spec_grace(view));
    let message = format!("Container {name} failed {probe} probe, will be restarted");
    kill(view, running, grace, message, plan);
}

fn kill(
    view: &View<'_>,
    container: &ContainerStatus,
    grace_seconds: i64,
    message: String,
    plan: &mut Plan,
) {
    let grace_seconds = grace_seconds.max(GRACE_SECONDS_MIN);
    let dead_by = view.now.as_second() + grace_seconds;
    let pending = view.memory.killing.get(&container.id);
    if pending.is_some_and(|pending| pending.as_second() <= dead_by) {
        return;
    }
    plan.actions.push(Action::Kill(Kill {
        id: container.id.clone(),
        name: container.config.name.clone(),
        grace_seconds,
        message,
        is_for_resize: false,
    }));
}

fn spec_grace(view: &View<'_>) -> i64 {
    let grace = view.spec().termination_grace_period_seconds;
    grace.unwrap_or(GRACE_SECONDS)
}

fn deletion_grace(view: &View<'_>) -> i64 {
    let grace = view.pod.metadata.deletion_grace_period_seconds;
    grace.unwrap_or_else(|| spec_grace(view))
}

fn take_down(view: &View<'_>, grace_seconds: i64, plan: &mut Plan) {
    plan.is_ending = true;
    let memory = view.memory;
    let sidecars: Vec<_> = init_containers(view.spec())
        .iter()
        .filter(|container| is_sidecar(container))
        .map(|container| container.name.as_str())
        .collect();
    let rank = |container: &ContainerStatus| {
        let name = container.config.name.as_str();
        sidecars.iter().position(|sidecar| *sidecar == name)
    };
    let alive: Vec<_> = view.observed.running().collect();
    // None, a plain container, goes first; then the last sidecar.
    let has_plain = alive.iter().any(|container| rank(container).is_none());
    let last_sidecar = alive.iter().filter_map(|container| rank(container)).max();
    for container in &alive {
        let is_due = if has_plain {
            rank(container).is_none()
        } else {
            rank(container) == last_sidecar
        };
        if is_due {
            let message = format!("Stopping container {}", container.config.name);
            kill(view, container, grace_seconds, message, plan);
        }
    }
    let is_busy = memory.is_starting || memory.is_preparing || !memory.killing.is_empty();
    if !alive.is_empty() || is_busy || memory.is_stopping_sandbox {
        return;
    }
    match view.observed.ready_sandbox() {
        Some(sandbox) => plan.actions.push(Action::StopSandbox(sandbox.id.clone())),
        None => plan.is_down = true,
    }
}

fn remove_old(view: &View<'_>, plan: &mut Plan) {
    let spec = view.spec();
    for container in init_containers(spec).iter().chain(&spec.containers) {
        for old in view
            .observed
            .instances(&container.name)
            .into_iter()
            .skip(1 + DEAD_INSTANCES_KEPT)
        {
            if !is_alive(old) && !view.memory.removing.contains(&old.id) {
                plan.actions.push(Action::Remove(old.id.clone()));
            }
        }
    }
}

#[cfg(test)]
mod tests;
