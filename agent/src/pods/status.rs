//! Makes a pod's status from what is known of it. Pure.
//!
//! What the kubelet does not own (conditions of others, `nominatedNodeName`) is left as it is.

mod conditions;
mod containers;
mod phase;
mod resources;

pub use conditions::OF_RESIZES;

use super::asked;
use super::ephemeral;
use super::plan::Plan;
use super::state::{View, init_containers};
use crate::families::Families;
use k8s_openapi::api::core::v1::{HostIP, PodIP, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use std::net::IpAddr;

/// The status of the pod after `plan` was noted in the view's memory.
pub fn make(view: &View<'_>, plan: &Plan, host: Families<IpAddr>) -> PodStatus {
    let spec = view.spec();
    let old = view.pod.status.clone().unwrap_or_default();
    if view.memory.is_rejected {
        return rejected(view, old);
    }
    let has_init = !init_containers(spec).is_empty();
    let inits = containers::make(
        view,
        init_containers(spec),
        old.init_container_statuses.as_deref().unwrap_or_default(),
        containers::Part::Init,
    );
    let regular = containers::make(
        view,
        &spec.containers,
        old.container_statuses.as_deref().unwrap_or_default(),
        containers::Part::Regular { has_init },
    );
    let debuggers: Vec<_> = ephemeral::all(spec)
        .iter()
        .map(ephemeral::as_container)
        .collect();
    let ephemeral = containers::make(
        view,
        &debuggers,
        old.ephemeral_container_statuses
            .as_deref()
            .unwrap_or_default(),
        containers::Part::Ephemeral { has_init },
    );
    let phase = phase::of(view, &inits, &regular, plan.is_ending);
    let verdict = plan.verdict.as_ref().or(view.memory.verdict.as_ref());
    // What runs still has its share of the node: the end is told when it has come.
    let (phase, verdict) = match verdict.filter(|_| is_coming_down(view)) {
        Some(_) => (old.phase.as_deref().unwrap_or("Pending"), None),
        None => (phase, verdict),
    };
    let mut status = PodStatus {
        observed_generation: view.pod.metadata.generation,
        start_time: Some(Time(view.memory.start_time)),
        qos_class: Some(quality_of_service(view)),
        ..old.clone()
    };
    status.phase = Some(phase.to_owned());
    resources::of_pod(view, &old, &mut status);
    if let Some(verdict) = verdict {
        status.reason = Some(verdict.reason.clone());
        status.message = Some(verdict.message.clone());
    } else if old.phase.as_deref() != Some(phase) {
        status.reason = None;
        status.message = None;
    }
    set_addresses(view, host, &mut status);
    let mut conditions = conditions::make(view, &old, &inits, &regular, phase);
    if verdict.is_some() {
        conditions::disrupt(view, &mut conditions);
    }
    status.conditions = Some(conditions);
    status.init_container_statuses = has_init.then_some(inits);
    status.container_statuses = Some(regular);
    status.ephemeral_container_statuses = (!ephemeral.is_empty()).then_some(ephemeral);
    status
}

fn set_addresses(view: &View<'_>, host: Families<IpAddr>, status: &mut PodStatus) {
    let first = |ips: Families<IpAddr>| ips.first().map(|ip| ip.to_string());
    status.host_ip = first(host);
    let ips = host.iter().map(|ip| HostIP { ip: ip.to_string() });
    status.host_ips = Some(ips.collect());
    let is_host_network = view.spec().host_network.unwrap_or(false);
    let ips = match view.observed.sandbox() {
        Some(_) if is_host_network => host,
        _ => view.memory.ips,
    };
    if !ips.is_empty() {
        status.pod_ip = first(ips);
        let ips = ips.iter().map(|ip| PodIP { ip: ip.to_string() });
        status.pod_ips = Some(ips.collect());
    }
}

/// Of a pod that the node did not take: nothing of its containers.
fn rejected(view: &View<'_>, old: PodStatus) -> PodStatus {
    let verdict = view.memory.verdict.clone();
    PodStatus {
        phase: Some("Failed".to_owned()),
        reason: verdict.as_ref().map(|verdict| verdict.reason.clone()),
        message: verdict.map(|verdict| verdict.message),
        observed_generation: view.pod.metadata.generation,
        start_time: Some(Time(view.memory.start_time)),
        qos_class: Some(quality_of_service(view)),
        ..old
    }
}

/// The pod is to end and has containers that run or may run any moment.
fn is_coming_down(view: &View<'_>) -> bool {
    !view.is_ended() && (view.observed.running().next().is_some() || view.memory.is_starting)
}

pub fn quality_of_service(view: &View<'_>) -> String {
    asked::class(view.pod)
}

#[cfg(test)]
mod tests;
