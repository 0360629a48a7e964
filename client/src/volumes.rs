//! What controllers and scheduler both must know of claims and volumes: whose a volume is, what a
//! claim asks for, and which volume it gets. Pure.
//!
//! The annotations are the wire between binder, scheduler and provisioners, upstream's and ours.

use std::collections::BTreeMap;

use coracle_api::quantity::Quantity;
use k8s_openapi::api::core::v1::{ObjectReference, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

mod matching;

pub use matching::Wanted;

/// Of a claim: it was bound once, and is lost when its volume is not there.
pub const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// Of a claim or volume: a controller chose the other side, not a user.
pub const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// Of a claim: the node of the pod that waits for it; a volume for there may be provisioned now.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// Of a claim: who shall provision a volume.
pub const PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
pub const PROVISIONER_BETA: &str = "volume.beta.kubernetes.io/storage-provisioner";
/// Of a volume: who provisioned it.
pub const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// Of a claim or volume: the CSI driver that does the work of a kind that was once built in.
pub const MIGRATED_TO: &str = "pv.kubernetes.io/migrated-to";
/// The provisioner that makes volumes of directories on nodes.
pub const LOCAL_PATH: &str = "coracle.io/local-path";
/// Of a node: where it keeps such directories. A node without it keeps none.
pub const LOCAL_PATH_DIRECTORY: &str = "coracle.io/local-path-dir";
/// The class of claims and volumes before they had a field for it.
const CLASS_BETA: &str = "volume.beta.kubernetes.io/storage-class";
const DEFAULT_CLASS: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];
/// A class with this provisioner has volumes that people make.
pub const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

pub fn annotation<'a>(meta: &'a ObjectMeta, name: &str) -> Option<&'a str> {
    meta.annotations.as_ref()?.get(name).map(String::as_str)
}

pub fn annotate(meta: &mut ObjectMeta, name: &str, value: &str) {
    let annotations = meta.annotations.get_or_insert_default();
    annotations.insert(name.to_owned(), value.to_owned());
}

/// Empty for none.
pub fn class_of_claim(claim: &PersistentVolumeClaim) -> &str {
    annotation(&claim.metadata, CLASS_BETA)
        .or_else(|| claim.spec.as_ref()?.storage_class_name.as_deref())
        .unwrap_or("")
}

/// Also true for a claim that asks for volumes of no class.
pub fn names_class(claim: &PersistentVolumeClaim) -> bool {
    let spec = claim.spec.as_ref();
    annotation(&claim.metadata, CLASS_BETA).is_some()
        || spec.is_some_and(|spec| spec.storage_class_name.is_some())
}

/// Empty for none.
pub fn class_of_volume(volume: &PersistentVolume) -> &str {
    annotation(&volume.metadata, CLASS_BETA)
        .or_else(|| volume.spec.as_ref()?.storage_class_name.as_deref())
        .unwrap_or("")
}

/// Whether claims of the class wait for the node of a pod.
pub fn binds_late(class: &StorageClass) -> bool {
    class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer")
}

/// The newest of those marked as default; of equally old ones the first by name.
pub fn default_class<C: AsRef<StorageClass>>(classes: &[C]) -> Option<&StorageClass> {
    let classes = classes.iter().map(AsRef::as_ref);
    let marked = classes.filter(|class| {
        let is = |name: &&str| annotation(&class.metadata, name) == Some("true");
        DEFAULT_CLASS.iter().any(is)
    });
    let made = |class: &StorageClass| class.metadata.creation_timestamp.as_ref().map(|at| at.0);
    marked.min_by(|a, b| {
        let newest_first = made(b).cmp(&made(a));
        newest_first.then_with(|| a.metadata.name.cmp(&b.metadata.name))
    })
}

/// The volume that a claim is for; empty while it has none.
pub fn volume_name(claim: &PersistentVolumeClaim) -> &str {
    let spec = claim.spec.as_ref();
    spec.and_then(|spec| spec.volume_name.as_deref())
        .unwrap_or("")
}

pub fn claim_ref(volume: &PersistentVolume) -> Option<&ObjectReference> {
    volume.spec.as_ref()?.claim_ref.as_ref()
}

/// Whether a volume is bound to a claim or held for it: by name, and by uid where it says one.
pub fn is_held_for(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    claim_ref(volume).is_some_and(|held| {
        let uid = held.uid.as_deref().unwrap_or("");
        held.name == claim.metadata.name
            && held.namespace == claim.metadata.namespace
            && (uid.is_empty() || Some(uid) == claim.metadata.uid.as_deref())
    })
}

/// Bound to a volume for good: what the scheduler may rely on.
pub fn is_fully_bound(claim: &PersistentVolumeClaim) -> bool {
    !volume_name(claim).is_empty() && annotation(&claim.metadata, BIND_COMPLETED).is_some()
}

/// The volume as it is when it is the claim's; equal to what it was if it is already.
pub fn bound_to(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> PersistentVolume {
    let mut bound = volume.clone();
    let was_held = is_held_for(volume, claim);
    let is_same = was_held
        && claim_ref(volume).and_then(|held| held.uid.as_ref()) == claim.metadata.uid.as_ref();
    if !is_same {
        bound.spec.get_or_insert_default().claim_ref = Some(crate::events::reference(claim));
    }
    if !was_held && annotation(&bound.metadata, BOUND_BY_CONTROLLER).is_none() {
        annotate(&mut bound.metadata, BOUND_BY_CONTROLLER, "yes");
    }
    bound
}

/// Whether the volume can be reached from a node with these labels; `name` is the node's.
pub fn is_reachable<'a>(
    volume: &PersistentVolume,
    label: impl Fn(&str) -> Option<&'a str>,
    name: &str,
) -> bool {
    let affinity = volume.spec.as_ref().and_then(|s| s.node_affinity.as_ref());
    let Some(required) = affinity.and_then(|affinity| affinity.required.as_ref()) else {
        return true;
    };
    let mut terms = required.node_selector_terms.iter();
    terms.any(|term| crate::node_selector::term_matches(term, &label, name))
}

/// What is no quantity counts as nothing; validation keeps it out.
pub fn storage(amounts: Option<&BTreeMap<String, Written>>) -> Quantity {
    let written = amounts.and_then(|amounts| amounts.get("storage"));
    written
        .and_then(|written| Quantity::parse(&written.0).ok())
        .unwrap_or(Quantity::ZERO)
}

pub fn capacity(volume: &PersistentVolume) -> Quantity {
    let spec = volume.spec.as_ref();
    storage(spec.and_then(|spec| spec.capacity.as_ref()))
}

/// How much a claim asks for.
pub fn request(claim: &PersistentVolumeClaim) -> Quantity {
    let resources = claim.spec.as_ref().and_then(|s| s.resources.as_ref());
    storage(resources.and_then(|resources| resources.requests.as_ref()))
}

#[cfg(test)]
mod tests;
