//! One pod's worker: looks, plans, reports, acts, and waits for something to happen.
//!
//! The only owner of the pod's memory. Everything that takes time is a task that sends an
//! `Update`; the worker itself never waits for a pull, a grace or the API server. It ends when
//! the pod is gone from node and API server, or when the agent stops; containers run on then.

mod act;
mod finish;
mod size;

use super::context::Context;
use super::evict::Eviction;
use super::manifest::is_static;
use super::plan::{Plan, plan};
use super::probe::Probes;
use super::report::Reporter;
use super::sizes::Kept;
use super::state::{Health, Memory, Observed, Retry, Verdict, View, Waiting, full_name};
use super::{last_words, prepare, status};
use crate::families::Families;
use crate::runtime::{
    ContainerId, ContainerState, ContainerStatus, RuntimeError, SandboxId, SandboxState,
    SandboxStatus,
};
use coracle_client::clock::seconds;
use coracle_client::events::EventType;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, ResourceRequirements};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Updates that wait for the worker; a sender waits when there are more.
const UPDATES_MAX: usize = 64;
/// A second look at everything, in case an event was lost.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// What is to run.
#[derive(Clone, Debug)]
pub struct Desired {
    /// As the API server has it; a static pod as its file has it.
    pub pod: Arc<Pod>,
    pub is_gone: bool,
    /// The node wants it to end.
    pub eviction: Option<Arc<Eviction>>,
    /// What the API server has of a static pod.
    pub mirror: Option<Arc<Pod>>,
}

impl Desired {
    pub fn of(pod: Arc<Pod>) -> Self {
        Self {
            pod,
            is_gone: false,
            mirror: None,
            eviction: None,
        }
    }

    /// The API server's object; None for a static pod that it does not have.
    pub fn shown(&self) -> Option<&Arc<Pod>> {
        match is_static(&self.pod) {
            true => self.mirror.as_ref(),
            false => Some(&self.pod),
        }
    }
}

/// What tasks tell the worker.
#[derive(Clone, Debug)]
pub enum Update {
    Container(Box<ContainerStatus>),
    Removed(ContainerId),
    Prepared(Box<SandboxStatus>, Families<IpAddr>),
    /// With the sandbox that is there nevertheless.
    PrepareFailed(Retry, Option<Box<SandboxStatus>>),
    Started(String),
    Waits(String, Waiting),
    StartsDone,
    /// The try is over; the container's status says whether it worked.
    Killed(ContainerId),
    SandboxStopped(SandboxId, bool),
    /// Nothing is left of an ended pod but what can be looked at.
    Settled,
    Health(ContainerId, Health),
    /// A container was made with these resources.
    Sized(String, ResourceRequirements),
    /// Sizes were changed to those of `pod`, or not.
    Resized {
        containers: Vec<String>,
        result: Result<(), String>,
        pod: Arc<Pod>,
    },
}

#[derive(Debug)]
pub struct Worker {
    context: Arc<Context>,
    desired: watch::Receiver<Desired>,
    wake: Arc<Notify>,
    stop: CancellationToken,
    /// As the API server has it.
    wanted: Arc<Pod>,
    /// The same with the sizes that it was given.
    pod: Arc<Pod>,
    is_gone: bool,
    observed: Observed,
    memory: Memory,
    tasks: JoinSet<()>,
    updates: (mpsc::Sender<Update>, mpsc::Receiver<Update>),
    reporter: Reporter,
    probes: Probes,
    /// Ends the round of starts that is under way.
    halt: CancellationToken,
}

