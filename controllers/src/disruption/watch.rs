//! Which budgets to count again when something changed, and which pods to look at later.

use std::sync::Arc;

use coracle_client::events::{self, EventType};
use coracle_client::informer::{Change, Informer, Kind};
use coracle_client::key_of;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;

use super::{Controller, plan, selector_of, stale, told};
use crate::ownership::controller_of;
use crate::pods;

impl Controller {
    pub(super) fn watch(self: &Arc<Self>) {
        let told = Arc::clone(self);
        self.budgets.on_change(move |change| match change {
            Change::Deleted(_) => {}
            change => told.queue.add(key_of(change.object().as_ref())),
        });
        let told = Arc::clone(self);
        self.pods.on_change(move |change| told.pod_changed(change));
        self.watch_scale(&self.deployments, |one| one.spec.as_ref()?.replicas);
        self.watch_scale(&self.replica_sets, |one| one.spec.as_ref()?.replicas);
        self.watch_scale(&self.stateful_sets, |one| one.spec.as_ref()?.replicas);
        self.watch_scale(&self.replication_controllers, |one| {
            one.spec.as_ref()?.replicas
        });
    }

    /// What a controller asks for is counted, and may be seen later than its pods.
    fn watch_scale<K: Kind>(
        self: &Arc<Self>,
        controllers: &Informer<K>,
        replicas: fn(&K) -> Option<i32>,
    ) {
        let told = Arc::clone(self);
        controllers.on_change(move |change| {
            let scaled = match change {
                Change::Added(_) => true,
                Change::Updated { old, new } => replicas(old) != replicas(new),
                Change::Deleted(_) | Change::Resync(_) => false,
            };
            if scaled {
                told.count_namespace(change.object().meta().namespace.as_deref());
            }
        });
    }

    fn count_namespace(&self, namespace: Option<&str>) {
        for budget in self.budgets.list_namespace(namespace.unwrap_or_default()) {
            if budget.spec.as_ref().is_some_and(plan::needs_scale) {
                self.queue.add(key_of(budget.as_ref()));
            }
        }
    }

    fn pod_changed(&self, change: &Change<Pod>) {
        match change {
            Change::Added(pod) | Change::Deleted(pod) => self.count_for(pod),
            Change::Updated { old, new } => {
                if old.metadata.labels != new.metadata.labels {
                    self.count_for(old);
                }
                if !counts_the_same(old, new) {
                    self.count_for(new);
                }
            }
            Change::Resync(_) => {} // The budgets have their own.
        }
        if matches!(change, Change::Deleted(_)) {
            return;
        }
        let pod = change.object();
        if let Some(left) = stale::stale_in(pod, self.clock.now()) {
            self.stale.add_after(key_of(pod.as_ref()), left);
        }
    }

    /// The eviction API refuses a pod of several budgets; each of them is right all the same.
    fn count_for(&self, pod: &Pod) {
        let budgets = self.budgets_of(pod);
        for budget in &budgets {
            self.queue.add(key_of(budget.as_ref()));
        }
        if let [first, _, ..] = budgets.as_slice() {
            let (about, message) = (events::reference(pod), told::several(pod, first));
            let reason = "MultiplePodDisruptionBudgets";
            self.recorder
                .event(&about, EventType::Warning, reason, &message);
        }
    }

    /// By name.
    fn budgets_of(&self, pod: &Pod) -> Vec<Arc<PodDisruptionBudget>> {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let mut budgets = self.budgets.list_namespace(namespace);
        budgets.retain(|budget| {
            let selector = selector_of(budget);
            selector.is_some_and(|selector| selector.matches(pod.metadata.labels.as_ref()))
        });
        budgets.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        budgets
    }
}

/// Most of what nodes report changes no budget.
fn counts_the_same(old: &Pod, new: &Pod) -> bool {
    old.metadata.labels == new.metadata.labels
        && pods::is_deleting(old) == pods::is_deleting(new)
        && pods::is_ready(old) == pods::is_ready(new)
        && controller_of(&old.metadata) == controller_of(&new.metadata)
}
