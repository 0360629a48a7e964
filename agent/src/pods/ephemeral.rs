//! Ephemeral containers: those that were added to a running pod to look into it. Pure.

use k8s_openapi::api::core::v1::{Container, EphemeralContainer, PodSpec};

pub fn all(spec: &PodSpec) -> &[EphemeralContainer] {
    spec.ephemeral_containers.as_deref().unwrap_or_default()
}

pub fn find<'a>(spec: &'a PodSpec, name: &str) -> Option<&'a EphemeralContainer> {
    all(spec).iter().find(|container| container.name == name)
}

/// The container whose processes it sees, if it was told one.
pub fn target(container: &EphemeralContainer) -> Option<&str> {
    let target = container.target_container_name.as_deref();
    target.filter(|name| !name.is_empty())
}

/// As any other container: without what the API does not take of them (ports, probes, hooks,
/// resources).
pub fn as_container(ephemeral: &EphemeralContainer) -> Container {
    let from = ephemeral.clone();
    Container {
        args: from.args,
        command: from.command,
        env: from.env,
        env_from: from.env_from,
        image: from.image,
        image_pull_policy: from.image_pull_policy,
        name: from.name,
        security_context: from.security_context,
        stdin: from.stdin,
        stdin_once: from.stdin_once,
        termination_message_path: from.termination_message_path,
        termination_message_policy: from.termination_message_policy,
        tty: from.tty,
        volume_devices: from.volume_devices,
        volume_mounts: from.volume_mounts,
        working_dir: from.working_dir,
        ..Container::default()
    }
}
