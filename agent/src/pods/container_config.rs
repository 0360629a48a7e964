//! From a container of a pod to what the runtime is asked to run. Pure.

use super::asked;
use super::environment::expand;
use super::sizes::{self, amount};
use super::{admission, groups, state};
use crate::network::policy::named_port;
use crate::runtime::{ContainerConfig, HostPort, Propagation, Resources, SandboxConfig};
use coracle_api::quantity::Quantity;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, ResourceRequirements};
use std::collections::BTreeMap;

/// Upstream's CFS period.
const CPU_PERIOD_US: u64 = 100_000;
/// The kernel takes no smaller quota.
const CPU_QUOTA_US_MIN: i64 = 1000;
const CPU_SHARES_MIN: u64 = 2;
const CPU_SHARES_MAX: u64 = 262_144;

/// All but security, mounts, log and image, which the caller has.
pub fn container(
    pod: &Pod,
    container: &Container,
    attempt: u32,
    env: Vec<(String, String)>,
    memory_capacity_bytes: i64,
) -> ContainerConfig {
    let lookup = |name: &str| {
        let found = env.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone())
    };
    let expanded = |texts: &Option<Vec<String>>| -> Vec<String> {
        let texts = texts.iter().flatten();
        texts.map(|text| expand(text, lookup)).collect()
    };
    ContainerConfig {
        name: container.name.clone(),
        attempt,
        command: expanded(&container.command),
        args: expanded(&container.args),
        working_dir: container.working_dir.clone().unwrap_or_default(),
        tty: container.tty.unwrap_or(false),
        stdin: container.stdin.unwrap_or(false),
        stdin_once: container.stdin_once.unwrap_or(false),
        resources: resources(pod, container, memory_capacity_bytes),
        stop_signal: container
            .lifecycle
            .as_ref()
            .and_then(|lifecycle| lifecycle.stop_signal.clone())
            .unwrap_or_default(),
        labels: labels(pod, Some(&container.name)),
        annotations: annotations(pod, container, attempt),
        env,
        ..ContainerConfig::default()
    }
}

pub fn sandbox(pod: &Pod, attempt: u32, hostname: String, quality: &str) -> SandboxConfig {
    let spec = state::spec(pod);
    let meta = &pod.metadata;
    let uid = meta.uid.clone().unwrap_or_default();
    let security = spec.security_context.as_ref();
    let sysctls = security.and_then(|context| context.sysctls.as_ref());
    SandboxConfig {
        pod_name: meta.name.clone().unwrap_or_default(),
        pod_namespace: meta.namespace.clone().unwrap_or_default(),
        cgroup: groups::of_pod(&uid, quality),
        pod_uid: uid,
        attempt,
        hostname,
        host_network: spec.host_network.unwrap_or(false),
        host_pid: spec.host_pid.unwrap_or(false),
        shared_pid: spec.share_process_namespace.unwrap_or(false) && spec.host_pid != Some(true),
        host_ipc: spec.host_ipc.unwrap_or(false),
        sysctls: sysctls
            .into_iter()
            .flatten()
            .map(|sysctl| (admission::dotted(&sysctl.name), sysctl.value.clone()))
            .collect(),
        resources: pod_resources(pod, quality),
        has_privileged: all_containers(spec).any(|container| {
            let security = container.security_context.as_ref();
            security.and_then(|security| security.privileged) == Some(true)
        }),
        ports: all_containers(spec).flat_map(host_ports).collect(),
        named_ports: lasting_containers(spec)
            .flat_map(|container| container.ports.iter().flatten())
            .filter_map(named_port)
            .collect(),
        labels: {
            let mut all = meta.labels.clone().unwrap_or_default();
            all.extend(labels(pod, None));
            all
        },
        annotations: meta.annotations.clone().unwrap_or_default(),
        ..SandboxConfig::default()
    }
}

fn all_containers(spec: &PodSpec) -> impl Iterator<Item = &Container> {
    state::init_containers(spec).iter().chain(&spec.containers)
}

fn lasting_containers(spec: &PodSpec) -> impl Iterator<Item = &Container> {
    let beside = state::init_containers(spec).iter();
    let beside = beside.filter(|one| state::is_sidecar(one));
    beside.chain(&spec.containers)
}

fn host_ports(container: &Container) -> impl Iterator<Item = HostPort> {
    let ports = container.ports.iter().flatten();
    ports.filter_map(|port| {
        let host_port = port.host_port.filter(|port| *port > 0)?;
        Some(HostPort {
            protocol: port.protocol.clone().unwrap_or_default(),
            container_port: port.container_port,
            host_port,
            host_ip: port.host_ip.clone().unwrap_or_default(),
        })
    })
}

