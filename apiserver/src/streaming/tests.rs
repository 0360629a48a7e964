//! What the tests of logs and sessions share.

use super::*;
use crate::view::tests::Objects;
use serde_json::json;
use tokio_util::sync::CancellationToken;

mod options; // Options and containers, without a node.
mod sessions; // Whole sessions over a real tunnel.

fn pod(containers: &[&str], node: &str) -> serde_json::Value {
    let containers: Vec<_> = containers
        .iter()
        .map(|name| json!({ "name": name }))
        .collect();
    json!({
        "metadata": { "namespace": "web", "name": "p", "uid": "u1" },
        "spec": {
            "nodeName": node,
            "initContainers": [{ "name": "init" }],
            "containers": containers,
        },
    })
}

fn streams(containers: &[&str], node: &str) -> Streams {
    let view = Objects::new([("pods", pod(containers, node))]);
    let authorizer = Arc::new(Authorizer::new(view.clone()));
    Streams::new(view, authorizer, Tunnels::new(CancellationToken::new()))
}

fn info(subresource: &str) -> RequestInfo {
    RequestInfo {
        verb: "get".into(),
        version: "v1".into(),
        resource: "pods".into(),
        subresource: subresource.into(),
        namespace: "web".into(),
        name: "p".into(),
        is_resource_request: true,
        ..RequestInfo::default()
    }
}

fn admin() -> User {
    let mut user = User::named("kubernetes-admin");
    user.groups.push("system:masters".to_owned());
    user
}
