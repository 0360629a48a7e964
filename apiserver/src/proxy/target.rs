//! Which address a name below `pods`, `services` or `nodes` stands for, and who can dial it.
//!
//! Nothing but addresses of pods and nodes is ever dialled: an Endpoints object that names another
//! address is no way out of the cluster.

mod selected; // Pods of a Service that nobody wrote Endpoints for.

use crate::request_info::RequestInfo;
use crate::tunnel::Tunnels;
use crate::view::View;
use coracle_api::json;
use coracle_api::object::Object;
use coracle_api::status::{Status, Subject};
use serde_json::Value;
use std::net::{IpAddr, SocketAddr};

/// What the agent answers itself stands for this port of its node.
pub const KUBELET_PORT: u16 = 10250;
const ADDRESS_TYPES: [&str; 2] = ["InternalIP", "ExternalIP"];

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub is_https: bool,
    /// Host and port as they stand in a URL.
    pub authority: String,
    pub place: Place,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The agent of a node.
    Agent(String),
    /// An address that a node dials.
    Node(String, SocketAddr),
    /// An address that this server dials.
    Here(SocketAddr),
}

/// `scheme:name:port` in its parts; what is left out is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named<'a> {
    pub scheme: &'a str,
    pub name: &'a str,
    pub port: &'a str,
}

impl<'a> Named<'a> {
    /// `name`, `name:port` or `scheme:name:port`.
    pub fn parse(id: &'a str) -> Option<Self> {
        let parts: Vec<&str> = id.split(':').collect();
        let (scheme, name, port) = match parts.as_slice() {
            [name] => ("", *name, ""),
            [name, port] => ("", *name, *port),
            [scheme, name, port] => (*scheme, *name, *port),
            _ => return None,
        };
        let good = !name.is_empty() && matches!(scheme, "" | "http" | "https");
        good.then_some(Self { scheme, name, port })
    }
}

pub fn find(view: &dyn View, tunnels: &Tunnels, info: &RequestInfo) -> Result<Target, Status> {
    let (kind, find): (_, Find) = match info.resource.as_str() {
        "pods" => ("pod", pod),
        "services" => ("service", service),
        _ => ("node", node),
    };
    let named = Named::parse(&info.name)
        .ok_or_else(|| Status::bad_request(format!("invalid {kind} request {:?}", info.name)))?;
    find(
        &Lookup {
            view,
            tunnels,
            info,
        },
        named,
    )
}

type Find = fn(&Lookup<'_>, Named<'_>) -> Result<Target, Status>;

struct Lookup<'a> {
    view: &'a dyn View,
    tunnels: &'a Tunnels,
    info: &'a RequestInfo,
}

impl Lookup<'_> {
    fn get(&self, resource: &str, namespace: &str, name: &str) -> Result<Object, Status> {
        self.view.get("", resource, namespace, name).ok_or_else(|| {
            Status::not_found(Subject {
                group: "",
                resource,
                name,
            })
        })
    }

    /// The pod's node dials where it is connected.
    fn at(&self, pod: &Object, is_https: bool, address: SocketAddr) -> Target {
        let node = pod.str(&["spec", "nodeName"]);
        self.through(node, is_https, address)
    }

    fn through(&self, node: &str, is_https: bool, address: SocketAddr) -> Target {
        Target {
            is_https,
            authority: address.to_string(),
            place: place_of(self.tunnels, node, address),
        }
    }
}

/// The node dials where it is connected, else this server.
pub fn place_of(tunnels: &Tunnels, node: &str, address: SocketAddr) -> Place {
    if tunnels.is_connected(node) {
        Place::Node(node.to_owned(), address)
    } else {
        Place::Here(address)
    }
}

fn pod(lookup: &Lookup<'_>, named: Named<'_>) -> Result<Target, Status> {
    let pod = lookup.get("pods", &lookup.info.namespace, named.name)?;
    let is_https = named.scheme == "https";
    let first = || {
        let containers = pod.list(&["spec", "containers"]).iter();
        let mut ports = containers.filter_map(|one| json::list(one, "ports").first());
        let port = ports.next().map(|one| json::get(one, "containerPort"));
        port.and_then(port_number)
    };
    let port = match named.port {
        "" => first().unwrap_or(if is_https { 443 } else { 80 }),
        text => number(text)?,
    };
    let address = allowed(pod_ip(&pod))?;
    let mut target = lookup.at(&pod, is_https, (address, port).into());
    if named.port.is_empty() && first().is_none() {
        target.authority = host(address);
    }
    Ok(target)
}

fn pod_ip(pod: &Object) -> &str {
    let first = pod.list(&["status", "podIPs"]).first();
    match first.map(|one| json::text(one, "ip")) {
        Some(address) if !address.is_empty() => address,
        _ => pod.str(&["status", "podIP"]),
    }
}

