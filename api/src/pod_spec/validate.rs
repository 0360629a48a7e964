//! What is wrong with a pod spec, in a pod or in a template, in the order upstream names it.

pub mod containers;
mod env;
mod mounts;
mod network;
mod os;
pub(super) mod paths;
mod probes;
mod projected;
pub mod resources;
mod scheduling;
pub(super) mod security;
pub mod sources;
mod volumes;

pub use resources::quantities;
pub use scheduling::{node_selector, taint_effect, tolerations};

use super::{MIRROR, profiles};
use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks;
use crate::meta_validate::{annotations, invalid_each, labels};
use crate::{json, names};
use serde_json::Value;
use std::collections::BTreeSet;

/// Where a pod spec stands.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// Name of the pod, empty in a template.
    pub pod_name: &'a str,
    /// A pod's own spec, and not one of a template.
    pub is_pod: bool,
}

/// Deadlines and the like are 32 bits wide.
const SECONDS_MAX: i64 = i32::MAX as i64;
/// What the kernel takes as a host name.
const HOSTNAME_BYTES_MAX: usize = 64;

/// A PodTemplateSpec. `old` is the template before, on an update.
pub fn template(template: &Value, _old: Option<&Value>, path: &Path) -> ErrorList {
    let metadata = json::get(template, "metadata");
    let spec_path = path.child("spec");
    let template_spec = json::get(template, "spec");
    let mut errors = labels(json::get(metadata, "labels"), &path.child("labels"));
    let annotations_path = path.child("annotations");
    errors.extend(annotations(
        json::get(metadata, "annotations"),
        &annotations_path,
    ));
    errors.extend(pod_annotations(metadata, template_spec, &annotations_path));
    let context = Context {
        pod_name: "",
        is_pod: false,
    };
    errors.extend(spec(template_spec, &spec_path, context));
    let all = json::get(metadata, "annotations");
    errors.extend(profiles::disagreements(all, template_spec, &spec_path));
    if !json::list(template_spec, "ephemeralContainers").is_empty() {
        let detail = "ephemeral containers not allowed in pod template";
        errors.push(FieldError::forbidden(
            &spec_path.child("ephemeralContainers"),
            detail,
        ));
    }
    errors
}

/// Annotations that mean something to pods.
pub fn pod_annotations(metadata: &Value, spec: &Value, path: &Path) -> ErrorList {
    const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
    let annotation = |name: &str| json::at(metadata, &["annotations", name]).as_str();
    let mut errors = ErrorList::new();
    if let Some(value) = annotation(MIRROR)
        && json::text(spec, "nodeName").is_empty()
    {
        let detail = "must set spec.nodeName if mirror pod annotation is set";
        errors.push(FieldError::invalid(&path.key(MIRROR), value, detail));
    }
    if let Some(cost) = annotation(DELETION_COST) {
        let plain = !cost.starts_with('+') && (cost == "0" || !cost.starts_with('0'));
        if !plain || cost.parse::<i32>().is_err() {
            let detail = "must be a 32bit integer";
            errors.push(FieldError::invalid(&path.key(DELETION_COST), cost, detail));
        }
    }
    let all = json::get(metadata, "annotations");
    errors.extend(profiles::annotations(all, spec, path));
    errors
}

/// A PodSpec.
pub fn spec(spec: &Value, path: &Path, context: Context<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    if !json::has(spec, "terminationGracePeriodSeconds") {
        errors.push(FieldError::required(
            &path.child("terminationGracePeriodSeconds"),
            "",
        ));
    }
    let (volumes, volume_errors) = volumes::all(spec, &path.child("volumes"), context);
    errors.extend(volume_errors);
    let claims = claim_names(spec);
    errors.extend(resource_claims(spec, &path.child("resourceClaims")));
    let scope = containers::Scope {
        spec,
        volumes: &volumes,
        claims: &claims,
    };
    errors.extend(scope.regular(&path.child("containers")));
    errors.extend(scope.init(&path.child("initContainers")));
    errors.extend(scope.ephemeral(&path.child("ephemeralContainers")));
    errors.extend(resources::pod_level(spec, &path.child("resources")));
    errors.extend(network::host_ports(spec, path, context));
    let policies = &["Always", "OnFailure", "Never"];
    let policy_path = path.child("restartPolicy");
    let policy = json::text(spec, "restartPolicy");
    checks::required_one_of(&mut errors, policy, policies, &policy_path);
    errors.extend(network::dns_policy(spec, &path.child("dnsPolicy")));
    errors.extend(labels(
        json::get(spec, "nodeSelector"),
        &path.child("nodeSelector"),
    ));
    errors.extend(security::pod(spec, &path.child("securityContext")));
    errors.extend(scheduling::affinity(
        json::get(spec, "affinity"),
        &path.child("affinity"),
    ));
    errors.extend(network::dns_config(spec, &path.child("dnsConfig")));
    errors.extend(gates(spec, path));
    errors.extend(scheduling::topology_spread(
        spec,
        &path.child("topologySpreadConstraints"),
    ));
    errors.extend(os::host_processes(spec, path));
    errors.extend(network::host_users(spec, path));
    errors.extend(hostname_override(spec, path));
    errors.extend(small_fields(spec, path));
    errors.extend(env::file_volumes(spec, path));
    errors
}

