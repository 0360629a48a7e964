//! IP addresses: who has an address of a ServiceCIDR. Named by the address itself.

use crate::field::{ErrorList, FieldError, Path};
use crate::kinds::checks;
use crate::kinds::row::{self, Names, column};
use crate::object::Object;
use crate::resource::{Column, NameRule, Part, Resource, Rules};
use crate::{json, names, print};
use serde_json::Value;

pub const ROW: Resource = Resource {
    short_names: &["ip"],
    ..row::cluster(
        "networking.k8s.io",
        "v1",
        Names {
            kind: "IPAddress",
            plural: "ipaddresses",
            singular: "ipaddress",
            schema: "io.k8s.api.networking.v1.IPAddress",
        },
        &IpAddress,
    )
};

const COLUMNS: &[Column] = &[
    row::NAME,
    column("ParentRef", "string", "The object that has the address."),
];

#[derive(Debug)]
struct IpAddress;

impl Rules for IpAddress {
    fn default(&self, _object: &mut Object) {}

    fn prepare_create(&self, _object: &mut Object) {}

    fn prepare_update(&self, _new: &mut Object, _old: &Object, _part: Part<'_>) {}

    fn validate_create(&self, object: &Object) -> ErrorList {
        parent(object)
    }

    fn validate_update(&self, new: &Object, old: &Object, _part: Part<'_>) -> ErrorList {
        let [new_spec, old_spec] =
            [new, old].map(|object| object.get(&["spec"]).unwrap_or(&Value::Null));
        let mut errors = parent(new);
        let path = Path::root("spec");
        let kind = "io.k8s.api.networking.v1.ParentReference";
        checks::immutable_as(&mut errors, kind, new_spec, old_spec, "parentRef", &path);
        errors
    }

    fn name_rule(&self) -> NameRule {
        NameRule::CanonicalIp
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    /// One cell more than columns, as upstream has it.
    fn cells(&self, object: &Object, now: i64) -> Vec<Value> {
        vec![
            object.name().into(),
            parent_text(object).into(),
            print::age_of(object, now),
        ]
    }
}

fn parent(object: &Object) -> ErrorList {
    let path = Path::root("spec").child("parentRef");
    let parent = object.get(&["spec", "parentRef"]);
    let Some(parent) = parent.filter(|parent| !parent.is_null()) else {
        return vec![FieldError::required(&path, "")];
    };
    let mut errors = ErrorList::new();
    let group = json::text(parent, "group");
    if !group.is_empty() {
        let details = names::dns_subdomain(group);
        checks::each(&mut errors, &path.child("group"), group, details);
    }
    checks::required_segment(&mut errors, parent, "resource", &path);
    checks::required_segment(&mut errors, parent, "name", &path);
    let namespace = json::text(parent, "namespace");
    let details = names::path_segment(namespace);
    checks::each(&mut errors, &path.child("namespace"), namespace, details);
    errors
}

fn parent_text(object: &Object) -> String {
    let parent = object.get(&["spec", "parentRef"]);
    let Some(parent) = parent.filter(|parent| !parent.is_null()) else {
        return "<none>".to_owned();
    };
    let text = |name| json::text(parent, name);
    let mut out = text("resource").to_lowercase();
    if !text("group").is_empty() {
        out = format!("{out}.{}", text("group").to_lowercase());
    }
    if !text("namespace").is_empty() {
        out = format!("{out}/{}", text("namespace"));
    }
    format!("{out}/{}", text("name"))
}

#[cfg(test)]
mod tests;
