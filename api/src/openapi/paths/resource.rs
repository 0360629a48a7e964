//! The paths of one resource: its collections, its objects, their subresources, and the watches
//! that have a path of their own.

use super::{Paths, capital, root, title, version_tag};
use crate::openapi::custom::list_name;
use crate::openapi::operation::{
    ANY, Answer, CUSTOM_PATCH_TYPES, DELETE_OPTIONS, DOCUMENTS, OBJECTS, Operation, PATCH,
    PATCH_TYPES, STATUS, STREAMS, WATCH_EVENT,
};
use crate::openapi::parameters::{Parameter, Parameters};
use crate::openapi::schemas::{known, list_of};
use crate::resource::{Resource, Subresource, SubresourceKind};

const WRITE: &[&str] = &["dryRun", "fieldManager", "fieldValidation"];
const PATCH_QUERY: &[&str] = &["dryRun", "fieldManager patch", "fieldValidation", "force"];
const DELETE: &[&str] = &[
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
];
const CHOOSE: &[&str] = &[
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "shardSelector",
    "timeoutSeconds",
];
const WATCH: &[&str] = &["allowWatchBookmarks", "watch"];

/// Kinds of which a deletion answers the object, not a Status.
const DELETED_IS_ANSWERED: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "PersistentVolume",
            "PersistentVolumeClaim",
            "Pod",
            "PodTemplate",
            "ResourceQuota",
            "Service",
            "ServiceAccount",
        ],
    ),
    (
        "resource.k8s.io",
        &[
            "DeviceClass",
            "ResourceClaim",
            "ResourceClaimTemplate",
            "ResourceSlice",
        ],
    ),
    (
        "storage.k8s.io",
        &[
            "CSIDriver",
            "CSINode",
            "StorageClass",
            "VolumeAttachment",
            "VolumeAttributesClass",
        ],
    ),
];

/// Adds all paths of a row of the catalogue.
pub(super) fn add(paths: &mut Paths<'_, '_>, row: &Resource) {
    let is_custom = row.rules.custom().is_some();
    let list = match list_of(row) {
        Some(known) => Some(known.schema.to_owned()),
        None => is_custom.then(|| list_name(row)),
    };
    let one = One {
        row,
        known: paths.parameters,
        list: list.as_deref(),
        is_custom,
    };
    let root = root(row.group, row.version);
    let (scope, collection) = if row.is_namespaced() {
        let scope = "/namespaces/{namespace}";
        (scope, format!("{root}{scope}/{}", row.plural))
    } else {
        ("", format!("{root}/{}", row.plural))
    };
    let item = format!("{collection}/{{name}}");
    let everywhere = format!("{root}/{}", row.plural);
    paths.insert(&collection, &one.collection());
    if row.is_namespaced() && row.verbs.contains(&"list") {
        paths.insert(&everywhere, &[one.list_everywhere()]);
    }
    paths.insert(&item, &one.item(row.verbs, None));
    for sub in row.subresources {
        let path = format!("{item}/{}", sub.name);
        paths.insert(&path, &one.item(sub.verbs, Some(sub)));
        if sub.name == "proxy" {
            paths.insert(&format!("{path}/{{path}}"), &one.connect(sub, true));
        }
    }
    if row.verbs.contains(&"watch") && !is_custom {
        let plural = row.plural;
        let watched = format!("{root}/watch{scope}/{plural}");
        if row.is_namespaced() {
            let path = format!("{root}/watch/{plural}");
            paths.insert(&path, &[one.watch("ListForAllNamespaces", &[])]);
        }
        paths.insert(&watched, &[one.watch("List", &["namespace"])]);
        let path = format!("{watched}/{{name}}");
        paths.insert(&path, &[one.watch("", &["name", "namespace"])]);
    }
}

struct One<'a> {
    row: &'a Resource,
    known: &'a Parameters<'a>,
    /// The schema of its lists.
    list: Option<&'a str>,
    is_custom: bool,
}

