//! Starts containers, one after the other: image, configuration, create, start, postStart.
//!
//! Ends early, between two steps, when `halt` is cancelled. Tells the worker each step's result.

pub mod mounts;

use super::container_config;
use super::context::Context;
use super::environment::{self, Sources};
use super::image::{self, Wanted};
use super::manifest;
use super::plan::Start;
use super::state::{self, Waiting, spec};
use super::worker::Update;
use super::{ephemeral, groups, hook, security};
use crate::error::chain;
use crate::families::Families;
use crate::images::ImageInfo;
use crate::runtime::{ContainerConfig, ContainerId, ContainerState, SandboxId};
use crate::volumes::Kept;
use coracle_client::events::EventType;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Container, Pod, Secret};
use kube::Api;
use rand::RngExt;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Upstream's pause between two tries of a pod, with up to half of it added.
const RETRY_SECONDS: i64 = 10;

/// One round of starts in one sandbox.
#[derive(Clone, Debug)]
pub struct Round {
    pub context: Arc<Context>,
    pub pod: Arc<Pod>,
    pub sandbox: SandboxId,
    pub ips: Families<IpAddr>,
    pub halt: CancellationToken,
    pub updates: mpsc::Sender<Update>,
}

/// Ids of images, by the volume that shows them.
type VolumeImages = BTreeMap<String, String>;

/// Why a container does not run, before it has its retry time.
struct Refusal {
    reason: &'static str,
    message: String,
}

pub fn retry_at(now: Timestamp) -> Timestamp {
    after(
        now,
        RETRY_SECONDS + rand::rng().random_range(0..=RETRY_SECONDS / 2),
    )
}

pub fn after(now: Timestamp, seconds: i64) -> Timestamp {
    now.saturating_add(jiff::SignedDuration::from_secs(seconds))
        .unwrap_or(now)
}

pub async fn start_all(round: Round, starts: Vec<Start>) {
    let mut images = VolumeImages::new();
    for start in starts {
        if round.halt.is_cancelled() {
            break;
        }
        let outcome = tokio::select! {
            biased;
            outcome = round.start(&start, &mut images) => outcome,
            () = round.halt.cancelled() => break,
        };
        let update = match outcome {
            Ok(()) => Update::Started(start.name),
            Err(waiting) => Update::Waits(start.name, waiting),
        };
        round.tell(update).await;
    }
    round.tell(Update::StartsDone).await;
}

impl Round {
    async fn tell(&self, update: Update) {
        // The worker is gone when nobody listens; there is nothing to do about it.
        let _ = self.updates.send(update).await;
    }

    async fn start(&self, start: &Start, images: &mut VolumeImages) -> Result<(), Waiting> {
        let Some(container) = state::find(spec(&self.pod), &start.name) else {
            return Ok(());
        };
        let no_image = |error: image::NoImage| {
            self.failed(&container, error.reason);
            Waiting {
                reason: error.reason.to_owned(),
                message: error.message,
                retry_at: error.retry_at,
            }
        };
        let volumes = self.ensure_volumes(&container, images).await;
        volumes.map_err(no_image)?;
        let image = image::ensure(&self.context, &self.pod, Wanted::by(&container)).await;
        let image = image.map_err(no_image)?;
        let ran = self.run(start, &container, &image, images).await;
        ran.map_err(|refusal| Waiting {
            reason: refusal.reason.to_owned(),
            message: refusal.message,
            retry_at: retry_at(self.context.clock.now()),
        })
    }

    /// Sees to the images of the image volumes that the container mounts, once a round.
    async fn ensure_volumes(
        &self,
        container: &Container,
        images: &mut VolumeImages,
    ) -> Result<(), image::NoImage> {
        for mount in container.volume_mounts.iter().flatten() {
            let mut volumes = spec(&self.pod).volumes.iter().flatten();
            let volume = volumes.find(|volume| volume.name == mount.name);
            let Some(source) = volume.and_then(|volume| volume.image.as_ref()) else {
                continue;
            };
            if !images.contains_key(&mount.name) {
                let wanted = Wanted::of_volume(source);
                let image = image::ensure(&self.context, &self.pod, wanted).await?;
                images.insert(mount.name.clone(), image.id);
            }
        }
        Ok(())
    }

    async fn run(
        &self,
        start: &Start,
        container: &Container,
        image: &ImageInfo,
        images: &VolumeImages,
    ) -> Result<(), Refusal> {
        let config = self.configure(start, container, image, images).await;
        let config = config.map_err(|message| {
            self.failed(container, &message);
            Refusal {
                reason: "CreateContainerConfigError",
                message,
            }
        })?;
        let runtime = &self.context.runtime;
        if let Some(old) = &start.replaces {
            let removed = runtime.remove_container(old).await;
            removed.map_err(|error| self.refused(container, "CreateContainerError", &error))?;
            self.tell(Update::Removed(old.clone())).await;
        }
        let created = runtime.create_container(&self.sandbox, config).await;
        let id =
            created.map_err(|error| self.refused(container, "CreateContainerError", &error))?;
        let size = container.resources.clone().unwrap_or_default();
        self.tell(Update::Sized(container.name.clone(), size)).await;
        let name = &container.name;
        let event = |reason: &str, message: &str| {
            let pod = &self.pod;
            self.context
                .container_event(pod, name, EventType::Normal, reason, message);
        };
        event("Created", "Container created");
        let started = runtime.start_container(&id).await;
        self.observe(&id).await;
        started.map_err(|error| self.refused(container, "RunContainerError", &error))?;
        event("Started", "Container started");
        self.post_start(container, &id).await
    }

