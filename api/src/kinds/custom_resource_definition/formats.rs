//! Formats of strings and numbers in a schema: those nobody knows are warned of.

use super::schema;
use crate::json;
use crate::object::Object;
use crate::structural::is_known_format;
use serde_json::Value;
use std::cell::RefCell;

pub fn warnings(object: &Object) -> Vec<String> {
    let warnings = RefCell::new(Vec::new());
    for version in object.list(&["spec", "versions"]) {
        let root = json::at(version, &["schema", "openAPIV3Schema"]);
        schema::any(root, &|one| {
            let format = json::text(one, "format");
            if !format.is_empty() && !is_known(one, format) {
                let warning = format!("unrecognized format {format:?}");
                warnings.borrow_mut().push(warning);
            }
            false
        });
    }
    warnings.into_inner()
}

fn is_known(schema: &Value, format: &str) -> bool {
    match json::text(schema, "type") {
        "" | "string" => is_known_format(format),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    }
}
