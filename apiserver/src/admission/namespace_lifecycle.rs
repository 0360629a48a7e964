//! Nothing is created in a namespace that is not there or is being deleted; three namespaces are
//! never deleted.

use super::{Attributes, Operation};
use crate::view::View;
use coracle_api::object::Object;
use coracle_api::status::{Status, Subject};
use serde_json::json;

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
    let Some(namespace) = view.get("", "namespaces", "", asked.namespace) else {
        return Err(Status::not_found(Subject {
            group: "",
            resource: "namespaces",
            name: asked.namespace,
        }));
    };
    if asked.operation == Operation::Create && namespace.str(&["status", "phase"]) == "Terminating"
    {
        return Err(terminating(object, asked));
    }
    Ok(())
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
