//! What a name of a Service leads to: its addresses, or those of its ready endpoints. Pure.

use super::asked::{ServiceName, dashed, undashed};
use crate::network::view::{Endpoint, Entry, Service};
use std::net::IpAddr;

/// One port of one address.
#[derive(Debug)]
pub struct Target<'a> {
    pub address: IpAddr,
    /// None when there are no ports.
    pub port: Option<u16>,
    /// None for the Service as a whole.
    endpoint: Option<&'a Endpoint>,
}

impl Target<'_> {
    /// The label of an endpoint.
    pub fn host(&self) -> Option<String> {
        self.endpoint.map(|endpoint| host(endpoint, self.address))
    }
}

/// Each port of each address when `each_port`, else each address once. None when no such endpoint
/// or port is there; empty when the Service has no address yet.
pub fn targets<'a>(
    service: &Service,
    entry: &'a Entry,
    asked: &ServiceName<'_>,
    each_port: bool,
) -> Option<Vec<Target<'a>>> {
    if service.is_headless || asked.endpoint.is_some() {
        let targets = of_endpoints(entry, asked, each_port);
        return (!targets.is_empty()).then_some(targets);
    }
    let ports = service.ports.iter();
    let fitting = ports.filter(|port| fits(asked, &port.name, port.protocol.lower()));
    let numbers = fitting.map(|port| Some(port.port));
    let numbers = bounded(numbers, service.ports.is_empty(), asked, each_port);
    if numbers.is_empty() {
        return None;
    }
    let mut targets = Vec::new();
    for port in &numbers {
        targets.extend(service.cluster_ips.iter().map(|address| Target {
            address: *address,
            port: *port,
            endpoint: None,
        }));
    }
    Some(targets)
}

/// Where there are no ports at all, a question that names none is answered all the same.
fn bounded(
    ports: impl Iterator<Item = Option<u16>>,
    has_none: bool,
    asked: &ServiceName<'_>,
    each_port: bool,
) -> Vec<Option<u16>> {
    let any = asked.port.is_empty() && asked.protocol.is_empty();
    let nothing = (has_none && any).then_some(None);
    let ports = ports.chain(nothing);
    ports.take(if each_port { usize::MAX } else { 1 }).collect()
}

fn of_endpoints<'a>(entry: &'a Entry, asked: &ServiceName<'_>, each_port: bool) -> Vec<Target<'a>> {
    let address_asked = asked.endpoint.and_then(undashed);
    let mut targets = Vec::new();
    for slice in &entry.slices {
        let ports = slice.ports.iter();
        let fitting = ports.filter(|port| fits(asked, &port.name, port.protocol.lower()));
        let numbers = fitting.map(|port| port.port);
        let numbers = bounded(numbers, slice.ports.is_empty(), asked, each_port);
        for endpoint in slice.endpoints.iter().filter(|endpoint| endpoint.is_ready) {
            for address in &endpoint.addresses {
                let is_asked = match (asked.endpoint, &endpoint.hostname) {
                    (None, _) => true,
                    (Some(label), Some(hostname)) => label.eq_ignore_ascii_case(hostname),
                    (Some(_), None) => address_asked == Some(*address),
                };
                if is_asked {
                    targets.extend(numbers.iter().map(|port| Target {
                        address: *address,
                        port: *port,
                        endpoint: Some(endpoint),
                    }));
                }
            }
        }
    }
    targets
}

fn fits(asked: &ServiceName<'_>, port: &str, protocol: &str) -> bool {
    (asked.port.is_empty() || asked.port.eq_ignore_ascii_case(port))
        && (asked.protocol.is_empty() || asked.protocol.eq_ignore_ascii_case(protocol))
}

fn host(endpoint: &Endpoint, address: IpAddr) -> String {
    match &endpoint.hostname {
        Some(hostname) => hostname.to_string(),
        None => dashed(address),
    }
}

/// The labels of the ready endpoints that have the address.
pub fn hosts(entry: &Entry, address: IpAddr) -> Vec<String> {
    let with = entry
        .endpoints()
        .filter(|(_, endpoint)| endpoint.is_ready && endpoint.addresses.contains(&address));
    with.map(|(_, endpoint)| host(endpoint, address)).collect()
}
