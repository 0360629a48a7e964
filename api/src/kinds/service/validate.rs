//! What is wrong with a service, addresses aside.

use super::validate_addresses as addresses;
use super::view::Service;
use crate::field::{ErrorList, FieldError, Path};
use crate::go_value::internal;
use crate::kinds::checks;
use crate::meta_validate::{invalid_each, labels};
use crate::{json, names};
use serde_json::Value;
use std::collections::BTreeSet;

const ONLY_BALANCED: &str = "may only be used when `type` is 'LoadBalancer'";
/// A day: the longest that a client may keep to its pod.
const AFFINITY_SECONDS_MAX: i64 = 86_400;

pub fn service(service: &Service<'_>) -> ErrorList {
    let spec = service.spec;
    let path = Path::root("spec");
    let mut errors = ErrorList::new();
    if service.ports().is_empty() && !service.is_headless() && service.kind() != "ExternalName" {
        errors.push(FieldError::required(&path.child("ports"), ""));
    }
    errors.extend(by_type(service, &path));
    errors.extend(ports(service, &path.child("ports")));
    errors.extend(labels(json::get(spec, "selector"), &path.child("selector")));
    errors.extend(affinity(spec, &path));
    errors.extend(addresses::of(service, &path));
    errors.extend(addresses::external(spec, &path.child("externalIPs")));
    let kinds = &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    checks::required_one_of(&mut errors, service.kind(), kinds, &path.child("type"));
    errors.extend(port_clashes(service, &path.child("ports")));
    errors.extend(balancer(service, &path));
    errors.extend(annotations(service));
    errors.extend(traffic(service, &path));
    errors
}

pub fn update(new: &Service<'_>, old: &Service<'_>) -> ErrorList {
    let path = Path::root("spec");
    let mut errors = addresses::update(new, old, &path);
    if new.kind() == "LoadBalancer" && old.kind() == "LoadBalancer" {
        let class = json::get(new.spec, "loadBalancerClass");
        if class != json::get(old.spec, "loadBalancerClass") {
            let path = path.child("loadBalancerClass");
            errors.push(FieldError::invalid(
                &path,
                class.clone(),
                "may not change once set",
            ));
        }
    }
    let field = "healthCheckNodePort";
    let same = json::int(new.spec, field) == json::int(old.spec, field);
    if new.needs_health_check() && old.needs_health_check() && !same {
        errors.push(FieldError::forbidden(&path.child(field), names::IMMUTABLE));
    }
    errors.extend(service(new));
    errors
}

/// The status of a balancer.
pub fn status(service: &Service<'_>) -> ErrorList {
    let path = Path::root("status").child("loadBalancer").child("ingress");
    let ingress = json::list(json::get(service.status, "loadBalancer"), "ingress");
    if service.kind() != "LoadBalancer" && !ingress.is_empty() {
        let detail = "may only be used when `spec.type` is 'LoadBalancer'";
        return vec![FieldError::forbidden(&path, detail)];
    }
    let mut errors = ErrorList::new();
    for (index, point) in ingress.iter().enumerate() {
        let path = path.index(index);
        let ip = json::text(point, "ip");
        if !ip.is_empty() {
            invalid_each(&mut errors, &path.child("ip"), ip, names::ip(ip));
        }
        let mode_path = path.child("ipMode");
        match (json::some(point, "ipMode").and_then(Value::as_str), ip) {
            (None, "") => {}
            (None, _) => {
                let detail = "must be specified when `ip` is set";
                errors.push(FieldError::required(&mode_path, detail));
            }
            (Some(_), "") => {
                let detail = "may not be specified when `ip` is not set";
                errors.push(FieldError::forbidden(&mode_path, detail));
            }
            (Some(mode), _) => checks::one_of(&mut errors, mode, &["Proxy", "VIP"], &mode_path),
        }
        let hostname = json::text(point, "hostname");
        if !hostname.is_empty() {
            let path = path.child("hostname");
            invalid_each(&mut errors, &path, hostname, names::dns_subdomain(hostname));
            if names::ip(hostname).is_empty() {
                let detail = "must be a DNS name, not an IP address";
                errors.push(FieldError::invalid(&path, hostname, detail));
            }
        }
    }
    errors
}

