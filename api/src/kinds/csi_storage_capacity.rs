//! CSI storage capacities: how much room a driver has in a segment of the topology.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::row::{self, Names};
use crate::kinds::{plain, storage};
use crate::object::Object;
use crate::pod_spec::{defaults, warnings};
use crate::resource::{Column, Part, Resource, Rules};
use crate::{json, label_selector, names};
use serde_json::Value;

pub const ROW: Resource = row::namespaced(
    "storage.k8s.io",
    "v1",
    Names {
        kind: "CSIStorageCapacity",
        plural: "csistoragecapacities",
        singular: "csistoragecapacity",
        schema: "io.k8s.api.storage.v1.CSIStorageCapacity",
    },
    &CsiStorageCapacity,
);

#[derive(Debug)]
struct CsiStorageCapacity;

impl Rules for CsiStorageCapacity {
    fn default(&self, object: &mut Object) {
        for field in ["capacity", "maximumVolumeSize"] {
            object.get_mut(&[field]).map(defaults::canonical);
        }
    }

    fn prepare_create(&self, _object: &mut Object) {}

    fn prepare_update(&self, _new: &mut Object, _old: &Object, _part: Part<'_>) {}

    fn validate_create(&self, object: &Object) -> ErrorList {
        capacity(object)
    }

    fn validate_update(&self, new: &Object, old: &Object, _part: Part<'_>) -> ErrorList {
        let mut errors = capacity(new);
        for field in ["nodeTopology", "storageClassName"] {
            let [new, old] = [new, old].map(|o| o.get(&[field]).unwrap_or(&Value::Null));
            if !json::same(new, old) {
                let path = Path::root(field);
                let error = FieldError::invalid(&path, new.clone(), names::IMMUTABLE);
                errors.push(if field == "nodeTopology" {
                    error.as_go("io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector")
                } else {
                    error
                });
            }
        }
        errors
    }

    fn unconditional_update(&self) -> bool {
        false
    }

    /// Upstream has a printer for this kind, and does not use it.
    fn columns(&self) -> &'static [Column] {
        plain::COLUMNS
    }

    fn cells(&self, object: &Object, _now: i64) -> Vec<Value> {
        plain::cells(object)
    }

    fn warnings(&self, object: &Object) -> Vec<String> {
        let topology = object.get(&["nodeTopology"]).unwrap_or(&Value::Null);
        let path = Path::root("nodeTopology");
        let expressions = json::list(topology, "matchExpressions").iter().enumerate();
        let expressions = expressions.filter_map(|(index, expression)| {
            let path = path.child("matchExpressions").index(index).child("key");
            warnings::deprecated_node_label(json::text(expression, "key"), true, &path)
        });
        let labels = json::entries(topology, "matchLabels").filter_map(|(key, _)| {
            let path = path.child("matchLabels").child(key);
            warnings::deprecated_node_label(key, false, &path)
        });
        expressions.chain(labels).collect()
    }
}

fn capacity(object: &Object) -> ErrorList {
    let topology = object.get(&["nodeTopology"]).unwrap_or(&Value::Null);
    let mut errors = label_selector::validate(topology, &Path::root("nodeTopology"));
    let class = object.str(&["storageClassName"]);
    errors.extend(storage::class_name(class, &Path::root("storageClassName")));
    let size = storage::quantity(&object.to_value(), "capacity");
    errors.extend(storage::nonnegative(size, &Path::root("capacity")));
    errors
}

#[cfg(test)]
mod tests;
