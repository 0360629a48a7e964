//! Who enlarges a volume. Upstream's words. Pure.

use coracle_client::volumes;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};

use crate::volume_binder::driver;

/// Of a claim: the driver whose resizer enlarges its volume.
pub(super) const RESIZER: &str = "volume.kubernetes.io/storage-resizer";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// Somebody who knows the volume does it unasked.
    Wait,
    Migrated {
        from: &'static str,
        driver: &'static str,
    },
}

impl Plan {
    pub(super) fn message(self) -> String {
        match self {
            Self::Wait => "waiting for an external controller to expand this PVC".to_owned(),
            Self::Migrated { from, .. } => format!(
                "CSI migration enabled for {from}; waiting for external resizer to expand the pvc"
            ),
        }
    }
}

fn has(claim: &PersistentVolumeClaim) -> coracle_api::quantity::Quantity {
    let status = claim.status.as_ref();
    volumes::storage(status.and_then(|status| status.capacity.as_ref()))
}

/// It is bound, and asks for more than it has.
pub(super) fn wants_more(claim: &PersistentVolumeClaim) -> bool {
    let status = claim.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref());
    phase == Some("Bound") && volumes::request(claim) > has(claim)
}

/// It asks for more than before, or has more.
pub(super) fn has_grown(old: &PersistentVolumeClaim, new: &PersistentVolumeClaim) -> bool {
    volumes::request(new) > volumes::request(old) || has(new) > has(old)
}

pub(super) fn plan(volume: &PersistentVolume) -> Plan {
    let from = once_built_in(volume);
    match from.and_then(|from| Some((from, driver(from)?))) {
        Some((from, driver)) => Plan::Migrated { from, driver },
        None => Plan::Wait,
    }
}

fn once_built_in(volume: &PersistentVolume) -> Option<&'static str> {
    let spec = volume.spec.as_ref()?;
    let kinds = [
        (
            spec.aws_elastic_block_store.is_some(),
            "kubernetes.io/aws-ebs",
        ),
        (spec.azure_disk.is_some(), "kubernetes.io/azure-disk"),
        (spec.azure_file.is_some(), "kubernetes.io/azure-file"),
        (spec.cinder.is_some(), "kubernetes.io/cinder"),
        (spec.gce_persistent_disk.is_some(), "kubernetes.io/gce-pd"),
        (
            spec.portworx_volume.is_some(),
            "kubernetes.io/portworx-volume",
        ),
        (
            spec.vsphere_volume.is_some(),
            "kubernetes.io/vsphere-volume",
        ),
    ];
    let found = kinds.into_iter().find(|(is_it, _)| *is_it);
    found.map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn claim(phase: &str, asks: &str, has: &str) -> PersistentVolumeClaim {
        let claim = json!({
            "spec": { "resources": { "requests": { "storage": asks } } },
            "status": { "phase": phase, "capacity": { "storage": has } },
        });
        serde_json::from_value(claim).unwrap()
    }

    #[test]
    fn a_bound_claim_that_asks_for_more_than_it_has_wants_more() {
        assert!(wants_more(&claim("Bound", "2Gi", "1Gi")));
        assert!(!wants_more(&claim("Bound", "1Gi", "1024Mi")));
        assert!(!wants_more(&claim("Bound", "1Gi", "2Gi")));
        assert!(!wants_more(&claim("Pending", "2Gi", "1Gi")));
        let before = claim("Bound", "1Gi", "1Gi");
        assert!(has_grown(&before, &claim("Bound", "2Gi", "1Gi")));
        assert!(has_grown(&before, &claim("Bound", "1Gi", "2Gi")));
        assert!(!has_grown(&before, &before));
    }

    #[test]
    fn a_volume_of_a_kind_that_was_built_in_is_its_drivers() {
        let of = |source: serde_json::Value| {
            plan(&serde_json::from_value(json!({ "spec": source })).unwrap())
        };
        let disk = json!({ "gcePersistentDisk": { "pdName": "d" } });
        let migrated = of(disk);
        let expected = Plan::Migrated {
            from: "kubernetes.io/gce-pd",
            driver: "pd.csi.storage.gke.io",
        };
        assert_eq!(migrated, expected);
        let csi = json!({ "csi": { "driver": "d.example.com", "volumeHandle": "v" } });
        assert_eq!(of(csi), Plan::Wait);
        assert_eq!(of(json!({ "hostPath": { "path": "/x" } })), Plan::Wait);
    }
}
