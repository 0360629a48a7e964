//! What an update keeps of a service: allocated values that the client left out stay, and fields
//! that a change of type makes meaningless go.

use super::view::Service;
use crate::json;
use crate::kinds::prepare;
use crate::object::Object;
use crate::resource::Part;
use serde_json::Value;

pub fn prepare_update(new: &mut Object, old: &Object, part: Part<'_>) {
    prepare::status_keeps_spec(new, old, part);
    if part == Part::Status {
        return;
    }
    keep_allocated(new, old);
    link_cluster_ips(new, old);
    drop_by_type(new, old);
}

/// A client of old names one address: it is the first of the list.
pub fn plural_from_singular(service: &mut Object) {
    let one = service.str(&["spec", "clusterIP"]).to_owned();
    if !one.is_empty() && service.list(&["spec", "clusterIPs"]).is_empty() {
        service.set(&["spec", "clusterIPs"], vec![Value::from(one)].into());
    }
}

fn keep_allocated(new: &mut Object, old: &Object) {
    let (seen, before) = (Service::of(new), Service::of(old));
    let addresses = seen.needs_cluster_ip() && before.needs_cluster_ip();
    let node_ports = seen.needs_node_ports() && before.needs_node_ports();
    let health_check = seen.needs_health_check() && before.needs_health_check();
    if addresses {
        if new.str(&["spec", "clusterIP"]).is_empty() {
            prepare::keep(new, old, &["spec", "clusterIP"]);
        }
        if new.list(&["spec", "clusterIPs"]).is_empty() {
            prepare::keep(new, old, &["spec", "clusterIPs"]);
        }
    }
    if node_ports {
        keep_node_ports(new, old);
    }
    if health_check && new.i64(&["spec", "healthCheckNodePort"]).unwrap_or(0) == 0 {
        prepare::keep(new, old, &["spec", "healthCheckNodePort"]);
    }
}

fn node_port(port: &Value) -> i64 {
    json::int(port, "nodePort").unwrap_or(0)
}

/// Ports are told apart by name. A node port that the update uses elsewhere is not taken back.
fn keep_node_ports(new: &mut Object, old: &Object) {
    let asked: Vec<i64> = new.list(&["spec", "ports"]).iter().map(node_port).collect();
    let before = old.list(&["spec", "ports"]);
    let ports = new
        .get_mut(&["spec", "ports"])
        .and_then(Value::as_array_mut);
    for port in ports
        .into_iter()
        .flatten()
        .filter(|port| node_port(port) == 0)
    {
        let name = json::text(port, "name");
        let kept = before
            .iter()
            .find(|old| json::text(old, "name") == name)
            .map(node_port);
        if let Some(kept) = kept.filter(|kept| *kept != 0 && !asked.contains(kept)) {
            port["nodePort"] = kept.into();
        }
    }
}

/// `clusterIP` and `clusterIPs` say the same: a client that knows only the first is followed.
fn link_cluster_ips(new: &mut Object, old: &Object) {
    let before = old.list(&["spec", "clusterIPs"]);
    let one = new.str(&["spec", "clusterIP"]).to_owned();
    let old_one = old.str(&["spec", "clusterIP"]);
    if new.list(&["spec", "clusterIPs"]).is_empty() && one == old_one {
        prepare::keep(new, old, &["spec", "clusterIPs"]);
    }
    if one != old_one && new.list(&["spec", "clusterIPs"]) == before {
        if one.is_empty() {
            new.remove(&["spec", "clusterIPs"]);
        } else {
            new.set(&["spec", "clusterIPs"], vec![Value::from(one)].into());
        }
    }
}

/// A field goes only when it was there before and the client did not change it: what the client
/// did ask for is left to validation.
fn drop_by_type(new: &mut Object, old: &Object) {
    let (seen, before) = (Service::of(new), Service::of(old));
    let same = |name: &str| json::get(seen.spec, name) == json::get(before.spec, name);
    let mut gone: Vec<&str> = Vec::new();
    if before.needs_cluster_ip() && !seen.needs_cluster_ip() {
        if same("clusterIPs") && same("clusterIP") {
            gone.extend(["clusterIP", "clusterIPs"]);
        }
        let others = ["ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"];
        gone.extend(others.into_iter().filter(|name| same(name)));
    }
    let mut drop_if = |applied: bool, applies: bool, name: &'static str| {
        if applied && !applies && same(name) {
            gone.push(name);
        }
    };
    let balanced = [&before, &seen].map(|service| service.kind() == "LoadBalancer");
    let checked = [&before, &seen].map(Service::needs_health_check);
    let external = [&before, &seen].map(Service::is_externally_accessible);
    drop_if(checked[0], checked[1], "healthCheckNodePort");
    drop_if(balanced[0], balanced[1], "allocateLoadBalancerNodePorts");
    drop_if(balanced[0], balanced[1], "loadBalancerClass");
    drop_if(external[0], external[1], "externalTrafficPolicy");
    let ports =
        |service: &Service<'_>| -> Vec<i64> { service.ports().iter().map(node_port).collect() };
    let drop_node_ports =
        before.needs_node_ports() && !seen.needs_node_ports() && ports(&seen) == ports(&before);
    let drop_balancer = !balanced[1];

    for name in gone {
        new.remove(&["spec", name]);
    }
    if drop_node_ports {
        let ports = new
            .get_mut(&["spec", "ports"])
            .and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten() {
            port.as_object_mut().map(|map| map.remove("nodePort"));
        }
    }
    if drop_balancer {
        new.set(&["status", "loadBalancer"], serde_json::json!({}));
    }
}
