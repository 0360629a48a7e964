//! What to do about a claim: bind it, wait, have a volume provisioned, or give it up. Pure.
//!
//! A claim that was bound before is never bound to another volume: without its own it is lost.

use std::sync::Arc;

use coracle_client::events::EventType::{Normal, Warning};
use coracle_client::volumes::{
    self, BIND_COMPLETED, BOUND_BY_CONTROLLER, PROVISIONER, PROVISIONER_BETA, SELECTED_NODE,
    Wanted, annotate, annotation,
};
use k8s_openapi::api::core::v1::PersistentVolume;
use k8s_openapi::api::core::v1::PersistentVolumeClaim as Claim;
use k8s_openapi::api::storage::v1::StorageClass;

use super::plan::{Change, Plan, bind, claim_phase, show};
use super::{migration, told};

/// What a pass knows of a claim's surroundings.
pub(super) struct ClaimView<'a> {
    pub claim: &'a Claim,
    /// The volume that the claim names, if it is there.
    pub named: Option<Arc<PersistentVolume>>,
    /// All there are, for a claim that names none.
    pub volumes: Vec<Arc<PersistentVolume>>,
    pub class: Option<Arc<StorageClass>>,
    /// The name of the class for those that name none.
    pub default_class: Option<String>,
    /// Names of the pods that use the claim and are on no node yet.
    pub waiting: Vec<String>,
}

pub(super) fn plan(view: &ClaimView<'_>) -> Plan {
    let mut claim = view.claim.clone();
    migration::mark_claim(&mut claim.metadata);
    let mut plan = Plan::default();
    let wanted = if annotation(&claim.metadata, BIND_COMPLETED).is_some() {
        was_bound(&mut plan, view, claim)
    } else if volumes::volume_name(&claim).is_empty() {
        is_open(&mut plan, view, claim)
    } else {
        names_volume(&mut plan, view, claim)
    };
    plan.claim = Some(Change {
        was: view.claim.clone(),
        wanted,
    });
    plan
}

/// Any volume that fits will do.
fn is_open(plan: &mut Plan, view: &ClaimView<'_>, claim: Claim) -> Claim {
    let is_late = view.class.as_deref().is_some_and(volumes::binds_late);
    let found = {
        let wanted = Wanted::by(&claim);
        let held = wanted.held(&view.volumes);
        // Of a late class the scheduler chooses, by the node.
        held.or_else(|| wanted.best(&view.volumes, |_| !is_late))
    };
    if let Some(volume) = found {
        return bind(plan, volume, claim);
    }
    if let (false, Some(default)) = (volumes::names_class(&claim), &view.default_class) {
        let mut classed = claim;
        let spec = classed.spec.get_or_insert_default();
        spec.storage_class_name = Some(default.clone());
        return classed; // Its change brings it here again.
    }
    if is_late && annotation(&claim.metadata, SELECTED_NODE).is_none() {
        let (reason, message) = told::waits_for_pods(&view.waiting);
        plan.tell(&claim, Normal, reason, message);
        return pending(claim);
    }
    if !volumes::class_of_claim(&claim).is_empty() {
        return provision(plan, view, claim);
    }
    plan.tell(&claim, Normal, told::FAILED_BINDING, told::NO_VOLUME);
    pending(claim)
}

/// Asks whoever provisions volumes of the class.
fn provision(plan: &mut Plan, view: &ClaimView<'_>, claim: Claim) -> Claim {
    let found = view.class.as_deref();
    let Some(named) = found.map(|class| class.provisioner.as_str()) else {
        let class = volumes::class_of_claim(&claim);
        let message = format!("storageclass.storage.k8s.io {class:?} not found");
        plan.tell(&claim, Warning, told::PROVISIONING_FAILED, message);
        return claim;
    };
    let Some(provisioner) = migration::acting(named) else {
        let message = told::no_plugin(named);
        plan.tell(&claim, Warning, told::PROVISIONING_FAILED, message);
        return claim;
    };
    let mut asking = claim;
    if annotation(&asking.metadata, PROVISIONER) != Some(provisioner) {
        annotate(&mut asking.metadata, PROVISIONER_BETA, provisioner);
        annotate(&mut asking.metadata, PROVISIONER, provisioner);
    }
    let message = told::external(provisioner);
    plan.tell(&asking, Normal, "ExternalProvisioning", message);
    asking
}

/// Its user chose a volume, or the scheduler did, or an earlier pass that came no further.
fn names_volume(plan: &mut Plan, view: &ClaimView<'_>, claim: Claim) -> Claim {
    let Some(volume) = view.named.as_deref() else {
        return pending(claim); // It may still come.
    };
    if volumes::is_held_for(volume, &claim) {
        return bind(plan, volume, claim);
    }
    let name = volume.metadata.name.as_deref().unwrap_or_default();
    if volumes::claim_ref(volume).is_some() {
        let message = format!("volume {name:?} already bound to a different claim.");
        plan.tell(&claim, Warning, told::FAILED_BINDING, message);
        if annotation(&claim.metadata, BOUND_BY_CONTROLLER).is_some() {
            return claim; // Somebody took its mark away: people must look.
        }
        return pending(claim);
    }
    let Some(why) = Wanted::by(&claim).mismatch(volume) else {
        return bind(plan, volume, claim);
    };
    let message = format!("Cannot bind to requested volume {name:?}: {why}");
    plan.tell(&claim, Warning, told::VOLUME_MISMATCH, message);
    pending(claim)
}

fn was_bound(plan: &mut Plan, view: &ClaimView<'_>, claim: Claim) -> Claim {
    let is_other = |volume: &PersistentVolume| {
        let held = volumes::claim_ref(volume);
        held.is_some_and(|held| held.uid != claim.metadata.uid)
    };
    match view.named.as_deref() {
        _ if volumes::volume_name(&claim).is_empty() => {
            lost(plan, claim, "ClaimLost", told::LOST_NAME)
        }
        None => lost(plan, claim, "ClaimLost", told::LOST_VOLUME),
        Some(volume) if is_other(volume) => lost(plan, claim, "ClaimMisbound", told::MISBOUND),
        Some(volume) => bind(plan, volume, claim),
    }
}

fn pending(mut claim: Claim) -> Claim {
    show(&mut claim, "Pending", None);
    claim
}

/// Told once.
fn lost(plan: &mut Plan, mut claim: Claim, reason: &'static str, message: &str) -> Claim {
    if claim_phase(&claim) != "Lost" {
        plan.tell(&claim, Warning, reason, message);
        show(&mut claim, "Lost", None);
    }
    claim
}
