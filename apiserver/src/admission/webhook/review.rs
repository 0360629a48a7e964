//! The AdmissionReview that a webhook is sent: field by field in upstream's order. Pure.

use super::form::{self, Form, Shown};
use crate::admission::Attributes;
use crate::reviews;
use coracle_api::object::Object;
use serde::Serialize;
use serde_json::{Map, Value};

/// Versions of a review that are known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    V1,
    V1Beta1,
}

impl Version {
    pub fn known(text: &str) -> Option<Self> {
        match text {
            "v1" => Some(Self::V1),
            "v1beta1" => Some(Self::V1Beta1),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V1Beta1 => "v1beta1",
        }
    }

    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "admission.k8s.io/v1",
            Self::V1Beta1 => "admission.k8s.io/v1beta1",
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    kind: &'static str,
    api_version: &'static str,
    request: Request<'a>,
}

#[derive(Serialize)]
struct Kind<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
}

#[derive(Serialize)]
struct Resource<'a> {
    group: &'a str,
    version: &'a str,
    resource: &'a str,
}

/// What expressions see of a request too, without the objects.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Facts<'a> {
    kind: Kind<'a>,
    resource: Resource<'a>,
    #[serde(skip_serializing_if = "str::is_empty")]
    sub_resource: &'a str,
    request_kind: Kind<'a>,
    request_resource: Resource<'a>,
    #[serde(skip_serializing_if = "str::is_empty")]
    request_sub_resource: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    operation: &'static str,
    user_info: Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    uid: &'a str,
    #[serde(flatten)]
    facts: Facts<'a>,
    object: Option<&'a Map<String, Value>>,
    old_object: Option<&'a Map<String, Value>>,
    dry_run: bool,
    options: Value,
}

impl<'a> Facts<'a> {
    fn of(asked: &'a Attributes<'a>, form: &'a Form) -> Self {
        let own = Form::asked(asked);
        Self {
            kind: Kind::of(form),
            resource: Resource::of(form),
            sub_resource: asked.subresource,
            request_kind: Kind {
                group: own.group,
                version: own.version,
                kind: own.kind,
            },
            request_resource: Resource {
                group: own.resource.group,
                version: own.resource.version,
                resource: own.resource.plural,
            },
            request_sub_resource: asked.subresource,
            name: asked.name,
            namespace: asked.settled_namespace(),
            operation: asked.operation.as_str(),
            user_info: reviews::user_info(asked.user),
        }
    }
}

impl<'a> Kind<'a> {
    fn of(form: &'a Form) -> Self {
        Self {
            group: form.group,
            version: form.version,
            kind: form.kind,
        }
    }
}

impl<'a> Resource<'a> {
    fn of(form: &'a Form) -> Self {
        Self {
            group: form.resource.group,
            version: form.resource.version,
            resource: form.resource.plural,
        }
    }
}

/// The body of a call.
pub fn body(version: Version, uid: &str, asked: &Attributes<'_>, shown: &Shown) -> Vec<u8> {
    let review = Review {
        kind: "AdmissionReview",
        api_version: version.api_version(),
        request: Request {
            uid,
            facts: Facts::of(asked, &shown.form),
            object: shown.object.as_ref().map(Object::root),
            old_object: shown.old.as_ref().map(Object::root),
            dry_run: asked.dry_run,
            options: form::operation_options(asked),
        },
    };
    serde_json::to_vec(&review).expect("a review is plain JSON")
}

/// The variable `request` of an expression.
pub fn variable(asked: &Attributes<'_>, form: &Form) -> Value {
    let facts = Facts::of(asked, form);
    let mut value = serde_json::to_value(&facts).expect("the facts are plain JSON");
    value["dryRun"] = asked.dry_run.into();
    value["options"] = form::operation_options(asked);
    // What is empty is there all the same.
    for name in ["subResource", "requestSubResource", "name", "namespace"] {
        if value.get(name).is_none() {
            value[name] = "".into();
        }
    }
    for (name, empty) in [("uid", Value::from("")), ("groups", Value::Array(vec![]))] {
        if value["userInfo"].get(name).is_none() {
            value["userInfo"][name] = empty;
        }
    }
    if value["userInfo"].get("extra").is_none() {
        value["userInfo"]["extra"] = Value::Object(Map::new());
    }
    value
}
