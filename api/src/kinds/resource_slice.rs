//! Resource slices: the devices that a driver offers, on one node, on some or on all.

mod device;
mod validate;

use crate::field::ErrorList;
use crate::json;
use crate::kinds::row::{self, Names, column};
use crate::object::Object;
use crate::pod_spec::defaults::canonical;
use crate::print;
use crate::resource::{Column, Part, Requester, Resource, Rules};
use serde_json::Value;

pub const ROW: Resource = Resource {
    selectable_fields: &["spec.driver", "spec.nodeName"],
    ..row::cluster(
        "resource.k8s.io",
        "v1",
        Names {
            kind: "ResourceSlice",
            plural: "resourceslices",
            singular: "resourceslice",
            schema: "io.k8s.api.resource.v1.ResourceSlice",
        },
        &ResourceSlice,
    )
};

const COLUMNS: &[Column] = &[
    row::NAME,
    column("Node", "string", "The node that has the devices."),
    column("Driver", "string", "The driver of the devices."),
    column("Pool", "string", "The pool that the slice is of."),
    row::AGE,
];

/// Values of an attribute that stand behind a gate that is shut.
const LIST_VALUES: [&str; 4] = ["bools", "ints", "strings", "versions"];

#[derive(Debug)]
struct ResourceSlice;

impl Rules for ResourceSlice {
    fn default(&self, object: &mut Object) {
        for device in devices_mut(object) {
            for (_, capacity) in entries_mut(device, "capacity") {
                size(capacity);
                if let Some(policy) = json::object_mut(capacity, "requestPolicy") {
                    canonical_policy(policy);
                }
            }
            for consumption in json::list_mut(device, "consumesCounters") {
                for (_, counter) in entries_mut(consumption, "counters") {
                    size(counter);
                }
            }
        }
        let sets = object.get_mut(&["spec", "sharedCounters"]);
        for set in sets.and_then(Value::as_array_mut).into_iter().flatten() {
            for (_, counter) in entries_mut(set, "counters") {
                size(counter);
            }
        }
    }

    fn prepare_create(&self, object: &mut Object) {
        for device in devices_mut(object) {
            if let Some(device) = device.as_object_mut() {
                device.remove("nodeAllocatableResourceMappings");
            }
            for (_, attribute) in entries_mut(device, "attributes") {
                if let Some(attribute) = attribute.as_object_mut() {
                    attribute.retain(|name, _| !LIST_VALUES.contains(&name.as_str()));
                }
            }
        }
    }

    fn prepare_update(&self, new: &mut Object, _old: &Object, _part: Part<'_>) {
        self.prepare_create(new);
    }

    /// A taint without a time is of now.
    fn stamp(
        &self,
        object: &mut Object,
        _old: Option<&Object>,
        _part: Part<'_>,
        _by: &Requester<'_>,
        now: &str,
    ) {
        for device in devices_mut(object) {
            for taint in json::list_mut(device, "taints") {
                json::default(taint, "timeAdded", now);
            }
        }
    }

    fn counts_generations(&self) -> bool {
        true
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        validate::slice(object, None)
    }

    fn validate_update(&self, new: &Object, old: &Object, _part: Part<'_>) -> ErrorList {
        validate::slice(new, Some(old))
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        vec![
            object.name().into(),
            object.str(&["spec", "nodeName"]).into(),
            object.str(&["spec", "driver"]).into(),
            object.str(&["spec", "pool", "name"]).into(),
            print::age_of(object, now),
        ]
    }

    fn warnings(&self, object: &Object) -> Vec<String> {
        let driver = object.str(&["spec", "driver"]);
        if driver == driver.to_lowercase() {
            return Vec::new();
        }
        vec![format!(
            "spec.driver: driver names should be lowercase; \"{driver}\" contains uppercase \
             characters"
        )]
    }
}

fn devices_mut(object: &mut Object) -> impl Iterator<Item = &mut Value> {
    let devices = object.get_mut(&["spec", "devices"]);
    devices.and_then(Value::as_array_mut).into_iter().flatten()
}

fn entries_mut<'a>(
    holder: &'a mut Value,
    name: &str,
) -> impl Iterator<Item = (&'a String, &'a mut Value)> {
    let map = holder.get_mut(name).and_then(Value::as_object_mut);
    map.into_iter().flatten()
}

/// A size that nobody stated is zero.
fn size(holder: &mut Value) {
    json::default(holder, "value", "0");
    holder.get_mut("value").map(canonical);
}

fn canonical_policy(policy: &mut Value) {
    policy.get_mut("default").map(canonical);
    json::list_mut(policy, "validValues")
        .iter_mut()
        .for_each(canonical);
    for (_, bound) in entries_mut(policy, "validRange") {
        canonical(bound);
    }
}

#[cfg(test)]
mod tests;
