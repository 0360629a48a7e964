//! What the demo waits for, as the server tells of it: nothing is asked again and again.

use coracle_api::object::ObjectKey;
use coracle_client::Client;
use coracle_client::informer::{Filter, Informer, Informers, Kind};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

const NAMESPACE: &str = "default";

pub struct Seen {
    nodes: Informer<Node>,
    deployments: Informer<Deployment>,
    pub pods: Informer<Pod>,
    changed: Arc<Notify>,
    _stop: DropGuard,
}

impl Seen {
    pub fn new(client: &Client) -> Self {
        let stop = CancellationToken::new();
        let informers = Informers::new(client.clone(), stop.clone());
        let here = || Filter::default().in_namespace(NAMESPACE);
        let seen = Self {
            nodes: informers.get(),
            deployments: informers.get_filtered(here()),
            pods: informers.get_filtered(here()),
            changed: Arc::default(),
            _stop: stop.drop_guard(),
        };
        seen.follow(&seen.nodes);
        seen.follow(&seen.deployments);
        seen.follow(&seen.pods);
        seen
    }

    fn follow<K: Kind>(&self, informer: &Informer<K>) {
        let changed = self.changed.clone();
        informer.on_change(move |_| changed.notify_one());
    }

    /// Something is different since it was asked last. One asks at a time.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// False when it took too long.
    pub async fn until(&self, within: Duration, is_it: impl Fn(&Self) -> bool) -> bool {
        let seen = async {
            while !is_it(self) {
                self.changed().await;
            }
        };
        tokio::time::timeout(within, seen).await.is_ok()
    }

    pub fn is_ready(&self, node: &str) -> bool {
        let node = self.node(node);
        let status = node.as_ref().and_then(|node| node.status.as_ref());
        let conditions = status.and_then(|status| status.conditions.as_ref());
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|one| one.type_ == "Ready" && one.status == "True")
    }

    pub fn node(&self, name: &str) -> Option<Arc<Node>> {
        self.nodes.get(&key("", name))
    }

    pub fn ready_replicas(&self, deployment: &str) -> i32 {
        let found = self.deployments.get(&key(NAMESPACE, deployment));
        let status = found.as_ref().and_then(|found| found.status.as_ref());
        status.and_then(|status| status.ready_replicas).unwrap_or(0)
    }
}

fn key(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}