fn service(lookup: &Lookup<'_>, named: Named<'_>) -> Result<Target, Status> {
    let (namespace, name) = (lookup.info.namespace.as_str(), named.name);
    let mut port = named.port.to_owned();
    if let Ok(number) = named.port.parse::<i64>() {
        let service = lookup.get("services", namespace, name)?;
        let ports = service.list(&["spec", "ports"]);
        let found = ports
            .iter()
            .find(|one| json::get(one, "port").as_i64() == Some(number));
        let Some(found) = found else {
            return Err(Status::service_unavailable(format!(
                "no service port {number} found for service {name:?}"
            )));
        };
        port = json::text(found, "name").to_owned();
    }
    let is_https = named.scheme == "https";
    let endpoints = match lookup.get("endpoints", namespace, name) {
        Ok(endpoints) => endpoints,
        Err(status) => return selected::find(lookup, named, &port).ok_or(status)?,
    };
    let subsets = endpoints.list(&["subsets"]);
    if subsets.is_empty() {
        return Err(none(name));
    }
    for subset in from_anywhere(subsets) {
        let ports = json::list(subset, "ports");
        let found = ports.iter().find(|one| json::text(one, "name") == port);
        let Some(number) = found.and_then(|one| port_number(json::get(one, "port"))) else {
            continue;
        };
        for address in from_anywhere(json::list(subset, "addresses")) {
            if let Some((pod, address)) = behind(lookup, address) {
                return Ok(lookup.at(&pod, is_https, (address, number).into()));
            }
        }
    }
    Err(none(&lookup.info.name))
}

fn none(name: &str) -> Status {
    Status::service_unavailable(format!("no endpoints available for service {name:?}"))
}

/// All of them, from one that chance picks: the load is shared.
fn from_anywhere<T>(list: &[T]) -> impl Iterator<Item = &T> {
    let start = match list.len() {
        0 => 0,
        count => rand::random_range(0..count),
    };
    list[start..].iter().chain(&list[..start])
}

/// The pod behind an address of an endpoint, if it is one's own.
fn behind(lookup: &Lookup<'_>, address: &Value) -> Option<(Object, IpAddr)> {
    let reference = json::some(address, "targetRef")?;
    let namespace = json::text(reference, "namespace");
    if namespace != lookup.info.namespace {
        return None;
    }
    let name = json::text(reference, "name");
    let pod = lookup.view.get("", "pods", namespace, name)?;
    let ip = json::text(address, "ip");
    owns_address(&pod, ip).then_some(())?;
    Some((pod, ip.parse().ok()?))
}

/// Whether an address is one of a pod's own.
pub fn owns_address(pod: &Object, address: &str) -> bool {
    let mut own = pod.list(&["status", "podIPs"]).iter();
    own.any(|one| json::text(one, "ip") == address)
}

fn node(lookup: &Lookup<'_>, named: Named<'_>) -> Result<Target, Status> {
    let node = lookup.get("nodes", "", named.name)?;
    let endpoint = ["status", "daemonEndpoints", "kubeletEndpoint", "Port"];
    let kubelet = node
        .get(&endpoint)
        .and_then(port_number)
        .unwrap_or(KUBELET_PORT);
    let port = match named.port {
        "" => kubelet,
        text => number(text)?,
    };
    let addresses = node.list(&["status", "addresses"]);
    let address = ADDRESS_TYPES.iter().find_map(|wanted| {
        let found = addresses
            .iter()
            .find(|one| json::text(one, "type") == *wanted)?;
        Some(json::text(found, "address"))
    });
    if port == kubelet {
        return Ok(Target {
            is_https: true,
            authority: format!("{}:{port}", address.unwrap_or(named.name)),
            place: Place::Agent(named.name.to_owned()),
        });
    }
    let address = allowed(address.unwrap_or_default())?;
    let is_https = named.scheme == "https";
    Ok(lookup.through(named.name, is_https, (address, port).into()))
}

fn port_number(port: &Value) -> Option<u16> {
    u16::try_from(port.as_u64()?).ok().filter(|port| *port > 0)
}

fn number(port: &str) -> Result<u16, Status> {
    port.parse()
        .map_err(|_| super::unreachable(format!("dial tcp: lookup tcp/{port}: unknown port")))
}

fn host(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

/// Loopback, link-local, multicast and unspecified addresses are nobody's in the cluster.
pub fn allowed(address: &str) -> Result<IpAddr, Status> {
    let parsed: Option<IpAddr> = address.parse().ok();
    let good = parsed.filter(|address| {
        let is_local = match address {
            IpAddr::V4(four) => four.is_link_local() || four.is_broadcast(),
            IpAddr::V6(six) => six.is_unicast_link_local(),
        };
        !is_local && !address.is_loopback() && !address.is_multicast() && !address.is_unspecified()
    });
    good.ok_or_else(|| Status::bad_request("address not allowed"))
}
