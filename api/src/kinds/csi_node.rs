//! CSI nodes: the storage drivers of a node. An entry changes only in how many volumes fit.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::row::{self, Names, column};
use crate::kinds::{checks, storage};
use crate::meta_validate::invalid_each;
use crate::object::Object;
use crate::resource::{Column, Part, Resource, Rules};
use crate::{json, names, print};
use serde_json::Value;
use std::collections::BTreeSet;

pub const ROW: Resource = row::cluster(
    "storage.k8s.io",
    "v1",
    Names {
        kind: "CSINode",
        plural: "csinodes",
        singular: "csinode",
        schema: "io.k8s.api.storage.v1.CSINode",
    },
    &CsiNode,
);

const COLUMNS: &[Column] = &[
    row::NAME,
    column("Drivers", "integer", "How many drivers the node has."),
    row::AGE,
];

const NODE_ID_BYTES_MAX: usize = 256;

#[derive(Debug)]
struct CsiNode;

impl Rules for CsiNode {
    /// The keys show though there are none.
    fn default(&self, object: &mut Object) {
        let drivers = object.get_mut(&["spec", "drivers"]);
        for driver in drivers.and_then(Value::as_array_mut).into_iter().flatten() {
            if json::list(driver, "topologyKeys").is_empty() {
                driver["topologyKeys"] = Value::Null;
            }
        }
    }

    fn prepare_create(&self, _object: &mut Object) {}

    fn prepare_update(&self, _new: &mut Object, _old: &Object, _part: Part<'_>) {}

    fn validate_create(&self, object: &Object) -> ErrorList {
        drivers(object)
    }

    fn validate_update(&self, new: &Object, old: &Object, _part: Part<'_>) -> ErrorList {
        let mut errors = drivers(new);
        let path = Path::root("spec").child("drivers");
        for before in old.list(&["spec", "drivers"]) {
            for now in new.list(&["spec", "drivers"]) {
                if json::text(before, "name") != json::text(now, "name") {
                    continue;
                }
                let [now, before] = [now, before].map(|driver| {
                    let mut driver = driver.clone();
                    driver.as_object_mut().map(|map| map.remove("allocatable"));
                    driver
                });
                if !json::same(&now, &before) {
                    let error = FieldError::invalid(&path, now, names::IMMUTABLE);
                    errors.push(error.as_go("io.k8s.api.storage.v1.CSINodeDriver"));
                }
            }
        }
        errors
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
            object.list(&["spec", "drivers"]).len().into(),
            print::age_of(object, now),
        ]
    }
}

fn drivers(object: &Object) -> ErrorList {
    let path = Path::root("spec").child("drivers");
    let mut errors = ErrorList::new();
    let mut names_seen = BTreeSet::new();
    for (index, driver) in object.list(&["spec", "drivers"]).iter().enumerate() {
        let path = path.index(index);
        let name = json::text(driver, "name");
        errors.extend(storage::driver_name(name, &path.child("name")));
        errors.extend(node_id(json::text(driver, "nodeID"), &path.child("nodeID")));
        let allocatable = json::get(driver, "allocatable");
        checks::nonnegative(
            &mut errors,
            allocatable,
            "count",
            &path.child("allocatable"),
        );
        if !names_seen.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        errors.extend(topology_keys(json::list(driver, "topologyKeys"), &path));
    }
    errors
}

fn node_id(id: &str, path: &Path) -> ErrorList {
    if id.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    if id.len() <= NODE_ID_BYTES_MAX {
        return ErrorList::new();
    }
    let detail = format!("must be {NODE_ID_BYTES_MAX} characters or less");
    vec![FieldError::invalid(path, id, detail)]
}

/// Upstream names the driver, and not the key.
fn topology_keys(keys: &[Value], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for key in keys {
        let key = key.as_str().unwrap_or("");
        if key.is_empty() {
            errors.push(FieldError::required(path, ""));
        }
        if !seen.insert(key) {
            errors.push(FieldError::duplicate(path, key));
        }
        invalid_each(&mut errors, path, key, names::qualified_name(key));
    }
    errors
}

#[cfg(test)]
mod tests;