impl<'a> One<'a> {
    /// Sorted as documents have them. `keys` may hold `name`, and `namespace` for namespaced kinds.
    fn parameters(&self, keys: &[&[&str]]) -> Vec<Parameter<'a>> {
        self.parameters_of(self.row.kind, keys)
    }

    /// [`Self::parameters`] of a subresource, whose body is of another kind.
    fn parameters_of(&self, kind: &str, keys: &[&[&str]]) -> Vec<Parameter<'a>> {
        let keys: Vec<&str> = keys.concat();
        let is_wanted = |key: &&str| *key != "namespace" || self.row.is_namespaced();
        let wanted: Vec<&str> = keys.iter().copied().filter(is_wanted).collect();
        let mut found = self.known.of(&wanted);
        if keys.contains(&"name") {
            found.push(Parameter::name_of(kind));
        }
        sorted(found)
    }

    fn own_kind(&self) -> (&'a str, &'a str, &'a str) {
        (self.row.group, self.row.version, self.row.kind)
    }

    /// `patchAppsV1NamespacedDeploymentScale`: generators name methods of clients by it.
    fn id(&self, verb: &str, what: &str, after: &str) -> String {
        let row = self.row;
        let is_scoped = row.is_namespaced() && !after.ends_with("ForAllNamespaces");
        let scope = if is_scoped { "Namespaced" } else { "" };
        let (group, version) = (title(row.group), capital(row.version));
        format!("{verb}{group}{version}{what}{scope}{}{after}", row.kind)
    }

    /// What all operations of the row have in common.
    fn operation(&self, method: &'static str, action: &'static str) -> Operation<'a> {
        Operation {
            method,
            action,
            description: String::new(),
            id: String::new(),
            tag: version_tag(self.row.group, self.row.version),
            parameters: Vec::new(),
            body: None,
            consumes: if self.is_custom { DOCUMENTS } else { ANY },
            produces: if self.is_custom { DOCUMENTS } else { OBJECTS },
            answer: Answer::Schema(self.row.schema),
            codes: &["200"],
            kind: Some(self.own_kind()),
        }
    }

    fn list(&self) -> Operation<'a> {
        let watched = if self.row.verbs.contains(&"watch") {
            "or watch "
        } else {
            ""
        };
        Operation {
            description: format!("list {watched}objects of kind {}", self.row.kind),
            id: self.id("list", "", ""),
            parameters: self.parameters(&[CHOOSE, WATCH, &["namespace", "pretty"]]),
            produces: if self.is_custom { DOCUMENTS } else { STREAMS },
            answer: self.list.map_or(Answer::Text, Answer::Schema),
            ..self.operation("get", "list")
        }
    }

    fn list_everywhere(&self) -> Operation<'a> {
        Operation {
            id: self.id("list", "", "ForAllNamespaces"),
            parameters: self.parameters(&[CHOOSE, WATCH, &["pretty"]]),
            ..self.list()
        }
    }

    fn watch(&self, after: &str, place: &[&str]) -> Operation<'a> {
        let kind = self.row.kind;
        let (action, description) = if after.is_empty() {
            (
                "watch",
                format!(
                    "watch changes to an object of kind {kind}. deprecated: use the 'watch' \
                     parameter with a list operation instead, filtered to a single item with the \
                     'fieldSelector' parameter."
                ),
            )
        } else {
            (
                "watchlist",
                format!(
                    "watch individual changes to a list of {kind}. deprecated: use the 'watch' \
                     parameter with a list operation instead."
                ),
            )
        };
        Operation {
            description,
            id: self.id("watch", "", after),
            parameters: self.parameters(&[CHOOSE, WATCH, &["pretty"], place]),
            produces: STREAMS,
            answer: Answer::Schema(WATCH_EVENT),
            ..self.operation("get", action)
        }
    }

    fn collection(&self) -> Vec<Operation<'a>> {
        let (row, place) = (self.row, &["namespace", "pretty"][..]);
        let mut operations = Vec::new();
        if row.verbs.contains(&"list") {
            operations.push(self.list());
        }
        if row.verbs.contains(&"create") {
            operations.push(Operation {
                description: format!("create {}", noun(row.kind)),
                id: self.id("create", "", ""),
                parameters: self.parameters(&[WRITE, place]),
                body: Some(row.schema),
                codes: &["200", "201", "202"],
                ..self.operation("post", "post")
            });
        }
        if row.verbs.contains(&"deletecollection") {
            operations.push(Operation {
                description: format!("delete collection of {}", row.kind),
                id: self.id("delete", "Collection", ""),
                parameters: self.parameters(&[DELETE, CHOOSE, place]),
                body: Some(DELETE_OPTIONS),
                answer: Answer::Schema(STATUS),
                ..self.operation("delete", "deletecollection")
            });
        }
        operations
    }

    /// Operations on one object or on a subresource of it.
    fn item(&self, verbs: &[&str], sub: Option<&'a Subresource>) -> Vec<Operation<'a>> {
        if let Some(sub) = sub.filter(|sub| sub.kind == SubresourceKind::Connect) {
            return if sub.name == "log" {
                vec![self.log(sub)]
            } else {
                self.connect(sub, false)
            };
        }
        let verbs = verbs.iter();
        verbs.filter_map(|verb| self.on_object(verb, sub)).collect()
    }

    fn on_object(&self, verb: &str, sub: Option<&'a Subresource>) -> Option<Operation<'a>> {
        let row = self.row;
        let kind = sub.and_then(|sub| sub.body).unwrap_or(self.own_kind());
        let known = known(kind.0, kind.1, kind.2).filter(|_| kind != self.own_kind());
        let schema = known.map_or(row.schema, |known| known.schema);
        let (sub_name, after) =
            sub.map_or(("", String::new()), |sub| (sub.name, capital(sub.name)));
        let place = &["name", "namespace", "pretty"][..];
        let specified = if sub_name.is_empty() {
            format!("the specified {}", row.kind)
        } else {
            format!("{sub_name} of the specified {}", row.kind)
        };
        let operation = |method, action| Operation {
            answer: Answer::Schema(schema),
            kind: Some(kind),
            ..self.operation(method, action)
        };
        Some(match verb {
            "get" => Operation {
                description: format!("read {specified}"),
                id: self.id("read", "", &after),
                parameters: self.parameters_of(kind.2, &[place]),
                ..operation("get", "get")
            },
            "update" => Operation {
                description: format!("replace {specified}"),
                id: self.id("replace", "", &after),
                parameters: self.parameters_of(kind.2, &[WRITE, place]),
                body: Some(schema),
                codes: &["200", "201"],
                ..operation("put", "put")
            },
            "patch" => Operation {
                description: format!("partially update {specified}"),
                id: self.id("patch", "", &after),
                parameters: self.parameters_of(kind.2, &[PATCH_QUERY, place]),
                body: Some(PATCH),
                consumes: if self.is_custom {
                    CUSTOM_PATCH_TYPES
                } else {
                    PATCH_TYPES
                },
                codes: &["200", "201"],
                ..operation("patch", "patch")
            },
            "delete" => Operation {
                description: format!("delete {}", noun(row.kind)),
                id: self.id("delete", "", &after),
                parameters: self.parameters_of(kind.2, &[DELETE, place]),
                body: Some(DELETE_OPTIONS),
                answer: Answer::Schema(self.deleted()),
                codes: &["200", "202"],
                ..operation("delete", "delete")
            },
            "create" if sub.is_some() => Operation {
                description: format!("create {sub_name} of {}", noun(row.kind)),
                id: self.id("create", "", &after),
                parameters: self.parameters_of(kind.2, &[WRITE, place]),
                body: Some(schema),
                codes: &["200", "201", "202"],
                ..operation("post", "post")
            },
            _ => return None,
        })
    }

    fn deleted(&self) -> &'a str {
        let row = self.row;
        let group = DELETED_IS_ANSWERED.iter().find(|one| one.0 == row.group);
        match group {
            Some((_, kinds)) if kinds.contains(&row.kind) => row.schema,
            _ => STATUS,
        }
    }

    fn log(&self, sub: &Subresource) -> Operation<'a> {
        let mut parameters = self.parameters(&[&["name", "namespace", "pretty"]]);
        parameters.extend(self.known.used_in(sub.name));
        Operation {
            description: format!("read {} of the specified {}", sub.name, self.row.kind),
            id: self.id("read", "", &capital(sub.name)),
            parameters: sorted(parameters),
            produces: &[
                "text/plain",
                "application/json",
                "application/yaml",
                "application/vnd.kubernetes.protobuf",
            ],
            answer: Answer::Text,
            ..self.operation("get", "get")
        }
    }

    /// A stream or a proxy: one operation a method.
    fn connect(&self, sub: &'a Subresource, with_path: bool) -> Vec<Operation<'a>> {
        let methods: &[&str] = if sub.name == "proxy" {
            &["delete", "get", "head", "options", "patch", "post", "put"]
        } else {
            &["get", "post"]
        };
        let (used_in, after) = match (sub.name, with_path) {
            ("proxy", true) => (self.row.plural, "ProxyWithPath".to_owned()),
            ("proxy", false) => (self.row.plural, "Proxy".to_owned()),
            (name, _) => (name, capital(name)),
        };
        let operation = |method: &&'static str| {
            let path: &[&str] = if with_path { &["path"] } else { &[] };
            let kind = sub.body.map_or(self.row.kind, |body| body.2);
            let mut parameters = self.parameters_of(kind, &[&["name", "namespace"], path]);
            parameters.extend(self.known.used_in(used_in));
            Operation {
                description: format!(
                    "connect {} requests to {} of {}",
                    method.to_uppercase(),
                    sub.name,
                    self.row.kind
                ),
                id: self.id("connect", &capital(method), &after),
                parameters: sorted(parameters),
                produces: ANY,
                answer: Answer::Text,
                kind: sub.body,
                ..self.operation(method, "connect")
            }
        };
        methods.iter().map(operation).collect()
    }
}

fn sorted(mut parameters: Vec<Parameter<'_>>) -> Vec<Parameter<'_>> {
    parameters.sort_by_key(|one| (one.name, one.place));
    parameters
}

/// A kind with its article.
fn noun(kind: &str) -> String {
    if kind.ends_with('s') && !kind.ends_with("ss") {
        return kind.to_owned(); // A plural.
    }
    let is_vowel = kind.starts_with(['A', 'E', 'I', 'O', 'U']);
    format!("{} {kind}", if is_vowel { "an" } else { "a" })
}
