//! What upstream's gates keep out of pods, while they are shut: it is dropped without a word.
//!
//! When an object is prepared and not before: who asked for it manages it all the same.

use super::LISTS;
use crate::json;
use crate::object::Object;
use serde_json::Value;

/// Where a kind has the template of its pods.
pub fn template_path(group: &str, plural: &str) -> Option<&'static [&'static str]> {
    Some(match (group, plural) {
        ("", "podtemplates") => &["template"],
        ("", "replicationcontrollers")
        | ("apps", "replicasets" | "deployments" | "statefulsets" | "daemonsets")
        | ("batch", "jobs") => &["spec", "template"],
        ("batch", "cronjobs") => &["spec", "jobTemplate", "spec", "template"],
        _ => return None,
    })
}

/// Drops it from a pod, or from the template of an object of a kind that has one.
pub fn drop(group: &str, plural: &str, object: &mut Object) {
    let spec = if (group, plural) == ("", "pods") {
        object.get_mut(&["spec"])
    } else {
        let template = template_path(group, plural).and_then(|path| object.get_mut(path));
        template.and_then(|template| template.get_mut("spec"))
    };
    if let Some(spec) = spec {
        drop_from(spec);
    }
}

fn drop_from(spec: &mut Value) {
    for list in LISTS {
        json::list_mut(spec, list).iter_mut().for_each(stop_signal);
    }
    for volume in json::list_mut(spec, "volumes") {
        if let Some(projected) = json::object_mut(volume, "projected") {
            json::list_mut(projected, "sources")
                .iter_mut()
                .for_each(projections);
        }
    }
}

fn stop_signal(container: &mut Value) {
    let lifecycle = container.get_mut("lifecycle");
    let Some(lifecycle) = lifecycle.and_then(Value::as_object_mut) else {
        return;
    };
    if lifecycle.remove("stopSignal").is_some() && lifecycle.is_empty() {
        container.as_object_mut().map(|map| map.remove("lifecycle"));
    }
}

/// Nothing is left of such a source but a place.
fn projections(source: &mut Value) {
    if let Some(source) = source.as_object_mut() {
        source.remove("clusterTrustBundle");
        source.remove("podCertificate");
    }
}

#[cfg(test)]
mod tests;
