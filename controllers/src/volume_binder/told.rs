//! The words of events about claims and volumes; upstream's. Pure.

pub(super) const FAILED_BINDING: &str = "FailedBinding";
pub(super) const VOLUME_MISMATCH: &str = "VolumeMismatch";
pub(super) const PROVISIONING_FAILED: &str = "ProvisioningFailed";
pub(super) const NO_VOLUME: &str =
    "no persistent volumes available for this claim and no storage class is set";
pub(super) const LOST_NAME: &str =
    "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!";
pub(super) const LOST_VOLUME: &str =
    "Bound claim has lost its PersistentVolume. Data on the volume is lost!";
pub(super) const MISBOUND: &str =
    "Two claims are bound to the same volume, this one is bound incorrectly";

/// Reason and message for a claim that waits for a node to be chosen.
pub(super) fn waits_for_pods(pods: &[String]) -> (&'static str, String) {
    const SCHEDULED: &str = "WaitForPodScheduled";
    match pods {
        [] => (
            "WaitForFirstConsumer",
            "waiting for first consumer to be created before binding".to_owned(),
        ),
        [pod] => (SCHEDULED, format!("waiting for pod {pod} to be scheduled")),
        pods => {
            let pods = pods.join(",");
            (
                SCHEDULED,
                format!("waiting for pods {pods} to be scheduled"),
            )
        }
    }
}

pub(super) fn external(provisioner: &str) -> String {
    format!(
        "Waiting for a volume to be created either by the external provisioner '{provisioner}' or \
         manually by the system administrator. If volume creation is delayed, please verify that \
         the provisioner is running and correctly registered."
    )
}

pub(super) fn no_plugin(name: &str) -> String {
    format!("no volume plugin matched name: {name}")
}

pub(super) fn no_deleter(volume: &str) -> String {
    format!("error getting deleter volume plugin for volume {volume:?}: no volume plugin matched")
}

/// About the volume and about the claim.
pub(super) fn wrong_mode(volume: &str, claim: &str) -> [String; 2] {
    [
        format!(
            "Cannot bind PersistentVolume to requested PersistentVolumeClaim {claim:?} due to \
             incompatible volumeMode."
        ),
        format!(
            "Cannot bind PersistentVolume {volume:?} to requested PersistentVolumeClaim due to \
             incompatible volumeMode."
        ),
    ]
}