/// What the kubelet notes of a container, for people and tools who look at the runtime.
fn annotations(pod: &Pod, container: &Container, attempt: u32) -> BTreeMap<String, String> {
    let path = container.termination_message_path.clone();
    let policy = container.termination_message_policy.clone();
    let grace = state::spec(pod).termination_grace_period_seconds;
    let notes = [
        ("container.restartCount", Some(attempt.to_string())),
        ("container.terminationMessagePath", path),
        ("container.terminationMessagePolicy", policy),
        (
            "pod.terminationGracePeriod",
            grace.map(|grace| grace.to_string()),
        ),
    ];
    let notes = notes
        .into_iter()
        .filter_map(|(key, value)| Some((format!("io.kubernetes.{key}"), value?)));
    notes.collect()
}

fn labels(pod: &Pod, container: Option<&str>) -> BTreeMap<String, String> {
    let meta = &pod.metadata;
    let mut labels = BTreeMap::new();
    let mut add = |key: &str, value: Option<&str>| {
        if let Some(value) = value {
            labels.insert(format!("io.kubernetes.{key}"), value.to_owned());
        }
    };
    add("pod.name", meta.name.as_deref());
    add("pod.namespace", meta.namespace.as_deref());
    add("pod.uid", meta.uid.as_deref());
    add("container.name", container);
    labels
}

fn limit(resources: Option<&ResourceRequirements>, name: &str) -> Option<Quantity> {
    amount(resources?.limits.as_ref(), name).filter(|amount| !amount.is_zero())
}

/// What was requested, or the limit where only that was given.
fn request(resources: Option<&ResourceRequirements>, name: &str) -> Option<Quantity> {
    let requested = amount(resources?.requests.as_ref(), name);
    requested.or_else(|| limit(resources, name))
}

pub fn shares(milli: i64) -> u64 {
    let milli = u64::try_from(milli).unwrap_or(0);
    (milli * 1024 / 1000).clamp(CPU_SHARES_MIN, CPU_SHARES_MAX)
}

fn quota_us(milli: i64) -> i64 {
    let period = i64::try_from(CPU_PERIOD_US).unwrap_or(i64::MAX);
    (milli * period / 1000).max(CPU_QUOTA_US_MIN)
}

/// A container without a limit of its own is bounded by its pod's.
pub fn resources(pod: &Pod, container: &Container, memory_capacity_bytes: i64) -> Resources {
    let asked = container.resources.as_ref();
    let of_pod = state::spec(pod).resources.as_ref();
    let bound = |name: &str| limit(asked, name).or_else(|| limit(of_pod, name));
    let mut resources = Resources {
        cpu_shares: shares(request(asked, "cpu").map_or(0, |cpu| cpu.milli_value())),
        memory_limit_bytes: bound("memory").map_or(0, |memory| memory.value()),
        oom_score_adj: Some(oom_score_adj(pod, container, memory_capacity_bytes)),
        ..Resources::default()
    };
    if let Some(cpu) = bound("cpu") {
        resources.cpu_period_us = CPU_PERIOD_US;
        resources.cpu_quota_us = quota_us(cpu.milli_value());
    }
    resources
}

/// Limits apply to a pod only when it has its own, or all its containers have them.
pub fn pod_resources(pod: &Pod, quality: &str) -> Resources {
    let mut resources = Resources {
        cpu_shares: shares(sizes::requests(pod).cpu_milli),
        ..Resources::default()
    };
    if quality == "BestEffort" {
        resources.cpu_shares = CPU_SHARES_MIN;
        return resources;
    }
    if let Some(cpu) = asked::limit(pod, "cpu") {
        resources.cpu_period_us = CPU_PERIOD_US;
        resources.cpu_quota_us = quota_us(cpu.milli_value());
    }
    let memory = asked::limit(pod, "memory");
    resources.memory_limit_bytes = memory.map_or(0, |memory| memory.value());
    resources
}

/// Who goes first when memory runs out; the numbers are upstream's.
fn oom_score_adj(pod: &Pod, container: &Container, memory_capacity_bytes: i64) -> i32 {
    let status = pod.status.as_ref();
    match status.and_then(|status| status.qos_class.as_deref()) {
        Some("Guaranteed") => return -997,
        Some("BestEffort") => return 1000,
        _ => {}
    }
    let spec = state::spec(pod);
    if spec.priority_class_name.as_deref() == Some("system-node-critical") {
        return -997;
    }
    let requested = request(container.resources.as_ref(), "memory");
    let requested = requested.map_or(0, |memory| memory.value());
    let share = i128::from(requested) * 1000 / i128::from(memory_capacity_bytes.max(1));
    let score = 1000 - i32::try_from(share).unwrap_or(1000);
    score.clamp(3, 999)
}

pub fn propagation(mode: Option<&str>) -> Propagation {
    match mode {
        Some("HostToContainer") => Propagation::HostToContainer,
        Some("Bidirectional") => Propagation::Bidirectional,
        _ => Propagation::Private,
    }
}

#[cfg(test)]
mod tests;
