//! Carries out a plan: claims and pods, the status, and the end of old revisions.

use std::collections::BTreeSet;

use coracle_client::events::{self, EventType};
use coracle_client::patch;
use futures::future::join_all;
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::Api;
use kube::api::PostParams;

use super::claims::Claims;
use super::plan::{Observed, Plan, Step};
use super::{Controller, History, ObjectKey, Requeue, identity, revisions, status};
use crate::history::{self, HistoryError};
use crate::ownership::ClaimError;
use crate::refusal;

/// As many requests of one set as are under way at once, at most; upstream's bound.
const BATCH_MAX: usize = 500;

#[derive(Debug, thiserror::Error)]
pub(super) enum ReconcileError {
    #[error(transparent)]
    Claim(#[from] ClaimError),
    #[error(transparent)]
    History(#[from] HistoryError),
    #[error("no free name was found for the revision")]
    NamesTaken,
    #[error("cannot create claim {name}")]
    CreateClaim { name: String, source: kube::Error },
    #[error("pvc {name} is being deleted")]
    ClaimGoing { name: String },
    #[error("cannot write the owners of claim {name}")]
    OwnClaim { name: String, source: kube::Error },
    #[error("cannot create pod {name}")]
    CreatePod { name: String, source: kube::Error },
    #[error("cannot update pod {name}")]
    UpdatePod { name: String, source: kube::Error },
    #[error("cannot delete pod {name}")]
    DeletePod { name: String, source: kube::Error },
    #[error("cannot write the status")]
    Status(#[source] kube::Error),
}

/// What pods and claims of one set are written through.
struct Writer<'a> {
    controller: &'a Controller,
    key: &'a ObjectKey,
    set: &'a StatefulSet,
    pods: Api<Pod>,
    claims: Api<PersistentVolumeClaim>,
}

impl Controller {
    pub(super) async fn execute(
        &self,
        key: &ObjectKey,
        observed: &Observed<'_>,
        plan: Plan,
    ) -> Result<Requeue, ReconcileError> {
        let writer = Writer {
            controller: self,
            key,
            set: observed.set,
            pods: Api::namespaced(self.client.clone(), &key.namespace),
            claims: Api::namespaced(self.client.clone(), &key.namespace),
        };
        self.expect(key, &plan);
        let mut status = plan.status.clone();
        let (outdated, managed) = writer.carry_out(&plan).await;
        if managed.is_err() {
            // What the cache will show is not known now, and a pass too many is harmless.
            self.expectations.forget(key);
        }
        status::take_off(&mut status, outdated);
        status::complete(&mut status, observed.spec);
        let written = if status::differs(observed.set, &status) {
            let sets = Api::<StatefulSet>::namespaced(self.client.clone(), &key.namespace);
            let wanted = StatefulSet {
                status: Some(status),
                ..observed.set.clone()
            };
            let written = patch::replace_status(&sets, &wanted).await;
            self.own_writes.ended(observed.set, &written);
            written.map(drop)
        } else {
            Ok(())
        };
        managed?;
        written.map_err(ReconcileError::Status)?;
        Ok(status::next_check(observed).map_or(Requeue::Never, Requeue::After))
    }

    /// Notes what the cache is going to show.
    fn expect(&self, key: &ObjectKey, plan: &Plan) {
        let steps = || plan.phases.iter().flatten();
        let creations = steps().filter(|step| matches!(step, Step::Create { .. }));
        let deleted = steps().filter_map(|step| match step {
            Step::Delete(pod) => Some(pod),
            Step::Create { .. } | Step::Keep { .. } => None,
        });
        let deleted = deleted.chain(&plan.outdated);
        let uids = deleted.filter_map(|pod| pod.metadata.uid.clone());
        self.expectations
            .expect(key, creations.count(), uids.collect());
    }

    /// Deletes the revisions that nobody needs any more.
    pub(super) async fn truncate(
        &self,
        key: &ObjectKey,
        observed: &Observed<'_>,
        history: &History,
    ) -> Result<(), ReconcileError> {
        let pods = observed.pods.values();
        let mut live: BTreeSet<&str> = pods.map(|pod| identity::revision_of(pod)).collect();
        live.extend([observed.current.name, observed.update.name]);
        let api = Api::<ControllerRevision>::namespaced(self.client.clone(), &key.namespace);
        for revision in revisions::surplus(observed.spec, &history.all, &live) {
            history::delete(&api, &revision).await?;
        }
        Ok(())
    }
}

impl Writer<'_> {
    /// Returns how many outdated pods were deleted, and what stopped it.
    async fn carry_out(&self, plan: &Plan) -> (usize, Result<(), ReconcileError>) {
        for phase in &plan.phases {
            if let Err(error) = self.run(phase, plan.parallel).await {
                return (0, Err(error));
            }
        }
        for (done, pod) in plan.outdated.iter().enumerate() {
            if let Err(error) = self.delete(pod).await {
                return (done, Err(error));
            }
        }
        (plan.outdated.len(), Ok(()))
    }

    /// One after the other, or in batches that double: a cause that fails one step fails them
    /// all, and is then found out with one request.
    async fn run(&self, steps: &[Step], parallel: bool) -> Result<(), ReconcileError> {
        let (mut left, mut batch) = (steps, 1);
        while !left.is_empty() {
            let (now, later) = left.split_at(batch.min(left.len()));
            let outcomes = join_all(now.iter().map(|step| self.step(step))).await;
            outcomes.into_iter().collect::<Result<(), _>>()?;
            left = later;
            if parallel {
                batch = (batch * 2).min(BATCH_MAX);
            }
        }
        Ok(())
    }

    async fn step(&self, step: &Step) -> Result<(), ReconcileError> {
        match step {
            Step::Create { pod, claims } => self.create(pod, claims).await,
            Step::Keep {
                pod,
                mended,
                claims,
                told,
            } => {
                let kept = self.keep(pod, mended.as_deref(), claims).await;
                match &kept {
                    Ok(()) if *told => self.tell_success("Update", pod),
                    Ok(()) => {}
                    // Told of the claim already, or waited for.
                    Err(ReconcileError::CreateClaim { .. } | ReconcileError::ClaimGoing { .. }) => {
                    }
                    Err(error) => self.tell_failure("Update", pod, error),
                }
                kept
            }
            Step::Delete(pod) => self.delete(pod).await,
        }
    }

    async fn create(&self, pod: &Pod, claims: &Claims) -> Result<(), ReconcileError> {
        let name = name_of(pod);
        if let Err(error) = self.create_claims(pod, claims).await {
            self.tell_failure("Create", pod, &error);
            return Err(error);
        }
        match self.pods.create(&PostParams::default(), pod).await {
            Ok(_) => {}
            // No pod can be made here any more, and none is needed.
            Err(error) if refusal::is_namespace_terminating(&error) => {
                self.controller.expectations.creation_observed(self.key);
                return Ok(());
            }
            Err(source) => {
                let taken = refusal::is_already_exists(&source);
                let error = ReconcileError::CreatePod { name, source };
                if !taken {
                    self.tell_failure("Create", pod, &error);
                }
                return Err(error);
            }
        }
        if let Err(error) = self.own_claims(claims).await {
            self.tell_failure("Update", pod, &error);
            return Err(error);
        }
        self.tell_success("Create", pod);
        Ok(())
    }

    async fn keep(
        &self,
        pod: &Pod,
        mended: Option<&Pod>,
        claims: &Claims,
    ) -> Result<(), ReconcileError> {
        self.create_claims(pod, claims).await?;
        self.own_claims(claims).await?;
        let Some(mended) = mended else { return Ok(()) };
        let name = name_of(pod);
        let updated = patch::replace(&self.pods, mended).await;
        let failed = |source| ReconcileError::UpdatePod { name, source };
        updated.map(drop).map_err(failed)
    }

    async fn delete(&self, pod: &Pod) -> Result<(), ReconcileError> {
        let name = name_of(pod);
        match self.pods.delete(&name, &patch::delete_exactly(pod)).await {
            Ok(_) => {}
            Err(error) if refusal::is_not_found(&error) => {
                // Its deletion may have been seen before it was waited for.
                let uid = pod.metadata.uid.as_deref().unwrap_or_default();
                let expectations = &self.controller.expectations;
                expectations.deletion_observed(self.key, uid);
            }
            Err(source) => {
                let error = ReconcileError::DeletePod { name, source };
                self.tell_failure("Delete", pod, &error);
                return Err(error);
            }
        }
        self.tell_success("Delete", pod);
        Ok(())
    }

    /// Creates what is missing; one that fails does not keep the others from being made.
    async fn create_claims(&self, pod: &Pod, claims: &Claims) -> Result<(), ReconcileError> {
        let (pod_name, set_name) = (name_of(pod), name_of(self.set));
        let mut outcome = Ok(());
        for claim in &claims.create {
            let name = name_of(claim);
            match self.claims.create(&PostParams::default(), claim).await {
                Ok(_) => self.tell(
                    EventType::Normal,
                    "SuccessfulCreate",
                    format!("Create Claim {name} Pod {pod_name} in StatefulSet {set_name} success"),
                ),
                // The cache shows it soon.
                Err(error) if refusal::is_already_exists(&error) => {}
                Err(source) => {
                    let message = format!(
                        "Create Claim {name} for Pod {pod_name} in StatefulSet {set_name} \
                         failed error: {}",
                        refusal::message(&source)
                    );
                    self.tell(EventType::Warning, "FailedCreate", message);
                    outcome = outcome.and(Err(ReconcileError::CreateClaim { name, source }));
                }
            }
        }
        let going = claims.going.first().cloned();
        outcome.and(going.map_or(Ok(()), |name| Err(ReconcileError::ClaimGoing { name })))
    }

    async fn own_claims(&self, claims: &Claims) -> Result<(), ReconcileError> {
        for name in &claims.conflicting {
            let message = format!(
                "PersistentVolumeClaim {name} has a conflicting OwnerReference that acts as a \
                 manging controller, the retention policy is ignored for this claim"
            );
            self.tell(EventType::Warning, "ConflictingController", message);
        }
        for (claim, owners) in &claims.own {
            let mut owned = (**claim).clone();
            owned.metadata.owner_references = Some(owners.clone());
            let written = patch::replace(&self.claims, &owned).await;
            let name = name_of(&owned);
            written.map_err(|source| ReconcileError::OwnClaim { name, source })?;
        }
        Ok(())
    }

    fn tell_success(&self, verb: &str, pod: &Pod) {
        let (pod, set) = (name_of(pod), name_of(self.set));
        let message = format!("{verb} Pod {pod} in StatefulSet {set} successful");
        self.tell(EventType::Normal, &format!("Successful{verb}"), message);
    }

    fn tell_failure(&self, verb: &str, pod: &Pod, error: &ReconcileError) {
        let (pod, set) = (name_of(pod), name_of(self.set));
        let message = format!(
            "{verb} Pod {pod} in StatefulSet {set} failed error: {}",
            error.text()
        );
        self.tell(EventType::Warning, &format!("Failed{verb}"), message);
    }

    fn tell(&self, kind: EventType, reason: &str, message: String) {
        let about = events::reference(self.set);
        self.controller
            .recorder
            .event(&about, kind, reason, message);
    }
}

impl ReconcileError {
    /// What an event says of it: upstream's words, and the server's own.
    fn text(&self) -> String {
        match self {
            Self::CreateClaim { name, source } => {
                format!("failed to create PVC {name}: {}", refusal::message(source))
            }
            Self::OwnClaim { name, source } => format!(
                "could not update claim {name} for delete policy ownerRefs: {}",
                refusal::message(source)
            ),
            Self::CreatePod { source, .. }
            | Self::UpdatePod { source, .. }
            | Self::DeletePod { source, .. } => refusal::message(source),
            other => other.to_string(),
        }
    }
}

fn name_of<K: kube::Resource>(object: &K) -> String {
    object.meta().name.clone().unwrap_or_default()
}