fn claim_names(spec: &Value) -> BTreeSet<String> {
    let claims = json::list(spec, "resourceClaims").iter();
    claims
        .map(|claim| json::text(claim, "name").to_owned())
        .collect()
}

fn resource_claims(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for (index, claim) in json::list(spec, "resourceClaims").iter().enumerate() {
        let path = path.index(index);
        let name = json::text(claim, "name");
        if name.is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        } else if seen.insert(name) {
            invalid_each(
                &mut errors,
                &path.child("name"),
                name,
                names::dns_label(name),
            );
        } else {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        let sources = ["resourceClaimName", "resourceClaimTemplateName"];
        let given = sources
            .iter()
            .filter(|source| json::has(claim, source))
            .count();
        if given != 1 {
            let detail = match given {
                0 => "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
                _ => {
                    "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be \
                      specified"
                }
            };
            let error = FieldError::invalid(&path, claim.clone(), detail);
            errors.push(error.as_go("io.k8s.api.core.v1.PodResourceClaim"));
        }
        for source in sources {
            if let Some(name) = json::some(claim, source).and_then(Value::as_str) {
                invalid_each(
                    &mut errors,
                    &path.child(source),
                    name,
                    names::dns_subdomain(name),
                );
            }
        }
    }
    errors
}

fn gates(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, gate) in json::list(spec, "readinessGates").iter().enumerate() {
        let path = path
            .child("readinessGates")
            .index(index)
            .child("conditionType");
        let kind = json::text(gate, "conditionType");
        invalid_each(&mut errors, &path, kind, names::qualified_name(kind));
    }
    let mut seen = BTreeSet::new();
    for (index, gate) in json::list(spec, "schedulingGates").iter().enumerate() {
        let path = path.child("schedulingGates").index(index);
        let name = json::text(gate, "name");
        invalid_each(&mut errors, &path, name, names::qualified_name(name));
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&path, name));
        }
    }
    errors
}

fn hostname_override(spec: &Value, path: &Path) -> ErrorList {
    let Some(name) = json::some(spec, "hostnameOverride").and_then(Value::as_str) else {
        return ErrorList::new();
    };
    let path = path.child("hostnameOverride");
    let mut errors = ErrorList::new();
    for flag in ["setHostnameAsFQDN", "hostNetwork"] {
        if json::flag(spec, flag) {
            let detail = format!("may not be specified when {flag} is true");
            errors.push(FieldError::forbidden(&path, detail));
        }
    }
    if name.len() > HOSTNAME_BYTES_MAX {
        errors.push(FieldError::too_long(&path, HOSTNAME_BYTES_MAX));
    }
    invalid_each(&mut errors, &path, name, names::dns_subdomain(name));
    errors
}

fn small_fields(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    type Check = fn(&str) -> Vec<String>;
    let mut named = |field: &str, check: Check| {
        let name = json::text(spec, field);
        if !name.is_empty() {
            invalid_each(&mut errors, &path.child(field), name, check(name));
        }
    };
    named("serviceAccountName", names::dns_subdomain);
    named("nodeName", names::dns_subdomain);
    if let Some(seconds) = json::int(spec, "activeDeadlineSeconds") {
        for detail in names::between(seconds, 1, SECONDS_MAX) {
            let path = path.child("activeDeadlineSeconds");
            errors.push(FieldError::invalid(&path, seconds, detail));
        }
    }
    let mut named = |field: &str, check: Check| {
        let name = json::text(spec, field);
        if !name.is_empty() {
            invalid_each(&mut errors, &path.child(field), name, check(name));
        }
    };
    named("hostname", names::dns_label);
    named("subdomain", names::dns_label);
    let tolerated = json::list(spec, "tolerations");
    errors.extend(tolerations(tolerated, &path.child("tolerations")));
    errors.extend(network::host_aliases(spec, &path.child("hostAliases")));
    for field in ["priorityClassName", "runtimeClassName"] {
        let name = json::text(spec, field);
        if json::has(spec, field) && !(name.is_empty() && field == "priorityClassName") {
            invalid_each(
                &mut errors,
                &path.child(field),
                name,
                names::dns_subdomain(name),
            );
        }
    }
    if let Some(policy) = json::some(spec, "preemptionPolicy").and_then(Value::as_str) {
        let policies = &["PreemptLowerPriority", "Never"];
        let path = path.child("preemptionPolicy");
        checks::required_one_of(&mut errors, policy, policies, &path);
    }
    if let Some(overhead) = json::some(spec, "overhead") {
        let overhead = serde_json::json!({ "limits": overhead });
        errors.extend(resources::of_container(
            &overhead,
            &BTreeSet::new(),
            &path.child("overhead"),
        ));
    }
    errors.extend(os::fields(spec, path));
    errors
}

#[cfg(test)]
mod tests;
