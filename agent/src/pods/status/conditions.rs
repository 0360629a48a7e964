//! The conditions of a pod that its node owns. Others' conditions are kept as they are.

use super::super::plan::restart_all;
use super::super::state::{Note, View, could_restart_all, init_containers, is_sidecar};
use k8s_openapi::api::core::v1::{ContainerStatus, PodCondition, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

const OWN: [&str; 5] = [
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
];

/// Of pods in which a rule could make all containers begin again.
const RESTARTING_ALL: &str = "AllContainersRestarting";

/// There only while they hold.
pub const OF_RESIZES: [&str; 2] = ["PodResizePending", "PodResizeInProgress"];

struct Finding {
    holds: bool,
    reason: &'static str,
    message: String,
}

impl Finding {
    fn yes() -> Self {
        Self::because(true, "")
    }

    fn because(holds: bool, reason: &'static str) -> Self {
        Self {
            holds,
            reason,
            message: String::new(),
        }
    }
}

pub fn make(
    view: &View<'_>,
    old: &PodStatus,
    inits: &[ContainerStatus],
    regular: &[ContainerStatus],
    phase: &str,
) -> Vec<PodCondition> {
    let old = old.conditions.as_deref().unwrap_or_default();
    let mut made: Vec<PodCondition> = old
        .iter()
        .filter(|condition| !OWN.contains(&condition.type_.as_str()))
        .filter(|condition| !OF_RESIZES.contains(&condition.type_.as_str()))
        .filter(|condition| condition.type_ != RESTARTING_ALL)
        .cloned()
        .collect();
    let has_network = view.spec().host_network.unwrap_or(false) || !view.memory.ips.is_empty();
    let is_up = view.observed.ready_sandbox().is_some() && has_network;
    let containers_ready = containers_ready(view, inits, regular, phase);
    let ready = ready(view, &made, &containers_ready);
    let findings = [
        Finding::because(is_up, ""),
        initialized(view, old, inits, regular, phase),
        ready,
        containers_ready,
        Finding::yes(),
    ];
    for (type_, finding) in OWN.into_iter().zip(findings) {
        made.push(condition(view, old, type_, finding));
    }
    if could_restart_all(view.spec()) {
        let finding = restarting_all(view, phase);
        made.push(PodCondition {
            // As upstream has it.
            observed_generation: None,
            ..condition(view, old, RESTARTING_ALL, finding)
        });
    }
    let sizing = &view.memory.sizing;
    let notes = OF_RESIZES
        .into_iter()
        .zip([&sizing.pending, &sizing.in_progress]);
    made.extend(notes.filter_map(|(type_, note)| Some(of_resize(type_, note.as_ref()?))));
    made
}

fn restarting_all(view: &View<'_>, phase: &str) -> Finding {
    match phase {
        "Succeeded" => Finding::because(false, "PodCompleted"),
        "Failed" => Finding::because(false, "PodFailed"),
        _ if restart_all::is_due(view) => Finding {
            holds: true,
            reason: "RestartAllContainersStarted",
            message: "container exited with restart policy rule".to_owned(),
        },
        _ => Finding::because(false, ""),
    }
}

fn of_resize(type_: &str, note: &Note) -> PodCondition {
    PodCondition {
        type_: type_.to_owned(),
        status: "True".to_owned(),
        reason: (!note.reason.is_empty()).then(|| note.reason.to_owned()),
        message: (!note.message.is_empty()).then(|| note.message.clone()),
        last_probe_time: Some(Time(note.at)),
        last_transition_time: Some(Time(note.since)),
        observed_generation: note.generation,
    }
}

/// Says that the pod did not end by its own fault.
pub fn disrupt(view: &View<'_>, conditions: &mut Vec<PodCondition>) {
    let eviction = view.memory.eviction.as_ref();
    let Some(message) = eviction.and_then(|eviction| eviction.disruption.clone()) else {
        return;
    };
    let type_ = "DisruptionTarget";
    let finding = Finding {
        holds: true,
        reason: "TerminationByKubelet",
        message,
    };
    let made = condition(view, conditions, type_, finding);
    conditions.retain(|known| known.type_ != type_);
    conditions.push(made);
}

fn condition(view: &View<'_>, old: &[PodCondition], type_: &str, finding: Finding) -> PodCondition {
    let status = if finding.holds { "True" } else { "False" };
    let before = old.iter().find(|condition| condition.type_ == type_);
    let since = before
        .filter(|before| before.status == status)
        .and_then(|before| before.last_transition_time.clone());
    PodCondition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: (!finding.reason.is_empty()).then(|| finding.reason.to_owned()),
        message: (!finding.message.is_empty()).then_some(finding.message),
        last_probe_time: None,
        last_transition_time: Some(
            since.unwrap_or_else(|| Time(coracle_client::clock::seconds(view.now))),
        ),
        observed_generation: view.pod.metadata.generation,
    }
}