fn by_type(service: &Service<'_>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    match service.kind() {
        kind @ ("LoadBalancer" | "NodePort") if service.is_headless() => {
            let path = path.child("clusterIPs").index(0);
            let detail = format!("may not be set to 'None' for {kind} services");
            errors.push(FieldError::invalid(&path, "None", detail));
        }
        "ExternalName" => {
            for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                if !json::is_empty(json::get(service.spec, field)) {
                    let detail = "may not be set for ExternalName services";
                    errors.push(FieldError::forbidden(&path.child(field), detail));
                }
            }
            let path = path.child("externalName");
            let name = json::text(service.spec, "externalName");
            match name.strip_suffix('.').unwrap_or(name) {
                "" => errors.push(FieldError::required(&path, "")),
                name => invalid_each(&mut errors, &path, name, names::dns_subdomain(name)),
            }
        }
        _ => {}
    }
    errors
}

fn ports(service: &Service<'_>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    let needs_name = service.ports().len() > 1;
    for (index, port) in service.ports().iter().enumerate() {
        let path = path.index(index);
        let name = json::text(port, "name");
        let name_path = path.child("name");
        if needs_name && name.is_empty() {
            errors.push(FieldError::required(&name_path, ""));
        } else if !name.is_empty() {
            invalid_each(&mut errors, &name_path, name, names::dns_label(name));
            if !seen.insert(name) {
                errors.push(FieldError::duplicate(&name_path, name));
            }
        }
        let number = json::int(port, "port").unwrap_or(0);
        for detail in names::port_number(number) {
            errors.push(FieldError::invalid(&path.child("port"), number, detail));
        }
        let protocol = json::text(port, "protocol");
        let protocols = &["SCTP", "TCP", "UDP"];
        checks::required_one_of(&mut errors, protocol, protocols, &path.child("protocol"));
        let target_path = path.child("targetPort");
        checks::port_number_or_name(&mut errors, json::get(port, "targetPort"), &target_path);
        if let Some(protocol) = json::some(port, "appProtocol").and_then(Value::as_str) {
            let path = path.child("appProtocol");
            invalid_each(
                &mut errors,
                &path,
                protocol,
                names::qualified_name(protocol),
            );
        }
    }
    errors
}

fn port_clashes(service: &Service<'_>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let number = |port: &Value, name: &str| json::int(port, name).unwrap_or(0);
    if service.kind() == "ClusterIP" {
        for (index, port) in service.ports().iter().enumerate() {
            if number(port, "nodePort") != 0 {
                let path = path.index(index).child("nodePort");
                let detail = "may not be used when `type` is 'ClusterIP'";
                errors.push(FieldError::forbidden(&path, detail));
            }
        }
    }
    let mut node_ports = BTreeSet::new();
    for (index, port) in service.ports().iter().enumerate() {
        let node_port = number(port, "nodePort");
        if node_port != 0 && !node_ports.insert((json::text(port, "protocol"), node_port)) {
            let path = path.index(index).child("nodePort");
            errors.push(FieldError::duplicate(&path, node_port));
        }
    }
    let mut all = BTreeSet::new();
    for (index, port) in service.ports().iter().enumerate() {
        let protocol = json::text(port, "protocol");
        if !all.insert((protocol, number(port, "port"))) {
            let key = serde_json::json!({ "protocol": protocol, "port": number(port, "port") });
            let shown = internal("io.k8s.api.core.v1.ServicePort", &key);
            // A port of either kind is a number where nobody gave it.
            let shown = shown.replace("\"TargetPort\":null", "\"TargetPort\":0");
            let error = FieldError::duplicate(&path.index(index), key);
            errors.push(error.shown_as(shown));
        }
    }
    errors
}

fn affinity(spec: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let affinity = json::text(spec, "sessionAffinity");
    let supported = &["ClientIP", "None"];
    checks::required_one_of(
        &mut errors,
        affinity,
        supported,
        &path.child("sessionAffinity"),
    );
    let path = path.child("sessionAffinityConfig");
    let seconds = json::at(
        spec,
        &["sessionAffinityConfig", "clientIP", "timeoutSeconds"],
    );
    match (affinity, seconds.as_i64()) {
        ("None", _) if json::has(spec, "sessionAffinityConfig") => {
            let detail = "must not be set when session affinity is None";
            errors.push(FieldError::forbidden(&path, detail));
        }
        ("ClientIP", Some(seconds)) if !(1..=AFFINITY_SECONDS_MAX).contains(&seconds) => {
            let path = path.child("clientIP").child("timeoutSeconds");
            let detail = format!("must be greater than 0 and less than {AFFINITY_SECONDS_MAX}");
            errors.push(FieldError::invalid(&path, seconds, detail));
        }
        _ => {}
    }
    errors
}

