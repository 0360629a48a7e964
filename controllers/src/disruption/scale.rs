//! How many pods the controllers of a budget's pods ask for.
//!
//! Those that everybody uses are in caches; of any other kind the server is asked for the
//! subresource `scale`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Api;
use kube::core::{ApiResource, DynamicObject};

use super::{Controller, plan};
use crate::ownership::{controller_of, owner_of};
use crate::refusal;
use crate::scalable::FindError;

/// What the controllers ask for together, and the pods that have none.
#[derive(Debug, Default)]
pub(super) struct Scale {
    pub total: i32,
    pub unmanaged: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum ScaleError {
    #[error("found no controllers for pod {pod:?}")]
    NoController { pod: String },
    #[error(transparent)]
    Find(#[from] FindError),
    #[error("{resource} does not implement the scale subresource")]
    NotScalable { resource: String },
    #[error("cannot read the scale of the controller")]
    Read(#[source] kube::Error),
}

impl ScaleError {
    /// Another try may do.
    pub(super) fn is_passing(&self) -> bool {
        matches!(self, Self::Find(FindError::Discover(_)) | Self::Read(_))
    }

    /// What users are told of it: where the server refused, its own words.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Find(source) => source.text(),
            Self::Read(source) => refusal::message(source),
            other => other.to_string(),
        }
    }
}

/// A controller by its uid, and how many pods it asks for.
type Asked = (String, i32);

impl Controller {
    pub(super) async fn scale(
        &self,
        budget: &PodDisruptionBudget,
        pods: &[Arc<Pod>],
    ) -> Result<Scale, ScaleError> {
        if !budget.spec.as_ref().is_some_and(plan::needs_scale) {
            return Ok(Scale::default());
        }
        let (mut scales, mut looked_at) = (BTreeMap::new(), BTreeSet::new());
        let mut unmanaged = Vec::new();
        for pod in pods {
            let name = || pod.metadata.name.clone().unwrap_or_default();
            let Some(controller) = controller_of(&pod.metadata) else {
                unmanaged.push(name());
                continue;
            };
            if !looked_at.insert(&controller.uid) {
                continue;
            }
            let found = match self.known(pod) {
                Some(known) => Some(known),
                None => self.ask(pod, controller).await?,
            };
            let (uid, replicas) = found.ok_or_else(|| ScaleError::NoController { pod: name() })?;
            scales.insert(uid, replicas);
        }
        let total = scales
            .values()
            .fold(0, |sum: i32, one| sum.saturating_add(*one));
        Ok(Scale { total, unmanaged })
    }

    /// One that is in a cache; for a ReplicaSet of a Deployment, the Deployment.
    fn known(&self, pod: &Pod) -> Option<Asked> {
        let meta = &pod.metadata;
        let asked = |uid: &Option<String>, replicas: Option<i32>| {
            Some((uid.clone().unwrap_or_default(), replicas.unwrap_or(1)))
        };
        if let Some(set) = owner_of(&self.replica_sets, meta) {
            let above = controller_of(&set.metadata);
            if above.is_some_and(|above| above.kind == "Deployment") {
                let deployment = owner_of(&self.deployments, &set.metadata)?;
                let replicas = deployment.spec.as_ref().and_then(|spec| spec.replicas);
                return asked(&deployment.metadata.uid, replicas);
            }
            let replicas = set.spec.as_ref().and_then(|spec| spec.replicas);
            return asked(&set.metadata.uid, replicas);
        }
        if let Some(set) = owner_of(&self.stateful_sets, meta) {
            let replicas = set.spec.as_ref().and_then(|spec| spec.replicas);
            return asked(&set.metadata.uid, replicas);
        }
        let controller = owner_of(&self.replication_controllers, meta)?;
        let replicas = controller.spec.as_ref().and_then(|spec| spec.replicas);
        asked(&controller.metadata.uid, replicas)
    }

    /// `None` when the controller is not there, or another one of the same name is.
    async fn ask(
        &self,
        pod: &Pod,
        controller: &OwnerReference,
    ) -> Result<Option<Asked>, ScaleError> {
        let resource = self.resource_of(controller).await?;
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let objects =
            Api::<DynamicObject>::namespaced_with(self.client.clone(), namespace, &resource);
        match objects.get_scale(&controller.name).await {
            Ok(scale) if scale.metadata.uid.as_ref() == Some(&controller.uid) => {
                let replicas = scale.spec.and_then(|spec| spec.replicas);
                Ok(Some((controller.uid.clone(), replicas.unwrap_or(0))))
            }
            Ok(_) => Ok(None),
            Err(error) if refusal::is_not_found(&error) => Ok(None),
            Err(error) => Err(ScaleError::Read(error)),
        }
    }

    /// The resource of a controller's kind, if it has a scale.
    async fn resource_of(&self, controller: &OwnerReference) -> Result<ApiResource, ScaleError> {
        let OwnerReference {
            api_version, kind, ..
        } = controller;
        let found = self.kinds.find(api_version, kind).await?;
        if !found.has_scale {
            let resource = found.qualified();
            return Err(ScaleError::NotScalable { resource });
        }
        Ok(found.resource)
    }
}
