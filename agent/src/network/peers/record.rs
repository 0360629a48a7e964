//! What is kept of a Node.

use crate::network::subnet::Subnet;
use crate::network::wireguard;
use coracle_client::pod_cidrs::pod_cidrs;
use k8s_openapi::api::core::v1::Node;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Peer {
    pub name: Box<str>,
    /// Its podCIDRs, as they were written.
    pub networks: Box<[Box<str>]>,
    /// Its addresses of the type InternalIP.
    pub addresses: Box<[IpAddr]>,
    /// In seconds; of two nodes that claim one network the older has it.
    pub created: i64,
    /// Of WireGuard, as the node wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Box<str>>,
}

impl Peer {
    pub fn of(node: &Node) -> Self {
        let addresses = node
            .status
            .as_ref()
            .and_then(|status| status.addresses.as_ref());
        let internal = addresses
            .into_iter()
            .flatten()
            .filter(|address| address.type_ == "InternalIP");
        let created = node.metadata.creation_timestamp.as_ref();
        let annotations = node.metadata.annotations.as_ref();
        let key = annotations.and_then(|annotations| annotations.get(wireguard::ANNOTATION));
        Self {
            name: node.metadata.name.as_deref().unwrap_or_default().into(),
            networks: pod_cidrs(node).map(Into::into).collect(),
            addresses: internal
                .filter_map(|address| address.address.parse().ok())
                .collect(),
            created: created.map_or(0, |time| time.0.as_second()),
            key: key.map(|text| text.as_str().into()),
        }
    }

    /// Of those that are networks.
    pub fn subnets(&self) -> impl Iterator<Item = Subnet> {
        self.networks
            .iter()
            .filter_map(|network| Subnet::parse(network))
    }
}
