//! What is known of one pod: what the runtime has of it, and what only the worker remembers.

use super::back_off::{BackOff, Pace};
use super::ephemeral;
use super::evict::Eviction;
use super::sizes::Kept;
use super::start::after;
use crate::families::Families;
use crate::runtime::{
    ContainerId, ContainerState, ContainerStatus, Resources, SandboxState, SandboxStatus,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// What the runtime has of a pod, dead things included.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Its name stands before the ids of containers.
    pub runtime: &'static str,
    pub sandboxes: Vec<SandboxStatus>,
    pub containers: Vec<ContainerStatus>,
}

impl Observed {
    pub fn sandbox(&self) -> Option<&SandboxStatus> {
        self.sandboxes
            .iter()
            .max_by_key(|sandbox| (sandbox.config.attempt, sandbox.created_at))
    }

    pub fn ready_sandbox(&self) -> Option<&SandboxStatus> {
        self.sandbox()
            .filter(|sandbox| sandbox.state == SandboxState::Ready)
    }

    /// All instances of a container, the newest first.
    pub fn instances(&self, name: &str) -> Vec<&ContainerStatus> {
        let mut found: Vec<_> = self
            .containers
            .iter()
            .filter(|container| container.config.name == name)
            .collect();
        found.sort_by_key(|container| (container.config.attempt, container.created_at));
        found.reverse();
        found
    }

    pub fn latest(&self, name: &str) -> Option<&ContainerStatus> {
        self.containers
            .iter()
            .filter(|container| container.config.name == name)
            .max_by_key(|container| (container.config.attempt, container.created_at))
    }

    pub fn running(&self) -> impl Iterator<Item = &ContainerStatus> {
        self.containers
            .iter()
            .filter(|container| is_alive(container))
    }

    pub fn update_sandbox(&mut self, status: SandboxStatus) {
        self.sandboxes.retain(|known| known.id != status.id);
        self.sandboxes.push(status);
    }

    pub fn update(&mut self, status: ContainerStatus) {
        match self
            .containers
            .iter_mut()
            .find(|known| known.id == status.id)
        {
            Some(known) => *known = status,
            None => self.containers.push(status),
        }
    }
}

/// Whether there is a process to kill, as far as anybody knows.
pub fn is_alive(container: &ContainerStatus) -> bool {
    matches!(
        container.state,
        ContainerState::Running | ContainerState::Unknown
    )
}

const RESTART_ALL: &str = "RestartAllContainers";

/// Why a container does not run, as its `waiting` state shows it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Waiting {
    pub reason: String,
    pub message: String,
    /// When to try again.
    pub retry_at: Timestamp,
}

/// What the probes say of a running container.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Health {
    /// None: there is no startup probe.
    pub started: Option<bool>,
    /// None: there is no readiness probe.
    pub ready: Option<bool>,
    /// The name of the probe that asks for a restart: `liveness` or `startup`.
    pub failed: Option<&'static str>,
    /// The probe's own grace for that restart.
    pub failed_grace_seconds: Option<i64>,
}

/// Why a pod ended before its containers did.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Verdict {
    pub reason: String,
    pub message: String,
}

/// How a try is repeated.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Retry {
    Soon,
    BackedOff,
    /// For what somebody else is about to do.
    Awaited,
}

const RETRY_SOON_SECONDS: i64 = 2;

/// A resize as its condition tells of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Note {
    pub reason: &'static str,
    pub message: String,
    /// Of the pod that asked for it.
    pub generation: Option<i64>,
    /// Since when it has this reason, and when it was noted.
    pub since: Timestamp,
    pub at: Timestamp,
}

/// What the pod was given and what it waits for.
#[derive(Clone, Debug, Default)]
pub struct Sizing {
    pub kept: Kept,
    /// The pod asks for other than it was given.
    pub pending: Option<Note>,
    /// The pod was given other than it has.
    pub in_progress: Option<Note>,
    /// What the pod's group and its containers have, as last looked at.
    pub of_pod: Option<Resources>,
    pub of_containers: BTreeMap<ContainerId, Resources>,
}

