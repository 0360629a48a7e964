//! Carries out a plan: claims, the new set, sizes, old revisions, and the Deployment's own state.

use std::sync::Arc;
use std::time::Duration;

use coracle_client::events::{self, EventType};
use coracle_client::patch::{self, PatchError, Precondition};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use kube::Api;
use kube::api::PostParams;

use super::plan::Plan;
use super::sets::size;
use super::{Claims, Controller, ObjectKey, Requeue, conditions, status, template};
use crate::ownership::{self, ClaimError, is_controlled_by};
use crate::refusal;

/// The cache shows a set that exists within this time; then there is nothing to make.
const CACHE_LAG: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub(super) enum ReconcileError {
    #[error(transparent)]
    Claim(#[from] ClaimError),
    #[error("cannot create replica set {name}")]
    Create { name: String, source: kube::Error },
    #[error("cannot read replica set {name}")]
    Read { name: String, source: kube::Error },
    #[error("cannot change replica set {name}")]
    Update { name: String, source: PatchError },
    #[error("cannot delete replica set {name}")]
    Delete { name: String, source: kube::Error },
    #[error("cannot write the deployment")]
    Write(#[source] kube::Error),
}

/// How the creation of the new set went.
enum Creation {
    Done,
    /// Nothing more can be done in this pass.
    Stop(Requeue),
}

impl Controller {
    pub(super) async fn execute(
        &self,
        key: &ObjectKey,
        observed: &Arc<Deployment>,
        claims: Claims,
        plan: Plan,
    ) -> Result<Requeue, ReconcileError> {
        let sets = Api::<ReplicaSet>::namespaced(self.client.clone(), &key.namespace);
        let deployments = Api::<Deployment>::namespaced(self.client.clone(), &key.namespace);
        if plan.selects_all {
            let message =
                "This deployment is selecting all pods. A non-empty selector is required.";
            self.event(observed, EventType::Warning, "SelectingAll", message);
            self.write(&deployments, observed, &plan.deployment).await?;
            return Ok(Requeue::Never);
        }
        let (adopt, release) = (&claims.adopt, &claims.release);
        ownership::execute(&deployments, &**observed, &sets, adopt, release).await?;
        if let Some(set) = &plan.create
            && let Creation::Stop(requeue) = self.create(&deployments, &sets, observed, set).await?
        {
            return Ok(requeue);
        }
        for (old, new) in &plan.update {
            self.update(&sets, observed, old, new).await?;
        }
        for set in &plan.delete {
            delete(&sets, set).await?;
        }
        let acted = plan.create.is_some() || !plan.update.is_empty() || !plan.delete.is_empty();
        if !acted
            && status::is_count(observed, &plan.deployment)
            && let Some(pause) = self.own_writes.pause(key)
        {
            return Ok(plan.requeue.within(pause));
        }
        self.write(&deployments, observed, &plan.deployment).await?;
        Ok(plan.requeue)
    }

    async fn create(
        &self,
        deployments: &Api<Deployment>,
        sets: &Api<ReplicaSet>,
        observed: &Arc<Deployment>,
        set: &ReplicaSet,
    ) -> Result<Creation, ReconcileError> {
        let name = name_of(set);
        let error = match sets.create(&PostParams::default(), set).await {
            Ok(_) => {
                self.tell_size(observed, &name, 0, size(set));
                return Ok(Creation::Done);
            }
            Err(error) => error,
        };
        if refusal::is_namespace_terminating(&error) {
            return Ok(Creation::Stop(Requeue::Never));
        }
        let mut deployment = (**observed).clone();
        if refusal::is_already_exists(&error) {
            let found = sets.get(&name).await;
            let found = found.map_err(|source| ReconcileError::Read { name, source })?;
            let uid = observed.metadata.uid.as_deref().unwrap_or_default();
            if is_controlled_by(&found.metadata, uid) && template::is_new(observed, &found) {
                return Ok(Creation::Stop(Requeue::After(CACHE_LAG)));
            }
            // Another template has the same hash: count it in, and the next pass gets another.
            let status = deployment.status.get_or_insert_default();
            status.collision_count = Some(status.collision_count.unwrap_or(0) + 1);
            self.write(deployments, observed, &deployment).await?;
            return Ok(Creation::Stop(Requeue::Never));
        }
        let message = format!(
            "Failed to create new replica set \"{name}\": {}",
            refusal::message(&error)
        );
        let reason = conditions::reason::SET_CREATE_ERROR;
        status::note_create_error(&mut deployment, &message, self.clock.now());
        self.event(observed, EventType::Warning, reason, &message);
        // The creation is what failed, and that is what gets reported.
        if let Err(error) = self.write(deployments, observed, &deployment).await {
            tracing::debug!(error = %error, "condition not written");
        }
        Err(ReconcileError::Create {
            name,
            source: error,
        })
    }

    async fn update(
        &self,
        sets: &Api<ReplicaSet>,
        observed: &Deployment,
        old: &ReplicaSet,
        new: &ReplicaSet,
    ) -> Result<(), ReconcileError> {
        let name = name_of(old);
        match patch::object(sets, old, new, Precondition::Unchanged).await {
            Ok(written) => {
                if let Some(written) = written {
                    self.writes_to_sets.wrote(&written);
                }
                self.tell_size(observed, &name, size(old), size(new));
                Ok(())
            }
            Err(source) => {
                if source.status().is_some_and(kube::core::Status::is_conflict) {
                    self.writes_to_sets.refused(old);
                }
                Err(ReconcileError::Update { name, source })
            }
        }
    }

    /// The status and the revision, if they differ. A Deployment's status takes annotations along
    /// and, unlike a write to the main resource, does not raise the generation for them.
    async fn write(
        &self,
        deployments: &Api<Deployment>,
        observed: &Deployment,
        wanted: &Deployment,
    ) -> Result<(), ReconcileError> {
        let status = |deployment: &Deployment| deployment.status.clone().unwrap_or_default();
        let same = observed.metadata.annotations == wanted.metadata.annotations
            && status(observed) == status(wanted);
        if same {
            return Ok(());
        }
        let written = patch::replace_status(deployments, wanted).await;
        self.own_writes.ended(observed, &written);
        written.map(drop).map_err(ReconcileError::Write)
    }

    fn tell_size(&self, deployment: &Deployment, set: &str, from: i32, to: i32) {
        if from == to {
            return;
        }
        let direction = if from < to { "up" } else { "down" };
        let message = format!("Scaled {direction} replica set {set} from {from} to {to}");
        self.event(deployment, EventType::Normal, "ScalingReplicaSet", &message);
    }

    fn event(&self, deployment: &Deployment, kind: EventType, reason: &str, message: &str) {
        self.recorder
            .event(&events::reference(deployment), kind, reason, message);
    }
}

async fn delete(sets: &Api<ReplicaSet>, set: &ReplicaSet) -> Result<(), ReconcileError> {
    let name = name_of(set);
    match sets.delete(&name, &patch::delete_exactly(set)).await {
        Err(source) if !refusal::is_not_found(&source) => {
            Err(ReconcileError::Delete { name, source })
        }
        _ => Ok(()),
    }
}

fn name_of(set: &ReplicaSet) -> String {
    set.metadata.name.clone().unwrap_or_default()
}