impl Worker {
    /// `observed` is what the runtime has of the pod from before, `refused` why the node does not
    /// take it.
    pub fn new(
        context: Arc<Context>,
        desired: watch::Receiver<Desired>,
        wake: Arc<Notify>,
        stop: CancellationToken,
        observed: Observed,
        refused: Option<Verdict>,
    ) -> Self {
        let Desired {
            pod,
            is_gone,
            eviction,
            ..
        } = desired.borrow().clone();
        let status = pod.status.as_ref();
        let started = status.and_then(|status| status.start_time.as_ref());
        let started = started.map_or_else(|| seconds(context.clock.now()), |time| time.0);
        let mut memory = Memory::new(started);
        memory.eviction = eviction;
        memory.ips = observed
            .ready_sandbox()
            .filter(|_| prepare::is_complete(&context.pod_directory(&pod)))
            .map(|sandbox| context.network.addresses_of(sandbox))
            .unwrap_or_default();
        memory.is_rejected = refused.is_some();
        memory.verdict = refused;
        let kept = Kept::load(&context.pod_directory(&pod));
        memory.sizing = size::remembered(kept, &pod);
        let updates = mpsc::channel(UPDATES_MAX);
        Self {
            reporter: Reporter::new(context.client.clone(), desired.clone()),
            probes: Probes::new(context.clone(), updates.0.clone()),
            halt: stop.child_token(),
            tasks: JoinSet::new(),
            context,
            desired,
            wake,
            stop,
            wanted: pod.clone(),
            pod,
            is_gone,
            observed,
            memory,
            updates,
        }
    }

    pub async fn run(mut self) {
        if !self.memory.is_rejected {
            self.enter_ledger();
            self.settle_size();
        }
        loop {
            if self.memory.sizing.pending.is_some() {
                self.settle_size();
            }
            self.refresh().await;
            let plan = self.look();
            if plan.is_down && (self.is_gone || self.pod.metadata.deletion_timestamp.is_some()) {
                let stop = self.stop.clone();
                tokio::select! {
                    () = self.finish(&plan) => {}
                    () = stop.cancelled() => {}
                }
                return;
            }
            if plan.is_down {
                self.settle();
            }
            let wake_at = plan.wake_at;
            self.act(plan);
            if !self.wait(wake_at).await {
                return;
            }
        }
    }

