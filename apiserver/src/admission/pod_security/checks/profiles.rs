//! The profiles that hold a container's processes: AppArmor, SELinux and seccomp, with what shows
//! through `/proc`, and sysctls.

use super::{Subject, Violation, containers, plural, quoted, security, setters};
use coracle_api::json;
use coracle_api::pod_spec::profiles::{APPARMOR, SECCOMP_CONTAINER, SECCOMP_POD};
use serde_json::Value;
use std::collections::BTreeSet;

/// From here on, seccomp is a field and no annotation.
const SECCOMP_FIELD: u32 = 19;
/// From here on, Windows pods are excused from what they cannot set.
const WINDOWS_EXCUSED: u32 = 25;
/// From here on, pods in a user namespace may see all of `/proc`.
const USER_NAMESPACES: u32 = 35;

/// With the release that brought them.
const SYSCTLS: [(&str, u32); 12] = [
    ("kernel.shm_rmid_forced", 0),
    ("net.ipv4.ip_local_port_range", 0),
    ("net.ipv4.tcp_syncookies", 0),
    ("net.ipv4.ping_group_range", 0),
    ("net.ipv4.ip_unprivileged_port_start", 0),
    ("net.ipv4.ip_local_reserved_ports", 27),
    ("net.ipv4.tcp_keepalive_time", 29),
    ("net.ipv4.tcp_fin_timeout", 29),
    ("net.ipv4.tcp_keepalive_intvl", 29),
    ("net.ipv4.tcp_keepalive_probes", 29),
    ("net.ipv4.tcp_rmem", 32),
    ("net.ipv4.tcp_wmem", 32),
];
const SE_LINUX_TYPES: [(&str, u32); 5] = [
    ("", 0),
    ("container_t", 0),
    ("container_init_t", 0),
    ("container_kvm_t", 0),
    ("container_engine_t", 31),
];

fn is_allowed(list: &[(&str, u32)], name: &str, minor: u32) -> bool {
    let mut list = list.iter();
    list.any(|(own, since)| *own == name && *since <= minor)
}

/// A profile's type, of those that leave the container held.
fn is_held(profile: &Value) -> bool {
    matches!(json::text(profile, "type"), "RuntimeDefault" | "Localhost")
}

/// Who sets a profile that does not hold, and its types.
fn unheld(subject: Subject<'_>, field: &str) -> (bool, Vec<String>, BTreeSet<String>) {
    let is_bad = |profile: &Value| !profile.is_null() && !is_held(profile);
    let of_pod = subject.security(field);
    let pod = is_bad(of_pod);
    let names = subject.names(|container| is_bad(security(container, field)));
    let all = subject
        .containers()
        .map(|container| security(container, field));
    let types = std::iter::once(of_pod)
        .chain(all)
        .filter(|profile| is_bad(profile))
        .map(|profile| json::text(profile, "type").to_owned())
        .collect();
    (pod, names, types)
}

pub fn app_armor(subject: Subject<'_>, _: u32) -> Option<Violation> {
    let (pod, names, types) = unheld(subject, "appArmorProfile");
    let entries = subject.annotations.as_object().into_iter().flatten();
    let annotations: BTreeSet<String> = entries
        .filter(|(key, _)| key.starts_with(APPARMOR))
        .map(|(key, value)| (key, value.as_str().unwrap_or_default()))
        .filter(|(_, value)| {
            !(value.is_empty() || *value == "runtime/default" || value.starts_with("localhost/"))
        })
        .map(|(key, value)| format!("{key}={value:?}"))
        .collect();
    let mut who: Vec<String> = Vec::new();
    if pod || !names.is_empty() {
        who.push(setters(pod, &names));
    }
    if !annotations.is_empty() {
        who.push(plural("annotation", "annotations", annotations.len()).to_owned());
    }
    if who.is_empty() {
        return None;
    }
    let values: Vec<String> = types.into_iter().chain(annotations).collect();
    let reason = plural(
        "forbidden AppArmor profile",
        "forbidden AppArmor profiles",
        values.len(),
    );
    let detail = format!(
        "{} must not set AppArmor profile type to {}",
        who.join(" and "),
        quoted(&values)
    );
    Some(Violation::new(reason, detail))
}