fn balancer(service: &Service<'_>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let balanced = service.kind() == "LoadBalancer";
    let ranges = json::list(service.spec, "loadBalancerSourceRanges");
    let ranges_path = path.child("LoadBalancerSourceRanges");
    if !ranges.is_empty() && !balanced {
        errors.push(FieldError::forbidden(&ranges_path, ONLY_BALANCED));
    }
    for (index, range) in ranges.iter().enumerate() {
        let range = range.as_str().unwrap_or("").trim();
        invalid_each(
            &mut errors,
            &ranges_path.index(index),
            range,
            names::cidr(range),
        );
    }
    let allocates = json::some(service.spec, "allocateLoadBalancerNodePorts");
    if allocates.is_some() && !balanced {
        let path = path.child("allocateLoadBalancerNodePorts");
        errors.push(FieldError::forbidden(&path, ONLY_BALANCED));
    }
    if let Some(class) = json::some(service.spec, "loadBalancerClass") {
        let path = path.child("loadBalancerClass");
        let class = class.as_str().unwrap_or("");
        if balanced {
            invalid_each(&mut errors, &path, class, names::qualified_name(class));
        } else {
            errors.push(FieldError::forbidden(&path, ONLY_BALANCED));
        }
    }
    errors
}

/// Annotations that stand for fields, or for each other.
fn annotations(service: &Service<'_>) -> ErrorList {
    const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
    const MODE: &str = "service.kubernetes.io/topology-mode";
    const RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
    let path = Path::root("metadata").child("annotations");
    let annotation = |name: &str| service.annotations.get(name).and_then(Value::as_str);
    let mut errors = ErrorList::new();
    if let (Some(mode), Some(hints)) = (annotation(MODE), annotation(HINTS))
        && mode != hints
    {
        let detail = format!("must match annotations[{HINTS}] when both are specified");
        errors.push(FieldError::invalid(&path.key(MODE), mode, detail));
    }
    let in_spec = !json::list(service.spec, "loadBalancerSourceRanges").is_empty();
    if let Some(ranges) = annotation(RANGES).filter(|_| !in_spec) {
        let path = path.key(RANGES);
        if service.kind() != "LoadBalancer" {
            errors.push(FieldError::forbidden(&path, ONLY_BALANCED));
        }
        for range in ranges
            .split(',')
            .map(str::trim)
            .filter(|_| !ranges.trim().is_empty())
        {
            invalid_each(&mut errors, &path, range, names::cidr(range));
        }
    }
    errors
}

fn traffic(service: &Service<'_>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let external = json::text(service.spec, "externalTrafficPolicy");
    let external_path = path.child("externalTrafficPolicy");
    if service.is_externally_accessible() {
        checks::required_one_of(&mut errors, external, &["Cluster", "Local"], &external_path);
    } else if !external.is_empty() {
        let detail = "may only be set for externally-accessible services";
        errors.push(FieldError::invalid(&external_path, external, detail));
    }
    // A missing health check port is allocated after this, and never the client's fault.
    let health = json::int(service.spec, "healthCheckNodePort").unwrap_or(0);
    let health_path = path.child("healthCheckNodePort");
    if health != 0 && !service.needs_health_check() {
        let detail =
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        errors.push(FieldError::invalid(&health_path, health, detail));
    } else if health != 0 {
        let details = names::port_number(health);
        errors.extend(
            details
                .into_iter()
                .map(|d| FieldError::invalid(&health_path, health, d)),
        );
    }
    if let Some(policy) = json::some(service.spec, "internalTrafficPolicy") {
        let path = path.child("internalTrafficPolicy");
        checks::one_of(
            &mut errors,
            policy.as_str().unwrap_or(""),
            &["Cluster", "Local"],
            &path,
        );
    }
    if let Some(distribution) = json::some(service.spec, "trafficDistribution") {
        let supported = &["PreferClose", "PreferSameZone", "PreferSameNode"];
        let path = path.child("trafficDistribution");
        checks::one_of(
            &mut errors,
            distribution.as_str().unwrap_or(""),
            supported,
            &path,
        );
    }
    errors
}
