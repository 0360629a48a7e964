//! Turns the actions of a plan into tasks.

use super::super::back_off::{BackOff, Pace};
use super::super::plan::{Action, Kill, Plan, Start};
use super::super::start::{Round, start_all};
use super::super::take_down::TakeDownError;
use super::super::{kill, prepare, rotate, start, status};
use super::{Update, Worker};
use crate::runtime::{ContainerId, SandboxId};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Before the next try to take a sandbox off its network: plugins may be waiting for something.
const DETACH_RETRY: Duration = Duration::from_secs(5);
/// Before the next try to stop it.
const STOP_RETRY: Duration = Duration::from_secs(1);

impl Worker {
    pub(super) fn act(&mut self, plan: Plan) {
        if plan.is_ending {
            self.halt.cancel();
        }
        for action in plan.actions {
            match action {
                Action::Prepare { attempt, sandbox } => self.prepare(attempt, sandbox),
                Action::Start(starts) => self.start(starts),
                Action::Kill(kill) => self.kill(kill),
                Action::Resize(targets) => self.resize(targets),
                Action::Remove(id) => self.remove(id, false),
                Action::Reset(id) => self.remove(id, true),
                Action::StopSandbox(id) => self.stop_sandbox(id),
            }
        }
    }

    fn prepare(&mut self, attempt: u32, sandbox: Option<SandboxId>) {
        self.memory.is_preparing = true;
        let (context, pod) = (self.context.clone(), self.pod.clone());
        let updates = self.updates.0.clone();
        let quality = status::quality_of_service(&self.view());
        self.save_sizes();
        let halt = self.fresh_halt();
        self.tasks.spawn(async move {
            let update = prepare::prepare(&context, &pod, attempt, sandbox, &quality, &halt).await;
            let _ = updates.send(update).await;
        });
    }

    fn start(&mut self, starts: Vec<Start>) {
        let Some(sandbox) = self.observed.ready_sandbox() else {
            return;
        };
        let sandbox = sandbox.id.clone();
        let now = self.context.clock.now();
        for start in &starts {
            if let Some(ended) = start.ended_at {
                let last = self.memory.crashes.get(&start.name);
                let next = BackOff::after(Pace::CONTAINER, last, ended, now);
                self.memory.crashes.insert(start.name.clone(), next);
            }
        }
        self.memory.is_starting = true;
        let halt = self.fresh_halt();
        let round = Round {
            context: self.context.clone(),
            pod: self.pod.clone(),
            sandbox,
            ips: self.memory.ips,
            halt,
            updates: self.updates.0.clone(),
        };
        self.tasks.spawn(start_all(round, starts));
    }

    /// Ends what is begun now, when no container is to be started any more.
    fn fresh_halt(&mut self) -> CancellationToken {
        if self.halt.is_cancelled() {
            self.halt = self.stop.child_token();
        }
        self.halt.clone()
    }

    fn kill(&mut self, kill: Kill) {
        let dead_by = start::after(self.context.clock.now(), kill.grace_seconds);
        self.memory.killing.insert(kill.id.clone(), dead_by);
        if kill.is_for_resize {
            self.memory.restarting.insert(kill.name.clone());
        }
        self.probes.ending(&kill.id);
        let (context, pod) = (self.context.clone(), self.pod.clone());
        let updates = self.updates.0.clone();
        let ip = self.memory.ips.first();
        self.tasks
            .spawn(kill::kill(context, pod, kill, ip, updates));
    }

    /// The last log of a container that begins again stays; those before it have had their time.
    fn remove(&mut self, id: ContainerId, begins_again: bool) {
        self.memory.removing.insert(id.clone());
        let mut containers = self.observed.containers.iter();
        let config = containers.find(|one| one.id == id).map(|one| &one.config);
        let log = config.and_then(|config| match begins_again {
            false => Some(config.log_path.clone()),
            true => {
                let reset = &mut self.memory.reset;
                let attempt = reset.entry(config.name.clone()).or_default();
                *attempt = config.attempt.max(*attempt);
                let before = config.attempt.checked_sub(1)?;
                Some(config.log_path.with_file_name(format!("{before}.log")))
            }
        });
        let (context, updates) = (self.context.clone(), self.updates.0.clone());
        self.tasks.spawn(async move {
            match context.runtime.remove_container(&id).await {
                Ok(()) => {
                    if let Some(log) = log {
                        rotate::remove(&log);
                    }
                    let _ = updates.send(Update::Removed(id)).await;
                }
                // Stays in `removing`: tried again when the worker is made again.
                Err(error) => tracing::warn!(container = %id, %error, "cannot remove a container"),
            }
        });
    }

    fn stop_sandbox(&mut self, id: SandboxId) {
        self.memory.is_stopping_sandbox = true;
        let context = Arc::clone(&self.context);
        let (pod, updates) = (self.pod.clone(), self.updates.0.clone());
        self.tasks.spawn(async move {
            let stopped = context.stop_sandbox(&id).await;
            if let Err(error) = &stopped {
                let pause = match error {
                    TakeDownError::Network(_) => DETACH_RETRY,
                    TakeDownError::Runtime(_) => STOP_RETRY,
                };
                let error = error.told(&context, &pod);
                tracing::warn!(sandbox = %id, error, "cannot stop a sandbox");
                tokio::time::sleep(pause).await;
            }
            let update = Update::SandboxStopped(id, stopped.is_ok());
            let _ = updates.send(update).await;
        });
    }
}
