//! Limit ranges: bounds and defaults of what pods and claims of a namespace ask for.

mod validate;

use crate::field::ErrorList;
use crate::json;
use crate::kinds::plain;
use crate::kinds::row::{self, Names};
use crate::object::Object;
use crate::pod_spec::defaults;
use crate::resource::{Column, Part, Requester, Resource, Rules};
use serde_json::{Map, Value};

pub const ROW: Resource = Resource {
    short_names: &["limits"],
    ..row::namespaced(
        "",
        "v1",
        Names {
            kind: "LimitRange",
            plural: "limitranges",
            singular: "limitrange",
            schema: "io.k8s.api.core.v1.LimitRange",
        },
        &LimitRange,
    )
};

#[derive(Debug)]
struct LimitRange;

impl Rules for LimitRange {
    fn default(&self, object: &mut Object) {
        let limits = object.get_mut(&["spec", "limits"]);
        for limit in limits.and_then(Value::as_array_mut).into_iter().flatten() {
            if json::text(limit, "type") == "Container" {
                of_containers(limit);
            }
            for list in validate::LISTS {
                if let Some(list) = json::object_mut(limit, list) {
                    defaults::round_quantities(list);
                }
            }
        }
    }

    fn prepare_create(&self, _object: &mut Object) {}

    fn prepare_update(&self, _new: &mut Object, _old: &Object, _part: Part<'_>) {}

    /// One without a name gets one.
    fn stamp(
        &self,
        object: &mut Object,
        old: Option<&Object>,
        _part: Part<'_>,
        _by: &Requester<'_>,
        _now: &str,
    ) {
        if old.is_none() && object.name().is_empty() {
            let uid = object.uid().to_owned();
            object.set(&["metadata", "name"], uid.into());
        }
    }

    fn validate_create(&self, object: &Object) -> ErrorList {
        validate::limit_range(object)
    }

    fn validate_update(&self, new: &Object, _old: &Object, _part: Part<'_>) -> ErrorList {
        validate::limit_range(new)
    }

    fn create_on_update(&self) -> bool {
        true
    }

    fn columns(&self) -> &'static [Column] {
        plain::COLUMNS
    }

    fn cells(&self, object: &Object, _now: i64) -> Vec<Value> {
        plain::cells(object)
    }
}

/// A default limit is the maximum, a default request the limit, or else the minimum.
fn of_containers(limit: &mut Value) {
    let list = |limit: &Value, name: &str| {
        let list = limit.get(name).and_then(Value::as_object);
        list.cloned().unwrap_or_default()
    };
    let fill = |list: &mut Map<String, Value>, from: &Map<String, Value>| {
        for (name, value) in from {
            list.entry(name.clone()).or_insert_with(|| value.clone());
        }
    };
    let mut default = list(limit, "default");
    fill(&mut default, &list(limit, "max"));
    let mut request = list(limit, "defaultRequest");
    fill(&mut request, &default);
    fill(&mut request, &list(limit, "min"));
    for (name, made) in [("default", default), ("defaultRequest", request)] {
        if !made.is_empty() {
            limit[name] = Value::Object(made);
        }
    }
}

#[cfg(test)]
mod tests;
