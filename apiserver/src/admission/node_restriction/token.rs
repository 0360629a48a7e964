//! Tokens that a node asks for: for pods that run on it, and for an audience that the pod's
//! volumes name.

use super::Restriction;
use crate::admission::Operation;
use coracle_api::json;
use coracle_api::object::Object;
use coracle_api::status::{Status, Subject};

impl Restriction<'_> {
    pub(super) fn token(&self) -> Result<(), Status> {
        if self.asked.operation != Operation::Create || self.asked.subresource != "token" {
            return Ok(());
        }
        let Some(request) = self.object else {
            return Ok(());
        };
        let text = |field| request.str(&["spec", "boundObjectRef", field]);
        if text("apiVersion") != "v1" || text("kind") != "Pod" || text("name").is_empty() {
            return self.refuse("node requested token not bound to a pod");
        }
        let (name, uid) = (text("name"), text("uid"));
        if uid.is_empty() {
            return self.refuse("node requested token with a pod binding without a uid");
        }
        let Some(pod) = self.view.get("", "pods", self.asked.namespace, name) else {
            return Err(Status::not_found(Subject {
                group: "",
                resource: "pods",
                name,
            }));
        };
        if uid != pod.uid() {
            return self.refuse(format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. \
                 The object might have been deleted and then recreated"
            ));
        }
        if pod.str(&["spec", "nodeName"]) != self.node {
            return self
                .refuse("node requested token bound to a pod scheduled on a different node");
        }
        let audience = match request.list(&["spec", "audiences"]) {
            [] => "",
            [one] => one.as_str().unwrap_or_default(),
            _ => return self.refuse("node may only request 0 or 1 audiences"),
        };
        if refers_to(&pod, audience) {
            return Ok(());
        }
        self.refuse(format!(
            "audience {audience:?} not found in pod spec volume, {} is not authorized to request \
             tokens for this audience",
            self.asked.user.name
        ))
    }
}

fn refers_to(pod: &Object, audience: &str) -> bool {
    pod.list(&["spec", "volumes"]).iter().any(|volume| {
        json::list(json::get(volume, "projected"), "sources")
            .iter()
            .filter_map(|source| json::some(source, "serviceAccountToken"))
            .any(|token| json::text(token, "audience") == audience)
    })
}
