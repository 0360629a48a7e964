//! Keeps `status` of every ResourceQuota what its objects use.
//!
//! The key is a namespace: all its quotas are counted in one pass, by the rules by which admission
//! charges. Reads the quotas first and their objects after that, from the server and not from a
//! cache, and writes with the revision that was read. Admission charges in one commit with the
//! object, so a count that misses an object is of an older quota, and is refused.
//!
//! Keeps no objects from one pass to the next: only kinds that some quota may count are watched, by
//! metadata alone, for what goes away; pods come from the shared informer. Never deletes or changes
//! an object.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use coracle_api::amounts::Amounts;
use coracle_api::quota::{DeviceClasses, Evaluator, Quota, kinds_behind, kinds_maybe_behind};
use coracle_client::control_loop::{self, Requeue};
use coracle_client::events::reference;
use coracle_client::informer::{Change, Informer};
use coracle_client::queue::WorkQueue;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{Pod, ResourceQuota};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::Context;

mod tally; // Pure: what the quotas of a namespace come to. Start reading here.
mod triggers; // Pure: which changes may change what is used.

mod kinds; // What the server calls the kinds that quotas count.
mod live; // What the server says, page by page.
mod monitors; // Watches for what goes away.

use kinds::Kinds;
use live::{Live, LiveError};
use monitors::Monitors;
use tally::Tally;

/// Namespaces counted at the same time: upstream has 5, for larger machines.
const WORKERS: usize = 2;
/// Upstream's period of counting everything anew.
const RESYNC_PERIOD: Duration = Duration::from_secs(5 * 60);
/// Objects that go within this are counted once.
const GATHER: Duration = Duration::from_millis(20);
/// A quota that came into force is counted again after this: what was on its way when it did was
/// neither charged nor counted.
const SETTLE: Duration = Duration::from_millis(200);

/// Group and plural.
type Kind = (String, String);

struct Controller {
    live: Live,
    kinds: Kinds,
    quotas: Informer<ResourceQuota>,
    queue: WorkQueue<String>,
    /// The quotas may count other kinds than before.
    recounted: Notify,
    clock: coracle_client::clock::Clock,
}

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let controller = Arc::new(Controller {
            live: Live::new(context.client.clone()),
            kinds: Kinds::new(context.client.clone()),
            quotas: context.informers.get(),
            queue: WorkQueue::new(),
            recounted: Notify::new(),
            clock: context.clock.clone(),
        });
        controller.follow_quotas();
        controller.follow_pods(&context.informers.get());
        if !controller.quotas.synced().await {
            return;
        }
        let reconcile = control_loop::with(Arc::clone(&controller), |it, namespace: &String| {
            Box::pin(it.reconcile(namespace))
        });
        let quotas = controller.quotas.clone();
        let recorder = context.failures("resourcequota-controller");
        let reconcile = reconcile.telling_of(recorder, move |namespace: &String| {
            let quotas = quotas.list_namespace(namespace);
            quotas.into_iter().map(|quota| reference(&*quota))
        });
        let shutdown = context.shutdown.clone();
        let work = control_loop::run(
            "resource-quota",
            controller.queue.clone(),
            WORKERS,
            reconcile,
            shutdown.clone(),
        );
        tokio::join!(
            work,
            keep_monitoring(&controller, shutdown.clone()),
            keep_resyncing(&controller, shutdown),
        );
    })
}

async fn keep_monitoring(controller: &Arc<Controller>, shutdown: CancellationToken) {
    let mut monitors = Monitors::default();
    loop {
        let wanted = controller.watched_kinds();
        let found = controller.kinds.find(&wanted).await.resources;
        let all_found = found.len() == wanted.len();
        monitors.follow(controller, found);
        // What the server does not serve yet may come to be.
        let look_again = async {
            if all_found {
                std::future::pending().await
            } else {
                tokio::time::sleep(kinds::DISCOVERY_PERIOD).await;
            }
        };
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = controller.recounted.notified() => {}
            () = look_again => {}
        }
    }
}

async fn keep_resyncing(controller: &Arc<Controller>, shutdown: CancellationToken) {
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(RESYNC_PERIOD) => {}
        }
        for quota in controller.quotas.list() {
            controller.queue.add(namespace_of(&quota));
        }
    }
}

fn namespace_of(quota: &ResourceQuota) -> String {
    quota.metadata.namespace.clone().unwrap_or_default()
}

impl Controller {
    fn follow_quotas(self: &Arc<Self>) {
        let controller = Arc::clone(self);
        self.quotas.on_change(move |change| {
            let needs_count = match change {
                Change::Updated { old, new } => triggers::quota_changed(old, new),
                Change::Added(_) | Change::Deleted(_) | Change::Resync(_) => true,
            };
            if needs_count {
                controller.queue.add(namespace_of(change.object()));
                controller.recounted.notify_one();
            }
        });
    }

