//! What a schema may say at all, and what Kubernetes' extensions ask of it.

use super::costs::{self, Costs};
use super::expressions;
use crate::cel::budget::Budget;
use crate::field::{ErrorList, FieldError, Path};
use crate::json;
use serde_json::Value;

pub const TYPE: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

const TYPES: &[&str] = &["array", "boolean", "integer", "number", "object", "string"];
const LIST_TYPE: &str = "x-kubernetes-list-type";
const LIST_KEYS: &str = "x-kubernetes-list-map-keys";
const MAP_TYPE: &str = "x-kubernetes-map-type";
/// Fields of a schema that are schemas, lists of them, or maps of them.
const NESTED_MAPS: [&str; 4] = [
    "properties",
    "patternProperties",
    "definitions",
    "dependencies",
];
const NESTED: [&str; 7] = [
    "items",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "additionalProperties",
    "additionalItems",
];

/// Whether something holds of a schema or of one in it.
pub fn any(schema: &Value, holds: &dyn Fn(&Value) -> bool) -> bool {
    if !schema.is_object() {
        return false;
    }
    let below = |value: &Value| match value {
        Value::Array(schemas) => schemas.iter().any(|one| any(one, holds)),
        other => any(other, holds),
    };
    holds(schema)
        || NESTED.iter().any(|field| below(json::get(schema, field)))
        || NESTED_MAPS
            .iter()
            .any(|field| json::entries(schema, field).any(|(_, one)| any(one, holds)))
}

/// Where a schema stands, as far as its rules depend on it.
#[derive(Clone, Copy, Debug)]
struct Place<'a> {
    budget: &'a Budget,
    costs: &'a Costs,
    /// As many values of the schema as an object may have; `None` where there is no bound.
    values_max: Option<u64>,
    is_root: bool,
    is_inside_metadata: bool,
    /// Why no default may stand here.
    no_defaults: Option<&'a str>,
    /// Within what no value can be compared with an old one.
    no_old_self: Option<&'a Path>,
}

/// Errors of the schema, and of the expressions in it, which come last.
#[derive(Debug, Default)]
struct Found {
    errors: ErrorList,
    of_expressions: ErrorList,
}

/// Expressions are looked at when the schema is structural.
pub fn validate(
    schema: &Value,
    is_structural: bool,
    budget: &Budget,
    costs: &Costs,
    path: &Path,
) -> ErrorList {
    let place = Place {
        budget,
        costs,
        values_max: Some(1),
        is_root: true,
        is_inside_metadata: false,
        no_defaults: None,
        no_old_self: None,
    };
    let mut found = walk(schema, place, is_structural, path);
    found.errors.append(&mut found.of_expressions);
    found.errors.extend(costs.of_all(path));
    found.errors
}

fn walk(schema: &Value, place: Place<'_>, is_structural: bool, path: &Path) -> Found {
    let mut found = Found::default();
    own(&mut found.errors, schema, place, path);
    let below_each = place.values_max.zip(costs::elements_max(schema));
    let inner = Place {
        is_root: false,
        values_max: below_each.map(|(values, each)| values.saturating_mul(each)),
        ..place
    };
    let mut below = |schema: &Value, place: Place<'_>, is_structural: bool, path: &Path| {
        if schema.is_object() {
            let mut deeper = walk(schema, place, is_structural, path);
            found.errors.append(&mut deeper.errors);
            found.of_expressions.append(&mut deeper.of_expressions);
        }
    };
    let mut of_additional = inner;
    if place.is_inside_metadata {
        of_additional.no_defaults = Some("inside additionalProperties applying to object metadata");
    }
    let additional = json::get(schema, "additionalProperties");
    let path_below = path.child("additionalProperties");
    below(additional, of_additional, is_structural, &path_below);
    for (name, property) in json::entries(schema, "properties") {
        let reason = format!("in top-level {name}");
        let mut place_of = inner;
        if json::text(schema, MAP_TYPE) == "atomic" {
            place_of.no_old_self = inner.no_old_self.or(Some(path));
        }
        let is_resource = place.is_root || json::flag(schema, "x-kubernetes-embedded-resource");
        if is_resource && matches!(name, "metadata" | "kind" | "apiVersion") {
            place_of.is_inside_metadata = true;
            if place.is_root {
                place_of.no_defaults = Some(&reason);
            }
        }
        let path = path.child("properties").key(name);
        below(property, place_of, is_structural, &path);
    }
    below(json::get(schema, "not"), inner, false, &path.child("not"));
    for junctor in ["allOf", "oneOf", "anyOf"] {
        for (index, clause) in json::list(schema, junctor).iter().enumerate() {
            below(clause, inner, false, &path.child(junctor).index(index));
        }
    }
    let mut of_items = inner;
    if json::text(schema, LIST_TYPE) != "map" {
        of_items.no_old_self = inner.no_old_self.or(Some(path));
    }
    let items = json::get(schema, "items");
    below(items, of_items, is_structural, &path.child("items"));
    extensions(&mut found.errors, schema, path);
    let rules = json::list(schema, expressions::FIELD);
    found.errors.extend(expressions::form(rules, schema, path));
    if is_structural && found.errors.is_empty() {
        let place = expressions::Place {
            budget: place.budget,
            costs: place.costs,
            values_max: place.values_max,
            is_resource: place.is_root || json::flag(schema, "x-kubernetes-embedded-resource"),
            uncorrelatable: place.no_old_self,
        };
        let of_rules = expressions::compile(rules, schema, place, path);
        found.of_expressions.extend(of_rules);
    }
    found
}

