//! What to do about a volume: say whose it is, and let it go when its claim is gone. Pure.

use coracle_client::events::EventType::Warning;
use coracle_client::key_of;
use coracle_client::volumes::{
    self, BOUND_BY_CONTROLLER, PROVISIONED_BY, Wanted, annotation, claim_ref, volume_name,
};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};

use super::plan::{Change, Plan, enter};
use super::{migration, reclaim, told};

/// `claim` is the one that the volume is bound to, by uid; `None` when that is gone.
pub(super) fn plan(volume: &PersistentVolume, claim: Option<&PersistentVolumeClaim>) -> Plan {
    let mut plan = Plan::default();
    let mut now = volume.clone();
    migration::mark_volume(&mut now);
    let uid = claim_ref(volume).and_then(|held| held.uid.as_deref());
    let is_bound = uid.is_some_and(|uid| !uid.is_empty());
    match claim {
        _ if !is_bound => enter(&mut now, "Available", None),
        None => reclaim::release(&mut plan, &mut now),
        Some(claim) => has_claim(&mut plan, &mut now, claim),
    }
    plan.volume = Some(Change {
        was: volume.clone(),
        wanted: now,
    });
    plan
}

fn has_claim(plan: &mut Plan, volume: &mut PersistentVolume, claim: &PersistentVolumeClaim) {
    let name = volume.metadata.name.clone().unwrap_or_default();
    let named = volume_name(claim);
    if named == name {
        enter(volume, "Bound", None);
    } else if !named.is_empty() {
        claim_went_elsewhere(plan, volume);
    } else if Wanted::by(claim).has_mode_of(volume) {
        plan.claim_next = Some(key_of(claim)); // Its pass ends the binding.
    } else {
        let other = claim.metadata.name.as_deref().unwrap_or_default();
        let [of_volume, of_claim] = told::wrong_mode(&name, other);
        plan.tell(volume, Warning, told::VOLUME_MISMATCH, of_volume);
        plan.tell(claim, Warning, told::VOLUME_MISMATCH, of_claim);
    }
}

/// One that was made for the claim is of no use to anybody; another is free again, or held for the
/// claim by name if its user said so.
fn claim_went_elsewhere(plan: &mut Plan, volume: &mut PersistentVolume) {
    let spec = volume.spec.get_or_insert_default();
    let is_deleted = spec.persistent_volume_reclaim_policy.as_deref() == Some("Delete");
    if is_deleted && annotation(&volume.metadata, PROVISIONED_BY).is_some() {
        return reclaim::release(plan, volume);
    }
    if volumes::annotation(&volume.metadata, BOUND_BY_CONTROLLER).is_some() {
        spec.claim_ref = None;
        let annotations = volume.metadata.annotations.get_or_insert_default();
        annotations.remove(BOUND_BY_CONTROLLER);
        if annotations.is_empty() {
            volume.metadata.annotations = None;
        }
    } else if let Some(held) = &mut spec.claim_ref {
        held.uid = None;
    }
    enter(volume, "Available", None);
}
