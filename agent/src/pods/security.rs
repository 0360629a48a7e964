//! A container's security context, pod and container level put together as upstream does. Pure.

use super::state;
use crate::runtime::{AppArmor, Seccomp, Security};
use k8s_openapi::api::core::v1::{AppArmorProfile, Container, Pod, SeccompProfile};
use std::path::{Component, Path};

const APP_ARMOR_ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";
const MAX_USER: i64 = 2_147_483_647;

/// What the node decides where a pod does not say.
#[derive(Clone, Copy, Debug)]
pub struct Defaults<'a> {
    /// Profiles of `Localhost` are named from here.
    pub seccomp_root: &'a Path,
    /// `RuntimeDefault` rather than `Unconfined`.
    pub seccomp_default: bool,
}

/// Errors are for the waiting message.
pub fn of_container(
    pod: &Pod,
    container: &Container,
    defaults: Defaults<'_>,
) -> Result<Security, String> {
    let of_pod = state::spec(pod).security_context.as_ref();
    let of_pod = of_pod.cloned().unwrap_or_default();
    let own = container.security_context.clone().unwrap_or_default();
    let capabilities = own.capabilities.clone().unwrap_or_default();
    let privileged = own.privileged.unwrap_or(false);
    let mut groups: Vec<i64> = of_pod.fs_group.into_iter().collect();
    for group in of_pod.supplemental_groups.iter().flatten() {
        if !groups.contains(group) {
            groups.push(*group);
        }
    }
    let strict_groups = match of_pod.supplemental_groups_policy.as_deref() {
        None | Some("Merge") => false,
        Some("Strict") => true,
        Some(other) => return Err(format!("unsupported supplementalGroupsPolicy: {other}")),
    };
    let profile = own.seccomp_profile.as_ref();
    Ok(Security {
        run_as_user: own.run_as_user.or(of_pod.run_as_user),
        run_as_group: own.run_as_group.or(of_pod.run_as_group),
        supplemental_groups: groups,
        strict_groups,
        privileged,
        read_only_root_filesystem: own.read_only_root_filesystem.unwrap_or(false),
        allow_privilege_escalation: own.allow_privilege_escalation.unwrap_or(true) || privileged,
        add_capabilities: capabilities.add.unwrap_or_default(),
        drop_capabilities: capabilities.drop.unwrap_or_default(),
        unmasked_proc: own.proc_mount.as_deref() == Some("Unmasked"),
        seccomp: seccomp(profile.or(of_pod.seccomp_profile.as_ref()), defaults)?,
        app_armor: app_armor(pod, container)?,
    })
}

fn seccomp(profile: Option<&SeccompProfile>, defaults: Defaults<'_>) -> Result<Seccomp, String> {
    let Some(profile) = profile else {
        return Ok(match defaults.seccomp_default {
            true => Seccomp::RuntimeDefault,
            false => Seccomp::Unconfined,
        });
    };
    match profile.type_.as_str() {
        "RuntimeDefault" => Ok(Seccomp::RuntimeDefault),
        "Localhost" => {
            let name = profile.localhost_profile.as_deref().unwrap_or_default();
            if name.is_empty() {
                let text = "localhostProfile must be set if seccompProfile type is Localhost.";
                return Err(text.to_owned());
            }
            // The server refuses such names; a pod from elsewhere gets no further with them.
            let stays = |part| matches!(part, Component::Normal(_) | Component::CurDir);
            if !Path::new(name).components().all(stays) {
                return Err(format!(
                    "the seccomp profile {name:?} is out of its directory"
                ));
            }
            Ok(Seccomp::Localhost(defaults.seccomp_root.join(name)))
        }
        _ => Ok(Seccomp::Unconfined),
    }
}

