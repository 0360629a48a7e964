//! What this node refuses to run at all: a refused pod has failed before it began. Pure.
//!
//! Asked once a pod, before anything of it is made; a pod that runs is never asked again.

use super::security;
use super::state::{Verdict, spec};
use k8s_openapi::api::core::v1::Pod;

/// The sysctls that upstream holds for safe, and since which kernel they are of a namespace.
const SAFE_SYSCTLS: [(&str, (u32, u32)); 12] = [
    ("kernel.shm_rmid_forced", (0, 0)),
    ("net.ipv4.ip_local_port_range", (0, 0)),
    ("net.ipv4.tcp_syncookies", (0, 0)),
    ("net.ipv4.ping_group_range", (0, 0)),
    ("net.ipv4.ip_unprivileged_port_start", (0, 0)),
    ("net.ipv4.ip_local_reserved_ports", (3, 16)),
    ("net.ipv4.tcp_keepalive_time", (4, 5)),
    ("net.ipv4.tcp_fin_timeout", (4, 6)),
    ("net.ipv4.tcp_keepalive_intvl", (4, 5)),
    ("net.ipv4.tcp_keepalive_probes", (4, 5)),
    ("net.ipv4.tcp_rmem", (4, 15)),
    ("net.ipv4.tcp_wmem", (4, 15)),
];

/// What the node lets pods have. Read once.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Names, and prefixes that end in `*`, in the dotted form.
    allowed_sysctls: Vec<String>,
    pub has_app_armor: bool,
}

impl Rules {
    pub fn new(unsafe_sysctls: &[String], kernel: (u32, u32), has_app_armor: bool) -> Self {
        let safe = SAFE_SYSCTLS.iter().filter(|(_, since)| kernel >= *since);
        let allowed = safe
            .map(|(name, _)| (*name).to_owned())
            .chain(unsafe_sysctls.iter().map(|name| dotted(name)));
        Self {
            allowed_sysctls: allowed.collect(),
            has_app_armor,
        }
    }
}

/// Whether a pattern of `--allowed-unsafe-sysctls` is of a namespace that a pod can have.
pub fn check_pattern(pattern: &str) -> Result<(), String> {
    match namespace(&dotted(pattern)) {
        Some(_) => Ok(()),
        None => Err(format!(
            "the sysctls {:?} are not known to be namespaced",
            pattern.trim_end_matches('*')
        )),
    }
}

fn refused(reason: &str, message: String) -> Verdict {
    Verdict {
        reason: reason.to_owned(),
        message,
    }
}

/// Why the pod is not run here, as its status says it.
pub fn refuse_sysctls(pod: &Pod, rules: &Rules) -> Option<Verdict> {
    forbidden_sysctl(pod, rules).map(|message| refused("SysctlForbidden", message))
}

pub fn refuse_app_armor(pod: &Pod, rules: &Rules) -> Option<Verdict> {
    let (needs_app_armor, empty) = security::needs_app_armor(pod);
    if needs_app_armor && !rules.has_app_armor {
        let message = "Cannot enforce AppArmor: AppArmor is not enabled on the host";
        return Some(refused("AppArmor", message.to_owned()));
    }
    let empty = empty?;
    let message =
        format!("Cannot enforce AppArmor: invalid empty AppArmor profile name: {empty:?}");
    Some(refused("AppArmor", message))
}

fn forbidden_sysctl(pod: &Pod, rules: &Rules) -> Option<String> {
    let spec = spec(pod);
    let asked = spec.security_context.as_ref()?.sysctls.as_ref()?;
    let is_host = |namespace: &str| match namespace {
        "ipc" => spec.host_ipc.unwrap_or(false),
        _ => spec.host_network.unwrap_or(false),
    };
    asked.iter().find_map(|sysctl| {
        let name = dotted(&sysctl.name);
        let allows = |allowed: &&String| match allowed.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => **allowed == name,
        };
        let Some(allowed) = rules.allowed_sysctls.iter().find(allows) else {
            return Some(format!("forbidden sysctl: {name:?} not allowlisted"));
        };
        let namespace = namespace(allowed).filter(|namespace| is_host(namespace))?;
        Some(format!(
            "forbidden sysctl: {name:?} not allowed with host {namespace} enabled"
        ))
    })
}

/// The kind of namespace that a sysctl, or each with a prefix, is of.
fn namespace(pattern: &str) -> Option<&'static str> {
    let name = pattern.strip_suffix('*').unwrap_or(pattern);
    let ipc_prefixes = ["kernel.shm", "kernel.msg", "fs.mqueue."];
    if name == "kernel.sem" || ipc_prefixes.iter().any(|prefix| name.starts_with(prefix)) {
        return Some("ipc");
    }
    name.starts_with("net.").then_some("net")
}

/// With dots between the parts. A name that begins with a part and a slash has its dots and
/// slashes the other way around, for parts with dots in them: `net/ipv4/conf/eth0.1/forwarding`.
pub fn dotted(name: &str) -> String {
    match name.find(['.', '/']) {
        Some(first) if name.as_bytes()[first] == b'/' => {
            let swap = |letter| match letter {
                '.' => '/',
                '/' => '.',
                other => other,
            };
            name.chars().map(swap).collect()
        }
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests;
