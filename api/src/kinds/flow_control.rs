//! What flow schemas and priority levels share: the objects that every server has, and the
//! conditions of a status.
//!
//! The objects are upstream's: the mandatory ones are what the server falls back on and cannot be
//! changed, the suggested ones are a start that an operator may change.

use crate::field::{ErrorList, FieldError, Path};
use crate::json;
use crate::object::Object;
use serde_json::{Value, json};
use std::sync::LazyLock;

pub const GROUP: &str = "flowcontrol.apiserver.k8s.io";
/// True for as long as the server keeps the object's spec up to date.
pub const AUTO_UPDATE: &str = "apf.kubernetes.io/autoupdate-spec";

/// What kube-apiserver v1.36 creates, one object a line, priority levels first.
const FACTS: &str = include_str!("../../facts/flowcontrol.jsonl");

/// An object that every server has.
#[derive(Clone, Debug)]
pub struct Bootstrap {
    pub object: Object,
    /// True when its spec is fixed.
    pub is_mandatory: bool,
}

static BOOTSTRAP: LazyLock<Vec<Bootstrap>> = LazyLock::new(|| FACTS.lines().map(parse).collect());

/// All of them, priority levels before the schemas that name them.
pub fn bootstrap() -> &'static [Bootstrap] {
    &BOOTSTRAP
}

/// The fixed spec of a mandatory object.
pub fn fixed_spec(kind: &str, name: &str) -> Option<&'static Value> {
    bootstrap()
        .iter()
        .filter(|one| one.is_mandatory)
        .find(|one| one.object.kind() == kind && one.object.name() == name)
        .and_then(|one| one.object.get(&["spec"]))
}

fn parse(line: &str) -> Bootstrap {
    let mut fact: Value =
        serde_json::from_str(line).expect("the facts are part of the program and tested");
    let mut object = Object::new(&format!("{GROUP}/v1"), json::text(&fact, "kind"));
    object.set(&["metadata", "name"], fact["name"].take());
    object.set(&["metadata", "annotations"], json!({ AUTO_UPDATE: "true" }));
    object.set(&["spec"], fact["spec"].take());
    Bootstrap {
        object,
        is_mandatory: json::flag(&fact, "mandatory"),
    }
}

/// There is always a status, and every condition of it shows a time.
pub fn default_status(object: &mut Object) {
    json::default_in(object.root_mut(), "status", json!({}));
    if let Some(status) = object.get_mut(&["status"]) {
        for condition in json::list_mut(status, "conditions") {
            json::default(condition, "lastTransitionTime", Value::Null);
        }
    }
}

/// Conditions have a type, each once.
pub fn conditions(object: &Object) -> ErrorList {
    let path = Path::root("status").child("conditions");
    let mut errors = ErrorList::new();
    let mut seen = Vec::new();
    for (index, condition) in object.list(&["status", "conditions"]).iter().enumerate() {
        let path = path.index(index).child("type");
        let kind = json::text(condition, "type");
        if seen.contains(&kind) {
            errors.push(FieldError::duplicate(&path, kind));
        }
        seen.push(kind);
        if kind.is_empty() {
            errors.push(FieldError::required(&path, ""));
        }
    }
    errors
}

#[cfg(test)]
mod tests;
