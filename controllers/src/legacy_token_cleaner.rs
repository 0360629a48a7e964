//! Takes tokens of the older kind from those who seem to use them no more: the Secret is marked,
//! which the API server refuses from then on, and after as long again it is deleted.
//!
//! Only those that an account names among its `secrets`, as old clusters made them, and that no pod
//! mounts. Reads Secrets, ServiceAccounts and Pods, and since when uses are noted; marks and deletes
//! Secrets. Looks once a day, as days are what is noted.

use crate::{Context, refusal};
use coracle_client::clock::Clock;
use coracle_client::control_loop::{self, Requeue};
use coracle_client::informer::Informer;
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey, key_of};
use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, ServiceAccount};
use kube::api::{Api, DeleteParams, Patch, PatchParams, Preconditions};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

mod plan; // Pure. Start reading here.

use plan::{Limits, Verdict};

pub(crate) const NAME: &str = "legacy-serviceaccount-token-cleaner-controller";
const SECRETS: &str = "legacy-serviceaccount-token-cleaner-secrets";
/// Upstream's, a year.
pub(crate) const PERIOD_DEFAULT: Duration = Duration::from_hours(365 * 24);
const WORKERS: usize = 1;
const LOOK_EVERY: Duration = Duration::from_hours(24);
/// After a Secret was found changed: the copy shows it by then.
const LOOK_AGAIN: Duration = Duration::from_mins(1);

/// Written by the API server.
const TRACKING_NAMESPACE: &str = "kube-system";
const TRACKING: &str = "kube-apiserver-legacy-service-account-token-tracking";

/// The one key there is: a pass over everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Sweep;

impl std::fmt::Display for Sweep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("all tokens in Secrets")
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum CleanError {
    #[error("cannot read since when the use of tokens is noted")]
    Since(#[source] kube::Error),
    #[error("cannot {doing} the secret {secret}")]
    Secret {
        doing: &'static str,
        secret: ObjectKey,
        source: kube::Error,
    },
}

struct Controller {
    client: Client,
    secrets: Informer<Secret>,
    accounts: Informer<ServiceAccount>,
    pods: Informer<Pod>,
    period: Duration,
    clock: Clock,
    /// Those to mark or to delete, each by itself: one that fails keeps no other waiting.
    due: WorkQueue<ObjectKey>,
}

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let controller = Arc::new(Controller {
            client: context.client.clone(),
            secrets: context.informers.get_filtered(plan::of_type()),
            accounts: context.informers.get(),
            pods: context.informers.get(),
            period: context.config.legacy_token_clean_up_period,
            clock: context.clock.clone(),
            due: WorkQueue::new(),
        });
        let it = &controller;
        if !(it.secrets.synced().await && it.accounts.synced().await && it.pods.synced().await) {
            return;
        }
        let queue = WorkQueue::<Sweep>::new();
        queue.add(Sweep);
        let (secrets, due) = (controller.secrets.clone(), controller.due.clone());
        let sweep = control_loop::with(controller.clone(), |it, _| Box::pin(it.sweep()))
            .telling_by_itself();
        let settle = control_loop::with(controller, |it, key| Box::pin(it.settle(key)))
            .telling(secrets, context.failures(NAME));
        let shutdown = context.shutdown;
        tokio::join!(
            control_loop::run(NAME, queue, WORKERS, sweep, shutdown.clone()),
            control_loop::run(SECRETS, due, WORKERS, settle, shutdown),
        );
    })
}

impl Controller {
    async fn sweep(&self) -> Result<Requeue, CleanError> {
        if let Some(limits) = self.limits(self.clock.now()).await? {
            let mut mounted = Mounted::default();
            for secret in self.secrets.list() {
                if !matches!(self.verdict(&secret, &mut mounted, &limits), Verdict::Leave) {
                    self.due.add(key_of(secret.as_ref()));
                }
            }
        }
        Ok(Requeue::After(LOOK_EVERY))
    }

