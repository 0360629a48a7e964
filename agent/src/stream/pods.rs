//! `/pods`: what this node was told to run, and `/runningpods/`: what the runtime has of it.

use super::answer::{Body, json, refuse};
use super::serve::Server;
use crate::runtime::{ContainerState, ContainerStatus, RuntimeError, SandboxState, SandboxStatus};
use http::{Response, StatusCode};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

pub fn bound(server: &Server) -> Response<Body> {
    let pods = server.stats.pods.list();
    let items: Vec<&Pod> = pods.iter().map(AsRef::as_ref).collect();
    json(&json!({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}))
}

pub async fn running(server: &Server) -> Response<Body> {
    match look(server).await {
        Ok(items) => {
            json(&json!({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}))
        }
        Err(error) => refuse(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

async fn look(server: &Server) -> Result<Vec<Value>, RuntimeError> {
    let runtime = &server.stats.context.runtime;
    let mut sandboxes = runtime.list_sandboxes().await?;
    sandboxes.retain(|sandbox| sandbox.state == SandboxState::Ready);
    let containers = runtime.list_containers().await?;
    Ok(sandboxes
        .iter()
        .map(|sandbox| item(sandbox, &containers))
        .collect())
}

/// No more than the runtime knows.
fn item(sandbox: &SandboxStatus, containers: &[ContainerStatus]) -> Value {
    let config = &sandbox.config;
    let own = containers.iter().filter(|container| {
        container.sandbox == sandbox.id && container.state == ContainerState::Running
    });
    let own: Vec<Value> = own
        .map(|container| {
            let config = &container.config;
            json!({"name": config.name, "image": config.image, "resources": {}})
        })
        .collect();
    json!({
        "metadata": {
            "name": config.pod_name,
            "namespace": config.pod_namespace,
            "uid": config.pod_uid,
        },
        "spec": {"containers": own},
        "status": {},
    })
}
