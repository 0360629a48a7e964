//! What a process may do: capabilities, its user, and coming to more than it began with.

use super::{Subject, Violation, containers, quoted, security, setters};
use coracle_api::json;
use serde_json::Value;
use std::collections::BTreeSet;

/// What container runtimes give unasked, without NET_RAW.
const BASELINE: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];
const RESTRICTED: [&str; 1] = ["NET_BIND_SERVICE"];
/// From here on, Windows pods are excused from what they cannot set.
const WINDOWS_EXCUSED: u32 = 25;
/// From here on, pods in a user namespace may be root in it.
const USER_NAMESPACES: u32 = 35;

/// The capabilities that containers add beyond what is allowed, and who adds them.
fn beyond(subject: Subject<'_>, allowed: &[&str]) -> (Vec<String>, BTreeSet<String>) {
    let mut all = BTreeSet::new();
    let mut names = Vec::new();
    for container in subject.containers() {
        let added = json::list(security(container, "capabilities"), "add").iter();
        let added: Vec<&str> = added
            .filter_map(Value::as_str)
            .filter(|one| !allowed.contains(one))
            .collect();
        if !added.is_empty() {
            names.push(json::text(container, "name").to_owned());
            all.extend(added.into_iter().map(str::to_owned));
        }
    }
    (names, all)
}

fn must_not_include((names, added): (Vec<String>, BTreeSet<String>)) -> Option<String> {
    (!names.is_empty()).then(|| {
        format!(
            "{} must not include {} in securityContext.capabilities.add",
            containers(&names),
            quoted(&added)
        )
    })
}

pub fn added_capabilities(subject: Subject<'_>, _: u32) -> Option<Violation> {
    let detail = must_not_include(beyond(subject, &BASELINE))?;
    Some(Violation::new("non-default capabilities", detail))
}

pub fn capabilities(subject: Subject<'_>, minor: u32) -> Option<Violation> {
    if minor >= WINDOWS_EXCUSED && subject.is_windows() {
        return None;
    }
    let keeps = subject.names(|container| {
        let mut dropped = json::list(security(container, "capabilities"), "drop").iter();
        !dropped.any(|one| one == "ALL")
    });
    let mut details = Vec::new();
    if !keeps.is_empty() {
        let who = containers(&keeps);
        details.push(format!(
            "{who} must set securityContext.capabilities.drop=[\"ALL\"]"
        ));
    }
    details.extend(must_not_include(beyond(subject, &RESTRICTED)));
    (!details.is_empty()).then(|| Violation::new("unrestricted capabilities", details.join("; ")))
}

pub fn privileged(subject: Subject<'_>, _: u32) -> Option<Violation> {
    let is_true = &Value::Bool(true);
    let names = subject.names(|container| security(container, "privileged") == is_true);
    (!names.is_empty()).then(|| {
        let who = containers(&names);
        let detail = format!("{who} must not set securityContext.privileged=true");
        Violation::new("privileged", detail)
    })
}

pub fn escalation(subject: Subject<'_>, minor: u32) -> Option<Violation> {
    if minor >= WINDOWS_EXCUSED && subject.is_windows() {
        return None;
    }
    let names = subject
        .names(|container| security(container, "allowPrivilegeEscalation") != &Value::Bool(false));
    (!names.is_empty()).then(|| {
        let who = containers(&names);
        let detail = format!("{who} must set securityContext.allowPrivilegeEscalation=false");
        Violation::new("allowPrivilegeEscalation != false", detail)
    })
}

pub fn non_root(subject: Subject<'_>, minor: u32) -> Option<Violation> {
    const REASON: &str = "runAsNonRoot != true";
    const FIELD: &str = "runAsNonRoot";
    if minor >= USER_NAMESPACES && subject.is_in_user_namespace() {
        return None;
    }
    let of_pod = subject.security(FIELD).as_bool();
    let said = subject.names(|container| security(container, FIELD) == &Value::Bool(false));
    if of_pod == Some(false) || !said.is_empty() {
        let who = setters(of_pod == Some(false), &said);
        let detail = format!("{who} must not set securityContext.runAsNonRoot=false");
        return Some(Violation::new(REASON, detail));
    }
    let silent = subject.names(|container| security(container, FIELD).is_null());
    (of_pod != Some(true) && !silent.is_empty()).then(|| {
        let who = containers(&silent);
        let detail = format!("pod or {who} must set securityContext.runAsNonRoot=true");
        Violation::new(REASON, detail)
    })
}

pub fn user(subject: Subject<'_>, minor: u32) -> Option<Violation> {
    if minor >= USER_NAMESPACES && subject.is_in_user_namespace() {
        return None;
    }
    let is_root = |user: &Value| user.as_i64() == Some(0);
    let pod = is_root(subject.security("runAsUser"));
    let names = subject.names(|container| is_root(security(container, "runAsUser")));
    (pod || !names.is_empty()).then(|| {
        let detail = format!("{} must not set runAsUser=0", setters(pod, &names));
        Violation::new("runAsUser=0", detail)
    })
}
