//! Gives running containers and their pod the sizes that were allocated, in upstream's order: a
//! pod grows before its containers and shrinks after them; memory first, then cpu.

mod order; // Pure. Start reading here.

use super::container_config;
use super::context::Context;
use super::sizes::{amount, same_one};
use super::worker::Update;
use crate::error::chain;
use crate::runtime::{ContainerId, Limits, Resources, RuntimeError, SandboxId};
use k8s_openapi::api::core::v1::{Container, Pod, ResourceRequirements};
use order::{Part, Resource, Step};
use std::sync::Arc;
use tokio::sync::mpsc;

/// One running container that has other than its size.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Target {
    pub id: ContainerId,
    pub name: String,
}

/// A container with what it has and what it is to have.
struct Change<'a> {
    id: &'a ContainerId,
    container: &'a Container,
    has: &'a ResourceRequirements,
    wanted: Resources,
}

/// What a try has to know.
#[derive(Clone, Debug)]
pub struct Try {
    pub context: Arc<Context>,
    /// With the sizes that were allocated.
    pub pod: Arc<Pod>,
    pub sandbox: SandboxId,
    pub quality: String,
    pub targets: Vec<(Target, ResourceRequirements)>,
    pub updates: mpsc::Sender<Update>,
}

pub async fn resize(this: Try) {
    let result = this.run().await;
    let names = this.targets.iter().map(|(target, _)| target.name.clone());
    let update = Update::Resized {
        containers: names.collect(),
        result,
        pod: this.pod.clone(),
    };
    // The worker is gone when nobody listens; the next one does it again.
    let _ = this.updates.send(update).await;
}

impl Try {
    async fn run(&self) -> Result<(), String> {
        let runtime = &self.context.runtime;
        let failed = |error: RuntimeError| chain(&error);
        let now = runtime
            .sandbox_limits(&self.sandbox)
            .await
            .map_err(failed)?;
        let wanted = container_config::pod_resources(&self.pod, &self.quality);
        let changes = self.changes();
        self.check_memory(&now, &wanted, &changes).await?;
        let steps = order::steps(&now.resources, &wanted, &parts(&changes));
        for step in steps {
            match step {
                Step::Pod(resources) => runtime.update_sandbox(&self.sandbox, resources).await,
                Step::Container(number, resources) => {
                    runtime
                        .update_container(changes[number].id, resources)
                        .await
                }
            }
            .map_err(failed)?;
        }
        Ok(())
    }

    fn changes<'a>(&'a self) -> Vec<Change<'a>> {
        let spec = super::state::spec(&self.pod);
        let all = || {
            super::state::init_containers(spec)
                .iter()
                .chain(&spec.containers)
        };
        let capacity = self.context.memory_bytes;
        let change = |(target, has): &'a (Target, ResourceRequirements)| {
            let container = all().find(|container| container.name == target.name)?;
            Some(Change {
                id: &target.id,
                container,
                has,
                wanted: container_config::resources(&self.pod, container, capacity),
            })
        };
        self.targets.iter().filter_map(change).collect()
    }

    /// Memory is not taken away from who uses it.
    async fn check_memory(
        &self,
        now: &Limits,
        wanted: &Resources,
        changes: &[Change<'_>],
    ) -> Result<(), String> {
        let is_lower = |new: i64, old: i64| new > 0 && (old == 0 || new < old);
        let mut errors = Vec::new();
        let (new, old) = (wanted.memory_limit_bytes, now.resources.memory_limit_bytes);
        let used = i64::try_from(now.memory_usage_bytes).unwrap_or(i64::MAX);
        if is_lower(new, old) && used >= new {
            errors.push(format!(
                "attempting to set pod memory limit ({new}) below current usage ({used})"
            ));
        }
        for change in changes {
            let new = change.wanted.memory_limit_bytes;
            let old = limit(change.has);
            if !is_lower(new, old) {
                continue;
            }
            let limits = self.context.runtime.container_limits(change.id).await;
            let used = limits.map_err(|error| chain(&error))?.memory_usage_bytes;
            let used = i64::try_from(used).unwrap_or(i64::MAX);
            if used >= new {
                errors.push(format!(
                    "attempting to set container {:?} memory limit ({new}) below current usage \
                     ({used})",
                    change.container.name
                ));
            }
        }
        let text = match errors.as_slice() {
            [] => return Ok(()),
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        Err(format!("cannot decrease memory limits: {text}"))
    }
}

fn limit(size: &ResourceRequirements) -> i64 {
    amount(size.limits.as_ref(), "memory").map_or(0, |limit| limit.value())
}

/// What changes of each container, and in which direction.
fn parts(changes: &[Change<'_>]) -> Vec<Part> {
    let mut parts = Vec::new();
    for (number, change) in changes.iter().enumerate() {
        let wanted = change.container.resources.clone().unwrap_or_default();
        for (resource, name) in [(Resource::Memory, "memory"), (Resource::Cpu, "cpu")] {
            if same_one(change.has, &wanted, name) {
                continue;
            }
            let of = |size: &ResourceRequirements| {
                let limit = amount(size.limits.as_ref(), name);
                let request = amount(size.requests.as_ref(), name);
                let milli = |amount: Option<coracle_api::quantity::Quantity>| {
                    amount.map_or(0, |amount| amount.milli_value())
                };
                (milli(limit), milli(request))
            };
            let (has, wanted) = (of(change.has), of(&wanted));
            // By the limit, and by the request where the limit stays.
            let is_growing = match wanted.0 == has.0 {
                true => wanted.1 > has.1,
                false => wanted.0 > has.0,
            };
            parts.push(Part {
                number,
                resource,
                is_growing,
                resources: order::only(resource, &change.wanted),
            });
        }
    }
    parts
}