/// What a schema says of itself.
fn own(errors: &mut ErrorList, schema: &Value, place: Place<'_>, path: &Path) {
    let kind = json::text(schema, "type");
    if !kind.is_empty() && !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(&path.child("type"), kind, TYPES));
    }
    let mut forbidden = |field: &str, detail: &str| {
        errors.push(FieldError::forbidden(&path.child(field), detail));
    };
    if let Some(reason) = place.no_defaults.filter(|_| json::has(schema, "default")) {
        forbidden("default", &format!("must not be set {reason}"));
    }
    for field in [
        "id",
        "additionalItems",
        "patternProperties",
        "definitions",
        "dependencies",
        "$ref",
    ] {
        if !json::is_empty(json::get(schema, field)) {
            forbidden(field, &format!("{field} is not supported"));
        }
    }
    if kind == "null" {
        forbidden(
            "type",
            "type cannot be set to null, use nullable as an alternative",
        );
    }
    if json::get(schema, "items").is_array() {
        forbidden("items", "items must be a schema object and not an array");
    }
    if place.is_inside_metadata && json::flag(schema, "x-kubernetes-embedded-resource") {
        let detail = "must not be used inside of resource meta";
        forbidden("x-kubernetes-embedded-resource", detail);
    }
    if json::flag(schema, "uniqueItems") {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes \
                      quadratic";
        forbidden("uniqueItems", detail);
    }
    let additional = json::some(schema, "additionalProperties");
    let has_properties = json::entries(schema, "properties").next().is_some();
    if has_properties && additional.is_some_and(|additional| *additional != true) {
        let detail = "additionalProperties and properties are mutual exclusive";
        forbidden("additionalProperties", detail);
    }
}

fn extensions(errors: &mut ErrorList, schema: &Value, path: &Path) {
    let preserves = "x-kubernetes-preserve-unknown-fields";
    if json::some(schema, preserves).is_some_and(|flag| *flag == false) {
        let detail = "must be true or undefined";
        errors.push(FieldError::invalid(&path.child(preserves), false, detail));
    }
    let needs_type = |errors: &mut ErrorList, field: &str, wanted: &str| {
        let kind = json::text(schema, "type");
        if !json::has(schema, field) || kind == wanted {
            return;
        }
        let detail = format!("must be {wanted} if {field} is specified");
        errors.push(match kind {
            "" => FieldError::required(&path.child("type"), detail),
            _ => FieldError::invalid(&path.child("type"), kind, detail),
        });
    };
    let one_of = |errors: &mut ErrorList, field: &str, supported: &[&str]| {
        if let Some(value) = json::some(schema, field).and_then(Value::as_str)
            && !supported.contains(&value)
        {
            let path = path.child(field);
            errors.push(FieldError::not_supported(&path, value, supported));
        }
    };
    needs_type(errors, MAP_TYPE, "object");
    one_of(errors, MAP_TYPE, &["atomic", "granular"]);
    needs_type(errors, LIST_TYPE, "array");
    if json::text(schema, "type") == "array" && json::text(schema, LIST_TYPE) == "set" {
        atomic_items(errors, json::get(schema, "items"), &path.child("items"));
    }
    one_of(errors, LIST_TYPE, &["atomic", "set", "map"]);
    list_keys(errors, schema, path);
    keyed_items(errors, schema, path);
}

