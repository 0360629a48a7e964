//! Limits of what runs, changed and read. Those of pods are set here, those of containers by the
//! runtime, which remembers them.

use super::super::{RuntimeError, contract::*};
use super::containers::resources;
use super::messages::UpdateContainerResourcesRequest;
use super::{Inner, missing};

impl Inner {
    pub async fn update_container(
        &self,
        id: &ContainerId,
        to: Resources,
    ) -> Result<(), RuntimeError> {
        let request = UpdateContainerResourcesRequest {
            container_id: id.0.clone(),
            linux: Some(resources(&to, self.groups.limits_swap())),
        };
        let updated = self.call(request).await;
        updated.map_err(|status| missing("container", &id.0, status))?;
        Ok(())
    }

    pub async fn update_sandbox(&self, id: &SandboxId, to: Resources) -> Result<(), RuntimeError> {
        let pod = self.sandbox_status(id).await?.config;
        self.groups.change(&self.groups.pod(&pod.cgroup), &to)
    }

    /// The kernel's, or the runtime's where the container's group is not known.
    pub async fn container_limits(&self, id: &ContainerId) -> Result<Limits, RuntimeError> {
        let container = self.container_status(id).await?;
        let pod = self.sandbox_status(&container.sandbox).await?.config;
        let asked = container.config.resources;
        Ok(match self.groups.container(&pod.cgroup, id) {
            Some(group) => self.groups.limits(&group, &asked),
            None => Limits {
                resources: asked,
                memory_usage_bytes: 0,
            },
        })
    }

    pub async fn sandbox_limits(&self, id: &SandboxId) -> Result<Limits, RuntimeError> {
        let pod = self.sandbox_status(id).await?.config;
        let group = self.groups.pod(&pod.cgroup);
        Ok(self.groups.limits(&group, &pod.resources))
    }
}
