//! What a pod spec may hold, and better would not.

use super::{containers, profiles};
use crate::field::Path;
use crate::json;
use crate::quantity::Quantity;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Annotations that say nothing any more.
const OLD_ANNOTATIONS: &[(&str, &str)] = &[
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];

/// Labels of nodes that are of old, and what to use.
const OLD_NODE_LABELS: &[(&str, &str)] = &[
    (
        "beta.kubernetes.io/arch",
        "deprecated since v1.14; use \"kubernetes.io/arch\" instead",
    ),
    (
        "beta.kubernetes.io/os",
        "deprecated since v1.14; use \"kubernetes.io/os\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    (
        "node-role.kubernetes.io/master",
        "use \"node-role.kubernetes.io/control-plane\" instead",
    ),
];

const NO_SELECTOR: &str = "a null labelSelector results in matching no pod";

/// Volume sources of old: the field, the name a warning gives it, and what became of it.
const OLD_VOLUMES: &[(&str, &str, &str)] = &[
    (
        "photonPersistentDisk",
        "photonPersistentDisk",
        "deprecated in v1.11, non-functional in v1.16+",
    ),
    (
        "gitRepo",
        "gitRepo",
        "deprecated in v1.11, and disabled by default in v1.33+",
    ),
    (
        "scaleIO",
        "scaleIO",
        "deprecated in v1.16, non-functional in v1.22+",
    ),
    (
        "flocker",
        "flocker",
        "deprecated in v1.22, non-functional in v1.25+",
    ),
    (
        "storageos",
        "storageOS",
        "deprecated in v1.22, non-functional in v1.25+",
    ),
    (
        "quobyte",
        "quobyte",
        "deprecated in v1.22, non-functional in v1.25+",
    ),
    (
        "glusterfs",
        "glusterfs",
        "deprecated in v1.25, non-functional in v1.26+",
    ),
    (
        "cephfs",
        "cephfs",
        "deprecated in v1.28, non-functional in v1.31+",
    ),
    (
        "rbd",
        "rbd",
        "deprecated in v1.28, non-functional in v1.31+",
    ),
];

mod paths;

/// Texts for the `Warning` header, about a PodTemplateSpec. `path` is its own.
pub fn of_template(template: &Value, path: &Path) -> Vec<String> {
    let metadata = json::get(template, "metadata");
    of(metadata, json::get(template, "spec"), Some(path))
}

/// Texts for the `Warning` header, about a new pod.
pub fn of_pod(metadata: &Value, spec: &Value) -> Vec<String> {
    of(metadata, spec, None)
}

fn of(metadata: &Value, spec: &Value, template: Option<&Path>) -> Vec<String> {
    let child = |name| template.map_or_else(|| Path::root(name), |path| path.child(name));
    let (annotations, path) = (json::get(metadata, "annotations"), &child("spec"));
    let annotations_path = &child("metadata").child("annotations");
    let mut warnings = scheduling(spec, path);
    for (key, fate) in OLD_ANNOTATIONS {
        if json::has(annotations, key) {
            warnings.push(format!("{}: {fate}", annotations_path.key(key)));
        }
    }
    for (index, volume) in json::list(spec, "volumes").iter().enumerate() {
        for (field, shown, fate) in OLD_VOLUMES {
            if json::has(volume, field) {
                let path = path.child("volumes").index(index).child(shown);
                warnings.push(format!("{path}: {fate}"));
            }
        }
    }
    warnings.extend(paths::of(json::list(spec, "volumes")));
    warnings.extend(lists_of_names(spec, path));
    warnings.extend(fractional_bytes(
        json::get(spec, "overhead"),
        &path.child("overhead"),
    ));
    warnings.extend(profiles::seccomp_of_pod(
        annotations,
        spec,
        annotations_path,
    ));
    for (container, path) in containers(spec, path) {
        let of_profile = profiles::seccomp_of_container(annotations, container, annotations_path);
        warnings.extend(of_profile);
        // A pod's profile has become a field by now.
        if template.is_some() {
            warnings.extend(profiles::apparmor_of_container(
                annotations,
                spec,
                container,
                annotations_path,
            ));
        }
        for list in ["limits", "requests"] {
            let quantities = json::at(container, &["resources", list]);
            let path = path.child("resources").child(list);
            warnings.extend(fractional_bytes(quantities, &path));
        }
        warnings.extend(duplicate_env(container, &path));
    }
    warnings.extend(ports(spec, path));
    warnings.extend(port_names(spec, path));
    if json::int(spec, "terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0) {
        let path = path.child("terminationGracePeriodSeconds");
        let text = "must be >= 0; negative values are invalid and will be treated as 1";
        warnings.push(format!("{path}: {text}"));
    }
    warnings.extend(affinity(
        json::get(spec, "affinity"),
        &path.child("affinity"),
    ));
    warnings
}