    /// False when the agent stops.
    async fn wait(&mut self, wake_at: Option<Timestamp>) -> bool {
        let now = self.context.clock.now();
        let pause = wake_at.map_or(LOOK_EVERY, |at| {
            let until = at.duration_since(now);
            Duration::try_from(until)
                .unwrap_or_default()
                .min(LOOK_EVERY)
        });
        tokio::select! {
            biased;
            () = self.stop.cancelled() => return false,
            changed = self.desired.changed() => {
                if changed.is_err() {
                    return false;
                }
                let desired = self.desired.borrow_and_update().clone();
                self.wanted = desired.pod;
                self.is_gone = desired.is_gone;
                self.settle_size();
                self.memory.eviction = desired.eviction;
            }
            Some(update) = self.updates.1.recv() => self.note(update),
            () = self.wake.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
        // What came at the same time is one look.
        while let Ok(update) = self.updates.1.try_recv() {
            self.note(update);
        }
        while self.tasks.try_join_next().is_some() {}
        true
    }

    fn note(&mut self, update: Update) {
        let memory = &mut self.memory;
        match update {
            Update::Container(status) => self.observed.update(*status),
            Update::Removed(id) => {
                self.observed.containers.retain(|known| known.id != id);
                memory.removing.remove(&id);
                memory.health.remove(&id);
                memory.last_words.remove(&id);
            }
            Update::Prepared(sandbox, ips) => {
                memory.prepared(ips);
                self.observed.update_sandbox(*sandbox);
            }
            Update::PrepareFailed(retry, sandbox) => {
                memory.prepare_failed(retry, self.context.clock.now());
                if let Some(sandbox) = sandbox {
                    // They were those of a sandbox before it.
                    memory.ips = Families::default();
                    self.observed.update_sandbox(*sandbox);
                }
            }
            Update::Started(name) => {
                memory.waiting.remove(&name);
            }
            Update::Waits(name, waiting) => {
                memory.waiting.insert(name, waiting);
            }
            Update::StartsDone => memory.is_starting = false,
            Update::Killed(id) => {
                memory.killing.remove(&id);
            }
            Update::SandboxStopped(id, is_down) => {
                memory.is_stopping_sandbox = false;
                let known = self.observed.sandboxes.iter_mut();
                if let Some(known) = known.filter(|_| is_down).find(|known| known.id == id) {
                    known.state = SandboxState::NotReady;
                }
            }
            Update::Settled => memory.is_settled = true,
            Update::Health(id, health) => {
                if let Some(known) = memory.health.get_mut(&id) {
                    *known = health;
                }
            }
            Update::Sized(name, size) => self.note_size(&name, &size),
            Update::Resized {
                containers,
                result,
                pod,
            } => self.note_resized(&containers, result, &pod),
        }
    }

    /// Asks the runtime about what may have changed: containers that were not known to be dead.
    async fn refresh(&mut self) {
        let open: Vec<_> = self
            .observed
            .containers
            .iter()
            .filter(|container| container.state != ContainerState::Exited)
            .map(|container| container.id.clone())
            .collect();
        for id in open {
            match self.context.runtime.container_status(&id).await {
                Ok(status) => self.observed.update(status),
                Err(RuntimeError::NotFound { .. }) => {
                    self.observed.containers.retain(|known| known.id != id);
                }
                Err(error) => tracing::warn!(container = %id, %error, "cannot look at a container"),
            }
        }
        self.refresh_sandboxes().await;
        self.read_last_words().await;
        self.read_sizes().await;
        self.watch_health();
    }

    /// A sandbox that has a process of its own may lose it.
    async fn refresh_sandboxes(&mut self) {
        for sandbox in &mut self.observed.sandboxes {
            let has_process =
                sandbox.config.shared_pid || self.context.runtime.has_sandbox_processes();
            if sandbox.state != SandboxState::Ready || !has_process {
                continue;
            }
            match self.context.runtime.sandbox_status(&sandbox.id).await {
                Ok(status) => *sandbox = status,
                // Somebody removed it. It may have an address.
                Err(RuntimeError::NotFound { .. }) => sandbox.state = SandboxState::NotReady,
                Err(error) => {
                    tracing::warn!(sandbox = %sandbox.id, %error, "cannot look at a sandbox");
                }
            }
        }
    }

    async fn read_last_words(&mut self) {
        for container in &self.observed.containers {
            let is_new = container.state == ContainerState::Exited
                && !self.memory.last_words.contains_key(&container.id);
            if is_new {
                let words = last_words::read(&self.context, &self.pod, container).await;
                self.memory.last_words.insert(container.id.clone(), words);
            }
        }
    }

    /// Probes what runs, and nothing else.
    fn watch_health(&mut self) {
        for container in &self.observed.containers {
            let id = &container.id;
            if container.state != ContainerState::Running {
                self.probes.end(id);
            } else if !self.memory.health.contains_key(id) {
                let ip = self.memory.ips.first();
                let health = self.probes.begin(&self.pod, container, ip);
                self.memory.health.insert(id.clone(), health);
            }
        }
    }

    /// Plans, remembers what was decided, and reports the status that follows.
    fn look(&mut self) -> Plan {
        let plan = plan(&self.view());
        if let Some(verdict) = &plan.verdict {
            // Who evicts a pod says so.
            if self.memory.eviction.is_none() {
                let (type_, message) = (EventType::Normal, verdict.message.clone());
                self.context
                    .event(&self.pod, type_, &verdict.reason, message);
            }
            self.memory.verdict = Some(verdict.clone());
        }
        for (name, waiting) in &plan.waiting {
            self.tell_back_off(name);
            self.memory.waiting.insert(name.clone(), waiting.clone());
        }
        self.follow_resize();
        let view = self.view();
        if view.is_ended() || plan.is_down {
            let uid = self.pod.metadata.uid.as_deref().unwrap_or_default();
            self.context.ledger.release(uid);
        }
        let status = status::make(&view, &plan, self.context.host.all());
        self.reporter.report(status);
        plan
    }

    fn view(&self) -> View<'_> {
        View {
            pod: &self.pod,
            is_gone: self.is_gone,
            observed: &self.observed,
            memory: &self.memory,
            now: self.context.clock.now(),
        }
    }

    fn tell_back_off(&self, name: &str) {
        let full = full_name(&self.pod);
        let message = format!("Back-off restarting failed container {name} in pod {full}");
        let type_ = EventType::Warning;
        self.context
            .container_event(&self.pod, name, type_, "BackOff", message);
    }
}

#[cfg(test)]
mod tests;
