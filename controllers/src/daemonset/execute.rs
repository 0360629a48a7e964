//! Carries out one pass: the history, claims, creations and deletions, and the status.

use std::sync::Arc;

use coracle_client::patch;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;

use super::plan::{self, Observed, Plan};
use super::spec::Spec;
use super::{Controller, ObjectKey, Requeue, Requirements, placement, status};
use crate::history::HistoryError;
use crate::ownership::{self, ClaimError, Claims};
use crate::pod_control::{PodControl, pod_from};

#[derive(Debug, thiserror::Error)]
pub(super) enum ReconcileError {
    #[error(transparent)]
    Claim(#[from] ClaimError),
    #[error(transparent)]
    History(#[from] HistoryError),
    #[error("cannot relabel pods")]
    Relabel(#[source] kube::Error),
    #[error("cannot create pods")]
    Create(#[source] kube::Error),
    #[error("cannot delete pods")]
    Delete(#[source] kube::Error),
    #[error("cannot write the status")]
    Status(#[source] kube::Error),
}

impl Controller {
    pub(super) async fn pass(
        &self,
        key: &ObjectKey,
        set: &Arc<DaemonSet>,
        spec: &Spec<'_>,
    ) -> Result<Requeue, ReconcileError> {
        let sets = Api::<DaemonSet>::namespaced(self.client.clone(), &key.namespace);
        let pods = Api::<Pod>::namespaced(self.client.clone(), &key.namespace);
        let Some(history) = self.history(key, set, spec).await? else {
            return Ok(Requeue::Never); // What was written calls the next pass.
        };
        // Asked before the pods are listed: what is seen from here on is not in the list.
        let satisfied = self.expectations.satisfied(key);
        let claims = self.claims(key, set, spec);
        let (adopt, release) = (&claims.adopt, &claims.release);
        ownership::execute(&sets, set.as_ref(), &pods, adopt, release).await?;
        let (mut again, mut acted) = (None, false);
        let mut managed = Ok(());
        if satisfied {
            let now = self.clock.monotonic();
            let plan = self.observe(set, spec, &history.hash, &claims.owned, |observed| {
                plan::plan(observed, &mut self.backoff.lock(), now)
            });
            again = plan.again;
            acted = !plan.create.is_empty() || !plan.delete.is_empty();
            managed = self.act(key, set, spec, &history.hash, plan, &pods).await;
            if managed.is_ok() {
                let limit = spec.history_limit;
                managed = self.truncate(key, history.old, &claims.owned, limit).await;
            }
        }
        // What the pass did shows in the cache already, or calls the next one.
        let owned = self.claims(key, set, spec).owned;
        let (next, check) = self.observe(set, spec, &history.hash, &owned, |observed| {
            let next = status::next(observed, satisfied);
            (next, status::next_check(observed))
        });
        let soonest = again.into_iter().chain(check).min();
        let requeue = soonest.map_or(Requeue::Never, Requeue::After);
        if Some(&next) != set.status.as_ref() {
            if !acted
                && managed.is_ok()
                && !status::is_news(set.status.as_ref(), &next)
                && let Some(pause) = self.own_writes.pause(key)
            {
                return Ok(requeue.within(pause));
            }
            let mut wanted = (**set).clone();
            wanted.status = Some(next);
            let written = patch::replace_status(&sets, &wanted).await;
            self.own_writes.ended(set.as_ref(), &written);
            // The pods are what failed first, and that is what gets reported.
            managed = managed.and(written.map(drop).map_err(ReconcileError::Status));
        }
        managed?;
        Ok(requeue)
    }

    /// The pods of the set and the orphans of its namespace.
    pub(super) fn claims(&self, key: &ObjectKey, set: &DaemonSet, spec: &Spec<'_>) -> Claims<Pod> {
        let uid = set.metadata.uid.as_deref().unwrap_or_default();
        let pods = ownership::owned_or_orphaned(&self.pods, uid, &key.namespace);
        Claims::of(&set.metadata, &spec.selector, pods)
    }

    fn observe<T>(
        &self,
        set: &DaemonSet,
        spec: &Spec<'_>,
        hash: &str,
        owned: &[Arc<Pod>],
        decide: impl FnOnce(&Observed<'_>) -> T,
    ) -> T {
        decide(&Observed {
            set,
            spec,
            hash,
            nodes: &Requirements::of(spec.template).on_all(&self.nodes.list()),
            pods: &plan::by_node(owned),
            now: self.clock.now(),
        })
    }

    async fn act(
        &self,
        key: &ObjectKey,
        set: &Arc<DaemonSet>,
        spec: &Spec<'_>,
        hash: &str,
        plan: Plan,
        pods: &Api<Pod>,
    ) -> Result<(), ReconcileError> {
        for (event_type, reason, message) in &plan.tell {
            self.tell(set, *event_type, reason, message);
        }
        let going = plan.delete.iter();
        let uids = going.filter_map(|pod| pod.metadata.uid.clone()).collect();
        self.expectations.expect(key, plan.create.len(), uids);
        let control = PodControl {
            key,
            owner: set.as_ref(),
            pods,
            expectations: &self.expectations,
            recorder: &self.recorder,
        };
        let template = pod_from(set.as_ref(), &placement::template_for_pods(spec, hash));
        let pinned = |number: usize| {
            let mut pod = template.clone();
            placement::pin(&mut pod, &plan.create[number]);
            pod
        };
        let created = control.create(plan.create.len(), pinned).await;
        let deleted = control.delete(plan.delete.iter().map(Arc::as_ref)).await;
        created.map_err(ReconcileError::Create)?;
        deleted.map_err(ReconcileError::Delete)
    }
}