/// What only the worker knows; lost with the process, as upstream's is.
#[derive(Clone, Debug)]
pub struct Memory {
    pub start_time: Timestamp,
    pub waiting: BTreeMap<String, Waiting>,
    pub crashes: BTreeMap<String, BackOff>,
    pub health: BTreeMap<ContainerId, Health>,
    /// What containers wrote about their end, by container.
    pub last_words: BTreeMap<ContainerId, String>,
    pub ips: Families<IpAddr>,
    /// A task makes the sandbox.
    pub is_preparing: bool,
    /// When the next try to make the sandbox may begin.
    pub prepare_after: Option<Timestamp>,
    /// Of the tries to make the sandbox that failed.
    pub prepare_back_off: Option<BackOff>,
    /// A task starts containers.
    pub is_starting: bool,
    /// Containers being killed, and by when they are dead.
    pub killing: BTreeMap<ContainerId, Timestamp>,
    pub removing: BTreeSet<ContainerId>,
    /// The attempts of containers that were removed because all of the pod begin again.
    pub reset: BTreeMap<String, u32>,
    pub is_stopping_sandbox: bool,
    pub verdict: Option<Verdict>,
    /// The verdict was spoken before anything of the pod was made.
    pub is_rejected: bool,
    pub sizing: Sizing,
    /// Containers that were ended to be started with another size.
    pub restarting: BTreeSet<String>,
    /// A task changes sizes.
    pub is_resizing: bool,
    /// When the next try to change sizes may begin.
    pub resize_after: Option<Timestamp>,
    /// The node has taken the pod down, or is about to.
    pub eviction: Option<Arc<Eviction>>,
    /// The pod is down and its volumes are gone.
    pub is_settled: bool,
    /// A task is at that.
    pub is_settling: bool,
}

impl Memory {
    pub fn new(start_time: Timestamp) -> Self {
        Self {
            start_time,
            waiting: BTreeMap::new(),
            crashes: BTreeMap::new(),
            health: BTreeMap::new(),
            last_words: BTreeMap::new(),
            ips: Families::default(),
            is_preparing: false,
            prepare_after: None,
            prepare_back_off: None,
            is_starting: false,
            killing: BTreeMap::new(),
            removing: BTreeSet::new(),
            reset: BTreeMap::new(),
            is_stopping_sandbox: false,
            verdict: None,
            is_rejected: false,
            sizing: Sizing::default(),
            restarting: BTreeSet::new(),
            is_resizing: false,
            resize_after: None,
            eviction: None,
            is_settled: false,
            is_settling: false,
        }
    }

    pub fn prepared(&mut self, ips: Families<IpAddr>) {
        self.is_preparing = false;
        self.prepare_after = None;
        self.prepare_back_off = None;
        self.ips = ips;
    }

    /// The sandbox, or what belongs to it, could not be made. Each try costs the API server
    /// requests, except when the node's network is not there: that is looked at first.
    pub fn prepare_failed(&mut self, retry: Retry, now: Timestamp) {
        let seconds = match retry {
            Retry::Soon => RETRY_SOON_SECONDS,
            Retry::BackedOff => self.backed_off(Pace::SANDBOX, now),
            Retry::Awaited => self.backed_off(Pace::AWAITED, now),
        };
        self.is_preparing = false;
        self.prepare_after = Some(after(now, seconds));
    }

    fn backed_off(&mut self, pace: Pace, now: Timestamp) -> i64 {
        let last = self.prepare_back_off.as_ref();
        let next = BackOff::after(pace, last, now, now);
        self.prepare_back_off = Some(next);
        next.seconds
    }

