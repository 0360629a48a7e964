//! Bind: creates the pod's Binding through the API.

use crate::framework::{Plugin, Points, StepError, WorldChange};
use crate::pod_info::PodInfo;
use coracle_client::Client;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{Binding, ObjectReference, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Status};
use kube::api::{Api, PostParams};
use std::fmt;

pub struct DefaultBinder {
    client: Client,
}

impl fmt::Debug for DefaultBinder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DefaultBinder")
    }
}

impl DefaultBinder {
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// The uid makes sure that a namesake created meanwhile is not bound in its place.
    async fn create(&self, pod: &PodInfo, node: &str) -> Result<(), kube::Error> {
        let binding = Binding {
            metadata: ObjectMeta {
                name: Some(pod.key.name.clone()),
                namespace: Some(pod.key.namespace.clone()),
                uid: Some(pod.uid.clone()),
                ..ObjectMeta::default()
            },
            target: ObjectReference {
                kind: Some("Node".to_owned()),
                name: Some(node.to_owned()),
                ..ObjectReference::default()
            },
        };
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &pod.key.namespace);
        let _: Status = api
            .create_subresource("binding", &pod.key.name, &PostParams::default(), &binding)
            .await?;
        Ok(())
    }
}

impl Plugin for DefaultBinder {
    fn name(&self) -> &'static str {
        "DefaultBinder"
    }

    fn points(&self) -> Points {
        Points::NONE
    }

    fn bind<'a>(
        &'a self,
        pod: &'a PodInfo,
        node: &'a str,
    ) -> BoxFuture<'a, Option<Result<(), StepError>>> {
        Box::pin(async move {
            let created = self.create(pod, node).await;
            Some(created.map_err(|error| StepError::Failed {
                plugin: self.name(),
                source: Box::new(error),
            }))
        })
    }

    fn can_help(&self, _change: &WorldChange, _pod: &PodInfo) -> bool {
        false
    }
}
