//! The endpoints of a node's agent that have rights of their own, as the kubelet asks for them
//! (`KubeletFineGrainedAuthz`): who may read a node's metrics need not be let at all of the node.
//! Upstream's kubelet is asked at its own port; ours has none, so that its rights count here, for
//! `nodes/NAME/proxy/PATH`. Pure.

use super::path;
use super::target::{KUBELET_PORT, Named};
use crate::request_info::RequestInfo;
use coracle_api::node_endpoints::subresources;
use coracle_api::status::Status;

/// Of a request that only the right to one endpoint allowed: where it must not go elsewhere, this
/// is the answer.
#[derive(Clone, Debug)]
pub struct OfAgentAlone(pub Status);

/// What the kubelet would ask the authorizer in place of `nodes/proxy`; `None` where that is all.
pub fn finer(info: &RequestInfo) -> Option<RequestInfo> {
    let is_proxy = info.group.is_empty()
        && info.resource == "nodes"
        && info.subresource == super::SUBRESOURCE
        && info.is_resource_request;
    if !is_proxy {
        return None;
    }
    let named = Named::parse(&info.name)?;
    let is_agents = named.port.is_empty() || named.port.parse() == Ok(KUBELET_PORT);
    if !is_agents || named.scheme == "http" {
        return None;
    }
    let below = path::below(info);
    let [subresource, ..] = subresources(&below) else {
        return None;
    };
    if *subresource == super::SUBRESOURCE {
        return None;
    }
    Some(RequestInfo {
        name: named.name.to_owned(),
        subresource: (*subresource).to_owned(),
        ..info.clone()
    })
}
