//! The annotation in which `kubectl apply` keeps what it applied last.

use super::set::Set;
use super::types::{Place, Types};
use super::value;
use serde_json::{Map, Value};

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Upstream's bound on all annotations of an object.
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

fn of(object: &Map<String, Value>) -> Option<&str> {
    let annotations = object.get("metadata")?.get("annotations")?;
    let text = annotations.get(ANNOTATION)?.as_str()?;
    (!text.is_empty()).then_some(text)
}

/// The fields of which the annotation says that client-side apply set them, as they still are.
pub fn unchanged_fields(
    types: &Types<'_>,
    root: Place<'_>,
    api_version: &str,
    live: &Map<String, Value>,
) -> Option<Set<'static>> {
    let Value::Object(applied) = serde_json::from_str(of(live)?).ok()? else {
        return None;
    };
    if applied.get("apiVersion").and_then(Value::as_str) != Some(api_version) {
        return None;
    }
    if !types.validate(root, &applied).is_empty() {
        return None;
    }
    let compared = types.compare(root, &applied, live);
    let fields = types
        .fields_of(root, &applied)
        .difference(&compared.modified)
        .difference(&compared.added)
        .difference(&compared.removed);
    Some(fields.into_owned())
}

/// Brings the annotation of `object`, where there is one, up to what was applied now.
pub fn renew(object: &mut Map<String, Value>, applied: &Map<String, Value>) {
    if of(object).is_none() {
        return;
    }
    let mut applied = applied.clone();
    if let Some(own) = annotations_mut(&mut applied) {
        own.remove(ANNOTATION);
    }
    let mut text = String::new();
    value::write(&mut text, &Value::Object(applied));
    text.push('\n');
    let Some(all) = annotations_mut(object) else {
        return;
    };
    all.insert(ANNOTATION.to_owned(), text.into());
    let size: usize = all
        .iter()
        .map(|(key, value)| key.len() + value.as_str().map_or(0, str::len))
        .sum();
    if size > ANNOTATIONS_BYTES_MAX {
        all.remove(ANNOTATION);
    }
}

fn annotations_mut(object: &mut Map<String, Value>) -> Option<&mut Map<String, Value>> {
    object
        .get_mut("metadata")?
        .get_mut("annotations")?
        .as_object_mut()
}