pub fn se_linux(subject: Subject<'_>, minor: u32) -> Option<Violation> {
    let is_bad_type = |options: &Value| {
        let name = json::text(options, "type");
        !is_allowed(&SE_LINUX_TYPES, name, minor)
    };
    let has = |options: &Value, field: &str| !json::text(options, field).is_empty();
    let is_bad =
        |options: &Value| is_bad_type(options) || has(options, "user") || has(options, "role");
    let of_pod = subject.security("seLinuxOptions");
    let of_containers = subject.containers();
    let of_containers = of_containers.map(|container| security(container, "seLinuxOptions"));
    let all: Vec<&Value> = std::iter::once(of_pod).chain(of_containers).collect();
    let names = subject.names(|container| is_bad(security(container, "seLinuxOptions")));
    if !is_bad(of_pod) && names.is_empty() {
        return None;
    }
    let bad_types = all.iter().filter(|options| is_bad_type(options));
    let types: BTreeSet<&str> = bad_types
        .map(|options| json::text(options, "type"))
        .collect();
    let mut details = Vec::new();
    if !types.is_empty() {
        let word = plural("type", "types", types.len());
        details.push(format!("{word} {}", quoted(&types)));
    }
    for field in ["user", "role"] {
        if all.iter().any(|options| has(options, field)) {
            details.push(format!("{field} may not be set"));
        }
    }
    let detail = format!(
        "{} set forbidden securityContext.seLinuxOptions: {}",
        setters(is_bad(of_pod), &names),
        details.join("; ")
    );
    Some(Violation::new("seLinuxOptions", detail))
}

pub fn seccomp(subject: Subject<'_>, minor: u32) -> Option<Violation> {
    if minor >= SECCOMP_FIELD {
        return bad_seccomp(subject);
    }
    let names = subject
        .containers()
        .map(|container| json::text(container, "name"));
    let keys = names.map(|name| format!("{SECCOMP_CONTAINER}{name}"));
    let bad: BTreeSet<String> = std::iter::once(SECCOMP_POD.to_owned())
        .chain(keys)
        .filter_map(|key| {
            let value = subject.annotations.get(&key)?.as_str()?;
            let is_held = matches!(value, "runtime/default" | "docker/default")
                || value.starts_with("localhost/");
            (!is_held).then(|| format!("{key}={value:?}"))
        })
        .collect();
    (!bad.is_empty()).then(|| {
        let word = plural("annotation", "annotations", bad.len());
        let list = bad.into_iter().collect::<Vec<_>>().join(", ");
        Violation::new("seccompProfile", format!("forbidden {word} {list}"))
    })
}

fn bad_seccomp(subject: Subject<'_>) -> Option<Violation> {
    let (pod, names, types) = unheld(subject, "seccompProfile");
    (pod || !names.is_empty()).then(|| {
        let detail = format!(
            "{} must not set securityContext.seccompProfile.type to {}",
            setters(pod, &names),
            quoted(&types)
        );
        Violation::new("seccompProfile", detail)
    })
}

pub fn seccomp_required(subject: Subject<'_>, minor: u32) -> Option<Violation> {
    const FIELD: &str = "seccompProfile";
    if minor >= WINDOWS_EXCUSED && subject.is_windows() {
        return None;
    }
    if let Some(violation) = bad_seccomp(subject) {
        return Some(violation);
    }
    let silent = subject.names(|container| security(container, FIELD).is_null());
    (subject.security(FIELD).is_null() && !silent.is_empty()).then(|| {
        let who = containers(&silent);
        let detail = format!(
            "pod or {who} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \
             \"Localhost\""
        );
        Violation::new("seccompProfile", detail)
    })
}

pub fn proc_mount(subject: Subject<'_>, minor: u32) -> Option<Violation> {
    if minor >= USER_NAMESPACES && subject.is_in_user_namespace() {
        return None;
    }
    proc_mount_always(subject, minor)
}

pub fn proc_mount_always(subject: Subject<'_>, _: u32) -> Option<Violation> {
    let other = |container: &Value| {
        let own = security(container, "procMount").as_str();
        own.filter(|own| *own != "Default").map(str::to_owned)
    };
    let types: BTreeSet<String> = subject.containers().filter_map(other).collect();
    let names = subject.names(|container| other(container).is_some());
    (!names.is_empty()).then(|| {
        let who = containers(&names);
        let detail = format!(
            "{who} must not set securityContext.procMount to {}",
            quoted(&types)
        );
        Violation::new("procMount", detail)
    })
}

pub fn sysctls(subject: Subject<'_>, minor: u32) -> Option<Violation> {
    let list = subject.security("sysctls").as_array();
    let names: Vec<&str> = list
        .into_iter()
        .flatten()
        .map(|sysctl| json::text(sysctl, "name"))
        .filter(|name| !is_allowed(&SYSCTLS, name, minor))
        .collect();
    (!names.is_empty()).then(|| Violation::new("forbidden sysctls", names.join(", ")))
}
