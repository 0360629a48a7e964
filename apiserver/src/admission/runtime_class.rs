//! The RuntimeClass of a pod: what its runtime needs beside the containers is written into the
//! pod, and so is where it may run.

use super::Attributes;
use crate::view::View;
use coracle_api::amounts::Amounts;
use coracle_api::json;
use coracle_api::object::Object;
use coracle_api::status::Status;
use serde_json::{Map, Value};

const OVERHEAD: &[&str] = &["spec", "overhead"];
const MISMATCH: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

pub fn admit(view: &dyn View, pod: &mut Object, asked: &Attributes<'_>) -> Result<(), Status> {
    if !asked.is_main("", "pods") {
        return Ok(());
    }
    let Some(class) = class_of(view, pod, asked)? else {
        return Ok(());
    };
    if let Some(overhead) = overhead(&class) {
        let own = pod.get(OVERHEAD).unwrap_or(&json::NULL);
        if !json::is_empty(own) && Amounts::of(own) != Amounts::of(overhead) {
            return Err(asked.forbidden(Some(pod), MISMATCH));
        }
        if overhead.is_null() {
            pod.remove(OVERHEAD);
        } else {
            pod.set(OVERHEAD, overhead.clone());
        }
    }
    place(&class, pod, asked)
}

pub fn validate(view: &dyn View, pod: &Object, asked: &Attributes<'_>) -> Result<(), Status> {
    if !asked.is_main("", "pods") {
        return Ok(());
    }
    let class = class_of(view, pod, asked)?;
    let own = pod.get(OVERHEAD).filter(|own| !own.is_null());
    match class.as_ref().and_then(overhead) {
        Some(overhead) => {
            if Amounts::of(own.unwrap_or(&json::NULL)) == Amounts::of(overhead) {
                return Ok(());
            }
            Err(asked.forbidden(Some(pod), MISMATCH))
        }
        None if own.is_some() => {
            let why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined \
                       Overhead";
            Err(asked.forbidden(Some(pod), why))
        }
        None => Ok(()),
    }
}

fn class_of(
    view: &dyn View,
    pod: &Object,
    asked: &Attributes<'_>,
) -> Result<Option<Object>, Status> {
    let named = pod.get(&["spec", "runtimeClassName"]);
    let Some(name) = named.and_then(Value::as_str) else {
        return Ok(None);
    };
    match view.get("node.k8s.io", "runtimeclasses", "", name) {
        Some(class) => Ok(Some(class)),
        None => {
            let why = format!("pod rejected: RuntimeClass {name:?} not found");
            Err(asked.forbidden(Some(pod), why))
        }
    }
}

/// `overhead.podFixed`, null when there is an overhead of nothing.
fn overhead(class: &Object) -> Option<&Value> {
    let overhead = class.get(&["overhead"]).filter(|one| !one.is_null())?;
    Some(json::get(overhead, "podFixed"))
}

/// The class's node selector and tolerations beside the pod's own.
fn place(class: &Object, pod: &mut Object, asked: &Attributes<'_>) -> Result<(), Status> {
    const SELECTOR: &[&str] = &["spec", "nodeSelector"];
    const TOLERATIONS: &[&str] = &["spec", "tolerations"];
    let Some(scheduling) = class.get(&["scheduling"]).filter(|one| !one.is_null()) else {
        return Ok(());
    };
    let own = pod.get(SELECTOR).and_then(Value::as_object);
    let mut selector = own.cloned().unwrap_or_else(Map::new);
    for (key, value) in json::entries(scheduling, "nodeSelector") {
        let wanted = value.as_str().unwrap_or_default();
        match selector.get(key).and_then(Value::as_str) {
            Some(own) if own != wanted => {
                let why = format!(
                    "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {wanted}; \
                     pod.spec.nodeSelector[{key}] = {own}"
                );
                return Err(asked.forbidden(Some(pod), why));
            }
            _ => drop(selector.insert(key.to_owned(), value.clone())),
        }
    }
    if !selector.is_empty() {
        pod.set(SELECTOR, Value::Object(selector));
    }
    let tolerations = merged(pod.list(TOLERATIONS), json::list(scheduling, "tolerations"));
    if !tolerations.is_empty() {
        pod.set(TOLERATIONS, Value::Array(tolerations));
    }
    Ok(())
}

/// Both lists, without those that another one covers; of equal ones the first stays.
fn merged(first: &[Value], second: &[Value]) -> Vec<Value> {
    let all: Vec<&Value> = first.iter().chain(second).collect();
    let mut merged: Vec<Value> = Vec::new();
    for (place, one) in all.iter().enumerate() {
        let is_covered = merged.iter().any(|kept| covers(kept, one))
            || all[place + 1..]
                .iter()
                .any(|later| !json::same(one, later) && covers(later, one));
        if !is_covered {
            merged.push((*one).clone());
        }
    }
    merged
}

/// True when `wide` tolerates all that `one` does.
fn covers(wide: &Value, one: &Value) -> bool {
    if json::same(one, wide) {
        return true;
    }
    let text = |value, field| json::text(value, field);
    let is_any_key = text(wide, "key").is_empty() && text(wide, "operator") == "Exists";
    if text(one, "key") != text(wide, "key") && !is_any_key {
        return false;
    }
    let effect = text(wide, "effect");
    if text(one, "effect") != effect && !effect.is_empty() {
        return false;
    }
    if effect == "NoExecute"
        && let Some(most) = json::int(wide, "tolerationSeconds")
        && json::int(one, "tolerationSeconds").is_none_or(|seconds| seconds > most)
    {
        return false;
    }
    match text(wide, "operator") {
        "Equal" | "" => {
            text(one, "operator") == "Equal" && text(one, "value") == text(wide, "value")
        }
        "Exists" => true,
        _ => false,
    }
}
