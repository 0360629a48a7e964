//! What becomes of a volume whose claim is gone. Pure.
//!
//! Its storage is deleted by who provisioned it, when it sees the volume released; nothing here
//! deletes any. There are no recyclers: a volume that asks for one is Failed, and stays.

use coracle_client::events::EventType::Warning;
use coracle_client::volumes::{MIGRATED_TO, PROVISIONED_BY, annotation};
use k8s_openapi::api::core::v1::PersistentVolume;

use super::plan::{Plan, enter, is_released, volume_phase};
use super::{migration, told};

pub(super) fn release(plan: &mut Plan, volume: &mut PersistentVolume) {
    if !is_released(volume) {
        enter(volume, "Released", None);
    }
    if let Err((reason, message)) = reclaim(volume)
        && volume_phase(volume) != "Failed"
    {
        plan.tell(volume, Warning, reason, message.clone());
        enter(volume, "Failed", Some(message));
    }
}

/// Why nobody can do what is asked for.
fn reclaim(volume: &PersistentVolume) -> Result<(), (&'static str, String)> {
    if annotation(&volume.metadata, MIGRATED_TO).is_some_and(|driver| !driver.is_empty()) {
        return Ok(()); // The driver's.
    }
    let spec = volume.spec.as_ref();
    match spec.and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref()) {
        Some("Retain") => Ok(()),
        Some("Delete") => find_deleter(volume).map_err(|why| ("VolumeFailedDelete", why)),
        Some("Recycle") => {
            let message = "No recycler plugin found for the volume!";
            Err(("VolumeFailedRecycle", message.to_owned()))
        }
        _ => {
            let message = "Volume has unrecognized PersistentVolumeReclaimPolicy";
            Err(("VolumeUnknownReclaimPolicy", message.to_owned()))
        }
    }
}

fn find_deleter(volume: &PersistentVolume) -> Result<(), String> {
    let by = annotation(&volume.metadata, PROVISIONED_BY).unwrap_or("");
    if !by.is_empty() {
        let acting = migration::acting(by);
        return acting.map(|_| ()).ok_or_else(|| told::no_plugin(by));
    }
    let is_csi = volume.spec.as_ref().is_some_and(|spec| spec.csi.is_some());
    if is_csi || annotation(&volume.metadata, MIGRATED_TO).is_some() {
        return Ok(());
    }
    let name = volume.metadata.name.as_deref().unwrap_or_default();
    Err(told::no_deleter(name))
}
