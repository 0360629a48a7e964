//! Services and endpoints of tests, from a line of text each, and plans as text.

use super::node::Node;
use super::plan::Plan;
use super::steps::{Balance, Element, Frontend, NodePort, Rule, Value, digit};
use crate::network::subnet::Subnet;
use crate::network::view::{
    Endpoint, Entry, Protocol, Service, ServiceKind, ServicePort, Slice, SlicePort,
};
use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::Arc;
use uuid::Uuid;

pub fn node() -> Node {
    Node {
        name: "here".into(),
        zone: Some("east".into()),
        addresses: vec![ip("192.168.1.10")],
        pod_cidrs: vec![cidr("10.42.0.0/24"), cidr("fd42::/64")],
        is_leaving: false,
    }
}

pub fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub fn cidr(text: &str) -> Subnet {
    Subnet::parse(text).unwrap()
}

fn list<T>(text: &str, each: impl Fn(&str) -> T) -> Box<[T]> {
    text.split(',').map(each).collect()
}

pub fn protocol(text: &str) -> Protocol {
    match text {
        "tcp" => Protocol::Tcp,
        "udp" => Protocol::Udp,
        "sctp" => Protocol::Sctp,
        other => panic!("no protocol {other}"),
    }
}

/// `http/tcp/80` or `http/tcp/80/30080`.
fn port(text: &str) -> ServicePort {
    let parts: Vec<_> = text.split('/').collect();
    ServicePort {
        name: parts[0].into(),
        protocol: protocol(parts[1]),
        port: parts[2].parse().unwrap(),
        node_port: parts.get(3).map_or(0, |text| text.parse().unwrap()),
    }
}

/// `ip=10.43.0.1 ports=http/tcp/80 external=1.2.3.4 balancer=5.6.7.8 ranges=10.0.0.0/8
/// external-local internal-local affinity=60 health=30001`.
pub fn service(text: &str) -> Service {
    let mut service = Service {
        uid: Uuid::nil(),
        kind: ServiceKind::ClusterIp,
        cluster_ips: Box::default(),
        is_headless: false,
        ports: Box::default(),
        external_ips: Box::default(),
        load_balancer_ips: Box::default(),
        source_ranges: Box::default(),
        is_external_local: false,
        is_internal_local: false,
        health_check_node_port: 0,
        affinity_seconds: None,
        distribution: crate::network::view::Distribution::Everywhere,
        external_name: None,
        cluster_domain: None,
        is_routed_by_others: false,
    };
    for word in text.split_whitespace() {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        match name {
            "ip" => service.cluster_ips = list(value, ip),
            "ports" => service.ports = list(value, port),
            "external" => service.external_ips = list(value, ip),
            "balancer" => service.load_balancer_ips = list(value, ip),
            "ranges" => service.source_ranges = list(value, cidr),
            "external-local" => service.is_external_local = true,
            "internal-local" => service.is_internal_local = true,
            "affinity" => service.affinity_seconds = Some(value.parse().unwrap()),
            "health" => service.health_check_node_port = value.parse().unwrap(),
            "headless" => service.is_headless = true,
            "by-others" => service.is_routed_by_others = true,
            "name-only" => service.kind = ServiceKind::ExternalName,
            other => panic!("no {other}"),
        }
    }
    service
}

/// `10.42.0.5 here unready not-serving terminating zones=east,west nodes=here`.
fn endpoint(text: &str) -> Endpoint {
    let mut words = text.split_whitespace();
    let mut endpoint = Endpoint {
        addresses: Box::new([ip(words.next().unwrap())]),
        is_ready: true,
        is_serving: true,
        is_terminating: false,
        hostname: None,
        node: None,
        zone: None,
        hint_zones: Box::default(),
        hint_nodes: Box::default(),
    };
    for word in words {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        match name {
            "unready" => endpoint.is_ready = false,
            "not-serving" => endpoint.is_serving = false,
            "terminating" => endpoint.is_terminating = true,
            "zones" => endpoint.hint_zones = list(value, |text| text.into()),
            "nodes" => endpoint.hint_nodes = list(value, |text| text.into()),
            node => endpoint.node = Some(node.into()),
        }
    }
    endpoint
}

