//! What expressions of mutating policies make: configurations and patches.

use super::json::Room;
use super::value::Val;
use serde_json::{Map, Value, json};

/// What a configuration is called, and all below it: `Object.spec`.
const ROOT: &str = "Object";
const PATCH: &str = "JSONPatch";
/// So many are told.
const WRONG_NAMES_MAX: usize = 100;

impl Val<'_> {
    /// A configuration, `Object{...}`. The error is in upstream's words.
    pub fn configuration(&self) -> Result<Map<String, Value>, String> {
        match self {
            Val::Made(made) if made.of == ROOT => {
                // First, as names are looked at in all of it, however often it is there.
                match self.to_json(&mut Room::new())? {
                    Value::Object(fields) => {
                        check_names(self, ROOT)?;
                        Ok(fields)
                    }
                    _ => Err("invalid return type".to_owned()),
                }
            }
            other => Err(format!(
                "unsupported return type from ApplyConfiguration expression: {}",
                other.type_name()
            )),
        }
    }

    /// The operations of a patch, `[JSONPatch{...}]`. The error is in upstream's words.
    pub fn operations(&self) -> Result<Vec<Value>, String> {
        let list = self.list();
        let list =
            list.ok_or("type mismatch: JSONPatchType.expression should evaluate to array")?;
        let mut room = Room::new();
        list.iter().map(|one| operation(&one, &mut room)).collect()
    }
}

fn operation(value: &Val<'_>, room: &mut Room) -> Result<Value, String> {
    let made = match value {
        Val::Made(made) if made.of == PATCH => made,
        other => {
            let of = other.type_name();
            return Err(format!(
                "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch, got \
                 element of {of}"
            ));
        }
    };
    let text = |name: &str| made.fields.get(name).and_then(Val::text).unwrap_or("");
    let mut operation = json!({ "op": text("op"), "path": text("path") });
    if !text("from").is_empty() {
        operation["from"] = text("from").into();
    }
    if let Some(value) = made.fields.get("value") {
        // First, as names are looked at in all of it, however often it is there.
        operation["value"] = value.to_json(room).map_err(|why| {
            format!(
                "JSONPath valueExpression evaluated to a type that could not marshal to JSON: {why}"
            )
        })?;
        if let Val::Made(inner) = value {
            // It may begin anywhere below the root.
            check_names(value, inner.of)?;
        }
    }
    Ok(operation)
}

/// Structs must be called by the path of fields that leads to them.
fn check_names(value: &Val<'_>, path: &str) -> Result<(), String> {
    let mut wrong = Vec::new();
    misnamed(value, path, &mut wrong);
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!("type mismatch: {}", wrong.join("\n")))
}

fn misnamed(value: &Val<'_>, path: &str, wrong: &mut Vec<String>) {
    match value {
        Val::Made(made) => {
            if made.of != path && wrong.len() < WRONG_NAMES_MAX {
                let of = made.of;
                wrong.push(format!(
                    "unexpected type name {of:?}, expected {path:?}, which matches field name path \
                     from root Object type"
                ));
            }
            for (name, value) in &made.fields {
                misnamed(value, &format!("{path}.{name}"), wrong);
            }
        }
        Val::List(all) => all.iter().for_each(|one| misnamed(one, path, wrong)),
        Val::Map(all) => all.values().for_each(|one| misnamed(one, path, wrong)),
        _ => {}
    }
}
