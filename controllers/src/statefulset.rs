//! Keeps the pods of a StatefulSet: each with a name, an ordinal and volumes of its own, made and
//! replaced in order unless the set says otherwise.
//!
//! Reads the sets, their pods, claims and revisions; writes pods, claims, revisions and `status`.
//! Never deletes a claim: it says who owns it, and the garbage collector does the rest. A pod's
//! name is fixed by its ordinal, so a cache that lags can cause a conflict and no pod too many;
//! expectations keep it from causing those.

use std::sync::Arc;
use std::time::Duration;

use coracle_client::clock::Clock;
use coracle_client::control_loop::{self, Requeue};
use coracle_client::events::Recorder;
use coracle_client::expectations::{EXPECTATIONS_TIMEOUT, Expectations};
use coracle_client::informer::Informer;
use coracle_client::own_writes::OwnWrites;
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey};
use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet, StatefulSetSpec};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::Api;

use crate::labels::Selector;
use crate::ownership::{self, Claims};
use crate::{Context, history};

mod claims;
mod execute;
mod identity;
mod plan; // Pure. Start reading here.
mod revisions;
mod spec;
mod status;
mod watch;

use execute::ReconcileError;
use identity::Revision;
use revisions::Newest;

/// As many as upstream's default; a worker waits for the server most of its time.
const WORKERS: usize = 5;
/// Upstream's name of the component, which events carry.
const COMPONENT: &str = "statefulset-controller";

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    run_loop(context).boxed()
}

async fn run_loop(context: Context) {
    let controller = Arc::new(Controller {
        client: context.client.clone(),
        sets: context.informers.get(),
        pods: context.informers.get(),
        claims: context.informers.get(),
        revisions: context.informers.get(),
        queue: WorkQueue::new(),
        expectations: Expectations::new(),
        own_writes: OwnWrites::new(),
        recorder: context.recorder(COMPONENT),
        clock: context.clock.clone(),
    });
    ownership::index_by_controller(&controller.pods);
    ownership::index_by_controller(&controller.revisions);
    let told = controller.clone();
    controller
        .sets
        .on_change(move |change| told.set_changed(change));
    let told = controller.clone();
    controller
        .pods
        .on_change(move |change| told.pod_changed(change));
    let told = controller.clone();
    controller
        .claims
        .on_change(move |change| told.claim_changed(change));
    let synced = controller.sets.synced().await
        && controller.pods.synced().await
        && controller.claims.synced().await
        && controller.revisions.synced().await;
    if !synced {
        return;
    }
    let queue = controller.queue.clone();
    let (objects, recorder) = (controller.sets.clone(), controller.recorder.clone());
    let reconcile = control_loop::with(controller, |it, key| Box::pin(it.reconcile(key)))
        .telling(objects, recorder);
    control_loop::run(COMPONENT, queue, WORKERS, reconcile, context.shutdown).await;
}

struct Controller {
    client: Client,
    sets: Informer<StatefulSet>,
    pods: Informer<Pod>,
    claims: Informer<PersistentVolumeClaim>,
    revisions: Informer<ControllerRevision>,
    queue: WorkQueue<ObjectKey>,
    expectations: Expectations,
    own_writes: OwnWrites,
    recorder: Recorder,
    clock: Clock,
}

/// The revisions of a set, oldest first.
struct History {
    all: Vec<Arc<ControllerRevision>>,
    current: Arc<ControllerRevision>,
    update: Arc<ControllerRevision>,
    collisions: i32,
}

