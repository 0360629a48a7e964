//! A pod that runs grows only as far as its node has room for it alone; and not on Windows.

use super::Attributes;
use crate::view::View;
use coracle_api::amounts::Amounts;
use coracle_api::json;
use coracle_api::object::Object;
use coracle_api::pod_spec::resources;
use coracle_api::quantity::Quantity;
use coracle_api::status::Status;
use serde_json::json;

pub fn validate(view: &dyn View, pod: &Object, asked: &Attributes<'_>) -> Result<(), Status> {
    let name = pod.str(&["spec", "nodeName"]);
    let is_changed = asked
        .old
        .is_some_and(|old| old.generation() != pod.generation());
    if !asked.is("", "pods") || asked.subresource != "resize" || name.is_empty() || !is_changed {
        return Ok(());
    }
    let Some(node) = view.get("", "nodes", "", name) else {
        let why = format!("node {name:?} not found");
        return Err(asked.forbidden(Some(pod), why));
    };
    let refuse = |why: String, reason: &str| {
        let mut status = asked.forbidden(Some(pod), why);
        status.details["causes"] = json!([{ "reason": reason }]);
        Err(status)
    };
    if let Some(system) = node.label("kubernetes.io/os")
        && system != "linux"
    {
        let why = format!(
            "pod resize is only supported on linux nodes, node {:?} is {system:?}",
            node.name()
        );
        return refuse(why, "UnsupportedPlatform");
    }
    let lacking = lacking(pod, &node);
    if lacking.is_empty() {
        return Ok(());
    }
    let why = format!(
        "node didn't have enough allocatable resources: {}",
        lacking.join("; ")
    );
    refuse(why, "NodeCapacity")
}

fn lacking(pod: &Object, node: &Object) -> Vec<String> {
    let spec = pod.get(&["spec"]).unwrap_or(&json::NULL);
    let mut requests = resources::of_pod(spec, "requests");
    requests.add(&Amounts::of(json::get(spec, "overhead")));
    let room = node.get(&["status", "allocatable"]);
    let room = Amounts::of(room.unwrap_or(&json::NULL));
    let mut lacking = Vec::new();
    for name in ["cpu", "memory"] {
        let of = |list: &Amounts| list.get(name).unwrap_or(Quantity::ZERO);
        // Told in thousandths of a core, and in bytes.
        let measure = |amount: &Quantity| match name {
            "cpu" => amount.milli_value(),
            _ => amount.value(),
        };
        let (requested, allocatable) = (of(&requests), of(&room));
        if requested > allocatable {
            lacking.push(format!(
                "{name}, requested: {}, allocatable: {}",
                measure(&requested),
                measure(&allocatable)
            ));
        }
    }
    lacking
}
