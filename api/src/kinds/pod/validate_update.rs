//! What may change of a pod once it is there: very little.

use super::validate::{annotations_update, metadata_and_spec};
use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks::changes;
use crate::object::Object;
use crate::pod_spec::MIRROR;
use crate::pod_spec::resources::quality_of_service;
use crate::pod_spec::validate::tolerations;
use crate::{go_value, json, names};
use serde_json::{Value, json};

const SECONDS_MAX: i64 = i32::MAX as i64;
const UPDATABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,\
                         `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to \
                         existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to \
                         be set to 1 if it was previously negative)";

const TERM: &str = "io.k8s.api.core.v1.NodeSelectorTerm";
const NODE_AFFINITY: [&str; 2] = ["affinity", "nodeAffinity"];

fn spec_of(pod: &Object) -> &Value {
    pod.get(&["spec"]).unwrap_or(&json::NULL)
}

/// An update of the pod itself.
pub fn main(new: &Object, old: &Object) -> ErrorList {
    let mut errors = metadata_and_spec(new);
    errors.extend(annotations_update(new, old));
    let path = Path::root("spec");
    let (spec, before) = (spec_of(new), spec_of(old));
    for list in ["containers", "initContainers"] {
        if json::list(spec, list).len() != json::list(before, list).len() {
            let detail = "pod updates may not add or remove containers";
            errors.push(FieldError::forbidden(&path.child(list), detail));
            return errors;
        }
    }
    let of_deadline = deadline(spec, before, &path.child("activeDeadlineSeconds"));
    let stop = !of_deadline.is_empty() && json::has(spec, "activeDeadlineSeconds");
    errors.extend(of_deadline);
    if stop {
        return errors;
    }
    errors.extend(only_added_tolerations(
        spec,
        before,
        &path.child("tolerations"),
    ));
    errors.extend(only_deleted_gates(
        spec,
        before,
        &path.child("schedulingGates"),
    ));
    if json::same(spec, before) {
        return errors;
    }
    let mut munged = munged(spec, before);
    if !json::list(before, "schedulingGates").is_empty() {
        errors.extend(gated(&mut munged, before, &path));
    }
    if !json::same(&munged, before) {
        let mut lines = Vec::new();
        changes(before, &munged, "", &mut lines);
        let detail = format!(
            "pod updates may not change fields other than {UPDATABLE}\n{}",
            lines.join("\n")
        );
        errors.push(FieldError::forbidden(&path, detail));
    }
    errors
}

/// The new spec with all that may change put back to what it was.
fn munged(spec: &Value, before: &Value) -> Value {
    let mut munged = spec.clone();
    for list in ["containers", "initContainers"] {
        let images: Vec<Value> = json::list(before, list)
            .iter()
            .map(|c| json::get(c, "image").clone())
            .collect();
        for (container, image) in json::list_mut(&mut munged, list).iter_mut().zip(images) {
            container["image"] = image;
        }
    }
    for field in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        put(&mut munged, field, before.get(field));
    }
    let grace = "terminationGracePeriodSeconds";
    let was_negative = json::int(before, grace).is_some_and(|seconds| seconds < 0);
    if was_negative && json::int(spec, grace) == Some(1) {
        put(&mut munged, grace, before.get(grace));
    }
    munged
}

fn put(object: &mut Value, field: &str, value: Option<&Value>) {
    let Value::Object(map) = object else { return };
    match value {
        Some(value) => drop(map.insert(field.to_owned(), value.clone())),
        None => drop(map.remove(field)),
    }
}

/// It may be set, and be lowered, and never be taken away.
fn deadline(spec: &Value, before: &Value, path: &Path) -> ErrorList {
    let [now, before] = [spec, before].map(|spec| json::int(spec, "activeDeadlineSeconds"));
    let invalid = |value: Value, detail: String| vec![FieldError::invalid(path, value, detail)];
    match (now, before) {
        (Some(now), _) if !(0..=SECONDS_MAX).contains(&now) => {
            let detail = names::between(now, 0, SECONDS_MAX).join(";");
            invalid(now.into(), detail)
        }
        (Some(now), Some(before)) if now > before => invalid(
            now.into(),
            "must be less than or equal to previous value".to_owned(),
        ),
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            invalid(Value::Null, detail.to_owned())
        }
        _ => ErrorList::new(),
    }
}

fn only_added_tolerations(spec: &Value, before: &Value, path: &Path) -> ErrorList {
    let now = json::list(spec, "tolerations");
    let without_seconds = |toleration: &Value| {
        let mut toleration = toleration.clone();
        put(&mut toleration, "tolerationSeconds", None);
        toleration
    };
    let kept = json::list(before, "tolerations").iter().all(|old| {
        let old = without_seconds(old);
        now.iter()
            .any(|new| json::same(&without_seconds(new), &old))
    });
    if !kept {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        return vec![FieldError::forbidden(path, detail)];
    }
    tolerations(now, path)
}

fn only_deleted_gates(spec: &Value, before: &Value, path: &Path) -> ErrorList {
    let before = json::list(before, "schedulingGates");
    let mut errors = ErrorList::new();
    for (index, gate) in json::list(spec, "schedulingGates").iter().enumerate() {
        let name = json::text(gate, "name");
        if !before.iter().any(|old| json::text(old, "name") == name) {
            let detail =
                format!("only deletion is allowed, but found new scheduling gate '{name}'");
            let path = path.index(index).child("name");
            errors.push(FieldError::forbidden(&path, detail));
        }
    }
    errors
}

/// A pod that waits behind gates may still be narrowed down to fewer nodes. What of that is new
/// is put back in `munged`.
fn gated(munged: &mut Value, before: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let selector = json::get(munged, "nodeSelector").clone();
    if !json::same(&selector, json::get(before, "nodeSelector")) {
        let kept = json::entries(before, "nodeSelector")
            .all(|(key, value)| selector.get(key) == Some(value));
        if !kept {
            let path = path.child("nodeSelector");
            let detail = "only additions to spec.nodeSelector are allowed (no mutations or \
                          deletions)";
            errors.push(FieldError::invalid(&path, selector, detail));
        }
        put(munged, "nodeSelector", before.get("nodeSelector"));
    }
    let affinity = json::at(munged, &NODE_AFFINITY).clone();
    let old_affinity = json::at(before, &NODE_AFFINITY);
    if !json::same(&affinity, old_affinity) {
        let path = path.child("affinity").child("nodeAffinity");
        errors.extend(affinity_additions(&affinity, old_affinity, &path));
        json::default(munged, "affinity", json!({}));
        let old = (!old_affinity.is_null()).then_some(old_affinity);
        put(&mut munged["affinity"], "nodeAffinity", old);
    }
    errors
}

/// Required terms may only grow stricter, term by term; preferences are free.
fn affinity_additions(new: &Value, old: &Value, path: &Path) -> ErrorList {
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let terms = |affinity| json::list(json::get(affinity, required), "nodeSelectorTerms");
    let (now, before) = (terms(new), terms(old));
    let path = path.child(required).child("nodeSelectorTerms");
    if before.is_empty() {
        return ErrorList::new();
    }
    if now.len() != before.len() {
        let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        let now = json::at(new, &[required, "nodeSelectorTerms"]);
        let shown = go_value::internal_list(TERM, now.as_array().map_or(&[], Vec::as_slice));
        return vec![FieldError::invalid(&path, now.clone(), detail).shown_as(shown)];
    }
    let grows = |now: &Value, before: &Value| {
        let empty = ["matchExpressions", "matchFields"]
            .iter()
            .all(|field| json::list(before, field).is_empty());
        let kept = ["matchExpressions", "matchFields"].iter().all(|field| {
            let (now, before) = (json::list(now, field), json::list(before, field));
            now.len() >= before.len()
                && before
                    .iter()
                    .zip(now)
                    .all(|(before, now)| json::same(before, now))
        });
        kept && (!empty || json::same(now, before))
    };
    now.iter()
        .zip(before)
        .enumerate()
        .filter(|(_, (now, before))| !grows(now, before))
        .map(|(index, (now, _))| {
            let detail = "only additions are allowed (no mutations or deletions)";
            FieldError::invalid(&path.index(index), now.clone(), detail).as_go(TERM)
        })
        .collect()
}

/// An update through `ephemeralcontainers`: containers may be added, and never go or change.
pub fn ephemeral(new: &Object, old: &Object) -> ErrorList {
    if old.annotation(MIRROR).is_some() {
        let detail = "static pods do not support ephemeral containers";
        return vec![FieldError::forbidden(&Path::root("[]"), detail)];
    }
    let mut errors = metadata_and_spec(new);
    errors.extend(annotations_update(new, old));
    let path = Path::root("spec").child("ephemeralContainers");
    let now = new.list(&["spec", "ephemeralContainers"]);
    for before in old.list(&["spec", "ephemeralContainers"]) {
        let name = json::text(before, "name");
        let what = match now
            .iter()
            .find(|container| json::text(container, "name") == name)
        {
            None => "removed",
            Some(container) if !json::same(container, before) => "changed",
            Some(_) => continue,
        };
        let detail = format!("existing ephemeral containers \"{name}\" may not be {what}\n");
        errors.push(FieldError::forbidden(&path, detail));
    }
    errors
}

/// An update through `resize`: the cpu and memory of containers may change, and nothing else.
pub fn resize(new: &Object, old: &Object) -> ErrorList {
    let forbidden = |detail: &str| vec![FieldError::forbidden(&Path::root("[]"), detail)];
    if old.annotation(MIRROR).is_some() {
        return forbidden("static pods cannot be resized");
    }
    if old.str(&["spec", "os", "name"]) == "windows" {
        return forbidden("windows pods cannot be resized");
    }
    let mut errors = metadata_and_spec(new);
    let path = Path::root("spec");
    let (spec, before) = (spec_of(new), spec_of(old));
    if quality_of_service(spec) != quality_of_service(before) {
        let class = new.str(&["status", "qosClass"]);
        let detail = "Pod QOS Class may not change as a result of resizing";
        errors.push(FieldError::invalid(&path, class, detail));
    }
    let mut munged = spec.clone();
    for list in ["initContainers", "containers"] {
        let old_containers = json::list(before, list);
        let containers = json::list_mut(&mut munged, list);
        if containers.len() != old_containers.len() {
            let detail = "containers may not be added or removed on resize";
            errors.push(FieldError::forbidden(&path.child(list), detail));
            return errors;
        }
        for (index, (container, old)) in containers.iter_mut().zip(old_containers).enumerate() {
            let at = path.child(list).index(index);
            if json::text(container, "name") != json::text(old, "name") {
                let detail = "containers may not be renamed or reordered on resize";
                errors.push(FieldError::forbidden(&at.child("name"), detail));
            }
            errors.extend(removed_resources(container, old, &at.child("resources")));
            restore_resources(container, old);
        }
    }
    if errors.is_empty() && !json::same(&munged, before) {
        let detail = "only cpu and memory resources are mutable";
        errors.push(FieldError::forbidden(&path, detail));
    }
    errors
}

fn removed_resources(container: &Value, old: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for list in ["requests", "limits"] {
        let now = json::at(container, &["resources", list]);
        let mut before = json::entries(json::get(old, "resources"), list);
        if before.any(|(name, _)| now.get(name).is_none()) {
            let detail = format!("resource {list} cannot be removed");
            errors.push(FieldError::forbidden(&path.child(list), detail));
        }
    }
    errors
}

fn restore_resources(container: &mut Value, old: &Value) {
    for list in ["requests", "limits"] {
        for name in ["cpu", "memory"] {
            let before = json::at(old, &["resources", list, name]);
            let before = (!before.is_null()).then_some(before);
            if let Some(resources) = container.pointer_mut(&format!("/resources/{list}")) {
                put(resources, name, before);
            }
        }
    }
}