/// A slice of one port, `http/tcp/8080`, and its endpoints, a line each.
pub fn slice(port: &str, endpoints: &str) -> Arc<Slice> {
    let parts: Vec<_> = port.split('/').collect();
    let lines = endpoints.lines().map(str::trim);
    let endpoints: Box<[_]> = lines
        .filter(|line| !line.is_empty())
        .map(endpoint)
        .collect();
    let is_v6 = endpoints.iter().any(|of| of.address().is_ipv6());
    Arc::new(Slice {
        name: port.into(),
        is_v6,
        ports: Box::new([SlicePort {
            name: parts[0].into(),
            protocol: protocol(parts[1]),
            port: Some(parts[2].parse().unwrap()),
        }]),
        endpoints,
        is_routed_by_others: false,
    })
}

pub fn entry(text: &str, slices: &[Arc<Slice>]) -> Entry {
    Entry {
        service: Some(Arc::new(service(text))),
        slices: slices.to_vec(),
    }
}

/// Chains with their rules and lists, then elements; a line each.
pub fn show(service: &str, plan: &Plan) -> String {
    let mut text = String::new();
    for port in &*plan.ports {
        for (chain, rules) in port.chains(service) {
            let rules: Vec<_> = rules.iter().map(|rule| show_rule(rule, port)).collect();
            writeln!(text, "{chain}: {}", rules.join("; ")).unwrap();
        }
    }
    for (element, value) in plan.elements() {
        writeln!(text, "{}{}", show_element(element), show_value(value)).unwrap();
    }
    text
}

fn show_rule(rule: &Rule, port: &super::plan::Port) -> String {
    let to = |balance: &Balance| {
        let list = [&port.cluster, &port.local];
        let list = list.iter().find(|list| list.id == balance.list).unwrap();
        assert_eq!(balance.count, list.count());
        let targets = list.targets.iter();
        let targets: Vec<_> = targets
            .map(|target| format!("{}:{}", target.address, target.port))
            .collect();
        targets.join(" ")
    };
    match rule {
        Rule::Balance(balance) => format!("to {}", to(balance)),
        Rule::Keep { balance, sticky } => {
            format!("kept for {}s of {}", sticky.seconds, to(balance))
        }
        Rule::Forget { .. } => "forget".to_owned(),
        Rule::BalanceAndKeep { sticky, .. } => format!("keep for {}s", sticky.seconds),
        Rule::Masquerade => "masquerade".to_owned(),
        Rule::MasqueradeLocal => "masquerade if local".to_owned(),
        Rule::Goto(chain) => format!("goto {chain}"),
        Rule::GotoIfFrom(cidr, chain) => {
            format!("goto {chain} if from {cidr}")
        }
        Rule::GotoIfLocal(chain) => format!("goto {chain} if local"),
        Rule::ReturnIfFrom(cidr) => format!("return if from {cidr}"),
        Rule::Drop => "drop".to_owned(),
    }
}

fn show_element(element: &Element) -> String {
    let frontend = |of: &Frontend| format!("{} {} {}", of.address, of.protocol.lower(), of.port);
    let node_port =
        |of: &NodePort| format!("*{} {} {}", digit(of.family), of.protocol.lower(), of.port);
    match element {
        Element::Frontend(of) => frontend(of),
        Element::Closed(of) => format!("closed {}", frontend(of)),
        Element::Guarded(of) => format!("guarded {}", frontend(of)),
        Element::NodePort(of) => node_port(of),
        Element::ClosedNodePort(of) => format!("closed {}", node_port(of)),
        Element::ClusterIp(address) => format!("cluster ip {address}"),
        Element::Hairpin(address) => format!("hairpin {address}"),
    }
}

fn show_value(value: &Value) -> String {
    match value {
        Value::Goto(chain) => format!(" goto {chain}"),
        Value::Reject => " reject".to_owned(),
        Value::Drop => " drop".to_owned(),
        Value::Nothing => String::new(),
    }
}
