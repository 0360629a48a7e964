//! Looks for what can go, every minute, and at images every five.

use super::dead::{self, Known};
use super::images::{self, Disk, Idle, ImagePolicy, Memory};
use crate::images::ImageInfo;
use crate::images::reference::Reference;
use crate::pods::{Context, Pods, TakeDownError, state};
use crate::runtime::{ContainerId, ContainerStatus, RuntimeError, SandboxId};
use crate::usage::disk::file_system;
use coracle_client::clock::Instant;
use coracle_client::events::EventType;
use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Upstream's periods.
const DEAD_EVERY: Duration = Duration::from_secs(60);
const IMAGES_EVERY: Duration = Duration::from_secs(5 * 60);
/// Longest pause between looks at the images of a disk that is full of other things.
const IMAGES_EVERY_MAX: Duration = Duration::from_secs(60 * 60);

pub struct Collector {
    context: Arc<Context>,
    pods: Pods,
    policy: ImagePolicy,
    node: ObjectReference,
    memory: Mutex<Memory>,
    begun: Instant,
}

impl std::fmt::Debug for Collector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collector").finish_non_exhaustive()
    }
}

/// One that cannot be removed does not keep the others. The last error, when there are any.
async fn each(
    removals: impl IntoIterator<Item = impl Future<Output = Result<(), TakeDownError>>>,
) -> Result<(), TakeDownError> {
    let mut done = Ok(());
    for removal in removals {
        if let Err(error) = removal.await {
            let text = crate::error::chain(&error);
            tracing::warn!(error = text, "cannot remove what is left of a pod");
            done = Err(error);
        }
    }
    done
}

/// How often in a row the disk could not be freed.
#[derive(Clone, Copy, Debug, Default)]
struct Lost(u32);

impl Lost {
    /// Told the first time, and once more when it lasts, as upstream has it; then it is known.
    fn reason(self) -> Option<&'static str> {
        match self.0 {
            1 => Some("FreeDiskSpaceFailed"),
            2 => Some("ImageGCFailed"),
            _ => None,
        }
    }

    fn pause(self) -> Duration {
        let doubled = IMAGES_EVERY.saturating_mul(2_u32.saturating_pow(self.0.min(8)));
        doubled.min(IMAGES_EVERY_MAX)
    }
}

impl Collector {
    pub fn new(
        context: Arc<Context>,
        pods: Pods,
        policy: ImagePolicy,
        node: ObjectReference,
    ) -> Self {
        Self {
            begun: context.clock.monotonic(),
            context,
            pods,
            policy,
            node,
            memory: Mutex::default(),
        }
    }

