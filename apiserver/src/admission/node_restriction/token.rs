//! Tokens that a node asks for: for pods that run on it, and for an audience that the pod's
//! volumes name.

use super::Restriction;
use crate::admission::Operation;
use crate::request_info::RequestInfo;
use coracle_api::json;
use coracle_api::object::Object;
use coracle_api::status::{Status, Subject};
use serde_json::Value;

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
        if self.refers_to(&pod, audience) || self.may_request(audience) {
            return Ok(());
        }
        self.refuse(format!(
            "audience {audience:?} not found in pod spec volume, {} is not authorized to request \
             tokens for this audience",
            self.asked.user.name
        ))
    }

    /// Whether a volume of the pod needs a token for the audience: one that is projected, or one
    /// that a volume's driver asks for.
    fn refers_to(&self, pod: &Object, audience: &str) -> bool {
        pod.list(&["spec", "volumes"]).iter().any(|volume| {
            let name = |field, of| json::text(json::get(volume, field), of);
            let driver = if json::has(volume, "csi") {
                name("csi", "driver").to_owned()
            } else if json::has(volume, "ephemeral") {
                let claim = format!("{}-{}", pod.name(), json::text(volume, "name"));
                self.driver_of(pod.namespace(), &claim)
            } else {
                self.driver_of(pod.namespace(), name("persistentVolumeClaim", "claimName"))
            };
            projects(volume, audience) || self.asks_for(&driver, audience)
        })
    }

    /// The driver of the volume behind a claim, empty for none.
    fn driver_of(&self, namespace: &str, claim: &str) -> String {
        let claim = self
            .view
            .get("", "persistentvolumeclaims", namespace, claim);
        let volume = claim.and_then(|claim| {
            let name = claim.str(&["spec", "volumeName"]);
            self.view.get("", "persistentvolumes", "", name)
        });
        volume.map_or_else(String::new, |volume| {
            volume.str(&["spec", "csi", "driver"]).to_owned()
        })
    }

    fn asks_for(&self, driver: &str, audience: &str) -> bool {
        let driver = self.view.get("storage.k8s.io", "csidrivers", "", driver);
        driver.is_some_and(|driver| {
            let mut requests = driver.list(&["spec", "tokenRequests"]).iter();
            requests.any(|request| json::text(request, "audience") == audience)
        })
    }

    /// What no volume asks for, rules may allow: a verb of its own on the audience.
    fn may_request(&self, audience: &str) -> bool {
        let info = RequestInfo {
            verb: "request-serviceaccounts-token-audience".to_owned(),
            version: "v1".to_owned(),
            namespace: self.asked.namespace.to_owned(),
            resource: audience.to_owned(),
            name: self.asked.name.to_owned(),
            is_resource_request: true,
            ..RequestInfo::default()
        };
        self.authorizer
            .authorize(self.asked.user, &info)
            .is_allowed()
    }
}

fn projects(volume: &Value, audience: &str) -> bool {
    json::list(json::get(volume, "projected"), "sources")
        .iter()
        .filter_map(|source| json::some(source, "serviceAccountToken"))
        .any(|token| json::text(token, "audience") == audience)
}