    /// A container without a startup probe is started as soon as it runs.
    pub fn is_started(&self, id: &ContainerId) -> bool {
        self.health
            .get(id)
            .is_some_and(|health| health.started.unwrap_or(true))
    }
}

/// One pod, as looked at now.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    pub pod: &'a Pod,
    /// The API server has it no more.
    pub is_gone: bool,
    pub observed: &'a Observed,
    pub memory: &'a Memory,
    pub now: Timestamp,
}

static EMPTY_SPEC: std::sync::LazyLock<PodSpec> = std::sync::LazyLock::new(PodSpec::default);

impl<'a> View<'a> {
    pub fn spec(&self) -> &'a PodSpec {
        spec(self.pod)
    }

    pub fn is_deleting(&self) -> bool {
        self.is_gone || self.pod.metadata.deletion_timestamp.is_some()
    }

    /// The phase of the API server's copy is final.
    pub fn is_ended(&self) -> bool {
        has_ended(self.pod)
    }
}

/// The phase of the API server's copy is final.
pub fn has_ended(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Failed" | "Succeeded"))
}

pub fn spec(pod: &Pod) -> &PodSpec {
    pod.spec.as_ref().unwrap_or(&EMPTY_SPEC)
}

pub fn init_containers(spec: &PodSpec) -> &[Container] {
    spec.init_containers.as_deref().unwrap_or_default()
}

/// The container of that name, of whatever kind.
pub fn find<'a>(spec: &'a PodSpec, name: &str) -> Option<Cow<'a, Container>> {
    let mut all = init_containers(spec).iter().chain(&spec.containers);
    match all.find(|container| container.name == name) {
        Some(container) => Some(Cow::Borrowed(container)),
        None => ephemeral::find(spec, name).map(|found| Cow::Owned(ephemeral::as_container(found))),
    }
}

/// An init container that runs beside the others.
pub fn is_sidecar(init_container: &Container) -> bool {
    init_container.restart_policy.as_deref() == Some("Always")
}

/// What the container's own rules say of such an end: `Restart` or `RestartAllContainers`.
fn ruled(container: &Container, exit_code: i32) -> Option<&str> {
    let mut rules = container.restart_policy_rules.iter().flatten();
    let met = rules.find(|rule| {
        rule.exit_codes.as_ref().is_some_and(|codes| {
            let listed = codes.values.iter().flatten().any(|code| *code == exit_code);
            listed != (codes.operator == "NotIn")
        })
    });
    met.map(|rule| rule.action.as_str())
}

/// Whether an end so makes all containers of the pod begin again.
pub fn restarts_all(container: &Container, exit_code: i32) -> bool {
    ruled(container, exit_code) == Some(RESTART_ALL)
}

/// Whether any end of any container could.
pub fn could_restart_all(spec: &PodSpec) -> bool {
    let mut all = init_containers(spec).iter().chain(&spec.containers);
    all.any(|container| {
        let mut rules = container.restart_policy_rules.iter().flatten();
        rules.any(|rule| rule.action == RESTART_ALL)
    })
}

/// Whether a container that ended so is started again.
pub fn restarts(container: &Container, spec: &PodSpec, exit_code: i32) -> bool {
    // Any other action leaves it to the policies.
    if matches!(ruled(container, exit_code), Some("Restart" | RESTART_ALL)) {
        return true;
    }
    let policy = container.restart_policy.as_deref();
    let policy = policy
        .or(spec.restart_policy.as_deref())
        .unwrap_or("Always");
    match policy {
        "Never" => false,
        "OnFailure" => exit_code != 0,
        _ => true,
    }
}

/// `name_namespace(uid)`, as upstream writes a pod in messages.
pub fn full_name(pod: &Pod) -> String {
    let meta = &pod.metadata;
    format!(
        "{}_{}({})",
        meta.name.as_deref().unwrap_or_default(),
        meta.namespace.as_deref().unwrap_or_default(),
        meta.uid.as_deref().unwrap_or_default(),
    )
}
