//! Default values in a schema: each is as its schema says, holds nothing that the schema does not
//! know, and makes no resource that could not be.

use crate::cel::budget::Budget;
use crate::field::{ErrorList, FieldError, Path};
use crate::json;
use crate::structural::{self, Patterns, Validator};
use serde_json::{Map, Value, json};

/// The resource around a default, and the way from there.
#[derive(Clone, Copy)]
struct Place<'a, 's> {
    /// Of all defaults.
    patterns: &'a Patterns<'s>,
    resource: &'a Value,
    steps: Option<&'a Step<'a>>,
    is_in_metadata: bool,
}

struct Step<'a> {
    before: Option<&'a Step<'a>>,
    /// `None` for an item of a list.
    field: Option<&'a str>,
}

/// What is wrong with the defaults of a structural schema.
pub fn validate(root: &Value, budget: &Budget, path: &Path) -> ErrorList {
    let place = Place {
        patterns: &Patterns::within(budget),
        resource: root,
        steps: None,
        is_in_metadata: false,
    };
    let mut errors = ErrorList::new();
    walk(&mut errors, root, true, place, path);
    errors
}

fn walk<'s>(
    errors: &mut ErrorList,
    schema: &'s Value,
    is_root: bool,
    place: Place<'_, 's>,
    path: &Path,
) {
    let is_resource = is_root || json::flag(schema, "x-kubernetes-embedded-resource");
    let place = if is_resource {
        Place {
            resource: schema,
            steps: None,
            is_in_metadata: false,
            ..place
        }
    } else {
        place
    };
    if let Some(default) = json::some(schema, "default") {
        let path = path.child("default");
        errors.extend(if place.is_in_metadata {
            in_metadata(schema, default, place, &path)
        } else {
            plain(schema, default, is_resource, place.patterns, &path)
        });
    }
    if let Some(items) = json::some(schema, "items") {
        let step = Step {
            before: place.steps,
            field: None,
        };
        let steps = Some(&step);
        walk(
            errors,
            items,
            false,
            Place { steps, ..place },
            &path.child("items"),
        );
    }
    for (name, property) in json::entries(schema, "properties") {
        let step = Step {
            before: place.steps,
            field: Some(name),
        };
        let is_of_all = matches!(name, "metadata" | "apiVersion" | "kind");
        let place = Place {
            steps: Some(&step),
            is_in_metadata: place.is_in_metadata || is_resource && is_of_all,
            ..place
        };
        let path = path.child("properties").key(name);
        walk(errors, property, false, place, &path);
    }
}

fn plain<'s>(
    schema: &'s Value,
    default: &Value,
    is_resource: bool,
    patterns: &Patterns<'s>,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    if structural::pruned(default, schema, is_resource) != *default {
        let detail = "must not have unknown fields";
        errors.push(FieldError::invalid(path, default.clone(), detail));
    }
    let of_resources = structural::check_resources(default, schema, is_resource, path);
    if of_resources.is_empty() {
        errors.extend(Validator::new(schema, patterns).validate(default, path));
    } else {
        errors.extend(of_resources);
    }
    errors
}

fn in_metadata<'s>(
    schema: &'s Value,
    default: &Value,
    place: Place<'_, 's>,
    path: &Path,
) -> ErrorList {
    let around = resource_with(default, place.steps);
    let nowhere = Path::default();
    let found = structural::check_resources(&around, place.resource, true, &nowhere);
    if found.is_empty() {
        return Validator::new(schema, place.patterns).validate(default, path);
    }
    let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
    let all = match &texts[..] {
        [one] => one.clone(),
        more => format!("[{}]", more.join(", ")),
    };
    let detail = format!("must result in valid metadata: {all}");
    vec![FieldError::invalid(path, default.clone(), detail)]
}

/// The smallest resource in which the value stands where the steps lead.
fn resource_with(value: &Value, steps: Option<&Step<'_>>) -> Value {
    let mut value = value.clone();
    let mut next = steps;
    while let Some(step) = next {
        value = match step.field {
            Some(name) => Value::Object(Map::from_iter([(name.to_owned(), value)])),
            None => json!([value]),
        };
        next = step.before;
    }
    json::default(&mut value, "apiVersion", "validation/v1");
    json::default(&mut value, "kind", "Validation");
    value
}

#[cfg(test)]
mod tests;
