//! Runtime classes: names for the container runtimes of nodes.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks;
use crate::kinds::row::{self, Names, column};
use crate::meta_validate::{invalid_each, labels};
use crate::object::Object;
use crate::pod_spec::validate::{resources, tolerations};
use crate::pod_spec::{defaults, warnings};
use crate::resource::{Column, Part, Resource, Rules};
use crate::{json, names, print};
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub const ROW: Resource = row::cluster(
    "node.k8s.io",
    "v1",
    Names {
        kind: "RuntimeClass",
        plural: "runtimeclasses",
        singular: "runtimeclass",
        schema: "io.k8s.api.node.v1.RuntimeClass",
    },
    &RuntimeClass,
);

const COLUMNS: &[Column] = &[
    row::NAME,
    column("Handler", "string", "The runtime's own name."),
    row::AGE,
];

#[derive(Debug)]
struct RuntimeClass;

impl Rules for RuntimeClass {
    fn default(&self, object: &mut Object) {
        object
            .get_mut(&["overhead", "podFixed"])
            .map(defaults::round_quantities);
    }

    fn prepare_create(&self, _object: &mut Object) {}

    fn prepare_update(&self, _new: &mut Object, _old: &Object, _part: Part<'_>) {}

    fn validate_create(&self, object: &Object) -> ErrorList {
        let mut errors = ErrorList::new();
        let path = Path::root("handler");
        match object.str(&["handler"]) {
            "" => errors.push(FieldError::required(&path, "")),
            handler => invalid_each(&mut errors, &path, handler, names::dns_label(handler)),
        }
        if let Some(fixed) = object.get(&["overhead", "podFixed"]) {
            let limits = json!({ "limits": fixed });
            let path = Path::root("overhead");
            errors.extend(resources::of_container(&limits, &BTreeSet::new(), &path));
        }
        if let Some(scheduling) = object.get(&["scheduling"]) {
            errors.extend(where_it_runs(scheduling, &Path::root("scheduling")));
        }
        errors
    }

    fn validate_update(&self, new: &Object, old: &Object, _part: Part<'_>) -> ErrorList {
        let mut errors = self.validate_create(new);
        let (new, old) = (new.to_value(), old.to_value());
        checks::immutable(&mut errors, &new, &old, "handler", &Path::default());
        errors
    }

    fn create_on_update(&self) -> bool {
        true
    }

    fn unconditional_update(&self) -> bool {
        false
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        vec![
            object.name().into(),
            object.str(&["handler"]).into(),
            print::age_of(object, now),
        ]
    }

    fn warnings(&self, object: &Object) -> Vec<String> {
        let path = Path::root("scheduling").child("nodeSelector");
        object
            .string_map(&["scheduling", "nodeSelector"])
            .filter_map(|(label, _)| warnings::deprecated_node_label(label, false, &path))
            .collect()
    }
}

/// What pods of the class get to be on the nodes that have the runtime.
fn where_it_runs(scheduling: &Value, path: &Path) -> ErrorList {
    let selector = json::get(scheduling, "nodeSelector");
    let mut errors = labels(selector, &path.child("nodeSelector"));
    let path = path.child("tolerations");
    let all = json::list(scheduling, "tolerations");
    errors.extend(tolerations(all, &path));
    let identity = |toleration: &Value| {
        ["key", "operator", "value", "effect"].map(|f| json::text(toleration, f).to_owned())
    };
    for (index, toleration) in all.iter().enumerate() {
        let same = |other: &Value| identity(other) == identity(toleration);
        if all[..index].iter().any(same) {
            let error = FieldError::duplicate(&path.index(index), toleration.clone());
            errors.push(error.as_go("io.k8s.api.core.v1.Toleration"));
        }
    }
    errors
}

#[cfg(test)]
mod tests;
