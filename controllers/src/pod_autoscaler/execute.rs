//! Reads and writes the scale of a target, and writes the status.

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use kube::Api;
use kube::api::PostParams;
use kube::core::DynamicObject;

use coracle_client::events::EventType;
use coracle_client::patch;

use super::{Controller, Decision, ReconcileError, Scale, Status, plan, status};
use crate::refusal;

/// Others may scale at the same time; what was decided stands all the same.
const RESCALE_TRIES: usize = 5;

pub(super) fn replicas(scale: &Scale) -> i32 {
    scale
        .spec
        .as_ref()
        .and_then(|spec| spec.replicas)
        .unwrap_or(0)
}

pub(super) fn namespace(autoscaler: &HorizontalPodAutoscaler) -> &str {
    autoscaler.metadata.namespace.as_deref().unwrap_or_default()
}

fn target(autoscaler: &HorizontalPodAutoscaler) -> (&str, &str, &str) {
    let target = &autoscaler.spec.scale_target_ref;
    let version = target.api_version.as_deref().unwrap_or_default();
    (version, &target.kind, &target.name)
}

impl Controller {
    /// The target's scale, and where it is; or why there is none.
    pub(super) async fn scale_of(
        &self,
        autoscaler: &HorizontalPodAutoscaler,
    ) -> Result<(Api<DynamicObject>, Scale), String> {
        let (version, kind, name) = target(autoscaler);
        if !plan::has_version(autoscaler) {
            return Err(format!("unexpected GroupVersion string: {version}"));
        }
        let found = self.kinds.find_in_group(version, kind).await;
        let found = found.map_err(|error| error.text())?;
        let client = self.client.clone();
        let objects = Api::namespaced_with(client, namespace(autoscaler), &found.resource);
        let scale = objects.get_scale(name).await;
        let scale = scale.map_err(|error| refusal::message(&error))?;
        Ok((objects, scale))
    }

    pub(super) async fn rescale(
        &self,
        autoscaler: &HorizontalPodAutoscaler,
        objects: &Api<DynamicObject>,
        mut scale: Scale,
        decision: &Decision,
        status: &mut Status,
    ) -> Result<(), kube::Error> {
        let (_, _, name) = target(autoscaler);
        let (replicas, reason) = (decision.replicas, &decision.reason);
        let (mut tries, parameters) = (1, PostParams::default());
        let refused = loop {
            scale.spec.get_or_insert_default().replicas = Some(replicas);
            match objects.replace_scale(name, &parameters, &scale).await {
                Ok(_) => break None,
                Err(error) if refusal::is_conflict(&error) && tries < RESCALE_TRIES => {
                    tries += 1;
                    if let Ok(latest) = objects.get_scale(name).await {
                        scale = latest;
                    }
                }
                Err(error) => break Some(error),
            }
        };
        if let Some(error) = refused {
            let why = refusal::message(&error);
            let text = format!("New size: {replicas}; reason: {reason}; error: {why}");
            self.tell(autoscaler, EventType::Warning, "FailedRescale", &text);
            let text = format!("the HPA controller was unable to update the target scale: {why}");
            self.set(status, status::ABLE, false, "FailedUpdateScale", &text);
            return Err(error);
        }
        let text = format!("the HPA controller was able to update the target scale to {replicas}");
        self.set(status, status::ABLE, true, "SucceededRescale", &text);
        let text = format!("New size: {replicas}; reason: {reason}");
        self.tell(autoscaler, EventType::Normal, "SuccessfulRescale", &text);
        status::drop_scaled_to_zero(status);
        Ok(())
    }

    pub(super) async fn write(
        &self,
        autoscaler: &HorizontalPodAutoscaler,
        status: Status,
    ) -> Result<(), ReconcileError> {
        if !status::differs(&status::of(autoscaler), &status) {
            return Ok(());
        }
        let autoscalers = Api::namespaced(self.client.clone(), namespace(autoscaler));
        let wanted = HorizontalPodAutoscaler {
            status: Some(status),
            ..autoscaler.clone()
        };
        match patch::replace_status(&autoscalers, &wanted).await {
            Ok(_) => Ok(()),
            Err(error) if refusal::is_not_found(&error) => Ok(()),
            Err(error) => {
                let why = refusal::message(&error);
                self.tell(autoscaler, EventType::Warning, "FailedUpdateStatus", &why);
                Err(ReconcileError::Status(error))
            }
        }
    }

    /// Where something else has failed already.
    pub(super) async fn write_or_log(&self, autoscaler: &HorizontalPodAutoscaler, status: Status) {
        if let Err(error) = self.write(autoscaler, status).await {
            tracing::warn!(control_loop = super::LOOP, %error, "the status is not written");
        }
    }
}
