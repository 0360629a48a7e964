//! One operation of a path, in either OpenAPI.

use super::parameters::Parameter;
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
pub(super) const WATCH_EVENT: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent";

pub(super) const ANY: &[&str] = &["*/*"];
pub(super) const OBJECTS: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
];
pub(super) const STREAMS: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];
/// What custom resources have a form in.
pub(super) const DOCUMENTS: &[&str] = &["application/json", "application/yaml"];
pub(super) const CUSTOM_PATCH_TYPES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
];
pub(super) const PATCH_TYPES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

/// The bodies that v2 shares, and under what names.
pub(super) const SHARED_BODIES: [(&str, &str, bool); 2] = [
    (DELETE_OPTIONS, "body-2Y1dVQaQ", false),
    (PATCH, "body-78PwaGsr", true),
];

impl Style {
    pub fn reference(self, type_name: &str) -> Value {
        match self {
            Self::V2 => json!({ "$ref": format!("#/definitions/{type_name}") }),
            Self::V3 => json!({ "$ref": format!("#/components/schemas/{type_name}") }),
        }
    }
}

/// What an operation answers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer<'a> {
    Schema(&'a str),
    Text,
}

/// One operation to be written.
#[derive(Debug)]
pub(super) struct Operation<'a> {
    /// HTTP method in lower case.
    pub method: &'static str,
    /// `x-kubernetes-action`; empty for what is no resource.
    pub action: &'static str,
    pub description: String,
    pub id: String,
    pub tag: String,
    pub parameters: Vec<Parameter<'a>>,
    /// Schema of the request's body.
    pub body: Option<&'a str>,
    pub consumes: &'static [&'static str],
    pub produces: &'static [&'static str],
    pub answer: Answer<'a>,
    /// Status codes of success.
    pub codes: &'static [&'static str],
    /// Group, version and kind.
    pub kind: Option<(&'a str, &'a str, &'a str)>,
}

/// The body as v2 has it among the parameters.
pub(super) fn body_parameter(schema: &str, is_required: bool) -> Value {
    let mut body = json!({
        "name": "body", "in": "body", "schema": Style::V2.reference(schema),
    });
    if is_required {
        body["required"] = true.into();
    }
    body
}

impl Operation<'_> {
    /// The operation without those of its parameters that its whole path has.
    pub fn write(&self, style: Style, common: &[Parameter<'_>]) -> Value {
        let mut operation = json!({
            "tags": [self.tag],
            "description": self.description,
            "operationId": self.id,
        });
        if !self.action.is_empty() {
            operation["x-kubernetes-action"] = self.action.into();
        }
        if let Some((group, version, kind)) = self.kind {
            operation["x-kubernetes-group-version-kind"] =
                json!({ "group": group, "version": version, "kind": kind });
        }
        let own = self.parameters.iter().filter(|one| !common.contains(one));
        let mut parameters: Vec<Value> = own.map(|one| one.write(style)).collect();
        if style == Style::V2 {
            if let Some(schema) = self.body {
                let shared = SHARED_BODIES.iter().find(|one| one.0 == schema);
                let body = match shared {
                    Some((_, name, _)) => json!({ "$ref": format!("#/parameters/{name}") }),
                    None => body_parameter(schema, true),
                };
                parameters.insert(0, body);
            }
            if !self.consumes.is_empty() {
                operation["consumes"] = self.consumes.into();
            }
            operation["produces"] = self.produces.into();
            operation["schemes"] = json!(["https"]);
        } else if let Some(schema) = self.body {
            operation["requestBody"] = self.request_body(schema, style);
        }
        if !parameters.is_empty() {
            operation["parameters"] = parameters.into();
        }
        operation["responses"] = self.responses(style);
        operation
    }

    fn request_body(&self, schema: &str, style: Style) -> Value {
        let content = self.consumes.iter().map(|one| {
            let media = json!({ "schema": style.reference(schema) });
            ((*one).to_owned(), media)
        });
        let mut body = json!({ "content": content.collect::<Map<_, _>>() });
        // A deletion may go without.
        if schema != DELETE_OPTIONS {
            body["required"] = true.into();
        }
        body
    }

    fn responses(&self, style: Style) -> Value {
        let schema = match self.answer {
            Answer::Schema(name) => style.reference(name),
            Answer::Text => json!({ "type": "string" }),
        };
        let mut responses = Map::new();
        for code in self.codes {
            let description = match *code {
                "201" => "Created",
                "202" => "Accepted",
                _ => "OK",
            };
            let mut response = json!({ "description": description });
            if style == Style::V2 {
                response["schema"] = schema.clone();
            } else {
                let content = self.produces.iter().map(|one| {
                    let media = json!({ "schema": schema });
                    ((*one).to_owned(), media)
                });
                response["content"] = Value::Object(content.collect());
            }
            responses.insert((*code).to_owned(), response);
        }
        responses.insert("401".into(), json!({ "description": "Unauthorized" }));
        Value::Object(responses)
    }
}
