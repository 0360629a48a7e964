//! What `kubectl get nodes` prints.

use crate::kinds::row::{self, column, wide};
use crate::object::Object;
use crate::resource::Column;
use crate::{json, print};
use serde_json::Value;
use std::collections::BTreeSet;

const ROLE_PREFIX: &str = "node-role.kubernetes.io/";
const ROLE_LABEL: &str = "kubernetes.io/role";
const NONE: &str = "<none>";
const UNKNOWN: &str = "<unknown>";

pub const COLUMNS: &[Column] = &[
    row::NAME,
    column("Status", "string", "The status of the node"),
    column("Roles", "string", "The roles of the node"),
    row::AGE,
    column(
        "Version",
        "string",
        "The version that the node's agent reports.",
    ),
    wide(
        "Internal-IP",
        "string",
        "The address of the node inside the cluster.",
    ),
    wide(
        "External-IP",
        "string",
        "The address of the node from outside.",
    ),
    wide(
        "OS-Image",
        "string",
        "The operating system, as its os-release names it.",
    ),
    wide(
        "Kernel-Version",
        "string",
        "The version of the kernel, and the architecture.",
    ),
    wide(
        "Container-Runtime",
        "string",
        "The container runtime and its version.",
    ),
];

pub fn cells(node: &Object, now: i64) -> Vec<Value> {
    let info = |name: &str| node.str(&["status", "nodeInfo", name]);
    let known = |text: &str| {
        if text.is_empty() {
            UNKNOWN.to_owned()
        } else {
            text.to_owned()
        }
    };
    let mut kernel = known(info("kernelVersion"));
    if !info("architecture").is_empty() {
        kernel = format!("{kernel} ({})", info("architecture"));
    }
    vec![
        node.name().into(),
        status(node).into(),
        roles(node).into(),
        print::age_of(node, now),
        info("kubeletVersion").into(),
        address(node, "InternalIP").into(),
        address(node, "ExternalIP").into(),
        known(info("osImage")).into(),
        kernel.into(),
        known(info("containerRuntimeVersion")).into(),
    ]
}

fn status(node: &Object) -> String {
    let ready = node
        .list(&["status", "conditions"])
        .iter()
        .rfind(|condition| json::text(condition, "type") == "Ready")
        .map(|condition| json::text(condition, "status"));
    let mut status = match ready {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if node.bool(&["spec", "unschedulable"]) {
        status.push_str(",SchedulingDisabled");
    }
    status
}

fn roles(node: &Object) -> String {
    let roles: BTreeSet<&str> = node
        .labels()
        .filter_map(|(key, value)| match key.strip_prefix(ROLE_PREFIX) {
            Some(role) => Some(role),
            None => (key == ROLE_LABEL).then_some(value),
        })
        .filter(|role| !role.is_empty())
        .collect();
    if roles.is_empty() {
        NONE.to_owned()
    } else {
        roles.into_iter().collect::<Vec<_>>().join(",")
    }
}

fn address<'a>(node: &'a Object, kind: &str) -> &'a str {
    node.list(&["status", "addresses"])
        .iter()
        .find(|address| json::text(address, "type") == kind)
        .map_or(NONE, |address| json::text(address, "address"))
}
