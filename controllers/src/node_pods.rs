//! Finds the pods of a node in the shared informer.

use std::sync::Arc;

use coracle_client::informer::Informer;
use k8s_openapi::api::core::v1::Pod;

use crate::pods;

const BY_NODE: &str = "node";

/// Must be called before `on_node`; again is harmless.
pub(crate) fn index(pods: &Informer<Pod>) {
    pods.add_index(BY_NODE, |pod| match pods::node_name(pod) {
        "" => Vec::new(),
        name => vec![name.to_owned()],
    });
}

pub(crate) fn on_node(pods: &Informer<Pod>, node: &str) -> Vec<Arc<Pod>> {
    pods.by_index(BY_NODE, node)
}
