//! The selectors of services and workloads, from which is worked out which pods belong together.

use super::Table;
use crate::pod_info::{PodInfo, PodLabels};
use crate::selector::{self, LabelSet, Labels, Selector};
use coracle_client::ObjectKey;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub struct Owners {
    /// Those without a selector are not kept: they select no pods.
    pub services: Table<Labels>,
    pub replication_controllers: Table<Labels>,
    pub replica_sets: Table<Arc<Selector>>,
    pub stateful_sets: Table<Arc<Selector>>,
}

impl Owners {
    /// What the services of a pod and the workload that controls it select by, taken together;
    /// empty when there is nothing.
    pub fn selector(&self, pod: &PodInfo) -> Selector {
        let mut labels = Labels::new();
        self.services.each_in(&pod.key.namespace, |selector| {
            if is_part(selector, pod.labels()) {
                labels.extend(selector.clone());
            }
        });
        let mut added = Vec::new();
        if let Some(owner) = controller(pod) {
            let key = ObjectKey::new(pod.key.namespace.as_str(), owner.name.as_str());
            let workload = match (owner.api_version.as_str(), owner.kind.as_str()) {
                ("v1", "ReplicationController") => {
                    let selector = self.replication_controllers.get(&key);
                    labels.extend(selector.unwrap_or_default());
                    None
                }
                ("apps/v1", "ReplicaSet") => self.replica_sets.get(&key),
                ("apps/v1", "StatefulSet") => self.stateful_sets.get(&key),
                _ => None,
            };
            added.extend(workload.iter().flat_map(|one| one.requirements()).cloned());
        }
        added.extend_from_slice(selector::of_map(&labels).requirements());
        Selector::from_requirements(added)
    }
}

fn is_part(selector: &Labels, labels: &PodLabels) -> bool {
    let mut wanted = selector.iter();
    wanted.all(|(key, value)| labels.label(key) == Some(value))
}

fn controller(pod: &PodInfo) -> Option<&OwnerReference> {
    let owners = pod.waiting.as_ref()?.metadata.owner_references.as_ref()?;
    owners.iter().find(|owner| owner.controller == Some(true))
}