/// Over the container's annotation, which static pods may still have, and that over the pod's.
fn app_armor_profile(pod: &Pod, container: &Container) -> Option<AppArmorProfile> {
    let own = container.security_context.as_ref();
    if let Some(profile) = own.and_then(|own| own.app_armor_profile.clone()) {
        return Some(profile);
    }
    let key = format!("{APP_ARMOR_ANNOTATION}{}", container.name);
    let annotations = pod.metadata.annotations.as_ref();
    let annotation = annotations.and_then(|annotations| annotations.get(&key));
    let profile = |type_: &str, name: Option<&str>| AppArmorProfile {
        type_: type_.to_owned(),
        localhost_profile: name.map(str::to_owned),
    };
    let annotated = annotation.and_then(|value| match value.as_str() {
        "runtime/default" => Some(profile("RuntimeDefault", None)),
        "unconfined" => Some(profile("Unconfined", None)),
        other => {
            let name = other.strip_prefix("localhost/")?;
            Some(profile("Localhost", Some(name)))
        }
    });
    let of_pod = || {
        state::spec(pod)
            .security_context
            .as_ref()?
            .app_armor_profile
            .clone()
    };
    annotated.or_else(of_pod)
}

fn app_armor(pod: &Pod, container: &Container) -> Result<AppArmor, String> {
    let Some(profile) = app_armor_profile(pod, container) else {
        return Ok(AppArmor::Unsaid);
    };
    match profile.type_.as_str() {
        "RuntimeDefault" => Ok(AppArmor::RuntimeDefault),
        "Unconfined" => Ok(AppArmor::Unconfined),
        "Localhost" => match profile.localhost_profile {
            Some(name) => Ok(AppArmor::Localhost(name)),
            None => Err("missing localhost apparmor profile name".to_owned()),
        },
        other => Err(format!("unknown apparmor profile type: {other:?}")),
    }
}

/// Whether the pod speaks of a profile of AppArmor anywhere, in use or not, and an empty name of
/// one in use.
pub fn needs_app_armor(pod: &Pod) -> (bool, Option<String>) {
    let spec = state::spec(pod);
    let all = || state::init_containers(spec).iter().chain(&spec.containers);
    let of_pod = spec.security_context.as_ref();
    let of_pod = of_pod.and_then(|context| context.app_armor_profile.as_ref());
    let own = all().filter_map(|one| one.security_context.as_ref()?.app_armor_profile.as_ref());
    let mut annotations = pod.metadata.annotations.iter().flatten();
    let is_needed = own
        .chain(of_pod)
        .any(|profile| profile.type_ != "Unconfined")
        || annotations
            .any(|(key, value)| key.starts_with(APP_ARMOR_ANNOTATION) && value != "unconfined");
    let mut profiles = all().filter_map(|container| app_armor_profile(pod, container));
    let empty = profiles.find_map(|profile| {
        let name = profile.localhost_profile.clone().unwrap_or_default();
        (profile.type_ == "Localhost" && name.trim().is_empty()).then_some(name)
    });
    (is_needed, empty)
}

/// `runAsNonRoot` against the user that would run; the text is for the waiting message.
pub fn check_non_root(pod: &Pod, container: &Container, image_user: &str) -> Result<(), String> {
    let of_pod = state::spec(pod).security_context.as_ref();
    let own = container.security_context.as_ref();
    let asked = own
        .and_then(|own| own.run_as_non_root)
        .or(of_pod.and_then(|of_pod| of_pod.run_as_non_root));
    if asked != Some(true) {
        return Ok(());
    }
    let user = own
        .and_then(|own| own.run_as_user)
        .or(of_pod.and_then(|of_pod| of_pod.run_as_user));
    let name = &container.name;
    let full = state::full_name(pod);
    let place = format!("(pod: {full:?}, container: {name})");
    if let Some(user) = user {
        return match user {
            0 => Err(format!(
                "container's runAsUser breaks non-root policy {place}"
            )),
            _ => Ok(()),
        };
    }
    let image_user = image_user.split(':').next().unwrap_or_default();
    match image_user.parse::<i64>() {
        Ok(0) => {}
        Ok(user) if !(0..=MAX_USER).contains(&user) => {
            return Err(format!(
                "container has runAsNonRoot and image has an invalid user id ({user}). (Must be \
                 1-({MAX_USER})): must be between 0 and {MAX_USER}, inclusive {place}"
            ));
        }
        Ok(_) => return Ok(()),
        Err(_) if image_user.is_empty() => {}
        Err(_) => {
            return Err(format!(
                "container has runAsNonRoot and image has non-numeric user ({image_user}), cannot \
                 verify user is non-root {place}"
            ));
        }
    }
    Err(format!(
        "container has runAsNonRoot and image will run as root {place}"
    ))
}

#[cfg(test)]
mod tests;
