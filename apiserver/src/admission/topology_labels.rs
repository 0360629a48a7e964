//! A pod carries the zone and region of its node, from when it is bound: the labels travel with
//! the binding.

use super::Attributes;
use crate::registry::glance::Traits;
use crate::view::View;
use coracle_api::catalogue;
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
    let nodes = catalogue::find("", "v1", "nodes").expect("the catalogue has nodes");
    let node = view.stored("", "nodes", "", node);
    let Some(node) = node.and_then(|node| Traits::of(nodes, &node, false)) else {
        return;
    };
    for label in LABELS {
        if let Some(value) = node.labels.get(label) {
            object.set(&["metadata", "labels", label], value.as_str().into());
        }
    }
}
