//! Security contexts of pods and containers.

use super::{os, paths};
use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks;
use crate::{json, names};
use serde_json::Value;
use std::collections::BTreeSet;

const ID_MAX: i64 = i32::MAX as i64;
const SYSCTL_BYTES_MAX: usize = 253;

/// Settings of the IPC namespace; the two short ones stand for old wildcards.
const IPC_SYSCTLS: &[&str] = &[
    "kernel.sem",
    "kernel.shmall",
    "kernel.shmmax",
    "kernel.shmmni",
    "kernel.shm_rmid_forced",
    "kernel.shm",
    "kernel.msgmax",
    "kernel.msgmnb",
    "kernel.msgmni",
    "kernel.msg",
];

const SECCOMP: (&str, &str) = ("seccompProfile", "seccomp");
const APP_ARMOR: (&str, &str) = ("appArmorProfile", "AppArmor");

/// Of the path of an AppArmor profile, as the kernel bounds paths.
const PROFILE_BYTES_MAX: usize = 4095;

pub fn pod(spec: &Value, path: &Path) -> ErrorList {
    let context = json::get(spec, "securityContext");
    let mut errors = ErrorList::new();
    for field in ["fsGroup", "runAsUser", "runAsGroup"] {
        id(&mut errors, json::int(context, field), &path.child(field));
    }
    for (index, group) in json::list(context, "supplementalGroups").iter().enumerate() {
        id(
            &mut errors,
            group.as_i64(),
            &path.child("supplementalGroups").index(index),
        );
    }
    if json::flag(spec, "shareProcessNamespace") && json::flag(spec, "hostPID") {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.push(FieldError::invalid(
            &path.child("shareProcessNamespace"),
            true,
            detail,
        ));
    }
    errors.extend(sysctls(spec, context, &path.child("sysctls")));
    let policy = |field: &str, supported: &[&str]| {
        let mut errors = ErrorList::new();
        if let Some(policy) = json::some(context, field).and_then(Value::as_str) {
            checks::one_of(&mut errors, policy, supported, &path.child(field));
        }
        errors
    };
    errors.extend(policy("fsGroupChangePolicy", &["Always", "OnRootMismatch"]));
    errors.extend(profile(context, SECCOMP, path));
    errors.extend(os::windows_options(context, path));
    errors.extend(profile(context, APP_ARMOR, path));
    errors.extend(policy("supplementalGroupsPolicy", &["Merge", "Strict"]));
    errors.extend(policy("seLinuxChangePolicy", &["Recursive"]));
    errors
}

pub fn container(container: &Value, spec: &Value, path: &Path) -> ErrorList {
    let context = json::get(container, "securityContext");
    let mut errors = ErrorList::new();
    for field in ["runAsUser", "runAsGroup"] {
        id(&mut errors, json::int(context, field), &path.child(field));
    }
    if let Some(mount) = json::some(context, "procMount").and_then(Value::as_str) {
        let path = path.child("procMount");
        checks::one_of(&mut errors, mount, &["Default", "Unmasked"], &path);
        let host_users = json::some(spec, "hostUsers").is_none_or(|users| users != false);
        if host_users && mount == "Unmasked" {
            let detail = "`hostUsers` must be false to use `Unmasked`";
            errors.push(FieldError::invalid(&path, mount, detail));
        }
    }
    errors.extend(profile(context, SECCOMP, path));
    if json::some(context, "allowPrivilegeEscalation").is_some_and(|allow| allow == false) {
        let mut clash = |with: &str| {
            let detail = format!("cannot set `allowPrivilegeEscalation` to false and {with}");
            let error = FieldError::invalid(path, context.clone(), detail);
            errors.push(error.as_go("io.k8s.api.core.v1.SecurityContext"));
        };
        if json::flag(context, "privileged") {
            clash("`privileged` to true");
        }
        let added = json::list(json::get(context, "capabilities"), "add");
        if added.iter().any(|capability| capability == "CAP_SYS_ADMIN") {
            clash("`capabilities.Add` CAP_SYS_ADMIN");
        }
    }
    errors.extend(os::windows_options(context, path));
    errors.extend(profile(context, APP_ARMOR, path));
    errors
}