impl Controller {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Requeue, ReconcileError> {
        let Some(set) = self.sets.get(key) else {
            self.expectations.forget(key);
            self.own_writes.forget(key);
            return Ok(Requeue::Never); // Garbage collection owns what is left.
        };
        if let Some(wait) = self.own_writes.behind(&*set) {
            return Ok(Requeue::After(wait)); // What it waits for brings the next pass.
        }
        let Some((spec, selector)) = selected(&set) else {
            return Ok(Requeue::Never); // No pass can make sense of its selector.
        };
        if !self.expectations.satisfied(key) {
            // What is waited for brings the next pass, or its end does.
            return Ok(Requeue::After(
                EXPECTATIONS_TIMEOUT + Duration::from_secs(1),
            ));
        }
        let uid = set.metadata.uid.as_deref().unwrap_or_default();
        let pods = ownership::owned_or_orphaned(&self.pods, uid, &key.namespace);
        let members = plan::members(&set, &selector, &pods);
        let sets = Api::<StatefulSet>::namespaced(self.client.clone(), &key.namespace);
        let Some(history) = self.history(key, &sets, &set, spec, &selector).await? else {
            return Ok(Requeue::Never);
        };
        let api = Api::<Pod>::namespaced(self.client.clone(), &key.namespace);
        ownership::execute(&sets, &*set, &api, &members.adopt, &members.release).await?;
        let (current, update) = (
            revisions::template(&history.current, spec),
            revisions::template(&history.update, spec),
        );
        let name = |one: &'_ ControllerRevision| one.metadata.name.clone().unwrap_or_default();
        let (current_name, update_name) = (name(&history.current), name(&history.update));
        let find = |name: &str| self.claims.get(&ObjectKey::new(&key.namespace, name));
        let observed = plan::Observed {
            set: &set,
            spec,
            current: Revision {
                name: &current_name,
                template: &current,
            },
            update: Revision {
                name: &update_name,
                template: &update,
            },
            pods: &members.pods,
            find_claim: &find,
            now: self.clock.now(),
        };
        let mut plan = plan::plan(&observed);
        plan.status.collision_count = Some(history.collisions);
        // Boxed: the objects that it writes make it large.
        let requeue = Box::pin(self.execute(key, &observed, plan)).await;
        let truncated = self.truncate(key, &observed, &history).await;
        requeue.and_then(|requeue| truncated.map(|()| requeue))
    }

    /// Adopts revisions, and makes the set's template the newest. `None` for a set that is being
    /// deleted and has none: its revisions went before it.
    async fn history(
        &self,
        key: &ObjectKey,
        sets: &Api<StatefulSet>,
        set: &StatefulSet,
        spec: &StatefulSetSpec,
        selector: &Selector,
    ) -> Result<Option<History>, ReconcileError> {
        let api = Api::<ControllerRevision>::namespaced(self.client.clone(), &key.namespace);
        let uid = set.metadata.uid.as_deref().unwrap_or_default();
        let known = ownership::owned_or_orphaned(&self.revisions, uid, &key.namespace);
        let claims = Claims::of(&set.metadata, selector, known);
        ownership::execute(sets, set, &api, &claims.adopt, &[]).await?;
        let mut all = claims.owned;
        history::sort(&mut all);
        let known = set
            .status
            .as_ref()
            .and_then(|status| status.collision_count);
        let mut collisions = known.unwrap_or(0);
        let deleting = set.metadata.deletion_timestamp.is_some();
        let data = history::data_of(&spec.template);
        let update = match revisions::newest(&all, &data) {
            Newest::Is(revision) => revision,
            Newest::Renumber(revision, _) if deleting => revision,
            Newest::Create(_) if deleting => return Ok(None),
            Newest::Renumber(revision, number) => {
                Arc::new(revisions::renumber(&api, &revision, number).await?)
            }
            Newest::Create(number) => {
                let made = revisions::create(&self.client, set, spec, &data, number).await?;
                let (made, count) = made.ok_or(ReconcileError::NamesTaken)?;
                collisions = count;
                Arc::new(made)
            }
        };
        Ok(Some(History {
            current: revisions::current(set, &all).unwrap_or_else(|| update.clone()),
            all,
            update,
            collisions,
        }))
    }
}

/// The specification, and a selector that can be used.
fn selected(set: &StatefulSet) -> Option<(&StatefulSetSpec, Selector)> {
    let spec = set.spec.as_ref()?;
    let selector = Selector::from_label_selector(&spec.selector)?;
    // One that matches everything must not adopt everything.
    (!selector.is_empty()).then_some((spec, selector))
}

#[cfg(test)]
mod tests;
