//! What routing needs to know of the node that it is on.

use crate::network::subnet::Subnet;
use crate::network::view::Endpoint;
use coracle_client::pod_cidrs::pod_cidrs;
use k8s_openapi::api::core::v1 as core;
use std::net::IpAddr;
use std::sync::Arc;

/// What the cluster's autoscaler puts on a node that it is about to take away.
const TAINT_LEAVING: &str = "ToBeDeletedByClusterAutoscaler";
const ZONE: &str = "topology.kubernetes.io/zone";

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Node {
    pub name: Arc<str>,
    /// Its label `topology.kubernetes.io/zone`.
    pub zone: Option<Arc<str>>,
    /// In its status.
    pub addresses: Vec<IpAddr>,
    /// Where its pods have theirs. Empty until it is known: nobody counts as a pod then.
    pub pod_cidrs: Vec<Subnet>,
    /// No load balancer is to send here: the node is going, or is not there.
    pub is_leaving: bool,
}

impl Node {
    /// Before the server told anything of it.
    pub fn unknown(name: &str, pod_cidrs: Option<&str>) -> Self {
        Self {
            name: name.into(),
            zone: None,
            addresses: Vec::new(),
            pod_cidrs: pod_cidrs
                .into_iter()
                .flat_map(|all| all.split(','))
                .filter_map(Subnet::parse)
                .collect(),
            is_leaving: true,
        }
    }

    pub fn of(node: &core::Node) -> Self {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let spec = node.spec.as_ref();
        let status = node.status.as_ref();
        let addresses = status.and_then(|status| status.addresses.as_ref());
        let internal = addresses.into_iter().flatten();
        let internal = internal.filter(|address| address.type_ == "InternalIP");
        let taints = spec.and_then(|spec| spec.taints.as_ref()).into_iter();
        let is_tainted = taints.flatten().any(|taint| taint.key == TAINT_LEAVING);
        let labels = node.metadata.labels.as_ref();
        Self {
            name: name.into(),
            zone: labels.and_then(|labels| Some(labels.get(ZONE)?.as_str().into())),
            addresses: internal
                .filter_map(|address| address.address.parse().ok())
                .collect(),
            pod_cidrs: pod_cidrs(node).filter_map(Subnet::parse).collect(),
            is_leaving: is_tainted || node.metadata.deletion_timestamp.is_some(),
        }
    }

    pub fn has(&self, endpoint: &Endpoint) -> bool {
        endpoint.node.as_ref() == Some(&self.name)
    }
}

#[cfg(test)]
mod tests;