    fn follow_pods(self: &Arc<Self>, pods: &Informer<Pod>) {
        let controller = Arc::clone(self);
        let pods_kind = (String::new(), "pods".to_owned());
        pods.on_change(move |change| {
            if controller.quotas.is_empty() {
                return;
            }
            let frees = match change {
                Change::Deleted(_) => true,
                Change::Updated { old, new } => triggers::pod_changed(old, new),
                Change::Added(_) | Change::Resync(_) => false,
            };
            if frees {
                let namespace = change.object().metadata.namespace.as_deref();
                controller.replenish(&pods_kind, namespace.unwrap_or_default());
            }
        });
    }

    /// Counts anew where a quota counts objects of this kind.
    fn replenish(&self, kind: &Kind, namespace: &str) {
        let quotas = self.quotas.list_namespace(namespace);
        if quotas.iter().any(|quota| may_count(quota, kind)) {
            self.queue.add_after(namespace.to_owned(), GATHER);
        }
    }

    /// The same in all namespaces.
    fn replenish_all(&self, kind: &Kind) {
        let quotas = self.quotas.list();
        for quota in quotas.iter().filter(|quota| may_count(quota, kind)) {
            self.queue.add(namespace_of(quota));
        }
    }

    /// The kinds that some quota may count, without pods, which the shared informer watches.
    fn watched_kinds(&self) -> BTreeSet<Kind> {
        let quotas = self.quotas.list();
        let names: BTreeSet<&String> = quotas.iter().flat_map(|quota| names_of(quota)).collect();
        let kinds = names.iter().flat_map(|name| kinds_maybe_behind(name));
        kinds.filter(|(_, plural)| plural != "pods").collect()
    }

    async fn reconcile(&self, namespace: &str) -> Result<Requeue, LiveError> {
        let stored = self.live.quotas(namespace).await?;
        if stored.is_empty() {
            return Ok(Requeue::Never);
        }
        let quotas: Vec<Quota> = stored.iter().map(Quota::of).collect();
        let names = quotas.iter().flat_map(|quota| quota.spec_hard.names());
        let names: BTreeSet<String> = names.map(str::to_owned).collect();
        let classes = self.live.device_classes(names.iter()).await?;
        let kinds = names.iter().flat_map(|name| kinds_behind(name, &classes));
        let found = self.kinds.find(&kinds.collect()).await;
        let mut tally = Tally::new(&quotas, &classes, self.clock.now().as_second());
        for (kind, resource) in &found.resources {
            let Some(evaluator) = Evaluator::of(&kind.0, &kind.1) else {
                continue;
            };
            match evaluator {
                Evaluator::Count { .. } => {
                    let count = self.live.count(resource, namespace).await?;
                    tally.add_count(&evaluator, count);
                }
                Evaluator::ResourceClaims => {
                    let claims = self.live.all(resource, namespace).await?;
                    let pods = self.live.pods_of(&claims, namespace).await?;
                    tally.add_claims(&claims, &pods);
                }
                _ => {
                    tally.begin(&evaluator);
                    let mut pages = self.live.pages(resource, namespace);
                    while let Some(page) = pages.next().await? {
                        tally.add(&evaluator, &page);
                    }
                }
            }
        }
        let (mut is_new, mut failed) = (false, None);
        for (quota, status) in stored.iter().zip(tally.statuses()) {
            let Some(status) = status else { continue };
            if status.lacks_any_of(&found.unknown, &classes) {
                continue;
            }
            // One that cannot be written keeps none of the others.
            match self.live.write_status(quota, &status).await {
                Ok(()) => is_new |= status.comes_into_force,
                Err(error) => failed = Some(error),
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        if !found.unknown.is_empty() {
            return Err(LiveError::Discover(found.unknown));
        }
        Ok(if is_new {
            Requeue::After(SETTLE)
        } else {
            Requeue::Never
        })
    }
}

/// Names that a quota limits, or limited until now.
fn names_of(quota: &ResourceQuota) -> impl Iterator<Item = &String> {
    let spec = quota.spec.as_ref().and_then(|spec| spec.hard.as_ref());
    let status = quota.status.as_ref().and_then(|one| one.hard.as_ref());
    spec.into_iter().chain(status).flat_map(|hard| hard.keys())
}

/// Whether a quota may count objects of this kind; the device classes may say otherwise.
fn may_count(quota: &ResourceQuota, kind: &Kind) -> bool {
    let evaluator = Evaluator::of(&kind.0, &kind.1);
    evaluator.is_some_and(|evaluator| names_of(quota).any(|name| evaluator.may_count(name)))
}

/// The status that a quota should have.
#[derive(Debug)]
struct NewStatus {
    hard: Amounts,
    used: Amounts,
    /// Limits take effect by this that did not before.
    comes_into_force: bool,
}

impl NewStatus {
    /// Whether a limit would come into force for which nobody could count these kinds. Admission
    /// refuses everything for such a one.
    fn lacks_any_of(&self, kinds: &BTreeSet<Kind>, classes: &DeviceClasses) -> bool {
        let mut uncounted = self.hard.names().filter(|name| !self.used.has(name));
        uncounted.any(|name| !kinds_behind(name, classes).is_disjoint(kinds))
    }

    fn to_value(&self) -> serde_json::Value {
        serde_json::json!({ "hard": self.hard.to_value(), "used": self.used.to_value() })
    }
}

#[cfg(test)]
mod tests;
