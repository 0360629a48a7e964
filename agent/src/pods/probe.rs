//! Startup, readiness and liveness probes: one task a running container and probe.
//!
//! Counting is pure (`count`); what a probe asks is in `ask`. Liveness and readiness wait until
//! the startup probe has succeeded. Readiness is asked until the container is gone, the others until
//! it is to end. A probe that changes nothing says nothing.

mod ask;
mod count;
mod grpc;
mod tally; // What probes answered, counted.

pub use tally::Tallies;

use super::context::Context;
use super::state::{self, Health, spec};
use super::worker::Update;
use crate::runtime::{ContainerId, ContainerStatus};
use ask::Answer;
use coracle_client::events::EventType;
use count::{Count, Outcome};
use k8s_openapi::api::core::v1::{Container, Pod, Probe};
use parking_lot::Mutex;
use rand::RngExt;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Startup,
    Readiness,
    Liveness,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Readiness => "readiness",
            Self::Liveness => "liveness",
        }
    }

    /// As messages begin.
    fn title(self) -> &'static str {
        match self {
            Self::Startup => "Startup",
            Self::Readiness => "Readiness",
            Self::Liveness => "Liveness",
        }
    }
}

/// The probes of one pod. Dropping it ends them.
#[derive(Debug)]
pub struct Probes {
    context: Arc<Context>,
    updates: mpsc::Sender<Update>,
    running: HashMap<ContainerId, Running>,
}

/// Dropping a guard ends the probes behind it.
#[derive(Debug)]
struct Running {
    _readiness: DropGuard,
    /// Startup and liveness, until the container is asked to end.
    others: Option<DropGuard>,
}

/// One probe of one container.
struct Task {
    kind: Kind,
    probe: Probe,
    context: Arc<Context>,
    pod: Arc<Pod>,
    container: Container,
    id: ContainerId,
    ip: IpAddr,
    health: Arc<Mutex<Health>>,
    /// The container runs from before this agent.
    is_adopted: bool,
    /// True once the startup probe has succeeded.
    started: watch::Sender<bool>,
    updates: mpsc::Sender<Update>,
}

impl Probes {
    pub fn new(context: Arc<Context>, updates: mpsc::Sender<Update>) -> Self {
        Self {
            context,
            updates,
            running: HashMap::new(),
        }
    }

    /// Begins to probe a container that runs and says what holds until the first answer. One
    /// adopted from a former agent keeps what the API server was told of it.
    pub fn begin(
        &mut self,
        pod: &Arc<Pod>,
        status: &ContainerStatus,
        ip: Option<IpAddr>,
    ) -> Health {
        let spec = spec(pod);
        let name = &status.config.name;
        let Some(container) = state::find(spec, name) else {
            return Health::default();
        };
        let runtime = self.context.runtime.name();
        let known = reported(pod, runtime, &status.id);
        let health = Health {
            started: container
                .startup_probe
                .as_ref()
                .map(|_| known.is_some_and(|known| known.0)),
            ready: container
                .readiness_probe
                .as_ref()
                .map(|_| known.is_some_and(|known| known.1)),
            ..Health::default()
        };
        let (until_gone, until_ending) = (CancellationToken::new(), CancellationToken::new());
        let shared = Arc::new(Mutex::new(health.clone()));
        let started = watch::Sender::new(health.started.unwrap_or(true));
        let probes = [
            (Kind::Startup, &container.startup_probe),
            (Kind::Readiness, &container.readiness_probe),
            (Kind::Liveness, &container.liveness_probe),
        ];
        for (kind, probe) in probes {
            let Some(probe) = probe else { continue };
            let task = Task {
                kind,
                probe: probe.clone(),
                context: self.context.clone(),
                pod: pod.clone(),
                container: container.as_ref().clone(),
                id: status.id.clone(),
                ip: ip.unwrap_or_else(|| self.context.host.first()),
                health: shared.clone(),
                is_adopted: known.is_some(),
                started: started.clone(),
                updates: self.updates.clone(),
            };
            let stop = match kind {
                Kind::Readiness => until_gone.clone(),
                Kind::Startup | Kind::Liveness => until_ending.clone(),
            };
            tokio::spawn(async move {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = task.run() => {}
                }
            });
        }
        let running = Running {
            _readiness: until_gone.drop_guard(),
            others: Some(until_ending.drop_guard()),
        };
        self.running.insert(status.id.clone(), running);
        health
    }

    /// The container is asked to end. Nobody minds any more whether it lives, but until it is gone
    /// it may say that it takes no more work.
    pub fn ending(&mut self, id: &ContainerId) {
        if let Some(running) = self.running.get_mut(id) {
            running.others = None;
        }
    }

    pub fn end(&mut self, id: &ContainerId) {
        self.running.remove(id);
    }

    pub fn end_all(&mut self) {
        self.running.clear();
    }
}

