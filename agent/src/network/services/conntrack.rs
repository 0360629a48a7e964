//! Connections that the kernel keeps in mind: those of a Service over UDP or SCTP that go to an
//! endpoint that is gone are forgotten, or a client that keeps its port would send there for as
//! long as it sends at all. TCP finds out by itself.
//!
//! As upstream does, a connection to an endpoint that still serves is left alone, whatever policy
//! or topology say now, and so is one of a Service without endpoints.

mod socket; // By netlink.

pub use socket::forget;

use super::steps::{Family, Target};
use super::usable;
use crate::network::view::{Entry, Protocol, Service};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// What connections may go to by where they were sent.
#[derive(Debug, Default)]
pub struct Served {
    addresses: BTreeMap<(Protocol, Target), Arc<BTreeSet<Target>>>,
    node_ports: BTreeMap<(Protocol, Family, u16), Arc<BTreeSet<Target>>>,
}

/// A connection that the kernel has in mind.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Flow {
    pub protocol: Protocol,
    /// Where the client sent to.
    pub destination: Target,
    /// Who answers.
    pub answers: Target,
}

/// Whether connections of the Service have to be looked at when its endpoints change.
pub fn concerns(service: &Service) -> bool {
    service
        .ports
        .iter()
        .any(|port| port.protocol != Protocol::Tcp)
}

impl Served {
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty() && self.node_ports.is_empty()
    }

    /// Takes a Service in.
    pub fn add(&mut self, entry: &Entry) {
        let Some(service) = entry
            .service
            .as_deref()
            .filter(|of| super::plan::is_routed(of))
        else {
            return;
        };
        for cluster_ip in &service.cluster_ips {
            let family = Family::of(*cluster_ip);
            for port in &service.ports {
                if port.protocol == Protocol::Tcp {
                    continue;
                }
                let candidates = usable::candidates(entry, family, port);
                let serving = candidates
                    .iter()
                    .filter(|(_, endpoint)| endpoint.is_serving);
                let serving: BTreeSet<_> = serving.map(|(target, _)| *target).collect();
                if serving.is_empty() {
                    continue;
                }
                let serving = Arc::new(serving);
                for address in addresses(service, *cluster_ip) {
                    let target = Target {
                        address,
                        port: port.port,
                    };
                    let key = (port.protocol, target);
                    self.addresses.insert(key, serving.clone());
                }
                if port.node_port != 0 {
                    let key = (port.protocol, family, port.node_port);
                    self.node_ports.insert(key, serving);
                }
            }
        }
    }

    pub fn is_stale(&self, flow: &Flow) -> bool {
        let address = self.addresses.get(&(flow.protocol, flow.destination));
        let family = Family::of(flow.destination.address);
        let port = (flow.protocol, family, flow.destination.port);
        let of_node = self.node_ports.get(&port);
        [address, of_node]
            .into_iter()
            .flatten()
            .any(|serving| !serving.contains(&flow.answers))
    }
}

fn addresses(service: &Service, cluster_ip: IpAddr) -> impl Iterator<Item = IpAddr> {
    let others = service
        .external_ips
        .iter()
        .chain(&service.load_balancer_ips);
    let others = others.copied();
    let of_family = others.filter(move |address| address.is_ipv4() == cluster_ip.is_ipv4());
    std::iter::once(cluster_ip).chain(of_family)
}

#[cfg(test)]
mod tests;