    async fn observe(&self, id: &ContainerId) {
        if let Ok(status) = self.context.runtime.container_status(id).await {
            self.tell(Update::Container(Box::new(status))).await;
        }
    }

    async fn post_start(&self, container: &Container, id: &ContainerId) -> Result<(), Refusal> {
        let lifecycle = container.lifecycle.as_ref();
        let Some(handler) = lifecycle.and_then(|lifecycle| lifecycle.post_start.as_ref()) else {
            return Ok(());
        };
        let target = hook::Target {
            context: &self.context,
            container,
            id,
            ip: self.ips.first(),
        };
        let Err(message) = hook::run(&target, handler).await else {
            return Ok(());
        };
        let name = &container.name;
        let type_ = EventType::Warning;
        let event = "PostStartHook failed";
        self.context
            .container_event(&self.pod, name, type_, "FailedPostStartHook", event);
        let grace = spec(&self.pod)
            .termination_grace_period_seconds
            .unwrap_or(30);
        if let Err(error) = self.context.runtime.stop_container(id, grace).await {
            tracing::warn!(container = name, %error, "cannot stop a container after its hook");
        }
        self.observe(id).await;
        Err(Refusal {
            reason: "PostStartHookError",
            message,
        })
    }

    fn refused(
        &self,
        container: &Container,
        reason: &'static str,
        error: &crate::runtime::RuntimeError,
    ) -> Refusal {
        let message = chain(error);
        self.failed(container, &message);
        Refusal { reason, message }
    }

    fn failed(&self, container: &Container, message: &str) {
        let message = format!("Error: {message}");
        let type_ = EventType::Warning;
        self.context
            .container_event(&self.pod, &container.name, type_, "Failed", message);
    }

    async fn configure(
        &self,
        start: &Start,
        container: &Container,
        image: &ImageInfo,
        images: &VolumeImages,
    ) -> Result<ContainerConfig, String> {
        let pod = &self.pod;
        let context = &self.context;
        security::check_non_root(pod, container, &image.user)?;
        let sources = self.sources(container).await?;
        let env = environment::make(pod, container, &sources)?;
        let name = container.name.clone();
        let capacity = context.memory_bytes;
        let mut config = container_config::container(pod, container, start.attempt, env, capacity);
        config.resources.huge_page_limits = groups::huge_pages_of_container(pod, container);
        config.security = security::of_container(pod, container, context.security_defaults())?;
        let kept = Kept::load(&context.pod_directory(pod)).map_err(|error| error.to_string())?;
        config.security.supplemental_groups.extend(kept.groups());
        config.image.clone_from(&image.id);
        let directory = context.log_directory(pod).join(&name);
        std::fs::create_dir_all(&directory)
            .map_err(|error| format!("cannot make {}: {error}", directory.display()))?;
        config.log_path = directory.join(format!("{}.log", start.attempt));
        config.mounts = mounts::make(
            context,
            &kept,
            pod,
            container,
            start.attempt,
            &config.env,
            images,
        )?;
        config.devices = mounts::devices(&kept, container)?;
        config.pid_namespace_of = self.target(&name).await?;
        Ok(config)
    }

    /// The running container whose processes an ephemeral one is to see.
    async fn target(&self, name: &str) -> Result<Option<ContainerId>, String> {
        let ephemeral = ephemeral::find(spec(&self.pod), name);
        let Some(target) = ephemeral.and_then(ephemeral::target) else {
            return Ok(None);
        };
        let all = self.context.runtime.list_containers().await;
        let all = all.map_err(|error| chain(&error))?;
        let found = all.into_iter().find(|container| {
            container.sandbox == self.sandbox
                && container.config.name == target
                && container.state == ContainerState::Running
        });
        let found = found.ok_or_else(|| format!("unable to find target container {target}"))?;
        Ok(Some(found.id))
    }

    async fn sources(&self, container: &Container) -> Result<Sources, String> {
        let context = &self.context;
        // A static pod does not wait for the server: it gets the services that are known.
        if !context.view.has_services() && !manifest::is_static(&self.pod) {
            return Err(
                "services have not yet been read at least once, cannot construct envvars"
                    .to_owned(),
            );
        }
        let needs = environment::needs(container);
        let namespace = self.pod.metadata.namespace.as_deref().unwrap_or_default();
        let host_ips = context.host.all();
        let is_on_host = spec(&self.pod).host_network.unwrap_or(false);
        let mut sources = Sources {
            services: context.services_for(namespace),
            pod_ips: if is_on_host { host_ips } else { self.ips },
            host_ips,
            allocatable_cpu_milli: context.cpu_milli,
            allocatable_memory_bytes: context.memory_bytes,
            ..Sources::default()
        };
        let maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), namespace);
        for name in needs.config_maps {
            let map = maps.get_opt(&name).await;
            let map = map.map_err(|error| format!("failed to read configmap {name:?}: {error}"))?;
            sources.config_maps.insert(name, map);
        }
        let secrets: Api<Secret> = Api::namespaced(context.client.clone(), namespace);
        for name in needs.secrets {
            let secret = secrets.get_opt(&name).await;
            let secret =
                secret.map_err(|error| format!("failed to read secret {name:?}: {error}"))?;
            sources.secrets.insert(name, secret);
        }
        Ok(sources)
    }
}
