//! Which endpoint of a Service a webhook's connection leads to, by upstream's rules: one that is
//! ready, of the Service's first family where there is one, and otherwise by chance.
//!
//! A pod is dialled by its node. An address that is no pod's is dialled from here, unless it is
//! nobody's in the cluster, as this machine's own.

use super::Service;
use crate::proxy::{self, Place};
use crate::tunnel::Tunnels;
use crate::view::View;
use coracle_api::json;
use coracle_api::object::Object;
use serde_json::Value;
use std::net::SocketAddr;

const SLICES: (&str, &str) = ("discovery.k8s.io", "endpointslices");
const NAME_LABEL: &str = "kubernetes.io/service-name";

/// The error is in upstream's words.
pub fn find(view: &dyn View, tunnels: &Tunnels, asked: &Service) -> Result<Place, String> {
    let (namespace, name) = (asked.namespace.as_str(), asked.name.as_str());
    let service = view
        .get("", "services", namespace, name)
        .ok_or_else(|| format!("service {name:?} not found"))?;
    let kind = service.str(&["spec", "type"]);
    if !matches!(kind, "ClusterIP" | "LoadBalancer" | "NodePort") {
        return Err(format!("unsupported service type {kind:?}"));
    }
    let port = port_name(&service, asked.port)?;
    let (group, plural) = SLICES;
    let mut slices = view.list(group, plural, Some(namespace));
    slices.retain(|slice| slice.label(NAME_LABEL) == Some(name));
    let count = slices.len();
    slices.rotate_left(rand::random_range(0..count.max(1)).min(count));
    let families = service.list(&["spec", "ipFamilies"]);
    let first = families.first().and_then(Value::as_str).unwrap_or("");
    // Stable: within a family chance has decided.
    slices.sort_by_key(|slice| !first.is_empty() && slice.str(&["addressType"]) != first);
    let mut refused = None;
    for (slice, number) in slices
        .iter()
        .filter_map(|slice| Some((slice, number(slice, &port)?)))
    {
        match ready(slice).map(|one| place(view, tunnels, namespace, one, number)) {
            Some(Ok(place)) => return Ok(place),
            Some(Err(why)) => refused = refused.or(Some(why)),
            None => {}
        }
    }
    Err(refused.unwrap_or_else(|| format!("no endpoints available for service {name:?}")))
}

fn port_name(service: &Object, port: u16) -> Result<String, String> {
    let ports = service.list(&["spec", "ports"]).iter();
    let mut fitting = ports.filter(|one| json::int(one, "port") == Some(i64::from(port)));
    let found = fitting.next();
    found
        .map(|one| json::text(one, "name").to_owned())
        .ok_or_else(|| {
            let name = service.name();
            format!("no service port {port} found for service {name:?}")
        })
}

/// The number of a port in a slice.
fn number(slice: &Object, name: &str) -> Option<u16> {
    let ports = slice.list(&["ports"]).iter();
    let mut fitting = ports.filter(|one| json::text(one, "name") == name);
    u16::try_from(json::int(fitting.next()?, "port")?).ok()
}

/// A ready endpoint, from one on that chance picks.
fn ready(slice: &Object) -> Option<&Value> {
    let all = slice.list(&["endpoints"]);
    let start = rand::random_range(0..all.len().max(1)).min(all.len());
    let is_ready = |one: &&Value| json::at(one, &["conditions", "ready"]) != &Value::Bool(false);
    all[start..].iter().chain(&all[..start]).find(is_ready)
}

fn place(
    view: &dyn View,
    tunnels: &Tunnels,
    namespace: &str,
    endpoint: &Value,
    port: u16,
) -> Result<Place, String> {
    let address = json::list(endpoint, "addresses").first();
    let text = address.and_then(Value::as_str).unwrap_or("");
    let allowed = proxy::allowed(text).map_err(|status| status.message)?;
    let address = SocketAddr::new(allowed, port);
    let reference = json::get(endpoint, "targetRef");
    let pod = (json::text(reference, "kind") == "Pod")
        .then(|| view.get("", "pods", namespace, json::text(reference, "name")))
        .flatten()
        .filter(|pod| proxy::owns_address(pod, text));
    Ok(match pod {
        Some(pod) => proxy::place_of(tunnels, pod.str(&["spec", "nodeName"]), address),
        None => Place::Here(address),
    })
}

#[cfg(test)]
mod tests;
