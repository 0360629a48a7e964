//! The ready pods that a Service selects, as its Endpoints would list them: for a Service whose
//! Endpoints nobody wrote yet.

use super::{Lookup, Named, Target, allowed, from_anywhere, none, pod_ip, port_number};
use coracle_api::json;
use coracle_api::object::Object;
use coracle_api::status::Status;
use serde_json::Value;
use std::net::IpAddr;

/// `None` for a Service that is not there or selects nothing by itself. `port` is the name of the
/// Service's port.
pub fn find(lookup: &Lookup<'_>, named: Named<'_>, port: &str) -> Option<Result<Target, Status>> {
    let namespace = lookup.info.namespace.as_str();
    let service = lookup.view.get("", "services", namespace, named.name)?;
    let selector = service.string_map(&["spec", "selector"]);
    let selector: Vec<(String, String)> = selector
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    if selector.is_empty() || service.str(&["spec", "type"]) == "ExternalName" {
        return None;
    }
    let ports = service.list(&["spec", "ports"]).iter();
    let mut fitting = ports.filter(|one| json::text(one, "name") == port);
    let wanted = fitting.next().cloned().unwrap_or(Value::Null);
    let pods = lookup.view.list("", "pods", Some(namespace));
    let ready: Vec<(Object, IpAddr, u16)> = pods
        .into_iter()
        .filter(|pod| {
            selector
                .iter()
                .all(|(key, value)| pod.label(key) == Some(value.as_str()))
        })
        .filter(is_ready)
        .filter_map(|pod| {
            let number = target_port(&pod, &wanted)?;
            let address = allowed(pod_ip(&pod)).ok()?;
            Some((pod, address, number))
        })
        .collect();
    let is_https = named.scheme == "https";
    let chosen = from_anywhere(&ready).next();
    Some(match chosen {
        Some((pod, address, number)) => Ok(lookup.at(pod, is_https, (*address, *number).into())),
        None => Err(none(&lookup.info.name)),
    })
}

fn is_ready(pod: &Object) -> bool {
    !pod.is_deleting()
        && pod.list(&["status", "conditions"]).iter().any(|condition| {
            json::text(condition, "type") == "Ready" && json::text(condition, "status") == "True"
        })
}

/// The number in the pod: as the Service says, or the port of this name in a container.
fn target_port(pod: &Object, port: &Value) -> Option<u16> {
    match json::get(port, "targetPort") {
        Value::String(name) => pod
            .list(&["spec", "containers"])
            .iter()
            .flat_map(|container| json::list(container, "ports"))
            .find(|one| json::text(one, "name") == name)
            .and_then(|one| port_number(json::get(one, "containerPort"))),
        Value::Number(_) => port_number(json::get(port, "targetPort")),
        _ => port_number(json::get(port, "port")),
    }
}
