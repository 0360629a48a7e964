//! Whether an API service can answer: its condition `Available`, in upstream's words. Pure.

use super::Remote;
use crate::view::View;
use coracle_api::json;
use coracle_api::object::Object;
use serde_json::{Value, json};

const TYPE: &str = "Available";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Available {
    pub is_true: bool,
    pub reason: &'static str,
    pub message: String,
}

impl Available {
    fn no(reason: &'static str, message: String) -> Self {
        Self {
            is_true: false,
            reason,
            message,
        }
    }

    pub fn passed() -> Self {
        Self {
            is_true: true,
            reason: "Passed",
            message: "all checks passed".to_owned(),
        }
    }

    /// It did not tell its resources.
    pub fn undiscovered(why: String) -> Self {
        Self::no("FailedDiscoveryCheck", why)
    }

    /// The object with this condition; `None` where it has it already.
    pub fn put(&self, object: &Object, now: &str) -> Option<Object> {
        let status = if self.is_true { "True" } else { "False" };
        let conditions = object.list(&["status", "conditions"]);
        let known = conditions
            .iter()
            .find(|one| json::text(one, "type") == TYPE);
        let text = |name: &str| known.map_or("", |one| json::text(one, name));
        if (text("status"), text("reason")) == (status, self.reason)
            && text("message") == self.message
        {
            return None;
        }
        let since = match text("lastTransitionTime") {
            at if !at.is_empty() && text("status") == status => at,
            _ => now,
        };
        let condition = json!({
            "type": TYPE, "status": status, "lastTransitionTime": since,
            "reason": self.reason, "message": self.message,
        });
        let mut conditions = conditions.to_vec();
        let place = conditions
            .iter()
            .position(|one| json::text(one, "type") == TYPE);
        match place {
            Some(place) => conditions[place] = condition,
            None => conditions.push(condition),
        }
        let mut object = object.clone();
        object.set(&["status", "conditions"], conditions.into());
        Some(object)
    }
}

pub fn is_available(object: &Object) -> bool {
    object
        .list(&["status", "conditions"])
        .iter()
        .any(|one| json::text(one, "type") == TYPE && json::text(one, "status") == "True")
}

/// What is wrong with the Service, seen from here.
pub fn of_service(view: &dyn View, remote: &Remote) -> Result<(), Available> {
    let (namespace, name) = (
        remote.service.namespace.as_str(),
        remote.service.name.as_str(),
    );
    let about = format!("service/{name} in {namespace:?}");
    let Some(service) = view.get("", "services", namespace, name) else {
        let why = format!("{about} is not present");
        return Err(Available::no("ServiceNotFound", why));
    };
    if service.str(&["spec", "type"]) != "ClusterIP" {
        return Ok(());
    }
    let number = i64::from(remote.service.port);
    let mut ports = service.list(&["spec", "ports"]).iter();
    let Some(port) = ports.find(|one| json::int(one, "port") == Some(number)) else {
        let why = format!("{about} is not listening on port {number}");
        return Err(Available::no("ServicePortError", why));
    };
    let mut slices = view.list("discovery.k8s.io", "endpointslices", Some(namespace));
    slices.retain(|slice| slice.label("kubernetes.io/service-name") == Some(name));
    if slices.is_empty() {
        let why = format!("cannot find endpointslices for {about}");
        return Err(Available::no("EndpointsNotFound", why));
    }
    let port = json::text(port, "name");
    if slices.iter().any(|slice| has_endpoint(slice, port)) {
        return Ok(());
    }
    let why = format!("endpointslices for {about} have no addresses with port name {port:?}");
    Err(Available::no("MissingEndpoints", why))
}

fn has_endpoint(slice: &Object, port: &str) -> bool {
    let mut ports = slice.list(&["ports"]).iter();
    let mut endpoints = slice.list(&["endpoints"]).iter();
    ports.any(|one| json::text(one, "name") == port && json::int(one, "port").is_some())
        && endpoints.any(|one| json::at(one, &["conditions", "ready"]) != &Value::Bool(false))
}