fn id(errors: &mut ErrorList, id: Option<i64>, path: &Path) {
    if let Some(id) = id {
        let details = names::between(id, 0, ID_MAX);
        errors.extend(
            details
                .into_iter()
                .map(|detail| FieldError::invalid(path, id, detail)),
        );
    }
}

/// A profile of a security context, by the name of its field and by its own.
fn profile(context: &Value, (field, what): (&str, &str), path: &Path) -> ErrorList {
    match json::some(context, field) {
        Some(profile) => profile_of(profile, field, what, &path.child(field)),
        None => ErrorList::new(),
    }
}

/// An AppArmorProfile.
pub fn app_armor(profile: &Value, path: &Path) -> ErrorList {
    profile_of(profile, "appArmorProfile", "AppArmor", path)
}

fn profile_of(profile: &Value, field: &str, what: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let kinds = &["Localhost", "RuntimeDefault", "Unconfined"];
    let kind = json::text(profile, "type");
    if kind.is_empty() {
        let detail = format!("type is required when {field} is set");
        errors.push(FieldError::required(&path.child("type"), detail));
    } else {
        checks::one_of(&mut errors, kind, kinds, &path.child("type"));
    }
    let path = path.child("localhostProfile");
    match (
        kind,
        json::some(profile, "localhostProfile").and_then(Value::as_str),
    ) {
        ("Localhost", None) => {
            let detail = format!("must be set when {what} type is Localhost");
            errors.push(FieldError::required(&path, detail));
        }
        ("Localhost", Some(local)) if what == "seccomp" => {
            errors.extend(paths::descending(local, &path));
        }
        ("Localhost", Some(local)) if local.trim().is_empty() => {
            let detail = format!("must be set when {what} type is Localhost");
            errors.push(FieldError::required(&path, detail));
        }
        ("Localhost", Some(local)) if local.trim() != local => {
            let detail = "must not be padded with whitespace";
            errors.push(FieldError::invalid(&path, local, detail));
        }
        ("Localhost", Some(local)) if local.len() > PROFILE_BYTES_MAX => {
            errors.push(FieldError::too_long(&path, PROFILE_BYTES_MAX));
        }
        ("Localhost", Some(_)) | (_, None) => {}
        (_, Some(local)) => {
            let detail = format!("can only be set when {what} type is Localhost");
            if what == "seccomp" {
                let error = FieldError::invalid(&path, profile.clone(), detail);
                errors.push(error.as_go("io.k8s.api.core.v1.SeccompProfile"));
            } else if kinds.contains(&kind) {
                errors.push(FieldError::invalid(&path, local, detail));
            }
        }
    }
    errors
}

fn sysctls(spec: &Value, context: &Value, path: &Path) -> ErrorList {
    const PATTERN: &str = "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*\
                           [a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for (index, sysctl) in json::list(context, "sysctls").iter().enumerate() {
        let path = path.index(index).child("name");
        let name = json::text(sysctl, "name");
        if name.is_empty() {
            errors.push(FieldError::required(&path, ""));
        } else if !is_sysctl(name) {
            let detail = format!(
                "must have at most {SYSCTL_BYTES_MAX} characters and match regex {PATTERN}"
            );
            errors.push(FieldError::invalid(&path, name, detail));
        } else if seen.contains(name) {
            errors.push(FieldError::duplicate(&path, name));
        }
        let dotted = name.replace('/', ".");
        let of_net = dotted.starts_with("net.");
        let of_ipc = IPC_SYSCTLS.contains(&dotted.as_str()) || dotted.starts_with("fs.mqueue.");
        for (applies, flag) in [(of_net, "hostNetwork"), (of_ipc, "hostIPC")] {
            if applies && json::flag(spec, flag) {
                let detail = format!("may not be specified when '{flag}' is true");
                errors.push(FieldError::invalid(&path, name, detail));
            }
        }
        seen.insert(name);
    }
    errors
}

fn is_sysctl(name: &str) -> bool {
    name.len() <= SYSCTL_BYTES_MAX
        && name.split(['.', '/']).all(|part| {
            let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
            part.bytes().next().is_some_and(good)
                && part.bytes().last().is_some_and(good)
                && part
                    .bytes()
                    .all(|byte| good(byte) || matches!(byte, b'-' | b'_'))
        })
}
