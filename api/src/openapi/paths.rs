//! The paths of a document, with their operations, one path at a time.
//!
//! A parameter that all operations of a path have stands beside them. What resources of the
//! catalogue have is in `paths/resource.rs`.

mod resource;

use super::operation::{Answer, OBJECTS, Operation, Style};
use super::parameters::{Parameter, Parameters};
use crate::custom::Kinds;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// Takes each path with what stands under it.
type Put<'p> = &'p mut dyn FnMut(&str, &Value);

/// Writes paths, and gathers the types that they name.
pub(super) struct Paths<'t, 'p> {
    kinds: &'t Kinds,
    style: Style,
    parameters: &'t Parameters<'t>,
    put: Put<'p>,
    pub used: BTreeSet<String>,
}

/// What one document is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topic {
    /// `/api/`.
    Core,
    /// `/apis/`.
    Groups,
    /// `/version/`.
    Version,
    /// Discovery of the issuer of tokens.
    Issuer,
    /// The keys of the issuer of tokens.
    Keys,
    /// `/apis/GROUP/`.
    Group(&'static str),
    /// A group version.
    Resources(&'static str, &'static str),
}

impl Topic {
    /// All that are served, each with its address below `/openapi/v3/`.
    pub fn all(kinds: &Kinds) -> Vec<(String, Self)> {
        let mut all: Vec<(String, Self)> = vec![
            (".well-known/openid-configuration".into(), Self::Issuer),
            ("api".into(), Self::Core),
            ("apis".into(), Self::Groups),
            ("openid/v1/jwks".into(), Self::Keys),
            ("version".into(), Self::Version),
        ];
        for group in kinds.groups() {
            if !group.name.is_empty() {
                all.push((format!("apis/{}", group.name), Self::Group(group.name)));
            }
            for version in group.versions {
                if kinds.of_version(group.name, version).next().is_some() {
                    let root = root(group.name, version);
                    let topic = Self::Resources(group.name, version);
                    all.push((root.trim_start_matches('/').to_owned(), topic));
                }
            }
        }
        all
    }
}

/// `/api/v1` or `/apis/GROUP/VERSION`.
fn root(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("/api/{version}")
    } else {
        format!("/apis/{group}/{version}")
    }
}

impl<'t, 'p> Paths<'t, 'p> {
    pub fn new(
        kinds: &'t Kinds,
        style: Style,
        parameters: &'t Parameters<'t>,
        put: Put<'p>,
    ) -> Self {
        Self {
            kinds,
            style,
            parameters,
            put,
            used: BTreeSet::new(),
        }
    }

    /// All paths of a topic.
    pub fn add(&mut self, topic: Topic) {
        match topic {
            Topic::Core => self.document(
                "/api/",
                ("core", "getCoreAPIVersions"),
                "get available API versions",
                "APIVersions",
            ),
            Topic::Groups => self.document(
                "/apis/",
                ("apis", "getAPIVersions"),
                "get available API versions",
                "APIGroupList",
            ),
            Topic::Group(group) => self.document(
                &format!("/apis/{group}/"),
                (&tag(group), &format!("get{}APIGroup", title(group))),
                "get information of a group",
                "APIGroup",
            ),
            Topic::Resources(group, version) => {
                let names = (title(group), capital(version));
                self.document(
                    &format!("{}/", root(group, version)),
                    (
                        &version_tag(group, version),
                        &format!("get{}{}APIResources", names.0, names.1),
                    ),
                    "get available resources",
                    "APIResourceList",
                );
                for row in self.kinds.of_version(group, version) {
                    resource::add(self, row);
                }
            }
            Topic::Version => self.version(),
            Topic::Issuer => self.text(
                "/.well-known/openid-configuration/",
                ("WellKnown", "getServiceAccountIssuerOpenIDConfiguration"),
                "get service account issuer OpenID configuration, also known as the 'OIDC \
                 discovery doc'",
                &["application/json"],
            ),
            Topic::Keys => self.text(
                "/openid/v1/jwks/",
                ("openid", "getServiceAccountIssuerOpenIDKeyset"),
                "get service account issuer OpenID JSON Web Key Set (contains public token \
                 verification keys)",
                &["application/jwk-set+json"],
            ),
        }
    }

    /// A path of discovery.
    fn document(&mut self, path: &str, names: (&str, &str), text: &str, answer: &str) {
        let answer = format!("{META}.{answer}");
        let operation = Operation {
            consumes: OBJECTS,
            produces: OBJECTS,
            ..get(names, text, Answer::Schema(&answer))
        };
        self.insert(path, &[operation]);
    }

    fn version(&mut self) {
        let operation = Operation {
            consumes: &["application/json"],
            produces: &["application/json"],
            ..get(
                ("version", "getCodeVersion"),
                "get the version information for this server",
                Answer::Schema("io.k8s.apimachinery.pkg.version.Info"),
            )
        };
        self.insert("/version/", &[operation]);
    }

    fn text(
        &mut self,
        path: &str,
        names: (&str, &str),
        text: &str,
        produces: &'static [&'static str],
    ) {
        let operation = Operation {
            produces,
            ..get(names, text, Answer::Text)
        };
        self.insert(path, &[operation]);
    }

    fn insert(&mut self, path: &str, operations: &[Operation<'_>]) {
        let Some((first, others)) = operations.split_first() else {
            return;
        };
        let is_common = |one: &&Parameter<'_>| {
            let mut others = others.iter();
            others.all(|other| other.parameters.contains(one))
        };
        let common: Vec<Parameter<'_>> =
            first.parameters.iter().filter(is_common).cloned().collect();
        let mut entry = Map::new();
        for operation in operations {
            if let Answer::Schema(name) = operation.answer {
                self.used.insert(name.to_owned());
            }
            self.used.extend(operation.body.map(str::to_owned));
            let written = operation.write(self.style, &common);
            entry.insert(operation.method.to_owned(), written);
        }
        if !common.is_empty() {
            let common = common.iter().map(|one| one.write(self.style));
            entry.insert("parameters".into(), common.collect());
        }
        (self.put)(path, &Value::Object(entry));
    }
}

/// A `get` of what is no resource.
fn get<'a>((tag, id): (&str, &str), description: &str, answer: Answer<'a>) -> Operation<'a> {
    Operation {
        method: "get",
        action: "",
        description: description.to_owned(),
        id: id.to_owned(),
        tag: tag.to_owned(),
        parameters: Vec::new(),
        body: None,
        consumes: &[],
        produces: &[],
        answer,
        codes: &["200"],
        kind: None,
    }
}

/// `RbacAuthorization`, `Core`.
fn title(group: &str) -> String {
    let group = if group.is_empty() { "core" } else { group };
    let words = group.trim_end_matches(".k8s.io").split('.');
    words.map(capital).collect()
}

/// `rbacAuthorization`, `core`.
fn tag(group: &str) -> String {
    let title = title(group);
    let mut chars = title.chars();
    let first = chars.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(chars).collect()
}

/// `apps_v1`.
fn version_tag(group: &str, version: &str) -> String {
    format!("{}_{version}", tag(group))
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect()
    })
}
