//! What is put on a server to see what it costs.

use crate::configmaps;
use crate::pool;
use crate::scratch::Scratch;
use crate::wire;
use coracle_client::Client;
use http::Request;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use kube::client::Body;
use std::sync::Arc;

/// All ConfigMaps, which nobody keeps.
pub async fn list(scratch: &Scratch) -> anyhow::Result<()> {
    let request = Request::get(configmaps::path_in(&scratch.name)).body(Body::empty())?;
    let answer = scratch.client.send(request).await?;
    Ok(wire::drain(answer).await?)
}

/// Pods that nobody runs, on nodes that are only objects.
pub async fn pods(
    scratch: &Scratch,
    clients: &[Client],
    nodes: &[String],
    count: usize,
) -> anyhow::Result<()> {
    scratch.ensure_account().await?;
    let namespace: Arc<str> = scratch.name.as_str().into();
    let (labels, nodes) = (scratch.labels(), Arc::<[String]>::from(nodes));
    let made = pool::run("pod create", clients, count, move |client, number| {
        let api: Api<Pod> = Api::namespaced(client, &namespace);
        let node = nodes.get(number % nodes.len().max(1)).cloned();
        let pod = Pod {
            metadata: ObjectMeta {
                name: Some(format!("p-{number}")),
                labels: Some(labels.clone()),
                ..ObjectMeta::default()
            },
            spec: Some(PodSpec {
                automount_service_account_token: Some(false),
                node_name: node,
                containers: vec![Container {
                    name: "idle".to_owned(),
                    image: Some("registry.example/idle:1".to_owned()),
                    ..Container::default()
                }],
                ..PodSpec::default()
            }),
            ..Pod::default()
        };
        async move { api.create(&PostParams::default(), &pod).await.map(drop) }
    });
    let failed = made.await?.failed;
    anyhow::ensure!(failed == 0, "{failed} pods could not be made");
    Ok(())
}
