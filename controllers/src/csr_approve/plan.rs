//! Whether a request is one that a node makes for itself.

use super::taken::Taken;
use crate::csr::{self, Asked};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Node;
use std::sync::Arc;

/// Approve with this message if the one who asks may create this subresource.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) subresource: &'static str,
    pub(super) message: &'static str,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Plan {
    Leave,
    Approve { message: &'static str },
    ApproveIfAllowed { choices: Vec<Choice> },
}

const SELF_CLIENT: Choice = Choice {
    subresource: "selfnodeclient",
    message: "Auto approving self kubelet client certificate after SubjectAccessReview.",
};
const CLIENT: Choice = Choice {
    subresource: "nodeclient",
    message: "Auto approving kubelet client certificate after SubjectAccessReview.",
};
const SERVING: &str = "Auto approving kubelet serving certificate: the node asks for names and \
                       addresses of its own.";

pub(super) fn plan(
    request: &CertificateSigningRequest,
    node: impl Fn(&str) -> Option<Arc<Node>>,
    taken: impl Fn(&str) -> Taken,
) -> Plan {
    if csr::is_decided(request) || csr::has_certificate(request) {
        return Plan::Leave;
    }
    let spec = &request.spec;
    let Ok(asked) = csr::read(spec) else {
        return Plan::Leave;
    };
    let is_self = spec.username.as_deref() == Some(asked.common_name.as_str());
    match spec.signer_name.as_str() {
        csr::NODE_CLIENT if csr::node_client_fault(spec, &asked).is_none() => {
            let choices = if is_self {
                vec![SELF_CLIENT, CLIENT]
            } else {
                vec![CLIENT]
            };
            Plan::ApproveIfAllowed { choices }
        }
        csr::NODE_SERVING if is_self && csr::node_serving_fault(spec, &asked).is_none() => {
            let name = csr::node_of(&asked);
            let is_own = node(name).is_some_and(|node| has_all(&node, &asked));
            if is_own && !is_of_others(&taken(name), &asked) {
                Plan::Approve { message: SERVING }
            } else {
                Plan::Leave
            }
        }
        _ => Plan::Leave,
    }
}

/// Every name and address asked for is the node's name or among its reported addresses.
fn has_all(node: &Node, asked: &Asked) -> bool {
    let addresses = node
        .status
        .as_ref()
        .and_then(|status| status.addresses.as_deref());
    let known = |text: &str| {
        node.metadata.name.as_deref() == Some(text)
            || addresses
                .unwrap_or(&[])
                .iter()
                .any(|address| address.address == text)
    };
    asked.dns_names.iter().all(|name| known(name))
        && asked
            .addresses
            .iter()
            .all(|address| known(&address.to_string()))
}

fn is_of_others(taken: &Taken, asked: &Asked) -> bool {
    let addresses = asked.addresses.iter().map(ToString::to_string);
    let mut names = asked.dns_names.iter().cloned().chain(addresses);
    names.any(|name| taken.holds(&name))
}

#[cfg(test)]
mod tests;
