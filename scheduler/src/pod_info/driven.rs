//! Which CSI driver attaches which volumes.
//!
//! Kinds of volumes that were once built in are attached by the drivers that they were migrated to.

use coracle_client::pod_claims;
use k8s_openapi::api::core::v1::{PersistentVolume, Pod, Volume};
use std::sync::Arc;

const EBS: &str = "ebs.csi.aws.com";
const GCE: &str = "pd.csi.storage.gke.io";
const AZURE: &str = "disk.csi.azure.com";
const CINDER: &str = "cinder.csi.openstack.org";
const PORTWORX: &str = "pxd.portworx.com";

/// A volume by its driver and the driver's own name for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Driven {
    pub driver: Arc<str>,
    pub handle: Arc<str>,
}

impl Driven {
    pub fn new(driver: &str, handle: &str) -> Self {
        Self {
            driver: driver.into(),
            handle: handle.into(),
        }
    }
}

/// The volumes that a pod names without a claim.
pub(super) fn of(pod: &Pod) -> Vec<Driven> {
    let found = pod_claims::volumes(pod).filter_map(of_inline);
    found
        .map(|(driver, handle)| Driven::new(driver, handle))
        .collect()
}

pub fn of_volume(volume: &PersistentVolume) -> Option<Driven> {
    let spec = volume.spec.as_ref()?;
    if let Some(csi) = &spec.csi {
        return Some(Driven::new(&csi.driver, &csi.volume_handle));
    }
    let ebs = spec.aws_elastic_block_store.as_ref();
    let gce = spec.gce_persistent_disk.as_ref();
    let azure = spec.azure_disk.as_ref();
    let cinder = spec.cinder.as_ref();
    let portworx = spec.portworx_volume.as_ref();
    let (driver, handle) = ebs
        .map(|one| (EBS, bare(&one.volume_id)))
        .or_else(|| gce.map(|one| (GCE, one.pd_name.as_str())))
        .or_else(|| azure.map(|one| (AZURE, one.disk_uri.as_str())))
        .or_else(|| cinder.map(|one| (CINDER, one.volume_id.as_str())))
        .or_else(|| portworx.map(|one| (PORTWORX, one.volume_id.as_str())))?;
    Some(Driven::new(driver, handle))
}

fn of_inline(volume: &Volume) -> Option<(&'static str, &str)> {
    let ebs = volume.aws_elastic_block_store.as_ref();
    let gce = volume.gce_persistent_disk.as_ref();
    let azure = volume.azure_disk.as_ref();
    let cinder = volume.cinder.as_ref();
    let portworx = volume.portworx_volume.as_ref();
    ebs.map(|one| (EBS, bare(&one.volume_id)))
        .or_else(|| gce.map(|one| (GCE, one.pd_name.as_str())))
        .or_else(|| azure.map(|one| (AZURE, one.disk_uri.as_str())))
        .or_else(|| cinder.map(|one| (CINDER, one.volume_id.as_str())))
        .or_else(|| portworx.map(|one| (PORTWORX, one.volume_id.as_str())))
}

/// `aws://ZONE/ID` is `ID`.
fn bare(id: &str) -> &str {
    match id.strip_prefix("aws://") {
        Some(rest) => rest.rsplit('/').next().unwrap_or(rest),
        None => id,
    }
}

/// The driver that stands for a provisioner that was built in.
pub fn provisioner_driver(provisioner: &str) -> Option<&'static str> {
    match provisioner {
        "kubernetes.io/aws-ebs" => Some(EBS),
        "kubernetes.io/gce-pd" => Some(GCE),
        "kubernetes.io/azure-disk" => Some(AZURE),
        "kubernetes.io/cinder" => Some(CINDER),
        "kubernetes.io/portworx-volume" => Some(PORTWORX),
        _ => None,
    }
}
