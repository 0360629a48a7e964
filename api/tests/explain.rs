//! What OpenAPI says of each kind is what `kubectl explain --recursive` prints: the tree of its
//! fields, with types, what is required, allowed values and descriptions. One line a kind in
//! `explain.txt` holds the hash of that tree, made from the documents of a kube-apiserver v1.36.

use coracle_api::catalogue;
use coracle_api::custom::Kinds;
use coracle_api::openapi::{Form, v3_group};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

/// One document, and the tree of one of its types.
struct Explain<'d> {
    schemas: &'d Value,
    text: String,
    /// The types that the walk is in: a type within itself is not followed.
    open: Vec<&'d str>,
}

impl<'d> Explain<'d> {
    /// A line a field, and its fields below it.
    fn fields(&mut self, name: &'d str, indent: usize) {
        if self.open.contains(&name) {
            return;
        }
        self.open.push(name);
        let schema = &self.schemas[name];
        let required: Vec<&str> = texts(&schema["required"]).collect();
        for (field, value) in schema["properties"].as_object().into_iter().flatten() {
            let (kind, inner) = shape(value);
            let mark = if required.contains(&field.as_str()) {
                " -required-"
            } else {
                ""
            };
            let text = value["description"].as_str().unwrap_or("");
            let values = texts(&value["enum"]).collect::<Vec<_>>().join(",");
            writeln!(
                self.text,
                "{:indent$}{field}\t<{kind}>{mark} [{values}] {text}",
                ""
            )
            .expect("a String takes all");
            if let Some(inner) = inner {
                self.fields(inner, indent + 2);
            }
        }
        self.open.pop();
    }
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// How explain names a type, and the type whose fields it shows.
fn shape(schema: &Value) -> (String, Option<&str>) {
    let reference = schema["$ref"]
        .as_str()
        .or(schema["allOf"][0]["$ref"].as_str());
    if let Some(reference) = reference {
        let name = reference.trim_start_matches("#/components/schemas/");
        let last = name.rsplit('.').next().unwrap_or(name);
        return (last.to_owned(), Some(name));
    }
    if schema["items"].is_object() {
        let (kind, inner) = shape(&schema["items"]);
        return (format!("[]{kind}"), inner);
    }
    if schema["additionalProperties"].is_object() {
        let (kind, inner) = shape(&schema["additionalProperties"]);
        return (format!("map[string]{kind}"), inner);
    }
    (schema["type"].as_str().unwrap_or("any").to_owned(), None)
}

/// FNV-1a.
fn hash(text: &str) -> String {
    let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, fold);
    format!("{hash:016x}")
}

#[test]
fn every_kind_is_explained_as_upstream_does() {
    let listed: BTreeMap<&str, &str> = include_str!("explain.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.rsplit_once(' ').unwrap())
        .collect();
    let mut documents: BTreeMap<String, Value> = BTreeMap::new();
    let mut seen = 0;
    for row in catalogue::all() {
        let path = if row.group.is_empty() {
            format!("api/{}", row.version)
        } else {
            format!("apis/{}/{}", row.group, row.version)
        };
        let document = documents.entry(path.clone()).or_insert_with(|| {
            let bytes = v3_group(&Kinds::default(), &path, Form::Json).unwrap();
            serde_json::from_slice(&bytes).unwrap()
        });
        let mut explain = Explain {
            schemas: &document["components"]["schemas"],
            text: String::new(),
            open: Vec::new(),
        };
        explain.fields(row.schema, 0);
        let name = format!("{} {}", row.api_version(), row.kind);
        let wanted = listed.get(name.as_str()).copied();
        let found = hash(&explain.text);
        assert_eq!(wanted, Some(found.as_str()), "{name}:\n{}", explain.text);
        seen += 1;
    }
    assert_eq!(seen, listed.len());
}
