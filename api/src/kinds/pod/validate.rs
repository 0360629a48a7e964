//! What is wrong with a pod that is created, and with its status.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks;
use crate::kinds::pod::device_claims;
use crate::meta_validate::invalid_each;
use crate::object::Object;
use crate::pod_spec::resources::is_sidecar;
use crate::pod_spec::validate::{self, Context, containers};
use crate::pod_spec::{MIRROR, profiles};
use crate::{json, names};
use serde_json::Value;

pub fn create(pod: &Object) -> ErrorList {
    let mut errors = metadata_and_spec(pod);
    let path = Path::root("spec");
    if !pod.list(&["spec", "ephemeralContainers"]).is_empty() {
        let path = path.child("ephemeralContainers");
        errors.push(FieldError::forbidden(&path, "cannot be set on create"));
    }
    let gated = !pod.list(&["spec", "schedulingGates"]).is_empty();
    if gated && !pod.str(&["spec", "nodeName"]).is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        errors.push(FieldError::forbidden(&path.child("nodeName"), detail));
    }
    if let (Some(all), Some(spec)) = (pod.get(&["metadata", "annotations"]), pod.get(&["spec"])) {
        errors.extend(profiles::disagreements(all, spec, &path));
    }
    errors
}

pub fn metadata_and_spec(pod: &Object) -> ErrorList {
    let path = Path::root("spec");
    let spec = pod.get(&["spec"]).unwrap_or(&Value::Null);
    let metadata = pod.get(&["metadata"]).unwrap_or(&Value::Null);
    let annotations_path = Path::root("metadata").child("annotations");
    let mut errors = validate::pod_annotations(metadata, spec, &annotations_path);
    let context = Context {
        pod_name: pod.name(),
        is_pod: true,
    };
    errors.extend(validate::spec(spec, &path, context));
    if json::text(spec, "serviceAccountName").is_empty() {
        errors.extend(tokens_without_account(spec, &path.child("volumes")));
    }
    for list in ["containers", "initContainers"] {
        for (index, container) in json::list(spec, list).iter().enumerate() {
            errors.extend(containers::image_of_pod(
                container,
                &path.child(list).index(index),
            ));
        }
    }
    errors
}

fn tokens_without_account(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, volume) in json::list(spec, "volumes").iter().enumerate() {
        let path = path.index(index).child("projected").child("sources");
        let sources = json::list(json::get(volume, "projected"), "sources");
        for (index, source) in sources.iter().enumerate() {
            if json::has(source, "serviceAccountToken") {
                let path = path.index(index).child("serviceAccountToken");
                let detail = "must not be specified when serviceAccountName is not set";
                errors.push(FieldError::forbidden(&path, detail));
            }
        }
    }
    errors
}

/// Annotations that stay as they were created.
pub fn annotations_update(new: &Object, old: &Object) -> ErrorList {
    const KINDS: [(&str, &str); 2] = [
        (MIRROR, "mirror pod annotation"),
        (profiles::APPARMOR, "AppArmor annotations"),
    ];
    let path = Path::root("metadata").child("annotations");
    let mut errors = ErrorList::new();
    let mut check = |key: &str, verb: &str| {
        if let Some((_, what)) = KINDS.iter().find(|(prefix, _)| key.starts_with(prefix)) {
            let detail = format!("may not {verb} {what}");
            errors.push(FieldError::forbidden(&path.key(key), detail));
        }
    };
    for (key, value) in old.string_map(&["metadata", "annotations"]) {
        if new.annotation(key) != Some(value) {
            check(key, "remove or update");
        }
    }
    for (key, _) in new.string_map(&["metadata", "annotations"]) {
        if old.annotation(key).is_none() {
            check(key, "add");
        }
    }
    // A second time: upstream has such causes twice.
    let [metadata, spec] = ["metadata", "spec"].map(|part| new.get(&[part]));
    let [metadata, spec] = [metadata, spec].map(|part| part.unwrap_or(&Value::Null));
    errors.extend(validate::pod_annotations(metadata, spec, &path));
    errors
}

pub fn status(new: &Object, old: &Object) -> ErrorList {
    let path = Path::root("status");
    let status = new.get(&["status"]).unwrap_or(&Value::Null);
    let old_status = old.get(&["status"]).unwrap_or(&Value::Null);
    let mut errors = annotations_update(new, old);
    errors.extend(conditions(status, &path.child("conditions")));
    errors.extend(nominated_node(new, old, &path.child("nominatedNodeName")));
    let generation = json::int(status, "observedGeneration").unwrap_or(0);
    if generation < 0 {
        let path = path.child("observedGeneration");
        let detail = "must be a non-negative integer";
        errors.push(FieldError::invalid(&path, generation, detail));
    }
    checks::immutable(&mut errors, status, old_status, "qosClass", &path);
    for (field, list) in [
        ("containerStatuses", "containers"),
        ("initContainerStatuses", "initContainers"),
        ("ephemeralContainerStatuses", "ephemeralContainers"),
    ] {
        let transition = Transition {
            spec: old.get(&["spec"]).unwrap_or(&Value::Null),
            list,
        };
        let statuses = [status, old_status].map(|status| json::list(status, field));
        errors.extend(transition.check(statuses[0], statuses[1], &path.child(field)));
    }
    let spec = new.get(&["spec"]).unwrap_or(&Value::Null);
    errors.extend(device_claims::of_status(spec, status, &path));
    if let Some(first) = json::list(status, "hostIPs").first() {
        let ip = json::text(first, "ip");
        if ip != json::text(status, "hostIP") {
            let path = path.child("hostIPs").index(0).child("ip");
            errors.push(FieldError::invalid(&path, ip, "must be equal to `hostIP`"));
        }
    }
    for field in ["podIPs", "hostIPs"] {
        errors.extend(addresses(json::list(status, field), &path.child(field)));
    }
    errors
}