/// The warning for the label of a node that has another name now. Upstream has two forms of it.
pub fn deprecated_node_label(label: &str, with_label: bool, path: &Path) -> Option<String> {
    let text = replacement(label)?;
    Some(if with_label {
        format!("{path}: {label} is {text}")
    } else {
        format!("{path}: {text}")
    })
}

fn replacement(label: &str) -> Option<&'static str> {
    let found = OLD_NODE_LABELS.iter().find(|(old, _)| *old == label);
    found.map(|(_, text)| *text)
}

fn affinity(affinity: &Value, path: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    for kind in ["podAffinity", "podAntiAffinity"] {
        let terms = json::get(affinity, kind);
        for (list, inner) in [
            ("requiredDuringSchedulingIgnoredDuringExecution", ""),
            (
                "preferredDuringSchedulingIgnoredDuringExecution",
                "podAffinityTerm",
            ),
        ] {
            for (index, term) in json::list(terms, list).iter().enumerate() {
                let path = path.child(kind).child(list).index(index);
                let (term, path) = match inner {
                    "" => (term, path),
                    inner => (json::get(term, inner), path.child(inner)),
                };
                if !json::has(term, "labelSelector") {
                    warnings.push(format!("{}: {NO_SELECTOR}", path.child("labelSelector")));
                }
            }
        }
    }
    warnings
}

fn scheduling(spec: &Value, path: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    for (label, _) in json::entries(spec, "nodeSelector") {
        if let Some(text) = replacement(label) {
            warnings.push(format!("{}: {text}", path.child("nodeSelector").key(label)));
        }
    }
    let path = path.child("topologySpreadConstraints");
    for (index, constraint) in json::list(spec, "topologySpreadConstraints")
        .iter()
        .enumerate()
    {
        let path = path.index(index);
        let key = json::text(constraint, "topologyKey");
        if let Some(text) = replacement(key) {
            warnings.push(format!("{}: {key} is {text}", path.child("topologyKey")));
        }
        if !json::has(constraint, "labelSelector") {
            let path = path.child("labelSelector");
            warnings.push(format!("{path}: {NO_SELECTOR}"));
        }
    }
    warnings
}

fn lists_of_names(spec: &Value, path: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    for (list, field) in [("hostAliases", "ip"), ("imagePullSecrets", "name")] {
        let mut seen = BTreeSet::new();
        for (index, item) in json::list(spec, list).iter().enumerate() {
            let value = json::text(item, field);
            let path = path.child(list).index(index).child(field);
            if !seen.insert(value) {
                warnings.push(format!("{path}: duplicate {field} \"{value}\""));
            }
        }
    }
    let path = path.child("imagePullSecrets");
    for (index, secret) in json::list(spec, "imagePullSecrets").iter().enumerate() {
        if json::text(secret, "name").is_empty() {
            let path = path.index(index).child("name");
            warnings.push(format!("{path}: invalid empty name \"\""));
        }
    }
    warnings
}

fn fractional_bytes(list: &Value, path: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    for name in ["memory", "ephemeral-storage"] {
        let Ok(quantity) = Quantity::from_value(json::get(list, name)) else {
            continue;
        };
        if !quantity.is_whole() {
            let text = "is invalid, must be an integer";
            warnings.push(format!(
                "{}: fractional byte value \"{quantity}\" {text}",
                path.key(name)
            ));
        }
    }
    warnings
}