/// What is in a set is taken as a whole.
fn atomic_items(errors: &mut ErrorList, items: &Value, path: &Path) {
    let (field, is_wrong) = match json::text(items, "type") {
        "array" => (
            LIST_TYPE,
            !matches!(json::text(items, LIST_TYPE), "" | "atomic"),
        ),
        "object" => (MAP_TYPE, json::text(items, MAP_TYPE) != "atomic"),
        _ => return,
    };
    if is_wrong {
        let value = json::get(items, LIST_TYPE).clone();
        let detail = format!("must be atomic as item of a list with {LIST_TYPE}=set");
        errors.push(FieldError::invalid(&path.child(field), value, detail));
    }
}

fn list_keys(errors: &mut ErrorList, schema: &Value, path: &Path) {
    let keys = json::list(schema, LIST_KEYS);
    let (list_type, of_type) = (json::some(schema, LIST_TYPE), path.child(LIST_TYPE));
    let is_map = list_type.is_some_and(|one| one == "map");
    if !keys.is_empty() && !is_map {
        let detail = format!("must be map if {LIST_KEYS} is non-empty");
        errors.push(match list_type {
            None => FieldError::required(&of_type, detail),
            Some(other) => FieldError::invalid(&of_type, other.clone(), detail),
        });
    }
    if !is_map {
        return;
    }
    let (of_keys, of_items) = (path.child(LIST_KEYS), path.child("items"));
    if keys.is_empty() {
        let detail = format!("must not be empty if {LIST_TYPE} is map");
        errors.push(FieldError::required(&of_keys, detail));
    }
    let Some(items) = json::some(schema, "items") else {
        let detail = format!("must have a schema if {LIST_TYPE} is map");
        errors.push(FieldError::required(&of_items, detail));
        return;
    };
    let kind = json::text(items, "type");
    if kind != "object" {
        let detail = format!("must be object if parent array's {LIST_TYPE} is map");
        errors.push(FieldError::invalid(&of_items.child("type"), kind, detail));
        return;
    }
    for (index, key) in keys.iter().enumerate() {
        let name = key.as_str().unwrap_or("");
        match json::some(json::get(items, "properties"), name) {
            None => {
                let detail = "entries must all be names of item properties";
                errors.push(FieldError::invalid(&of_keys, keys, detail));
            }
            Some(property) if matches!(json::text(property, "type"), "array" | "object") => {
                let path = of_items.child("properties").key(name).child("type");
                let detail = format!("must be a scalar type if parent array's {LIST_TYPE} is map");
                errors.push(FieldError::invalid(&path, kind, detail));
            }
            Some(_) => {}
        }
        if keys[..index].contains(key) {
            let detail = "must not contain duplicate entries";
            errors.push(FieldError::invalid(&of_keys, keys, detail));
        }
    }
}

/// Items of sets and maps are there, and so are the keys of maps.
fn keyed_items(errors: &mut ErrorList, schema: &Value, path: &Path) {
    let list_type = json::text(schema, LIST_TYPE);
    let items = json::get(schema, "items");
    if !items.is_object() || !matches!(list_type, "set" | "map") {
        return;
    }
    let path = path.child("items");
    if json::flag(items, "nullable") {
        let detail = format!("cannot be nullable when {LIST_TYPE} is {list_type}");
        errors.push(FieldError::forbidden(&path.child("nullable"), detail));
    }
    if list_type != "map" {
        return;
    }
    for key in json::list(schema, LIST_KEYS) {
        let name = key.as_str().unwrap_or("");
        let Some(property) = json::some(json::get(items, "properties"), name) else {
            continue;
        };
        let path = path.child("properties").key(name);
        if !json::list(items, "required").contains(key) && !json::has(property, "default") {
            let detail = format!(
                "this property is in {LIST_KEYS}, so it must have a default or be a required \
                 property"
            );
            errors.push(FieldError::required(&path.child("default"), detail));
        }
        if json::flag(property, "nullable") {
            let detail = format!("this property is in {LIST_KEYS}, so it cannot be nullable");
            errors.push(FieldError::forbidden(&path.child("nullable"), detail));
        }
    }
}
