//! What a container has mounted: its volumes, /etc/hosts, /etc/resolv.conf, its last words' file.

use super::super::container_config::propagation;
use super::super::context::Context;
use super::super::environment::expand;
use super::super::prepare::{HOSTS, RESOLV_CONF};
use crate::kernel;
use crate::runtime::{Device, Mount};
use crate::volumes::{self, Kept, VolumeError};
use k8s_openapi::api::core::v1::{Container, Pod, VolumeMount};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const TERMINATION_LOG: &str = "/dev/termination-log";

/// `kept` is what came of the pod's claims, `images` are the ids of the images of image volumes, by
/// volume.
pub fn make(
    context: &Context,
    kept: &Kept,
    pod: &Pod,
    container: &Container,
    attempt: u32,
    env: &[(String, String)],
    images: &BTreeMap<String, String>,
) -> Result<Vec<Mount>, String> {
    let directory = context.pod_directory(pod);
    let mut mounts = Vec::new();
    for mount in container.volume_mounts.iter().flatten() {
        let lookup = |name: &str| {
            let found = env.iter().rev().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone())
        };
        let sub_path = match (&mount.sub_path, &mount.sub_path_expr) {
            (Some(path), _) if !path.is_empty() => path.clone(),
            (_, Some(expression)) => expand(expression, lookup),
            _ => String::new(),
        };
        if let Some(image) = images.get(&mount.name) {
            mounts.push(Mount {
                container_path: PathBuf::from(&mount.mount_path),
                read_only: true,
                image: image.clone(),
                sub_path: PathBuf::from(sub_path),
                ..Mount::default()
            });
            continue;
        }
        let shown = volumes::mounted(&directory, kept, pod, mount, &sub_path)
            .map_err(|error| refusal(&error, &mount.name, &container.name))?;
        mounts.push(Mount {
            container_path: PathBuf::from(&mount.mount_path),
            host_path: shown.root,
            sub_path: shown.sub_path,
            read_only: mount.read_only.unwrap_or(false)
                || volumes::is_read_only(kept, pod, &mount.name),
            recursive_read_only: recursive_read_only(mount, kernel::has_recursive_read_only())?,
            propagation: propagation(mount.mount_propagation.as_deref()),
            ..Mount::default()
        });
    }
    let own = [
        (PathBuf::from("/etc/hosts"), directory.join(HOSTS)),
        (
            PathBuf::from("/etc/resolv.conf"),
            directory.join(RESOLV_CONF),
        ),
        (
            PathBuf::from(last_words_path(container)),
            last_words_file(&directory, &container.name, attempt)?,
        ),
    ];
    for (container_path, host_path) in own {
        let is_taken = mounts
            .iter()
            .any(|mount| mount.container_path == container_path);
        if !is_taken {
            mounts.push(Mount {
                container_path,
                host_path,
                ..Mount::default()
            });
        }
    }
    Ok(mounts)
}

/// Volumes that are devices.
pub fn devices(kept: &Kept, container: &Container) -> Result<Vec<Device>, String> {
    let asked = container.volume_devices.iter().flatten();
    let found = asked.map(|asked| {
        let name = &asked.name;
        let found = kept.0.get(name).filter(|found| found.is_device);
        let found = found.ok_or_else(|| format!("the volume {name:?} is no device"))?;
        Ok(Device {
            container_path: PathBuf::from(&asked.device_path),
            host_path: found.path.clone(),
            read_only: found.read_only,
        })
    });
    found.collect()
}

/// As upstream, a user is not told what is where on the node.
fn refusal(error: &VolumeError, volume: &str, container: &str) -> String {
    match error {
        VolumeError::SubPath { .. } => {
            tracing::warn!(%error, volume, container, "cannot mount a part of a volume");
            format!(
                "failed to prepare subPath for volumeMount {volume:?} of container {container:?}"
            )
        }
        other => other.to_string(),
    }
}

/// Whether a mount is read-only with all below it; errors in upstream's words.
pub fn recursive_read_only(mount: &VolumeMount, is_supported: bool) -> Result<bool, String> {
    let mode = mount.recursive_read_only.as_deref().unwrap_or("Disabled");
    if mode == "Disabled" {
        return Ok(false);
    }
    let refused = |why: String| {
        let name = &mount.name;
        let asked = format!("volume {name:?} requested recursive read-only mode, but it is ");
        Err(asked + &why)
    };
    if mount.read_only != Some(true) {
        return refused("not read-only".to_owned());
    }
    let propagation = mount.mount_propagation.as_deref();
    if let Some(propagation) = propagation.filter(|mode| *mode != "None") {
        return refused(format!("not compatible with propagation {propagation:?}"));
    }
    match mode {
        "IfPossible" => Ok(is_supported),
        "Enabled" if is_supported => Ok(true),
        "Enabled" => refused("not supported by the runtime".to_owned()),
        _ => Err(format!("unknown recursive read-only mode {mode:?}")),
    }
}

fn last_words_path(container: &Container) -> &str {
    let path = container.termination_message_path.as_deref();
    path.filter(|path| !path.is_empty())
        .unwrap_or(TERMINATION_LOG)
}

/// Where a container's last words are on the node.
pub fn last_words(pod_directory: &Path, name: &str, attempt: u32) -> PathBuf {
    pod_directory
        .join("containers")
        .join(name)
        .join(attempt.to_string())
}

fn last_words_file(pod_directory: &Path, name: &str, attempt: u32) -> Result<PathBuf, String> {
    let path = last_words(pod_directory, name, attempt);
    let made = || {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(&path, "")?;
        // Whatever user the container runs as may write to it.
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666))
    };
    made().map_err(|error| format!("cannot make {}: {error}", path.display()))?;
    Ok(path)
}

#[cfg(test)]
mod tests;
