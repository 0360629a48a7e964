//! Takes the finalizer off pods that no job counts any more, so that they can be deleted.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use coracle_client::ObjectKey;
use coracle_client::control_loop::Requeue;
use coracle_client::informer::Informer;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;

use super::Controller;
use super::execute::{ReconcileError, release};
use super::seen::has_finalizer;
use super::spec;
use crate::ownership::{self, controller_of};
use crate::refusal;

/// Where to look for them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Orphans {
    Pod(ObjectKey),
    /// All of a job that is finished or gone.
    OfJob {
        namespace: String,
        uid: String,
    },
}

impl Orphans {
    pub(super) fn of_job(namespace: &str, uid: &str) -> Self {
        Self::OfJob {
            namespace: namespace.to_owned(),
            uid: uid.to_owned(),
        }
    }
}

impl Display for Orphans {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pod(key) => write!(f, "pod {key}"),
            Self::OfJob { namespace, uid } => write!(f, "pods of {namespace}/{uid}"),
        }
    }
}

/// All pods there.
pub(super) fn pods(at: &Orphans, pods: &Informer<Pod>) -> Vec<Arc<Pod>> {
    match at {
        Orphans::Pod(key) => pods.get(key).into_iter().collect(),
        Orphans::OfJob { uid, .. } => ownership::owned(pods, uid),
    }
}

impl Controller {
    pub(super) async fn release_orphans(&self, at: &Orphans) -> Result<Requeue, ReconcileError> {
        let (Orphans::Pod(ObjectKey { namespace, .. }) | Orphans::OfJob { namespace, .. }) = at;
        let pods = pods(at, &self.pods);
        let api = Api::<Pod>::namespaced(self.client.clone(), namespace);
        // One that is refused keeps none of the others.
        let mut refused = None;
        for pod in pods.iter().filter(|pod| self.is_orphan(pod)) {
            match release(&api, pod).await {
                Err(error) if !refusal::is_not_found(&error) => refused = Some(error),
                _ => {}
            }
        }
        match refused {
            Some(error) => Err(ReconcileError::Release(error)),
            None => Ok(Requeue::Never),
        }
    }

    /// Has the finalizer, and neither a job at work nor another controller will remove it.
    fn is_orphan(&self, pod: &Pod) -> bool {
        if !has_finalizer(pod) {
            return false;
        }
        let Some(controller) = controller_of(&pod.metadata) else {
            return true;
        };
        if controller.kind != "Job" || controller.api_version != "batch/v1" {
            return false;
        }
        let job = self.resolve(pod, controller);
        job.is_none_or(|job| spec::is_finished(&job) && !spec::is_managed_elsewhere(&job))
    }
}
