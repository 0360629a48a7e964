//! The paths of a document: one a resource, its name and its subresources, with their operations.

use super::schemas::{known, list_of};
use crate::catalogue;
use crate::resource::{Resource, Subresource, SubresourceKind};
use serde_json::{Map, Value, json};

/// Which OpenAPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    V2,
    V3,
}

const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";

const PATCH_TYPES: &[&str] = &[
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];

/// Query parameters: name, type, what it does.
type Parameter = (&'static str, &'static str, &'static str);

const WRITE: &[Parameter] = &[
    (
        "dryRun",
        "string",
        "All runs every stage of the request but stores nothing.",
    ),
    (
        "fieldManager",
        "string",
        "Name of the actor that makes the changes, for managed fields.",
    ),
    (
        "fieldValidation",
        "string",
        "What happens to unknown and duplicate fields: Ignore, Warn or Strict.",
    ),
];

const FORCE: &[Parameter] = &[(
    "force",
    "boolean",
    "Takes over fields of other managers; for apply patches alone.",
)];

const DELETE: &[Parameter] = &[
    (
        "dryRun",
        "string",
        "All runs every stage of the request but stores nothing.",
    ),
    (
        "gracePeriodSeconds",
        "integer",
        "Seconds before the object is deleted; 0 is at once.",
    ),
    (
        "propagationPolicy",
        "string",
        "Orphan, Background or Foreground: what becomes of dependents.",
    ),
];

const LIST: &[Parameter] = &[
    (
        "allowWatchBookmarks",
        "boolean",
        "Asks for events of type BOOKMARK in a watch.",
    ),
    (
        "continue",
        "string",
        "The token of the answer before, to get the next part of a list.",
    ),
    (
        "fieldSelector",
        "string",
        "Restricts the objects by their fields.",
    ),
    (
        "labelSelector",
        "string",
        "Restricts the objects by their labels.",
    ),
    (
        "limit",
        "integer",
        "How many objects one answer holds at most.",
    ),
    ("resourceVersion", "string", "How old the answer may be."),
    (
        "resourceVersionMatch",
        "string",
        "How resourceVersion is applied to a list.",
    ),
    (
        "sendInitialEvents",
        "boolean",
        "Begins a watch with the objects that exist.",
    ),
    (
        "timeoutSeconds",
        "integer",
        "Ends the call after this time.",
    ),
    ("watch", "boolean", "Answers with a stream of changes."),
];

impl Style {
    pub fn reference(self, type_name: &str) -> Value {
        match self {
            Self::V2 => json!({ "$ref": format!("#/definitions/{type_name}") }),
            Self::V3 => json!({ "$ref": format!("#/components/schemas/{type_name}") }),
        }
    }

    fn parameter(self, name: &str, kind: &str, place: &str, description: &str) -> Value {
        let mut parameter = json!({ "name": name, "in": place, "description": description });
        if place == "path" {
            parameter["required"] = true.into();
        }
        match self {
            Self::V2 => {
                parameter["type"] = kind.into();
                parameter["uniqueItems"] = true.into();
            }
            Self::V3 => parameter["schema"] = json!({ "type": kind, "uniqueItems": true }),
        }
        parameter
    }

    fn queries(self, parameters: &[Parameter]) -> Vec<Value> {
        let all = parameters.iter();
        all.map(|(name, kind, text)| self.parameter(name, kind, "query", text))
            .collect()
    }
}

/// One operation to be written.
struct Operation<'a> {
    /// HTTP method in lower case.
    method: &'static str,
    /// `x-kubernetes-action`.
    action: &'static str,
    description: String,
    id: String,
    parameters: Vec<Value>,
    /// Schema of the request's body, and its content types.
    body: Option<(&'a str, &'a [&'a str])>,
    /// Schema of the answer; none for streams.
    answer: Option<&'a str>,
    /// Status codes of success.
    codes: &'static [&'static str],
    kind: (&'a str, &'a str, &'a str),
}

impl Operation<'_> {
    fn write(mut self, style: Style, tag: &str) -> Value {
        let mut operation = json!({
            "tags": [tag],
            "description": self.description,
            "operationId": self.id,
            "x-kubernetes-action": self.action,
            "x-kubernetes-group-version-kind":
                { "group": self.kind.0, "version": self.kind.1, "kind": self.kind.2 },
        });
        if let Some((schema, types)) = self.body {
            let reference = style.reference(schema);
            if style == Style::V3 {
                let content = types
                    .iter()
                    .map(|one| ((*one).to_owned(), json!({ "schema": reference })));
                operation["requestBody"] = json!({
                    "content": content.collect::<Map<_, _>>(),
                    "required": self.method != "delete",
                });
            } else {
                operation["consumes"] = (*types).into();
                let required = self.method != "delete";
                let body = json!({
                    "name": "body", "in": "body", "required": required, "schema": reference,
                });
                self.parameters.insert(0, body);
            }
        }
        if !self.parameters.is_empty() {
            operation["parameters"] = self.parameters.into();
        }
        if style == Style::V2 {
            operation["produces"] = json!(["application/json"]);
            operation["schemes"] = json!(["https"]);
        }
        let mut responses = Map::new();
        for code in self.codes {
            let description = match *code {
                "201" => "Created",
                "202" => "Accepted",
                _ => "OK",
            };
            let mut response = json!({ "description": description });
            if let Some(schema) = self.answer {
                let reference = style.reference(schema);
                match style {
                    Style::V2 => response["schema"] = reference,
                    Style::V3 => {
                        response["content"] =
                            json!({ "application/json": { "schema": reference } });
                    }
                }
            }
            responses.insert((*code).to_owned(), response);
        }
        responses.insert("401".into(), json!({ "description": "Unauthorized" }));
        operation["responses"] = Value::Object(responses);
        operation
    }
}

/// All paths of a group version.
pub(super) fn of_version(group: &str, version: &str, style: Style) -> Map<String, Value> {
    let mut paths = Map::new();
    for row in catalogue::of_version(group, version) {
        Row { row, style }.add(&mut paths);
    }
    paths
}

/// Writes the paths of one resource.
struct Row<'a> {
    row: &'a Resource,
    style: Style,
}