fn initialized(
    view: &View<'_>,
    old: &[PodCondition],
    inits: &[ContainerStatus],
    regular: &[ContainerStatus],
    phase: &str,
) -> Finding {
    if phase == "Succeeded" {
        return Finding::because(true, "PodCompleted");
    }
    let has_started = regular.iter().any(|status| {
        let state = status.state.as_ref();
        let runs = state.is_some_and(|state| state.running.is_some() || state.terminated.is_some());
        runs || status.last_state.is_some()
    });
    if has_started {
        return Finding::yes();
    }
    let incomplete: Vec<_> = init_containers(view.spec())
        .iter()
        .zip(inits)
        .filter(|(container, status)| {
            let is_done = if is_sidecar(container) {
                status.started == Some(true)
            } else {
                status.ready
            };
            !is_done
        })
        .map(|(container, _)| container.name.as_str())
        .collect();
    // Init containers that begin again do not take back that the pod was initialized.
    let was = old.iter().find(|known| known.type_ == "Initialized");
    if incomplete.is_empty() || was.is_some_and(|was| was.status == "True") {
        return Finding::yes();
    }
    Finding {
        holds: false,
        reason: "ContainersNotInitialized",
        message: format!(
            "containers with incomplete status: [{}]",
            incomplete.join(" ")
        ),
    }
}

fn containers_ready(
    view: &View<'_>,
    inits: &[ContainerStatus],
    regular: &[ContainerStatus],
    phase: &str,
) -> Finding {
    match phase {
        "Succeeded" => return Finding::because(false, "PodCompleted"),
        "Failed" => return Finding::because(false, "PodFailed"),
        _ => {}
    }
    let spec = view.spec();
    let sidecars = init_containers(spec)
        .iter()
        .filter(|container| is_sidecar(container));
    let unready: Vec<_> = sidecars
        .chain(&spec.containers)
        .filter(|container| {
            let mut statuses = inits.iter().chain(regular);
            let status = statuses.find(|status| status.name == container.name);
            !status.is_some_and(|status| status.ready)
        })
        .map(|container| container.name.as_str())
        .collect();
    if unready.is_empty() {
        return Finding::yes();
    }
    Finding {
        holds: false,
        reason: "ContainersNotReady",
        message: format!("containers with unready status: [{}]", unready.join(" ")),
    }
}

fn ready(view: &View<'_>, others: &[PodCondition], containers_ready: &Finding) -> Finding {
    if !containers_ready.holds {
        return Finding {
            holds: false,
            reason: containers_ready.reason,
            message: containers_ready.message.clone(),
        };
    }
    let mut missing = Vec::new();
    for gate in view.spec().readiness_gates.iter().flatten() {
        let type_ = &gate.condition_type;
        match others.iter().find(|condition| &condition.type_ == type_) {
            None => missing.push(format!(
                "corresponding condition of pod readiness gate {type_:?} does not exist."
            )),
            Some(condition) if condition.status != "True" => missing.push(format!(
                "the status of pod readiness gate {type_:?} is not \"True\", but {}",
                condition.status
            )),
            Some(_) => {}
        }
    }
    if missing.is_empty() {
        return Finding::yes();
    }
    Finding {
        holds: false,
        reason: "ReadinessGatesNotReady",
        message: missing.join(", "),
    }
}
