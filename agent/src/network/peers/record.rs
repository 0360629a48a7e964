//! What is kept of a Node.

use crate::network::subnet::Subnet;
use k8s_openapi::api::core::v1::Node;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Peer {
    pub name: Box<str>,
    /// `spec.podCIDRs`, as they were written.
    pub networks: Box<[Box<str>]>,
    /// Its addresses of the type InternalIP.
    pub addresses: Box<[IpAddr]>,
    /// In seconds; of two nodes that claim one network the older has it.
    pub created: i64,
}

impl Peer {
    pub fn of(node: &Node) -> Self {
        let spec = node.spec.as_ref();
        let networks = match spec.and_then(|spec| spec.pod_cidrs.as_deref()) {
            Some(all) if !all.is_empty() => all.iter().map(|one| one.as_str().into()).collect(),
            _ => {
                let one = spec.and_then(|spec| spec.pod_cidr.as_deref());
                one.filter(|one| !one.is_empty())
                    .map(Into::into)
                    .into_iter()
                    .collect()
            }
        };
        let addresses = node
            .status
            .as_ref()
            .and_then(|status| status.addresses.as_ref());
        let internal = addresses
            .into_iter()
            .flatten()
            .filter(|address| address.type_ == "InternalIP");
        let created = node.metadata.creation_timestamp.as_ref();
        Self {
            name: node.metadata.name.as_deref().unwrap_or_default().into(),
            networks,
            addresses: internal
                .filter_map(|address| address.address.parse().ok())
                .collect(),
            created: created.map_or(0, |time| time.0.as_second()),
        }
    }

    /// Of those that are networks.
    pub fn subnets(&self) -> impl Iterator<Item = Subnet> {
        self.networks
            .iter()
            .filter_map(|network| Subnet::parse(network))
    }
}
