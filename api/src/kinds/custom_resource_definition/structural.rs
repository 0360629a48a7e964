//! Structural schemas: every value that can be there has one known type, said once and outside of
//! `anyOf` and the like; those only narrow.

use crate::cel::budget::Budget;
use crate::field::{ErrorList, FieldError, Path};
use crate::json;
use serde_json::{Value, json};
use std::cell::Cell;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

const EXTENSIONS: [&str; 3] = [
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
];
const JUNCTORS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// What a structural schema cannot be made of at all.
pub fn unsupported(schema: &Value) -> Option<String> {
    let found: Cell<Option<String>> = Cell::new(None);
    super::schema::any(schema, &|one| {
        let problem = own_unsupported(one);
        let is_found = problem.is_some();
        if is_found {
            found.set(problem);
        }
        is_found
    });
    found.into_inner()
}

fn own_unsupported(schema: &Value) -> Option<String> {
    for (field, name) in [
        ("id", "id"),
        ("$schema", "schema"),
        ("$ref", "$ref"),
        ("patternProperties", "patternProperties"),
        ("dependencies", "dependencies"),
        ("definitions", "definitions"),
    ] {
        if !json::is_empty(json::get(schema, field)) {
            return Some(format!("OpenAPIV3Schema '{name}' is not supported"));
        }
    }
    if json::has(schema, "additionalItems") {
        return Some("OpenAPIV3Schema 'additionalItems' is not supported".to_owned());
    }
    if json::some(schema, EXTENSIONS[0]).is_some_and(|flag| flag == false) {
        let detail = "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or \
                      undefined";
        return Some(detail.to_owned());
    }
    let items = json::some(schema, "items").filter(|items| items.is_array());
    items.map(|_| "OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned())
}

/// What is not structural, sorted as upstream sorts it.
pub fn validate(schema: &Value, budget: &Budget, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    invariants(&mut errors, schema, budget, Level::Root, path);
    for_each_nested(schema, path, &mut |nested, of_nested| {
        complete(&mut errors, nested, Some(schema), path, of_nested);
    });
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

fn invariants(errors: &mut ErrorList, schema: &Value, budget: &Budget, level: Level, path: &Path) {
    let kind = json::text(schema, "type");
    match json::some(schema, "items") {
        None if kind == "array" => {
            errors.push(FieldError::required(
                &path.child("items"),
                "must be specified",
            ));
        }
        None => {}
        Some(items) => invariants(errors, items, budget, Level::Item, &path.child("items")),
    }
    for (name, property) in json::entries(schema, "properties") {
        let path = path.child("properties").key(name);
        invariants(errors, property, budget, Level::Field, &path);
    }
    if let Some(additional) = json::some(schema, "additionalProperties") {
        let path = path.child("additionalProperties");
        if level == Level::Root {
            errors.push(FieldError::forbidden(&path, "must not be used at the root"));
        }
        if additional.is_object() {
            invariants(errors, additional, budget, Level::Field, &path);
        }
    }
    extensions(errors, schema, path);
    pattern(errors, schema, budget, path);
    let skips_any = is_int_or_string(json::list(schema, "anyOf"));
    let first = json::list(schema, "allOf").first();
    let skips_first = first.is_some_and(|one| is_int_or_string(json::list(one, "anyOf")));
    narrowing(errors, schema, budget, [skips_any, skips_first], path);
    own_type(errors, schema, level, path);
    metadata(errors, schema, level, path);
}

/// `anyOf: [{type: integer}, {type: string}]`, the one place where types may stand nested.
fn is_int_or_string(any_of: &[Value]) -> bool {
    let [integer, string] = any_of else {
        return false;
    };
    json::same(integer, &json!({ "type": "integer" }))
        && json::same(string, &json!({ "type": "string" }))
}

fn extensions(errors: &mut ErrorList, schema: &Value, path: &Path) {
    if !json::flag(schema, EXTENSIONS[2]) {
        return;
    }
    for name in &EXTENSIONS[..2] {
        if json::flag(schema, name) {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            errors.push(FieldError::invalid(&path.child(name), true, detail));
        }
    }
}

fn pattern(errors: &mut ErrorList, schema: &Value, budget: &Budget, path: &Path) {
    let pattern = json::text(schema, "pattern");
    if pattern.is_empty() {
        return;
    }
    if let Err(error) = budget.pattern(pattern) {
        let detail = format!("must be a valid regular expression, but isn't: {error}");
        errors.push(FieldError::invalid(&path.child("pattern"), pattern, detail));
    }
}

fn own_type(errors: &mut ErrorList, schema: &Value, level: Level, path: &Path) {
    let [preserves, embeds, is_either] = EXTENSIONS.map(|name| json::flag(schema, name));
    let (kind, of_type) = (json::text(schema, "type"), path.child("type"));
    if embeds && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(match kind {
            "" => FieldError::required(&of_type, detail),
            _ => FieldError::invalid(&of_type, kind, detail),
        });
    } else if kind.is_empty() && !is_either && !preserves {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(&of_type, detail));
    }
    if embeds && json::has(schema, "additionalProperties") {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(
            &path.child("additionalProperties"),
            detail,
        ));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(
            &of_type,
            kind,
            "must be object at the root",
        ));
    }
    if embeds && !preserves && json::entries(schema, "properties").next().is_none() {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                      x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(&path.child("properties"), detail));
    }
}