impl Row<'_> {
    fn add(&self, paths: &mut Map<String, Value>) {
        let row = self.row;
        let root = if row.group.is_empty() {
            format!("/api/{}", row.version)
        } else {
            format!("/apis/{}/{}", row.group, row.version)
        };
        let collection = if row.is_namespaced() {
            format!("{root}/namespaces/{{namespace}}/{}", row.plural)
        } else {
            format!("{root}/{}", row.plural)
        };
        let (plain, named) = (self.path_parameters(false), self.path_parameters(true));
        let operations = self.collection_operations();
        self.insert(paths, collection.clone(), operations, plain);
        if row.is_namespaced() && row.verbs.contains(&"list") {
            let mut list = self.list(row.verbs);
            list.id = self.id("list", "", false) + "ForAllNamespaces";
            let pretty = self.path_parameters_of(&[]);
            self.insert(paths, format!("{root}/{}", row.plural), vec![list], pretty);
        }
        let item = format!("{collection}/{{name}}");
        self.insert(
            paths,
            item.clone(),
            self.item_operations(row.verbs, None),
            named.clone(),
        );
        for sub in row.subresources {
            let operations = self.item_operations(sub.verbs, Some(sub));
            self.insert(
                paths,
                format!("{item}/{}", sub.name),
                operations,
                named.clone(),
            );
        }
    }

    fn insert(
        &self,
        paths: &mut Map<String, Value>,
        path: String,
        operations: Vec<Operation<'_>>,
        parameters: Vec<Value>,
    ) {
        if operations.is_empty() {
            return;
        }
        let tag = tag(self.row);
        let mut entry = Map::new();
        for operation in operations {
            let method = operation.method.to_owned();
            entry.insert(method, operation.write(self.style, &tag));
        }
        entry.insert("parameters".into(), parameters.into());
        paths.insert(path, Value::Object(entry));
    }

    fn path_parameters(&self, named: bool) -> Vec<Value> {
        let name = named.then(|| ("name", format!("name of the {}", self.row.kind)));
        let namespace = self
            .row
            .is_namespaced()
            .then(|| ("namespace", "namespace of the object".to_owned()));
        let all: Vec<(&str, String)> = name.into_iter().chain(namespace).collect();
        self.path_parameters_of(&all)
    }

    fn path_parameters_of(&self, names: &[(&str, String)]) -> Vec<Value> {
        let path =
            |(name, text): &(&str, String)| self.style.parameter(name, "string", "path", text);
        let mut all: Vec<Value> = names.iter().map(path).collect();
        let text = "If 'true', the answer is indented.";
        all.push(self.style.parameter("pretty", "string", "query", text));
        all
    }

    fn own_kind(&self) -> (&str, &str, &str) {
        (self.row.group, self.row.version, self.row.kind)
    }

    fn id(&self, verb: &str, sub: &str, namespaced: bool) -> String {
        let row = self.row;
        let group = if row.group.is_empty() {
            "core"
        } else {
            row.group
        };
        let group: String = group
            .trim_end_matches(".k8s.io")
            .split('.')
            .map(capital)
            .collect();
        let scope = if namespaced { "Namespaced" } else { "" };
        format!(
            "{verb}{group}{}{scope}{}{}",
            capital(row.version),
            row.kind,
            capital(sub)
        )
    }

    fn list(&self, _verbs: &[&str]) -> Operation<'_> {
        Operation {
            method: "get",
            action: "list",
            description: format!("list or watch objects of kind {}", self.row.kind),
            id: self.id("list", "", self.row.is_namespaced()),
            parameters: self.style.queries(LIST),
            body: None,
            answer: list_of(self.row).map(|list| list.schema),
            codes: &["200"],
            kind: self.own_kind(),
        }
    }

    fn collection_operations(&self) -> Vec<Operation<'_>> {
        let row = self.row;
        let mut operations = Vec::new();
        if row.verbs.contains(&"list") {
            operations.push(self.list(row.verbs));
        }
        if row.verbs.contains(&"create") {
            operations.push(Operation {
                method: "post",
                action: "post",
                description: format!("create a {}", row.kind),
                id: self.id("create", "", row.is_namespaced()),
                parameters: self.style.queries(WRITE),
                body: Some((row.schema, &["*/*"])),
                answer: Some(row.schema),
                codes: &["200", "201", "202"],
                kind: self.own_kind(),
            });
        }
        if row.verbs.contains(&"deletecollection") {
            let mut parameters = self.style.queries(DELETE);
            // Of a list, what chooses objects.
            let choosing = LIST.iter().filter(|one| {
                matches!(
                    one.0,
                    "fieldSelector" | "labelSelector" | "limit" | "continue"
                )
            });
            parameters.extend(self.style.queries(&choosing.copied().collect::<Vec<_>>()));
            operations.push(Operation {
                method: "delete",
                action: "deletecollection",
                description: format!("delete collection of {}", row.kind),
                id: self.id("deleteCollection", "", row.is_namespaced()),
                parameters,
                body: Some((DELETE_OPTIONS, &["*/*"])),
                answer: Some(STATUS),
                codes: &["200"],
                kind: self.own_kind(),
            });
        }
        operations
    }

    /// Operations on one object or on a subresource of it.
    fn item_operations<'r>(
        &'r self,
        verbs: &[&str],
        sub: Option<&'r Subresource>,
    ) -> Vec<Operation<'r>> {
        let row = self.row;
        let kind = sub.and_then(|sub| sub.body).unwrap_or(self.own_kind());
        let connect = sub.is_some_and(|sub| sub.kind == SubresourceKind::Connect);
        let schema = if kind == self.own_kind() {
            Some(row.schema)
        } else {
            known(kind.0, kind.1, kind.2).map(|known| known.schema)
        };
        let schema = schema.filter(|_| !connect);
        let sub_name = sub.map_or("", |sub| sub.name);
        let operation = |verb: &str| -> Option<Operation<'r>> {
            let body = schema.map(|schema| (schema, &["*/*"] as &[&str]));
            let (method, action, word, body, parameters, codes): (_, _, _, _, Vec<Value>, _) =
                match verb {
                    "get" => ("get", "get", "read", None, Vec::new(), &["200"] as &[&str]),
                    "update" => (
                        "put",
                        "put",
                        "replace",
                        body,
                        self.style.queries(WRITE),
                        &["200", "201"],
                    ),
                    "patch" => {
                        let mut queries = self.style.queries(WRITE);
                        queries.extend(self.style.queries(FORCE));
                        let body = Some((PATCH, PATCH_TYPES));
                        ("patch", "patch", "patch", body, queries, &["200", "201"])
                    }
                    "delete" => {
                        let body = Some((DELETE_OPTIONS, &["*/*"] as &[&str]));
                        let queries = self.style.queries(DELETE);
                        ("delete", "delete", "delete", body, queries, &["200", "202"])
                    }
                    "create" if sub.is_some() => {
                        let queries = self.style.queries(WRITE);
                        (
                            "post",
                            "post",
                            "create",
                            body,
                            queries,
                            &["200", "201", "202"],
                        )
                    }
                    _ => return None,
                };
            let answer = if verb == "delete" && !connect {
                Some(STATUS)
            } else {
                schema
            };
            Some(Operation {
                method,
                action: if connect { "connect" } else { action },
                description: describe(word, row.kind, sub_name),
                id: self.id(
                    if connect { "connect" } else { word },
                    sub_name,
                    row.is_namespaced(),
                ) + if connect { method } else { "" },
                parameters: if connect { Vec::new() } else { parameters },
                body: body.filter(|_| !connect),
                answer,
                codes: if connect { &["200"] } else { codes },
                kind,
            })
        };
        verbs.iter().filter_map(|verb| operation(verb)).collect()
    }
}

fn describe(word: &str, kind: &str, sub: &str) -> String {
    if sub.is_empty() {
        format!("{word} the specified {kind}")
    } else {
        format!("{word} {sub} of the specified {kind}")
    }
}

/// `apps_v1`, `core_v1`.
fn tag(row: &Resource) -> String {
    let group = if row.group.is_empty() {
        "core"
    } else {
        row.group
    };
    format!(
        "{}_{}",
        group.trim_end_matches(".k8s.io").replace('.', ""),
        row.version
    )
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect()
    })
}
