//! The two kinds that this loop serves, seen through one shape. Pure.

use coracle_client::informer::Kind;
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::{
    PodTemplateSpec, ReplicationController, ReplicationControllerCondition,
    ReplicationControllerStatus,
};
use serde::Serialize;

use crate::labels::Selector;

/// What a set asks for.
#[derive(Debug)]
pub(super) struct Spec<'a> {
    pub replicas: i32,
    pub min_ready_seconds: i32,
    pub selector: Selector,
    pub template: &'a PodTemplateSpec,
}

/// A kind that keeps a number of pods.
pub(super) trait Replicated:
    Kind + kube::Resource<Scope = k8s_openapi::NamespaceResourceScope> + Serialize
{
    /// Upstream's name of the component, which events carry.
    const COMPONENT: &'static str;
    /// Whether the status says how many pods are terminating.
    const COUNTS_TERMINATING: bool;

    /// `None` when there is no usable selector or template.
    fn spec(&self) -> Option<Spec<'_>>;

    /// The status, in the shape of a ReplicaSet's.
    fn status(&self) -> ReplicaSetStatus;

    #[must_use]
    fn with_status(&self, status: ReplicaSetStatus) -> Self;
}

impl Replicated for ReplicaSet {
    const COMPONENT: &'static str = "replicaset-controller";
    const COUNTS_TERMINATING: bool = true;

    fn spec(&self) -> Option<Spec<'_>> {
        let spec = self.spec.as_ref()?;
        Some(Spec {
            replicas: spec.replicas.unwrap_or(1),
            min_ready_seconds: spec.min_ready_seconds.unwrap_or(0),
            selector: Selector::from_label_selector(&spec.selector)
                .filter(|selector| !selector.is_empty())?,
            template: spec.template.as_ref()?,
        })
    }

    fn status(&self) -> ReplicaSetStatus {
        self.status.clone().unwrap_or_default()
    }

    fn with_status(&self, status: ReplicaSetStatus) -> Self {
        Self {
            status: Some(status),
            ..self.clone()
        }
    }
}

impl Replicated for ReplicationController {
    const COMPONENT: &'static str = "replication-controller";
    const COUNTS_TERMINATING: bool = false;

    fn spec(&self) -> Option<Spec<'_>> {
        let spec = self.spec.as_ref()?;
        Some(Spec {
            replicas: spec.replicas.unwrap_or(1),
            min_ready_seconds: spec.min_ready_seconds.unwrap_or(0),
            selector: Some(Selector::from_map(spec.selector.as_ref()))
                .filter(|selector| !selector.is_empty())?,
            template: spec.template.as_ref()?,
        })
    }

    fn status(&self) -> ReplicaSetStatus {
        let status = self.status.clone().unwrap_or_default();
        let condition = |one: ReplicationControllerCondition| ReplicaSetCondition {
            last_transition_time: one.last_transition_time,
            message: one.message,
            reason: one.reason,
            status: one.status,
            type_: one.type_,
        };
        ReplicaSetStatus {
            available_replicas: status.available_replicas,
            conditions: status
                .conditions
                .map(|all| all.into_iter().map(condition).collect()),
            fully_labeled_replicas: status.fully_labeled_replicas,
            observed_generation: status.observed_generation,
            ready_replicas: status.ready_replicas,
            replicas: status.replicas,
            terminating_replicas: None,
        }
    }

    fn with_status(&self, status: ReplicaSetStatus) -> Self {
        let condition = |one: ReplicaSetCondition| ReplicationControllerCondition {
            last_transition_time: one.last_transition_time,
            message: one.message,
            reason: one.reason,
            status: one.status,
            type_: one.type_,
        };
        let status = ReplicationControllerStatus {
            available_replicas: status.available_replicas,
            conditions: status
                .conditions
                .map(|all| all.into_iter().map(condition).collect()),
            fully_labeled_replicas: status.fully_labeled_replicas,
            observed_generation: status.observed_generation,
            ready_replicas: status.ready_replicas,
            replicas: status.replicas,
        };
        Self {
            status: Some(status),
            ..self.clone()
        }
    }
}