/// Started and ready, as the API server has them of this very container.
fn reported(pod: &Pod, runtime: &str, id: &ContainerId) -> Option<(bool, bool)> {
    let status = pod.status.as_ref()?;
    let own = format!("{runtime}://{id}");
    let regular = status.container_statuses.iter().flatten();
    let mut all = regular.chain(status.init_container_statuses.iter().flatten());
    let known = all.find(|known| known.container_id.as_ref() == Some(&own))?;
    Some((known.started.unwrap_or(false), known.ready))
}

fn seconds(value: Option<i32>, default: u64) -> Duration {
    let value = value.and_then(|value| u64::try_from(value).ok());
    Duration::from_secs(value.filter(|value| *value > 0).unwrap_or(default))
}

impl Task {
    async fn run(self) {
        if self.kind != Kind::Startup {
            let mut started = self.started.subscribe();
            if started.wait_for(|started| *started).await.is_err() {
                return;
            }
        }
        let delay = u64::try_from(self.probe.initial_delay_seconds.unwrap_or(0)).unwrap_or(0);
        tokio::time::sleep(Duration::from_secs(delay)).await;
        let period = seconds(self.probe.period_seconds, 10);
        if self.is_adopted {
            // Not all containers of a node at once when the agent starts.
            let share = rand::rng().random_range(0.0..1.0);
            tokio::time::sleep(period.mul_f64(share)).await;
        }
        let mut count = Count::new(
            self.probe.success_threshold.unwrap_or(1),
            self.probe.failure_threshold.unwrap_or(3),
        );
        let tallies = &self.context.tallies;
        let tally = tallies.of(&self.pod, &self.container.name, self.kind);
        loop {
            let begun = self.context.clock.monotonic();
            let answer = self.ask().await;
            tally.add(&answer, begun.elapsed());
            if let Answer::Failure(message) = &answer {
                self.tell(message);
            }
            let is_success = !matches!(answer, Answer::Failure(_));
            let ends = match count.add(is_success) {
                Some(outcome) => self.apply(outcome).await,
                None => false,
            };
            if ends {
                return;
            }
            tokio::time::sleep(period).await;
        }
    }

    async fn ask(&self) -> Answer {
        let bound = seconds(self.probe.timeout_seconds, 1);
        ask::ask(
            &self.context,
            &self.probe,
            &self.container,
            &self.id,
            self.ip,
            bound,
        )
        .await
    }

    fn tell(&self, message: &str) {
        let message = format!("{} probe failed: {message}", self.kind.title());
        let (name, type_) = (&self.container.name, EventType::Warning);
        self.context
            .container_event(&self.pod, name, type_, "Unhealthy", message);
    }

    /// True when the probe has done its work.
    async fn apply(&self, outcome: Outcome) -> bool {
        let is_success = outcome == Outcome::Success;
        let (update, ends) = {
            let mut health = self.health.lock();
            let before = health.clone();
            match self.kind {
                Kind::Readiness => health.ready = Some(is_success),
                Kind::Startup if is_success => health.started = Some(true),
                Kind::Startup | Kind::Liveness if !is_success => {
                    health.failed = Some(self.kind.name());
                    health.failed_grace_seconds = self.probe.termination_grace_period_seconds;
                }
                _ => {}
            }
            let ends = match self.kind {
                Kind::Readiness => false,
                Kind::Startup => true,
                Kind::Liveness => !is_success,
            };
            ((*health != before).then(|| health.clone()), ends)
        };
        if let Some(health) = update {
            let _ = self
                .updates
                .send(Update::Health(self.id.clone(), health))
                .await;
        }
        if self.kind == Kind::Startup && is_success {
            self.started.send_replace(true);
        }
        ends
    }
}

#[cfg(test)]
mod tests;
