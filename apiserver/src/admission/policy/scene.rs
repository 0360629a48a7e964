//! What expressions see of a request: the objects in the form that a policy means, the request
//! itself, and the namespace.

use super::super::webhook::form::{Form, Shown};
use super::super::webhook::review;
use crate::admission::Attributes;
use crate::view::View;
use coracle_api::cel::evaluate::{Access, Given, Val, Variable};
use coracle_api::object::Object;
use coracle_api::status::{Status, Subject};
use serde_json::{Map, Value};

/// What of a namespace's metadata upstream shows.
const SHOWN_METADATA: [&str; 11] = [
    "name",
    "generateName",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "finalizers",
];

#[derive(Debug)]
pub struct Scene {
    pub form: Form,
    object: Value,
    old: Value,
    request: Value,
}

impl Scene {
    pub fn of(shown: &Shown, asked: &Attributes<'_>) -> Self {
        let value = |object: &Option<Object>| object.as_ref().map_or(Value::Null, Object::to_value);
        Self {
            form: shown.form,
            object: value(&shown.object),
            old: value(&shown.old),
            request: review::variable(asked, &shown.form),
        }
    }

    /// What expressions may name.
    pub fn given<'a>(
        &'a self,
        namespace: &'a Value,
        params: &'a Value,
        variables: &'a [Variable],
        access: Option<&'a dyn Access>,
    ) -> Given<'a> {
        let names = [
            ("object", &self.object),
            ("oldObject", &self.old),
            ("request", &self.request),
            ("namespaceObject", namespace),
            ("params", params),
        ];
        Given {
            names: names.map(|(name, value)| (name, Val::of(value))).into(),
            variables,
            access,
        }
    }
}

/// The namespace of a request as expressions see it; null where it is in none, or is one.
pub fn namespace_of(view: &dyn View, asked: &Attributes<'_>) -> Result<Value, Status> {
    if asked.namespace.is_empty() || asked.is("", "namespaces") {
        return Ok(Value::Null);
    }
    let found = view.get("", "namespaces", "", asked.namespace);
    let found = found.ok_or_else(|| {
        Status::not_found(Subject {
            group: "",
            resource: "namespaces",
            name: asked.namespace,
        })
    })?;
    let mut root = found.root().clone();
    let mut shown = Map::new();
    if let Some(Value::Object(mut metadata)) = root.remove("metadata") {
        metadata.retain(|name, _| SHOWN_METADATA.contains(&name.as_str()));
        shown.insert("metadata".to_owned(), Value::Object(metadata));
    }
    for part in ["spec", "status"] {
        if let Some(value) = root.remove(part) {
            shown.insert(part.to_owned(), value);
        }
    }
    Ok(Value::Object(shown))
}
