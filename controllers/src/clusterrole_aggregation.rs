//! Gathers the rules of an aggregated ClusterRole from those that its selectors name.
//!
//! Reads ClusterRoles; applies `rules` of those with an `aggregationRule`, and nothing else. Any
//! change of any ClusterRole looks at all aggregated ones: there are few, and which feeds which is
//! only known after their labels were matched. Roles may feed each other over several steps.

use crate::Context;
use coracle_client::control_loop::{self, Requeue};
use coracle_client::informer::Informer;
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey, key_of};
use futures::future::BoxFuture;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use std::sync::Arc;

mod plan; // Pure. Start reading here.

/// As upstream applies them; the fields it owns are told apart by this name.
const FIELD_MANAGER: &str = "clusterrole-aggregation-controller";
/// Upstream's default.
const WORKERS: usize = 5;

#[derive(Debug, thiserror::Error)]
pub(crate) enum AggregateError {
    #[error("a selector of the cluster role {role} cannot be understood")]
    Selector { role: String },
    #[error("cannot apply the rules of the cluster role {role}")]
    Apply { role: String, source: kube::Error },
}

struct Controller {
    client: Client,
    roles: Informer<ClusterRole>,
}

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let queue = WorkQueue::<ObjectKey>::new();
        let controller = Arc::new(Controller {
            client: context.client.clone(),
            roles: context.informers.get(),
        });
        let (added, told) = (queue.clone(), Arc::downgrade(&controller));
        controller.roles.on_change(move |_| {
            let Some(controller) = told.upgrade() else {
                return;
            };
            for role in controller.roles.list() {
                if role.aggregation_rule.is_some() {
                    added.add(key_of(role.as_ref()));
                }
            }
        });
        if !controller.roles.synced().await {
            return;
        }
        let (objects, recorder) = (
            controller.roles.clone(),
            context.failures("clusterrole-aggregation-controller"),
        );
        let reconcile = control_loop::with(controller, |it, key| Box::pin(it.reconcile(key)))
            .telling(objects, recorder);
        control_loop::run(
            "clusterrole-aggregation",
            queue,
            WORKERS,
            reconcile,
            context.shutdown,
        )
        .await;
    })
}

impl Controller {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Requeue, AggregateError> {
        let Some(role) = self.roles.get(key) else {
            return Ok(Requeue::Never);
        };
        let gathered =
            plan::plan(&role, self.roles.list()).map_err(|_| AggregateError::Selector {
                role: key.name.clone(),
            })?;
        let Some(rules) = gathered else {
            return Ok(Requeue::Never);
        };
        let wanted = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": { "name": key.name },
            "rules": rules,
        });
        let roles: Api<ClusterRole> = Api::all(self.client.clone());
        let how = PatchParams::apply(FIELD_MANAGER).force();
        match roles.patch(&key.name, &how, &Patch::Apply(&wanted)).await {
            Ok(_) => Ok(Requeue::Never),
            Err(source) => Err(AggregateError::Apply {
                role: key.name.clone(),
                source,
            }),
        }
    }
}

#[cfg(test)]
mod tests;
