//! Writes the named types as text: one line a type, one line a field, tab-separated.
//!
//! `T name kind atomic` then its fields, sorted: `F name shape required list keys strategy
//! merge-key map`. Shapes: `s` string, `y` bytes, `i` int32, `l` int64, `d` double, `b` boolean,
//! `a` anything, `#N` the type of index N, `[` list of, `{` map to. Descriptions go to a second
//! text, one line for each line of the first. `api/src/schema/parse.rs` reads both.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A type and a field of it; the field is empty when the fact is about the type.
type Place = (String, String);

/// The tables in `facts/`.
pub struct Facts {
    /// `lists.tsv`: list type, map keys, patch strategy, merge key, map type.
    lists: BTreeMap<Place, Vec<String>>,
    /// `required.tsv`.
    required: BTreeMap<Place, bool>,
}

/// How many facts a row of `lists.tsv` has.
const LIST_FACTS: usize = 5;

impl Facts {
    /// From the text of `lists.tsv` and `required.tsv`.
    pub fn parse(lists: &str, required: &str) -> Self {
        let lists = rows(lists).map(|(place, mut row)| {
            row.resize(LIST_FACTS, String::new());
            (place, row)
        });
        let required = rows(required).map(|(place, row)| (place, row == ["yes"]));
        Self {
            lists: lists.collect(),
            required: required.collect(),
        }
    }
}

fn rows(text: &str) -> impl Iterator<Item = (Place, Vec<String>)> {
    let lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| {
        let mut columns = line.split('\t').map(str::to_owned);
        let place = (
            columns.next().unwrap_or_default(),
            columns.next().unwrap_or_default(),
        );
        (place, columns.collect())
    })
}

pub struct Texts {
    pub structure: String,
    pub descriptions: String,
}

pub fn compile(definitions: &Map<String, Value>, facts: &Facts) -> Texts {
    let names: Vec<&str> = definitions.keys().map(String::as_str).collect();
    let mut texts = Texts {
        structure: String::new(),
        descriptions: String::new(),
    };
    for (name, schema) in definitions {
        let atomic = facts
            .lists
            .get(&(name.clone(), String::new()))
            .map_or("", |row| row[LIST_FACTS - 1].as_str());
        let kind = type_kind(name, schema);
        writeln!(texts.structure, "T\t{name}\t{kind}\t{atomic}").expect("a String takes all");
        describe(&mut texts.descriptions, schema);
        let required: Vec<&str> = schema["required"]
            .as_array()
            .map(|list| list.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let properties = schema["properties"].as_object().into_iter().flatten();
        let properties: BTreeMap<&String, &Value> = properties.collect();
        for (field, schema) in properties {
            let row = facts.lists.get(&(name.clone(), field.clone()));
            let row = row.map(|row| row.join("\t")).unwrap_or_default();
            let shape = shape(schema, &names);
            // k8s-openapi requires `metadata` because of its Rust type.
            let must = match facts.required.get(&(name.clone(), field.clone())) {
                Some(fact) => *fact,
                None => required.contains(&field.as_str()) && field != "metadata",
            };
            let must = if must { "!" } else { "" };
            let line = format!("F\t{field}\t{shape}\t{must}\t{row}");
            texts.structure.push_str(line.trim_end_matches('\t'));
            texts.structure.push('\n');
            describe(&mut texts.descriptions, schema);
        }
    }
    texts
}

fn describe(out: &mut String, schema: &Value) {
    let text = schema["description"].as_str().unwrap_or("");
    out.push_str(&text.replace('\\', "\\\\").replace('\n', "\\n"));
    out.push('\n');
}

/// What a named type is: a struct, or one of the types with a JSON form of their own.
fn type_kind(name: &str, schema: &Value) -> &'static str {
    let last = name.rsplit('.').next().unwrap_or(name);
    match last {
        "Quantity" => "quantity",
        "IntOrString" => "int-or-string",
        "Time" => "time",
        "MicroTime" => "micro-time",
        "JSON" => "any",
        // Patch and the JSON types of custom resource schemas take any document.
        _ if schema["properties"].is_object() => "struct",
        "FieldsV1" | "RawExtension" => "raw",
        _ if schema["type"] == "object" => "struct",
        _ => "any",
    }
}

fn shape(schema: &Value, names: &[&str]) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.trim_start_matches("#/$defs/");
        let index = names
            .binary_search(&name)
            .unwrap_or_else(|_| panic!("no schema {name}"));
        return format!("#{index}");
    }
    let format = schema["format"].as_str().unwrap_or("");
    match (schema["type"].as_str().unwrap_or(""), format) {
        ("string", "byte") => "y".into(),
        ("string", _) => "s".into(),
        ("integer", "int64") => "l".into(),
        ("integer", _) => "i".into(),
        ("number", _) => "d".into(),
        ("boolean", _) => "b".into(),
        ("array", _) => format!("[{}", shape(&schema["items"], names)),
        ("object", _) if schema["additionalProperties"].is_object() => {
            format!("{{{}", shape(&schema["additionalProperties"], names))
        }
        _ => "a".into(),
    }
}
