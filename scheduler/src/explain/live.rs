//! Explains a pod of a cluster: reads what the scheduler watches, once.

use super::Explanation;
use crate::cache::Snapshot;
use crate::plugins::registry::Plan;
use crate::pod_info::PodInfo;
use crate::queue::Backoff;
use crate::views::Views;
use crate::watched::{Watched, watch};
use coracle_client::Client;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Why a pod could not be explained.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// In the server's words.
    #[error("{0}")]
    Refused(String),
    #[error("cannot read the pod")]
    Unread(#[source] Box<kube::Error>),
    #[error("reading the cluster was stopped")]
    Stopped,
}

/// What the scheduler would make of one pod.
#[derive(Debug)]
pub struct Explained {
    pub explanation: Explanation,
    /// Where the pod is already: it was looked at as if it were not.
    pub node: Option<String>,
}

/// Reads the cluster as the scheduler does, and explains a pod by the default profile.
pub async fn explain_pod(
    client: Client,
    namespace: &str,
    name: &str,
) -> Result<Explained, ExplainError> {
    let stop = CancellationToken::new();
    let _ends = stop.clone().drop_guard();
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let read = api.get(name).await;
    let mut pod = read.map_err(|error| match error {
        kube::Error::Api(status) => ExplainError::Refused(status.message),
        other => ExplainError::Unread(Box::new(other)),
    })?;
    let node = pod.spec.as_mut().and_then(|spec| spec.node_name.take());
    let pod = PodInfo::new(Arc::new(pod));
    let plan = Plan::new(pod.scheduler_name());
    let watched = watch(
        &[plan],
        Backoff::default(),
        Views::default(),
        &client,
        &stop,
    )
    .await;
    let Watched { world, .. } = watched.ok_or(ExplainError::Stopped)?;
    let profile = world.profiles.of(&pod).ok_or(ExplainError::Stopped)?;
    let mut snapshot = Snapshot::default();
    let mut cache = world.views.cache.lock();
    cache.remove_pod(&pod.uid);
    cache.update(&mut snapshot);
    drop(cache);
    Ok(Explained {
        explanation: super::explain(profile, &snapshot, &pod),
        node,
    })
}
