//! What a pass wants written and told, and the states both kinds of pass give. Pure.

use coracle_api::quantity::Quantity;
use coracle_client::ObjectKey;
use coracle_client::events::{self, EventType};
use coracle_client::informer::Kind;
use coracle_client::volumes::{
    self, BIND_COMPLETED, BOUND_BY_CONTROLLER, annotate, annotation, capacity, volume_name,
};
use k8s_openapi::api::core::v1::{ObjectReference, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;

/// A size of a claim that is kept back until its file system has grown.
const CAPACITY_BEFORE: &str = "volume.alpha.kubernetes.io/pre-resize-capacity";

/// An event.
#[derive(Debug)]
pub(super) struct Told {
    pub about: ObjectReference,
    pub kind: EventType,
    pub reason: &'static str,
    pub message: String,
}

/// An object as it was looked at, and as it should be.
#[derive(Debug)]
pub(super) struct Change<K> {
    pub was: K,
    pub wanted: K,
}

/// The volume is written first, of each object the specification before the status.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub volume: Option<Change<PersistentVolume>>,
    pub claim: Option<Change<PersistentVolumeClaim>>,
    /// Told when all is written.
    pub told: Vec<Told>,
    /// To be looked at next.
    pub claim_next: Option<ObjectKey>,
}

impl Plan {
    pub(super) fn loses_claim(&self) -> bool {
        let claim = self.claim.as_ref();
        claim.is_some_and(|claim| claim_phase(&claim.wanted) == "Lost")
    }

    pub(super) fn tell<K: Kind>(
        &mut self,
        about: &K,
        kind: EventType,
        reason: &'static str,
        message: impl Into<String>,
    ) {
        self.told.push(Told {
            about: events::reference(about),
            kind,
            reason,
            message: message.into(),
        });
    }
}

pub(super) fn claim_phase(claim: &PersistentVolumeClaim) -> &str {
    let status = claim.status.as_ref();
    status
        .and_then(|status| status.phase.as_deref())
        .unwrap_or("")
}

pub(super) fn volume_phase(volume: &PersistentVolume) -> &str {
    let status = volume.status.as_ref();
    status
        .and_then(|status| status.phase.as_deref())
        .unwrap_or("")
}

/// Its claim is known to be gone.
pub(super) fn is_released(volume: &PersistentVolume) -> bool {
    matches!(volume_phase(volume), "Released" | "Failed")
}

/// The server notes when that was.
pub(super) fn enter(volume: &mut PersistentVolume, phase: &str, message: Option<String>) {
    if volume_phase(volume) == phase {
        return;
    }
    let status = volume.status.get_or_insert_default();
    status.phase = Some(phase.to_owned());
    status.message = message;
}

/// The two as they are when they are bound to one another; gives the claim.
pub(super) fn bind(
    plan: &mut Plan,
    volume: &PersistentVolume,
    claim: PersistentVolumeClaim,
) -> PersistentVolumeClaim {
    let mut bound = volumes::bound_to(volume, &claim);
    enter(&mut bound, "Bound", None);
    let mut owner = claim;
    let name = bound.metadata.name.clone().unwrap_or_default();
    if volume_name(&owner) != name {
        owner.spec.get_or_insert_default().volume_name = Some(name);
        if annotation(&owner.metadata, BOUND_BY_CONTROLLER).is_none() {
            annotate(&mut owner.metadata, BOUND_BY_CONTROLLER, "yes");
        }
    }
    if annotation(&owner.metadata, BIND_COMPLETED).is_none() {
        annotate(&mut owner.metadata, BIND_COMPLETED, "yes");
    }
    show(&mut owner, "Bound", Some(&bound));
    plan.volume = Some(Change {
        was: volume.clone(),
        wanted: bound,
    });
    owner
}

/// What a claim's status says of its volume. A size that it shows already stays while it is bound:
/// a file system may be smaller than its volume.
pub(super) fn show(
    claim: &mut PersistentVolumeClaim,
    phase: &str,
    volume: Option<&PersistentVolume>,
) {
    let before = claim_phase(claim).to_owned();
    let status = claim.status.get_or_insert_default();
    status.phase = Some(phase.to_owned());
    let Some(volume) = volume else {
        status.access_modes = None;
        status.capacity = None;
        status.current_volume_attributes_class_name = None;
        return;
    };
    let Some(spec) = &volume.spec else { return };
    status.access_modes.clone_from(&spec.access_modes);
    if before != phase {
        let shown = volumes::storage(status.capacity.as_ref());
        let kept_back = annotation(&volume.metadata, CAPACITY_BEFORE);
        let kept_back = kept_back.filter(|size| Quantity::parse(size).is_ok());
        if let Some(size) = kept_back {
            let sizes = status.capacity.get_or_insert_default();
            sizes.insert("storage".to_owned(), Written(size.to_owned()));
        } else if status.capacity.is_none() || shown != capacity(volume) {
            status.capacity.clone_from(&spec.capacity);
        }
    }
    if before == "Pending" && phase == "Bound" {
        let attributes = &spec.volume_attributes_class_name;
        status
            .current_volume_attributes_class_name
            .clone_from(attributes);
    }
}