    /// To be begun once the pods of this node are known: what is not known is taken for gone.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut images_at = self.begun;
        let mut lost = Lost::default();
        loop {
            self.dead(false).await;
            if self.context.clock.monotonic() >= images_at {
                self.collect_images(&mut lost).await;
                images_at = self.context.clock.monotonic() + lost.pause();
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(DEAD_EVERY) => {}
            }
        }
    }

    /// `with_ended` takes the containers of pods that have ended, too.
    pub async fn dead(&self, with_ended: bool) {
        if let Err(error) = self.remove_dead(with_ended).await {
            let error = crate::error::chain(&error);
            tracing::warn!(error, "not all that is left of pods is removed");
            let type_ = EventType::Warning;
            let recorder = &self.context.recorder;
            recorder.event(&self.node, type_, "ContainerGCFailed", error);
        }
    }

    async fn remove_dead(&self, with_ended: bool) -> Result<(), TakeDownError> {
        let runtime = &self.context.runtime;
        let sandboxes = runtime.list_sandboxes().await?;
        let containers = runtime.list_containers().await?;
        let logs = self.log_directories();
        let known = self.known();
        let found = dead::find(&sandboxes, &containers, &known, with_ended);
        let of_containers = found.containers.iter().map(|id| {
            let mut all = containers.iter();
            self.remove_container(id, all.find(|one| one.id == *id))
        });
        // All of them, since an iterator over borrowed names may not wait between two threads.
        let of_containers = each(of_containers.collect::<Vec<_>>()).await;
        let of_sandboxes = found.sandboxes.iter().map(|id| self.remove_sandbox(id));
        let of_sandboxes = each(of_sandboxes.collect::<Vec<_>>()).await;
        for name in logs {
            if dead::is_of_gone_pod(&name, &known) {
                let path = self.context.data_dir.join("logs").join(name);
                let removed = tokio::fs::remove_dir_all(&path).await;
                if let Err(error) = removed {
                    tracing::warn!(%error, path = %path.display(), "cannot remove old logs");
                }
            }
        }
        of_containers.and(of_sandboxes)
    }

    async fn remove_container(
        &self,
        id: &ContainerId,
        known: Option<&ContainerStatus>,
    ) -> Result<(), TakeDownError> {
        self.context.runtime.remove_container(id).await?;
        if let Some(known) = known {
            crate::pods::remove_log(&known.config.log_path);
        }
        Ok(())
    }

    async fn remove_sandbox(&self, id: &SandboxId) -> Result<(), TakeDownError> {
        tracing::info!(sandbox = %id, "removes a sandbox that no pod needs");
        self.context.remove_sandbox(id).await
    }

    fn log_directories(&self) -> Vec<String> {
        let directory = self.context.data_dir.join("logs");
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().into_string());
        names.filter_map(Result::ok).collect()
    }

    fn known(&self) -> Known {
        let pods = self.pods.list();
        let known = pods.iter().filter_map(|pod| {
            let uid = pod.metadata.uid.clone()?;
            Some((uid, state::has_ended(pod)))
        });
        known.collect()
    }

    /// All that may go, for a node that is about to evict pods.
    pub async fn unused_images(&self) {
        match self.idle().await {
            Ok(idle) => {
                self.remove(&idle, &images::all(&self.policy, &idle)).await;
            }
            Err(error) => tracing::warn!(%error, "cannot look at the images"),
        }
    }

    async fn collect_images(&self, lost: &mut Lost) {
        let idle = match self.idle().await {
            Ok(idle) => idle,
            Err(error) => {
                tracing::warn!(%error, "cannot look at the images");
                return;
            }
        };
        let Some(disk) = self.disk() else {
            return;
        };
        let plan = images::plan(&self.policy, &idle, disk);
        let freed = self.remove(&idle, &plan.remove).await;
        if !plan.is_lost {
            *lost = Lost::default();
            return;
        }
        lost.0 = lost.0.saturating_add(1);
        if let Some(reason) = lost.reason() {
            let message = images::lost_message(disk, freed);
            tracing::warn!("{message}");
            let type_ = EventType::Warning;
            let recorder = &self.context.recorder;
            recorder.event(&self.node, type_, reason, message);
        }
    }

    fn disk(&self) -> Option<Disk> {
        let found = file_system(&self.context.runtime.images_directory())?;
        let disk = Disk {
            total_bytes: u64::try_from(found.total_bytes).ok()?,
            free_bytes: u64::try_from(found.free_bytes).ok()?,
        };
        (disk.total_bytes > 0).then_some(disk)
    }

    async fn idle(&self) -> Result<Vec<Idle>, RuntimeError> {
        let runtime = &self.context.runtime;
        let images = runtime.list_images().await?;
        let containers = runtime.list_containers().await?;
        let mut in_use: BTreeSet<String> = containers
            .into_iter()
            .map(|container| container.image_id)
            .collect();
        for pod in self.pods.active() {
            in_use.extend(named(&pod, &images).map(|image| image.id.clone()));
        }
        let now = self.begun.elapsed();
        Ok(self.memory.lock().look(&images, &in_use, now))
    }

    /// Bytes of what was removed.
    async fn remove(&self, idle: &[Idle], ids: &[String]) -> u64 {
        let mut freed = 0;
        for id in ids {
            match self.context.runtime.remove_image(id).await {
                Ok(()) => {
                    let image = idle.iter().find(|image| image.id == *id);
                    freed += image.map_or(0, |image| image.size_bytes);
                    tracing::info!(image = id, "removed an image that was not used");
                }
                Err(error) => tracing::warn!(image = id, %error, "cannot remove an image"),
            }
        }
        freed
    }
}

/// The images that a pod names: it may be about to use them.
fn named<'a>(pod: &Pod, images: &'a [ImageInfo]) -> impl Iterator<Item = &'a ImageInfo> {
    let spec = state::spec(pod);
    let containers = state::init_containers(spec).iter().chain(&spec.containers);
    let of_containers = containers.filter_map(|container| container.image.as_deref());
    let volumes = spec.volumes.iter().flatten();
    let of_volumes = volumes.filter_map(|volume| volume.image.as_ref()?.reference.as_deref());
    let names: BTreeSet<String> = of_containers
        .chain(of_volumes)
        .filter_map(|name| Some(Reference::parse(name).ok()?.canonical()))
        .collect();
    images.iter().filter(move |image| {
        let mut own = image.names.iter().chain(&image.digests);
        own.any(|name| names.contains(name))
    })
}

#[cfg(test)]
mod tests {
    use super::each;
    use crate::runtime::RuntimeError;
    use std::sync::Mutex;

    #[tokio::test]
    async fn what_stays_keeps_nothing_else() {
        let gone = Mutex::new(Vec::new());
        let removals = ["a", "busy", "b", "stuck", "c"].map(async |name| match name {
            "busy" | "stuck" => Err(RuntimeError::Failed(name.to_owned()).into()),
            _ => {
                gone.lock().unwrap().push(name);
                Ok(())
            }
        });
        let error = each(removals).await.unwrap_err().to_string();
        assert!(error.contains("stuck"), "{error}");
        assert_eq!(*gone.lock().unwrap(), ["a", "b", "c"]);
    }
}