/// Of metadata only the names may be narrowed; what else there is, everybody knows.
fn metadata(errors: &mut ErrorList, schema: &Value, level: Level, path: &Path) {
    let is_resource = level == Level::Root || json::flag(schema, EXTENSIONS[1]);
    let path = path.child("properties");
    let properties = json::get(schema, "properties");
    for name in ["kind", "apiVersion"] {
        if let Some(property) = json::some(properties, name).filter(|_| is_resource) {
            let kind = json::text(property, "type");
            if kind != "string" {
                let path = path.key(name).child("type");
                errors.push(FieldError::invalid(&path, kind, "must be string"));
            }
        }
    }
    let Some(metadata) = json::some(properties, "metadata") else {
        return;
    };
    let path = path.key("metadata");
    let kind = json::text(metadata, "type");
    if is_resource && kind != "object" {
        errors.push(FieldError::invalid(
            &path.child("type"),
            kind,
            "must be object",
        ));
    }
    if level != Level::Root {
        return;
    }
    let is_name = |(name, _): (&str, &Value)| matches!(name, "name" | "generateName");
    let only_names = json::entries(metadata, "properties").all(is_name);
    let is_left = |(field, value): (&String, &Value)| match field.as_str() {
        "type" | "default" => false,
        "properties" => !only_names,
        _ => !json::is_empty(value),
    };
    if metadata
        .as_object()
        .is_some_and(|fields| fields.iter().any(is_left))
    {
        let detail = "must not specify anything other than name and generateName, but metadata is \
                      implicitly specified";
        errors.push(FieldError::forbidden(&path, detail));
    }
}

/// What narrows a schema: `anyOf` and the like, and patterns.
fn narrowing(
    errors: &mut ErrorList,
    schema: &Value,
    budget: &Budget,
    [skips_any, skips_first]: [bool; 2],
    path: &Path,
) {
    for junctor in JUNCTORS {
        if junctor == "anyOf" && skips_any {
            continue;
        }
        for (index, clause) in json::list(schema, junctor).iter().enumerate() {
            let skips_any = junctor == "allOf" && index == 0 && skips_first;
            let path = path.child(junctor).index(index);
            nested(errors, clause, budget, skips_any, &path);
        }
    }
    if let Some(not) = json::some(schema, "not") {
        nested(errors, not, budget, false, &path.child("not"));
    }
}

fn nested(errors: &mut ErrorList, schema: &Value, budget: &Budget, skips_any: bool, path: &Path) {
    pattern(errors, schema, budget, path);
    narrowing(errors, schema, budget, [skips_any, false], path);
    if let Some(items) = json::some(schema, "items") {
        nested(errors, items, budget, false, &path.child("items"));
    }
    for (name, property) in json::entries(schema, "properties") {
        let path = path.child("properties").key(name);
        nested(errors, property, budget, false, &path);
    }
    let mut forbidden = |field: &str, detail: &str| {
        let detail = format!("must be {detail} to be structural");
        errors.push(FieldError::forbidden(&path.child(field), detail));
    };
    for (field, detail) in [
        ("type", "empty"),
        ("title", "empty"),
        ("description", "empty"),
        ("nullable", "false"),
        ("x-kubernetes-preserve-unknown-fields", "false"),
        ("x-kubernetes-embedded-resource", "false"),
        ("x-kubernetes-int-or-string", "false"),
        ("x-kubernetes-list-map-keys", "empty"),
        ("x-kubernetes-validations", "empty"),
        ("additionalProperties", "undefined"),
    ] {
        let value = json::get(schema, field);
        let is_schema = field == "additionalProperties" && value.is_object();
        if is_schema || !json::is_empty(value) {
            forbidden(field, detail);
        }
    }
    for field in ["default", "x-kubernetes-list-type", "x-kubernetes-map-type"] {
        if json::has(schema, field) {
            forbidden(field, "undefined");
        }
    }
    if json::has(json::get(schema, "properties"), "metadata") {
        let path = path.child("properties").key("metadata");
        let detail = "must not be specified in a nested context";
        errors.push(FieldError::forbidden(&path, detail));
    }
}

fn for_each_nested(schema: &Value, path: &Path, each: &mut dyn FnMut(&Value, &Path)) {
    if let Some(not) = json::some(schema, "not") {
        each(not, &path.child("not"));
    }
    for junctor in JUNCTORS {
        for (index, clause) in json::list(schema, junctor).iter().enumerate() {
            each(clause, &path.child(junctor).index(index));
        }
    }
}

/// What is narrowed must be there: `narrowed` stands in `anyOf` or the like of the root, `schema`
/// is what it narrows.
fn complete(
    errors: &mut ErrorList,
    narrowed: &Value,
    schema: Option<&Value>,
    path: &Path,
    of_narrowed: &Path,
) {
    let Some(schema) = schema else {
        let detail = format!("because it is defined in {of_narrowed}");
        errors.push(FieldError::required(path, detail));
        return;
    };
    for_each_nested(narrowed, of_narrowed, &mut |clause, of_clause| {
        complete(errors, clause, Some(schema), path, of_clause);
    });
    if let Some(items) = json::some(narrowed, "items") {
        let of_items = of_narrowed.child("items");
        let own = json::some(schema, "items");
        complete(errors, items, own, &path.child("items"), &of_items);
    }
    for (name, property) in json::entries(narrowed, "properties") {
        let of_property = of_narrowed.child("properties").key(name);
        let own = json::some(json::get(schema, "properties"), name);
        let path = path.child("properties").key(name);
        complete(errors, property, own, &path, &of_property);
    }
}
