//! From the text of a file to the objects that it says. Pure.

use super::record::Identity;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Of one file: names of so many fit the ConfigMap that remembers them.
const OBJECTS_MAX: usize = 1_000;

/// Made before all others: what follows is in them, or of a kind that they define.
const FIRST: [&str; 2] = ["Namespace", "CustomResourceDefinition"];

/// One object that a file says.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// Which one of the file it is in, from 1.
    pub document: usize,
    pub api_version: String,
    pub kind: String,
    pub object: Value,
}

impl Wanted {
    /// What is in a namespace and names none is in `default`.
    pub fn identity(&self, is_namespaced: bool) -> Identity {
        let text = |field: &str| self.object["metadata"][field].as_str().unwrap_or("");
        let namespace = match text("namespace") {
            _ if !is_namespaced => "",
            "" => "default",
            namespace => namespace,
        };
        Identity {
            api_version: self.api_version.clone(),
            kind: self.kind.clone(),
            namespace: namespace.to_owned(),
            name: text("name").to_owned(),
        }
    }
}

/// All objects, in the order in which they are made. What is wrong is said with its document.
pub fn read(file: &str, text: &str) -> Result<Vec<Wanted>, String> {
    let mut all = Vec::new();
    let documents = if file.ends_with(".json") {
        of_json(text)?
    } else {
        of_yaml(text)?
    };
    for (place, value) in documents.into_iter().enumerate() {
        let document = place + 1;
        let at = |why: String| format!("document {document}: {why}");
        for object in objects(value).map_err(at)? {
            all.push(wanted(document, object).map_err(at)?);
        }
        if all.len() > OBJECTS_MAX {
            return Err(format!("more than {OBJECTS_MAX} objects"));
        }
    }
    // Stable: others stay in the order of the file.
    all.sort_by_key(|one| {
        let place = FIRST.iter().position(|kind| *kind == one.kind);
        place.unwrap_or(FIRST.len())
    });
    Ok(all)
}

fn of_yaml(text: &str) -> Result<Vec<Value>, String> {
    let mut documents = Vec::new();
    for document in serde_yaml_ng::Deserializer::from_str(text) {
        let value = Value::deserialize(document);
        let place = documents.len() + 1;
        documents.push(value.map_err(|error| format!("document {place}: {error}"))?);
    }
    Ok(documents)
}

fn of_json(text: &str) -> Result<Vec<Value>, String> {
    let mut documents = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        let place = documents.len() + 1;
        documents.push(value.map_err(|error| format!("document {place}: {error}"))?);
    }
    Ok(documents)
}

/// A list's items, or the one object; nothing for an empty document.
fn objects(value: Value) -> Result<Vec<Value>, String> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Object(mut object) if is_list(&object) => match object.remove("items") {
            Some(Value::Array(items)) => Ok(items),
            _ => Ok(Vec::new()),
        },
        Value::Object(object) => Ok(vec![Value::Object(object)]),
        _ => Err("it is no object".to_owned()),
    }
}

fn is_list(object: &Map<String, Value>) -> bool {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or("");
    kind.ends_with("List") && object.get("items").is_some_and(Value::is_array)
}

fn wanted(document: usize, object: Value) -> Result<Wanted, String> {
    let text = |value: &Value, what: &str| match value.as_str() {
        Some(text) if !text.is_empty() => Ok(text.to_owned()),
        _ => Err(format!("it has no {what}")),
    };
    let api_version = text(&object["apiVersion"], "apiVersion")?;
    let kind = text(&object["kind"], "kind")?;
    text(&object["metadata"]["name"], "metadata.name")?;
    Ok(Wanted {
        document,
        api_version,
        kind,
        object,
    })
}

#[cfg(test)]
mod tests;
