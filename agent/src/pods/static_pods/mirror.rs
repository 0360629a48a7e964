//! Mirror pods: what the API server shows of static pods.
//!
//! Each has one, made anew when it is deleted or when it shows another pod than runs. Those that
//! show nothing any more, not even a pod that is ending, are deleted. Repeated until the API server
//! has it so.

use super::super::Shared;
use super::super::manifest::{HASH, MIRROR, annotation};
use super::static_name;
use crate::error::chain;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Api;
use kube::api::{DeleteParams, PostParams, Preconditions};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// After a failure; what is missing may be the server itself.
const RETRY: Duration = Duration::from_secs(10);

/// Whether it is an image of this very pod.
pub fn shows(mirror: &Pod, pod: &Pod) -> bool {
    annotation(mirror, MIRROR) == annotation(pod, HASH)
}

#[derive(Debug, PartialEq)]
enum Act {
    Create(Arc<Pod>),
    Delete(Arc<Pod>),
}

/// What is to be done about one pod's mirror. `is_running`: a pod of that name runs, or is ending.
fn decide(pod: Option<&Arc<Pod>>, mirror: Option<&Arc<Pod>>, is_running: bool) -> Option<Act> {
    match (pod, mirror) {
        (Some(pod), None) => Some(Act::Create(pod.clone())),
        (None, Some(_)) if is_running => None,
        (None, Some(mirror)) => Some(Act::Delete(mirror.clone())),
        (Some(pod), Some(mirror)) => {
            let is_good = shows(mirror, pod) && mirror.metadata.deletion_timestamp.is_none();
            (!is_good).then(|| Act::Delete(mirror.clone()))
        }
        (None, None) => None,
    }
}

pub(in super::super) async fn run(shared: Arc<Shared>, node_name: String) {
    loop {
        let mut has_failed = false;
        for act in acts(&shared) {
            if let Err(error) = perform(&shared, &node_name, act).await {
                tracing::warn!(error, "cannot show a static pod to the server");
                has_failed = true;
            }
        }
        let retry = async {
            match has_failed {
                true => tokio::time::sleep(RETRY).await,
                false => std::future::pending().await,
            }
        };
        tokio::select! {
            // Workers that end for the stop have not ended their containers.
            biased;
            () = shared.stop.cancelled() => return,
            () = shared.statics.changed.notified() => {}
            () = retry => {}
        }
    }
}

fn acts(shared: &Shared) -> Vec<Act> {
    let workers = shared.workers.lock();
    let running: BTreeSet<_> = workers.values().filter_map(static_name).collect();
    drop(workers);
    let wanted = shared.statics.wanted.lock().clone();
    let mirrors = shared.statics.mirrors.lock().clone();
    let mut names: Vec<_> = wanted.keys().chain(mirrors.keys()).collect();
    names.sort();
    names.dedup();
    let decided = names
        .into_iter()
        .map(|name| decide(wanted.get(name), mirrors.get(name), running.contains(name)));
    decided.flatten().collect()
}

async fn perform(shared: &Shared, node_name: &str, act: Act) -> Result<(), String> {
    let client = &shared.context.client;
    let api = |pod: &Pod| -> Api<Pod> {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        Api::namespaced(client.clone(), namespace)
    };
    match act {
        Act::Create(pod) => {
            let nodes: Api<Node> = Api::all(client.clone());
            let node = nodes.get(node_name).await.map_err(|error| chain(&error))?;
            let mirror = image(&pod, &node);
            match api(&pod).create(&PostParams::default(), &mirror).await {
                // It came meanwhile, and is about to be seen.
                Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
                Err(error) => Err(chain(&error)),
                Ok(_) => Ok(()),
            }
        }
        Act::Delete(mirror) => {
            let name = mirror.metadata.name.as_deref().unwrap_or_default();
            let params = DeleteParams::default().grace_period(0);
            let params = params.preconditions(Preconditions {
                uid: mirror.metadata.uid.clone(),
                resource_version: None,
            });
            match api(&mirror).delete(name, &params).await {
                // Gone, or another one by now.
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
                other => other.map(drop).map_err(|error| chain(&error)),
            }
        }
    }
}

/// Owned by the node, as the API server wants it of what a node makes.
fn image(pod: &Pod, node: &Node) -> Pod {
    let mut mirror = pod.clone();
    mirror.status = None;
    let meta = &mut mirror.metadata;
    meta.uid = None;
    let hash = annotation(pod, HASH).unwrap_or_default().to_owned();
    let annotations = meta.annotations.get_or_insert_default();
    annotations.insert(MIRROR.to_owned(), hash);
    meta.owner_references = Some(vec![OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Node".to_owned(),
        name: node.metadata.name.clone().unwrap_or_default(),
        uid: node.metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: None,
    }]);
    mirror
}

#[cfg(test)]
mod tests;
