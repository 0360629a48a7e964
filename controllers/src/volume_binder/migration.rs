//! Which CSI drivers do the work of kinds of volumes that were once built in, and the marks that
//! say so. Pure.

use coracle_client::volumes::{
    MIGRATED_TO, PROVISIONED_BY, PROVISIONER, PROVISIONER_BETA, annotate, annotation,
};
use k8s_openapi::api::core::v1::PersistentVolume;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Upstream's: the old name and the driver.
const DRIVERS: [(&str, &str); 7] = [
    ("kubernetes.io/aws-ebs", "ebs.csi.aws.com"),
    ("kubernetes.io/azure-disk", "disk.csi.azure.com"),
    ("kubernetes.io/azure-file", "file.csi.azure.com"),
    ("kubernetes.io/cinder", "cinder.csi.openstack.org"),
    ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
    ("kubernetes.io/portworx-volume", "pxd.portworx.com"),
    ("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com"),
];
const BUILT_IN: &str = "kubernetes.io/";
/// Keeps a volume until the binder itself has deleted its storage.
const OWN_FINALIZER: &str = "kubernetes.io/pv-controller";
/// Keeps a volume until a provisioner has.
const EXTERNAL_FINALIZER: &str = "external-provisioner.volume.kubernetes.io/finalizer";

pub(crate) fn driver(name: &str) -> Option<&'static str> {
    let known = DRIVERS.iter().find(|(old, _)| *old == name);
    known.map(|(_, driver)| *driver)
}

/// Who does the work of a provisioner; `None` for what was built in and is nowhere now.
pub(super) fn acting(provisioner: &str) -> Option<&str> {
    driver(provisioner).or((!provisioner.starts_with(BUILT_IN)).then_some(provisioner))
}

pub(super) fn mark_claim(meta: &mut ObjectMeta) {
    let named = annotation(meta, PROVISIONER).or_else(|| annotation(meta, PROVISIONER_BETA));
    let Some(named) = named else { return };
    mark(meta, driver(named));
}

/// Also sees to it that a volume which is to be deleted is kept until it was.
pub(super) fn mark_volume(volume: &mut PersistentVolume) {
    let Some(by) = annotation(&volume.metadata, PROVISIONED_BY).map(str::to_owned) else {
        return;
    };
    let driver = driver(&by);
    mark(&mut volume.metadata, driver);
    let spec = volume.spec.as_ref();
    let policy = spec.and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
    let mut finalizers = volume.metadata.finalizers.clone().unwrap_or_default();
    if driver.is_some() {
        finalizers.retain(|one| one != OWN_FINALIZER);
    } else if by.starts_with(BUILT_IN) {
        let has = finalizers.iter().any(|one| one == OWN_FINALIZER);
        match policy {
            Some("Delete") if !has => finalizers.push(OWN_FINALIZER.to_owned()),
            Some("Delete") | None => {}
            Some(_) => finalizers.retain(|one| one != OWN_FINALIZER),
        }
        finalizers.retain(|one| one != EXTERNAL_FINALIZER);
    }
    if volume.metadata.finalizers.as_deref().unwrap_or_default() != finalizers {
        volume.metadata.finalizers = (!finalizers.is_empty()).then_some(finalizers);
    }
}

fn mark(meta: &mut ObjectMeta, driver: Option<&str>) {
    match driver {
        Some(driver) => annotate(meta, MIGRATED_TO, driver),
        None => {
            if let Some(annotations) = &mut meta.annotations {
                annotations.remove(MIGRATED_TO);
            }
        }
    }
}
