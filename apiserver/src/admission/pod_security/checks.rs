//! The rules of the levels, each with the release it came with. Pure.
//!
//! A rule is one function over a pod's spec and annotations, at the release that is asked for.
//! Baseline's come first, then restricted's, each by name: in this order the violations are told.

mod host; // What is the node's: namespaces, paths, ports, probes of other hosts.
mod privileges; // What a process may do: capabilities, users, escalation.
mod profiles; // AppArmor, SELinux, seccomp, /proc and sysctls.

use super::level::{Level, LevelVersion, Version};
use coracle_api::json;
use serde_json::Value;

/// The newest release that changed a rule; those after it have the same.
const NEWEST: u32 = 35;

/// A pod, or the template of one.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    pub annotations: &'a Value,
    pub spec: &'a Value,
}

/// A rule that a pod breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub reason: &'static str,
    pub detail: String,
}

impl Violation {
    fn new(reason: &'static str, detail: impl Into<String>) -> Self {
        Self {
            reason,
            detail: detail.into(),
        }
    }
}

type Rule = fn(Subject<'_>, u32) -> Option<Violation>;

struct Check {
    name: &'static str,
    level: Level,
    /// The release that brought it: `1.since`.
    since: u32,
    rule: Rule,
    /// The baseline rule that this one takes the place of.
    overrides: &'static str,
}

const fn baseline(name: &'static str, since: u32, rule: Rule) -> Check {
    Check {
        name,
        level: Level::Baseline,
        since,
        rule,
        overrides: "",
    }
}

const fn restricted(name: &'static str, since: u32, rule: Rule, overrides: &'static str) -> Check {
    Check {
        name,
        level: Level::Restricted,
        since,
        rule,
        overrides,
    }
}

const CHECKS: &[Check] = &[
    baseline("appArmorProfile", 0, profiles::app_armor),
    baseline("capabilities_baseline", 0, privileges::added_capabilities),
    baseline("hostNamespaces", 0, host::namespaces),
    baseline("hostPathVolumes", 0, host::paths),
    baseline("hostPorts", 0, host::ports),
    baseline("hostProbesAndHostLifecycle", 34, host::probes),
    baseline("privileged", 0, privileges::privileged),
    baseline("procMount", 0, profiles::proc_mount),
    baseline("seLinuxOptions", 0, profiles::se_linux),
    baseline("seccompProfile_baseline", 0, profiles::seccomp),
    baseline("sysctls", 0, profiles::sysctls),
    baseline("windowsHostProcess", 0, host::windows_processes),
    restricted("allowPrivilegeEscalation", 8, privileges::escalation, ""),
    restricted(
        "capabilities_restricted",
        22,
        privileges::capabilities,
        "capabilities_baseline",
    ),
    restricted(
        "procMount_restricted",
        35,
        profiles::proc_mount_always,
        "procMount",
    ),
    restricted("restrictedVolumes", 0, host::volumes, "hostPathVolumes"),
    restricted("runAsNonRoot", 0, privileges::non_root, ""),
    restricted("runAsUser", 23, privileges::user, ""),
    restricted(
        "seccompProfile_restricted",
        19,
        profiles::seccomp_required,
        "seccompProfile_baseline",
    ),
];

/// What a pod breaks of a level, as it was at a version.
pub fn evaluate(wanted: LevelVersion, subject: Subject<'_>) -> Vec<Violation> {
    if wanted.level == Level::Privileged {
        return Vec::new();
    }
    let minor = match wanted.version {
        Version::Latest => NEWEST,
        Version::Minor(minor) => minor.min(NEWEST),
    };
    let applies = |check: &&Check| check.level <= wanted.level && check.since <= minor;
    let is_overridden = |name: &str| {
        let mut checks = CHECKS.iter().filter(applies);
        checks.any(|check| check.overrides == name)
    };
    CHECKS
        .iter()
        .filter(applies)
        .filter(|check| !is_overridden(check.name))
        .filter_map(|check| (check.rule)(subject, minor))
        .collect()
}

impl<'a> Subject<'a> {
    /// All of them, in upstream's order.
    fn containers(self) -> impl Iterator<Item = &'a Value> {
        let lists = ["initContainers", "containers", "ephemeralContainers"];
        lists
            .into_iter()
            .flat_map(move |list| json::list(self.spec, list))
    }

    /// The names of containers of which something holds.
    fn names(self, holds: impl Fn(&Value) -> bool) -> Vec<String> {
        self.containers()
            .filter(|container| holds(container))
            .map(|container| json::text(container, "name").to_owned())
            .collect()
    }

    /// A field of the pod's own security context.
    fn security(self, field: &str) -> &'a Value {
        json::at(self.spec, &["securityContext", field])
    }

    fn is_windows(self) -> bool {
        json::text(json::get(self.spec, "os"), "name") == "windows"
    }

    /// Users of a pod in a user namespace of its own are nobody on the node.
    fn is_in_user_namespace(self) -> bool {
        json::get(self.spec, "hostUsers") == &Value::Bool(false)
    }
}

/// A field of a container's security context.
fn security<'a>(container: &'a Value, field: &str) -> &'a Value {
    json::at(container, &["securityContext", field])
}

/// `"a", "b"`.
fn quoted(texts: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let texts: Vec<String> = texts
        .into_iter()
        .map(|text| format!("\"{}\"", text.as_ref()))
        .collect();
    texts.join(", ")
}

fn plural(one: &'static str, many: &'static str, count: usize) -> &'static str {
    if count == 1 { one } else { many }
}

/// `container "a"`, `containers "a", "b"`.
fn containers(names: &[String]) -> String {
    let word = plural("container", "containers", names.len());
    format!("{word} {}", quoted(names))
}

/// Who set something: the pod, and containers by name.
fn setters(pod: bool, names: &[String]) -> String {
    let mut setters = Vec::new();
    if pod {
        setters.push("pod".to_owned());
    }
    if !names.is_empty() {
        setters.push(containers(names));
    }
    setters.join(" and ")
}
