//! Device classes: names for selections of devices.

use crate::cel::budget::Budget;
use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::devices::{CONFIGURATIONS_MAX, configuration, each, selectors};
use crate::kinds::row::{self, Names};
use crate::object::Object;
use crate::pod_spec::resources::is_extended;
use crate::print;
use crate::resource::{Column, Part, Resource, Rules};
use serde_json::Value;

pub const ROW: Resource = row::cluster(
    "resource.k8s.io",
    "v1",
    Names {
        kind: "DeviceClass",
        plural: "deviceclasses",
        singular: "deviceclass",
        schema: "io.k8s.api.resource.v1.DeviceClass",
    },
    &DeviceClass,
);

const COLUMNS: &[Column] = &[row::NAME, row::AGE];

#[derive(Debug)]
struct DeviceClass;

impl Rules for DeviceClass {
    fn default(&self, _object: &mut Object) {}

    fn prepare_create(&self, _object: &mut Object) {}

    fn prepare_update(&self, _new: &mut Object, _old: &Object, _part: Part<'_>) {}

    fn counts_generations(&self) -> bool {
        true
    }

    fn is_slow_to_validate(&self) -> bool {
        true
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        let path = Path::root("spec");
        let all = object.list(&["spec", "selectors"]);
        let mut errors = selectors(all, &Budget::default(), &path.child("selectors"));
        errors.extend(each(
            object.list(&["spec", "config"]),
            CONFIGURATIONS_MAX,
            &path.child("config"),
            configuration,
        ));
        let name = object
            .get(&["spec", "extendedResourceName"])
            .and_then(Value::as_str);
        if let Some(name) = name.filter(|name| !is_extended(name)) {
            let path = path.child("extendedResourceName");
            let detail = "must be a valid extended resource name";
            errors.push(FieldError::invalid(&path, name, detail));
        }
        errors
    }

    fn validate_update(&self, new: &Object, _old: &Object, _part: Part<'_>) -> ErrorList {
        self.validate_create(new)
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        vec![object.name().into(), print::age_of(object, now)]
    }
}

#[cfg(test)]
mod tests;
