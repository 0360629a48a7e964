//! The paths of a document: one a resource, its name and its subresources, with their operations.

use super::operation::{
    DELETE, DELETE_OPTIONS, LIST, Operation, PATCH, PATCH_TYPES, STATUS, Style, WRITE,
};
use super::schemas::{known, list_of};
use crate::catalogue;
use crate::resource::{Resource, Subresource, SubresourceKind};
use serde_json::{Map, Value};

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
            let mut list = self.list();
            list.id = self.id("list", "", "").replace("Namespaced", "") + "ForAllNamespaces";
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

    /// `patchAppsV1NamespacedDeploymentScale`: generators name methods of clients by it. `what` is
    /// `Collection` or the HTTP method of a stream.
    fn id(&self, verb: &str, what: &str, sub: &str) -> String {
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
        let scope = if row.is_namespaced() {
            "Namespaced"
        } else {
            ""
        };
        let (version, what, sub) = (capital(row.version), capital(what), capital(sub));
        format!("{verb}{group}{version}{what}{scope}{}{sub}", row.kind)
    }

    fn list(&self) -> Operation<'_> {
        Operation {
            method: "get",
            action: "list",
            description: format!("list or watch objects of kind {}", self.row.kind),
            id: self.id("list", "", ""),
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
            operations.push(self.list());
        }
        if row.verbs.contains(&"create") {
            operations.push(Operation {
                method: "post",
                action: "post",
                description: format!("create a {}", row.kind),
                id: self.id("create", "", ""),
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
                id: self.id("delete", "Collection", ""),
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
        let stream = sub.is_some_and(|sub| sub.kind == SubresourceKind::Connect);
        // A stream that is only read (`log`) is a plain get whose answer is text.
        let connect = stream && verbs != ["get"];
        let schema = if kind == self.own_kind() {
            Some(row.schema)
        } else {
            known(kind.0, kind.1, kind.2).map(|known| known.schema)
        };
        let schema = schema.filter(|_| !stream);
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
                        let queries = self.style.queries(WRITE);
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
                id: if connect {
                    self.id("connect", method, sub_name)
                } else {
                    self.id(word, "", sub_name)
                },
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