    async fn settle(&self, key: &ObjectKey) -> Result<Requeue, CleanError> {
        let Some(secret) = self.secrets.get(key) else {
            return Ok(Requeue::Never);
        };
        let Some(limits) = self.limits(self.clock.now()).await? else {
            return Ok(Requeue::Never);
        };
        let done = match self.verdict(&secret, &mut Mounted::default(), &limits) {
            Verdict::Leave => return Ok(Requeue::Never),
            Verdict::Mark => self.mark(key, &secret, &limits.today).await?,
            Verdict::Delete => self.delete(key, &secret).await?,
        };
        Ok(match done {
            Done::Over => Requeue::Never,
            Done::Changed => Requeue::After(LOOK_AGAIN),
        })
    }

    fn verdict(&self, secret: &Secret, mounted: &mut Mounted, limits: &Limits) -> Verdict {
        let key = key_of(secret);
        let account = plan::account(secret);
        let account = account.map(|name| ObjectKey::new(&*key.namespace, name));
        let account = account.and_then(|account| self.accounts.get(&account));
        let is_mounted = || mounted.has(&self.pods, &key);
        plan::verdict(secret, account.as_deref(), is_mounted, limits)
    }

    /// `None` while uses are noted for too short a time, or nobody says since when.
    async fn limits(&self, now: Timestamp) -> Result<Option<Limits>, CleanError> {
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), TRACKING_NAMESPACE);
        let found = maps.get_opt(TRACKING).await.map_err(CleanError::Since)?;
        let data = found.and_then(|map| map.data).unwrap_or_default();
        Ok(plan::limits(&data, self.period, now))
    }

    /// In the very state that was looked at, as it may have been used since.
    async fn mark(
        &self,
        key: &ObjectKey,
        secret: &Secret,
        today: &str,
    ) -> Result<Done, CleanError> {
        tracing::info!(secret = %key, "a token that nobody uses is marked as invalid");
        let patch = Patch::Merge(json!({ "metadata": {
            "uid": secret.metadata.uid,
            "resourceVersion": secret.metadata.resource_version,
            "labels": { plan::INVALID_SINCE: today },
        } }));
        let (secrets, params) = (self.api(key), PatchParams::default());
        done("mark", key, secrets.patch(&key.name, &params, &patch).await)
    }

    async fn delete(&self, key: &ObjectKey, secret: &Secret) -> Result<Done, CleanError> {
        tracing::info!(secret = %key, "a token that was marked as invalid is deleted");
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: secret.metadata.uid.clone(),
                resource_version: secret.metadata.resource_version.clone(),
            }),
            ..DeleteParams::default()
        };
        done(
            "delete",
            key,
            self.api(key).delete(&key.name, &params).await,
        )
    }

    fn api(&self, key: &ObjectKey) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &key.namespace)
    }
}

enum Done {
    Over,
    /// Somebody else has changed it meanwhile.
    Changed,
}

fn done<T>(
    doing: &'static str,
    key: &ObjectKey,
    result: Result<T, kube::Error>,
) -> Result<Done, CleanError> {
    match result {
        Ok(_) => Ok(Done::Over),
        Err(error) if refusal::is_not_found(&error) => Ok(Done::Over),
        Err(error) if refusal::is_conflict(&error) => Ok(Done::Changed),
        Err(source) => Err(CleanError::Secret {
            doing,
            secret: key.clone(),
            source,
        }),
    }
}

/// The Secrets that pods name, looked up once a namespace and pass.
#[derive(Default)]
struct Mounted(BTreeMap<String, BTreeSet<String>>);

impl Mounted {
    fn has(&mut self, pods: &Informer<Pod>, secret: &ObjectKey) -> bool {
        let namespace = &secret.namespace;
        let names = self.0.entry(namespace.clone()).or_insert_with(|| {
            let pods = pods.list_namespace(namespace);
            pods.iter().flat_map(|pod| plan::secrets_of(pod)).collect()
        });
        names.contains(secret.name.as_str())
    }
}

#[cfg(test)]
mod tests;