fn conditions(status: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, condition) in json::list(status, "conditions").iter().enumerate() {
        let path = path.index(index);
        let generation = json::int(condition, "observedGeneration").unwrap_or(0);
        if generation < 0 {
            let path = path.child("observedGeneration");
            let detail = "must be a non-negative integer";
            errors.push(FieldError::invalid(&path, generation, detail));
        }
        let kind = json::text(condition, "type");
        invalid_each(
            &mut errors,
            &path.child("Type"),
            kind,
            names::qualified_name(kind),
        );
    }
    errors
}

fn nominated_node(new: &Object, old: &Object, path: &Path) -> ErrorList {
    let field = ["status", "nominatedNodeName"];
    let name = new.str(&field);
    let mut errors = ErrorList::new();
    if name.is_empty() || name == old.str(&field) {
        return errors;
    }
    invalid_each(&mut errors, path, name, names::dns_subdomain(name));
    if !old.str(&["spec", "nodeName"]).is_empty() {
        let detail = "may not be set on pods that are already bound to a node";
        errors.push(FieldError::forbidden(path, detail));
    }
    errors
}

/// A container that ended for good does not come back.
struct Transition<'a> {
    spec: &'a Value,
    /// Which list of the spec the statuses are of.
    list: &'static str,
}

impl Transition<'_> {
    fn check(&self, new: &[Value], old: &[Value], path: &Path) -> ErrorList {
        let mut errors = ErrorList::new();
        let ended = |status: &Value| json::has(json::get(status, "state"), "terminated");
        for (index, before) in old.iter().enumerate().filter(|(_, status)| ended(status)) {
            let name = json::text(before, "name");
            let back = new
                .iter()
                .any(|now| json::text(now, "name") == name && !ended(now));
            if back && !self.may_restart(before) {
                let path = path.index(index).child("state");
                let detail = "may not be transitioned to non-terminated state";
                errors.push(FieldError::forbidden(&path, detail));
            }
        }
        errors
    }

    fn may_restart(&self, status: &Value) -> bool {
        if self.list == "ephemeralContainers" {
            return false;
        }
        if self.could_begin_again() {
            return true;
        }
        let name = json::text(status, "name");
        let containers = json::list(self.spec, self.list).iter();
        let Some(container) = containers.clone().find(|c| json::text(c, "name") == name) else {
            return false;
        };
        let exit_code =
            json::int(json::at(status, &["state", "terminated"]), "exitCode").unwrap_or(0);
        let rules = json::list(container, "restartPolicyRules");
        let rule = rules.iter().find(|rule| rule_applies(rule, exit_code));
        if rule.is_some_and(|rule| json::text(rule, "action") == "Restart") {
            return true;
        }
        let own = json::text(container, "restartPolicy");
        let policy = if own.is_empty() {
            json::text(self.spec, "restartPolicy")
        } else {
            own
        };
        match policy {
            "Always" => true,
            "OnFailure" => exit_code != 0,
            _ => is_sidecar(container),
        }
    }

    /// By a rule of any container all of them may, however they ended.
    fn could_begin_again(&self) -> bool {
        let lists = ["initContainers", "containers"].map(|list| json::list(self.spec, list));
        let rules = lists.into_iter().flatten();
        let mut rules = rules.flat_map(|one| json::list(one, "restartPolicyRules"));
        rules.any(|rule| json::text(rule, "action") == "RestartAllContainers")
    }
}

fn rule_applies(rule: &Value, exit_code: i64) -> bool {
    let codes = json::get(rule, "exitCodes");
    let listed = json::list(codes, "values")
        .iter()
        .any(|code| code.as_i64() == Some(exit_code));
    match json::text(codes, "operator") {
        "In" => listed,
        "NotIn" => !listed,
        _ => false,
    }
}

/// One address of a family.
fn addresses(all: &[Value], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, address) in all.iter().enumerate() {
        let ip = json::text(address, "ip");
        invalid_each(&mut errors, &path.index(index), ip, names::ip(ip));
    }
    let is_v6 = |address: &Value| json::text(address, "ip").contains(':');
    let pair = all.len() == 2 && is_v6(&all[0]) != is_v6(&all[1]);
    if all.len() > 1 && !pair {
        let detail = "may specify no more than one IP for each IP family";
        errors.push(FieldError::invalid(path, Value::from(all), detail));
    }
    errors
}
