//! Volume attributes classes: parameters of volumes that may change while the volumes live. The
//! class itself never changes.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::row::{self, Names, column};
use crate::kinds::storage;
use crate::object::Object;
use crate::print;
use crate::resource::{Column, Part, Resource, Rules};
use serde_json::Value;

pub const ROW: Resource = Resource {
    short_names: &["vac"],
    ..row::cluster(
        "storage.k8s.io",
        "v1",
        Names {
            kind: "VolumeAttributesClass",
            plural: "volumeattributesclasses",
            singular: "volumeattributesclass",
            schema: "io.k8s.api.storage.v1.VolumeAttributesClass",
        },
        &VolumeAttributesClass,
    )
};

const COLUMNS: &[Column] = &[
    row::NAME,
    column(
        "DriverName",
        "string",
        "The driver that knows the parameters.",
    ),
    row::AGE,
];

#[derive(Debug)]
struct VolumeAttributesClass;

impl Rules for VolumeAttributesClass {
    fn default(&self, _object: &mut Object) {}

    fn prepare_create(&self, _object: &mut Object) {}

    fn prepare_update(&self, _new: &mut Object, _old: &Object, _part: Part<'_>) {}

    fn validate_create(&self, object: &Object) -> ErrorList {
        let driver = object.str(&["driverName"]);
        let mut errors = storage::provisioner(driver, &Path::root("driverName"));
        let parameters = object.get(&["parameters"]).unwrap_or(&Value::Null);
        let path = Path::root("parameters");
        errors.extend(storage::parameters(parameters, false, &path));
        errors
    }

    fn validate_update(&self, new: &Object, old: &Object, _part: Part<'_>) -> ErrorList {
        let mut errors = ErrorList::new();
        for field in ["driverName", "parameters"] {
            if new.get(&[field]) != old.get(&[field]) {
                let detail = format!("updates to {field} are forbidden.");
                errors.push(FieldError::forbidden(&Path::root(field), detail));
            }
        }
        errors.extend(self.validate_create(new));
        errors
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        vec![
            object.name().into(),
            object.str(&["driverName"]).into(),
            print::age_of(object, now),
        ]
    }
}

#[cfg(test)]
mod tests;
