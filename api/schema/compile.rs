//! Writes the named types as text: one line a type, one line a field, tab-separated.
//!
//! `T name kind atomic union`, then its fields, sorted: `F name shape required list keys strategy
//! merge-key map go-type zero default enumeration`. Shapes: `s` string, `y` bytes, `i` int32,
//! `l` int64, `d` double, `b` boolean, `a` anything, `#N` the type of index N, `[` list of,
//! `{` map to. Descriptions go to a second text, one line for each line of the first.
//! `api/src/schema/parse.rs` reads both.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A type and a field of it; the field is empty when the fact is about the type.
type Place = (String, String);

/// The tables in `facts/`.
pub struct Facts {
    /// `lists.tsv`: list type, map keys, patch strategy, merge key, map type.
    lists: Table,
    /// `go.tsv`: Go type, and `drop` for zero values or `null` for unset ones.
    go: Table,
    /// `values.tsv`: default, enumeration.
    values: Table,
    /// `required.tsv`: yes or no.
    required: Table,
    /// `descriptions.tsv`: what is added (`+`) or said instead (`=`).
    descriptions: Table,
    /// `unions.tsv`: in place of the field the discriminator, then the fields.
    unions: BTreeMap<String, String>,
}

/// One table of facts; all its rows have the same number of columns.
struct Table {
    rows: BTreeMap<Place, Vec<String>>,
    columns: usize,
}

impl Table {
    fn parse(text: &str, columns: usize) -> Self {
        let lines = text
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty());
        let rows = lines.map(|line| {
            let mut cells = line.split('\t').map(str::to_owned);
            let place = (
                cells.next().unwrap_or_default(),
                cells.next().unwrap_or_default(),
            );
            let mut row: Vec<String> = cells.collect();
            row.resize(columns, String::new());
            (place, row)
        });
        Self {
            rows: rows.collect(),
            columns,
        }
    }

    fn get(&self, type_name: &str, field: &str) -> Option<&[String]> {
        self.rows
            .get(&(type_name.to_owned(), field.to_owned()))
            .map(Vec::as_slice)
    }

    /// The row as text, also where there is none.
    fn columns(&self, type_name: &str, field: &str) -> String {
        match self.get(type_name, field) {
            Some(row) => row.join("\t"),
            None => "\t".repeat(self.columns - 1),
        }
    }
}

impl Facts {
    /// From the texts of the tables, by name.
    pub fn parse(text_of: impl Fn(&str) -> &'static str) -> Self {
        let unions = Table::parse(text_of("unions"), 1).rows.into_iter();
        let unions = unions.map(|((name, discriminator), fields)| {
            (name, format!("{discriminator}:{}", fields.join("")))
        });
        Self {
            lists: Table::parse(text_of("lists"), 5),
            go: Table::parse(text_of("go"), 2),
            values: Table::parse(text_of("values"), 2),
            required: Table::parse(text_of("required"), 1),
            descriptions: Table::parse(text_of("descriptions"), 1),
            unions: unions.collect(),
        }
    }

    /// The description of a type or a field on one line.
    fn describe(&self, out: &mut String, place: (&str, &str), schema: &Value) {
        let text = schema["description"].as_str().unwrap_or("");
        let text = text.replace('\\', "\\\\").replace('\n', "\\n");
        let fact = self.descriptions.get(place.0, place.1);
        match fact.and_then(|row| row[0].split_at_checked(1)) {
            Some(("+", more)) => {
                out.push_str(&text);
                out.push_str(more);
            }
            Some((_, whole)) => out.push_str(whole),
            None => out.push_str(&text),
        }
        out.push('\n');
    }
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
        let atomic = facts.lists.get(name, "").map_or("", |row| row[4].as_str());
        let kind = type_kind(name, schema);
        let union = facts.unions.get(name).map_or("", String::as_str);
        writeln!(texts.structure, "T\t{name}\t{kind}\t{atomic}\t{union}")
            .expect("a String takes all");
        facts.describe(&mut texts.descriptions, (name, ""), schema);
        let required: Vec<&str> = schema["required"]
            .as_array()
            .map(|list| list.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let properties = schema["properties"].as_object().into_iter().flatten();
        let properties: BTreeMap<&String, &Value> = properties.collect();
        for (field, schema) in properties {
            // k8s-openapi requires `metadata` because of its Rust type.
            let must = match facts.required.get(name, field) {
                Some(fact) => fact == ["yes"],
                None => required.contains(&field.as_str()) && field != "metadata",
            };
            let line = [
                format!("F\t{field}\t{}", shape(schema, &names)),
                (if must { "!" } else { "" }).to_owned(),
                facts.lists.columns(name, field),
                facts.go.columns(name, field),
                facts.values.columns(name, field),
            ]
            .join("\t");
            texts.structure.push_str(line.trim_end_matches('\t'));
            texts.structure.push('\n');
            facts.describe(&mut texts.descriptions, (name, field), schema);
        }
    }
    texts
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
