//! Collects schemars' output for the roots into one table of named types.

use k8s_openapi::schemars::generate::SchemaGenerator;
use k8s_openapi::{ListableResource, Resource, schemars::JsonSchema};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A kind and the name of its schema.
pub struct Kind {
    pub schema: String,
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
}

#[derive(Default)]
pub struct Gather {
    generator: SchemaGenerator,
    lists: Vec<(String, Value)>,
    foreign: Vec<(String, Value)>,
    pub kinds: Vec<Kind>,
}

impl Gather {
    /// A type that is no kind of its own.
    pub fn body<T: JsonSchema>(&mut self) {
        self.generator.subschema_for::<T>();
    }

    pub fn kind<T: JsonSchema + Resource>(&mut self) {
        self.body::<T>();
        self.push_kind(T::schema_name().into_owned(), T::GROUP, T::VERSION, T::KIND);
    }

    /// A kind and its list, which k8s-openapi has as one generic type without a schema.
    pub fn listed<T: JsonSchema + ListableResource>(&mut self) {
        self.kind::<T>();
        let name = T::schema_name();
        let (package, _) = name.rsplit_once('.').expect("schema names are qualified");
        let list = format!("{package}.{}", T::LIST_KIND);
        let meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
        let schema = json!({
            "description": format!("{} is a list of {} objects.", T::LIST_KIND, T::KIND),
            "type": "object",
            "properties": {
                "apiVersion": { "type": "string" },
                "items": {
                    "description": "Items is the list of objects.",
                    "type": "array",
                    "items": { "$ref": format!("#/$defs/{name}") },
                },
                "kind": { "type": "string" },
                "metadata": {
                    "description": "Standard list metadata.",
                    "$ref": format!("#/$defs/{meta}"),
                },
            },
            "required": ["items"],
        });
        self.lists.push((list.clone(), schema));
        self.push_kind(list, T::GROUP, T::VERSION, T::LIST_KIND);
    }

    /// Types that k8s-openapi does not have; those with metadata are kinds.
    pub fn foreign(&mut self, group: &'static str, version: &'static str, text: &'static str) {
        let types: BTreeMap<&'static str, Value> =
            serde_json::from_str(text).expect("the facts are JSON");
        for (name, schema) in types {
            if schema["properties"]["metadata"].is_object() {
                let (_, kind) = name.rsplit_once('.').expect("schema names are qualified");
                self.push_kind(name.to_owned(), group, version, kind);
            }
            self.foreign.push((name.to_owned(), schema));
        }
    }

    fn push_kind(
        &mut self,
        schema: String,
        group: &'static str,
        version: &'static str,
        kind: &'static str,
    ) {
        self.kinds.push(Kind {
            schema,
            group,
            version,
            kind,
        });
    }

    /// All named types, sorted by name.
    pub fn definitions(&mut self) -> Map<String, Value> {
        self.body::<k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta>();
        let mut all = self.generator.take_definitions(false);
        for (name, mut list) in std::mem::take(&mut self.lists) {
            // The same words as in every kind.
            let item = list["properties"]["items"]["items"]["$ref"].as_str();
            let item = item.and_then(|item| all.get(item.trim_start_matches("#/$defs/")));
            for field in ["apiVersion", "kind"] {
                let text = item.map_or(Value::Null, |item| {
                    item["properties"][field]["description"].clone()
                });
                list["properties"][field]["description"] = text;
            }
            all.insert(name, list);
        }
        all.extend(std::mem::take(&mut self.foreign));
        all.sort_keys();
        all
    }
}
