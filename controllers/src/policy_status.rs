//! Holds the expressions of ValidatingAdmissionPolicies against the kinds that they are about, and
//! tells in their status what does not fit.
//!
//! Reads the policies; applies `status` of those whose spec is newer than what it has seen. Changes
//! nothing of what a policy does. Kinds that definitions brought are not looked at.

use crate::Context;
use coracle_api::kinds::admission_registration::type_check;
use coracle_client::control_loop::{self, Requeue};
use coracle_client::informer::Informer;
use coracle_client::queue::WorkQueue;
use coracle_client::{Client, ObjectKey, key_of};
use futures::future::BoxFuture;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use std::sync::Arc;

/// As upstream applies it.
const FIELD_MANAGER: &str = "validatingadmissionpolicy-status";
/// Upstream's default.
const WORKERS: usize = 5;

#[derive(Debug, thiserror::Error)]
pub(crate) enum StatusError {
    #[error("the policy {policy} cannot be read")]
    Unreadable {
        policy: String,
        source: serde_json::Error,
    },
    #[error("cannot apply the status of the policy {policy}")]
    Apply { policy: String, source: kube::Error },
}

struct Controller {
    client: Client,
    policies: Informer<ValidatingAdmissionPolicy>,
}

pub(crate) fn run(context: Context) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let queue = WorkQueue::<ObjectKey>::new();
        let controller = Arc::new(Controller {
            client: context.client.clone(),
            policies: context.informers.get(),
        });
        let added = queue.clone();
        controller
            .policies
            .on_change(move |change| added.add(key_of(change.object().as_ref())));
        if !controller.policies.synced().await {
            return;
        }
        let (objects, recorder) = (controller.policies.clone(), context.failures(FIELD_MANAGER));
        let reconcile = control_loop::with(controller, |it, key| Box::pin(it.reconcile(key)))
            .telling(objects, recorder);
        control_loop::run(FIELD_MANAGER, queue, WORKERS, reconcile, context.shutdown).await;
    })
}

impl Controller {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Requeue, StatusError> {
        let Some(policy) = self.policies.get(key) else {
            return Ok(Requeue::Never);
        };
        let name = || key.name.clone();
        let Some(status) = plan(&policy).map_err(|source| StatusError::Unreadable {
            policy: name(),
            source,
        })?
        else {
            return Ok(Requeue::Never);
        };
        let wanted = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": { "name": key.name },
            "status": status,
        });
        let policies: Api<ValidatingAdmissionPolicy> = Api::all(self.client.clone());
        let how = PatchParams::apply(FIELD_MANAGER).force();
        let patch = Patch::Apply(&wanted);
        match policies.patch_status(&key.name, &how, &patch).await {
            Ok(_) => Ok(Requeue::Never),
            Err(source) => Err(StatusError::Apply {
                policy: name(),
                source,
            }),
        }
    }
}

/// The status to apply; nothing for a policy that has been looked at.
fn plan(policy: &ValidatingAdmissionPolicy) -> Result<Option<Value>, serde_json::Error> {
    let generation = policy.metadata.generation.unwrap_or(0);
    let seen = policy
        .status
        .as_ref()
        .and_then(|one| one.observed_generation);
    if generation <= seen.unwrap_or(0) {
        return Ok(None);
    }
    let spec = serde_json::to_value(&policy.spec)?;
    let warnings = type_check::warnings(&spec);
    let mut checked = json!({});
    if !warnings.is_empty() {
        checked["expressionWarnings"] = warnings.into();
    }
    Ok(Some(
        json!({ "observedGeneration": generation, "typeChecking": checked }),
    ))
}

#[cfg(test)]
mod tests;
