//! What an update may change of a job: a suspended one that runs nothing may be sent elsewhere and
//! given other resources, any may be made wider or narrower.

use super::{NAME_LABELS, UID_LABELS, has_condition, validate};
use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks;
use crate::object::Object;
use crate::{json, names};
use serde_json::{Value, json};

pub fn update(new: &Object, old: &Object) -> ErrorList {
    let path = Path::root("spec");
    let old_labels = old.get(&["spec", "template", "metadata", "labels"]);
    let has_new_labels = [NAME_LABELS[1], UID_LABELS[1]]
        .iter()
        .all(|label| old_labels.is_some_and(|labels| json::has(labels, label)));
    let may_change_pods = may_change_pods(old);
    let mut errors = validate::job(new, has_new_labels);
    let [new, old] = [new, old].map(|object| object.get(&["spec"]).unwrap_or(&Value::Null));
    // Upstream says what is wrong with the spec twice.
    errors.extend(validate::spec(new, &path));
    errors.extend(completions(new, old, &path));
    let kind = checks::LABEL_SELECTOR;
    checks::immutable_as(&mut errors, kind, new, old, "selector", &path);
    errors.extend(template(new, old, may_change_pods, &path));
    let policy = |name: &str| format!("io.k8s.api.batch.v1.{name}");
    checks::immutable(&mut errors, new, old, "completionMode", &path);
    let (kind, name) = (policy("PodFailurePolicy"), "podFailurePolicy");
    checks::immutable_as(&mut errors, &kind, new, old, name, &path);
    checks::immutable(&mut errors, new, old, "backoffLimitPerIndex", &path);
    checks::immutable(&mut errors, new, old, "managedBy", &path);
    let (kind, name) = (policy("SuccessPolicy"), "successPolicy");
    checks::immutable_as(&mut errors, &kind, new, old, name, &path);
    errors
}

/// True for a suspended job without pods.
fn may_change_pods(old: &Object) -> bool {
    let started = old
        .get(&["status", "startTime"])
        .is_some_and(|time| !time.is_null());
    old.bool(&["spec", "suspend"])
        && (!started || has_condition(old, "Suspended", "True"))
        && old.i64(&["status", "active"]).unwrap_or(0) == 0
}

fn completions(new: &Value, old: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if !validate::is_indexed(new) {
        checks::immutable(&mut errors, new, old, "completions", path);
        return errors;
    }
    let [wanted, before] = [new, old].map(|spec| json::int(spec, "completions"));
    if wanted != before
        && let Some(wanted) = wanted
        && Some(wanted) != json::int(new, "parallelism")
    {
        let detail = "can only be modified in tandem with spec.parallelism";
        errors.push(FieldError::invalid(
            &path.child("completions"),
            wanted,
            detail,
        ));
    }
    errors
}

fn template(new: &Value, old: &Value, may_change_pods: bool, path: &Path) -> ErrorList {
    let template = json::get(new, "template");
    let mut before = json::get(old, "template").clone();
    if may_change_pods {
        take_scheduling(&mut before, template);
    }
    if may_change_pods && json::flag(old, "suspend") {
        take_resources(&mut before, template);
        // The rest of the template's metadata is not looked at.
        let specs = [template, &before].map(|template| json::get(template, "spec"));
        let kind = "io.k8s.api.core.v1.PodSpec";
        return changed(specs[0], specs[1], kind, &path.child("template.spec"));
    }
    let kind = "io.k8s.api.core.v1.PodTemplateSpec";
    changed(template, &before, kind, &path.child("template"))
}

fn changed(new: &Value, old: &Value, kind: &str, path: &Path) -> ErrorList {
    if json::same(new, old) {
        return ErrorList::new();
    }
    let error = FieldError::invalid(path, new.clone(), names::IMMUTABLE);
    vec![error.as_go(kind)]
}

/// Where pods may run, and what they are marked with.
fn take_scheduling(before: &mut Value, template: &Value) {
    for name in ["annotations", "labels"] {
        let value = json::at(template, &["metadata", name]).clone();
        json::default(before, "metadata", json!({}));
        before["metadata"][name] = value;
    }
    let spec = json::get(template, "spec");
    let Some(before) = json::object_mut(before, "spec") else {
        return;
    };
    for name in ["nodeSelector", "tolerations", "schedulingGates"] {
        before[name] = json::get(spec, name).clone();
    }
    let affinity = json::get(spec, "affinity");
    let had = json::has(before, "affinity");
    if !affinity.is_null() {
        json::default(before, "affinity", json!({}));
        before["affinity"]["nodeAffinity"] = json::get(affinity, "nodeAffinity").clone();
    } else if had {
        before["affinity"]["nodeAffinity"] = Value::Null;
    }
}

fn take_resources(before: &mut Value, template: &Value) {
    let spec = json::get(template, "spec");
    let Some(before) = json::object_mut(before, "spec") else {
        return;
    };
    for list in ["containers", "initContainers"] {
        let new = json::list(spec, list);
        let old = json::list_mut(before, list);
        if new.len() != old.len() {
            continue;
        }
        for (old, new) in old.iter_mut().zip(new) {
            if json::text(old, "name") == json::text(new, "name") {
                old["resources"] = json::get(new, "resources").clone();
            }
        }
    }
}
