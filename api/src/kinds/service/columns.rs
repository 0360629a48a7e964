//! What `kubectl get services` prints.

use super::view::Service;
use crate::kinds::row::{self, column, wide};
use crate::object::Object;
use crate::resource::Column;
use crate::{json, print, scale};
use serde_json::Value;
use std::collections::BTreeSet;

pub const COLUMNS: &[Column] = &[
    row::NAME,
    column("Type", "string", "How the service is reached."),
    column("Cluster-IP", "string", "Its address in the cluster."),
    column("External-IP", "string", "Its addresses from outside."),
    column(
        "Port(s)",
        "string",
        "Its ports, with the node ports they are open at.",
    ),
    row::AGE,
    wide("Selector", "string", "Which pods it leads to."),
];

const NONE: &str = "<none>";

pub fn cells(object: &Object, now: i64) -> Vec<Value> {
    let service = Service::of(object);
    let address = service
        .cluster_ips()
        .first()
        .and_then(Value::as_str)
        .unwrap_or(NONE);
    let ports: Vec<String> = service.ports().iter().map(port).collect();
    let ports = ports.join(",");
    let selector = scale::selector_text(json::get(service.spec, "selector"));
    vec![
        object.name().into(),
        service.kind().into(),
        address.into(),
        external(&service).into(),
        or_none(ports).into(),
        print::age_of(object, now),
        or_none(selector).into(),
    ]
}

fn or_none(text: String) -> String {
    if text.is_empty() {
        NONE.to_owned()
    } else {
        text
    }
}

fn port(port: &Value) -> String {
    let number = json::int(port, "port").unwrap_or(0);
    let protocol = json::text(port, "protocol");
    match json::int(port, "nodePort") {
        Some(node_port) if node_port > 0 => format!("{number}:{node_port}/{protocol}"),
        _ => format!("{number}/{protocol}"),
    }
}

fn external(service: &Service<'_>) -> String {
    let asked: Vec<&str> = json::list(service.spec, "externalIPs")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    match service.kind() {
        "ClusterIP" | "NodePort" => or_none(asked.join(",")),
        "LoadBalancer" => {
            let balanced: BTreeSet<&str> =
                json::list(json::get(service.status, "loadBalancer"), "ingress")
                    .iter()
                    .map(|ingress| match json::text(ingress, "ip") {
                        "" => json::text(ingress, "hostname"),
                        ip => ip,
                    })
                    .filter(|text| !text.is_empty())
                    .collect();
            let all: Vec<&str> = balanced.into_iter().chain(asked).collect();
            if all.is_empty() {
                "<pending>".to_owned()
            } else {
                all.join(",")
            }
        }
        "ExternalName" => json::text(service.spec, "externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}
