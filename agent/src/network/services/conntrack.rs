//! Connections that the kernel keeps in mind: those of a Service over UDP or SCTP that go to an
//! endpoint that is gone are forgotten, or a client that keeps its port would send there for as
//! long as it sends at all. TCP finds out by itself.
//!
//! As upstream does, a connection to an endpoint that still serves is left alone, whatever policy
//! or topology say now, and so is one of a Service without endpoints.

mod socket; // By netlink.

pub use super::steps::Target;
pub use socket::forget_flows;

use super::steps::{Element, Family, Frontend, NodePort};
use super::usable;
use crate::network::view::{Entry, Protocol, Service};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

/// What connections may go to by where they were sent.
#[derive(Debug, Default)]
pub struct Served {
    frontends: BTreeMap<Frontend, Arc<BTreeSet<Target>>>,
    node_ports: BTreeMap<NodePort, Arc<BTreeSet<Target>>>,
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

/// How many were forgotten.
pub async fn forget(served: &Served) -> io::Result<usize> {
    if served.is_empty() {
        return Ok(0);
    }
    forget_flows(|flow| served.is_stale(flow)).await
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
        self.frontends.is_empty() && self.node_ports.is_empty()
    }

    /// Takes a Service in, with those ways to it that it `holds`: what goes by the others is not to
    /// its endpoints.
    pub fn add(&mut self, entry: &Entry, holds: impl Fn(&Element) -> bool) {
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
                let frontends = addresses(service, *cluster_ip).map(|address| Frontend {
                    address,
                    protocol: port.protocol,
                    port: port.port,
                });
                for of in frontends.filter(|of| holds(&Element::Frontend(*of))) {
                    self.frontends.insert(of, serving.clone());
                }
                let of = NodePort {
                    family,
                    protocol: port.protocol,
                    port: port.node_port,
                };
                if holds(&Element::NodePort(of)) {
                    self.node_ports.insert(of, serving);
                }
            }
        }
    }

    pub fn is_stale(&self, flow: &Flow) -> bool {
        let (protocol, Target { address, port }) = (flow.protocol, flow.destination);
        let frontend = self.frontends.get(&Frontend {
            address,
            protocol,
            port,
        });
        let node_port = self.node_ports.get(&NodePort {
            family: Family::of(address),
            protocol,
            port,
        });
        [frontend, node_port]
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
