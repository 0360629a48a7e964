//! One operation of a path in either OpenAPI, and the parameters that operations share.

use serde_json::{Map, Value, json};

/// Which OpenAPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    V2,
    V3,
}

pub(super) const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
pub(super) const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
pub(super) const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";

pub(super) const PATCH_TYPES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];

/// Query parameters: name, type, what it does.
pub(super) type Parameter = (&'static str, &'static str, &'static str);

pub(super) const WRITE: &[Parameter] = &[
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

pub(super) const DELETE: &[Parameter] = &[
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

pub(super) const LIST: &[Parameter] = &[
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

    pub fn parameter(self, name: &str, kind: &str, place: &str, description: &str) -> Value {
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

    pub fn queries(self, parameters: &[Parameter]) -> Vec<Value> {
        let all = parameters.iter();
        all.map(|(name, kind, text)| self.parameter(name, kind, "query", text))
            .collect()
    }
}

/// One operation to be written.
pub(super) struct Operation<'a> {
    /// HTTP method in lower case.
    pub method: &'static str,
    /// `x-kubernetes-action`.
    pub action: &'static str,
    pub description: String,
    pub id: String,
    pub parameters: Vec<Value>,
    /// Schema of the request's body, and its content types.
    pub body: Option<(&'a str, &'a [&'a str])>,
    /// Schema of the answer; none for streams.
    pub answer: Option<&'a str>,
    /// Status codes of success.
    pub codes: &'static [&'static str],
    pub kind: (&'a str, &'a str, &'a str),
}

impl Operation<'_> {
    pub fn write(mut self, style: Style, tag: &str) -> Value {
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