/// Texts about a NodeSelector.
pub fn node_selector(selector: &Value, path: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    let path = path.child("nodeSelectorTerms");
    for (index, term) in json::list(selector, "nodeSelectorTerms").iter().enumerate() {
        let path = path.index(index).child("matchExpressions");
        let expressions = json::list(term, "matchExpressions").iter().enumerate();
        warnings.extend(expressions.filter_map(|(index, expression)| {
            let path = path.index(index).child("key");
            deprecated_node_label(json::text(expression, "key"), true, &path)
        }));
    }
    warnings
}

/// Texts about a PersistentVolumeClaimSpec.
pub fn claim_spec(spec: &Value, path: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    for list in ["requests", "limits"] {
        let sizes = json::at(spec, &["resources", list]);
        let Ok(size) = Quantity::from_value(json::get(sizes, "storage")) else {
            continue;
        };
        if !size.is_whole() {
            let path = path.child("resources").child(list).key("storage");
            let text = "is invalid, must be an integer";
            warnings.push(format!("{path}: fractional byte value \"{size}\" {text}"));
        }
    }
    warnings
}

/// A second definition that builds on the first is fine: `A=$(A):more`.
fn duplicate_env(container: &Value, path: &Path) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut warnings = Vec::new();
    for (index, variable) in json::list(container, "env").iter().enumerate() {
        let [name, value] = ["name", "value"].map(|field| json::text(variable, field));
        let reference = format!("$({name})");
        let builds_on = value.contains(&reference) && value != reference;
        let replaces = json::has(variable, "valueFrom") || !builds_on;
        if !seen.insert(name) && replaces {
            let path = path.child("env").index(index);
            let text = "which may be dropped when using apply";
            warnings.push(format!(
                "{path}: hides previous definition of \"{name}\", {text}"
            ));
        }
    }
    warnings
}

/// Ports of one number and protocol, in all containers of the pod.
fn ports(spec: &Value, path: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut all: BTreeMap<(i64, &str), Vec<(Path, &Value)>> = BTreeMap::new();
    let host = |port: &Value| {
        (
            json::text(port, "hostIP").to_owned(),
            json::int(port, "hostPort").unwrap_or(0),
        )
    };
    for (container, path) in containers(spec, path) {
        for (index, port) in json::list(container, "ports").iter().enumerate() {
            let path = path.child("ports").index(index);
            let number = json::int(port, "containerPort").unwrap_or(0);
            if let (address, 0) = host(port)
                && !address.is_empty()
            {
                warnings.push(format!(
                    "{path}: hostIP set without hostPort: {{Name:{} HostPort:0 \
                     ContainerPort:{number} Protocol:{} HostIP:{address}}}",
                    json::text(port, "name"),
                    json::text(port, "protocol")
                ));
            }
            let others = all
                .entry((number, json::text(port, "protocol")))
                .or_default();
            for (other_path, other) in others.iter() {
                let ((ip, host_port), (other_ip, other_port)) = (host(port), host(other));
                let what = if (&ip, host_port) == (&other_ip, other_port) {
                    "duplicate"
                } else if host_port == 0 || other_port == 0 {
                    "overlapping"
                } else if host_port == other_port && ip.is_empty() != other_ip.is_empty() {
                    "dangerously ambiguous"
                } else {
                    continue;
                };
                warnings.push(format!("{path}: {what} port definition with {other_path}"));
            }
            others.push((path, port));
        }
    }
    warnings
}

fn port_names(spec: &Value, path: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut seen: BTreeMap<&str, Path> = BTreeMap::new();
    for (container, path) in containers(spec, path) {
        for (index, port) in json::list(container, "ports").iter().enumerate() {
            let name = json::text(port, "name");
            let path = path.child("ports").index(index);
            if name.is_empty() {
                continue;
            }
            match seen.get(name) {
                Some(other) => warnings.push(format!(
                    "{path}: duplicate port name \"{name}\" with {other}, services and probes \
                     that select ports by name will use {other}"
                )),
                None => drop(seen.insert(name, path)),
            }
        }
    }
    warnings
}

#[cfg(test)]
mod tests;
