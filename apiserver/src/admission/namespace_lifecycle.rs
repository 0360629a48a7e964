//! Nothing is created in a namespace that is not there or is being deleted; three namespaces are
//! never deleted.

use super::{Attributes, Operation};
use crate::view::View;
use coracle_api::object::Object;
use coracle_api::status::{Status, Subject};
use serde::Deserialize;
use serde_json::json;
use std::borrow::Cow;

const IMMORTAL: &[&str] = &["default", "kube-system", "kube-public"];

pub fn admit(
    view: &dyn View,
    object: Option<&Object>,
    asked: &Attributes<'_>,
) -> Result<(), Status> {
    if asked.is("", "namespaces") {
        let deletes = asked.operation == Operation::Delete;
        if deletes && IMMORTAL.contains(&asked.name) {
            return Err(Status::forbidden(
                Subject {
                    group: "",
                    resource: "namespaces",
                    name: asked.name,
                },
                "this namespace may not be deleted",
            ));
        }
        return Ok(());
    }
    if asked.namespace.is_empty() || asked.operation == Operation::Delete || is_review(asked) {
        return Ok(());
    }
    let Some(is_terminating) = is_terminating(view, asked.namespace) else {
        return Err(Status::not_found(Subject {
            group: "",
            resource: "namespaces",
            name: asked.namespace,
        }));
    };
    if asked.operation == Operation::Create && is_terminating {
        return Err(terminating(object, asked));
    }
    Ok(())
}

/// None where there is no such namespace. Every write asks: nothing but the phase is decoded.
fn is_terminating(view: &dyn View, namespace: &str) -> Option<bool> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Namespace<'a> {
        #[serde(borrow)]
        status: Option<State<'a>>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct State<'a> {
        #[serde(borrow)]
        phase: Option<Cow<'a, str>>,
    }
    let stored = view.stored("", "namespaces", "", namespace)?;
    let found: Namespace<'_> = serde_json::from_slice(&stored).ok()?;
    let phase = found.status.and_then(|state| state.phase);
    Some(phase.as_deref() == Some("Terminating"))
}

/// An answer about the namespace would leak what the asker may not see.
fn is_review(asked: &Attributes<'_>) -> bool {
    asked.is("authorization.k8s.io", "localsubjectaccessreviews")
}

fn terminating(object: Option<&Object>, asked: &Attributes<'_>) -> Status {
    let namespace = asked.namespace;
    let why = format!(
        "unable to create new content in namespace {namespace} because it is being terminated"
    );
    let mut status = asked.forbidden(object, why);
    status.details["causes"] = json!([{
        "reason": "NamespaceTerminating",
        "message": format!("namespace {namespace} is being terminated"),
        "field": "metadata.namespace",
    }]);
    status
}
