//! A pod carries the zone and region of its node, from when it is bound: the labels travel with
//! the binding.

use super::Attributes;
use crate::view::View;
use coracle_api::object::Object;

const LABELS: [&str; 2] = [
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
];

pub fn admit(view: &dyn View, object: &mut Object, asked: &Attributes<'_>) {
    if !asked.is("", "pods") {
        return;
    }
    let node = match asked.subresource {
        "" => object.str(&["spec", "nodeName"]),
        "binding" if object.str(&["target", "kind"]) == "Node" => object.str(&["target", "name"]),
        _ => return,
    };
    if node.is_empty() {
        return;
    }
    // A node that is not there has no labels, which is no reason to refuse.
    let Some(node) = view.get("", "nodes", "", node) else {
        return;
    };
    for label in LABELS {
        if let Some(value) = node.label(label) {
            object.set(&["metadata", "labels", label], value.into());
        }
    }
}
