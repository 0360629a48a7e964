//! `fieldRef` and `resourceFieldRef`: what a pod is told about itself.

use super::super::state;
use super::Sources;
use crate::families::Families;
use coracle_api::decode::quoted;
use coracle_api::quantity::Quantity;
use k8s_openapi::api::core::v1::{Container, Pod, ResourceFieldSelector};
use std::net::IpAddr;

/// The value of a field of the pod, such as `metadata.labels['app']`.
pub fn of_pod(pod: &Pod, path: &str, sources: &Sources) -> Result<String, String> {
    let meta = &pod.metadata;
    let spec = state::spec(pod);
    let text = |value: Option<&String>| value.cloned().unwrap_or_default();
    let first = |ips: Families<IpAddr>| ips.first().map(|ip| ip.to_string()).unwrap_or_default();
    Ok(match path {
        "metadata.name" => text(meta.name.as_ref()),
        "metadata.namespace" => text(meta.namespace.as_ref()),
        "metadata.uid" => text(meta.uid.as_ref()),
        "metadata.labels" => lines(meta.labels.as_ref()),
        "metadata.annotations" => lines(meta.annotations.as_ref()),
        "spec.nodeName" => text(spec.node_name.as_ref()),
        "spec.serviceAccountName" => text(spec.service_account_name.as_ref()),
        "status.hostIP" => first(sources.host_ips),
        "status.hostIPs" => sources.host_ips.to_string(),
        "status.podIP" => first(sources.pod_ips),
        "status.podIPs" => sources.pod_ips.to_string(),
        _ => {
            let inner = |prefix: &str| path.strip_prefix(prefix)?.strip_suffix("']");
            let map = if let Some(key) = inner("metadata.labels['") {
                Some((meta.labels.as_ref(), key))
            } else {
                inner("metadata.annotations['").map(|key| (meta.annotations.as_ref(), key))
            };
            let (map, key) = map.ok_or_else(|| format!("unsupported fieldPath: {path}"))?;
            text(map.and_then(|map| map.get(key)))
        }
    })
}

fn lines(map: Option<&std::collections::BTreeMap<String, String>>) -> String {
    let lines: Vec<_> = map
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", quoted(value)))
        .collect();
    lines.join("\n")
}

/// A request or limit of a container, divided and rounded up.
pub fn of_resources(
    pod: &Pod,
    container: &Container,
    selector: &ResourceFieldSelector,
    sources: &Sources,
) -> Result<String, String> {
    let spec = state::spec(pod);
    let name = selector
        .container_name
        .as_deref()
        .filter(|name| !name.is_empty());
    let container = match name {
        None => container,
        Some(name) => spec
            .containers
            .iter()
            .chain(state::init_containers(spec))
            .find(|container| container.name == name)
            .ok_or_else(|| format!("container {name} not found"))?,
    };
    let (kind, resource) = selector
        .resource
        .split_once('.')
        .ok_or_else(|| format!("unsupported container resource : {}", selector.resource))?;
    let resources = container.resources.as_ref();
    let list = match kind {
        "limits" => resources.and_then(|resources| resources.limits.as_ref()),
        "requests" => resources.and_then(|resources| resources.requests.as_ref()),
        _ => {
            return Err(format!(
                "unsupported container resource : {}",
                selector.resource
            ));
        }
    };
    let set = list.and_then(|list| Quantity::parse(&list.get(resource)?.0).ok());
    let divisor = selector
        .divisor
        .as_ref()
        .and_then(|divisor| Quantity::parse(&divisor.0).ok());
    let divisor = divisor.filter(|divisor| !divisor.is_zero());
    let (amount, divisor) = if resource == "cpu" {
        let fallback = if kind == "limits" {
            sources.allocatable_cpu_milli
        } else {
            0
        };
        let amount = set.map_or(fallback, |set| set.milli_value());
        (
            amount,
            divisor.map_or(1000, |divisor| divisor.milli_value()),
        )
    } else {
        let is_memory_limit = kind == "limits" && resource == "memory";
        let fallback = if is_memory_limit {
            sources.allocatable_memory_bytes
        } else {
            0
        };
        let amount = set.map_or(fallback, |set| set.value());
        (amount, divisor.map_or(1, |divisor| divisor.value()))
    };
    let divisor = divisor.max(1);
    Ok((amount / divisor + i64::from(amount % divisor > 0)).to_string())
}
