//! Volumes, claims and attribute classes are marked so that they stay while they are in use; the
//! controllers take the marks away. Claims grow only where their class lets them.

use super::Attributes;
use crate::view::View;
use coracle_api::kinds::persistent_volume_claim::class;
use coracle_api::object::Object;
use coracle_api::quantity::Quantity;
use coracle_api::status::Status;
use serde_json::Value;

pub fn protect(object: &mut Object, asked: &Attributes<'_>) {
    if !asked.subresource.is_empty() {
        return;
    }
    let finalizer = match (asked.resource.group, asked.resource.plural) {
        ("", "persistentvolumes") => "kubernetes.io/pv-protection",
        ("", "persistentvolumeclaims") => "kubernetes.io/pvc-protection",
        ("storage.k8s.io", "volumeattributesclasses") => "kubernetes.io/vac-protection",
        _ => return,
    };
    if object.finalizers().any(|own| own == finalizer) {
        return;
    }
    const PATH: &[&str] = &["metadata", "finalizers"];
    let mut finalizers = object.list(PATH).to_vec();
    finalizers.push(finalizer.into());
    object.set(PATH, Value::Array(finalizers));
}

pub fn may_grow(view: &dyn View, claim: &Object, asked: &Attributes<'_>) -> Result<(), Status> {
    let (true, Some(old)) = (asked.is_main("", "persistentvolumeclaims"), asked.old) else {
        return Ok(());
    };
    if size(claim) <= size(old) {
        return Ok(());
    }
    if old.str(&["status", "phase"]) != "Bound" {
        let why = "Only bound persistent volume claims can be expanded";
        return Err(asked.forbidden(Some(claim), why));
    }
    let (own, before) = (class(claim), class(old));
    let lets = !own.is_empty()
        && own == before
        && view
            .get("storage.k8s.io", "storageclasses", "", own)
            .is_some_and(|class| class.bool(&["allowVolumeExpansion"]));
    if lets {
        return Ok(());
    }
    let why = "only dynamically provisioned pvc can be resized and the storageclass that \
               provisions the pvc must support resize";
    Err(asked.forbidden(Some(claim), why))
}

fn size(claim: &Object) -> Quantity {
    let size = claim.get(&["spec", "resources", "requests", "storage"]);
    let size = size.and_then(|size| Quantity::from_value(size).ok());
    size.unwrap_or(Quantity::ZERO)
}
